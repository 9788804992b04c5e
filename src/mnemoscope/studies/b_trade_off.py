"""Paper B, Fig. 4 right: attention and MLP stand in for each other as the store of facts."""

from typing import Any

import numpy as np

from mnemoscope.experiments.sweep import sweep
from mnemoscope.spec import Facts
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study

BASE: dict[Size, dict[str, int]] = {
    "quick": {"subjects": 8, "relations": 8, "answers": 8, "dim": 16, "head_dim": 4,
              "max_steps": 2**11, "batch": 128, "length": 8},
    "full": {"subjects": 32, "relations": 32, "answers": 8, "dim": 32, "head_dim": 8},
}  # fmt: skip
HEADS: dict[Size, tuple[int, ...]] = {
    "quick": (1, 2, 4, 8),
    "full": (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32),
}
WIDTHS: dict[Size, tuple[int, ...]] = {
    "quick": (1, 16, 64),
    "full": (1, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128),
}
SEEDS: dict[Size, int] = {"quick": 2, "full": 2}
# Accuracies read off the authors' picture, +-0.02: m, then H = 1, 2, 4, 6, 8, 10, 12, 14, 16, 20.
READ_HEADS = (1, 2, 4, 6, 8, 10, 12, 14, 16, 20)
READ = {
    1: (0.11, 0.18, 0.34, 0.45, 0.72, 0.72, 0.85, 0.96, 0.94, 1.0),
    16: (0.18, 0.36, 0.58, 0.76, 0.79, 0.96, 0.94, 0.99, 1.0, 1.0),
    48: (0.23, 0.45, 0.74, 0.99, 0.97, 1.0, 0.99, 1.0, 1.0, 1.0),
    128: (0.21, 0.56, 0.89, 0.97, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
}


def measure(size: Size, bench: Bench) -> Numbers:
    """Accuracy over heads and hidden units, and its difference from the authors' picture."""
    specs = {
        (m, h): Facts.read({**BASE[size], "heads": h, "width": m})
        for m in WIDTHS[size]
        for h in HEADS[size]
    }
    seeds = range(bench.seed, bench.seed + SEEDS[size])
    jobs = [(spec, seed) for spec in specs.values() for seed in seeds]
    sweep(jobs, bench.store, bench.workers, lambda tally: bench.progress(tally, "trainings"))
    table: dict[tuple[int, int], list[float]] = {}
    for at, spec in specs.items():
        found = bench.store.outcomes(spec)
        told = [found[seed].accuracy for seed in seeds if seed in found]
        table[at] = [one for one in told if one is not None]
    rows = [[float(np.mean(table[m, h])) if table[m, h] else None for h in HEADS[size]]
            for m in WIDTHS[size]]  # fmt: skip
    spread = [float(np.std(one, ddof=1)) for one in table.values() if len(one) > 1]
    read = [
        (m, h, value)
        for m, row in READ.items()
        for h, value in zip(READ_HEADS, row, strict=True)
        if size == "full" and table.get((m, h))
    ]
    misses = [abs(float(np.mean(table[m, h])) - value) for m, h, value in read]
    return {
        "heads": list(HEADS[size]), "widths": list(WIDTHS[size]), "accuracy": rows,
        "spread": float(np.median(spread)) if spread else None,
        "difference": float(np.mean(misses)) if misses else None, "compared": len(misses),
    }  # fmt: skip


def judge(numbers: Numbers) -> Judgement:
    """Both ways up, and, where the authors' numbers are at hand, close to them."""
    rows = np.array(numbers["accuracy"], float)
    if np.isnan(rows).any():
        return Judgement("some trainings crashed", "inconclusive")
    # The table's four corners: little or much attention (columns), little or much MLP (rows).
    poor, wide, many, both = rows[0, 0], rows[-1, 0], rows[0, -1], rows[-1, -1]
    said = (
        f"accuracy {poor:.2f} with least of both, {wide:.2f} with the widest MLP, {many:.2f} with "
        f"the most heads, {both:.2f} with both"
    )
    noise = 2 * (numbers["spread"] or 0.02)
    gains = (many - poor, wide - poor)
    difference = numbers["difference"]
    if difference is not None:
        said += f"; {difference:.3f} from the authors' picture over {numbers['compared']} points"
    if min(gains) <= 0:
        return Judgement(said, "refuted")
    close = difference is None or difference <= 0.06
    return Judgement(said, "supported" if min(gains) > noise and close else "inconclusive")


def draw(numbers: Numbers, figure: Any) -> None:
    """The table as a map."""
    axes = figure.add_subplot()
    rows = np.array(numbers["accuracy"], float)
    image = axes.imshow(rows, origin="lower", vmin=0, vmax=1, aspect="auto", cmap="viridis")
    axes.set_xticks(range(len(numbers["heads"])), [str(h) for h in numbers["heads"]])
    axes.set_yticks(range(len(numbers["widths"])), [str(m) for m in numbers["widths"]])
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            tone = "white" if value < 0.6 else "black"
            axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=6, color=tone)
    axes.set_xlabel("heads, H")
    axes.set_ylabel("hidden units, m")
    figure.colorbar(image, ax=axes, label="accuracy")


STUDY = Study(
    id="b-fig4-right",
    source="paper B",
    place="Fig. 4 right",
    statement="Attention and MLP stand in for each other: facts can be stored in either.",
    expected="accuracy rises with H at the least m and with m at the least H; the authors' picture",
    rule="Supported if accuracy at the most heads (least m) and at the widest MLP (least H) is "
    "above that at the least of both by more than twice the seeds' spread, and, at full size, "
    "the mean absolute difference from the authors' picture is at most 0.06. Refuted if either "
    "does not rise.",
    measure=measure,
    judge=judge,
    draw=draw,
)
