"""Confidence on what a model was shown and on what it was not: the lead of its first label over its second.

Every token is asked for once, with attention on it. A token is seen if it was informative in a training sequence. The
AUC is the chance that the lead of a seen token exceeds that of an unseen one: 0.5 where confidence tells nothing.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.stats import rankdata

from mnemoscope.engine.layout import Layout
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.trial_parts import trial_parts
from mnemoscope.models.retrieval import Frozen, token_features
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.summary import Shown, Summary, brief, number
from mnemoscope.spec.validators import Device
from mnemoscope.theory.calibration import predicted_auc
from mnemoscope.training.three_step.algorithm import train_three_steps
from mnemoscope.training.three_step.streaming import Source, Span, fold


@dataclass(frozen=True, repr=False)
class Calibration(Shown):
    """What the seeds of one setting say. `auc` is unresolved where all tokens were seen, or none was.

    `seen` and `unseen` are median leads over the largest median, so that 1 is the more confident of the two.
    """

    spec: Retrieval
    auc: Estimate
    share_seen: float
    seen: float | None
    unseen: float | None
    predicted: float | None

    def summary(self) -> Summary:
        """How well confidence tells seen tokens from unseen ones."""
        return Summary(
            brief(self.spec),
            {
                "AUC": str(self.auc),
                "predicted": number(self.predicted),
                "share seen": number(self.share_seen),
                "confidence, seen": number(self.seen),
                "unseen": number(self.unseen),
            },
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        medians = {"seen": self.seen, "unseen": self.unseen}
        shares = {"share_seen": self.share_seen, "confidence": medians, "predicted": self.predicted}
        return {"auc": self.auc.ends("mean"), **shares}


def check_calibrated(spec: Retrieval) -> None:
    """Refuse a setting whose calibration is not measured."""
    if spec.then != "none":
        raise SpecError("then", f"expected none for calibration, which is of the three steps, got {spec.then!r}")


def calibrate(spec: Retrieval, seeds: Sequence[int], device: Device = "auto") -> Calibration:
    """Train again, seed by seed, and compare confidence on seen and unseen tokens."""
    check_calibrated(spec)
    aucs: list[float] = []
    leads: dict[bool, list[float]] = {True: [], False: []}
    shares: list[float] = []
    fewest = spec.vocab
    for seed in seeds:
        lead, seen = leads_of(spec, seed, device)
        shares.append(float(seen.mean()))
        for group in leads:
            if (seen == group).any():
                leads[group].append(float(np.median(lead[seen == group])))
        fewest = min(fewest, int(seen.sum()), int((~seen).sum()))
        if fewest:
            aucs.append(auc(lead, seen))
    medians = {group: statistics.fmean(values) if values else None for group, values in leads.items()}
    largest = max((value for value in medians.values() if value is not None), default=0.0) or 1.0
    seen, unseen = (None if (value := medians[group]) is None else value / largest for group in (True, False))
    predicted = predicted_auc(spec) if aucs else None
    return Calibration(spec, mean_interval(aucs, fewest), statistics.fmean(shares), seen, unseen, predicted)


def auc(confidence: np.ndarray, seen: np.ndarray) -> float:
    """The chance that a seen token's confidence exceeds an unseen one's, ties counted half (Mann and Whitney)."""
    several, others = int(seen.sum()), int((~seen).sum())
    return float(rankdata(confidence)[seen].sum() - several * (several + 1) / 2) / (several * others)


def leads_of(spec: Retrieval, seed: int, device: Device = "auto") -> tuple[np.ndarray, np.ndarray]:
    """Every token's lead with attention on it, and whether it was informative in a training sequence."""
    with trial_parts(spec, seed, device) as (layout, frozen, source):
        learned = train_three_steps(spec, layout, frozen, source)
        lead = _leads(spec.program(), layout, frozen, learned.V2)
        seen = _seen(spec.program(), layout, source, jnp.uint32(spec.samples))
        return np.asarray(lead), np.asarray(seen)


@partial(jax.jit, static_argnames=("program", "layout"))
def _leads(program: Retrieval, layout: Layout, frozen: Frozen, V2: Float[Array, "d h"]) -> Float[Array, "V"]:
    # As the informative token, with the trigger in the values where it is.
    features = token_features(program, frozen)[-1]

    def lead(value: Float[Array, "d"]) -> Float[Array, ""]:
        first, second = jax.lax.top_k(frozen.U @ value, 2)[0]
        return first - second

    return jax.lax.map(lead, features @ V2.T, batch_size=layout.rows)


@partial(jax.jit, static_argnames=("program", "layout"))
def _seen(program: Retrieval, layout: Layout, source: Source, samples: Array) -> Bool[Array, "V"]:
    def body(seen: Array, batch: Any, live: Array) -> Array:
        return seen.at[batch.informative].max(live)

    span = Span(jnp.uint32(0), samples, samples)
    empty = jnp.zeros(program.vocab, bool)
    return fold(body, empty, source, span, length=program.length, chunk=layout.by_token, platform=layout.platform)
