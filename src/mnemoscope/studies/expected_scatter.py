"""How far a critical N will scatter, from theory alone: for the power of a rule before its run.

A seed's accuracy differs from the mean by its embeddings and by its V tokens; over the slope of the
mean in ln N, that is how far a seed's own critical N lies from the others'. A search averages it
over its seeds.
"""

import math
from dataclasses import dataclass

from mnemoscope.experiments.estimate.search import FEW_SEEDS
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.matched_filter import matched_filter_accuracy
from mnemoscope.theory.predict import solve

# What a search leaves over an average of so many independent seeds. Three base seeds of a full run
# (a-mean-bias, 18 places, 2026-11-16) scattered by 0.117 in ln N and told intervals of +-1.96 times
# 0.087, where theory's spread over the root of 32 seeds is 0.064.
TOLD = 1.35
TRUE = 1.8
# The slope is taken over this factor to either side.
STEP = 1.1


@dataclass(frozen=True)
class Expected:
    """The standard error of ln N that a search will tell, and what it scatters beyond it."""

    error: float
    beyond: float = 0.0


def expected_scatter(spec: Retrieval, measure: Measure, tolerance: float, most_seeds: int) -> Expected:
    """Of a search that ends at `spec.samples`, by the seeds that it will need."""
    return scatter_of(seed_spread(spec, measure), tolerance, most_seeds)


def scatter_of(spread: float, tolerance: float, most_seeds: int) -> Expected:
    """Of a search whose seeds each lie `spread` apart in the logarithm."""
    seeds = 2 * FEW_SEEDS
    while seeds < most_seeds and 1.96 * TOLD * spread > math.log1p(tolerance) * math.sqrt(seeds):
        seeds += FEW_SEEDS
    each = spread / math.sqrt(min(seeds, most_seeds))
    return Expected(TOLD * each, math.sqrt(TRUE**2 - TOLD**2) * each)


def seed_spread(spec: Retrieval, measure: Measure) -> float:
    """Standard deviation, from seed to seed, of ln N at which the measure crosses its value."""
    deviation = _over_seeds(spec, measure)[1]
    ends = [
        _over_seeds(spec.replace(samples=max(1, round(spec.samples * step))), measure)[0] for step in (1 / STEP, STEP)
    ]
    slope = (ends[1] - ends[0]) / (2 * math.log(STEP))
    return deviation / slope if slope > 0 else math.inf


def _over_seeds(spec: Retrieval, measure: Measure) -> tuple[float, float]:
    """Mean of the measure and its standard deviation from seed to seed."""
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
