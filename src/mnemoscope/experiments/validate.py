"""Theory against simulation: predicted and observed, setting by setting.

Nothing here is fitted, and no setting is left out after it was run.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mnemoscope.analysis.agreement import Compared
from mnemoscope.batch import simulate_many
from mnemoscope.experiments.decoders import decode, see
from mnemoscope.experiments.noise_terms import measure_terms
from mnemoscope.fields import Device
from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import attention_terms
from mnemoscope.theory.bound import bound_samples, coverage_samples
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.predict import predict

# Settings to a call of the simulator, between words of progress.
TOGETHER = 15
TARGET = 0.5
MOST_SAMPLES = 2**24
Progress = Callable[[int], None]


def compare_terms(
    specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress
) -> Iterator[Compared]:
    """Attention's signal and each noise.

    Over the predicted signal, squared for a noise: its variance. A term that theory has at zero is
    not compared.
    """
    for spec in specs:
        measured = [measure_terms(spec, seed, device) for seed in range(seeds)]
        told = attention_terms(spec)
        weight = told.signal * (spec.samples * spec.length) ** 2
        yield _of(spec, "signal", 1.0, [one["signal"] / weight for one in measured])
        for name, term in told.terms.items():
            yield _of(spec, name, term, [one[name] / weight**2 for one in measured])
        progress(1)


def compare_accuracy(
    specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress
) -> Iterator[Compared]:
    """Accuracy of `predict` beside the mean over seeds; the note is the predicted regime.

    Settings of one shape run together, since they share a compiled program.
    """
    ordered = sorted(specs, key=lambda one: (one.vocab, one.length, one.trigger, one.dim))
    for first in range(0, len(ordered), TOGETHER):
        some = ordered[first : first + TOGETHER]
        jobs = [(spec, seed) for spec in some for seed in range(seeds)]
        trials = simulate_many(jobs, device=device)
        for at, spec in enumerate(some):
            found = [one.accuracy for one in trials[at * seeds : (at + 1) * seeds]]
            told = predict(spec)
            if told.accuracy is not None:
                good = [value for value in found if value is not None]
                yield _of(spec, "accuracy", told.accuracy, good, told.regime)
        progress(len(some))


def compare_critical(
    specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress
) -> Iterator[Compared]:
    """The N at which the three steps' mean accuracy crosses TARGET.

    Theory has no part in finding it. The note is what any learner needs.
    """
    for spec in specs:

        def accuracies(counts: Sequence[int], few: int, spec: Retrieval = spec) -> np.ndarray:
            jobs = [(spec.replace(samples=N), seed) for N in counts for seed in range(few)]
            found = [one.accuracy for one in simulate_many(jobs, device=device)]
            return np.array(found, dtype=float).reshape(len(counts), few)

        told = critical_value(spec, "samples", TARGET)
        observed, error = crossing(accuracies, max(1, spec.vocab // 16), seeds)
        if told is not None:
            bound = f"{coverage_samples(spec, TARGET):.0f}"
            yield Compared(spec, "three steps", float(told), observed, error, bound)
        progress(1)


def compare_bound(
    specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress
) -> Iterator[Compared]:
    """The information bound on N, as `predicted`, beside where decoders of G cross TARGET."""
    for spec in specs:
        for name in ("matched_filter", "message_assignment"):

            def accuracies(
                counts: Sequence[int], few: int, spec: Retrieval = spec, name: str = name
            ) -> np.ndarray:
                seen = [see(spec.replace(samples=N), k, device) for N in counts for k in range(few)]
                return np.array([decode(one, (name,))[name] for one in seen]).reshape(-1, few)

            observed, error = crossing(accuracies, max(1, spec.vocab // 4), seeds)
            yield Compared(spec, name, bound_samples(spec, TARGET), observed, error)
        progress(1)


def crossing(
    accuracies: Callable[[Sequence[int], int], np.ndarray], start: int, seeds: int
) -> tuple[float, float]:
    """The N at which the mean over seeds crosses TARGET, and its standard error.

    `accuracies(counts, seeds)` gives a row for each N. N doubles from `start` until a quarter of
    the seeds pass the target on average; then steps of 2^(1/4) go up and down until all seeds
    are on both sides, and logit(accuracy) is taken as straight in ln N between the two nearest.
    The same seeds serve at every N, and a longer sample begins with the shorter one.
    """
    N, few = start, max(2, seeds // 4)
    while accuracies([N], few)[0].mean() < TARGET:
        N *= 2
        if N > MOST_SAMPLES:
            return math.nan, math.nan
    step = 2**0.25
    at = N / step
    known: dict[int, np.ndarray] = {}

    def mean(count: int) -> float:
        if count not in known:
            known[count] = accuracies([count], seeds)[0]
        return float(known[count].mean())

    while mean(round(at)) >= TARGET and at > 2:
        at /= step
    while mean(round(at * step)) < TARGET:
        at *= step
    low, high = round(at), round(at * step)
    below, above = (_logit(mean(count)) for count in (low, high))
    slope = (above - below) / math.log(high / low)
    crossed = low * math.exp((_logit(TARGET) - below) / slope)
    spread = float(known[high].std(ddof=1)) / math.sqrt(seeds) / (TARGET * (1 - TARGET))
    return crossed, crossed * spread / slope


def _logit(share: float) -> float:
    share = min(max(share, 1e-3), 1 - 1e-3)
    return math.log(share / (1 - share))


def _of(spec: Retrieval, name: str, predicted: float, values: Sequence[float], note: str = ""
        ) -> Compared:  # fmt: skip
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Compared(spec, name, predicted, mean, error, note)
