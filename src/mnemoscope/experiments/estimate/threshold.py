r"""Where accuracy crosses a target along an axis, with an interval.

Near the crossing, accuracy is taken as a logistic curve in the logarithm of the axis,

    a(x) = 1 / (1 + exp(-(logit(target) + k (ln x - ln x_t)))),

fitted to single trials by least squares with the soft_l1 loss, so that an outlier pulls little. The interval comes from
resampling seeds: a seed's trials share its embeddings, so they are drawn together or not at all.
"""

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtri, stdtrit
from scipy.stats import bootstrap

from mnemoscope.experiments.estimate.estimate import Estimate

# Accuracies this far from the target say little about where it is crossed, and the curve's shape
# there is not logistic: their weight falls off.
NEAR = 0.35
OUTLIER = 0.1
RESAMPLES = 400
REFIT_STEPS = 25


class Curve(NamedTuple):
    """The fitted curve: ln x_t and the slope k."""

    log_x: float
    slope: float


def fit_curve(values: Sequence[float], accuracies: Sequence[float], target: float) -> Curve:
    """The curve through single trials, without an interval."""
    a = np.asarray(accuracies, float)
    return _fit(np.log(np.asarray(values, float)), a, np.ones_like(a), target)


def find_crossing(
    values: Sequence[float],
    seeds: Sequence[int],
    accuracies: Sequence[float],
    target: float,
    *,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Where trials (axis value, seed, accuracy) cross. At least two values are needed.

    Two seeds say nothing of how far seeds scatter: the interval is then open.
    """
    x = np.log(np.asarray(values, float))
    a = np.asarray(accuracies, float)
    owner = np.asarray(seeds)
    names = np.unique(owner)
    curve = _fit(x, a, np.ones_like(a), target)
    at = curve.log_x
    if len(names) < 3:
        return Estimate("unresolved", math.exp(at), 0.0, None)
    members = (owner[None, :] == names[:, None]).astype(float)

    def statistic(chosen: np.ndarray, axis: int = -1) -> np.ndarray:
        # How often each seed was drawn is the weight of its trials.
        drawn = (chosen[..., None] == np.arange(len(names))).sum(axis=-2)
        return _refit(x, a, drawn.reshape(-1, len(names)) @ members, target, curve)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a constant resample has no BCa interval: handled below
        resampled = bootstrap(
            (np.arange(len(names)),),
            statistic,
            n_resamples=resamples,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(len(names)),
        )
    low, high = resampled.confidence_interval
    # The percentile interval of few seeds is too narrow by sqrt((n - 1)/n), and by Student's
    # tails: widen it about the estimate by both.
    widen = _widening(len(names))
    low, high = at - widen * (at - low), at + widen * (high - at)
    return Estimate("found", math.exp(at), math.exp(low), math.exp(high))


def _widening(seeds: int) -> float:
    student = float(stdtrit(seeds - 1, 0.975) / ndtri(0.975))
    return student * math.sqrt(seeds / (seeds - 1))


def _fit(x: np.ndarray, a: np.ndarray, weight: np.ndarray, target: float) -> Curve:
    shift = math.log(target / (1 - target))
    scale = np.sqrt(weight * _nearness(a, target))
    start = _first_guess(x, a, weight, target)

    def curve(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at, log_slope = parameters
        away = math.exp(log_slope) * (x - at)
        return away, 1 / (1 + np.exp(-np.clip(shift + away, -50, 50)))

    def residuals(parameters: np.ndarray) -> np.ndarray:
        return scale * (curve(parameters)[1] - a)

    def slopes(parameters: np.ndarray) -> np.ndarray:
        away, height = curve(parameters)
        rise = scale * height * (1 - height)
        return np.stack([-rise * math.exp(parameters[1]), rise * away], axis=1)

    fitted = least_squares(
        residuals,
        (start[0], math.log(max(start[1], 1e-2))),
        jac=slopes,  # pyright: ignore[reportArgumentType]
        loss="soft_l1",
        f_scale=OUTLIER,
        bounds=_bounds(x),
        x_scale=(0.1, 0.5),
        xtol=1e-5,
        ftol=1e-6,
    )
    return Curve(float(fitted.x[0]), float(math.exp(fitted.x[1])))


def _nearness(a: np.ndarray, target: float) -> np.ndarray:
    """The weight of an accuracy by its distance from the target."""
    return np.exp(-((np.abs(a - target) / NEAR) ** 2))


def _bounds(x: np.ndarray) -> tuple[tuple[float, float], tuple[float, float]]:
    return (float(x.min()) - 3, math.log(1e-2)), (float(x.max()) + 3, math.log(50.0))


def _refit(x: np.ndarray, a: np.ndarray, weights: np.ndarray, target: float, start: Curve) -> np.ndarray:
    """ln x_t of the same fit for every row of weights, all rows at once.

    Newton's steps with the squares' curvature, damped (Levenberg-Marquardt), from the whole
    sample's fit: hundreds of resamples in milliseconds.
    """
    shift = math.log(target / (1 - target))
    scale = np.sqrt(weights * _nearness(a, target))
    low, high = (np.array(side) for side in _bounds(x))
    here = np.tile([start.log_x, math.log(max(start.slope, 1e-2))], (len(weights), 1))
    damping = np.full(len(weights), 1e-3)

    def evaluate(at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals, their slopes, and the loss sum 2 C^2 (sqrt(1 + (r/C)^2) - 1)."""
        k = np.exp(at[:, 1:])
        away = k * (x - at[:, :1])
        height = 1 / (1 + np.exp(-np.clip(shift + away, -50, 50)))
        rise = scale * height * (1 - height)
        r = scale * (height - a)
        slopes = np.stack([-rise * k, rise * away], axis=-1)
        return r, slopes, np.sum(np.sqrt(1 + (r / OUTLIER) ** 2) - 1, axis=1)

    r, slopes, loss = evaluate(here)
    for _ in range(REFIT_STEPS):
        rho = 1 / np.sqrt(1 + (r / OUTLIER) ** 2)
        curvature = np.einsum("rn,rni,rnj->rij", rho, slopes, slopes)
        gradient = np.einsum("rn,rni,rn->ri", rho, slopes, r)
        diagonal = np.einsum("rii->ri", curvature)
        diagonal += damping[:, None] * (diagonal + 1e-9) + 1e-12
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        there = np.clip(here - step, low, high)
        r1, slopes1, loss1 = evaluate(there)
        better = loss1 <= loss
        here, loss = np.where(better[:, None], there, here), np.where(better, loss1, loss)
        r = np.where(better[:, None], r1, r)
        slopes = np.where(better[:, None, None], slopes1, slopes)
        damping = np.clip(np.where(better, damping / 5, damping * 5), 1e-9, 1e6)
    return here[:, 0]


def _first_guess(x: np.ndarray, a: np.ndarray, weight: np.ndarray, target: float) -> tuple[float, float]:
    """Between the means of neighbouring values that lie on both sides."""
    points = np.unique(x)
    means = np.array([np.average(a[x == point], weights=weight[x == point]) for point in points])
    over = means >= target
    if over.all() or not over.any():
        edge = points[0] if over.all() else points[-1]
        return float(edge), 1.0
    after = int(np.argmax(over & ~np.append([False], over[:-1])))
    before = max(0, after - 1)
    gap = points[after] - points[before]
    rise = means[after] - means[before]
    share = (target - means[before]) / rise if rise > 0 else 0.5
    slope = 4 * rise / gap if gap > 0 and rise > 0 else 1.0
    return float(points[before] + share * gap), float(min(max(slope, 0.1), 20.0))
