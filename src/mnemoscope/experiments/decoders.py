r"""Decoders that see the first gradient and the embeddings, and nothing else.

G = -grad_V Lhat(0, 0) = U^T C, as it is, or through noise and in a few bits an entry. Each decoder
scores every (token, label):

    matched filter   u_y^T G z_v
    least squares    u_y^T (U'^T U')^-1 G (Z^T Z)^-1 z_v, which undoes the overlaps that G can undo
    ridge            between the two, by the noise: in the bases of eigenvectors of U'^T U' and
                     Z^T Z, where other pairs add a variance proportional to l_i m_j to entry (i, j)
                     of G and the noise the same to each, G over the sum of both
    assignment       the permutation with the largest total of a decoder's scores: the most likely
                     one where the scores' noise is even, since Pi* gives every label once
    message passing  as in `message_passing`, the label with the largest score, or an assignment
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

from mnemoscope.engine.free_memory import SINGULAR, check_fits
from mnemoscope.experiments.message_passing import message_passing
from mnemoscope.experiments.trial_parts import trial_parts
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.algorithm import first_gradient
from mnemoscope.training.three_step.streaming import Count

# An assignment takes about V^3 steps; it is skipped above this V.
MOST_ASSIGNED = 2048
DECODERS = (
    "matched_filter",
    "squares_filter",
    "message_passing",
    "matched_assignment",
    "squares_assignment",
    "message_assignment",
)
NAMES = {"squares_filter": "least_squares"}
# Rounding to bits clips entries at this many times their root mean square.
WIDEST = 3.0


class Seen(NamedTuple):
    """What a decoder may see, and the right answer."""

    gradient: np.ndarray
    Z: np.ndarray
    U: np.ndarray
    permutation: np.ndarray
    length: int
    samples: int
    # Noise and rounding error added to the gradient, in units of its root mean square entry.
    noise: float = 0.0


def see(
    spec: Retrieval, seed: int, device: Device = "auto", *, noise: float | None = None, bits: int | None = None
) -> Seen:
    """The first gradient of a trial, from the same random numbers as `simulate`.

    `noise` adds normal noise, in units of the root mean square entry; `bits` then rounds each entry to that many bits:
    the cases of (D5) and (D6).
    """
    if spec.width:
        raise SpecError("width", f"expected 0: the bound is attention-only, got {spec.width}")
    with trial_parts(spec, seed, device) as (layout, frozen, source):
        G, _ = _gradient(spec.program(), layout, frozen, source, Count.of(spec.samples))
        G, Z, U, trigger = (np.asarray(part, np.float64) for part in (G, frozen.Z, frozen.U, frozen.trigger))
    added = noise or 0.0
    if noise is not None or bits is not None:
        size = rms_entry(spec, U, Z, trigger)
        if noise is not None:
            # From a separate generator: the streams belong to the trial.
            G = G + noise * size * np.random.default_rng([seed, spec.dim]).normal(size=G.shape)
        if bits is not None:
            step = 2 * WIDEST * size / 2**bits
            G = (np.clip(np.floor(G / step), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) + 0.5) * step
            added = float(np.hypot(added, step / size / np.sqrt(12)))
    return Seen(G, Z, U, np.asarray(frozen.permutation), spec.length, spec.samples, added)


_gradient = jax.jit(first_gradient, static_argnames=("program", "layout"))


def rms_entry(spec: Retrieval, U: np.ndarray, Z: np.ndarray, trigger: np.ndarray) -> float:
    """The root of the mean square of G's entries, over samples and permutations (D9)."""
    V, L, N = spec.vocab, spec.length, spec.samples
    mean = Z.mean(axis=0)
    tokens = (L * (V - 1) + N - 1) / (L**2 * V * (V - 1)) * np.sum((Z - mean) ** 2)
    shared = mean + trigger / L if spec.trigger == "additive" else mean
    labels = np.sum((U - U.mean(axis=0)) ** 2) / (N * V)
    return float(np.sqrt(labels * (tokens + shared @ shared))) / spec.dim


def decode(seen: Seen, names: tuple[str, ...] = DECODERS) -> dict[str, float]:
    """The share of tokens for which each decoder names the right label."""
    _check_room(seen, names)
    makers = {"matched": _matched, "squares": _squares, "message": _messages, "ridge": _ridge}
    scores: dict[str, np.ndarray] = {}
    shares = {}
    for name in names:
        kind, _, assigned = name.partition("_")
        if assigned == "assignment" and len(seen.permutation) > MOST_ASSIGNED:
            continue
        if kind not in scores:
            scores[kind] = makers[kind](seen)
        if assigned == "assignment":
            labels = linear_sum_assignment(scores[kind], maximize=True)[1]
        else:
            labels = scores[kind].argmax(axis=1)
        shares[NAMES.get(name, name)] = float(np.mean(labels == seen.permutation))
    return shares


def _check_room(seen: Seen, names: tuple[str, ...]) -> None:
    """Refuse what does not fit in memory: scores and messages by pair of tokens, and inverses of the overlaps."""
    V, d = seen.Z.shape
    tables = 8 * (3 + 6 * ("message_passing" in names)) * V**2
    undone = 0 if all(name.startswith("matched") for name in names) else 8 * (SINGULAR + 2) * d**2
    vectors = 8 * 6 * V * d
    field, size = ("vocab", V) if tables > undone else ("dim", d)
    check_fits(field, f"{size:,}", tables + undone + vectors, "the decoders of the first gradient")


def _matched(seen: Seen) -> np.ndarray:
    return seen.Z @ seen.gradient.T @ seen.U.T


def _squares(seen: Seen) -> np.ndarray:
    Z, U = seen.Z, seen.U
    centred = U - U.mean(axis=0)
    inverse = np.linalg.pinv(centred.T @ centred)
    return Z @ np.linalg.pinv(Z.T @ Z) @ seen.gradient.T @ inverse @ U.T


def _ridge(seen: Seen) -> np.ndarray:
    Z, U = seen.Z, seen.U - seen.U.mean(axis=0)
    of_labels, labels = _eigen(U.tobytes(), U.shape[1])
    of_tokens, tokens = _eigen(Z.tobytes(), Z.shape[1])
    others = np.outer(of_labels, of_tokens)
    # A thousandth of noise, if there is none, suppresses directions with eigenvalue zero.
    weight = others / others.mean() + max(seen.noise, 1e-3) ** 2
    G = labels @ ((labels.T @ seen.gradient @ tokens) / weight) @ tokens.T
    return Z @ G.T @ seen.U.T


@lru_cache(maxsize=32)
def _eigen(raw: bytes, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of M^T M, cached for all N with the same embeddings."""
    M = np.frombuffer(raw).reshape(-1, columns)
    values, vectors = np.linalg.eigh(M.T @ M)
    return values, vectors


def _messages(seen: Seen) -> np.ndarray:
    G, Z, U, _, length, samples, _ = seen
    return message_passing(G, Z, U, length=length, samples=samples).T
