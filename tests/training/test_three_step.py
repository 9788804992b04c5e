"""The fast path against plain autodiff, and the limit of the step sizes as a limit."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from settings import LENGTH, SAMPLES, VOCAB, draw_pieces

from mnemoscope.engine.device import Precision, numerics
from mnemoscope.engine.layout import Layout, choose_layout
from mnemoscope.models.retrieval import Scores, attention_tied, hard_attention, name_label, rounding
from mnemoscope.spec import Activation, Embedding, Retrieval, Trigger
from mnemoscope.tasks.retrieval import draw
from mnemoscope.training.three_step import by_token, streaming
from mnemoscope.training.three_step.algorithm import ThreeSteps, train_three_steps
from mnemoscope.training.three_step.reference import logits, train_by_autodiff

CPU = jax.devices("cpu")[0]


def fast(spec: Retrieval, seed: int, precision: Precision, layout: Layout | None = None) -> ThreeSteps:
    with numerics(precision, CPU):
        frozen, source, _ = draw_pieces(spec, seed)
        return train_three_steps(spec, layout or choose_layout(spec), frozen, source)


def reference(spec: Retrieval, seed: int) -> ThreeSteps:
    with numerics("float64", CPU):
        frozen, _, batch = draw_pieces(spec, seed)
        return train_by_autodiff(spec, frozen, batch)


def apart(got: Any, expected: Any) -> float:
    """|got - expected| / |expected|."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    size = np.linalg.norm(expected)
    return float(np.linalg.norm(got - expected) / size) if size else float(np.linalg.norm(got))


def predictions(spec: Retrieval, seed: int, learned: ThreeSteps) -> np.ndarray:
    """Logits on the training sequences by the plain model, whoever learned the parameters."""
    with numerics("float64", CPU):
        frozen, _, batch = draw_pieces(spec, seed)
        V2, alpha = (jnp.asarray(part, jnp.float64) for part in (learned.V2, learned.alpha))
        gamma = 1.0 if spec.gamma == "limit" else spec.gamma
        attend = "argmax" if spec.gamma == "limit" else "softmax"
        attend = "locked" if spec.attention == "locked" else attend
        W1 = gamma * jnp.outer(alpha, frozen.query)
        return np.asarray(logits(spec, frozen, V2, W1, batch, attend))


def compare(spec: Retrieval, seed: int, got: ThreeSteps, expected: ThreeSteps, bound: float) -> None:
    assert apart(got.V1, expected.V1) < bound
    assert apart(got.alpha, expected.alpha) < bound
    assert apart(got.V2, expected.V2) < bound
    seen, wanted = predictions(spec, seed, got), predictions(spec, seed, expected)
    assert apart(seen, wanted) < bound
    # The labels named may differ only where two logits tie to within the bound.
    best = np.take_along_axis(wanted, seen.argmax(axis=1)[:, None], axis=1)[:, 0]
    assert np.all(wanted.max(axis=1) - best <= 2 * bound * np.abs(wanted).max())


# The kinds of steps: in the limit or not, and with attention locked, which has the limit alone.
STEPS: dict[str, dict[str, Any]] = {
    "limits": dict(),
    "finite eta": dict(eta=2.0),
    "finite eta and gamma": dict(eta=2.0, gamma=50.0),
    "locked": dict(attention="locked"),
}
LAYOUTS = ("dense", "factored")
# Room for an orthonormal frame, and one shape for all laws; as compiled, below, d is less than V.
DIM = VOCAB + 1


@contextmanager
def operation_by_operation() -> Iterator[None]:
    """Without compilation, which takes a hundred times as long as a setting of this size.

    What is drawn are integers, the same however they are computed, and comes from one program.
    """
    program = jax.jit(draw, static_argnames="length")

    def drawn(*given: Any) -> Any:
        with jax.disable_jit(False):
            return program(*given)

    with patch.object(streaming, "draw", drawn), jax.disable_jit():
        yield


# A law, and probabilities at random, of which one is 0.
TOKENS: dict[str, Any] = {
    "zipf": "zipf:1.3",
    "own": np.insert(np.random.default_rng(5).dirichlet(np.full(VOCAB - 1, 0.5)), 3, 0.0),
}
both = pytest.mark.parametrize("trigger", get_args(Trigger))
QUICK = ("none", "relu", "hermite3")
all_of_them = pytest.mark.parametrize("activation", ["none", *get_args(Activation)])
some_of_them = pytest.mark.parametrize(
    "activation",
    [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in get_args(Activation) if name not in QUICK)],
)


def compare_layouts(trigger: str, activation: str, law: str, steps: str, tokens: Any = "uniform") -> None:
    mlp: dict[str, Any] = {} if activation == "none" else dict(width=7, activation=activation)
    sizes = dict(vocab=VOCAB, dim=DIM, length=LENGTH, samples=SAMPLES)
    spec = Retrieval.read({**sizes, "trigger": trigger, "embedding": law, "tokens": tokens, **mlp, **STEPS[steps]})
    with operation_by_operation():
        expected = reference(spec, 0)
        for tables in LAYOUTS:
            layout = choose_layout(spec)._replace(tables=tables)
            compare(spec, 0, fast(spec, 0, "float64", layout), expected, 1e-9)


@some_of_them
@both
def test_fast_path_equals_autodiff(trigger: str, activation: str):
    """Every embedding, trigger, activation, kind of step and layout, in double precision."""
    for law, steps in itertools.product(get_args(Embedding), STEPS):
        compare_layouts(trigger, activation, law, steps)


@pytest.mark.parametrize("activation", QUICK)
@both
def test_fast_path_equals_autodiff_for_tokens_of_any_frequency(trigger: str, activation: str):
    """Every trigger and activation, with kinds of tokens, embeddings and kinds of steps that go round."""
    at = get_args(Activation).index(activation) if activation != "none" else 6
    law = get_args(Embedding)[(at + (trigger == "keys")) % 3]
    for tokens, steps in zip(TOKENS.values(), itertools.islice(itertools.cycle(STEPS), at, None), strict=False):
        compare_layouts(trigger, activation, law, steps, tokens)


@pytest.mark.long
@pytest.mark.parametrize("tokens", TOKENS)
@all_of_them
@both
def test_fast_path_equals_autodiff_for_tokens_of_any_frequency_in_all_cases(trigger: str, activation: str, tokens: str):
    for law, steps in itertools.product(get_args(Embedding), STEPS):
        compare_layouts(trigger, activation, law, steps, TOKENS[tokens])


@pytest.mark.parametrize(
    "values",
    [
        dict(),
        pytest.param(dict(width=7, activation="hermite3", trigger="additive"), marks=pytest.mark.long),
        pytest.param(dict(eta=2.0), marks=pytest.mark.long),
        pytest.param(dict(eta=0.5, gamma=40.0, trigger="additive"), marks=pytest.mark.long),
        dict(width=7, activation="gelu", eta=2.0, gamma=40.0),
        dict(width=7, activation="hermite2", attention="locked", trigger="additive"),
        pytest.param(dict(tokens="zipf:2"), marks=pytest.mark.long),
    ],
)
def test_fast_path_equals_autodiff_as_compiled(values: dict[str, Any]):
    spec = Retrieval.read(dict(vocab=11, dim=6, length=4, samples=200, **values))
    expected = reference(spec, 0)
    compare(spec, 0, fast(spec, 0, "float64"), expected, 1e-9)
    compare(spec, 0, fast(spec, 0, "float32"), expected, 1e-4)


@pytest.mark.parametrize(("width", "trigger"), [(0, "keys"), (7, "additive")])
def test_the_limit_is_reached_continuously(width: int, trigger: str):
    """Errors are of first order in eta, and vanish as gamma grows."""
    limit = Retrieval.read(
        dict(vocab=11, dim=6, length=4, samples=200, width=width, trigger=trigger, activation="hermite3")
    )

    def end(**steps: float) -> list[np.ndarray]:
        with jax.disable_jit():
            return [np.asarray(part) for part in fast(limit.replace(**steps), 0, "float64")]

    V1, alpha, V2 = end()
    errors = []
    for eta in (1e-2, 1e-3, 1e-4):
        at = end(eta=eta)
        assert apart(at[0] / eta, V1) < 1e-12
        errors.append((apart(at[1] / eta, alpha), apart(at[2], V2)))
    for before, after in itertools.pairwise(errors):
        for coarse, fine in zip(before, after, strict=True):
            assert 9 < coarse / fine < 11  # a tenth of eta, a tenth of the error
    # Then gamma, at an eta this small: V2/gamma tends to what the argmax gives.
    sharp = end(eta=1e-4)[2]
    steps = (1e7, 1e9, 1e11)
    distances = [apart(end(eta=1e-4, gamma=gamma)[2] / gamma, sharp) for gamma in steps]
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 1e-3


@pytest.mark.long
def test_chunks_and_segments_change_rounding_alone():
    cases = {
        "tables": dict(vocab=19, dim=6, length=4, samples=500),
        "vectors": dict(vocab=19, dim=6, length=4, samples=500, eta=1.0, gamma=9.0, width=5),
    }
    for values in cases.values():
        spec = Retrieval.read(values)
        layout = choose_layout(spec)
        small = layout._replace(by_token=37, by_sample=31, rows=7, segment=3 * 37 * 4)
        whole = fast(spec, 1, "float64")
        factored = small._replace(tables="factored")
        for cut in (small, factored) if spec.width == 0 else (small,):
            for got, expected in zip(fast(spec, 1, "float64", cut), whole, strict=True):
                assert apart(got, expected) < 1e-12
                assert got is not expected


@pytest.mark.parametrize("values", [dict(), dict(width=7, activation="gelu", eta=2.0)])
def test_factored_tables_equal_dense_ones_as_compiled(values: dict[str, Any]):
    spec = Retrieval.read(dict(vocab=11, dim=6, length=4, samples=200, **values))
    factored = choose_layout(spec)._replace(tables="factored", rows=4, by_sample=33)
    for one, other in zip(fast(spec, 0, "float64"), fast(spec, 0, "float64", factored), strict=True):
        assert apart(other, one) < 1e-9


def test_counts_are_the_counts():
    spec = Retrieval(vocab=9, dim=4, length=5, samples=77)
    _, source, batch = draw_pieces(spec, 2)
    counts = by_token.count_pairs(spec.program(), choose_layout(spec), source, streaming.Segments(spec.samples))
    expected = np.zeros((9, 9), int)
    for label, tokens in zip(np.asarray(batch.label), np.asarray(batch.tokens), strict=True):
        np.add.at(expected[label], tokens, 1)
    np.testing.assert_array_equal(counts.pairs, expected)
    np.testing.assert_array_equal(counts.labels, np.bincount(batch.label, minlength=9))


def test_hard_attention_is_the_argmax_of_the_scores():
    spec = Retrieval(vocab=9, dim=4, length=5, samples=300)
    frozen, _, batch = draw_pieces(spec, 2)
    w = jnp.asarray([1.0, 0, 0, 0])
    for lift in (-3.0, 0.4, 3.0):
        frozen = frozen._replace(trigger=lift * w)
        s = frozen.Z @ w
        scores = s[batch.tokens] + lift * batch.at_position
        noise, wins = hard_attention(batch, Scores.of(frozen, w))
        np.testing.assert_array_equal(wins, jnp.argmax(scores, axis=1) == batch.position)
        without = np.where(batch.at_position, -np.inf, s[batch.tokens])
        np.testing.assert_array_equal(s[noise], without.max(axis=1))
        assert not attention_tied(batch, Scores.of(frozen, w)).any()


@pytest.mark.parametrize("eighths", range(8))
def test_ties_are_decided_by_rule_whatever_rounding_makes_of_them(eighths: int):
    """Tokens 0, 1 and 2 have one score, but for rounding; the informative one wins its ties.

    So it is wherever the scores lie between two units of rounding.
    """
    shift = eighths / 8 * float(rounding(jnp.float32(0.9)))
    spec = Retrieval(vocab=9, dim=4, length=5, samples=300)
    frozen, _, batch = draw_pieces(spec, 2)
    w = jnp.asarray([1.0, 0, 0, 0], jnp.float32)
    seen = []
    for shake in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        Z = np.zeros((9, 4), np.float32)
        near_0_3 = (0.3 + 1e-6 * one for one in shake)
        Z[:, 0] = [*near_0_3, 0.1, 0.2, -0.1, -0.2, -0.3, 0.9]
        Z[:, 0] += shift
        near = frozen._replace(Z=jnp.asarray(Z), trigger=jnp.asarray([0.6, 0, 0, 0], jnp.float32))
        scores = Scores.of(near, w)
        noise, wins = hard_attention(batch, scores)
        seen.append((np.asarray(noise), np.asarray(wins), np.asarray(attention_tied(batch, scores))))
    for one in seen[1:]:
        for part, other in zip(one, seen[0], strict=True):
            np.testing.assert_array_equal(part, other)
    noise, wins, tied = seen[0]
    tokens, own = np.asarray(batch.tokens), np.asarray(batch.informative)
    others = [set(np.delete(row, at)) for row, at in zip(tokens, batch.position, strict=True)]
    for row, rest in enumerate(others):
        top = rest & {0, 1, 2}
        if 8 in rest:
            assert noise[row] == 8
            # 0.3 + 0.6 against 0.9; 0.9 + 0.6 wins outright.
            assert (wins[row], tied[row]) == (own[row] in (0, 1, 2, 8), own[row] in (0, 1, 2))
        elif top:
            assert noise[row] == max(top)
            assert (wins[row], tied[row]) == (True, own[row] == 7)  # -0.3 + 0.6 against 0.3


def test_labels_that_tie_are_named_by_rule():
    logits = jnp.asarray([[0.1, 0.5, 0.5, 0.2], [0.1, 0.5, 0.5 + 1e-7, 0.2], [0.1, 0.5, 0.51, 0.2]])
    named, tied = name_label(logits, jnp.ones(3))
    assert named.tolist() == [1, 1, 2]
    assert tied.tolist() == [True, True, False]


def test_a_single_position_leaves_attention_alone():
    spec = Retrieval(vocab=9, dim=16, length=1, samples=400)
    learned = fast(spec, 0, "float64")
    assert np.abs(learned.alpha).max() < 1e-15
    assert apart(learned.V2, fast(spec.replace(attention="locked"), 0, "float64").V2) < 1e-12
