r"""Exponents from critical points, and whether the axes multiply or add.

Multiplicative, in logarithms and by weighted least squares:

    ln y  =  c + sum_k a_k ln x_k + scatter,     weights 1/(s_i^2 + tau^2)                   (G1)

s_i is a point's own standard error. tau is what the points scatter beyond it, because no finite law is a pure power:
the least tau at which the weighted squares come down to their expectation. Intervals are Student's. The additive rival
gives every axis a term of its own, so that improving one axis cannot make up for another:

    y  =  sum_k b_k x_k^(a_k),     b_k > 0                                                   (G2)

Akaike's criterion with its small-sample term compares the two, and so does how well each predicts points that it was
not fitted to.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq, least_squares
from scipy.stats import t as student

from mnemoscope.experiments.estimate.estimate import Estimate

Form = Literal["multiplicative", "additive"]
# How far Akaike's criterion must differ to call it: the worse form is then e^-2 times as likely.
DECISIVE = 4.0


class Points(NamedTuple):
    """Critical values: a row of `x` for each, ln y, and the standard error of ln y."""

    axes: tuple[str, ...]
    x: np.ndarray
    log_y: np.ndarray
    error: np.ndarray

    def pick(self, rows: np.ndarray) -> "Points":
        """Some of the points."""
        return Points(self.axes, self.x[rows], self.log_y[rows], self.error[rows])


@dataclass(frozen=True)
class Exponent:
    """One axis: its power, the 95 % interval and the standard error."""

    axis: str
    value: float
    low: float
    high: float
    error: float


@dataclass(frozen=True)
class PowerLaw:
    """(G1), fitted."""

    constant: float
    exponents: tuple[Exponent, ...]
    scatter: float
    condition: float

    def log_value(self, x: np.ndarray) -> np.ndarray:
        """ln y at rows of x."""
        powers = np.array([power.value for power in self.exponents])
        return self.constant + np.log(x) @ powers


@dataclass(frozen=True)
class Rivals:
    """How the two forms compare. `verdict` is undecided unless Akaike's criterion is decisive.

    `criterion` is the additive form's less the multiplicative one's: positive speaks for
    multiplying. `left_out` is the typical factor by which each misses a point it was not shown.
    """

    verdict: Literal["multiplicative", "additive", "undecided"]
    criterion: float
    left_out: dict[Form, float]
    additive_powers: dict[str, float]


@dataclass(frozen=True)
class Beyond:
    """Points at the largest value of an axis, predicted from the others: the typical factor missed."""

    axis: str
    value: float
    points: int
    missed: dict[Form, float]


def no_law(axes: Sequence[str]) -> PowerLaw:
    """A law with unknown numbers, for points that do not determine it."""
    unknown = tuple(Exponent(axis, *[math.nan] * 4) for axis in axes)
    return PowerLaw(math.nan, unknown, math.nan, math.nan)


def fit_power_law(points: Points) -> PowerLaw:
    """(G1). The points must be more than the axes by two, and every axis must vary."""
    X = _design(points.x)
    n, p = X.shape
    tau = _scatter(X, points)
    weight = 1 / (points.error**2 + tau**2)
    solution = _solve(X, points.log_y, weight)
    covariance = np.linalg.inv(X.T @ (weight[:, None] * X))
    reach = float(student.ppf(0.975, n - p))
    exponents = []
    for k, axis in enumerate(points.axes, start=1):
        value, error = float(solution[k]), math.sqrt(covariance[k, k])
        exponents.append(Exponent(axis, value, value - reach * error, value + reach * error, error))
    return PowerLaw(float(solution[0]), tuple(exponents), tau, condition_number(points.x))


def condition_number(x: np.ndarray) -> float:
    """Of the axes' logarithms, each centred and scaled: 1 for a full grid, large where the axes
    vary together and their powers cannot be told apart."""
    logs = np.log(x)
    spread = logs.std(axis=0)
    if np.any(spread == 0):
        return math.inf
    return float(np.linalg.cond((logs - logs.mean(axis=0)) / spread))


def prefer_product(points: Points) -> float | None:
    """Akaike's criterion of the additive form less the multiplicative one's: positive speaks for
    multiplying, DECISIVE decides. None where the points are too few to ask."""
    n, axes = points.x.shape
    if axes < 2 or n < 2 * axes + 3:
        return None
    return _akaike("additive", points, 2 * axes) - _akaike("multiplicative", points, axes + 1)


def compare_forms(points: Points) -> Rivals | None:
    """Whether the axes multiply or add; None where the points are too few to ask."""
    difference = prefer_product(points)
    if difference is None:
        return None
    n = len(points.x)
    ahead = "multiplicative" if difference > 0 else "additive"
    verdict = ahead if abs(difference) >= DECISIVE else "undecided"
    missed: dict[Form, float] = {}
    forms: tuple[Form, ...] = ("multiplicative", "additive")
    for form in forms:
        each = [_miss(form, points, np.arange(n) == row) for row in range(n)]
        missed[form] = _factor(np.concatenate(each))
    return Rivals(verdict, difference, missed, dict(zip(points.axes, _additive(points)[1].tolist(), strict=True)))


def extrapolate(points: Points) -> list[Beyond]:
    """For each axis, hold out its largest value and predict it from the rest, if that is enough."""
    held_out = []
    n, axes = points.x.shape
    for k, axis in enumerate(points.axes):
        out = points.x[:, k] == points.x[:, k].max()
        rest = points.pick(~out)
        if n - out.sum() < axes + 2 or not math.isfinite(condition_number(rest.x)):
            continue
        missed: dict[Form, float] = {"multiplicative": _factor(_miss("multiplicative", points, out))}
        if len(rest.log_y) > 2 * axes:
            missed["additive"] = _factor(_miss("additive", points, out))
        held_out.append(Beyond(axis, float(points.x[:, k].max()), int(out.sum()), missed))
    return held_out


def _design(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(x)), np.log(x)])


def _solve(X: np.ndarray, log_y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    root = np.sqrt(weight)
    return np.linalg.lstsq(X * root[:, None], log_y * root, rcond=None)[0]


def _scatter(X: np.ndarray, points: Points) -> float:
    """The least tau >= 0 with sum r_i^2/(s_i^2 + tau^2) <= n - p."""
    n, p = X.shape

    def excess(tau: float) -> float:
        weight = 1 / (points.error**2 + tau**2)
        rest = points.log_y - X @ _solve(X, points.log_y, weight)
        return float(weight @ rest**2) - (n - p)

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, 10.0 + float(np.ptp(points.log_y))))  # pyright: ignore[reportArgumentType]


def _additive(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """(G2): ln b_k, for axes over their geometric means, and a_k; the best of several starts."""
    logs = np.log(points.x)
    centred = logs - logs.mean(axis=0)
    axes = logs.shape[1]
    slopes = _solve(_design(points.x), points.log_y, np.ones(len(logs)))[1:]
    level = points.log_y.mean() - math.log(axes)

    def residuals(parameters: np.ndarray) -> np.ndarray:
        terms = parameters[:axes] + centred * parameters[axes:]
        return np.logaddexp.reduce(terms, axis=1) - points.log_y

    best = None
    for steeper in (0.5, 1.0, 2.0, 4.0, 8.0):
        start = np.concatenate([np.full(axes, level), steeper * slopes])
        bounds = ([-50.0] * axes + [-20.0] * axes, [80.0] * axes + [20.0] * axes)
        tried = least_squares(residuals, np.clip(start, *bounds), bounds=bounds)
        if best is None or tried.cost < best.cost:
            best = tried
    assert best is not None
    return best.x[:axes], best.x[axes:]


def _log_value(form: Form, shown: Points, x: np.ndarray) -> np.ndarray:
    """ln y at rows of x, from a fit of one form to what was shown. Both are unweighted here: the
    scatter about a law, not the points' own errors, decides how well it says what it has not seen.
    """
    if form == "multiplicative":
        solution = _solve(_design(shown.x), shown.log_y, np.ones(len(shown.log_y)))
        return _design(x) @ solution
    level, powers = _additive(shown)
    return np.logaddexp.reduce(level + (np.log(x) - np.log(shown.x).mean(axis=0)) * powers, axis=1)


def _miss(form: Form, points: Points, out: np.ndarray) -> np.ndarray:
    """ln(predicted / measured) of the points left out."""
    return _log_value(form, points.pick(~out), points.x[out]) - points.log_y[out]


def _factor(misses: np.ndarray) -> float:
    return float(np.exp(np.sqrt(np.mean(misses**2))))


def _akaike(form: Form, points: Points, parameters: int) -> float:
    """-2 ln likelihood + 2k + 2k(k+1)/(n-k-1), with the scatter as one more parameter."""
    rest = _log_value(form, points, points.x) - points.log_y
    n, k = len(rest), parameters + 1
    variance = float(np.mean(rest**2)) + 1e-12
    return n * math.log(variance) + 2 * k + 2 * k * (k + 1) / max(1, n - k - 1)


def points_of(axes: Sequence[str], rows: Sequence[Sequence[float]], estimates: Sequence[Estimate]) -> Points:
    """Points from estimates of critical values, whose intervals are 95 %."""
    ends = [(estimate.value, estimate.low, estimate.high) for estimate in estimates]
    value, low, high = np.array(ends, float).reshape(-1, 3).T
    error = np.log(high / low) / (2 * 1.96)
    x = np.array(rows, float).reshape(-1, len(axes))
    return Points(tuple(axes), x, np.log(value), error)
