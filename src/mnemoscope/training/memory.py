"""Paper B's associative memories: trained step by step, by one step from zero, or constructed.

By default a step is one of AdamW on all N items, weighted by their frequencies; with a batch it is on samples of them.
Accuracy at a check is exact in both cases: the share of items whose own answer has the largest logit. Where items occur
unequally often, `accuracy_by_sequence` weighs them by their frequencies.

Memories share a program if they differ only in seed and in the number of items, within an eighth of an octave or 32 (on
a GPU: an octave or half of one). A seed has the same first items at every N.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, UInt32

from mnemoscope.engine.early_stopping import LEAST_LARGE, LEAST_ON_GPU, round_up
from mnemoscope.engine.free_memory import SINGULAR, check_fits
from mnemoscope.engine.kinds import Cost
from mnemoscope.engine.random import named_key
from mnemoscope.engine.rates import Rates
from mnemoscope.engine.record import UNROUNDED
from mnemoscope.models.memory import Full, Pairs, Weights, construct, draw_pairs, draw_weights, least_squares, logits
from mnemoscope.models.quantisation import round_weights
from mnemoscope.spec.memory import Memory
from mnemoscope.spec.optimisers import Optimiser
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.items import ItemStreams, draw_items
from mnemoscope.training.one_step import LOGITS_AT_ONCE, one_step_matrix, right_by_rank
from mnemoscope.training.optimisers import Rate, optimiser, rate_at
from mnemoscope.training.side_by_side import over_rows
from mnemoscope.training.trained import Trained

Keys = dict[str, UInt32[Array, "*n 2"]]
MemoryJob = tuple[Memory, int]
# Measurements of one memory by name.
Shares = dict[str, Any]
# Above this many items, a step keeps a GPU busy, too.
LARGE = 1024


def draw_streams(jobs: Sequence[MemoryJob]) -> tuple[Keys, UInt32[Array, "n"]]:
    """The streams of each job, and its number of items."""
    keys = {
        name: jnp.asarray(np.stack([named_key(seed, f"memory-{name}", dim=spec.dim) for spec, seed in jobs]))
        for name in ("item", "answer", "inner", "outer", "sample", "noise")
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
        if spec.method == "one-step":
            # The step is taken on the host: only its items and answers, and its logits, are compiled.
            sizes = {name: getattr(spec, name) for name in ("items", "dim", "outputs", "embedding")}
            return self.program(Memory(**sizes), platform).replace(method="one-step")
        items = spec.items
        # A frame has no room for more rows than dimensions, frequencies belong to a number of items, and so may a law
        # of the user's own.
        exact = spec.embedding == "orthonormal" or spec.frequencies != UNIFORM or bool(spec.objects)
        if platform != "cpu" and not exact:
            items = max(64, round_up(items, LARGE))
        elif not exact:
            step = max(32, 2 ** (items.bit_length() - 4))
            items = -(-items // step) * step
        # A schedule is compiled for its number of steps.
        steps = 0 if spec.schedule == "constant" and not spec.batch else spec.most_steps
        # The rate is an argument; two layers have no default for every optimiser.
        lr = 0.0 if spec.full_rank or spec.optimiser in ("adam", "adamw") else 1.0
        return spec.replace(items=items, lr=lr, max_steps=steps, target=0.99)

    def optimiser(self, program: Memory, lr: Rate, taken: UInt32[Array, ""]) -> optax.GradientTransformation:
        """The spec's own, at the rate of this step."""
        rate = rate_at(program.schedule, lr, taken, program.most_steps)
        return optimiser(cast(Optimiser, program.optimiser), rate, program.weight_decay)

    def rounded(self, program: Memory, weights: Weights) -> Weights | None:
        """The weights at the spec's number of bits."""
        return round_weights(weights, program.bits) if program.bits else None

    def arguments(self, jobs: Sequence[MemoryJob]) -> tuple[Keys, UInt32[Array, "n"]]:
        """Streams and numbers of items."""
        return draw_streams(jobs)

    def begin(self, program: Memory, arguments: tuple[Keys, UInt32[Array, ""]]) -> tuple[Pairs, Weights]:
        """Items with their answers, and the initial weights."""
        keys, items = arguments
        pairs = draw_pairs(program, keys, items)._replace(samples=ItemStreams(keys["sample"], keys["noise"]))
        return pairs, draw_weights(program, keys)

    def loss(self, program: Memory, world: Pairs, weights: Weights, taken: UInt32[Array, ""]) -> Float[Array, ""]:
        """-ln p(f(x)), averaged over the items by their frequencies, or over the samples of a batch."""
        if program.batch:
            return self._loss_of_batch(program, world, weights, taken)
        log_p = jax.nn.log_softmax(logits(program, world, weights, world.E), axis=-1)
        own = jnp.take_along_axis(log_p, world.label[:, None], axis=1)[:, 0]
        if program.label_noise:
            # The expectation over labels: with probability `label_noise` each of the M is as likely as the others.
            labels = program.outputs or world.items
            any_label = jnp.arange(program.labels, dtype=jnp.uint32) < labels
            mean = jnp.sum(jnp.where(any_label, log_p, 0.0), axis=1) / jnp.asarray(labels, own.dtype)
            own = (1 - program.label_noise) * own + program.label_noise * mean
        live = jnp.arange(program.items, dtype=jnp.uint32) < world.items
        if program.frequencies != UNIFORM:
            return -jnp.sum(jnp.asarray(program.probabilities, own.dtype) * own)
        return -jnp.sum(jnp.where(live, own, 0.0)) / world.items.astype(own.dtype)

    def _loss_of_batch(
        self, program: Memory, world: Pairs, weights: Weights, taken: UInt32[Array, ""]
    ) -> Float[Array, ""]:
        """The same for samples t B, ..., t B + B - 1, B the batch and t the steps taken."""
        assert world.samples is not None
        rows = taken * jnp.uint32(program.batch) + jnp.arange(program.batch, dtype=jnp.uint32)
        table = alias_table(program.frequencies, program.items)
        labels = jnp.uint32(program.outputs) if program.outputs else world.items
        entries = None if table is None else jnp.asarray(table)
        asked = draw_items(
            world.samples, rows, world.items, world.label, labels, table=entries, noise=program.label_noise
        )
        log_p = jax.nn.log_softmax(logits(program, world, weights, world.E[asked.item]), axis=-1)
        return -jnp.mean(jnp.take_along_axis(log_p, asked.label[:, None], axis=1))

    def measure(self, program: Memory, world: Pairs, weights: Weights) -> dict[str, Float[Array, ""]]:
        """The share of items whose own answer has the largest logit."""
        right = items_right(program, world, weights)
        count = jnp.sum(right.astype(world.E.dtype))
        shares = {"accuracy": count / world.items.astype(world.E.dtype)}
        if program.frequencies != UNIFORM:
            p = jnp.asarray(program.probabilities, world.E.dtype)
            shares["accuracy_by_sequence"] = jnp.sum(jnp.where(right[: len(p)], p, 0.0))
        return shares

    def construct(self, program: Memory, jobs: Sequence[MemoryJob]) -> list[dict[str, float]]:
        """The accuracy of sums over items, of least squares, or of one step."""
        measured = {"hebbian": _recall_hebbian, "least-squares": _solve, "one-step": _take_one_step}[program.method](
            program, jobs
        )
        # A GPU multiplies by 1/N instead of dividing, and may end up a rounding error above 1.
        return [{name: min(1.0, float(share)) for name, share in row.items()} for row in measured]

    def bytes_needed(self, program: Memory) -> int:
        """The bytes of logits, hidden units, items, answers and weights."""
        N, M, d, m = program.items, program.labels, program.dim, program.width or program.rank
        asked = program.batch or N
        at_once = asked * M if program.method == "trained" else min(N * M, LOGITS_AT_ONCE)
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
        if program.method == "one-step":
            # The gradient and its factors in double precision, and the ranks that are asked for, about a sixth.
            return (4 * N * d**2 + 40 * d**3 + N * M * d / 6) * rates.product + N * M / 6 * rates.unit + rates.step
        products = N * M * d + 6 * N * m * d
        units = 0.8 * N * M + N * m + 4 * program.parameters
        return products * rates.product + units * rates.unit + rates.step

    def cost(self, spec: Memory, platform: str) -> Cost:
        """Small memories first; batches are not split, since all gain from running side by side."""
        return super().cost(spec, platform)._replace(order=float(spec.items))


MEMORY = MemoryKind()


def items_right(program: Memory, pairs: Pairs, weights: Weights) -> Bool[Array, "K"]:
    """Which items' own answer has the largest logit, block by block; items beyond the memory's own are never right."""
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
    return hits.reshape(-1) & live


def _recall_hebbian(program: Memory, jobs: Sequence[MemoryJob]) -> list[Shares]:
    shares = _measure_hebbian(program, *draw_streams(jobs))
    return [{name: part[row] for name, part in shares.items()} for row in range(len(jobs))]


@partial(jax.jit, static_argnames="program")
def _measure_hebbian(program: Memory, keys: Keys, items: UInt32[Array, "n"]) -> dict[str, Float[Array, "n"]]:
    def recall(row: tuple[Keys, UInt32[Array, ""]]) -> dict[str, Float[Array, ""]]:
        keys, items = row
        pairs = draw_pairs(program, keys, items)
        return _with_rounding(program, pairs, construct(program, keys, pairs))

    return jax.lax.map(recall, (keys, items))


def _with_rounding(program: Memory, pairs: Pairs, weights: Weights) -> dict[str, Float[Array, ""]]:
    """The measurements of weights; with bits, those of the rounded ones, and the accuracy before."""
    measured = MEMORY.measure(program, pairs, weights)
    rounded = MEMORY.rounded(program, weights)
    if rounded is None:
        return measured
    return {**MEMORY.measure(program, pairs, rounded), UNROUNDED: measured["accuracy"]}


def _solve(program: Memory, jobs: Sequence[MemoryJob]) -> list[Shares]:
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
    shares = _measure_rows(program, pairs, Full(jnp.asarray(np.stack(weights), float)))
    return [{name: part[row] for name, part in shares.items()} for row in range(len(jobs))]


@partial(jax.jit, static_argnames="program")
def _measure_rows(program: Memory, pairs: Pairs, weights: Weights) -> dict[str, Float[Array, "n"]]:
    return over_rows(partial(_with_rounding, program), pairs, weights)


def _take_one_step(program: Memory, jobs: Sequence[MemoryJob]) -> list[Shares]:
    """What one step stores, one memory at a time: these may have far more items than others."""
    return [_shares_of_step(program, spec, seed) for spec, seed in jobs]


def _shares_of_step(program: Memory, spec: Memory, seed: int) -> Shares:
    world, _ = MEMORY.start(program, draw_streams([(spec, seed)]))
    pairs = jax.tree.map(lambda part: part[0], world)
    W = one_step_matrix(spec, pairs)
    right = right_by_rank(program, spec.items, pairs, W)
    shares: Shares = {"accuracy": float(right.mean())}
    if spec.bits:
        shares = {UNROUNDED: float(right.mean())}
        right = right_by_rank(program, spec.items, pairs, round_weights(W, spec.bits))
        shares["accuracy"] = float(right.mean())
    if spec.frequencies != UNIFORM:
        shares["accuracy_by_sequence"] = float(spec.probabilities[right].sum())
    return shares
