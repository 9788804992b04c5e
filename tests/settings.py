"""Settings that several tests share, and the pieces a test needs to train by hand."""

from functools import lru_cache
from typing import Any, get_args

import jax
import jax.numpy as jnp
from hypothesis import strategies as st

from mnemoscope.engine import random
from mnemoscope.models.retrieval import Frozen, draw_frozen
from mnemoscope.spec import Activation, Embedding, Retrieval, Trigger
from mnemoscope.tasks.retrieval import Batch, sample
from mnemoscope.training.three_step.streaming import Source

# One shape, so that compiled operations are used again.
VOCAB, DIM, LENGTH, SAMPLES = 11, 6, 4, 100


def draw_pieces(spec: Retrieval, seed: int) -> tuple[Frozen, Source, Batch]:
    """Frozen vectors, the stream of training samples, and those samples as one batch."""
    drawn = spec.program().replace(samples=spec.samples, eta="limit", gamma="limit", trigger="keys")
    return _draw_once(drawn, spec.embedding, seed, str(jnp.result_type(float)))


@lru_cache(maxsize=256)
def _draw_once(spec: Retrieval, law: str, seed: int, precision: str) -> tuple[Frozen, Source, Batch]:
    """The pieces depend on the sizes, the law and the precision: what is drawn once serves all."""
    with jax.disable_jit(False):
        return _draw(spec, law, seed)


def _draw(spec: Retrieval, law: str, seed: int) -> tuple[Frozen, Source, Batch]:
    streams = random.streams(spec, seed)
    frozen = draw_frozen(spec.program(), law, streams)
    index = jnp.arange(spec.samples, dtype=jnp.uint32)
    batch = sample(streams["train"], index, frozen.permutation, spec.length)
    return frozen, Source(streams["train"], frozen.permutation), batch


@st.composite
def specs(draw: st.DrawFn) -> Retrieval:
    """Small settings of every kind: embeddings, triggers, activations, step sizes."""
    embedding = draw(st.sampled_from(get_args(Embedding)))
    eta = draw(st.sampled_from(["limit", 0.3, 2.0, 20.0]))
    gamma = "limit" if eta == "limit" else draw(st.sampled_from(["limit", 1.0, 50.0]))
    values: dict[str, Any] = {
        "vocab": VOCAB,
        "dim": VOCAB + 1 if embedding == "orthonormal" else DIM,
        "length": LENGTH,
        "samples": SAMPLES,
        "width": draw(st.sampled_from([0, 7])),
        "activation": draw(st.sampled_from(get_args(Activation))),
        "embedding": embedding,
        "trigger": draw(st.sampled_from(get_args(Trigger))),
        "eta": eta,
        "gamma": gamma,
    }
    if eta == "limit" and draw(st.booleans()):
        values["attention"] = draw(st.sampled_from(["learned", "locked"]))
    return Retrieval.read(values)
