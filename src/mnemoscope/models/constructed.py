r"""Paper B's transformer with weights written down: no training, every fact right if there is room.

Attention. A head takes d_h tokens as its own, subjects or relations. It scores them 1, the end
token 1/2 and all others about 0, times a large BETA, so that it attends to its own token where the
sequence has one and to the end token where not. Its values are exact: V_h e_v is a unit vector of
its own for each of its tokens and 0 for the end token; the rows of O_h are then any d_h vectors
that we like. So H d_h >= S + R (in whole heads) gives x = g_s + k_r for any codes g, k in R^d.

Facts in attention alone (m = 0), with u_a the answers, by least squares over all answers:

    u_a^T g_s near 1 for the R answers of s, near 0 for the others                            (K1)
    u_a^T k_r near 1 for the D answers of r, near 0 for the others                            (K2)

The answer of (s, r) is then the only one that gets both. This takes d >= R + D up to logarithms.

Facts in an MLP: codes at right angles (as far as d allows), hidden units with W1 = w ~ N(0, I) and
no bias, and

    W2 = (C/m) sum_{s,r} ((w . g_s)(w . k_r) - g_s . k_r) u_a*(s,r) / |u_a*(s,r)|^2            (K3)

By Stein's identity E[relu(w.x) ((w.g)(w.k) - g.k)] = E[relu''] (x.g)(x.k): a fact counts only where
subject and relation are both its own. Random hidden units leave noise of variance S R/(m d): this
takes m d >= S R up to logarithms. C is so large that the residual does not count.

The split of the work, and m d against S R, are the paper's; (K1) to (K3) are our way to do it.
"""

import math
from typing import NamedTuple

import numpy as np

from mnemoscope.spec.base import SpecError
from mnemoscope.spec.facts import Facts

BETA, LOUD = 400.0, 1000.0
# How much more the tokens and answers that matter count, where least squares cannot meet all.
STRICT_TOKENS, STRICT_ANSWERS = 1e3, 10.0
TINY = 1e-9


class Written(NamedTuple):
    """The arrays of `models.factual.Weights`, in its order, in double precision."""

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    O: np.ndarray  # noqa: E741 - the output matrices, transposed
    W1: np.ndarray
    b: np.ndarray
    W2: np.ndarray


def write_weights(
    spec: Facts, E: np.ndarray, U: np.ndarray, facts: np.ndarray, w: np.ndarray, draw: np.ndarray
) -> Written:
    """Weights for these embeddings and facts; `w` and `draw` are normal numbers for (K3)."""
    check_room(spec)
    S, R, D, k = spec.subjects, spec.relations, spec.answers, spec.head_dim
    if spec.width:
        codes = _right_angles(draw)
    else:
        of_subject = [_nearest(U, facts[s], STRICT_ANSWERS) for s in range(S)]  # (K1)
        of_relation = [_nearest(U, np.arange(r * D, r * D + D), STRICT_ANSWERS) for r in range(R)]  # (K2)
        codes = np.stack(of_subject + of_relation)
    Q, K, V, O = (np.zeros((spec.heads, k, spec.dim)) for _ in range(4))  # noqa: E741
    for h, tokens in enumerate(_groups(0, S, k) + _groups(S, S + R, k)):
        Q[h, 0] = E[-1] / (E[-1] @ E[-1])
        K[h, 0] = BETA * math.sqrt(k) * _nearest(E, tokens, STRICT_TOKENS, half=len(E) - 1)
        kept = np.concatenate([E[tokens], E[-1:]])
        V[h, : len(tokens)] = np.linalg.pinv(kept)[:, : len(tokens)].T
        O[h, : len(tokens)] = codes[tokens]
    W2 = np.zeros((spec.width, spec.dim))
    if spec.width:
        g, r = codes[:S], codes[S:]
        named = U[facts] / np.sum(U[facts] ** 2, axis=-1, keepdims=True)
        for s in range(S):  # (K3), a subject at a time
            pairs = (w @ g[s])[:, None] * (w @ r.T) - (r @ g[s])[None]
            W2 += LOUD / spec.width * pairs @ named[s]
    return Written(Q, K, V, O, w, np.zeros(spec.width), W2)


def check_room(spec: Facts) -> None:
    """Refuse sizes at which the construction has no place for every token."""
    S, R, k = spec.subjects, spec.relations, spec.head_dim
    needed = len(_groups(0, S, k)) + len(_groups(S, S + R, k))
    if spec.heads < needed:
        raise SpecError(
            "heads",
            f"expected at least {needed} of dimension {k} for the construction, a place "
            f"for each of {S} subjects and {R} relations, got {spec.heads}",
        )
    if k >= spec.dim:
        raise SpecError("head_dim", f"expected less than dim = {spec.dim} here, got {k}")
    if spec.mixing != "softmax":
        raise SpecError("mixing", f"expected softmax for the construction, got {spec.mixing}")


def _groups(first: int, last: int, size: int) -> list[np.ndarray]:
    """Tokens cut into heads."""
    return [np.arange(at, min(at + size, last)) for at in range(first, last, size)]


def _right_angles(draw: np.ndarray) -> np.ndarray:
    """Unit vectors, at right angles where there are no more of them than dimensions."""
    if len(draw) <= draw.shape[1]:
        return np.linalg.qr(draw.T)[0].T
    return draw / np.linalg.norm(draw, axis=1, keepdims=True)


def _nearest(rows: np.ndarray, own: np.ndarray, strict: float, half: int | None = None) -> np.ndarray:
    """x with row^T x near 1 for its own rows, 1/2 for one other, 0 for the rest: least squares."""
    target, weight = np.zeros(len(rows)), np.ones(len(rows))
    target[own], weight[own] = 1.0, strict
    if half is not None:
        target[half], weight[half] = 0.5, strict
    heavy = rows * weight[:, None]
    square = heavy.T @ rows
    square += TINY * np.trace(square) / len(square) * np.eye(len(square))
    return np.linalg.solve(square, heavy.T @ target)
