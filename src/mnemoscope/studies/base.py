"""What a study is: a claim, a measurement, a rule that was written before it, and a figure.

    measure(size, bench) -> numbers       runs trials, or finds them in the store
    judge(numbers) -> Judgement           applies the rule to the numbers alone
    draw(numbers, figure)                 draws the same numbers

Numbers are plain data, so that the verdict and the figure can be computed again from a ledger.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from mnemoscope.engine.record import AnyJob
from mnemoscope.experiments.sweep import Tally, Workers
from mnemoscope.experiments.tools import Progress, Tools
from mnemoscope.store.trials import Store

Size = Literal["quick", "full"]
Verdict = Literal["supported", "refuted", "inconclusive"]
Numbers = dict[str, Any]
# The default number of base seeds.
BASES: dict[Size, int] = {"quick": 1, "full": 3}
# The distance between base seeds: no study uses as many seeds.
SEED_STRIDE = 10_000
# Who makes the claim. A paper's statement is in its public text; of papers C to P we read the abstract alone. What we
# derived in its setting is ours, exponents and constants included. A study that a user adds is their own.
Source = Literal[
    "paper A (statement)",
    "ours, after paper A",
    "paper B",
    "ours, after paper B",
    "paper C (abstract)",
    "ours, after paper C",
    "paper D (abstract)",
    "ours, after paper D",
    "paper E (abstract)",
    "ours, after paper E",
    "paper F (abstract)",
    "ours, after paper F",
    "paper G (abstract)",
    "ours, after paper G",
    "paper H (abstract)",
    "ours, after paper H",
    "paper I (abstract)",
    "ours, after paper I",
    "paper J (abstract)",
    "ours, after paper J",
    "paper K (abstract)",
    "ours, after paper K",
    "paper L (abstract)",
    "ours, after paper L",
    "paper M (abstract)",
    "ours, after paper M",
    "paper N (abstract)",
    "ours, after paper N",
    "paper O (abstract)",
    "ours, after paper O",
    "paper P (abstract)",
    "ours, after paper P",
    "news",
    "review",
    "own",
]


@dataclass(frozen=True)
class Bench:
    """What a study works with: a store, workers, and the first of its seeds.

    `watch` is called with progress. `asked` collects every trial that the study asks for.
    """

    store: Store
    workers: Workers
    watch: Progress | None = None
    seed: int = 0
    asked: dict[AnyJob, None] = field(default_factory=dict, repr=False)

    def progress(self, tally: Tally, what: str = "trials") -> None:
        """Note which trials are asked for, and pass progress on."""
        self.asked.update(dict.fromkeys(tally.jobs))
        if self.watch is not None:
            self.watch(tally, what)

    @property
    def tools(self) -> Tools:
        """The tools that experiments take."""
        return Tools(self.store, self.workers, self.progress)


@dataclass(frozen=True)
class Judgement:
    """What was measured, in one line, and the verdict of the rule."""

    measured: str
    verdict: Verdict

    @classmethod
    def by(cls, measured: str, *, supported: bool, refuted: bool) -> "Judgement":
        """Refuted if that holds, else supported if that does, else inconclusive."""
        return cls(measured, "refuted" if refuted else "supported" if supported else "inconclusive")


class PlainData:
    """What is kept and shown as it is."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Earlier(PlainData):
    """A rule that was replaced, its result at full size, and the reason.

    `statement` is the claim that it judged, if the claim has been reworded since.
    """

    date: str
    rule: str
    measured: str
    verdict: Verdict
    reason: str
    statement: str = ""


@dataclass(frozen=True)
class Power(PlainData):
    """The power of a rule, computed before any run from simulated measurements.

    `supported` is the fraction of draws in which the rule supports the claim if the claim is right; `rivals` has that
    fraction if a rival law is right instead. `note` says what was drawn and, if the power is low, what it would take.
    """

    supported: float
    rivals: dict[str, float]
    draws: int
    note: str


def _no_rule(numbers: Numbers) -> Judgement:
    """Stands for a rule that was not given, until `judge_all` takes its place."""
    raise ValueError("expected judge or judge_all, got neither")


@dataclass(frozen=True, kw_only=True)
class Study:
    """One claim.

    `revision` is raised by hand when the measurement or its settings change; older entries are then run again. `place`
    says where in the source the claim stands. `judge` is the rule for one base seed, `judge_all` the rule for all base
    seeds together. A study with `judge_all` alone applies it to single base seeds as well; with `judge` alone, all base
    seeds must give the same verdict. `history` has the rules that were replaced, the latest first. `power`, if given,
    needs no measurement.
    """

    id: str
    revision: int
    source: Source
    statement: str
    expected: str
    rule: str
    measure: Callable[[Size, Bench], Numbers]
    draw: Callable[[Numbers, Any], None]
    judge: Callable[[Numbers], Judgement] = _no_rule
    judge_all: Callable[[Sequence[Numbers]], Judgement] | None = None
    history: tuple[Earlier, ...] = ()
    place: str = ""
    power: Callable[[Size], Power] | None = None

    def __post_init__(self) -> None:
        if self.source not in get_args(Source):
            known = ", ".join(get_args(Source))
            raise ValueError(f"{self.id}: expected a source of {known}, got {self.source!r}")
        judge_all = self.judge_all
        if self.judge is _no_rule:
            if judge_all is None:
                raise ValueError(f"{self.id}: expected judge or judge_all, got neither")
            object.__setattr__(self, "judge", lambda numbers: judge_all([numbers]))

    @property
    def origin(self) -> str:
        """The source, and where in it the claim stands."""
        return f"{self.source}: {self.place}" if self.place else self.source


def agreed(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict, if all are the same; otherwise inconclusive."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else "inconclusive"


def all_agree(verdicts: Iterable[Verdict]) -> Verdict:
    """Refuted if any is, supported if all are."""
    different = set(verdicts)
    return "refuted" if "refuted" in different else agreed(different)


def within(low: float, high: float, least: float, most: float) -> Verdict:
    """Supported if the interval lies in [least, most], refuted if it lies outside."""
    if least <= low and high <= most:
        return "supported"
    return "refuted" if high < least or low > most else "inconclusive"
