"""Validation by parts: each draws settings before any is run, runs them, and holds theory against them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from mnemoscope.experiments import forecast
from mnemoscope.experiments.estimate.agreement import Agreement, Compared, judge
from mnemoscope.experiments.forecast import Forecast
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import ShowSteps, watch_steps
from mnemoscope.experiments.validation import drawn_settings as drawn
from mnemoscope.experiments.validation import frequencies, trained
from mnemoscope.experiments.validation import validate as comparisons
from mnemoscope.spec import Retrieval, read_option
from mnemoscope.spec.summary import Shown, Summary, brief
from mnemoscope.spec.validators import Device, one_of

Foresee = Callable[[Sequence[Retrieval], int, str], Forecast]
Compare = Callable[[Sequence[Retrieval], int, Device, Callable[[float], object]], Iterator[Compared]]


class Part(NamedTuple):
    """One comparison: its settings, how many of them at full and at quick size, how to run it, and its forecast.

    `times` multiplies the number of seeds: a variance needs more. `draws` is how many settings theory predicts before
    some are chosen.
    """

    settings: Callable[[int], list[Retrieval]]
    full: int
    quick: int
    compare: Compare
    foresee: Foresee
    times: int = 1
    draws: int = 0


def _of_matched(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    return forecast.of_filtering(specs, [comparisons.matched_seeds(spec, seeds) for spec in specs], platform)


PARTS = {
    "terms": Part(drawn.for_terms, 48, 4, comparisons.compare_terms, forecast.of_terms, times=4),
    "accuracy": Part(
        drawn.for_accuracy, 210, 12, comparisons.compare_accuracy, forecast.of_settings, draws=drawn.DRAWS
    ),
    "mlp": Part(drawn.for_mlp, 120, 6, comparisons.compare_accuracy, forecast.of_settings),
    "critical": Part(drawn.for_critical, 44, 4, comparisons.compare_critical, forecast.of_open_crossings),
    "bound": Part(drawn.for_bound, 40, 3, comparisons.compare_bound, forecast.of_open_decoding),
    "matched": Part(drawn.for_matched, 84, 4, comparisons.compare_matched, _of_matched, draws=drawn.MATCHED_DRAWS),
    "spread": Part(drawn.for_spread, 78, 13, comparisons.compare_spread, forecast.of_settings, times=2),
    "capacity": Part(drawn.for_capacity, 20, 2, trained.compare_capacity, forecast.of_solving, times=2),
    "overload": Part(drawn.for_overload, 24, 4, trained.compare_overload, forecast.of_solving),
    "steps": Part(drawn.for_steps, 48, 4, trained.compare_steps, forecast.of_settings),
    "trained": Part(drawn.for_trained, 140, 5, trained.compare_trained, forecast.of_settings),
    "frequencies": Part(
        frequencies.for_frequencies,
        128,
        6,
        frequencies.compare_frequencies,
        forecast.of_settings,
        times=2,
        draws=frequencies.DRAWS,
    ),
}


@dataclass(frozen=True, repr=False)
class Validation(Shown, Tabular):
    """For each part, how well theory and simulation agree, and every setting."""

    axes: ClassVar[tuple[str, ...]] = ("part", "setting", "name")
    seeds: int
    parts: dict[str, tuple[Agreement, list[Compared]]]

    def records(self) -> list[dict[str, Any]]:
        """A row for each quantity of each setting."""
        names = ("name", "predicted", "observed", "error", "note")
        return [
            {"part": part, "setting": brief(row.spec), **{name: getattr(row, name) for name in names}}
            for part, (_, rows) in self.parts.items()
            for row in rows
        ]

    def summary(self) -> Summary:
        """The figures of every part, with their aims."""
        rows = []
        for part, (agreement, _) in self.parts.items():
            for figure, value in agreement.figures.items():
                aim, reached = agreement.aims.get(figure, ("", True))
                rows.append(
                    (part, figure, f"{value:.3g}", f"{aim}: {'reached' if reached else 'missed'}" if aim else "")
                )
        aims = [row[3].endswith("reached") for row in rows if row[3]]
        settings = sum(len(compared) for _, compared in self.parts.values())
        numbers = {"compared": f"{settings}", "aims reached": f"{sum(aims)} of {len(aims)}"}
        title = f"theory against simulation, {self.seeds} seeds"
        return Summary(title, numbers, ("part", "figure", "measured", "aim"), tuple(rows))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        names = ("name", "predicted", "observed", "error", "note")
        return {
            "seeds": self.seeds,
            "parts": {
                part: {
                    "summary": agreement.figures,
                    "aims": agreement.aims,
                    "rows": [
                        {
                            "spec": row.spec.model_dump(exclude_defaults=True),
                            **{name: getattr(row, name) for name in names},
                        }
                        for row in rows
                    ],
                }
                for part, (agreement, rows) in self.parts.items()
            },
        }


def settings_of(parts: Sequence[str], quick: bool, own: Retrieval | None = None) -> dict[str, list[Retrieval]]:
    """The settings of each part, of all parts by default: drawn, or one of the caller's own."""
    names = [read_option("parts", one_of(*PARTS), name) for name in parts] or (
        [*PARTS] if own is None else ["accuracy"]
    )
    if own is not None:
        return {name: [own] for name in names}
    return {name: PARTS[name].settings(PARTS[name].quick if quick else PARTS[name].full) for name in names}


def compare_part(
    name: str, specs: Sequence[Retrieval], seeds: int, device: Device, report: Callable[[float], object]
) -> tuple[Agreement, list[Compared]]:
    """Run one part."""
    rows = list(PARTS[name].compare(specs, PARTS[name].times * seeds, device, report))
    return judge(name, rows), rows


def validate(
    *parts: str,
    spec: Retrieval | None = None,
    seeds: int = 16,
    quick: bool = True,
    device: Device = "auto",
    progress: ShowSteps = None,
) -> Validation:
    """Compare theory with simulation, part by part; all parts by default, or accuracy where a `spec` is given.

    Settings are drawn before any is run, a few of them unless `quick` is False. A `spec` takes their place.
    """
    results = {}
    for name, specs in settings_of(parts, quick, spec).items():
        with watch_steps(name, len(specs), progress) as report:
            results[name] = compare_part(name, specs, seeds, device, report)
    return Validation(seeds, results)
