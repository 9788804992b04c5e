"""Settings that several tests share, and the pieces a test needs to train by hand."""

from typing import Any, get_args

import jax.numpy as jnp
from hypothesis import strategies as st

from mnemoscope import keys
from mnemoscope.models.transformer import Frozen, draw_frozen
from mnemoscope.spec import Activation, Embedding, Retrieval, Trigger
from mnemoscope.tasks.retrieval import Batch, sample
from mnemoscope.training.streaming import Source

# Few shapes, so that compiled programs are used again.
SHAPES = [(11, 6, 4), (17, 5, 3)]


def draw_pieces(spec: Retrieval, seed: int) -> tuple[Frozen, Source, Batch]:
    """Frozen vectors, the stream of training samples, and those samples as one batch."""
    streams = {name: jnp.asarray(keys.stream(spec, seed, name)) for name in keys.STREAMS}
    frozen = draw_frozen(spec.program(), spec.embedding, streams)
    index = jnp.arange(spec.samples, dtype=jnp.uint32)
    batch = sample(streams["train"], index, frozen.permutation, spec.length)
    return frozen, Source(streams["train"], frozen.permutation), batch


@st.composite
def specs(draw: st.DrawFn) -> Retrieval:
    """Small settings of every kind: embeddings, triggers, activations, step sizes."""
    vocab, dim, length = draw(st.sampled_from(SHAPES))
    embedding = draw(st.sampled_from(get_args(Embedding)))
    eta = draw(st.sampled_from(["limit", 0.3, 2.0, 20.0]))
    gamma = "limit" if eta == "limit" else draw(st.sampled_from(["limit", 1.0, 50.0]))
    values: dict[str, Any] = {
        "vocab": vocab,
        "dim": vocab + 1 if embedding == "orthonormal" else dim,
        "length": length,
        "samples": draw(st.sampled_from([40, 200])),
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
