r"""Whether a memory keeps every item among the strongest of its answers, with a certificate.

An item's margin is its own score less the average of the k strongest of its n - 1 competitors: a share r of them,
k = r (n - 1), of which the last may count in part. No label but k can have a larger score than an item with a positive
margin. As a function of the matrix the margin is concave, so the question is convex. With

    C(t) = min_tau tau + (1/k) sum_y ln(1 + exp(t_y - tau)),   t_y = (u_y - u_x)^T W e_x,    (P1)

at least that average of t, Newton's method minimises sum_x ln(1 + exp(C_x)) in double precision, until one of two
certificates is found, as in `exact_storage.py`:

- **feasible**: every margin is positive, far above rounding. - **infeasible**: the gradient vanishes. It is sum_x h_x
sum_y q_xy (u_y - u_x) e_x^T with 0 < h_x < 1 and weights q_xy in   (0, 1/k) that sum to 1, so a matrix that gave every
item a margin of 1 would have a norm of at least   sum_x h_x / |gradient|. That norm has to exceed `LARGEST_NORM` times
the minimiser's own.
"""

from typing import NamedTuple

import numpy as np

from mnemoscope.experiments.exact_storage import HALVINGS, LARGEST_NORM, NEWTON_STEPS, newton_step

LEVEL_STEPS = 80
CLOSE = 1e-11


class Strongest(NamedTuple):
    """(P1) for every item, with its first and second derivatives; the second is diag(w) - w w^T / sum(w)."""

    value: np.ndarray
    weights: np.ndarray
    curvature: np.ndarray


def soften(gaps: np.ndarray, count: float) -> Strongest:
    """(P1), by Newton's method in tau, kept in a bracket."""
    low, high = gaps.min(axis=1) - 50.0, gaps.max(axis=1) + np.log(gaps.shape[1]) + 5.0
    level = (low + high) / 2
    for _ in range(LEVEL_STEPS):
        above = _sigmoid(gaps - level[:, None])
        excess = above.sum(axis=1) - count
        if np.abs(excess).max() < CLOSE * count:
            break
        low, high = np.where(excess > 0, level, low), np.where(excess > 0, high, level)
        step = level + excess / np.maximum((above * (1 - above)).sum(axis=1), 1e-300)
        level = np.where((step > low) & (step < high), step, (low + high) / 2)
    over = gaps - level[:, None]
    above = _sigmoid(over)
    value = level + np.logaddexp(0.0, over).sum(axis=1) / count
    return Strongest(value, above / count, above * (1 - above) / count)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(values, -500, 500)))


def top_average(gaps: np.ndarray, count: float) -> np.ndarray:
    """The average of the `count` largest of each row, the last in part."""
    ordered = -np.sort(-gaps, axis=1)
    whole = int(count)
    total = ordered[:, :whole].sum(axis=1)
    return (total + (count - whole) * ordered[:, min(whole, gaps.shape[1] - 1)]) / count


def holds_listwise(U: np.ndarray, inputs: np.ndarray, share: float) -> bool | None:
    """Whether some matrix gives every item a positive margin; None if no certificate was found. Item x has label x."""
    items, dim = U.shape
    count = max(1.0, share * (items - 1))
    others = ~np.eye(items, dtype=bool)
    U = U - U.mean(axis=0)
    W = np.zeros((dim, dim))

    def at(W: np.ndarray) -> tuple[float, np.ndarray, Strongest]:
        scores = inputs @ W.T @ U.T
        gaps = (scores - np.diag(scores)[:, None])[others].reshape(items, items - 1)
        found = soften(gaps, count)
        return float(np.logaddexp(0.0, found.value).sum()), gaps, found

    loss, gaps, found = at(W)
    for taken in range(NEWTON_STEPS):
        if taken and top_average(gaps, count).max() < -1e-9 * np.abs(gaps).max():
            return True
        h = _sigmoid(found.value)
        q, w = np.zeros((items, items)), np.zeros((items, items))
        q[others], w[others] = found.weights.ravel(), found.curvature.ravel()
        pulls = q @ U - U
        gradient = (h[:, None] * pulls).T @ inputs
        if taken and h.sum() > LARGEST_NORM * np.linalg.norm(W) * np.linalg.norm(gradient):
            return False
        mean = w @ U / np.sqrt(np.maximum(w.sum(axis=1), 1e-300))[:, None]
        curvature = np.matmul(U.T * w[:, None, :], U) - mean[:, :, None] * mean[:, None, :]
        curvature = h[:, None, None] * curvature + (h * (1 - h))[:, None, None] * pulls[:, :, None] * pulls[:, None, :]
        step = newton_step(curvature, inputs, gradient)
        decrement = float(np.sum(gradient * step))
        size = 1.0
        for _ in range(HALVINGS):
            after = at(W - size * step)
            if after[0] <= loss - 1e-4 * size * decrement:
                break
            size /= 2
        else:
            break
        W = W - size * step
        loss, gaps, found = after
    return None
