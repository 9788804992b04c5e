"""How much a critical N will scatter, from theory alone: for the power of a rule before its run.

A seed's accuracy differs from the mean by its embeddings and by its V tokens. Divided by the slope of the mean in ln N,
that is the scatter of a seed's own critical N. A search averages it over its seeds.
"""

import math
from dataclasses import dataclass

from mnemoscope.experiments.estimate.search import FEW_SEEDS
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.matched_filter import matched_filter_accuracy
from mnemoscope.theory.predict import solve

# The error that a search reports, and its true scatter, over those of an average of independent seeds. Three base seeds
# of a full run (a-mean-bias, 18 places, 2026-11-16) scattered by 0.117 in ln N and reported intervals of +-1.96 times
# 0.087, where theory's spread over the root of 32 seeds is 0.064.
REPORTED = 1.35
TRUE = 1.8
# The slope is taken between the value over this factor and the value times it.
STEP = 1.1


@dataclass(frozen=True)
class Expected:
    """The standard error of ln N that a search will report, and its scatter beyond that."""

    error: float
    beyond: float = 0.0


def expected_scatter(spec: Retrieval, measure: Measure, tolerance: float, most_seeds: int) -> Expected:
    """The scatter of a search that ends at `spec.samples`, from the number of seeds that it will need."""
    return scatter_of(seed_spread(spec, measure), tolerance, most_seeds)


def scatter_of(spread: float, tolerance: float, most_seeds: int) -> Expected:
    """The scatter of a search whose seeds have this standard deviation in the logarithm."""
    seeds = 2 * FEW_SEEDS
    while seeds < most_seeds and 1.96 * REPORTED * spread > math.log1p(tolerance) * math.sqrt(seeds):
        seeds += FEW_SEEDS
    each = spread / math.sqrt(min(seeds, most_seeds))
    return Expected(REPORTED * each, math.sqrt(TRUE**2 - REPORTED**2) * each)


def scatter_within(tolerance: float) -> Expected:
    """The scatter of a search that ends with an interval of `tolerance`."""
    error = tolerance / 1.96
    return Expected(error, error * math.sqrt((TRUE / REPORTED) ** 2 - 1))


def seed_spread(spec: Retrieval, measure: Measure) -> float:
    """Standard deviation over seeds of the ln N at which the measure crosses its value."""
    deviation = _over_seeds(spec, measure)[1]
    ends = [
        _over_seeds(spec.replace(samples=max(1, round(spec.samples * step))), measure)[0] for step in (1 / STEP, STEP)
    ]
    slope = (ends[1] - ends[0]) / (2 * math.log(STEP))
    return deviation / slope if slope > 0 else math.inf


def _over_seeds(spec: Retrieval, measure: Measure) -> tuple[float, float]:
    """Mean of the measure and its standard deviation over seeds."""
    if measure == "first_gradient":
        mean = float(matched_filter_accuracy(spec))
        return mean, math.sqrt(max(0.0, mean * (1 - mean)) / spec.vocab)
    recall = solve(spec)[1]
    by_seed = recall.accuracy_by_seed if measure == "accuracy" else recall.attention_by_seed
    mean = float(recall.weight @ by_seed)
    variance = float(recall.weight @ (by_seed - mean) ** 2)
    if measure == "accuracy":
        variance += max(0.0, mean * (1 - mean)) / spec.vocab
    return mean, math.sqrt(variance)
