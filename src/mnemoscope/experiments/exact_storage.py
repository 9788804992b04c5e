r"""Whether a memory can hold these items, with a certificate, and what training to the end makes of it if not.

    loss(W) = sum_x ell_x(W r_x),   ell_x(w) = ln sum_y exp((u_y - u_x)^T w)

with r_x the item's input: its embedding, or the hidden units of the fixed MLP. Newton's method minimises it in double
precision, until one of two certificates is found:

- **separable**: every item's own logit is the largest, by a margin far above rounding. This W holds them all.
- **not separable**: the gradient vanishes. It is sum_x sum_y p_xy (u_y - u_x) r_x^T with weights p_xy > 0, so any W'
  that gave every item a margin of 1 would have <gradient, W'> <= -sum_x (1 - p_xx) and hence a norm of at least
  sum_x (1 - p_xx) / |gradient|. That norm has to exceed `LARGEST_NORM` times the minimiser's own.

Theory knows nothing of this module: `validate trained` compares the two.
"""

from dataclasses import dataclass

import numpy as np

LARGEST_NORM = 1e4
NEWTON_STEPS, HALVINGS = 200, 40
RIDGE = 1e-11


@dataclass(frozen=True)
class Storage:
    """Whether all items can be stored (None: no certificate was found), the share stored, and the steps taken."""

    separable: bool | None
    accuracy: float
    steps: int


def store(U: np.ndarray, inputs: np.ndarray, own: np.ndarray) -> Storage:
    """Train a matrix on items with these inputs, a row each, and right labels, until a certificate is found."""
    dim = U.shape[1]
    items, width = inputs.shape
    rows = np.arange(items)
    # What is common to all labels moves no logit relative to another.
    U = U - U.mean(axis=0)
    W = np.zeros((dim, width))

    def at(W: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        logits = inputs @ W.T @ U.T
        top = logits.max(axis=1, keepdims=True)
        p = np.exp(logits - top)
        total = p.sum(axis=1, keepdims=True)
        return float(np.sum(top + np.log(total)) - logits[rows, own].sum()), logits, p / total

    loss, logits, p = at(W)
    accuracy, taken = 0.0, 0
    for taken in range(NEWTON_STEPS):
        right = logits[rows, own]
        others = logits.copy()
        others[rows, own] = -np.inf
        margins = right - others.max(axis=1)
        accuracy = float(np.mean(margins > 0))
        if margins.min() > 1e-9 * np.abs(logits).max() and margins.min() > 0:
            return Storage(True, 1.0, taken)
        mean = p @ U
        gradient = (mean - U[own]).T @ inputs
        missing = float(np.sum(1 - p[rows, own]))
        if taken and missing > LARGEST_NORM * np.linalg.norm(W) * np.linalg.norm(gradient):
            return Storage(False, accuracy, taken)
        # An item's curvature is U^T (diag p - p p^T) U.
        curvature = np.matmul(U.T * p[:, None, :], U) - mean[:, :, None] * mean[:, None, :]
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
        loss, logits, p = after
    return Storage(None, accuracy, taken)


def newton_step(curvature: np.ndarray, inputs: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The step of all weights, from each item's curvature H_x: the Hessian is sum_x H_x (x) (r_x r_x^T)."""
    items, (dim, width) = len(inputs), gradient.shape
    outer = inputs[:, :, None] * inputs[:, None, :]
    hessian = curvature.reshape(items, -1).T @ outer.reshape(items, -1)
    hessian = hessian.reshape(dim, dim, width, width).transpose(0, 2, 1, 3).reshape(dim * width, dim * width)
    hessian[np.diag_indices(dim * width)] += RIDGE * np.trace(hessian) / (dim * width)
    return np.linalg.solve(hessian, gradient.ravel()).reshape(dim, width)
