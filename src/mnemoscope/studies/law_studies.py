"""Studies of one claimed power law of the critical N: the measurement, the rule and its power."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope.experiments.axes import Axis
from mnemoscope.experiments.estimate.power_law import DECISIVE
from mnemoscope.experiments.fit import settings
from mnemoscope.spec import LETTERS
from mnemoscope.spec.validators import Measure
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size
from mnemoscope.studies.expected_scatter import expected_scatter
from mnemoscope.studies.exponents import (
    Grid,
    draw_exponents,
    fit_pooled,
    measure_exponents,
    product_over_sum,
    say_exponents,
)
from mnemoscope.studies.power import Place, pure_power, rehearse_grid, sum_of_powers
from mnemoscope.studies.rival_laws import (
    CRITICAL_SAMPLES,
    Powers,
    half_width,
    judge_powers,
    nearest,
    rivals_of,
    say_rule,
)
from mnemoscope.theory.critical import critical_value


@dataclass(frozen=True)
class ClaimedLaw:
    """A law of `rival_laws.CRITICAL_SAMPLES`, and the grids on which it is measured.

    With `product`, Akaike's criterion must also prefer a product of powers to a sum.
    """

    name: str
    grids: Mapping[Size, Grid]
    quantity: Measure
    log_of: str | None = None
    product: bool = False

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that are varied, the same at both sizes."""
        return tuple(name for name, _ in self.grids["full"].axes)

    @property
    def claimed(self) -> Powers:
        """The claimed powers."""
        return {axis: CRITICAL_SAMPLES[self.name][axis] for axis in self.axes}

    @property
    def rivals(self) -> dict[str, dict[str, float]]:
        """The powers of all other laws."""
        return rivals_of(self.name, CRITICAL_SAMPLES, self.axes)

    @property
    def half(self) -> float:
        """The half-width of the box."""
        return half_width(self.claimed, self.rivals, self.axes)

    @property
    def rule(self) -> str:
        """The rule of `judge_all` in words."""
        letters = ", ".join(LETTERS[axis] for axis in self.axes)
        over = "" if self.log_of is None else f" over ln {LETTERS[self.log_of]}"
        text = (
            f"Powers of {letters} in the critical N{over}, one fit to all base seeds. "
            f"{say_rule(self.half, *nearest(self.claimed, self.rivals, self.axes))}"
        )
        if self.product:
            text += (
                f" Supported only if Akaike's criterion also prefers a product of powers to a sum "
                f"by {DECISIVE:g} or more; refuted if it prefers the sum by as much."
            )
        return text

    def measure(self, size: Size, bench: Bench) -> Numbers:
        """The critical N at every point of the grid."""
        return measure_exponents(bench, self.grids[size], self.quantity, self.log_of)

    def judge_all(self, bases: Sequence[Numbers]) -> Judgement:
        """One fit to all base seeds."""
        fitted = fit_pooled(bases)
        measured = say_exponents(fitted)
        verdict = judge_powers(fitted["exponents"], self.claimed, self.half)
        if self.log_of is not None:
            measured += f", over ln {LETTERS[self.log_of]}"
        if not self.product:
            return Judgement(measured, verdict)
        criterion = product_over_sum(fitted)
        if criterion is None:
            return Judgement(measured, "inconclusive")
        measured += f"; Akaike's criterion is {criterion:+.1f} for a product over a sum"
        if criterion <= -DECISIVE:
            return Judgement(measured, "refuted")
        decided = criterion >= DECISIVE or verdict == "refuted"
        return Judgement(measured, verdict if decided else "inconclusive")

    def power(self, size: Size) -> Power:
        """How often the rule supports the claim if theory is right, and if a rival is."""
        places = critical_places(self.grids[size], self.quantity)
        rivals = {name: pure_power(places, powers) for name, powers in self.rivals.items()}
        if self.product:
            rivals["sum_of_powers"] = sum_of_powers(places, self.claimed)
        return rehearse_grid(self._judge_fast, places, rivals, size, "samples", self.log_of)

    def draw(self, numbers: Numbers, figure: Any) -> None:
        """Critical N beside theory's, and the powers."""
        draw_exponents(numbers, figure, self.claimed)

    def _judge_fast(self, bases: Sequence[Numbers]) -> Judgement:
        """Like `judge_all`, but without comparing forms when the box already decides against the claim."""
        verdict = judge_powers(fit_pooled(bases)["exponents"], self.claimed, self.half)
        return self.judge_all(bases) if verdict == "supported" else Judgement("", verdict)


def critical_places(grid: Grid, measure: Measure) -> list[Place]:
    """Theory's critical N at every place that has one, and the expected scatter of a search there."""
    axes = [Axis(name, tuple(values)) for name, values in grid.axes]
    places = []
    for spec in settings(dict(grid.base), axes, "samples"):
        samples = critical_value(spec, "samples", 0.5, measure)
        if samples is not None:
            at = spec.replace(samples=samples)
            scatter = expected_scatter(at, measure, grid.tolerance, grid.most_seeds)
            sizes = {name: float(getattr(spec, name)) for name, _ in grid.axes}
            places.append(Place(sizes, float(samples), scatter))
    return places
