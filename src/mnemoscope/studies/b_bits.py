"""Paper B: N facts with M answers take N log2 M bits, so no memory holds more than its bits."""

import math
from typing import Any

from mnemoscope.experiments.capacity import capacity_many
from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.means import draw_bars

DIMS: dict[Size, tuple[int, ...]] = {"quick": (11, 16), "full": (16, 32, 64)}
SEEDS: dict[Size, int] = {"quick": 3, "full": 5}
# Bits of a parameter in the precision that trainings run in.
BITS = 32


def measure(size: Size, bench: Bench) -> Numbers:
    """Bits stored per parameter, all items right, written down and trained."""
    rows = []
    for d in DIMS[size]:
        specs = [
            Memory(items=2, dim=d),
            Memory(items=2, dim=d, method="trained"),
            Memory(items=2, dim=d, width=d, method="trained", max_steps=2**12),
        ]
        made = capacity_many(
            specs, 1.0, seeds=SEEDS[size], most_seeds=SEEDS[size], first_seed=bench.seed,
            resolution=0.06, **bench.tools,
        )  # fmt: skip
        names = ("outer products", "trained matrix", "trained MLP")
        for name, one in zip(names, made.points, strict=True):
            ends = (one.limits.estimate, one.limits.low, one.limits.high)
            bits = [n * math.log2(max(n, 2)) / one.spec.parameters for n in ends if n is not None]
            if len(bits) == 3:
                rows.append({"name": name, "dim": d, "mean": bits[0], "low": bits[1],
                             "high": bits[2]})  # fmt: skip
    return {"rows": rows}


def judge(numbers: Numbers) -> Judgement:
    """No memory beyond its bits."""
    rows = numbers["rows"]
    if not rows:
        return Judgement("no capacity was found", "inconclusive")
    said = "bits a parameter, all right: " + ", ".join(
        f"{one['name']} {one['mean']:.2f} at d = {one['dim']}" for one in rows
    )
    if any(one["low"] > BITS for one in rows):
        return Judgement(said, "refuted")
    return Judgement(said, "supported" if all(one["high"] < BITS for one in rows) else
                     "inconclusive")  # fmt: skip


def draw(numbers: Numbers, figure: Any) -> None:
    """Bits per parameter."""
    axes = figure.add_subplot()
    rows = numbers["rows"]
    draw_bars(axes, [f"{one['name']}\nd = {one['dim']}" for one in rows], rows)
    axes.set_ylabel(f"bits stored a parameter (of {BITS})")
    axes.tick_params(axis="x", labelsize=7)


STUDY = Study(
    id="b-bits",
    source="paper B",
    place="information-theoretic bound",
    statement="N facts with M answers take N log2 M bits, whatever the model: parameters times "
    "their bits bound what is stored.",
    expected=f"fewer than {BITS} bits a parameter",
    rule="N log2 M over the parameters, N being the items that are all right. Supported if all "
    f"95 % intervals lie below {BITS}, refuted if one lies above.",
    measure=measure,
    judge=judge,
    draw=draw,
)
