"""`mnemoscope validate`: theory against simulation, on settings drawn beforehand."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter
from rich.markdown import Markdown

from mnemoscope.engine.device import find_device
from mnemoscope.engine.files import check_target, whole_file
from mnemoscope.experiments import forecast
from mnemoscope.experiments.estimate.agreement import Agreement, Compared, judge
from mnemoscope.experiments.forecast import Forecast
from mnemoscope.experiments.validation import drawn_settings as drawn
from mnemoscope.experiments.validation import frequencies, trained
from mnemoscope.experiments.validation import validate as comparisons
from mnemoscope.spec import Retrieval, read_option
from mnemoscope.spec.validators import Device, one_of
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import DeviceName, Json, Yes, count, flag
from mnemoscope.ui.cli.output import echo, print_json
from mnemoscope.ui.cli.progress import Watch
from mnemoscope.ui.figures.validation import page, section

Foresee = Callable[[Sequence[Retrieval], int, str], Forecast]
Compare = Callable[[Sequence[Retrieval], int, Device, Callable[[float], None]], Iterator[Compared]]


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


def validate(
    *parts: Annotated[str, Parameter(help=f"which of {', '.join(PARTS)} [default: all]")],
    seeds: Annotated[
        int,
        count(
            2,
            10**6,
            "how many seeds to run (`terms` 4 x, `spread`, `capacity`, `frequencies` 2 x, `matched` more for a small "
            "vocabulary)",
        ),
    ] = 16,
    quick: Annotated[bool, flag("a few settings instead of all")] = False,
    device: DeviceName = "auto",
    yes: Yes = False,
    out: Annotated[Path | None, Parameter(help="also write all tables into this file (Markdown)")] = None,
    json: Json = False,
) -> int:
    """Compare theory with simulation, on settings drawn before any was run.

    Nothing is fitted, and no setting is left out. `terms` compares attention's signal and each noise, `accuracy` the
    attention-only model, `mlp` the attention-MLP model, `critical` the N at accuracy 0.5, `bound` the Gaussian
    surrogate of the first gradient with decoders of the gradient itself, `matched` the share that the matched filter
    names, `spread` the interval over seeds. Of models trained to the end, `capacity` compares the number of facts that
    fit with a solver that proves its answers, `overload` what is left beyond it, `steps` how long training takes, and
    `trained` the accuracy. `frequencies` compares accuracy by sequence, fact and band where tokens are not uniform,
    with more seeds where they differ much. Example:

    `mnemoscope validate accuracy --quick`
    """
    names = [read_option("parts", one_of(*PARTS), name) for name in parts] or list(PARTS)
    if out is not None:
        check_target(out)
    words = " ".join(["mnemoscope validate", *parts, *(["--quick"] if quick else [])])
    place = find_device(device)
    draws = sum(PARTS[name].draws for name in names)
    ask_first(replace(forecast.of_theory(draws), what="settings to draw"), "cpu", yes)
    chosen = {name: PARTS[name].settings(PARTS[name].quick if quick else PARTS[name].full) for name in names}
    longest = [PARTS[name].foresee(specs, PARTS[name].times * seeds, place.platform) for name, specs in chosen.items()]
    ask_first(sum(longest[1:], longest[0]), place.platform, yes)
    head = f"`{words} --seeds {seeds} --out FILE`, {datetime.date.today()}, {place.device_kind}"
    results: dict[str, tuple[Agreement, list[Compared]]] = {}
    for name in names:
        part, specs = PARTS[name], chosen[name]
        with Watch(name, len(specs)) as watch:
            rows = list(part.compare(specs, part.times * seeds, device, watch.advance))
        agreement = judge(name, rows)
        results[name] = (agreement, rows)
        if out is not None:  # after every part: a later one may be stopped
            with whole_file(out) as file:
                file.write_text(page(head, results), encoding="utf-8")
        if not json:
            echo(Markdown(section(name, agreement, rows, rows=12)))
    if json:
        print_json({"seeds": seeds, "parts": {name: _plain(*result) for name, result in results.items()}})
    return 0


def _plain(agreement: Agreement, compared: Sequence[Compared]) -> dict[str, Any]:
    names = ("name", "predicted", "observed", "error", "note")
    rows = [
        {"spec": row.spec.model_dump(exclude_defaults=True), **{name: getattr(row, name) for name in names}}
        for row in compared
    ]
    return {"summary": agreement.figures, "aims": agreement.aims, "rows": rows}
