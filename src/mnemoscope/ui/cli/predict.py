"""`mnemoscope predict`: theory for a setting, no simulation."""

from typing import Annotated

from rich.table import Table

from mnemoscope.spec import Retrieval
from mnemoscope.theory.critical import SEARCH, Axis, critical_value
from mnemoscope.theory.domain import domains_with
from mnemoscope.theory.predict import REGIMES, Prediction
from mnemoscope.theory.predict import predict as predict_spec
from mnemoscope.ui.cli.options import Json, flag
from mnemoscope.ui.cli.options import number as number_option
from mnemoscope.ui.cli.output import bar, deliver, echo, number
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.figures.canvas import sizes

WORDS = {
    "samples": "the least N that reaches it",
    "dim": "the least d that reaches it",
    "length": "the largest L that keeps it",
}


@takes(Retrieval, file=True)
def predict(
    setting: Setting[Retrieval],
    *,
    target: Annotated[float, number_option(0.001, 0.999, "the accuracy for which critical N, d and L are given")] = 0.5,
    domain: Annotated[
        bool,
        flag("list where each law was tested against simulation; with a setting, only the laws that are valid there"),
    ] = False,
    json: Json = False,
) -> int:
    """Predict one setting's accuracy from theory, without simulating it.

    No constant is fitted. Also shows which noise limits recall, and which N, d or L would reach a target accuracy with
    everything else fixed. Example:

    `mnemoscope predict --vocab 512 --dim 128 --length 16 --samples 16000`
    """
    if domain:
        return show_domains(setting, json)
    spec = setting.read()
    prediction = predict_spec(spec)
    critical: dict[Axis, int | None] = {axis: critical_value(spec, axis, target) for axis in SEARCH}
    result = {**prediction.as_dict(), "target": target, "critical": critical}
    return deliver(result, json, lambda _: show(prediction, target, critical))


# Sizes that `--domain` assumes where none are given.
OPEN = {"vocab": 512, "dim": 512, "length": 16, "samples": 16_000}


def show_domains(setting: Setting[Retrieval], as_json: bool) -> int:
    """List the laws that are valid for the options given, or all laws without any."""
    given = setting.given()
    # Orthonormal embeddings need as many dimensions as tokens, whichever of the two is given.
    size = given.get("vocab", given.get("dim", OPEN["vocab"]))
    spec = Retrieval.read({**OPEN, "vocab": size, "dim": size, **given})
    rows = domains_with(spec, given)
    table = Table("law", "measure", "valid where", "validated by", box=None, pad_edge=False)
    for row in rows:
        where = f"nowhere: {row.doubt}" if row.doubt else ", ".join(map(str, row.limits))
        table.add_row(row.law, row.measure, where, row.validated or "–")
    return deliver({"domains": [row.as_dict() for row in rows]}, as_json, lambda _: echo(table))


def show(prediction: Prediction, aim: float, critical: dict[Axis, int | None]) -> None:
    """The prediction for people."""
    spec = prediction.spec
    echo(f"{sizes(spec)}, theory", style="bold")
    for note in prediction.notes:
        echo(f"outside the derivation: {note}")
    if prediction.accuracy is None:
        return
    echo(
        f"accuracy            [bold]{number(prediction.accuracy)}[/bold] "
        f"\\[{number(prediction.low)}, {number(prediction.high)}]  95 % of seeds\n"
        f"attention accuracy  {number(prediction.attention_accuracy)}\n"
        f"regime              {prediction.regime}: {REGIMES[prediction.regime]}"
    )
    echo("\nNoise over signal")
    for name, size in sorted(prediction.terms.items(), key=lambda item: -item[1]):
        echo(f"  {name:16} {number(size):>7}  {bar(min(1.0, size))}")
    echo(f"\nFor accuracy {aim:g}, all else fixed")
    for axis, value in critical.items():
        reached = f"{value:,}" if value is not None else "never"
        echo(f"  {axis:8} {reached:>14}  (here {getattr(spec, axis):,}): {WORDS[axis]}")
