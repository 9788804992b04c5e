r"""Transformers of any width d up to that of one compiled program, and the least d at which training succeeds.

A training with a smaller d begins with zeros in all coordinates of the residual stream beyond, in embeddings and in
every matrix. Their gradients vanish, so that they stay zero, and it is the smaller model. This needs a model without
norms, whose means are taken over all coordinates. With `narrow_heads` the heads' dimension falls with d as well;
otherwise it stays that of the program. Nothing is kept in the store: what differs between trainings is no part of a
spec.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mnemoscope.engine.random import named_key
from mnemoscope.experiments.estimate.limits import search_limits, turned
from mnemoscope.experiments.estimate.search import Place
from mnemoscope.models.transformer import Weights
from mnemoscope.spec import Transformer
from mnemoscope.studies.seed_limits import Point, limit_point
from mnemoscope.training.answering import World
from mnemoscope.training.trained import State
from mnemoscope.training.transformer import TRANSFORMER

# What is drawn with a variance that falls as 1/d, and what has an axis for a head's dimension, the last but one.
NARROWED = ("E", "U", "O", "W1", "b", "P", "mark")
OF_HEADS = ("Q", "K", "V", "O")
# The only arrays without an axis for the coordinates of the residual stream, the last one.
WITHOUT = ("b",)


@dataclass(frozen=True)
class Narrowed:
    """A setting whose `dim` is the most, and how trainings with less are made from it.

    `table`, if given, draws the answers of facts for a seed: a row for each subject, a column for each relation.
    """

    spec: Transformer
    narrow_heads: bool = False
    table: Callable[[np.random.Generator], np.ndarray] | None = None

    def begin(self, dims: Sequence[int], seeds: Sequence[int], platform: str) -> tuple[World, State]:
        """The worlds and the first states of some trainings."""
        program = TRANSFORMER.program(self.spec, platform)
        jobs = [(self.spec, seed) for seed in seeds]
        world, state = TRANSFORMER.start(program, TRANSFORMER.arguments(jobs))
        if self.table is not None:
            assert world.tables.answers is not None
            answers = np.array(world.tables.answers)
            for row, seed in enumerate(seeds):
                drawn = self.table(np.random.default_rng(named_key(seed, "narrow-table")))
                answers[row, : drawn.shape[0], : drawn.shape[1]] = drawn
            world = world._replace(tables=world.tables._replace(answers=jnp.asarray(answers)))
        world = world._replace(fixed=self.narrow(world.fixed, dims))
        return world, state._replace(weights=self.narrow(state.weights, dims))

    def narrow(self, weights: Weights, dims: Sequence[int]) -> Weights:
        """Weights for these d, one for each row: zero beyond, and otherwise with the variances of these d."""
        most, head_dim = self.spec.dim, self.spec.head_size
        d = jnp.asarray(dims)
        k = jnp.maximum(1, d * head_dim // most) if self.narrow_heads else jnp.full(len(dims), head_dim)

        def within(size: int, limit: Array, part: Array, axis: int) -> Array:
            place = [1] * part.ndim
            place[axis] = size
            return jnp.arange(size).reshape(place) < limit.reshape(-1, *[1] * (part.ndim - 1))

        def of(name: str, part: Array) -> Array:
            rows = (-1, *[1] * (part.ndim - 1))
            if name in NARROWED:
                part = part * jnp.sqrt(most / d).reshape(rows)
            if name in OF_HEADS:
                # Q, K and V ~ N(0, 1/d_h); O does not depend on it.
                part = part * (1.0 if name == "O" else jnp.sqrt(head_dim / k).reshape(rows))
                part = jnp.where(within(head_dim, k, part, part.ndim - 2), part, 0.0)
            return part if name in WITHOUT else jnp.where(within(most, d, part, part.ndim - 1), part, 0.0)

        return {name: of(name, part) for name, part in weights.items()}

    def steps_needed(self, dims: Sequence[int], seeds: Sequence[int], platform: str) -> list[int | None]:
        """The steps after which each training first reaches the target accuracy; None if it never does."""
        program = TRANSFORMER.program(self.spec, platform)
        world, state = self.begin(dims, seeds, platform)
        lr = jnp.full(len(seeds), self.spec.lr)
        reached: list[int | None] = [None] * len(seeds)
        for taken in range(TRANSFORMER.check, self.spec.max_steps + 1, TRANSFORMER.check):
            state, found = TRANSFORMER.advance(program, TRANSFORMER.check, world, state, lr)
            for row, accuracy in enumerate(np.asarray(found["accuracy"])):
                if reached[row] is None and accuracy >= self.spec.target:
                    reached[row] = taken
            if None not in reached:
                break
        return reached


def critical_dim(task: Narrowed, guess: float, seeds: Sequence[int], platform: str) -> Point:
    """Every seed's least d that reaches the target with all steps (`each`), and with half of them (`half`).

    What one of the two searches has trained serves the other.
    """
    tried: dict[Place, int | None] = {}
    count = len(seeds)

    def search(steps: int) -> list[float | None]:
        asking = turned(search_limits(guess, largest=task.spec.dim, seeds_at_first=count, most_seeds=count))
        places = next(asking)
        while True:
            tried.update(_train(task, [at for at in places if at not in tried], seeds, platform))
            try:
                places = asking.send({at: (tried[at] or math.inf) <= steps for at in places})
            except StopIteration as end:
                return list(end.value.each)

    each, half = search(task.spec.max_steps), search(task.spec.max_steps // 2)
    # d lies between two neighbouring integers, n and n + 1, or in a bracket of 3 %.
    resolution = max(0.03, 1 / math.floor(min((limit for limit in each if limit), default=1.0)))
    return {**limit_point(each, resolution), "half": half, "trainings": len(tried)}


def _train(task: Narrowed, places: Sequence[Place], seeds: Sequence[int], platform: str) -> dict[Place, int | None]:
    """The steps that each d and seed needs: on a GPU side by side, on a CPU one after another."""
    if not places:
        return {}
    dims, own = [int(value) for value, _ in places], [seeds[number] for _, number in places]
    if platform == "cpu":
        steps = [task.steps_needed([dim], [seed], platform)[0] for dim, seed in zip(dims, own, strict=True)]
        return dict(zip(places, steps, strict=True))
    # Always as many rows, so that one compiled program serves every round.
    spare = len(seeds) - len(places)
    steps = task.steps_needed(dims + dims[-1:] * spare, own + own[-1:] * spare, platform)
    return dict(zip(places, steps, strict=False))
