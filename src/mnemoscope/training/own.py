"""Training a user's model on a user's task: fresh samples in every step, until the target or the last step.

Step t takes the samples t B, ..., t B + B - 1 of the task. Checks take samples from another range of indices, and the
reported accuracy those of a third. Costs are estimated from the operations of one step, as JAX traces it.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.random import named_key
from mnemoscope.engine.rates import Rates
from mnemoscope.engine.words import Words
from mnemoscope.models.own import Parts, attention_of, logits_of, parts_of
from mnemoscope.spec import Own, SpecError
from mnemoscope.spec.objects import find_object, place_in
from mnemoscope.spec.own import MOST_SAMPLES
from mnemoscope.tasks.own import Samples, draw_samples
from mnemoscope.training.optimisers import OPTIMISERS, Rate
from mnemoscope.training.trained import Trained

OwnJob = tuple[Own, int]
Weights = list[Any]
# The streams of a task and of a model's initial parameters.
Keys = tuple[UInt32[Array, "2"], UInt32[Array, "2"]]
STREAMS = ("own-task", "own-model")
# The first indices of the samples for checks, and for the reported accuracy.
CHECKS, REPORT = MOST_SAMPLES, MOST_SAMPLES + 2**30


class World(NamedTuple):
    """What stays fixed in a training: the task's words, parameters that are not trained, and the tests' first index."""

    words: Words
    others: Weights
    tests: UInt32[Array, "*n"]


class Step(NamedTuple):
    """What one step takes: the numbers it holds, multiplications of matrices, and results of all operations."""

    bytes: int
    products: int
    results: int


class OwnKind(Trained):
    """Models and tasks of the user's own."""

    compile_seconds = {"cpu": 3.0, "gpu": 12.0}  # noqa: RUF012 - never changed
    size_field = "batch"
    unseen_test = True

    def program(self, spec: Own, platform: str = "cpu") -> Own:
        """The same model, task and batch; rates, limits and targets are arguments."""
        return spec.replace(lr=0.01, max_steps=1, target=0.99)

    def arguments(self, jobs: Sequence[OwnJob]) -> tuple[UInt32[Array, "n 2"], UInt32[Array, "n 2"]]:
        """The streams of the task and the model of each job; a seed has the same ones at every size."""
        for spec, _ in jobs:
            prove(spec)
        task, model = (np.stack([named_key(seed, name) for _, seed in jobs]) for name in STREAMS)
        return jnp.asarray(task), jnp.asarray(model)

    def begin(self, program: Own, arguments: Keys) -> tuple[World, Weights]:
        """The task's stream, and the initial parameters."""
        task, model = arguments
        key = jax.random.wrap_key_data(model, impl="threefry2x32")
        params = program.build("model").init(key, program.build("task"))
        trained, others = shape_of(program).split(params)
        return World(Words(task), others, jnp.uint32(CHECKS)), trained

    def loss(self, program: Own, world: World, weights: Weights, taken: UInt32[Array, ""]) -> Float[Array, ""]:
        """The cross-entropy on the fresh samples of one step."""
        index = taken * jnp.uint32(program.batch) + jnp.arange(program.batch, dtype=jnp.uint32)
        samples = samples_of(program, world.words, index)
        log_p = jax.nn.log_softmax(_logits(program, world, weights, samples), axis=-1)
        return -jnp.mean(jnp.take_along_axis(log_p, samples.label[:, None], axis=1))

    def measure(self, program: Own, world: World, weights: Weights) -> dict[str, Float[Array, ""]]:
        """The share of right answers and, where it is defined, of right attention."""
        index = world.tests + jnp.arange(program.test_samples, dtype=jnp.uint32)
        samples = samples_of(program, world.words, index)
        made = _logits(program, world, weights, samples)
        right = {"accuracy": jnp.argmax(made, axis=1) == samples.label}
        if samples.position is not None:
            params = shape_of(program).join(weights, world.others)
            attention = attention_of(place_in(program.model), program.build("model"), params, samples.tokens)
            if attention is not None:
                right["attention_accuracy"] = jnp.argmax(attention, axis=1) == samples.position
        return {name: jnp.mean(part, dtype=made.dtype) for name, part in right.items()}

    def unseen(self, world: World) -> World:
        """The world with samples that no check has used."""
        return world._replace(tests=jnp.full_like(world.tests, REPORT))

    def optimiser(self, program: Own, lr: Rate, taken: UInt32[Array, ""]) -> optax.GradientTransformation:
        """The user's own transformation, or one of ours by its name."""
        if program.optimiser in OPTIMISERS:
            return OPTIMISERS[program.optimiser](lr)
        return find_object("optimiser", program.optimiser)

    def bytes_needed(self, program: Own) -> int:
        """What one step holds at most, and the weights with the optimiser's moments."""
        return step_of(program).bytes + 16 * weight_count(program)

    def step_products(self, program: Own) -> int:
        """The multiplications of a step's matrix products."""
        return step_of(program).products

    def step_seconds(self, program: Own, rates: Rates) -> float:
        """Products, results of all operations, and the optimiser."""
        step = step_of(program)
        units = step.results + 12 * weight_count(program)
        return step.products * rates.product + units * rates.unit + rates.step


OWN = OwnKind()


def keys_of(seed: int) -> Keys:
    """The streams of one seed."""
    task, model = (jnp.asarray(named_key(seed, name)) for name in STREAMS)
    return task, model


def samples_of(program: Own, words: Words, index: UInt32[Array, "B"]) -> Samples:
    """The samples of these indices."""
    return draw_samples(place_in(program.task), program.build("task"), words, index)


def _logits(program: Own, world: World, weights: Weights, samples: Samples) -> Float[Array, "B A"]:
    params = shape_of(program).join(weights, world.others)
    labels = program.build("task").labels
    return logits_of(place_in(program.model), program.build("model"), params, samples.tokens, labels)


@lru_cache(maxsize=256)
def shape_of(program: Own) -> Parts:
    """The shape of the model's parameters."""
    return parts_of(place_in(program.model), program.build("model"), program.build("task"))


def weight_count(program: Own) -> int:
    """The number of trained weights."""
    parts = shape_of(program)
    return sum(int(np.prod(one.shape)) for one, trained in zip(parts.shapes, parts.trained, strict=True) if trained)


_proved: set[tuple[str, str]] = set()


def prove(spec: Own) -> None:
    """Refuse a model or a task whose first numbers make no sense; asked once for each pair of them."""
    if (spec.model, spec.task) in _proved:
        return
    program = OWN.program(spec).replace(batch=8)
    world, weights = OWN.begin(program, keys_of(0))
    samples = samples_of(program, world.words, jnp.arange(8, dtype=jnp.uint32))
    task = program.build("task")
    for what, part, bound in (("tokens", samples.tokens, task.vocab), ("labels", samples.label, task.labels)):
        wrong = np.asarray(part)[(np.asarray(part) < 0) | (np.asarray(part) >= bound)]
        if wrong.size:
            raise SpecError("task", f"expected {what} below {bound} from {place_in(spec.task)}, got {wrong.flat[0]}")
    made = np.asarray(_logits(program, world, weights, samples))
    if not np.isfinite(made).all():
        wrong_count = int((~np.isfinite(made)).sum())
        raise SpecError(
            "model",
            f"expected finite logits from {place_in(spec.model)}, got {wrong_count} of {made.size} that are not",
        )
    _proved.add((spec.model, spec.task))


@lru_cache(maxsize=256)
def step_of(program: Own) -> Step:
    """What one step takes, by the operations that JAX traces."""

    def gradient(keys: Keys) -> Any:
        world, weights = OWN.begin(program, keys)
        return jax.grad(lambda weights: OWN.loss(program, world, weights, jnp.uint32(0)))(weights)

    traced = jax.make_jaxpr(gradient)(keys_of(0))
    sizes, products = [], 0
    for equation in _equations(traced.jaxpr):
        sizes.append(sum(int(np.prod(out.aval.shape)) for out in equation.outvars if hasattr(out.aval, "shape")))
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            inner = int(np.prod([equation.invars[0].aval.shape[axis] for axis in contracted]))
            products += sizes[-1] * inner
    # Most results are used at once; those that the backward pass needs are kept.
    return Step(4 * max(sum(sizes) // 4, max(sizes, default=0)), products, sum(sizes))


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Every operation, in functions that are called, too."""
    for equation in jaxpr.eqns:
        inner = [part for part in jax.tree.leaves(list(equation.params.values())) if hasattr(part, "jaxpr")]
        if not inner:
            yield equation
        for part in inner:
            yield from _equations(part.jaxpr)
