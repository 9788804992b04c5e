"""What a study is: a claim, a measurement, a rule that was written before it, and a figure.

    measure(size, bench) -> numbers       runs trials, or finds them in the store
    judge(numbers) -> Judgement           the rule, on the numbers alone
    draw(numbers, figure)                 the figure, from the same numbers

The numbers are plain data, so that a judgement and a figure can be made again from what was kept.
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
# Base seeds that a run takes unless it is told otherwise.
BASES: dict[Size, int] = {"quick": 1, "full": 3}
# Who says it. A paper's statement stands in its public text; what we derived from its setting is
# ours, exponents and constants included. A study that a user adds is their own.
Source = Literal[
    "paper A (statement)", "ours, after paper A", "paper B", "ours, after paper B", "news", "review", "own"
]


@dataclass(frozen=True)
class Bench:
    """What a study works with: the store, workers, and the first of its seeds.

    `watch` hears of progress; `asked` collects every trial that the study asked for.
    """

    store: Store
    workers: Workers
    watch: Progress | None = None
    seed: int = 0
    asked: dict[AnyJob, None] = field(default_factory=dict, repr=False)

    def progress(self, tally: Tally, what: str = "trials") -> None:
        """Note what is asked for, and pass it on."""
        self.asked.update(dict.fromkeys(tally.jobs))
        if self.watch is not None:
            self.watch(tally, what)

    @property
    def tools(self) -> Tools:
        """As the experiments take them."""
        return Tools(self.store, self.workers, self.progress)


@dataclass(frozen=True)
class Judgement:
    """What was measured, in one line, and what the rule makes of it."""

    measured: str
    verdict: Verdict


@dataclass(frozen=True)
class Earlier:
    """A rule that was replaced, what it said at full size, and why it gave way.

    `statement` is what it judged, where the claim has been put in other words since.
    """

    date: str
    rule: str
    measured: str
    verdict: Verdict
    reason: str
    statement: str = ""

    def as_dict(self) -> dict[str, str]:
        """Plain data, ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Power:
    """What a rule would say before anything is run, over many draws of what might be measured.

    The share of draws that it calls supported where the claim is right, and where each rival law
    is right instead. `note` says what was drawn, and what it would take where the power is low.
    """

    supported: float
    rivals: dict[str, float]
    draws: int
    note: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Study:
    """One claim.

    `revision` is raised by hand when the measurement or its settings change, so that what was kept
    of an earlier one is run again. `place` says where in the source it stands. `judge_all`, where
    there is one, judges the numbers of all base seeds together; without it all must give the same
    verdict. `history` keeps the rules that were replaced, the latest first. `power`, where there is
    one, needs no measurement.
    """

    id: str
    revision: int
    source: Source
    statement: str
    expected: str
    rule: str
    measure: Callable[[Size, Bench], Numbers]
    judge: Callable[[Numbers], Judgement]
    draw: Callable[[Numbers, Any], None]
    judge_all: Callable[[Sequence[Numbers]], Judgement] | None = None
    history: tuple[Earlier, ...] = ()
    place: str = ""
    power: Callable[[Size], Power] | None = None

    def __post_init__(self) -> None:
        if self.source not in get_args(Source):
            known = ", ".join(get_args(Source))
            raise ValueError(f"{self.id}: expected a source of {known}, got {self.source!r}")

    @property
    def origin(self) -> str:
        """The source and the place in it."""
        return f"{self.source}: {self.place}" if self.place else self.source


def alone(judge_all: Callable[[Sequence[Numbers]], Judgement]) -> Callable[[Numbers], Judgement]:
    """The rule for all base seeds, applied to one."""
    return lambda numbers: judge_all([numbers])


def agreed(verdicts: Iterable[Verdict]) -> Verdict:
    """The one verdict that all give, or none."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else "inconclusive"


def all_agree(verdicts: Iterable[Verdict]) -> Verdict:
    """Refuted if one is, supported if all are."""
    different = set(verdicts)
    return "refuted" if "refuted" in different else agreed(different)


def within(low: float, high: float, least: float, most: float) -> Verdict:
    """Supported if the interval lies in [least, most], refuted if it lies outside."""
    if least <= low and high <= most:
        return "supported"
    return "refuted" if high < least or low > most else "inconclusive"
