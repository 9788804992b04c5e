"""Scaling exponents of a critical value: search at every point of a grid, then fit a power law.

axes -> settings -> critical_many -> points with intervals -> exponents, and theory's beside
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, Unpack, cast

from mnemoscope.engine.record import finite
from mnemoscope.experiments.axes import Axis, grid
from mnemoscope.experiments.critical import AnySpec, Critical, SearchOptions, critical_many
from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.power_law import (
    Beyond,
    Points,
    PowerLaw,
    Rivals,
    compare_forms,
    condition_number,
    extrapolate,
    fit_power_law,
    no_law,
    points_of,
)
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.spec import LETTERS, Spec, SpecError
from mnemoscope.spec.summary import Summary, number, span
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.critical import has_trained_law
from mnemoscope.theory.laws import laws_for
from mnemoscope.theory.predict import predict

FitStatus = Literal["found", "too-few-points", "axes-do-not-vary"]
# The first gradient's own law, N d^2 ~ L V^2 ln V: what the matched filter needs.
FIRST_GRADIENT = {"dim": -2.0, "length": 1.0, "vocab": 2.0}


@dataclass(frozen=True, repr=False)
class Scaling(Drawable, Tabular):
    """Exponents of a critical value, what they rest on, and what theory says of the same points.

    Where the status is not `found`, the law's numbers are NaN.
    """

    figure: ClassVar[str] = "scaling"
    along: str
    measure: Measure
    target: float
    log_of: str | None
    law: PowerLaw
    points: Points
    found: tuple[Critical, ...]
    left_out: tuple[Critical, ...]
    predicted: PowerLaw | None = None
    leading: dict[str, float] | None = None
    leading_name: str = "none"
    rivals: Rivals | None = None
    beyond: list[Beyond] = field(default_factory=list)
    status: FitStatus = "found"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        fitted = self.law.log_value(self.points.x)
        return finite(
            {
                "status": self.status,
                "along": self.along,
                "measure": self.measure,
                "target": self.target,
                "unreached": self.unreached,
                "log": self.log_of,
                "exponents": [asdict(exponent) for exponent in self.law.exponents],
                "constant": math.exp(self.law.constant),
                "scatter": self.law.scatter,
                "condition": self.law.condition,
                "predicted": None
                if self.predicted is None
                else [{"axis": power.axis, "value": power.value} for power in self.predicted.exponents],
                "leading_order": self.leading,
                "leading_noise": self.leading_name,
                "forms": None if self.rivals is None else asdict(self.rivals),
                "extrapolation": [asdict(beyond) for beyond in self.beyond],
                "points": [
                    {
                        **self._at(critical),
                        **critical.answer.as_dict(self.along),
                        "predicted": critical.predicted,
                        "fitted": math.exp(log_value) * _logarithm(critical.spec, self.log_of),
                        "trials": len(critical.trials),
                    }
                    for critical, log_value in zip(self.found, fitted, strict=True)
                ],
                "left_out": [
                    {**self._at(critical), "status": critical.status, "predicted": critical.predicted}
                    for critical in self.left_out
                ],
            }
        )

    @property
    def unreached(self) -> int:
        """The number of trainings that had not settled after all their steps; they count with the accuracy reached."""
        return sum(critical.unreached for critical in (*self.found, *self.left_out))

    def _at(self, critical: Critical) -> dict[str, Any]:
        return {axis: critical.spec.value_of(axis) for axis in self.points.axes}

    def labels(self) -> tuple[str, ...]:
        """The axes of the grid."""
        return self.points.axes

    def records(self) -> list[dict[str, Any]]:
        """A row for each point with a crossing."""
        return self.as_dict()["points"]

    def summary(self) -> Summary:
        """Each exponent with its interval, and theory's."""
        theory = self.predicted.exponents if self.predicted else ()
        predicted = {power.axis: number(power.value, 2) for power in theory}
        rows = tuple(
            (power.axis, number(power.value), span(power.low, power.high), predicted.get(power.axis, "–"))
            for power in (self.law.exponents if self.status == "found" else ())
        )
        powers = {f"{row[0]}": f"{row[1]} {row[2]}" for row in rows}
        return Summary(
            f"critical {self.along} at {self.measure.replace('_', ' ')} {self.target:g}",
            {"status": self.status, "points": f"{len(self.found)}", **powers},
            ("axis", "exponent", "95 % interval", "theory, same points"),
            rows,
        )


def settings(base: Spec | dict[str, Any], axes: Sequence[Axis], along: str) -> list[Any]:
    """The grid's settings. The field searched along need not be given, and cannot be an axis."""
    names = [axis.field for axis in axes]
    for axis in axes:
        if axis.field == along:
            raise SpecError("axis", f"expected axes other than {along}, which is searched along")
        if axis.field not in (base.axes if isinstance(base, Spec) else LETTERS):
            raise SpecError("axis", f"expected an axis that is counted, got {axis.field!r}")
        if len(axis.values) < 2:
            raise SpecError("axis", f"expected two values or more, got {axis.field} with one")
        if min(axis.values) <= 0:
            raise SpecError("axis", f"expected values above 0, got {min(axis.values):g}")
    if len(set(names)) < len(names):
        raise SpecError("axis", f"expected different axes, got {names}")
    return grid(base if isinstance(base, Spec) else {along: 2, **base}, axes, "axis")


@spells_out(critical_many)
def fit(
    base: Spec | dict[str, Any],
    axes: Sequence[tuple[str, Sequence[Any]]],
    along: str = "samples",
    *,
    target: float = 0.5,
    measure: Measure = "accuracy",
    log_of: str | None = None,
    ranges: Sequence[tuple[int, int | None]] | None = None,
    **options: Unpack[SearchOptions],
) -> Scaling:
    """Exponents of the critical value of `along` over the grid of `axes`.

    `log_of` names an axis whose logarithm is divided out first; the options from `ranges` on are those of
    `critical_many`. If fewer points have a crossing than the law needs, `status` says so.
    """
    fields = [Axis(name, tuple(values)) for name, values in axes]
    specs = settings(base, fields, along)
    names = tuple(axis.field for axis in fields)
    needed = len(names) + 2
    if len(specs) < needed:
        raise SpecError("axis", f"expected {needed} points or more, got {len(specs)}")
    criticals = critical_many(specs, along, target=target, measure=measure, ranges=ranges, **options)
    bounded = [critical for critical in criticals if critical.answer.bounded]
    points = _divided(names, bounded, [critical.answer for critical in bounded], log_of)
    status: FitStatus = "found"
    if len(bounded) < needed:
        status = "too-few-points"
    elif not math.isfinite(condition_number(points.x)):
        status = "axes-do-not-vary"
    scaling = Scaling(
        along=along,
        measure=measure,
        target=target,
        log_of=log_of,
        law=no_law(names),
        points=points,
        found=tuple(bounded),
        left_out=tuple(critical for critical in criticals if not critical.answer.bounded),
        status=status,
    )
    if status != "found":
        return scaling
    name, leading = _leading(bounded, along, measure)
    return replace(
        scaling,
        law=fit_power_law(points),
        predicted=_predicted(names, bounded, log_of),
        leading={axis: leading.get(axis, 0.0) for axis in names} if leading is not None else None,
        leading_name=name,
        rivals=compare_forms(points),
        beyond=extrapolate(points),
    )


def _logarithm(spec: AnySpec, log_of: str | None) -> float:
    return 1.0 if log_of is None else math.log(spec.value_of(log_of))


def _divided(
    names: tuple[str, ...], criticals: Sequence[Critical], estimates: Sequence[Estimate], log_of: str | None
) -> Points:
    rows = [[float(critical.spec.value_of(name)) for name in names] for critical in criticals]
    logs = [_logarithm(critical.spec, log_of) for critical in criticals]
    return points_of(
        names,
        rows,
        [estimate.map(lambda end, log=log: end / log) for estimate, log in zip(estimates, logs, strict=True)],
    )


def _predicted(names: tuple[str, ...], criticals: Sequence[Critical], log_of: str | None) -> PowerLaw | None:
    """The same fit to theory's values at the same points, with the same weights."""
    estimates = []
    for critical in criticals:
        if not (critical.predicted and critical.estimate):
            return None
        scale = critical.predicted / critical.estimate
        scaled = critical.answer.map(lambda end, scale=scale: scale * end)
        estimates.append(replace(scaled, value=critical.predicted))
    return fit_power_law(_divided(names, criticals, estimates, log_of))


def _leading(criticals: Sequence[Critical], along: str, measure: Measure) -> tuple[str, dict[str, float] | None]:
    """The noise that binds at most points by theory, and its powers at leading order."""
    if measure == "first_gradient":
        return "first gradient", FIRST_GRADIENT if along == "samples" else None
    below = [one.spec.vary(**{along: max(1, round(0.8 * (one.estimate or 1)))}) for one in criticals]
    regimes = Counter(predict(spec, trained=has_trained_law(spec)).regime for spec in below)
    name, count = regimes.most_common(1)[0]
    if name == "none":  # theory has no word on these settings
        return "mixed", None
    spec = criticals[0].spec
    known = {law.name: law for law in laws_for(spec.trigger, 1 if spec.width else None)}
    if 2 * count <= len(criticals) or name not in known:
        return "mixed", None
    powers = known[name].critical(cast(Any, along))
    return name, None if powers is None else {str(axis): power for axis, power in powers.items()}
