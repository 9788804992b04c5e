r"""Paper B's transformer with constructed weights: no training, and every fact right at sufficient size.

Attention. Each head owns d_h tokens, subjects or relations. It scores them 1, the end token 1/2 and all others about 0,
times a large BETA, so that it attends to its own token if the sequence has one and to the end token otherwise. Its
values are exact: V_h e_v is a different unit vector for each of its tokens and 0 for the end token, and the rows of O_h
may be any d_h vectors. So H d_h >= S + R (in whole heads) gives x = g_s + k_r for any codes g, k in R^d.

Facts in attention alone (m = 0), with u_a the answers, by least squares over all answers:

    u_a^T g_s near 1 for the R answers of s, near 0 for the others                            (K1)
    u_a^T k_r near 1 for the D answers of r, near 0 for the others                            (K2)

The answer of (s, r) is then the only one that gets both. This takes d >= R + D up to logarithms.

Facts in an MLP: orthogonal codes (as far as d allows), hidden units with W1 = w ~ N(0, I) and no bias, and

    W2 = (C/m) sum_{s,r} ((w . g_s)(w . k_r) - g_s . k_r) u_a*(s,r) / |u_a*(s,r)|^2            (K3)

By Stein's identity E[relu(w.x) ((w.g)(w.k) - g.k)] = E[relu''] (x.g)(x.k): a fact counts only where
subject and relation are both its own. Random hidden units leave noise of variance S R/(m d), so this
takes m d >= S R up to logarithms. C is large enough to make the residual negligible.

The division of work and the condition on m d and S R are the paper's; (K1) to (K3) are ours.
"""

import math

import numpy as np

from mnemoscope.spec.base import SpecError
from mnemoscope.spec.facts import Facts

BETA, LOUD = 400.0, 1000.0
# The weight of the tokens and answers that matter, where least squares cannot fit all.
STRICT_TOKENS, STRICT_ANSWERS = 1e3, 10.0
TINY = 1e-9


def write_weights(
    spec: Facts, E: np.ndarray, U: np.ndarray, facts: np.ndarray, w: np.ndarray, draw: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The arrays of `models.facts.Weights`, in its order and in double precision.

    `w` and `draw` are standard normal numbers for (K3).
    """
    check_room(spec)
    S, R, D, k = spec.subjects, spec.relations, spec.answers, spec.head_dim
    if spec.width:
        codes = _orthogonal(draw)
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
        scaled = U[facts] / np.sum(U[facts] ** 2, axis=-1, keepdims=True)
        for s in range(S):  # (K3), a subject at a time
            pairs = (w @ g[s])[:, None] * (w @ r.T) - (r @ g[s])[None]
            W2 += LOUD / spec.width * pairs @ scaled[s]
    return Q, K, V, O, w, np.zeros(spec.width), W2


def check_room(spec: Facts) -> None:
    """Refuse sizes at which the construction cannot give every token a place."""
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
    """Divide tokens first..last-1 among heads."""
    return [np.arange(start, min(start + size, last)) for start in range(first, last, size)]


def _orthogonal(draw: np.ndarray) -> np.ndarray:
    """Unit vectors, orthogonal unless there are more of them than dimensions."""
    if len(draw) <= draw.shape[1]:
        return np.linalg.qr(draw.T)[0].T
    return draw / np.linalg.norm(draw, axis=1, keepdims=True)


def _nearest(rows: np.ndarray, own: np.ndarray, strict: float, half: int | None = None) -> np.ndarray:
    """The least-squares x with row^T x near 1 for the rows `own`, 1/2 for `half`, 0 for the rest."""
    target, weight = np.zeros(len(rows)), np.ones(len(rows))
    target[own], weight[own] = 1.0, strict
    if half is not None:
        target[half], weight[half] = 0.5, strict
    weighted = rows * weight[:, None]
    gram = weighted.T @ rows
    gram += TINY * np.trace(gram) / len(gram) * np.eye(len(gram))
    return np.linalg.solve(gram, weighted.T @ target)
