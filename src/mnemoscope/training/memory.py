"""Paper B's associative memories: trained by full-batch AdamW, or constructed.

Every step uses all N items, so accuracy at a check is exact: the share of items whose own answer has the largest logit.
Memories share a program if they differ only in seed and in the number of items, within an eighth of an octave or 32 (on
a GPU: an octave or half of one). A seed has the same first items at every N.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.early_stopping import LEAST_LARGE, LEAST_ON_GPU, round_up
from mnemoscope.engine.free_memory import SINGULAR, check_fits
from mnemoscope.engine.kinds import Cost
from mnemoscope.engine.random import named_key
from mnemoscope.engine.rates import Rates
from mnemoscope.models.memory import Full, Pairs, Weights, construct, draw_pairs, draw_weights, least_squares, logits
from mnemoscope.spec.memory import Memory
from mnemoscope.training.trained import Trained

Keys = dict[str, UInt32[Array, "*n 2"]]
MemoryJob = tuple[Memory, int]
# The most logits in a block of items.
LOGITS_AT_ONCE = 2**24
# Above this many items, a step keeps a GPU busy, too.
LARGE = 1024


def draw_streams(jobs: Sequence[MemoryJob]) -> tuple[Keys, UInt32[Array, "n"]]:
    """The streams of each job, and its number of items."""
    keys = {
        name: jnp.asarray(np.stack([named_key(seed, f"memory-{name}", dim=spec.dim) for spec, seed in jobs]))
        for name in ("item", "answer", "inner", "outer")
    }
    return keys, jnp.asarray([spec.items for spec, _ in jobs], jnp.uint32)


class MemoryKind(Trained):
    """Associative memories."""

    compile_seconds = {"cpu": 1.0, "gpu": 4.0}  # noqa: RUF012 - never changed
    size_field = "items"
    unseen_test = False

    def program(self, spec: Memory, platform: str = "cpu") -> Memory:
        """Round the items up; much further on a GPU, where small steps take as long as larger ones
        and compiling takes longer."""
        items = spec.items
        if platform != "cpu" and spec.embedding != "orthonormal":
            items = max(64, round_up(items, LARGE))
        elif spec.embedding != "orthonormal":  # a frame has no room for more rows than dimensions
            step = max(32, 2 ** (items.bit_length() - 4))
            items = -(-items // step) * step
        return spec.replace(items=items, lr=0.0, max_steps=0, target=0.99)

    def arguments(self, jobs: Sequence[MemoryJob]) -> tuple[Keys, UInt32[Array, "n"]]:
        """Streams and numbers of items."""
        return draw_streams(jobs)

    def begin(self, program: Memory, arguments: tuple[Keys, UInt32[Array, ""]]) -> tuple[Pairs, Weights]:
        """Items with their answers, and the initial weights."""
        keys, items = arguments
        return draw_pairs(program, keys, items), draw_weights(program, keys)

    def loss(self, program: Memory, world: Pairs, weights: Weights, taken: UInt32[Array, ""]) -> Float[Array, ""]:
        """-ln p(f(x)), averaged over the items."""
        log_p = jax.nn.log_softmax(logits(program, world, weights, world.E), axis=-1)
        own = jnp.take_along_axis(log_p, world.label[:, None], axis=1)[:, 0]
        live = jnp.arange(program.items, dtype=jnp.uint32) < world.items
        return -jnp.sum(jnp.where(live, own, 0.0)) / world.items.astype(own.dtype)

    def measure(self, program: Memory, world: Pairs, weights: Weights) -> dict[str, Float[Array, ""]]:
        """The share of items whose own answer has the largest logit."""
        return {"accuracy": share_right(program, world, weights)}

    def construct(self, program: Memory, jobs: Sequence[MemoryJob]) -> list[dict[str, float]]:
        """The accuracy of sums over items, or of least squares."""
        hebbian = program.method == "hebbian"
        shares = _recall_hebbian(program, *draw_streams(jobs)) if hebbian else _solve(program, jobs)
        # A GPU multiplies by 1/N instead of dividing, and may end up a rounding error above 1.
        return [{"accuracy": min(1.0, float(share))} for share in np.asarray(shares)]

    def bytes_needed(self, program: Memory) -> int:
        """The bytes of logits, hidden units, items, answers and weights."""
        N, M, d, m = program.items, program.labels, program.dim, program.width or program.rank
        at_once = N * M if program.method == "trained" else min(N * M, LOGITS_AT_ONCE)
        return 4 * (4 * at_once + 3 * N * m + 2 * (N + M) * d + 4 * program.parameters)

    def step_products(self, program: Memory) -> int:
        """The products of the logits."""
        return program.items * program.labels * program.dim

    def least_rows(self, program: Memory) -> int:
        """A GPU runs fewer large memories than small ones in the time of one."""
        return LEAST_LARGE if program.items > LARGE else LEAST_ON_GPU

    def step_seconds(self, program: Memory, rates: Rates) -> float:
        """Logits and hidden units, forward and back, and the optimiser."""
        N, M, d, m = program.items, program.labels, program.dim, program.width or program.rank
        products = N * M * d + 6 * N * m * d
        units = 0.8 * N * M + N * m + 4 * program.parameters
        return products * rates.product + units * rates.unit + rates.step

    def cost(self, spec: Memory, platform: str) -> Cost:
        """Small memories first; batches are not split, since all gain from running side by side."""
        return super().cost(spec, platform)._replace(order=float(spec.items))


MEMORY = MemoryKind()


def share_right(program: Memory, pairs: Pairs, weights: Weights) -> Float[Array, ""]:
    """The share of items whose own answer has the largest logit, computed block by block."""
    N, M = program.items, program.labels
    blocks = max(1, -(-N * M // LOGITS_AT_ONCE))
    size = -(-N // blocks)

    def right(E: Float[Array, "C d"], label: UInt32[Array, "C"]) -> Array:
        named = jnp.argmax(logits(program, pairs, weights, E), axis=1)
        return named.astype(jnp.uint32) == label

    pad = blocks * size - N
    E = jnp.pad(pairs.E, ((0, pad), (0, 0))).reshape(blocks, size, -1)
    label = jnp.pad(pairs.label, (0, pad)).reshape(blocks, size)
    hits = right(E[0], label[0]) if blocks == 1 else jax.lax.map(lambda block: right(*block), (E, label))
    live = jnp.arange(blocks * size, dtype=jnp.uint32) < pairs.items
    count = jnp.sum((hits.reshape(-1) & live).astype(pairs.E.dtype))
    return count / pairs.items.astype(pairs.E.dtype)


@partial(jax.jit, static_argnames="program")
def _recall_hebbian(program: Memory, keys: Keys, items: UInt32[Array, "n"]) -> Float[Array, "n"]:
    def recall(row: tuple[Keys, UInt32[Array, ""]]) -> Float[Array, ""]:
        keys, items = row
        pairs = draw_pairs(program, keys, items)
        return share_right(program, pairs, construct(program, keys, pairs))

    return jax.lax.map(recall, (keys, items))


def _solve(program: Memory, jobs: Sequence[MemoryJob]) -> Float[Array, "n"]:
    """The accuracy of least squares, solved in double precision on the host, one memory at a time."""
    N, M, d = program.items, program.labels, program.dim
    needed = 8 * ((SINGULAR + 2) * d**2 + 3 * (N + M) * d)
    check_fits("dim", f"{d:,}", needed, "least squares")
    pairs, _ = MEMORY.start(program, draw_streams(jobs))
    E, U, label = (np.asarray(part) for part in (pairs.E, pairs.U, pairs.label))
    weights = [
        least_squares(E[row, :n].astype(float), U[row, :m].astype(float), label[row, :n])
        for row, (n, m) in enumerate((spec.items, spec.labels) for spec, _ in jobs)
    ]
    return MEMORY.measured(program, pairs, Full(jnp.asarray(np.stack(weights), float)))["accuracy"]
