"""Paper A: three gradient steps learn recall although embeddings overlap, d < V."""

from typing import Any

from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.panels import draw_bars, finish
from mnemoscope.studies.seed_means import mean_over_seeds, run_settings, show

SETTING: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=256, dim=96, length=16, samples=8000),
    "full": Retrieval(vocab=2048, dim=384, length=64, samples=131072),
}
SEEDS: dict[Size, int] = {"quick": 8, "full": 16}


def measure(size: Size, bench: Bench) -> Numbers:
    """Accuracy after each step."""
    spec = SETTING[size]
    (trials,) = run_settings(bench, [spec], SEEDS[size])
    names = [step.name for step in trials[0].steps]
    steps = {name: mean_over_seeds([trial.steps[at].accuracy for trial in trials]) for at, name in enumerate(names)}
    return {"steps": steps, "chance": 1 / spec.vocab, "vocab": spec.vocab, "dim": spec.dim}


def judge(numbers: Numbers) -> Judgement:
    """Is accuracy above one half?"""
    end = numbers["steps"]["V2"]
    text = f"accuracy {show(end)} at d = {numbers['dim']} < V = {numbers['vocab']}, chance {numbers['chance']:.4f}"
    return Judgement.by(text, supported=end["low"] > 0.5, refuted=end["high"] < 0.5)


def draw(numbers: Numbers, figure: Any) -> None:
    """Accuracy after each step."""
    axes = figure.add_subplot()
    draw_bars(axes, list(numbers["steps"]), list(numbers["steps"].values()))
    axes.axhline(numbers["chance"], color="black", linewidth=0.8, linestyle=":", label="chance")
    finish(axes, "after step", "accuracy")


STUDY = Study(
    id="a-three-steps",
    revision=1,
    source="paper A (statement)",
    place="three-step training",
    statement="Recall is learned in three gradient steps with random embeddings that overlap, d < V.",
    expected="accuracy far above chance",
    rule="Supported if the 95 % interval of the accuracy after three steps lies above 0.5, refuted if it lies below.",
    measure=measure,
    judge=judge,
    draw=draw,
)
