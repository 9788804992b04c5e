"""`mnemoscope validate`: theory against simulation, on settings drawn beforehand."""

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markdown import Markdown

from mnemoscope.engine.device import find_device
from mnemoscope.engine.files import check_target, whole_file
from mnemoscope.experiments.estimate.agreement import Agreement, Compared
from mnemoscope.experiments.forecast import of_theory
from mnemoscope.experiments.validation.parts import PARTS, Validation, compare_part, settings_of
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.ui.cli.asking import ask_first
from mnemoscope.ui.cli.options import DeviceName, Json, Yes, count, flag
from mnemoscope.ui.cli.output import echo, print_json
from mnemoscope.ui.cli.progress import Watch
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.figures.validation import page, section


@takes(Retrieval, file=True)
def validate(
    setting: Setting[Retrieval],
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

    With the options of a setting, that one setting is compared, its accuracy by default:

    `mnemoscope validate --vocab 200 --dim 64 --length 8 --samples 2000`
    """
    own = setting.read() if setting.spec or setting.given() else None
    if own is not None and quick:
        raise SpecError("quick", "expected it without a setting of your own, got both")
    if out is not None:
        check_target(out)
    words = " ".join(["mnemoscope validate", *parts, *(["--quick"] if quick else [])])
    words += "".join(
        f" --{name.replace('_', '-')} {value}" for name, value in (own.canonical_values() if own else {}).items()
    )
    place = find_device(device)
    if own is None:
        draws = sum(PARTS[name].draws for name in parts or PARTS if name in PARTS)
        ask_first(replace(of_theory(draws), what="settings to draw"), "cpu", yes)
    chosen = settings_of(parts, quick, own)
    longest = [PARTS[name].foresee(specs, PARTS[name].times * seeds, place.platform) for name, specs in chosen.items()]
    ask_first(sum(longest[1:], longest[0]), place.platform, yes)
    head = f"`{words} --seeds {seeds} --out FILE`, {datetime.date.today()}, {place.device_kind}"
    results: dict[str, tuple[Agreement, list[Compared]]] = {}
    for name, specs in chosen.items():
        with Watch(name, len(specs)) as watch:
            results[name] = compare_part(name, specs, seeds, device, watch.advance)
        if out is not None:  # after every part: a later one may be stopped
            with whole_file(out) as file:
                file.write_text(page(head, results), encoding="utf-8")
        if not json:
            echo(Markdown(section(name, *results[name], rows=12)))
    if json:
        print_json(Validation(seeds, results).as_dict())
    return 0
