"""The time of single operations on two machines: two cores (see `experiments/cost.py`), and an H200."""

from typing import NamedTuple

REFERENCE_CORES = 2


class Rates(NamedTuple):
    """Seconds for one of each."""

    token: float  # drawn and counted in one pass
    product: float  # a multiplication and an addition in a product of matrices
    entry: float  # of a table by pair of tokens, for all operations on it
    unit: float  # a hidden unit, or a weight of a softmax
    embedded: float  # a coordinate of a token's vector, by automatic differentiation
    drawn: float  # a token of a sequence of facts
    step: float  # of a training, however small
    trial: float  # however small


RATES = {
    "cpu": Rates(
        token=7e-9, product=4e-11, entry=2e-8, unit=2.2e-9, embedded=1.6e-8, drawn=2.5e-8, step=3e-6, trial=5e-3
    ),
    "gpu": Rates(
        token=5e-11, product=5e-14, entry=1e-10, unit=1e-11, embedded=4e-11, drawn=1e-11, step=4e-5, trial=2e-4
    ),
}


def known_platform(platform: str) -> str:
    """`cpu`, or `gpu` for any other platform of JAX."""
    return "cpu" if platform == "cpu" else "gpu"
