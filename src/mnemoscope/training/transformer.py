r"""Training a `Transformer`: fresh sequences by their number in every step, and what it has learned.

Step t takes sequences t B, ..., t B + B - 1 of the training stream. Checks are on sequences of another stream, and what
is reported at the end on those of a third. Seeds and learning rates, and on a GPU also sizes up to the program's own,
train side by side in one program.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int32, UInt32

from mnemoscope.engine.device import Precision
from mnemoscope.engine.kinds import Cost
from mnemoscope.engine.rates import Rates
from mnemoscope.models.transformer import Weights, draw_weights, model_keys
from mnemoscope.spec.token_laws import MOST_UNEVEN, UNIFORM
from mnemoscope.spec.transformer import Transformer
from mnemoscope.tasks.label_noise import replace_labels, word_below
from mnemoscope.tasks.sequences import Counts, Keys, Which, ask, draw_tables, task_keys
from mnemoscope.training.answering import World, heads, measured, outputs_of, read_answers, surprise
from mnemoscope.training.optimisers import Rate, optimiser, rate_at
from mnemoscope.training.recalled_items import measure_items
from mnemoscope.training.trained import Trained

TransformerJob = tuple[Transformer, int]
# The most trainings side by side on a GPU; memory may allow fewer.
MOST_AT_ONCE = 64
# This many multiplications in a step keep a GPU busy.
BUSY = 2**33
# On a GPU a step with MLPs of this size takes no longer than with smaller ones.
LEAST_WIDTH = 64
# Numbers kept for the backward pass: this many vectors for each token and layer.
KEPT = 12
# What muon does not orthogonalise, since rows of these stand for tokens and positions.
TABLES = ("E", "U", "P", "mark", "gain", "shift", "b")


class TransformerKind(Trained):
    """Transformers of any depth."""

    compile_seconds = {"cpu": 5.0, "gpu": 20.0}  # noqa: RUF012 - never changed
    compiler_options = {"xla_gpu_autotune_level": 1, "xla_gpu_enable_triton_gemm": True}  # noqa: RUF012
    size_field = "batch"
    unseen_test = True

    def program(self, spec: Transformer, platform: str = "cpu") -> Transformer:
        """Sizes of facts are rounded up to a quarter of an octave, the MLP's width to a power of two.

        The surplus is zero, or never occurs. Where every number has an effect on the optimiser, as with muon, nothing
        is rounded, nor are facts with frequencies, whose table has no padding.
        """
        steps = 1 if spec.schedule == "constant" else spec.max_steps  # a schedule is compiled for its number of steps
        same: dict[str, Any] = {"lr": 0.01, "max_steps": max(steps, 1), "target": 0.99, "stop": "target", "context": 0}
        if spec.positions == "learned":
            same["context"] = spec.places
        if spec.optimiser != "muon":
            if spec.width:
                least = 8 if platform == "cpu" else LEAST_WIDTH
                same["width"] = max(least, _power_of_two(spec.width))
            if spec.task == "facts" and spec.frequencies == UNIFORM:
                names = ("subjects", "relations", "answers")
                same |= {name: _quarter_octave(getattr(spec, name)) for name in names}
                same["noise"] = _quarter_octave(spec.noise_tokens)
                same["new_subjects"] = spec.new_subjects and _quarter_octave(spec.new_subjects)
        if spec.new_subjects:
            # The step at which the second batch begins is an argument.
            same |= {"first_steps": 1, "max_steps": max(steps, 2)}
        if spec.task == "random-strings":
            same["strings"] = _quarter_octave(spec.strings)
        if spec.overlap:
            same["overlap"] = 0.5
        if spec.frequencies != UNIFORM:
            same["frequencies"] = MOST_UNEVEN
        return spec.replace(**same)

    def arguments(self, jobs: Sequence[TransformerJob]) -> tuple[Keys, Counts, Int32[Array, "n"]]:
        """Streams, numbers of the task, and hidden units of each job."""
        streams = [{**model_keys(spec, seed), **_prefixed(task_keys(spec, seed))} for spec, seed in jobs]
        keys = {name: jnp.asarray(np.stack([each[name] for each in streams])) for name in streams[0]}
        counts = jax.tree.map(lambda *parts: jnp.stack(parts), *(Counts.of(spec) for spec, _ in jobs))
        return keys, counts, jnp.asarray([spec.width for spec, _ in jobs], jnp.int32)

    def begin(self, program: Transformer, arguments: tuple[Keys, Counts, Int32[Array, ""]]) -> tuple[World, Weights]:
        """What is drawn once, and the initial weights."""
        keys, counts, width = arguments
        weights, fixed = draw_weights(program, keys, width)
        own = {name.removeprefix(TASK): key for name, key in keys.items() if name.startswith(TASK)}
        return World(counts, draw_tables(program, counts, own["table"]), fixed, own), weights

    def loss(self, program: Transformer, world: World, weights: Weights, taken: UInt32[Array, ""]) -> Float[Array, ""]:
        """The cross-entropy of the answers to the sequences of one step."""
        rows = taken * jnp.uint32(program.batch) + jnp.arange(program.batch, dtype=jnp.uint32)
        second = taken >= world.counts.first_steps if program.new_subjects else None
        asked = ask(program, world.counts, world.tables, world.keys, Which("train", rows, second=second))
        answer = asked.answer
        if program.label_noise:
            noise, outputs = jnp.uint32(word_below(program.label_noise)), outputs_of(program, world)
            reads = answer.shape[1]
            each = (rows[:, None] * jnp.uint32(reads) + jnp.arange(reads, dtype=jnp.uint32)).reshape(-1)
            answer = replace_labels(world.keys["noise"], noise, each, answer.reshape(-1), outputs).reshape(answer.shape)
        return jnp.mean(surprise(read_answers(program, world, weights, asked).logits, answer))

    def optimiser(self, program: Transformer, lr: Rate, taken: UInt32[Array, ""]) -> optax.GradientTransformation:
        """The spec's own, at the rate of this step."""
        rate = rate_at(program.schedule, lr, taken, program.max_steps)
        return optimiser(program.optimiser, rate, program.weight_decay, tables=TABLES)

    def measure(self, program: Transformer, world: World, weights: Weights) -> dict[str, Float[Array, ""]]:
        """Accuracy on test sequences, confidence, and the share of attention on what decides.

        With a second batch of facts, accuracy is that on the second one, and `old_accuracy` that on the first.
        """
        rows = jnp.arange(program.test_samples, dtype=jnp.uint32)
        second = jnp.bool_(True) if program.new_subjects else None
        found = measured(program, world, weights, Which("test", rows, second=second))
        if second is not None:
            old = measured(program, world, weights, Which("test", rows, second=~second))
            found |= {f"old_{name}": old[name] for name in ("accuracy", "hallucination")}
        return found

    def unseen(self, world: World) -> World:
        """The world with test sequences that no check has used."""
        return world._replace(keys={**world.keys, "test": world.keys["final"]})

    def at_end(self, program: Transformer, world: World, weights: Weights) -> dict[str, Float[Array, ""]]:
        """Everything once more on fresh sequences, where every head looks, and what is known of each fact or string."""
        rows = jnp.arange(program.test_samples, dtype=jnp.uint32)
        second = jnp.bool_(True) if program.new_subjects else None
        which = Which("test", rows, second=second)
        found = {**self.measure(program, world, weights), **heads(program, world, weights, which)}
        found.pop("accuracy")  # reported in any case
        return found | measure_items(program, world, weights) if program.facts else found

    def precision_of(self, program: Transformer, asked: Precision) -> Precision:
        """The spec's own; with bfloat16 weights are float32."""
        return asked if program.precision == "float32" else "float64" if program.precision == "float64" else "float32"

    def bytes_needed(self, program: Transformer) -> int:
        """Vectors, attention and logits of a step and its backward pass, and four numbers for each weight."""
        sizes, size = program.sizes, 8 if program.precision == "float64" else 4
        T, d, H, m = sizes.positions, program.dim, program.heads, program.width
        tokens = program.batch * T
        each = KEPT * d + 4 * H * program.head_size + 3 * m + 3 * H * T
        logits = 4 * program.batch * sizes.reads * sizes.outputs
        embeddings = (sizes.tokens + sizes.outputs) * d
        tables = sizes.tokens**2 if program.task == "induction" else sizes.items
        drawn = program.batch * program.vocab if program.task == "mqar" else tokens
        weights = 4 * (program.parameters + embeddings)
        return size * (program.layers * tokens * each + logits + weights) + 4 * (2 * tables + 4 * drawn)

    def too_large(self, program: Transformer) -> str:
        """The field that makes the largest part of what a training holds."""
        sizes = program.sizes
        T, d = sizes.positions, program.dim
        tokens = program.layers * program.batch * T
        longest = {"mqar": "pairs"}.get(program.task, "length")
        many = {"facts": "subjects", "random-strings": "strings"}.get(program.task, "vocab")
        parts = {
            longest: 3 * tokens * program.heads * T,
            "width": 3 * tokens * program.width,
            "dim": tokens * KEPT * d + 4 * program.layers * program.heads * program.head_size * d,
            many: 4 * program.batch * sizes.reads * sizes.outputs + (sizes.tokens + sizes.outputs) * d,
        }
        return max(parts, key=lambda name: parts[name])

    def step_products(self, program: Transformer) -> int:
        """The multiplications of the forward pass."""
        sizes = program.sizes
        T, d, L = sizes.positions, program.dim, program.layers
        inner = program.heads * program.head_size
        # The last layer's queries, outputs and MLP are computed where an answer is read.
        whole, read_only = program.batch * T, program.batch * sizes.reads
        queried = (L - 1) * whole + read_only
        products = L * whole * 2 * inner * d + queried * (2 * inner * d + 2 * inner * T + 2 * program.width * d)
        return products + read_only * sizes.outputs * d

    def rows_at_once(self, program: Transformer) -> int:
        """A power of two that keeps a GPU busy."""
        rows = MOST_AT_ONCE
        while rows > 8 and rows * self.step_products(program) > BUSY:
            rows //= 2
        return rows

    def step_seconds(self, program: Transformer, rates: Rates) -> float:
        """Products forward and back, elementwise work, draws, and the optimiser's operations."""
        sizes = program.sizes
        T, H, L = sizes.positions, program.heads, program.layers
        tokens = program.batch * T
        units = L * tokens * (H * T + program.width + 4 * program.dim) + program.batch * sizes.reads * sizes.outputs
        units += 12 * program.parameters
        products = 3 * self.step_products(program) * rates.product
        return products + units * rates.unit + tokens * rates.drawn + L * rates.step

    def cost(self, spec: Transformer, platform: str) -> Cost:
        """Trainings of similar difficulty are neighbours, so that they end together."""
        share = 1 / self.rows_at_once(self.program(spec, platform))
        usual = 1.0 if spec.stop == "steps" else None
        cost = super().cost(spec, platform)._replace(order=spec.value_of("facts") / spec.parameters, share=share)
        return cost if usual is None else cost._replace(usual_share=usual)


TRANSFORMER = TransformerKind()
# Streams of the task among those of the model.
TASK = "task-"


def _prefixed(keys: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{TASK}{name}": key for name, key in keys.items()}


def _quarter_octave(number: int) -> int:
    step = max(1, 2 ** (number.bit_length() - 3))
    return -(-number // step) * step


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
