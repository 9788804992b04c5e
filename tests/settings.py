"""Settings that several tests share, and the pieces a test needs to train by hand."""

from functools import lru_cache

import jax
import jax.numpy as jnp

from mnemoscope.engine import random
from mnemoscope.models.retrieval import Frozen, draw_frozen
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import Batch, sample
from mnemoscope.training.three_step.streaming import Source

# One shape, so that compiled operations are used again.
VOCAB, DIM, LENGTH, SAMPLES = 11, 6, 4, 100


def draw_pieces(spec: Retrieval, seed: int) -> tuple[Frozen, Source, Batch]:
    """Frozen vectors, the stream of training samples, and those samples as one batch."""
    sizes = {name: getattr(spec, name) for name in ("vocab", "dim", "length", "samples", "width", "tokens")}
    drawn = Retrieval.read(sizes)
    return _draw_once(drawn, spec.embedding, seed, str(jnp.result_type(float)))


@lru_cache(maxsize=256)
def _draw_once(spec: Retrieval, law: str, seed: int, precision: str) -> tuple[Frozen, Source, Batch]:
    """The pieces depend on the sizes, the law and the precision: what is drawn once serves all."""
    with jax.disable_jit(False):
        return _draw(spec, law, seed)


def _draw(spec: Retrieval, law: str, seed: int) -> tuple[Frozen, Source, Batch]:
    streams = random.streams(spec, seed)
    # One program for all frequencies of tokens, which have no part in this.
    frozen = draw_frozen(spec.replace(tokens="uniform").program(), law, streams)
    index = jnp.arange(spec.samples, dtype=jnp.uint32)
    source = Source.of(spec, streams["train"], frozen.permutation)
    return frozen, source, sample(source.key, index, frozen.permutation, spec.length, source.table)
