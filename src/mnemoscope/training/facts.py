r"""Paper B's transformer, trained on fresh sequences or constructed.

Step t draws rows t B, ..., t B + B - 1 of the training stream on the device; nothing is drawn in
advance. Trainings that differ in seed, learning rate and any size but d and d_h share a program. The
reported accuracy is on sequences that no check has used. With label noise a share of the training sequences has an
answer that is uniform over all of them; tests ask for the right one.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int32, UInt32

from mnemoscope.engine.free_memory import SINGULAR, SOLVED, check_fits
from mnemoscope.engine.kinds import Cost
from mnemoscope.engine.random import named_key, normal
from mnemoscope.engine.rates import Rates
from mnemoscope.engine.record import UNROUNDED
from mnemoscope.models.constructed import write_weights
from mnemoscope.models.facts import Frozen, Weights, by_position, draw_frozen, draw_weights, logits, scores_per_head
from mnemoscope.models.quantisation import round_weights
from mnemoscope.spec.facts import Facts
from mnemoscope.spec.token_laws import MOST_UNEVEN, UNIFORM
from mnemoscope.tasks.alias import alias_table
from mnemoscope.tasks.facts import Asked, Sizes, draw_facts, draw_sequences
from mnemoscope.tasks.label_noise import replace_labels, word_below
from mnemoscope.theory.associative import GUIDE_FACTS
from mnemoscope.training.optimisers import Rate, optimiser, rate_at
from mnemoscope.training.trained import Trained

Keys = dict[str, UInt32[Array, "*n 2"]]
FactsJob = tuple[Facts, int]
# The most trainings side by side on a GPU; memory may allow fewer.
MOST_AT_ONCE = 64
# This many multiplications in a step keep a GPU busy, from this many trainings on: more trainings
# would only finish later, all at once.
BUSY, SOME = 2**31, 16
# On a GPU a step of these sizes takes no longer than a smaller one.
LEAST = {"subjects": 32, "relations": 32, "answers": 8, "noise": 64, "width": 128}
# Steps of at most this many sequences x tokens x dimensions are cheap compared with a compilation.
SMALL = 2**17


class World(NamedTuple):
    """What stays fixed in a training: sizes, embeddings, facts and streams."""

    sizes: Sizes
    frozen: Frozen
    facts: UInt32[Array, "*n S R"]
    keys: Keys


class Extent(NamedTuple):
    """How many of the program's heads and hidden units a training uses."""

    heads: Int32[Array, "*n"]
    width: Int32[Array, "*n"]


def cross_entropy(
    program: Facts, world: World, weights: Weights, asked: Asked, answer: UInt32[Array, "B"] | None = None
) -> Float[Array, ""]:
    """-ln p(a*(s, r)), averaged over the sequences, or that of other answers."""
    log_p = jax.nn.log_softmax(logits(program, world.sizes, world.frozen, weights, asked.tokens), axis=-1)
    if answer is None:
        answer = world.facts[asked.subject, asked.relation]
    return -jnp.mean(jnp.take_along_axis(log_p, answer[:, None], axis=1))


def noisy_answers(program: Facts, world: World, asked: Asked, rows: UInt32[Array, "B"]) -> UInt32[Array, "B"]:
    """The answers of these training sequences, a share of them replaced by uniform ones."""
    answer = world.facts[asked.subject, asked.relation]
    noise = jnp.uint32(word_below(program.label_noise))
    return replace_labels(world.keys["noise"], noise, rows, answer, world.sizes.outputs)


def draw_streams(spec: Facts, seed: int) -> dict[str, np.ndarray]:
    """Keys by name: a seed has the same facts and sequences at every d, H, m and lr."""
    task = {"subjects": spec.subjects, "relations": spec.relations}
    wide = {**task, "noise": spec.noise_tokens, "length": spec.length}
    keys = {"facts": named_key(seed, "facts", **task, answers=spec.answers)}
    keys |= {name: named_key(seed, f"facts-{name}", **wide) for name in ("train", "test", "final", "noise")}
    names = ("token", "answer", "Q", "K", "V", "O", "W1", "b", "W2", "code")
    return keys | {name: named_key(seed, f"facts-{name}", dim=spec.dim) for name in names}


class FactsKind(Trained):
    """Factual recall."""

    compile_seconds = {"cpu": 3.0, "gpu": 12.0}  # noqa: RUF012 - never changed
    # A training takes thousands of steps of many small products. On a GPU, autotuning these takes ten
    # seconds and halves the time of a step. These options of one program override XLA_FLAGS, which
    # turns autotuning off for all others.
    compiler_options = {"xla_gpu_autotune_level": 1, "xla_gpu_enable_triton_gemm": True}  # noqa: RUF012
    size_field = "batch"
    unseen_test = True

    def program(self, spec: Facts, platform: str = "cpu") -> Facts:
        """Round subjects, relations, answers and noise up to a quarter of an octave, heads and width
        to a power of two. Small steps and GPUs round all sizes up further, GPUs at least to LEAST, so
        that fewer programs are compiled. The surplus is zero, or never occurs.
        """
        if spec.method == "constructed":
            return spec.replace(lr=0.01, max_steps=1, target=0.99)
        small = platform == "cpu" and spec.batch * spec.tokens * spec.dim <= SMALL
        round_up = _power_of_two if small or platform != "cpu" else _quarter_octave
        sizes = {name: round_up(getattr(spec, name)) for name in ("subjects", "relations", "answers")}
        heads, width = _power_of_two(spec.heads), spec.width and max(8, _power_of_two(spec.width))
        if small:
            heads, width = max(8, heads), width and max(64, width)
        sizes |= {"noise": round_up(spec.noise_tokens), "heads": heads, "width": width}
        if platform != "cpu":
            sizes |= {name: sizes[name] and max(size, sizes[name]) for name, size in LEAST.items()}
        if spec.frequencies != UNIFORM:  # their table has no padding
            S, R = spec.subjects, spec.relations
            sizes |= {"subjects": S, "relations": R, "answers": min(sizes["answers"], S)}
        law = UNIFORM if spec.frequencies == UNIFORM else MOST_UNEVEN
        # A schedule is compiled for its number of steps.
        steps = 1 if spec.schedule == "constant" else spec.max_steps
        return spec.replace(**sizes, frequencies=law, lr=0.01, max_steps=steps, target=0.99)

    def arguments(self, jobs: Sequence[FactsJob]) -> tuple[Keys, Sizes, Extent]:
        """Streams, sizes, and the heads and hidden units of each job."""
        streams = [draw_streams(spec, seed) for spec, seed in jobs]
        keys = {name: jnp.asarray(np.stack([keys[name] for keys in streams])) for name in streams[0]}
        sizes = jax.tree.map(lambda *parts: jnp.stack(parts), *(_sizes(spec) for spec, _ in jobs))
        extent = (jnp.asarray([getattr(spec, name) for spec, _ in jobs], jnp.int32) for name in Extent._fields)
        return keys, sizes, Extent(*extent)

    def begin(self, program: Facts, arguments: tuple[Keys, Sizes, Extent]) -> tuple[World, Weights]:
        """Facts, embeddings and initial weights."""
        keys, sizes, extent = arguments
        weights = draw_weights(program, keys, extent.heads, extent.width)
        facts = draw_facts(program, sizes, keys["facts"])
        return World(sizes, draw_frozen(program, keys), facts, keys), weights

    def loss(self, program: Facts, world: World, weights: Weights, taken: UInt32[Array, ""]) -> Float[Array, ""]:
        """The cross-entropy on the fresh sequences of one step."""
        rows = taken * jnp.uint32(program.batch) + jnp.arange(program.batch, dtype=jnp.uint32)
        asked = draw_sequences(program, world.sizes, world.keys["train"], rows)
        answer = noisy_answers(program, world, asked, rows) if program.label_noise else None
        return cross_entropy(program, world, weights, asked, answer)

    def optimiser(self, program: Facts, lr: Rate, taken: UInt32[Array, ""]) -> optax.GradientTransformation:
        """The spec's own, at the rate of this step."""
        return optimiser(
            program.optimiser, rate_at(program.schedule, lr, taken, program.max_steps), program.weight_decay
        )

    def rounded(self, program: Facts, weights: Weights) -> Weights | None:
        """The weights at the spec's number of bits."""
        return round_weights(weights, program.bits) if program.bits else None

    def measure(self, program: Facts, world: World, weights: Weights) -> dict[str, Float[Array, ""]]:
        """The shares of test sequences with the right answer, and with an answer of the right relation."""
        rows = jnp.arange(program.test_samples, dtype=jnp.uint32)
        asked = draw_sequences(program, world.sizes, world.keys["test"], rows)
        named = jnp.argmax(logits(program, world.sizes, world.frozen, weights, asked.tokens), axis=1)
        named = named.astype(jnp.uint32)
        answer = world.facts[asked.subject, asked.relation]
        right_relation = named // world.sizes.answers == asked.relation
        share = partial(jnp.mean, dtype=world.frozen.E.dtype)
        shares = {"accuracy": share(named == answer), "relation_accuracy": share(right_relation)}
        if world.sizes.table is None:
            return shares
        # On sequences of which none decides when training stops.
        asked = draw_sequences(program, world.sizes, world.keys["final"], rows, by_fact=True)
        named = jnp.argmax(logits(program, world.sizes, world.frozen, weights, asked.tokens), axis=1)
        return {**shares, "accuracy_by_fact": share(named == world.facts[asked.subject, asked.relation])}

    def unseen(self, world: World) -> World:
        """The world with test sequences that no check has used."""
        return world._replace(keys={**world.keys, "test": world.keys["final"]})

    def construct(self, program: Facts, jobs: Sequence[FactsJob]) -> list[dict[str, float]]:
        """Measure constructed weights."""
        return [_measure_constructed(program, spec, seed) for spec, seed in jobs]

    def bytes_needed(self, program: Facts) -> int:
        """Attention weights by sample and head, and logits; besides these, tables by token, or, by
        position, the embedded sequences and the heads' pooled vectors.
        """
        B, H, V, d, T = program.batch, program.heads, program.tokens, program.dim, program.length
        tables = 8 * H * V * program.head_dim + 4 * B * V
        others = B * d * (2 * T + 4 * H) if by_position(program) else tables
        return 4 * (6 * B * H * scores_per_head(program) + others + 4 * B * program.outputs)

    def step_products(self, program: Facts) -> int:
        """The products of attention, which are most of a large step."""
        return program.batch * program.heads * scores_per_head(program) * program.dim

    def rows_at_once(self, program: Facts) -> int:
        """A power of two that keeps a GPU busy."""
        times = 2 if by_position(program) else 1  # for scores, and for pooled vectors
        attention, mlp = times * program.heads * scores_per_head(program), 2 * program.width
        work = program.batch * program.dim * (attention + mlp + program.outputs)
        rows = MOST_AT_ONCE
        while rows > SOME and rows * work > BUSY:
            rows //= 2
        return rows

    def step_seconds(self, program: Facts, rates: Rates) -> float:
        """Products, softmaxes, draws, and the optimiser's twelve operations per weight."""
        B, H, d = program.batch, program.heads, program.dim
        weighed = B * H * scores_per_head(program)
        each = 2 * d if by_position(program) else program.head_dim
        products = weighed * each + B * d * (2 * program.width + program.outputs)
        units = weighed + B * (program.outputs + program.width) + 12 * program.parameters
        return 2 * products * rates.product + units * rates.unit + B * program.length * rates.drawn + rates.step

    def cost(self, spec: Facts, platform: str) -> Cost:
        """Trainings of similar difficulty are neighbours, so that they end together.

        With more facts than the authors' guideline allows for its size, a model usually takes all steps.
        """
        share = 1 / self.rows_at_once(self.program(spec, platform))
        cost = super().cost(spec, platform)._replace(order=spec.facts / spec.parameters, share=share)
        return cost._replace(usual_share=1.0) if spec.facts > GUIDE_FACTS * spec.parameters else cost


FACTS = FactsKind()


def _sizes(spec: Facts) -> Sizes:
    return Sizes.of(spec, alias_table(spec.frequencies, spec.facts))


def _quarter_octave(number: int) -> int:
    step = max(1, 2 ** (number.bit_length() - 3))
    return -(-number // step) * step


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def _measure_constructed(program: Facts, spec: Facts, seed: int) -> dict[str, float]:
    _check_construction(spec)
    keys = {name: jnp.asarray(key) for name, key in draw_streams(spec, seed).items()}
    sizes = _sizes(spec)
    frozen, facts = draw_frozen(program, keys), draw_facts(program, sizes, keys["facts"])
    tokens = spec.subjects + spec.relations
    w, draw = (
        np.asarray(normal(keys[name], rows, spec.dim), float) for name, rows in (("W1", spec.width), ("code", tokens))
    )
    E, U = (np.asarray(part, float) for part in frozen)
    weights = Weights(*(jnp.asarray(part, float) for part in write_weights(spec, E, U, np.asarray(facts), w, draw)))
    world = FACTS.unseen(World(sizes, frozen, facts, keys))

    def measured(weights: Weights) -> dict[str, float]:
        rows: Any = jax.tree.map(lambda part: part[None], (world, weights))
        return {name: float(part[0]) for name, part in FACTS.measured(program, *rows).items()}

    rounded = FACTS.rounded(program, weights)
    whole = measured(weights)
    return whole if rounded is None else {**measured(rounded), UNROUNDED: whole["accuracy"]}


def _check_construction(spec: Facts) -> None:
    """Refuse weights that do not fit in memory: the host constructs them in double precision."""
    d, k, m = spec.dim, spec.head_dim, spec.width
    tokens = spec.subjects + spec.relations
    heads = 4 * spec.heads * k * d + SINGULAR * min(k + 1, d) * d
    rows = 5 * (spec.tokens + spec.outputs + tokens) * d
    hidden = 3 * m * d + m * spec.relations
    needed = 8 * (heads + rows + hidden + SOLVED * d**2)
    check_fits("dim", f"{d:,}", needed, "constructing the weights")
