"""The power of a rule, before any run: its verdicts on measurements drawn from theory.

A study draws what it would measure if its claim were right, base seed by base seed, with the scatter that its searches
leave, and the rule judges each draw. The same is done with every rival law in place of the claim: a rule that supports
a rival cannot tell the two apart.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mnemoscope.studies.base import BASES, Judgement, Numbers, Power, Size, Verdict
from mnemoscope.studies.expected_scatter import Expected
from mnemoscope.studies.rival_laws import VALUES, Powers

# The numbers of all base seeds, as `measure` would return them.
Draw = Callable[[np.random.Generator], Sequence[Numbers]]
JudgeAll = Callable[[Sequence[Numbers]], Judgement]

DRAWS = 200
# A study with less power than this has to say what it would take.
ENOUGH = 0.8


def rehearse(judge_all: JudgeAll, claim: Draw, rivals: Mapping[str, Draw], *, note: str, draws: int = DRAWS) -> Power:
    """How often the rule supports the claim if the claim is right, and if each rival is."""
    verdicts = verdicts_of(judge_all, claim, draws)
    supported = verdicts["supported"] / draws
    note += f"; where the claim is right, refuted in {verdicts['refuted'] / draws:.2f} of the draws"
    shares = {name: verdicts_of(judge_all, rival, draws)["supported"] / draws for name, rival in rivals.items()}
    return Power(supported, shares, draws, note)


def verdicts_of(judge_all: JudgeAll, draw: Draw, draws: int = DRAWS) -> Counter[Verdict]:
    """How often the rule gives each verdict, over the same draws each time."""
    rng = np.random.default_rng(0)
    return Counter(judge_all(draw(rng)).verdict for _ in range(draws))


def base_by_base(size: Size, base: Callable[[np.random.Generator], Numbers]) -> Draw:
    """A draw for every base seed of a run."""
    return lambda rng: [base(rng) for _ in range(BASES[size])]


def scattered(rng: np.random.Generator, value: float, error: float, beyond: float = 0.0) -> tuple[float, float, float]:
    """An estimate of `value` and its 95 % interval.

    `error` is the standard error of its logarithm, which the interval reflects. `beyond` is additional scatter, which
    the interval does not.
    """
    estimate = value * float(np.exp(rng.normal(0.0, np.hypot(error, beyond))))
    reach = float(np.exp(1.96 * error))
    return estimate, estimate / reach, estimate * reach


@dataclass(frozen=True)
class Place:
    """A place of a grid: its sizes by axis, theory's value there, and the expected scatter."""

    sizes: Mapping[str, float]
    value: float
    scatter: Expected


def draw_grid(places: Sequence[Place], law: Sequence[float], size: Size, value: str, log_of: str | None = None) -> Draw:
    """The numbers of all base seeds if `law` has the true values; `value` is their key in a point."""
    axes = [{"axis": axis} for axis in places[0].sizes]

    def base(rng: np.random.Generator) -> Numbers:
        points = []
        for place, true in zip(places, law, strict=True):
            estimate, low, high = scattered(rng, true, place.scatter.error, place.scatter.beyond)
            points.append({**place.sizes, value: estimate, "low": low, "high": high, "predicted": place.value})
        return {"exponents": axes, "log_of": log_of, "points": points}

    return base_by_base(size, base)


def as_theory(places: Sequence[Place]) -> list[float]:
    """Theory's own values."""
    return [place.value for place in places]


def pure_power(places: Sequence[Place], powers: Powers) -> list[float]:
    """A power law with the geometric mean of theory's values at these places."""
    logs = [math.fsum(power * math.log(place.sizes[axis]) for axis, power in powers.items()) for place in places]
    return _centred(places, logs)


def sum_of_powers(places: Sequence[Place], powers: Powers) -> list[float]:
    """A sum with one term for each axis, its claimed power; all terms are equal at the middle of the grid."""
    terms = []
    for axis, power in powers.items():
        logs = np.log([place.sizes[axis] for place in places])
        terms.append(power * (logs - logs.mean()))
    return _centred(places, np.logaddexp.reduce(terms, axis=0).tolist())


def _centred(places: Sequence[Place], logs: Sequence[float]) -> list[float]:
    level = math.fsum(math.log(place.value) for place in places) / len(places)
    mean = math.fsum(logs) / len(logs)
    return [math.exp(level + log - mean) for log in logs]


def rehearse_grid(
    judge_all: JudgeAll,
    places: Sequence[Place],
    rivals: Mapping[str, Sequence[float]],
    size: Size,
    value: str,
    log_of: str | None = None,
    draws: int = DRAWS,
) -> Power:
    """The power of a rule if theory is right, and if each rival's values at the places are."""
    claim = draw_grid(places, as_theory(places), size, value, log_of)
    others = {name: draw_grid(places, law, size, value, log_of) for name, law in rivals.items()}
    note = say_draw(places, size, f"theory's {VALUES[value]}")
    return rehearse(judge_all, claim, others, note=note, draws=draws)


def say_draw(places: Sequence[Place], size: Size, what: str) -> str:
    """What a rehearsal draws, in words."""
    squares = [place.scatter.error**2 + place.scatter.beyond**2 for place in places]
    typical = math.sqrt(math.fsum(squares) / len(squares))
    bases = "one base seed" if BASES[size] == 1 else f"{BASES[size]} base seeds"
    return f"Drawn from {what} at {len(places)} places, {bases}, scattered by {typical:.3f} in its logarithm"
