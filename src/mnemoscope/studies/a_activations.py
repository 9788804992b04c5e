"""Paper A: an MLP keeps capacity where the dimension is small; with which activations?"""

from typing import Any

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.panels import draw_bars
from mnemoscope.studies.seed_means import difference, mean_over_seeds, run_settings, show

BASE: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=128, dim=16, length=8, samples=4000),
    "full": Retrieval(vocab=240, dim=24, length=12, samples=16000),
}
WIDTH: dict[Size, int] = {"quick": 512, "full": 2048}
ACTIVATIONS = ("relu", "gelu", "tanh", "hermite2", "hermite3")
SEEDS: dict[Size, int] = {"quick": 6, "full": 16}


def measure(size: Size, bench: Bench) -> Numbers:
    """Accuracy without an MLP, and with one of each activation."""
    base = BASE[size]
    specs = [base, *(base.replace(width=WIDTH[size], activation=name) for name in ACTIVATIONS)]
    bare, *wide = run_settings(bench, specs, SEEDS[size])
    trials_of = dict(zip(ACTIVATIONS, wide, strict=True))
    return {
        "bare": mean_over_seeds([trial.accuracy for trial in bare]),
        "wide": {name: mean_over_seeds([trial.accuracy for trial in trials]) for name, trials in trials_of.items()},
        "gains": {name: difference(trials, bare) for name, trials in trials_of.items()},
        "dim": base.dim,
        "vocab": base.vocab,
        "width": WIDTH[size],
    }


def judge(numbers: Numbers) -> Judgement:
    """Does any activation help?"""
    gains = numbers["gains"]
    helping = [name for name, gain in gains.items() if gain["low"] > 0]
    hurting = [name for name, gain in gains.items() if gain["high"] < 0]
    text = f"{show(numbers['bare'])} without an MLP; " + ", ".join(
        f"{name} {show(gain)}" for name, gain in numbers["wide"].items()
    )
    text += f". Better: {', '.join(helping) or 'none'}; worse: {', '.join(hurting) or 'none'}"
    return Judgement.by(text, supported=bool(helping), refuted=len(hurting) == len(gains))


def draw(numbers: Numbers, figure: Any) -> None:
    """Accuracy by activation."""
    axes = figure.add_subplot()
    draw_bars(axes, ["no MLP", *numbers["wide"]], [numbers["bare"], *numbers["wide"].values()])
    axes.set_ylabel("accuracy")
    axes.set_title(f"V = {numbers['vocab']}, d = {numbers['dim']}, m = {numbers['width']}", fontsize=9)


STUDY = Study(
    id="a-activations",
    revision=1,
    source="paper A (statement)",
    place="attention-MLP model",
    statement="An MLP keeps capacity where the dimension is small.",
    expected="more accuracy than attention alone at the same d and N",
    rule="Accuracy with an MLP less accuracy without, paired by seed, for each activation. Supported if for at least "
    "one the 95 % interval lies above 0, refuted if for all it lies below.",
    measure=measure,
    judge=judge,
    draw=draw,
)
