"""Where the time goes: each stage of the three steps alone, and what bare scatters cost.

Stages are compiled and timed one by one, so each carries the cost of starting a call, which is
timed as well. Bare scatters add one scalar for every token to a place that is known before: no
random numbers, no look-ups. They are the floor of any pass that counts tokens with additions to
shared memory, which is what bounds the attention-only model on a GPU.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from mnemoscope.engine import random
from mnemoscope.engine.device import find_device, numerics
from mnemoscope.engine.layout import Layout
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.models.frozen import make_frozen
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.tasks.retrieval import sample
from mnemoscope.training.three_step import by_token, by_winner
from mnemoscope.training.three_step.streaming import Count, Source
from mnemoscope.ui.bench.worker import seconds_of

REPEATS = 9


def check_profile(spec: Retrieval) -> None:
    """Refuse a setting whose steps have other stages."""
    if spec.width or spec.eta != "limit" or spec.attention == "locked":
        raise SpecError("profile", "expected the attention-only model in its limit")


def profile(spec: Retrieval, device: Device, budget: int | None = None) -> dict[str, float]:
    """Seconds of every stage, in the order of the steps."""
    check_profile(spec)
    place = find_device(device)
    with numerics("float32", place):
        layout = plan_memory(spec, "float32", MemoryBudget.of(place, budget))
        if layout.tables != "dense":
            raise SpecError("profile", "expected a vocabulary whose tables fit in memory")
        streams = random.streams(spec, 0)
        frozen = make_frozen(spec, streams)
        source = Source.of(spec, streams["train"], frozen.permutation)
        return {
            "starting a call": _seconds(lambda x: x + 1, jnp.zeros(1)),
            **_stages(spec, layout, frozen, source),
            **_bare_scatters(spec, source),
        }


def _stages(spec: Retrieval, layout: Layout, frozen: Frozen, source: Source) -> dict[str, float]:
    program, count = spec.program(), Count.of(spec.samples)
    counting = partial(by_token.count_pairs, program, layout, source)
    counts = jax.jit(counting)(count)
    first = partial(by_token.first_gradient, program, layout, frozen)
    V1 = jax.jit(first)(counts, count)
    second = partial(by_token.attention_direction, program, layout, frozen, source)
    alpha = jax.jit(second)(counts, V1, count)
    last = partial(by_winner.last_gradient, program, layout, frozen, source)
    return {
        "step 1, counting pairs": _seconds(counting, count),
        "step 1, gradient from counts": _seconds(first, counts, count),
        "step 2, table and second pass": _seconds(second, counts, V1, count),
        "step 3, winners and gradient": _seconds(last, V1, alpha, count),
    }


def _bare_scatters(spec: Retrieval, source: Source) -> dict[str, float]:
    index = jnp.arange(spec.samples, dtype=jnp.uint32)
    draw = jax.jit(lambda source: sample(source.key, index, source.permutation, spec.length))
    batch = draw(source)
    cells = (batch.label[:, None] * jnp.uint32(spec.vocab) + batch.tokens).reshape(-1)
    copy = jnp.broadcast_to(index[:, None] % jnp.uint32(64), batch.tokens.shape).reshape(-1)
    token = copy * jnp.uint32(spec.vocab) + batch.tokens.reshape(-1)

    def add(cells: jax.Array, size: int, one: Any) -> jax.Array:
        return jnp.zeros(size, jnp.result_type(one)).at[cells].add(one, mode="promise_in_bounds")

    pairs = partial(add, size=spec.vocab**2, one=jnp.int32(1))
    tokens = partial(add, size=64 * spec.vocab, one=jnp.float32(1))
    return {
        "drawing the tokens once": _seconds(lambda source: draw(source), source),
        "bare scatter, pairs of tokens": _seconds(pairs, cells),
        "bare scatter, tokens": _seconds(tokens, token),
    }


def _seconds(stage: Callable[..., Any], *arguments: Any) -> float:
    """The median time of a stage, compiled."""
    compiled = jax.jit(stage)
    jax.block_until_ready(compiled(*arguments))
    return statistics.median(seconds_of(partial(compiled, *arguments), REPEATS))
