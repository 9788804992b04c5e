"""How many items a memory recalls where some occur more often than others, and how that grows with d.

Of a fixed number of items, so large that it does not bind, count those that are answered right. Here `capacity` is this
count: its mean over seeds, with Student's interval. (`experiments/capacity.py` searches the largest N of which all or a
share are right, which asks for items that occur equally often.) A memory that recalls more than half of its items is
limited by their number, and its status says so: `above-range`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from scipy.special import stdtrit

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.estimate.estimate import Estimate, Estimated
from mnemoscope.experiments.estimate.power_law import Exponent, Points, fit_power_law
from mnemoscope.experiments.stored_bits import StoredBits, before_and_after
from mnemoscope.experiments.tools import GivenTools, open_tools
from mnemoscope.spec import Memory, SpecError
from mnemoscope.spec.memory import MOST
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory.associative import GUIDE_LINEAR, items_by_law
from mnemoscope.theory.one_step import ample_items, recalled_power

# A memory with a larger share of its items right is limited by their number.
BINDS = 0.5
# What `criterion` says of these counts.
RECALLED = "recalled"


@dataclass(frozen=True)
class Recalled(Estimated):
    """The number of items that one memory recalls."""

    spec: Memory
    trials: tuple[Trial, ...] = field(default=(), repr=False)

    @property
    def each(self) -> tuple[float, ...]:
        """Every seed's own number."""
        return tuple(count for trial in self.trials if (count := recalled_items(trial)) is not None)

    @property
    def stored_bits(self) -> StoredBits | None:
        """What rounded weights store; None where weights are not rounded."""
        spec = self.spec
        if not spec.bits:
            return None
        return StoredBits(spec.bits, spec.parameters, self.estimate, spec.labels, *before_and_after(self.trials))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        spec = self.spec
        shares = [share for trial in self.trials if (share := trial.metrics.get("accuracy_by_sequence")) is not None]
        return {
            "spec": spec.model_dump(exclude={"target"}),
            "kind": spec.form,
            "method": spec.method,
            "optimiser": spec.optimiser,
            "criterion": RECALLED,
            **self.answer.as_dict("capacity"),
            "parameters": spec.parameters,
            "each_seed": list(self.each),
            "items_per_parameter": self.estimate and self.estimate / spec.parameters,
            "items": spec.items,
            "accuracy_by_sequence": math.fsum(shares) / len(shares) if shares else None,
            **({} if self.stored_bits is None else {"rounding": self.stored_bits.as_dict()}),
            "trials": [trial.as_dict() for trial in self.trials],
        }


@dataclass(frozen=True)
class Growth:
    """Recalled items over d: a point for each d, and the power of d through them."""

    points: tuple[Recalled, ...]
    power: Exponent | None

    @property
    def predicted(self) -> float | None:
        """Theory's power of d, where there is one."""
        spec = self.points[0].spec
        exponent = zipf_exponent(spec)
        if spec.method != "one-step" or exponent is None or spec.batch:
            return None
        return recalled_power(spec.optimiser, exponent)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        points = [point.as_dict() for point in self.points]
        if len(points) == 1:
            return points[0]
        power = self.power
        slope = None if power is None else {"value": power.value, "low": power.low, "high": power.high}
        shared = {name: points[0][name] for name in ("kind", "method", "optimiser", "criterion")}
        return {**shared, "slope": slope, "predicted_slope": self.predicted, "points": points}


def recalled_items(trial: Trial) -> float | None:
    """The number of items that a trial has right."""
    return None if trial.accuracy is None else round(trial.accuracy * trial.spec.items)


def zipf_exponent(spec: Memory) -> float | None:
    """A in zipf:A; 0 for uniform items, None for a user's own frequencies."""
    if spec.frequencies == UNIFORM:
        return 0.0
    name, _, exponent = spec.frequencies.partition(":")
    return float(exponent) if name == "zipf" else None


def usual_items(spec: Memory) -> int:
    """How many items to let occur, so that their number does not bind."""
    exponent = zipf_exponent(spec)
    if exponent is None:
        return len(spec.probabilities)
    items = 2 * ample_items(spec.dim, exponent)
    if spec.method == "trained":
        items = max(items, math.ceil(2 * items_by_law(float(spec.dim * (spec.width or spec.dim)), GUIDE_LINEAR)))
    if items > MOST:
        raise SpecError(
            "dim", f"expected a memory of at most {MOST:,} items, got {spec.dim:,}, which asks for {items:,}"
        )
    return items


def count_recalled(specs: Sequence[Memory], seeds: Sequence[int], **given: Unpack[GivenTools]) -> Growth:
    """The recalled items of every memory, and the power of d in them."""
    jobs = [(spec, seed) for spec in specs for seed in seeds]
    with open_tools(**given) as opened:
        trials = opened.run(jobs)
    points = []
    for spec in specs:
        own = tuple(trials[spec, seed] for seed in seeds if (spec, seed) in trials)
        counts = [count for trial in own if (count := recalled_items(trial)) is not None]
        points.append(Recalled(mean_count(counts, spec.items), spec, own))
    return Growth(tuple(points), fit_growth_in_dim(points))


def mean_count(counts: Sequence[float], items: int) -> Estimate:
    """The mean over seeds, with Student's interval; `above-range` where the number of items binds."""
    if len(counts) < 2:
        return Estimate("unresolved", *counts)
    mean = float(np.mean(counts))
    half = float(stdtrit(len(counts) - 1, 0.975)) * standard_error(counts)
    status = "above-range" if mean > BINDS * items else "found"
    return Estimate(status, mean, max(0.0, mean - half), mean + half)


def fit_growth_in_dim(points: Sequence[Recalled]) -> Exponent | None:
    """The power of d, from the points whose number of items does not bind."""
    kept = [point for point in points if point.status == "found"]
    return fit_counts([point.spec.dim for point in kept], [point.each for point in kept])


def fit_counts(dims: Sequence[int], counts: Sequence[Sequence[float]]) -> Exponent | None:
    """The power of d in mean counts, by weighted least squares in logarithms; None with fewer than three sizes.

    `counts` are those of the seeds at each d.
    """
    kept = [(dim, own) for dim, own in zip(dims, counts, strict=True) if len(own) > 1 and sum(own) > 0]
    if len({dim for dim, _ in kept}) < 3:
        return None
    mean = np.array([np.mean(own) for _, own in kept])
    error = np.array([standard_error(own) for _, own in kept]) / mean
    x = np.array([[float(dim)] for dim, _ in kept])
    return fit_power_law(Points(("dim",), x, np.log(mean), error)).exponents[0]


def standard_error(counts: Sequence[float]) -> float:
    """Of the mean of counts, which are rounded to whole items."""
    return math.sqrt((float(np.var(counts, ddof=1)) + 1 / 12) / len(counts))
