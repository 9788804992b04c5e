"""The power of a rule, before any run: what it would say of measurements drawn from theory.

A study draws what it would measure if its claim were right, base seed by base seed, with the
scatter that its searches leave; the rule judges each draw. The same with every rival law in the
claim's place: a rule that calls a rival supported cannot tell them apart.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mnemoscope.studies.base import BASES, Judgement, Numbers, Power, Size, Verdict

# The numbers of all base seeds, as `measure` would return them.
Draw = Callable[[np.random.Generator], Sequence[Numbers]]
JudgeAll = Callable[[Sequence[Numbers]], Judgement]

DRAWS = 200
# A study whose power is less than this has to say what it would take.
ENOUGH = 0.8


def rehearse(judge_all: JudgeAll, claim: Draw, rivals: Mapping[str, Draw], *, note: str, draws: int = DRAWS) -> Power:
    """How often the rule says supported where the claim is right, and where each rival is."""
    verdicts = verdicts_of(judge_all, claim, draws)
    supported = verdicts["supported"] / draws
    note += f"; where the claim is right, refuted in {verdicts['refuted'] / draws:.2f} of the draws"
    shares = {name: verdicts_of(judge_all, rival, draws)["supported"] / draws for name, rival in rivals.items()}
    return Power(supported, shares, draws, note)


def base_by_base(size: Size, base: Callable[[np.random.Generator], Numbers]) -> Draw:
    """A draw of every base seed of a run."""
    return lambda rng: [base(rng) for _ in range(BASES[size])]


def say_bases(size: Size) -> str:
    """How many base seeds a run has."""
    return "one base seed" if BASES[size] == 1 else f"{BASES[size]} base seeds"


def verdicts_of(judge_all: JudgeAll, draw: Draw, draws: int = DRAWS) -> Counter[Verdict]:
    """How often each verdict is given, over the same draws each time."""
    rng = np.random.default_rng(0)
    return Counter(judge_all(draw(rng)).verdict for _ in range(draws))


def scattered(rng: np.random.Generator, value: float, error: float, spread: float = 0.0) -> tuple[float, float, float]:
    """An estimate of `value` and its 95 % interval.

    `error` is the standard error of its logarithm, which the interval knows of; `spread` is what
    estimates scatter beyond it.
    """
    estimate = value * float(np.exp(rng.normal(0.0, np.hypot(error, spread))))
    reach = float(np.exp(1.96 * error))
    return estimate, estimate / reach, estimate * reach
