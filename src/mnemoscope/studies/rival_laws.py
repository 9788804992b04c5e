"""Every power law of the critical N that the catalogue knows, and how far apart they lie.

Written down once, so that a rule for one law can be made narrow enough to exclude all others. Laws
that samples do not enter, overlap and interference, have no critical N, and so no powers here.
"""

import math
from collections.abc import Collection, Mapping

from mnemoscope.experiments.fit import FIRST_GRADIENT
from mnemoscope.theory.laws import LAWS, LEAK

Powers = Mapping[str, float]

# The powers of V, d and L in the critical N, at leading order. The news summary says nothing of V.
CRITICAL_SAMPLES: Mapping[str, Powers] = {
    law.name: {axis: powers.get(axis, 0.0) for axis in ("vocab", "dim", "length")}
    for law in (*LAWS, LEAK)
    if (powers := law.critical("samples")) is not None
} | {"first_gradient": FIRST_GRADIENT, "news": {"dim": 1.0, "length": 1.0}}
# The powers in a noise itself, over the signal.
NOISES: Mapping[str, Powers] = {
    law.name: {axis: law.powers.get(axis, 0.0) for axis in ("vocab", "dim", "length", "samples")}
    for law in (*LAWS, LEAK)
}
# No box is wider than this, however far away the nearest rival is.
WIDEST = 0.25


def rivals_of(
    name: str, laws: Mapping[str, Powers], axes: Collection[str]
) -> dict[str, dict[str, float]]:
    """All laws but this one, on the axes that are varied."""
    return {
        rival: {axis: powers[axis] for axis in axes if axis in powers}
        for rival, powers in laws.items()
        if rival != name
    }


def distance(first: Powers, second: Powers, axes: Collection[str]) -> float:
    """The largest difference of two laws' powers: what one axis at least must tell apart."""
    shared = [axis for axis in axes if axis in first and axis in second]
    return max((abs(first[axis] - second[axis]) for axis in shared), default=0.0)


def half_width(claimed: Powers, rivals: Mapping[str, Powers], axes: Collection[str]) -> float:
    """Of the box about a law's powers: half of the way to the nearest rival, at most WIDEST."""
    nearest = min((distance(claimed, rival, axes) for rival in rivals.values()), default=math.inf)
    if nearest == 0:
        raise ValueError("expected axes that tell the claim from its rivals, got the same powers")
    return min(WIDEST, nearest / 2)
