"""Every power law of the critical N that the catalogue knows, and how far apart they lie.

Written down once, so that a rule for one law can be made narrow enough to exclude all others. Laws
that samples do not enter, overlap and interference, have no critical N, and so no powers here.
"""

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
# The powers of V and d in the critical width m, one step of the memory behind given attention.
# Parameters are what counts, m d as V (MLP noise), or else: hidden units alone, m as V; a weight
# for every pair of facts, m d as V^2; a dimension that counts twice, m d^2 as V.
CRITICAL_WIDTH: Mapping[str, Powers] = {
    "parameters": {"vocab": 1.0, "dim": -1.0},
    "hidden_units": {"vocab": 1.0, "dim": 0.0},
    "pairs_of_facts": {"vocab": 2.0, "dim": -1.0},
    "dimension_twice": {"vocab": 1.0, "dim": -2.0},
}
# No box is wider than this, however far away the nearest rival is.
WIDEST = 0.25


def rivals_of(name: str, laws: Mapping[str, Powers], axes: Collection[str]) -> dict[str, dict[str, float]]:
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


def nearest(claimed: Powers, rivals: Mapping[str, Powers], axes: Collection[str]) -> tuple[str, float]:
    """The rival that is hardest to tell from the claim, and how far away it is."""
    name = min(rivals, key=lambda rival: distance(claimed, rivals[rival], axes))
    return name, distance(claimed, rivals[name], axes)


def half_width(claimed: Powers, rivals: Mapping[str, Powers], axes: Collection[str]) -> float:
    """Of the box about a law's powers: half of the way to the nearest rival, at most WIDEST."""
    away = nearest(claimed, rivals, axes)[1]
    if away == 0:
        raise ValueError("expected axes that tell the claim from its rivals, got the same powers")
    return min(WIDEST, away / 2)
