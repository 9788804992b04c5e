"""Compare theory with simulation, setting by setting.

Nothing is fitted, and no setting is dropped after it was run.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mnemoscope.experiments.critical import SearchOptions, critical_many
from mnemoscope.experiments.decoders import decode, see
from mnemoscope.experiments.estimate.agreement import OUTSIDE, Compared
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.search import Place, drive, search_crossing
from mnemoscope.experiments.noise_terms import measure_terms
from mnemoscope.experiments.sweep import ThisProcess
from mnemoscope.experiments.tools import Tools
from mnemoscope.experiments.validation import drawn_settings
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.trials import Store
from mnemoscope.theory.attention import attention_terms
from mnemoscope.theory.bound import coverage_samples, surrogate_samples
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.matched_filter import matched_filter_accuracy
from mnemoscope.theory.predict import predict
from mnemoscope.theory.seeds import LEVEL
from mnemoscope.training.three_step.batch import simulate_many

# Settings in a call of the simulator, between reports of progress.
TOGETHER = 15
TARGET = 0.5
Progress = Callable[[float], object]


def compare_terms(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """Attention's signal and each noise.

    Over the predicted signal, squared for a noise: its variance. A term that theory has at zero is not compared.
    """
    for spec in specs:
        measured = [measure_terms(spec, seed, device) for seed in range(seeds)]
        theory = attention_terms(spec)
        weight = theory.signal * (spec.samples * spec.length) ** 2
        yield _of(spec, "signal", 1.0, [terms["signal"] / weight for terms in measured])
        for name, term in theory.terms.items():
            yield _of(spec, name, term, [terms[name] / weight**2 for terms in measured])
        progress(1)


def compare_accuracy(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """Accuracy of `predict` beside the mean over seeds.

    The note is the predicted regime, and whether the setting is in the domain of its law.
    """
    for spec, accuracies in _accuracies(specs, seeds, device, progress):
        prediction = predict(spec)
        if prediction.accuracy is not None:
            note = prediction.regime + ("" if prediction.valid else OUTSIDE)
            yield _of(spec, "accuracy", prediction.accuracy, accuracies, note)


def compare_spread(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """The share of seeds within `predict`'s interval, beside the one that it is made for.

    The error is that of a share of so many seeds at theory's level. The note is the law, and
    whether the setting is in its domain.
    """
    for spec, accuracies in _accuracies(specs, seeds, device, progress):
        prediction = predict(spec)
        if prediction.low is None or prediction.high is None:
            continue
        inside = float(np.mean([prediction.low <= accuracy <= prediction.high for accuracy in accuracies]))
        error = math.sqrt(LEVEL * (1 - LEVEL) / len(accuracies))
        seen = f"{prediction.accuracy:.3f} [{prediction.low:.3f}, {prediction.high:.3f}]; "
        seen += f"{np.mean(accuracies):.3f} ± {np.std(accuracies, ddof=1):.3f}"
        note = drawn_settings.spread_law(spec) + ("" if prediction.valid else OUTSIDE)
        yield Compared(spec, seen, LEVEL, inside, error, note)


def _accuracies(
    specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress
) -> Iterator[tuple[Retrieval, list[float]]]:
    """The accuracies of all seeds; settings of one shape run together, since they share a compiled program."""
    heard: dict[tuple[str, int], float] = {}

    def hear(spec: Retrieval, seed: int, share: float) -> None:
        progress((share - heard.get((spec.id, seed), 0.0)) / seeds)
        heard[spec.id, seed] = share

    ordered = sorted(specs, key=lambda spec: (spec.vocab, spec.length, spec.trigger, spec.dim))
    for first in range(0, len(ordered), TOGETHER):
        part = ordered[first : first + TOGETHER]
        jobs = [(spec, seed) for spec in part for seed in range(seeds)]
        trials = simulate_many(jobs, device=device, hear=hear)
        for at, spec in enumerate(part):
            accuracies = [trial.accuracy for trial in trials[at * seeds : (at + 1) * seeds]]
            yield spec, [value for value in accuracies if value is not None]


def compare_critical(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """The N at which the three steps' mean accuracy crosses TARGET.

    Theory has no part in finding it. The note is what any learner needs.
    """
    with Store(NOWHERE) as store:
        for first in range(0, len(specs), TOGETHER):
            part = specs[first : first + TOGETHER]
            ranges, tools = [(start(spec), None) for spec in part], Tools(store, ThisProcess(device))
            search: SearchOptions = {"tolerance": 0.0, "most_seeds": seeds, "use_theory": False, "tools": tools}
            crossings = critical_many(part, "samples", target=TARGET, ranges=ranges, **search)
            for spec, crossing in zip(part, crossings, strict=True):
                predicted = critical_value(spec, "samples", TARGET)
                if predicted is not None:
                    measured, error = crossing.estimate or math.nan, _error(crossing.answer)
                    bound = f"{coverage_samples(spec, TARGET):.0f}"
                    yield Compared(spec, "three steps", float(predicted), measured, error, bound)
            progress(len(part))


def compare_bound(
    specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress, first_seed: int = 0
) -> Iterator[Compared]:
    """The Gaussian surrogate's N (D1), as `predicted`, beside where decoders of G cross TARGET."""
    for spec in specs:
        for name in ("matched_filter", "message_assignment"):
            search = search_crossing(start(spec), None, TARGET, rising=True, tolerance=0.0, most_seeds=seeds)

            def answer(places: list[Place], spec: Retrieval = spec, name: str = name) -> dict[Place, float]:
                return {
                    (N, seed): decode(see(spec.replace(samples=N), first_seed + seed, device), (name,))[name]
                    for N, seed in places
                }

            crossing = drive(search, answer)
            least = surrogate_samples(spec, TARGET)
            yield Compared(spec, name, least, crossing.value or math.nan, _error(crossing))
        progress(1)


def compare_matched(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """The share of tokens that the matched filter names: (D4), and the mean over seeds.

    The note tells settings with V >= 128, V >= d and L <= V/2 from those at the domain's edge.
    """
    for spec in specs:
        shares = [
            decode(see(spec, seed, device), ("matched_filter",))["matched_filter"]
            for seed in range(matched_seeds(spec, seeds))
        ]
        core = spec.vocab >= max(128, spec.dim, 2 * spec.length)
        predicted = matched_filter_accuracy(spec)
        yield _of(spec, "matched filter", predicted, shares, "core" if core else "edge")
        progress(1)


def matched_seeds(spec: Retrieval, seeds: int) -> int:
    """More seeds for a small vocabulary, to have as many tokens as with V = 1,024."""
    return max(seeds, math.ceil(seeds * 1024 / spec.vocab))


def start(spec: Retrieval) -> int:
    """Too few samples to name half of the labels: most were never seen."""
    return max(1, spec.vocab // 16)


def _error(estimate: Estimate) -> float:
    """A standard error from a 95 % interval."""
    return math.nan if estimate.low is None or estimate.high is None else (estimate.high - estimate.low) / (2 * 1.96)


def _of(spec: Retrieval, name: str, predicted: float, values: Sequence[float], note: str = "") -> Compared:
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Compared(spec, name, predicted, mean, error, note)
