r"""What decoders name from a first gradient seen through noise or in bits, beside the bound.

(D5), (D6) and (D7) say how many labels can be named from it at most (`theory/bound`). With l_i and
m_j the eigenvalues of U'^T U' and Z^T Z, what other pairs add to entry (i, j) of G, in the bases of
their eigenvectors, has a variance proportional to l_i m_j; the noise has the same everywhere. The
ridge divides G by the sum of both: strong noise makes it the matched filter, weak noise least
squares.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from mnemoscope.experiments.decoders import WIDEST, Seen, decode, see
from mnemoscope.fields import Device
from mnemoscope.spec import Retrieval
from mnemoscope.stopping import stop_if_asked
from mnemoscope.theory.bound import limits

NAMES = ("matched_filter", "ridge_assignment")
# What is asked of `limits`; the share that it allows does not depend on it.
TARGET = 0.5


@dataclass(frozen=True)
class Named:
    """The share of labels that each decoder names from one gradient, and the most that may be."""

    spec: Retrieval
    seed: int
    shares: dict[str, float]
    allowed: float


def name_labels(
    spec: Retrieval, seed: int, *, noise: float | None = None, bits: int | None = None,
    device: Device = "auto",
) -> Named:  # fmt: skip
    """Decode one gradient through noise, in units of its root mean square entry, or in bits."""
    stop_if_asked()
    seen = see(spec, seed, device, noise=noise, bits=bits)
    # An entry in b bits is off by a uniform number of one step's width.
    rounding = 0.0 if bits is None else 2 * WIDEST / 2**bits / np.sqrt(12)
    shares = decode(seen, ("matched_filter",))
    shares["ridge_assignment"] = _ridge_assignment(seen, float(np.hypot(noise or 0.0, rounding)))
    return Named(spec, seed, shares, allowed_share(spec, noise=noise, bits=bits))


def allowed_share(
    spec: Retrieval, *, noise: float | None = None, bits: int | None = None
) -> float:  # fmt: skip
    """The smallest of the shares that the proved bounds allow."""
    found = limits(spec, TARGET, noise=noise, bits=bits)
    return min(limit.share for limit in found if limit.proved)


def _ridge_assignment(seen: Seen, noise: float) -> float:
    """The share named by the ridge's scores, every label given out once."""
    U, Z = seen.U - seen.U.mean(axis=0), seen.Z
    of_labels, labels = np.linalg.eigh(U.T @ U)
    of_tokens, tokens = np.linalg.eigh(Z.T @ Z)
    others = np.outer(of_labels, of_tokens)
    weight = others / others.mean() + max(noise, 1e-3) ** 2
    G = labels @ ((labels.T @ seen.gradient @ tokens) / weight) @ tokens.T
    named = linear_sum_assignment(Z @ G.T @ seen.U.T, maximize=True)[1]
    return float(np.mean(named == seen.permutation))
