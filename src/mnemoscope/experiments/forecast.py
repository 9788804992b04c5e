"""Forecast what an experiment will run, and how long it takes.

The jobs of a sweep are known. Those of a search are not, since each trial decides the next: the usual time assumes the
answer that theory expects, "at most" the costliest answer possible. Nor is the length of a training, which stops when
it reaches its target.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mnemoscope.engine.kinds import USUAL_SHARE, kind_of
from mnemoscope.engine.pace import duration
from mnemoscope.engine.rates import RATES
from mnemoscope.engine.record import AnyJob
from mnemoscope.experiments.capacity import Question
from mnemoscope.experiments.cost import (
    THEORY_SECONDS,
    compile_seconds,
    decoding_seconds,
    estimate_seconds,
    job_seconds,
    most_steps,
    scaled,
    stops_early,
)
from mnemoscope.experiments.critical import AnySpec, guess_from_theory
from mnemoscope.experiments.estimate.limits import search_limits
from mnemoscope.experiments.estimate.search import FEW_SEEDS, NARROW, Place, drive
from mnemoscope.spec import Flow, Own, Retrieval, Transformer
from mnemoscope.spec.validators import Measure

# Trials that a search for a crossing usually takes near it, besides those at both ends.
USUAL_TRIALS = 48
# Predictions that it takes to find theory's own crossing.
GUESS = 20


@dataclass(frozen=True)
class Forecast:
    """The seconds that work usually takes, and at most; equal if the jobs are known."""

    usual: float
    most: float
    what: str

    def __add__(self, other: "Forecast") -> "Forecast":
        """One after the other."""
        words = f"{self.what}; {other.what}" if other.what else self.what
        return Forecast(self.usual + other.usual, self.most + other.most, words)

    @classmethod
    def sure(cls, seconds: float, what: str) -> "Forecast":
        """A forecast of work that is fully known."""
        return cls(seconds, seconds, what)

    @property
    def said(self) -> str:
        """The time in words."""
        usual, most = duration(self.usual), duration(self.most)
        return f"about {usual}" if usual == most else f"about {usual}, at most {most}"


# Forecasts the work ahead on a platform, from the jobs that the store does not have; None: all of them.
Ahead = Callable[[Sequence[AnyJob] | None, str], Forecast]


def jobs_ahead(jobs: Sequence[AnyJob], *, all_of_them: bool = False, usual: float = 1.0) -> Ahead:
    """Known jobs, less those in the store; with `all_of_them`, every job, of which usually a share is needed."""

    def ahead(left: Sequence[AnyJob] | None, platform: str) -> Forecast:
        forecast = of_jobs(jobs if left is None or all_of_them else left, platform)
        if not all_of_them:
            return forecast
        return Forecast(usual * forecast.usual, forecast.most, f"at most {forecast.what}")

    return ahead


def of_jobs(jobs: Sequence[AnyJob], platform: str) -> Forecast:
    """Known jobs."""
    most = estimate_seconds(jobs, platform)
    if not any(stops_early(spec) for spec, _ in jobs):
        return Forecast.sure(most, counted(len(jobs), "trial"))
    usual = most - sum(
        (1 - kind_of(spec).cost(spec, platform).usual_share)
        * estimate_seconds([(spec, seed)], platform, compiling=False)
        for spec, seed in jobs
    )
    steps = max(most_steps(spec) for spec, _ in jobs)
    return Forecast(usual, most, f"{counted(len(jobs), 'training')} of up to {steps:,} steps")


def of_theory(predictions: int) -> Forecast:
    """Predictions, which always run on a CPU."""
    return Forecast.sure(scaled(predictions * THEORY_SECONDS, "cpu"), counted(predictions, "prediction"))


def of_flow(spec: Flow, platform: str) -> Forecast:
    """One run of gradient descent."""
    return Forecast.sure(estimate_seconds([(spec, 0)], platform), counted(spec.steps, "step"))


def of_decoding(specs: Sequence[Retrieval], seeds: int) -> Forecast:
    """The first gradients of these settings, and their decoding, on a CPU."""
    each = [job_seconds(spec, "cpu") + decoding_seconds(spec) for spec in specs]
    return Forecast.sure(scaled(seeds * sum(each), "cpu"), counted(seeds * len(specs), "gradient") + " to decode")


def of_settings(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """Several seeds of each setting."""
    return of_jobs([(spec, seed) for spec in specs for seed in range(seeds)], platform)


def of_terms(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """Attention's terms in several trials of each setting; each setting compiles its own program."""
    # In double precision, a trial takes about twice as long.
    forecast = of_filtering(specs, [2 * seeds] * len(specs), platform)
    return replace(forecast, what=counted(seeds * len(specs), "trial") + " taken apart")


def of_open_crossings(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """Searches that start far below the crossing, and end with all seeds at three places."""
    ranges = []
    for spec in specs:
        guess = int(guess_from_theory(spec, "samples", 0.5, "accuracy") or spec.vocab)
        ranges.append((max(1, guess // 2), 4 * guess))
    forecast = of_crossings(
        specs, "samples", ranges, target=0.5, measure="accuracy", most_seeds=seeds, platform=platform
    )
    return Forecast.sure(forecast.usual, counted(len(specs), "search"))


def of_open_decoding(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """Searches for the crossings of a quick and a slow decoder."""
    places = 3 * seeds + 6 * FEW_SEEDS
    there = [spec.replace(samples=max(2, 2 * spec.vocab)) for spec in specs]
    return replace(of_decoding(there, places), what=counted(len(specs), "bound") + " to search")


def of_filtering(specs: Sequence[Retrieval], seeds: Sequence[int], platform: str) -> Forecast:
    """Matched filters of these settings, with `seeds` of each; each setting compiles its own program."""
    each = [
        many * job_seconds(spec, platform) + compile_seconds(spec, platform)
        for spec, many in zip(specs, seeds, strict=True)
    ]
    return Forecast.sure(scaled(sum(each), platform), counted(sum(seeds), "gradient") + " to filter")


# Newton steps that the solver with certificates usually takes.
NEWTON_STEPS = 20


def of_solving(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """The solver with certificates on these memories; a step builds and solves a system of all weights."""
    product = RATES["cpu"].product
    each = [max(16, spec.vocab) * ((spec.width or spec.dim) * spec.dim) ** 2 * product for spec in specs]
    return Forecast.sure(scaled(seeds * NEWTON_STEPS * sum(each), "cpu"), counted(seeds * len(specs), "matrix problem"))


def counted(number: int, noun: str) -> str:
    """`1 trial`, `12 trials`."""
    return f"{number:,} {noun}" + ("es" if noun.endswith("h") else "s") * (number != 1)


def of_crossings(
    specs: Sequence[AnySpec],
    axis: str,
    ranges: Sequence[tuple[int, int]],
    *,
    target: float,
    measure: Measure,
    most_seeds: int,
    platform: str,
) -> Forecast:
    """Searches for crossings, as `critical_many` runs them."""
    usual: list[AnyJob] = []
    most: list[AnyJob] = []
    for spec, (low, high) in zip(specs, ranges, strict=True):
        guess = guess_from_theory(spec, axis, target, measure)
        middle = math.sqrt(low * high) if guess is None else min(max(guess, low), high)
        few = min(FEW_SEEDS, most_seeds)
        halvings = math.ceil(math.log2(max(2.0, math.log(high / low) / math.log(NARROW)))) + 2
        places = [(low, few), (high, few), (round(middle), min(USUAL_TRIALS, 5 * most_seeds))]
        usual += _several(spec, axis, places)
        # Both ends with all seeds, and the crossing where a trial costs most.
        places = [(low, most_seeds), (high, 4 * most_seeds + few * halvings)]
        most += _several(spec, axis, places)
    each = len(most) // max(1, len(specs))
    steps = max((most_steps(spec) for spec in specs), default=0)
    noun = "training" if steps else "trial"
    what = f"{_searches(len(specs))} of at most {counted(each, noun)}" + " each" * (len(specs) > 1)
    # Trainings that settle usually stop early.
    return Forecast(
        of_jobs(usual, platform).usual,
        estimate_seconds(most, platform),
        what + (f" of up to {steps:,} steps" if steps else ""),
    )


def _searches(number: int) -> str:
    return "a search" if number == 1 else counted(number, "search")


def _several(spec: AnySpec, axis: str, places: Sequence[tuple[int, int]]) -> list[AnyJob]:
    """Several trials at each (value, count)."""
    return [(spec.vary(**{axis: value}), 0) for value, count in places for _ in range(count)]


def of_limits(
    questions: Sequence[Question], *, seeds: int, most_seeds: int, resolution: float, tolerance: float, platform: str
) -> Forecast:
    """Searches for limits, as `find_limits` runs them: each is run on made-up answers.

    The most is not a strict bound: a limit may lie beyond `Question.most`.
    """
    how = {"resolution": resolution, "tolerance": tolerance}
    usual, most, trials = 0.0, 0.0, 0
    for question in questions:
        asked = _asked(question, question.usual, seeds, seeds, spread=0.0, **how)
        usual += _limit_seconds(question, asked, question.usual, platform, early=True)
        # Seeds so far apart that no number of them is enough.
        asked = _asked(question, question.most, seeds, most_seeds, spread=1.0 + tolerance, **how)
        most += _limit_seconds(question, asked, question.most, platform, early=False)
        trials += sum(len(question.tries(value)) for value, _ in asked)
    steps = max((most_steps(spec) for question in questions for spec in question.tries(2)), default=0)
    noun = "training" if steps else "trial"
    what = f"{_searches(len(questions))} of at most {counted(trials, noun)}" + " in all" * (len(questions) > 1)
    return Forecast(min(usual, most), most, what + (f" of up to {steps:,} steps" if steps else ""))


def of_own_limits(spec: Own | Transformer, seeds: int, most_seeds: int, platform: str) -> Forecast:
    """A search along a size of a user's task: nobody knows where it leads, so every training is taken for the first."""
    places = 8
    each, share = estimate_seconds([(spec, 0)], platform, compiling=False), USUAL_SHARE
    compiling = places * compile_seconds(spec, platform)
    what = f"a search of about {places * seeds:,} trainings of up to {spec.most_steps:,} steps"
    return Forecast(share * places * seeds * each + compiling, 2 * places * most_seeds * each + 2 * compiling, what)


def _asked(
    question: Question, limit: float, seeds: int, most_seeds: int, *, spread: float, resolution: float, tolerance: float
) -> list[Place]:
    """The places that a search asks for if every second seed's limit is lower by `spread`."""
    search = search_limits(
        question.guess,
        ends=question.ends,
        resolution=resolution,
        tolerance=tolerance if spread else 1e9,
        seeds_at_first=seeds,
        most_seeds=most_seeds,
    )
    asked: list[Place] = []

    def answer(places: list[Place]) -> dict[Place, bool]:
        asked.extend(places)
        return {(value, seed): value <= limit / (1 + spread * (seed % 2)) for value, seed in places}

    drive(search, answer)
    return asked


def _limit_seconds(question: Question, asked: Sequence[Place], limit: float, platform: str, *, early: bool) -> float:
    """Seconds for these places. Where a seed succeeds, its first try may be enough; elsewhere all tries run."""
    saved = 0.0
    jobs: list[AnyJob] = []
    for value, seed in asked:
        tries = question.tries(value)
        first_is_enough = early and value <= limit
        jobs += [(spec, seed) for spec in (tries[:1] if first_is_enough else tries)]
        if first_is_enough and stops_early(tries[0]):
            saved += (1 - USUAL_SHARE) * estimate_seconds(jobs[-1:], platform, compiling=False)
    return estimate_seconds(jobs, platform) - saved
