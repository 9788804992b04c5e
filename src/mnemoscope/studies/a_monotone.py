"""Paper A: accuracy rises with N, d and m, and falls with V and L."""

from typing import Any

import numpy as np

from mnemoscope.spec import LETTERS, Retrieval
from mnemoscope.studies.base import Bench, Judgement, Numbers, Size, Study
from mnemoscope.studies.means import difference, run_settings

BASE: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=128, dim=40, length=48, samples=600),
    "full": Retrieval(vocab=512, dim=110, length=128, samples=2000),
}
WIDE: dict[Size, Retrieval] = {
    "quick": Retrieval(vocab=128, dim=16, length=8, samples=3000, width=128, activation="hermite3"),
    "full": Retrieval(
        vocab=512, dim=32, length=16, samples=16000, width=512, activation="hermite3"
    ),
}
# Each is doubled; accuracy is to rise (+1) or to fall (-1).
SIGNS = {"samples": 1, "dim": 1, "width": 1, "vocab": -1, "length": -1}
SEEDS: dict[Size, int] = {"quick": 8, "full": 16}


def measure(size: Size, bench: Bench) -> Numbers:
    """The change of accuracy when one size is doubled, paired by seed."""
    bases = {axis: (WIDE if axis == "width" else BASE)[size] for axis in SIGNS}
    doubled = {
        axis: spec.replace(**{axis: 2 * getattr(spec, axis)}) for axis, spec in bases.items()
    }
    specs = list(dict.fromkeys([*bases.values(), *doubled.values()]))
    found = dict(zip(specs, run_settings(bench, specs, SEEDS[size]), strict=True))
    return {
        "changes": {
            axis: difference(found[doubled[axis]], found[spec]) for axis, spec in bases.items()
        }
    }


def judge(numbers: Numbers) -> Judgement:
    """Every interval on its side."""
    changes = numbers["changes"]
    said = "; ".join(
        f"2 {LETTERS[axis]}: {one['mean']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}]"
        for axis, one in changes.items()
    )
    right = [
        min(sign * changes[a]["low"], sign * changes[a]["high"]) > 0 for a, sign in SIGNS.items()
    ]
    wrong = [
        max(sign * changes[a]["low"], sign * changes[a]["high"]) < 0 for a, sign in SIGNS.items()
    ]
    verdict = "refuted" if any(wrong) else "supported" if all(right) else "inconclusive"
    return Judgement(said, verdict)


def draw(numbers: Numbers, figure: Any) -> None:
    """The changes, with their intervals."""
    axes = figure.add_subplot()
    changes = numbers["changes"]
    for at, (axis, one) in enumerate(changes.items()):
        color = "C0" if SIGNS[axis] > 0 else "C1"
        axes.plot([one["low"], one["high"]], [at, at], color=color, linewidth=2)
        axes.plot([one["mean"]], [at], "o", color=color)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(np.arange(len(changes)), [f"2 {LETTERS[axis]}" for axis in changes])
    axes.set_xlabel("change of accuracy (blue: claimed to rise, orange: to fall)")


STUDY = Study(
    id="a-monotone",
    source="paper A (statement)",
    place="capacity formula",
    statement="Accuracy rises with the samples N, the dimension d and the MLP width m, and falls "
    "with the vocabulary V and the length L.",
    expected="N, d, m up, V, L down",
    rule="One size at a time is doubled, the same seeds before and after. Supported if all five "
    "95 % intervals of the change lie on their side of 0, refuted if one lies on the other side.",
    measure=measure,
    judge=judge,
    draw=draw,
)
