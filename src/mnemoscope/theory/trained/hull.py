r"""Gaussian labels that no matrix can name: those inside the hull of the others.

Labels on a sphere are all extreme. Gaussian ones differ in length, and u_x is lost if it is shorter than the reach r of
the hull in its direction: f = E P(|u_x| < r). For many labels r hardly varies, and with h ~ N(0, 1) (T5)

    r = min_R t sqrt((1 + R^2) / d),    t from    (M - 1) E(h - t)_+^2 = (d - 1) R^2 / (1 + R^2),

by Gordon's comparison of min_w max_y u_y^T w over w with a component of 1 along u_x and length R across. For few labels
the scatter of r decides how many are lost, and r is found by a linear program for each of many draws.
"""

import math

import numpy as np
from scipy.optimize import brentq, linprog, minimize_scalar
from scipy.special import gammainc, ndtr

from mnemoscope.theory.trained.cones import draw_labels

# Up to so many labels and dimensions r is drawn; beyond, (T5) holds to a few per cent, or nothing is lost.
MOST_LABELS, MOST_DIMS = 512, 24


def closed_share(labels: int, dim: int, draws: int, seed: int = 0) -> float:
    """f: the share of Gaussian labels inside the hull of the others."""
    if labels - 1 <= dim:
        return 0.0  # fewer points than dimensions surround nothing
    if labels <= MOST_LABELS and dim <= MOST_DIMS:
        return float(np.mean([_shorter(r, dim) for r in draw_reaches(labels, dim, draws, seed)]))
    return _shorter(reach(labels, dim), dim)


def _shorter(r: float, dim: int) -> float:
    """P(|u| < r), |u|^2 being chi^2_d / d."""
    return float(gammainc(dim / 2, dim * r * r / 2)) if r > 0 else 0.0


def draw_reaches(labels: int, dim: int, draws: int, seed: int = 0) -> list[float]:
    """The largest t with t e in the hull of the other labels, for a direction e; negative if e leaves the hull."""
    random = np.random.default_rng((seed, labels, dim))
    reaches = []
    for _ in range(draws):
        U = draw_labels(random, labels - 1, dim, "gaussian")
        # sum_y lambda_y u_y = t e, sum_y lambda_y = 1, lambda >= 0; e is the first axis.
        equal = np.zeros((dim + 1, labels))
        equal[:dim, :-1], equal[0, -1], equal[dim, :-1] = U.T, -1.0, 1.0
        cost = np.append(np.zeros(labels - 1), -1.0)
        bounds = [(0, None)] * (labels - 1) + [(None, None)]
        answer = linprog(cost, A_eq=equal, b_eq=np.append(np.zeros(dim), 1.0), bounds=bounds)
        reaches.append(-float(answer.fun) if answer.status == 0 else -1.0)
    return reaches


def reach(labels: int, dim: int) -> float:
    """r of (T5)."""

    def at(log_across: float) -> float:
        square = math.exp(2 * log_across)
        wanted = (dim - 1) / (labels - 1) * square / (1 + square)
        t = float(brentq(lambda t: _squared_excess(t) - wanted, -30, 30))  # pyright: ignore[reportArgumentType]
        return t * math.sqrt((1 + square) / dim)

    return float(minimize_scalar(at, bounds=(-5, 5), method="bounded").fun)  # pyright: ignore[reportAttributeAccessIssue]


def _squared_excess(t: float) -> float:
    """E(h - t)_+^2."""
    return (1 + t * t) * float(ndtr(-t)) - t * math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
