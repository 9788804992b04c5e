r"""Compare the theory of the end of training with exact solutions and with training itself.

`capacity` asks a solver with certificates (`exact_storage.py`) whether items can be stored, at numbers of items about
theory's; `overload` lets it find the minimum of cross-entropy beyond; `steps` trains a matrix by AdamW to 99 %; and
`trained` trains paper A's model until it settles.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr

from mnemoscope.engine import random
from mnemoscope.engine.record import Trial
from mnemoscope.experiments.estimate.agreement import OUTSIDE, Compared
from mnemoscope.experiments.exact_storage import Storage, store
from mnemoscope.experiments.workers.batches import run_batch
from mnemoscope.models.retrieval import draw_frozen, token_features
from mnemoscope.spec import Memory, Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.theory.predict import predict
from mnemoscope.theory.trained.capacity import half_point
from mnemoscope.theory.trained.predict import inputs_of, stored_of
from mnemoscope.theory.trained.steps import steps_to_store
from mnemoscope.training.three_step.batch import simulate_many

# Numbers of items to try, between those that theory has all but this share of draws store, and this share. Where
# Gaussian labels are lost inside the hull, the share begins to fall slowly, and a normal function fitted to the whole
# curve has its middle up to 6 % below the half point; fitted to this part, within 1 %.
PLACES, ENDS = 7, 0.3
# Settings in a call of the simulator, between reports of progress.
TOGETHER = 4
Progress = Callable[[float], object]


def solve(spec: Retrieval, seed: int) -> Storage:
    """Every token of a vocabulary stored as an item, by the solver with certificates."""
    frozen = draw_frozen(spec, spec.embedding, random.streams(spec, seed))
    _, features = token_features(spec, frozen)
    return store(np.asarray(frozen.U, float), np.asarray(features, float), np.asarray(frozen.permutation))


def compare_capacity(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """The number of items that half of the seeds can store.

    A normal distribution function is fitted to the shares of seeds at numbers of items about theory's. `error` is that
    of its middle, from the likelihood's curvature. The note counts seeds without a certificate, which are left out.
    """
    for spec in specs:
        memory = spec.dim, inputs_of(spec), spec.embedding
        predicted = half_point(*memory)
        stored, lost, places, open_ = [], [], [], 0
        for items in numbers_to_try(*memory):
            answers = [solve(spec.replace(vocab=items, samples=items), seed).separable for seed in range(seeds)]
            places.append(float(items))
            stored.append(answers.count(True))
            lost.append(answers.count(False))
            open_ += answers.count(None)
            progress(1 / PLACES)
        middle, error = half_of(places, stored, lost)
        yield Compared(spec.replace(vocab=round(predicted)), "half", predicted, middle, error, f"{open_} open")


def numbers_to_try(dim: int, inputs: int, law: str) -> list[int]:
    """Numbers of items about theory's half point."""
    low, high = (half_point(dim, inputs, law, share) for share in (1 - ENDS, ENDS))
    return [round(number) for number in np.geomspace(low, high, PLACES)]


def half_of(places: Sequence[float], stored: Sequence[float], lost: Sequence[float]) -> tuple[float, float]:
    """Where a share falls through a half, by a probit fit in ln N, and its standard error."""
    x, yes, no = np.log(places), np.array(stored, float), np.array(lost, float)

    def loss(values: np.ndarray) -> float:
        z = (values[0] - x) / math.exp(values[1])
        # Half an observation on either side keeps the width from shrinking to nothing.
        return -float(np.sum((yes + 1e-3) * log_ndtr(z) + (no + 1e-3) * log_ndtr(-z)))

    best = minimize(loss, [float(x.mean()), math.log(0.05)], method="Nelder-Mead").x
    step = 0.2 * math.exp(best[1])
    aside = np.array([step, 0.0])
    curvature = (loss(best + aside) - 2 * loss(best) + loss(best - aside)) / step**2
    return math.exp(best[0]), math.exp(best[0]) / math.sqrt(max(curvature, 1e-9))


def compare_overload(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """Accuracy at the minimum of cross-entropy over all tokens, each as often as the others."""
    for spec in specs:
        predicted = stored_of(spec.replace(samples=2**31 - 1), items=float(spec.vocab))
        yield _of(spec, "minimum", predicted, [solve(spec, seed).accuracy for seed in range(seeds)])
        progress(1)


def compare_steps(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """The steps that AdamW takes from zero weights to 99 % of a matrix's items.

    A training that ran out of steps makes the setting's number infinite, since its steps are unknown.
    """
    for spec in specs:
        memory = Memory.read(
            {
                "items": spec.vocab,
                "dim": spec.dim,
                "method": "trained",
                "embedding": spec.embedding,
                "lr": spec.learning_rate,
                "max_steps": spec.steps,
            }
        )
        trials = run_batch([(memory, seed) for seed in range(seeds)], device)
        steps = [trial.metrics["steps"] if trial.status == "ok" else math.inf for trial in trials]
        predicted = steps_to_store(spec.vocab, spec.dim, spec.embedding, spec.learning_rate)
        kept = sorted(float(value or math.inf) for value in steps)
        middle = kept[len(kept) // 2]
        yield Compared(spec, "steps", float(predicted or math.nan), middle, _scatter(kept), "")
        progress(1)


def _scatter(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return float(np.std(finite, ddof=1)) / math.sqrt(len(finite)) if len(finite) > 1 else math.nan


def compare_trained(specs: Sequence[Retrieval], seeds: int, device: Device, progress: Progress) -> Iterator[Compared]:
    """Accuracy of paper A's model, trained until it settles.

    The note is what binds, and whether the setting is in the law's domain. A training that had not settled when its
    steps ran out counts with the accuracy that it had.
    """
    for first in range(0, len(specs), TOGETHER):
        part = specs[first : first + TOGETHER]
        trials = simulate_many([(spec, seed) for spec in part for seed in range(seeds)], device=device)
        for at, spec in enumerate(part):
            own: list[Trial] = trials[at * seeds : (at + 1) * seeds]
            prediction = predict(spec, trained=True)
            if prediction.accuracy is not None:
                note = str(prediction.as_dict()["binding"]) + ("" if prediction.valid else OUTSIDE)
                values = [trial.accuracy for trial in own if trial.accuracy is not None]
                yield _of(spec, "trained", prediction.accuracy, values, note)
            progress(1)


def _of(spec: Retrieval, name: str, predicted: float, values: Sequence[float], note: str = "") -> Compared:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Compared(spec, name, predicted, float(np.mean(values)), error, note)
