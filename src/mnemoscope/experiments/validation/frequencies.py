"""Compare theory with simulation where tokens are not equally frequent: by sequence, by fact and by band."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mnemoscope.engine.record import Trial
from mnemoscope.experiments.estimate.agreement import OUTSIDE, Compared
from mnemoscope.experiments.validation.drawn_settings import SEED
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.theory.frequencies.predict import LEVEL
from mnemoscope.theory.predict import predict
from mnemoscope.training.three_step.batch import simulate_many

# Seeds are added until no standard error is above this, up to so many times the seeds asked for.
ENOUGH, MOST = 0.015, 8
# Settings in a call of the simulator, between reports of progress.
TOGETHER = 8
# Every other setting has at least this accuracy by fact, as theory has it; many would have next to none.
SOME = 0.05
# What theory is asked while these are drawn, in predictions.
DRAWS = 400
Progress = Callable[[float], object]


def for_frequencies(count: int, seed: int = SEED + 21) -> list[Retrieval]:
    """Attention-only settings: exponents of Zipf's law from 0.5 to 2, and every fourth a random vector.

    V in 64..512 by powers of two, L in 2..64 by powers of two, d in 12..256, or V + 1..1.5 V for orthonormal embeddings
    (one in eight; one in four is on the sphere), N in 500..30,000; attention is locked in one of ten. In every other
    setting theory expects an accuracy by fact of at least SOME. Random vectors are kept among the user's own.
    """
    draw = np.random.default_rng(seed)

    def log_uniform(low: float, high: float) -> int:
        return round(math.exp(draw.uniform(math.log(low), math.log(high))))

    taken: list[Retrieval] = []
    while len(taken) < count:
        turn = len(taken)
        V = int(2 ** draw.integers(6, 10))
        law = "orthonormal" if turn % 8 == 7 else "sphere" if turn % 4 == 2 else "gaussian"
        spec = Retrieval.read(
            {
                "vocab": V,
                "dim": log_uniform(V + 1, 1.5 * V) if law == "orthonormal" else log_uniform(12, 256),
                "length": int(2 ** draw.integers(1, 7)),
                "samples": log_uniform(500, 30_000),
                "embedding": law,
                "attention": "locked" if turn % 10 == 9 else "learned",
                "tokens": _vector(draw, V) if turn // 2 % 4 == 3 else f"zipf:{draw.uniform(0.5, 2):.3f}",
            }
        )
        if turn % 2 == 0 or (predict(spec).as_dict()["accuracy_by_fact"] or 0.0) >= SOME:
            taken.append(spec)
    return taken


def _vector(draw: np.random.Generator, count: int) -> np.ndarray:
    """Random probabilities: Dirichlet, log-normal, Pareto, or two levels."""
    kind = draw.integers(4)
    if kind == 0:
        p = draw.dirichlet(np.full(count, draw.uniform(0.05, 1)))
    elif kind == 1:
        p = np.exp(draw.uniform(0.5, 2.5) * draw.normal(size=count))
    elif kind == 2:
        p = draw.pareto(draw.uniform(0.6, 3), count) + 0.1
    else:
        p = np.where(np.arange(count) < count * draw.uniform(0.02, 0.5), draw.uniform(2, 30), 1.0)
    return p / p.sum()


def compare_frequencies(
    specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress
) -> Iterator[Compared]:
    """Accuracy by sequence and by fact, attention accuracy, recall in every band, and the interval over seeds.

    The note is the predicted regime, and whether the setting is in the domain of its law.
    """
    ordered = sorted(specs, key=lambda spec: (spec.vocab, spec.length, spec.dim))
    for first in range(0, len(ordered), TOGETHER):
        part = ordered[first : first + TOGETHER]
        trials = {spec: list[Trial[Retrieval]]() for spec in part}
        while open_ := [spec for spec in part if _wants_more(trials[spec], seeds)]:
            jobs = [(spec, len(trials[spec]) + k) for spec in open_ for k in range(seeds)]
            for trial in simulate_many(jobs, device=device):
                trials[trial.spec].append(trial)
        for spec in part:
            yield from _compared(spec, trials[spec])
            progress(1)


def _wants_more(trials: Sequence[Trial[Retrieval]], seeds: int) -> bool:
    """Whether an accuracy's standard error is too large, and more seeds are allowed."""
    if not trials:
        return True
    values = np.array([(trial.accuracy, trial.accuracy_by_fact, trial.attention_accuracy) for trial in trials], float)
    errors = values.std(axis=0, ddof=1) / math.sqrt(len(trials))
    return bool(errors.max() > ENOUGH) and len(trials) < MOST * seeds


def _compared(spec: Retrieval, trials: Sequence[Trial[Retrieval]]) -> Iterator[Compared]:
    told = predict(spec)
    said = told.as_dict()
    note = told.regime + ("" if told.valid else OUTSIDE)

    def beside(name: str, predicted: float, values: Sequence[float | None]) -> Compared:
        observed = np.array(values, float)
        error = float(observed.std(ddof=1)) / math.sqrt(len(observed))
        return Compared(spec, name, predicted, float(observed.mean()), error, note)

    if told.low is not None and told.high is not None:
        accuracies = np.array([trial.accuracy for trial in trials], float)
        inside = float(np.mean((told.low <= accuracies) & (accuracies <= told.high)))
        # The standard error of a share at this level.
        yield Compared(spec, "interval", LEVEL, inside, math.sqrt(LEVEL * (1 - LEVEL) / len(trials)), note)
    yield beside("by sequence", said["accuracy"], [trial.accuracy for trial in trials])
    yield beside("by fact", said["accuracy_by_fact"], [trial.accuracy_by_fact for trial in trials])
    yield beside("attention", said["attention_accuracy"], [trial.attention_accuracy for trial in trials])
    for at, (band, predicted) in enumerate(zip(spec.bands, said["bands"], strict=True)):
        shares = [trial.bands[at] for trial in trials if trial.bands is not None]
        yield beside(f"band {band.name}", predicted["accuracy"], shares)
