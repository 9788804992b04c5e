r"""Where accuracy crosses a target along an axis, with an interval.

Near the crossing, accuracy is taken as a logistic curve in the logarithm of the axis,

    a(x) = 1 / (1 + exp(-(logit(target) + k (ln x - ln x_t)))),

fitted to single trials by least squares with the soft_l1 loss, so that an outlier pulls little. The
interval comes from resampling seeds: a seed's trials share its embeddings, so they are drawn
together or not at all.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtri, stdtrit
from scipy.stats import bootstrap

# Accuracies this far from the target say little about where it is crossed, and the curve's shape
# there is not logistic: their weight falls off.
NEAR = 0.35
OUTLIER = 0.1
RESAMPLES = 400


@dataclass(frozen=True)
class Crossing:
    """The estimate and its 95 % interval, all on the axis itself."""

    estimate: float
    low: float
    high: float
    slope: float

    @property
    def width(self) -> float:
        """Half of the interval over the estimate, as a ratio: 0.1 is +-10 %."""
        return math.sqrt(self.high / self.low) - 1 if self.low > 0 else math.inf


def find_crossing(
    values: Sequence[float],
    seeds: Sequence[int],
    accuracies: Sequence[float],
    target: float,
    *,
    resamples: int = RESAMPLES,
) -> Crossing:
    """The crossing of trials (axis value, seed, accuracy). At least two values are needed."""
    x = np.log(np.asarray(values, float))
    a = np.asarray(accuracies, float)
    who = np.asarray(seeds)
    names = np.unique(who)
    at, slope = _fit(x, a, np.ones_like(a), target)
    if len(names) < 3:
        return Crossing(math.exp(at), 0.0, math.inf, slope)
    members = who[None, :] == names[:, None]

    def statistic(chosen: np.ndarray) -> float:
        # How often each seed was drawn is the weight of its trials.
        weight = np.bincount(chosen.astype(int), minlength=len(names)) @ members
        return _fit(x, a, weight.astype(float), target, start=(at, slope))[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a constant resample has no BCa interval: handled below
        made = bootstrap(
            (np.arange(len(names)),), statistic, n_resamples=resamples, method="percentile",
            vectorized=False, rng=np.random.default_rng(len(names)),
        )  # fmt: skip
    low, high = made.confidence_interval
    # The percentile interval of few seeds is too narrow by sqrt((n - 1)/n), and by Student's
    # tails: widen it about the estimate by both.
    widen = _widening(len(names))
    low, high = at - widen * (at - low), at + widen * (high - at)
    return Crossing(math.exp(at), math.exp(low), math.exp(high), slope)


def _widening(seeds: int) -> float:
    student = float(stdtrit(seeds - 1, 0.975) / ndtri(0.975))
    return student * math.sqrt(seeds / (seeds - 1))


def _fit(
    x: np.ndarray, a: np.ndarray, weight: np.ndarray, target: float,
    start: tuple[float, float] | None = None,
) -> tuple[float, float]:  # fmt: skip
    """ln x_t and the slope k."""
    shift = math.log(target / (1 - target))
    # Near the target in accuracy, or the nearest there is.
    distance = np.abs(a - target)
    near = np.exp(-((distance / NEAR) ** 2))
    scale = np.sqrt(weight * near)
    if start is None:
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

    found = least_squares(
        residuals,
        (start[0], math.log(max(start[1], 1e-2))),
        jac=slopes,  # pyright: ignore[reportArgumentType]
        loss="soft_l1",
        f_scale=OUTLIER,
        bounds=((x.min() - 3, math.log(1e-2)), (x.max() + 3, math.log(50.0))),
        x_scale=(0.1, 0.5),
        xtol=1e-5,
        ftol=1e-6,
    )
    return float(found.x[0]), float(math.exp(found.x[1]))


def _first_guess(
    x: np.ndarray, a: np.ndarray, weight: np.ndarray, target: float
) -> tuple[float, float]:
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
