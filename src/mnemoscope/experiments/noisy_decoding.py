"""What decoders recover from a first gradient with noise or in few bits, compared with the bound.

(D5), (D6) and (D7) bound the number of labels that can be named from it (`theory/bound`).
"""

from dataclasses import dataclass

from mnemoscope.engine.interrupts import stop_if_asked
from mnemoscope.experiments.decoders import decode, see
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.theory.bound import limits

NAMES = ("matched_filter", "ridge_assignment")
# `limits` needs a target; the share that it allows does not depend on it.
TARGET = 0.5


@dataclass(frozen=True)
class Named:
    """The share of labels that each decoder names from one gradient, and the largest that the bounds allow."""

    shares: dict[str, float]
    allowed: float


def name_labels(
    spec: Retrieval, seed: int, *, noise: float | None = None, bits: int | None = None, device: Device = "auto"
) -> Named:
    """Decode one gradient through noise, in units of its root mean square entry, or in bits."""
    stop_if_asked()
    shares = decode(see(spec, seed, device, noise=noise, bits=bits), NAMES)
    return Named(shares, allowed_share(spec, noise=noise, bits=bits))


def allowed_share(spec: Retrieval, *, noise: float | None = None, bits: int | None = None) -> float:
    """The smallest of the shares that the proved bounds allow."""
    return min(limit.share for limit in limits(spec, TARGET, noise=noise, bits=bits) if limit.proved)
