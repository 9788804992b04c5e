"""`mnemoscope validate`: theory against simulation, on settings drawn beforehand."""

import datetime
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter
from rich.console import Console
from rich.markdown import Markdown

from mnemoscope.engine.device import find_device
from mnemoscope.engine.files import check_target, whole_file
from mnemoscope.experiments.estimate.agreement import Agreement, Compared, judge
from mnemoscope.experiments.forecast import (
    Forecast,
    of_filtering,
    of_open_crossings,
    of_open_decoding,
    of_settings,
    of_terms,
    of_theory,
)
from mnemoscope.experiments.validation import drawn_settings
from mnemoscope.experiments.validation.validate import (
    compare_accuracy,
    compare_bound,
    compare_critical,
    compare_matched,
    compare_spread,
    compare_terms,
    matched_seeds,
)
from mnemoscope.spec import Retrieval, read_option
from mnemoscope.spec.validators import Device, one_of
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import DeviceName, Json, Yes, count, flag
from mnemoscope.ui.cli.output import print_json
from mnemoscope.ui.cli.progress import Watch
from mnemoscope.ui.figures.validation import page, section

Foresee = Callable[[Sequence[Retrieval], int, str], Forecast]
Compare = Callable[[Sequence[Retrieval], int, Device, Callable[[float], None]], Iterator[Compared]]


class Part(NamedTuple):
    """One comparison: its settings, how many in full and in the quick size, and how to make it.

    `times` is how many seeds it takes for each that is asked for: a variance needs more. `draws`
    are the settings that theory is asked about before some are taken.
    """

    settings: Callable[[int], list[Retrieval]]
    full: int
    quick: int
    compare: Compare
    foresee: Foresee
    times: int = 1
    draws: int = 0

    def size(self, quick: bool) -> int:
        """How many settings."""
        return self.quick if quick else self.full


def _of_matched(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    return of_filtering(specs, [matched_seeds(spec, seeds) for spec in specs], platform)


PARTS = {
    "terms": Part(drawn_settings.for_terms, 48, 4, compare_terms, of_terms, times=4),
    "accuracy": Part(drawn_settings.for_accuracy, 210, 12, compare_accuracy, of_settings, draws=drawn_settings.DRAWS),
    "mlp": Part(drawn_settings.for_mlp, 120, 6, compare_accuracy, of_settings),
    "critical": Part(drawn_settings.for_critical, 44, 4, compare_critical, of_open_crossings),
    "bound": Part(drawn_settings.for_bound, 40, 3, compare_bound, of_open_decoding),
    "matched": Part(
        drawn_settings.for_matched, 84, 4, compare_matched, _of_matched, draws=drawn_settings.MATCHED_DRAWS
    ),
    "spread": Part(drawn_settings.for_spread, 78, 13, compare_spread, of_settings, times=2),
}


def validate(
    *parts: Annotated[str, Parameter(help=f"which of {', '.join(PARTS)} [default: all]")],
    seeds: Annotated[
        int,
        count(
            2,
            10**6,
            "how many seeds to run; `terms` takes four times as many, `spread` twice as many, `matched` more where "
            "the vocabulary is small",
        ),
    ] = 16,
    quick: Annotated[bool, flag("a few settings instead of all")] = False,
    device: DeviceName = "auto",
    yes: Yes = False,
    out: Annotated[Path | None, Parameter(help="also write all tables into this file (Markdown)")] = None,
    json: Json = False,
) -> int:
    """Hold theory against simulation, on settings drawn before any was run.

    Nothing is fitted and no setting is left out. `terms` compares attention's signal and each
    noise, `accuracy` the attention-only model, `mlp` the attention-MLP model, `critical` the N at
    accuracy 0.5, `bound` the Gaussian surrogate of the first gradient with decoders of the gradient
    itself, `matched` what the matched filter names, `spread` the interval over seeds. Example:

    `mnemoscope validate accuracy --quick`
    """
    names = [read_option("parts", one_of(*PARTS), name) for name in parts] or list(PARTS)
    if out is not None:
        check_target(out)
    words = " ".join(["mnemoscope validate", *parts, *(["--quick"] if quick else [])])
    place = find_device(device)
    kind = place.device_kind
    looked_at = sum(PARTS[name].draws for name in names)
    ask_first(replace(of_theory(looked_at), what="settings to draw"), "cpu", yes)
    chosen = {name: PARTS[name].settings(PARTS[name].size(quick)) for name in names}
    longest = [PARTS[name].foresee(specs, PARTS[name].times * seeds, place.platform) for name, specs in chosen.items()]
    ask_first(sum(longest[1:], longest[0]), place.platform, yes)
    head = f"`{words} --seeds {seeds} --out FILE`, {datetime.date.today()}, {kind}"
    told: dict[str, tuple[Agreement, list[Compared]]] = {}
    for name in names:
        part, specs = PARTS[name], chosen[name]
        with Watch(name, len(specs)) as watch:
            found = list(part.compare(specs, part.times * seeds, device, watch.advance))
        told[name] = (judge(name, found), found)
        if out is not None:  # after every part, so that none is lost with a later one
            with whole_file(out) as part_of_it:
                part_of_it.write_text(page(head, told), encoding="utf-8")
        if not json:
            agreement, _ = told[name]
            Console(highlight=False).print(Markdown(section(name, agreement, found, rows=12)))
    if json:
        print_json({"seeds": seeds, "parts": {name: _plain(*one) for name, one in told.items()}})
    return 0


def _plain(agreement: Agreement, found: Sequence[Compared]) -> dict[str, Any]:
    rows = [
        {
            "spec": one.spec.model_dump(exclude_defaults=True),
            "name": one.name,
            "predicted": one.predicted,
            "observed": one.observed,
            "error": one.error,
            "note": one.note,
        }
        for one in found
    ]
    return {"summary": agreement.figures, "aims": agreement.aims, "rows": rows}
