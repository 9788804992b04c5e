"""A search for anyone: where the noisy answers of a function cross a target.

The steps are those of `critical` (`estimate/search.py`). Answers are kept in the store, and workers may be elsewhere.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.estimate.estimate import Estimated
from mnemoscope.experiments.estimate.search import LARGEST, search_crossing
from mnemoscope.experiments.searches import SearchInProgress, run_searches
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import GivenTools, open_tools
from mnemoscope.spec import SpecError
from mnemoscope.spec.noisy import Noisy
from mnemoscope.spec.objects import place_in
from mnemoscope.spec.summary import Shown, Summary, number, span

# Between real ends, places are this many to the lower one.
PLACES = 2**10


@dataclass(frozen=True, repr=False)
class Found(Shown, Tabular, Estimated):
    """Where a function's answers cross the target, and every answer that was asked for."""

    axes: ClassVar[tuple[str, ...]] = ("x", "seed")
    function: str
    target: float
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "function": place_in(self.function),
            "target": self.target,
            **self.answer.as_dict(),
            "trials": self.records(),
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for each answer."""
        return [
            {"x": trial.spec.x, "seed": trial.seed, "status": trial.status, "answer": trial.metrics.get("answer")}
            for trial in self.trials
        ]

    def summary(self) -> Summary:
        """The crossing, and the mean answer at every place that was asked for."""
        answers: dict[float, list[float]] = {}
        for trial in self.trials:
            answer = trial.metrics.get("answer")
            answers.setdefault(trial.spec.x, []).extend([] if answer is None else [answer])
        digits = 1 if all(isinstance(x, int) for x in answers) else 3
        return Summary(
            f"{place_in(self.function)} at {self.target:g}",
            {
                "status": self.status,
                "x": f"{number(self.estimate, digits)} {span(self.low, self.high, digits)}",
                "answers": str(len(self.trials)),
            },
            ("x", "mean answer", "seeds"),
            tuple(
                (f"{x:g}", number(sum(found) / len(found) if found else None), str(len(found)))
                for x, found in sorted(answers.items())
            ),
        )


@spells_out(open_tools)
def search(
    function: Callable[[Any, int], float] | str,
    low: float,
    high: float | None = None,
    target: float = 0.5,
    *,
    rising: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
    guess: float | None = None,
    tolerance: float = 0.1,
    most_seeds: int = 32,
    first_seed: int = 0,
    **given: Unpack[GivenTools],
) -> Found:
    """Find where `function(x, seed)` crosses `target` between `low` and `high`, to +-`tolerance`.

    Answers lie within `bounds`, and on average rise with x unless `rising` is false. Whole ends give whole places;
    otherwise places are real, `low` / 1024 apart. Answers are kept in `store`, the user's own by default; workers and
    progress are given by name as well, or all three as `tools`.
    """
    least, most = bounds
    if not least < target < most:
        raise SpecError("target", f"expected a number between {least:g} and {most:g}, got {target:g}")
    if not (low > 0 and (high is None or high > low)):
        raise SpecError("range", f"expected 0 < low < high, got {low:g}:{'' if high is None else f'{high:g}'}")
    if high is None and not rising:
        raise SpecError("range", "expected an upper end for answers that fall, got none")
    whole = isinstance(low, int) and (high is None or isinstance(high, int))
    unit = 1 if whole else low / PLACES
    ends = round(low / unit), None if high is None else round(high / unit)
    if ends[1] is not None and ends[1] > LARGEST:
        raise SpecError("range", f"expected ends that are at most {LARGEST / ends[0]:,.0f} apart as a ratio, got more")
    start = Noisy(function=function, x=low, least=least, most=most)  # pyright: ignore[reportArgumentType]

    def read(records: Sequence[Trial]) -> float | None:
        answer = records[0].metrics.get("answer")
        return None if answer is None else (answer - least) / (most - least)

    steps = search_crossing(
        *ends,
        (target - least) / (most - least),
        rising=rising,
        guess=None if guess is None else guess / unit,
        tolerance=tolerance,
        most_seeds=most_seeds,
    )
    asked = SearchInProgress(steps, lambda place: [start.replace(x=place * unit)], read, first_seed)
    with open_tools(**given) as opened:
        (result,) = run_searches([asked], "x", opened)
    crashes = [trial.message for trial in result.records if trial.status == "crashed"]
    if crashes and math.isclose(len(crashes), len(result.records)):
        raise SpecError("function", f"expected answers from {place_in(start.function)}, got {crashes[0]}")
    return Found(result.end.map(lambda place: place * unit), start.function, target, result.records)
