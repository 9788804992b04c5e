"""Paper A: accuracy rises with N, d and m, and falls with V and L."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope.spec import LETTERS, Retrieval
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Size, Study
from mnemoscope.studies.panels import draw_estimates
from mnemoscope.studies.seed_means import pool_rows, run_settings, spread

BASE: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=128, dim=40, length=8, samples=500),
    "full": Retrieval(vocab=512, dim=110, length=128, samples=2000),
}
WIDE: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=128, dim=40, length=8, samples=2000, width=64),
    "full": Retrieval(vocab=512, dim=32, length=16, samples=16000, width=128),
}


@dataclass(frozen=True)
class Ladder:
    """The values of one size, and whether accuracy should rise (+1) or fall (-1) along it."""

    axis: str
    sign: int
    sizes: dict[Size, tuple[int, ...]]
    activation: str | None = None

    @property
    def name(self) -> str:
        """The size's letter, and the activation where there is an MLP."""
        letter = LETTERS[self.axis]
        return letter if self.activation is None else f"{letter}, {self.activation}"


LADDERS = (
    Ladder("samples", 1, {"quick": (125, 250, 500, 1000, 2000), "full": (500, 1000, 2000, 4000, 8000)}),
    Ladder("dim", 1, {"quick": (34, 40, 50, 64), "full": (70, 90, 110, 140, 200)}),
    Ladder("vocab", -1, {"quick": (64, 128, 256), "full": (256, 384, 512, 768, 1024)}),
    Ladder("length", -1, {"quick": (8, 64, 128), "full": (32, 64, 128, 256, 512)}),
    Ladder("width", 1, {"quick": (64, 128, 256), "full": (128, 256, 512, 1024, 2048)}, "hermite3"),
    Ladder("width", 1, {"quick": (64, 128, 256), "full": (128, 256, 512, 1024, 2048)}, "relu"),
)
SEEDS: dict[Size, int] = {"quick": 12, "full": 16}


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's accuracy along every size."""
    specs = {}
    for ladder in LADDERS:
        base = WIDE[size].replace(activation=ladder.activation) if ladder.activation else BASE[size]
        for value in ladder.sizes[size]:
            specs[ladder.name, value] = base.replace(**{ladder.axis: value})
    different = list(dict.fromkeys(specs.values()))
    trials = dict(zip(different, run_settings(bench, different, SEEDS[size]), strict=True))
    seeds = range(bench.seed, bench.seed + SEEDS[size])
    rows = []
    for ladder in LADDERS:
        accuracies = []
        for value in ladder.sizes[size]:
            by_seed = {trial.seed: trial.accuracy for trial in trials[specs[ladder.name, value]]}
            accuracies.append([by_seed.get(seed) for seed in seeds])
        sizes = list(ladder.sizes[size])
        rows.append({"name": ladder.name, "sign": ladder.sign, "sizes": sizes, "accuracy": accuracies})
    return {"rows": rows}


def change(row: Numbers, start: int, end: int) -> Numbers:
    """The change between two values, positive in the claimed direction, paired by seed."""
    pairs = zip(row["accuracy"][start], row["accuracy"][end], strict=True)
    gaps = [row["sign"] * (after - before) for before, after in pairs if before is not None and after is not None]
    return spread(gaps) if len(gaps) > 1 else {"mean": 0.0, "low": -1.0, "high": 1.0}


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Does accuracy change the right way from end to end, and nowhere the wrong way?"""
    parts, right, wrong = [], [], []
    for row in pool_rows(bases, "accuracy"):
        last = len(row["sizes"]) - 1
        whole = change(row, 0, last)
        steps = [change(row, at, at + 1) for at in range(last)]
        back = [at for at, step in enumerate(steps) if step["high"] < 0]
        low, high = sorted((row["sign"] * whole["low"], row["sign"] * whole["high"]))
        parts.append(
            f"{row['name']} {row['sizes'][0]:,} to {row['sizes'][-1]:,}: "
            f"{row['sign'] * whole['mean']:+.3f} [{low:+.3f}, {high:+.3f}]"
            + "".join(f", back at {row['sizes'][at]:,} to {row['sizes'][at + 1]:,}" for at in back)
        )
        right.append(whole["low"] > 0)
        wrong.append(bool(back) or whole["high"] < 0)
    return Judgement.by("; ".join(parts), supported=all(right), refuted=any(wrong))


def draw(numbers: Numbers, figure: Any) -> None:
    """Accuracy along each size."""
    panels = figure.subplots(2, 3, sharey=True).ravel()
    for axes, row in zip(panels, numbers["rows"], strict=True):
        means = [spread([value for value in accuracies if value is not None]) for accuracies in row["accuracy"]]
        draw_estimates(axes, row["sizes"], means, color="C0" if row["sign"] > 0 else "C1", fmt="o-")
        axes.set_xscale("log")
        axes.set_xticks(row["sizes"], [f"{size:,}" for size in row["sizes"]], fontsize=7)
        axes.minorticks_off()
        axes.set_ylim(0, 1)
        axes.set_xlabel(row["name"], labelpad=1)
    for axes in panels[::3]:
        axes.set_ylabel("accuracy")


STUDY = Study(
    id="a-monotone",
    revision=2,
    source="paper A (statement)",
    place="capacity formula: N, d and m help, V and L make it harder",
    statement="Accuracy rises with the samples N, the dimension d and the MLP width m, and falls with the vocabulary V "
    "and the length L.",
    expected="N, d, m up, V, L down, for a ReLU as for hermite3",
    rule="One size at a time takes several values, the same seeds at each, all bases together; m with hermite3 and "
    "with ReLU. Supported if on all six the 95 % interval of the change from the smallest to the largest lies on its "
    "side of 0 and no change between neighbours lies on the other side. Refuted if a change, from end to end or "
    "between neighbours, lies on the other side.",
    measure=measure,
    draw=draw,
    judge_all=judge_all,
    history=(
        Earlier(
            date="2026-11-18",
            rule="One size at a time is doubled, the same seeds before and after. Supported if all five 95 % intervals "
            "of the change lie on their side of 0, refuted if one lies on the other side.",
            measured="2 N: +0.188 [+0.121, +0.254]; 2 d: +0.360 [+0.291, +0.429]; 2 m: +0.186 [+0.174, +0.197]; 2 V: "
            "-0.250 [-0.326, -0.174]; 2 L: -0.418 [-0.492, -0.344]",
            verdict="supported",
            reason="Two places an axis cannot show that accuracy falls back, and m was tried with hermite3 alone.",
        ),
    ),
)
