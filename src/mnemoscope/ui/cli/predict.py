"""`mnemoscope predict`: theory for a setting, no simulation."""

from collections.abc import Mapping
from typing import Annotated

from rich.table import Table

from mnemoscope.spec import Retrieval
from mnemoscope.theory.critical import SEARCH, TRAINED_SEARCH, critical_value
from mnemoscope.theory.domain import domains_with
from mnemoscope.theory.frequencies.predict import FrequencyPrediction
from mnemoscope.theory.predict import REGIMES, Prediction
from mnemoscope.theory.predict import predict as predict_spec
from mnemoscope.theory.trained.predict import BINDINGS, TrainedPrediction
from mnemoscope.ui.cli.options import Json, flag
from mnemoscope.ui.cli.options import number as number_option
from mnemoscope.ui.cli.output import bar, deliver, echo, number, table
from mnemoscope.ui.cli.setting import Setting, takes
from mnemoscope.ui.figures.canvas import sizes

WORDS = {
    "samples": "the least N that reaches it",
    "dim": "the least d that reaches it",
    "length": "the largest L that keeps it",
    "vocab": "the largest V that keeps it",
}


@takes(Retrieval, file=True)
def predict(
    setting: Setting[Retrieval],
    *,
    trained: Annotated[bool, flag("predict the end of training in place of the three steps")] = False,
    target: Annotated[
        float, number_option(0.001, 0.999, "the accuracy for which critical N, d and L (or V) are given")
    ] = 0.5,
    domain: Annotated[
        bool,
        flag("list where each law was tested against simulation; with a setting, only the laws that are valid there"),
    ] = False,
    json: Json = False,
) -> int:
    """Predict one setting's accuracy from theory, without simulating it.

    No constant is fitted. Also shows which noise limits recall, and which N, d or L would reach a target accuracy with
    everything else fixed. With `--trained`: what is left when training has come to its end, what takes most of it away,
    and how many facts the weights hold. Examples:

    `mnemoscope predict --vocab 512 --dim 128 --length 16 --samples 16000`

    `mnemoscope predict --vocab 512 --dim 128 --length 16 --samples 16000 --trained`
    """
    if domain:
        return show_domains(setting, json)
    spec = setting.read()
    prediction = predict_spec(spec, trained=trained)
    axes = TRAINED_SEARCH if trained else SEARCH
    critical = {axis: critical_value(spec, axis, target, trained=trained) for axis in axes}
    result = {**prediction.as_dict(), "target": target, "critical": critical}
    return deliver(result, json, lambda _: show(prediction, target, critical))


# What takes less away than this binds nobody.
LITTLE = 0.0005
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


def show(prediction: Prediction, aim: float, critical: Mapping[str, int | None]) -> None:
    """The prediction for people."""
    spec = prediction.spec
    at_the_end = isinstance(prediction, TrainedPrediction)
    echo(f"{sizes(spec)}, theory{' of the end of training' if at_the_end else ''}", style="bold")
    for note in prediction.notes:
        echo(f"{'note' if at_the_end and prediction.accuracy is not None else 'outside the derivation'}: {note}")
    if prediction.accuracy is None:
        return
    echo(
        f"accuracy            [bold]{number(prediction.accuracy)}[/bold] "
        f"\\[{number(prediction.low)}, {number(prediction.high)}]  95 % of seeds\n"
        f"attention accuracy  {number(prediction.attention_accuracy)}"
    )
    if at_the_end:
        _show_training(prediction)
    else:
        if isinstance(prediction, FrequencyPrediction):
            _show_frequencies(prediction)
        echo(f"regime              {prediction.regime}: {REGIMES[prediction.regime]}\n\nNoise over signal")
        for name, size in sorted(prediction.terms.items(), key=lambda item: -item[1]):
            echo(f"  {name:16} {number(size):>7}  {bar(min(1.0, size))}")
    echo(f"\nFor accuracy {aim:g}, all else fixed")
    for axis, value in critical.items():
        reached = f"{value:,}" if value is not None else "never"
        echo(f"  {axis:8} {reached:>14}  (here {getattr(spec, axis):,}): {WORDS[axis]}")


def _show_frequencies(prediction: FrequencyPrediction) -> None:
    """Accuracy by fact, what was ever shown, and recall by how often tokens are expected in training."""
    echo(
        f"accuracy by fact    {number(prediction.accuracy_by_fact)}\n"
        f"ever informative    {number(prediction.seen)} by sequence, {number(prediction.seen_facts)} by fact"
    )
    rows = [(band.band.name, f"{len(band.band.tokens):,}", number(band.accuracy)) for band in prediction.bands]
    echo(table(["samples each", "tokens", "recall"], rows, left=("samples each",)))


def _show_training(prediction: TrainedPrediction) -> None:
    """What binds a trained model, what its weights hold, how long training takes, and what each part loses."""
    assert prediction.binding is not None
    assert prediction.capacity is not None
    lost = {name: share for name, share in prediction.terms.items() if name != "load"}
    little = lost.get(prediction.binding, 1.0) < LITTLE
    seen = prediction.spec.vocab * (1 - lost["unseen"])
    echo(
        f"binding             {'nothing' if little else f'{prediction.binding}: {BINDINGS[prediction.binding]}'}\n"
        f"capacity            the weights hold about {rounded(prediction.capacity):,} facts; "
        f"{seen:,.0f} are asked of them\n"
        f"load                {prediction.terms['load']:.2f}\n"
        f"steps               {_steps(prediction)}\n\n"
        "Share that is lost"
    )
    for name, share in sorted(lost.items(), key=lambda item: -item[1]):
        echo(f"  {name:16} {number(share):>7}  {bar(share)}")


def rounded(count: float) -> int:
    """A count in three digits."""
    return int(float(f"{count:.3g}"))


def _steps(prediction: TrainedPrediction) -> str:
    """The steps, and how rough that number is."""
    if prediction.steps is None:
        return "not derived"
    return f"about {prediction.steps:,} to store the facts (an estimate); up to ten times as many until it settles"
