"""What an experiment will run, and how long that takes, foreseen before any of it is run.

The jobs of a sweep are known. Those of a search are not: each of its trials decides the next. What
it usually takes is told from where theory expects the answer, and the most it can take, "at most",
from the costliest answer there may be. A training's length is not known either: one that reaches
its target stops there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mnemoscope.engine.kinds import USUAL_SHARE, kind_of
from mnemoscope.engine.pace import duration
from mnemoscope.engine.record import AnyJob, Job
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
from mnemoscope.experiments.critical import Along, guess_from_theory
from mnemoscope.experiments.estimate.limits import search_limits
from mnemoscope.experiments.estimate.search import FEW_SEEDS, NARROW, Place, drive
from mnemoscope.spec import Flow, Retrieval
from mnemoscope.spec.validators import Measure

# A search for a crossing usually takes so many trials about it, beside those at both ends.
USUAL_TRIALS = 48
# To find theory's own crossing takes so many predictions.
GUESS = 20


@dataclass(frozen=True)
class Forecast:
    """Seconds that work usually takes, and at most; the same where it is known what is run."""

    usual: float
    most: float
    what: str

    def __add__(self, other: "Forecast") -> "Forecast":
        """One after the other."""
        words = f"{self.what}; {other.what}" if other.what else self.what
        return Forecast(self.usual + other.usual, self.most + other.most, words)

    @classmethod
    def sure(cls, seconds: float, what: str) -> "Forecast":
        """Work that is known in full."""
        return cls(seconds, seconds, what)

    @property
    def said(self) -> str:
        """How long it takes, in words."""
        usual, most = duration(self.usual), duration(self.most)
        return f"about {usual}" if usual == most else f"about {usual}, at most {most}"


# How long what is ahead takes, on a platform: all of it, or what the store does not have.
Ahead = Callable[[Sequence[AnyJob] | None, str], Forecast]


def jobs_ahead(jobs: Sequence[AnyJob], *, all_of_them: bool = False, usual: float = 1.0) -> Ahead:
    """Jobs that are known, less those in the store; or all of them, of which only a share may be
    needed."""

    def ahead(left: Sequence[AnyJob] | None, platform: str) -> Forecast:
        forecast = of_jobs(jobs if left is None or all_of_them else left, platform)
        if not all_of_them:
            return forecast
        return Forecast(usual * forecast.usual, forecast.most, f"at most {forecast.what}")

    return ahead


def of_jobs(jobs: Sequence[AnyJob], platform: str) -> Forecast:
    """Jobs that are all known."""
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
    """So many predictions, on a CPU in any case."""
    return Forecast.sure(scaled(predictions * THEORY_SECONDS, "cpu"), counted(predictions, "prediction"))


def of_flow(spec: Flow, platform: str) -> Forecast:
    """One run of gradient descent."""
    return Forecast.sure(estimate_seconds([(spec, 0)], platform), counted(spec.steps, "step"))


def of_decoding(specs: Sequence[Retrieval], seeds: int) -> Forecast:
    """The first gradients of these settings, and what decoders make of them, on a CPU."""
    each = [job_seconds(spec, "cpu") + decoding_seconds(spec) for spec in specs]
    return Forecast.sure(scaled(seeds * sum(each), "cpu"), counted(seeds * len(specs), "gradient") + " to decode")


def of_settings(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """So many seeds of each."""
    return of_jobs([(spec, seed) for spec in specs for seed in range(seeds)], platform)


def of_terms(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """Attention's terms in so many trials of each; every setting is compiled anew."""
    # In double precision, a trial takes about twice as long.
    forecast = of_filtering(specs, [2 * seeds] * len(specs), platform)
    return replace(forecast, what=counted(seeds * len(specs), "trial") + " taken apart")


def of_open_crossings(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """Searches that begin far below, and take all their seeds at three places in the end."""
    ranges = []
    for spec in specs:
        guess = int(guess_from_theory(spec, "samples", 0.5, "accuracy") or spec.vocab)
        ranges.append((max(1, guess // 2), 4 * guess))
    forecast = of_crossings(
        specs, "samples", ranges, target=0.5, measure="accuracy", most_seeds=seeds, platform=platform
    )
    return Forecast.sure(forecast.usual, counted(len(specs), "search"))


def of_open_decoding(specs: Sequence[Retrieval], seeds: int, platform: str) -> Forecast:
    """Searches for where two decoders cross, the one quick, the other slow."""
    places = 3 * seeds + 6 * FEW_SEEDS
    there = [spec.replace(samples=max(2, 2 * spec.vocab)) for spec in specs]
    return replace(of_decoding(there, places), what=counted(len(specs), "bound") + " to search")


def of_filtering(specs: Sequence[Retrieval], seeds: Sequence[int], platform: str) -> Forecast:
    """Matched filters of these settings, so many seeds of each; every setting is compiled anew."""
    each = [
        many * job_seconds(spec, platform) + compile_seconds(spec, platform)
        for spec, many in zip(specs, seeds, strict=True)
    ]
    return Forecast.sure(scaled(sum(each), platform), counted(sum(seeds), "gradient") + " to filter")


def counted(number: int, noun: str) -> str:
    """`1 trial`, `12 trials`."""
    return f"{number:,} {noun}" + ("es" if noun.endswith("h") else "s") * (number != 1)


def of_crossings(
    specs: Sequence[Retrieval],
    axis: Along,
    ranges: Sequence[tuple[int, int]],
    *,
    target: float,
    measure: Measure,
    most_seeds: int,
    platform: str,
) -> Forecast:
    """Searches for a crossing, as `critical_many` makes them."""
    usual: list[Job] = []
    most: list[Job] = []
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
    return Forecast(
        estimate_seconds(usual, platform),
        estimate_seconds(most, platform),
        f"{_searches(len(specs))} of at most {each:,} trials" + " each" * (len(specs) > 1),
    )


def _searches(number: int) -> str:
    return "a search" if number == 1 else counted(number, "search")


def _several(spec: Retrieval, axis: Along, places: Sequence[tuple[int, int]]) -> list[Job]:
    """So many trials at each of the places."""
    return [(spec.replace(**{axis: value}), 0) for value, count in places for _ in range(count)]


def of_limits(
    questions: Sequence[Question], *, seeds: int, most_seeds: int, resolution: float, tolerance: float, platform: str
) -> Forecast:
    """Searches for limits, as `find_limits` makes them: each is asked, and given made-up answers.

    At most, unless a limit lies further beyond what was expected than anyone has seen.
    """
    how = {"resolution": resolution, "tolerance": tolerance}
    usual, most, trials = 0.0, 0.0, 0
    for question in questions:
        asked = _asked(question, question.usual, seeds, seeds, spread=0.0, **how)
        usual += _limit_seconds(question, asked, question.usual, platform, early=True)
        # Seeds that lie so far apart that no number of them is enough.
        asked = _asked(question, question.most, seeds, most_seeds, spread=1.0 + tolerance, **how)
        most += _limit_seconds(question, asked, question.most, platform, early=False)
        trials += sum(len(question.tries(value)) for value, _ in asked)
    steps = max((most_steps(spec) for question in questions for spec in question.tries(2)), default=0)
    noun = "training" if steps else "trial"
    what = f"{_searches(len(questions))} of at most {counted(trials, noun)}" + " in all" * (len(questions) > 1)
    return Forecast(min(usual, most), most, what + (f" of up to {steps:,} steps" if steps else ""))


def _asked(
    question: Question, limit: float, seeds: int, most_seeds: int, *, spread: float, resolution: float, tolerance: float
) -> list[Place]:
    """The places that a search asks for where every second seed's limit is `spread` below."""
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
    """Where a seed manages, one trial is enough; where not, all that may be tried are."""
    total = 0.0
    programs: list[AnyJob] = []
    for value, seed in asked:
        tries = question.tries(value)
        met = value <= limit
        part = tries[:1] if met and early else tries
        jobs = [(spec, seed) for spec in part]
        share = USUAL_SHARE if met and early and stops_early(part[0]) else 1.0
        total += share * estimate_seconds(jobs, platform, compiling=False)
        programs += jobs
    compiling = estimate_seconds(programs, platform) - estimate_seconds(programs, platform, compiling=False)
    return total + compiling
