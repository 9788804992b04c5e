"""Paper B's transformer: plain loops beside it, trainings, constructions, and capacity."""

import json
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope import Facts, SpecError, learn_facts
from mnemoscope.engine import device
from mnemoscope.experiments.facts import FactsRun, grown
from mnemoscope.models import facts as model
from mnemoscope.store.maintenance import verify
from mnemoscope.store.trials import Store
from mnemoscope.tasks.facts import Sizes, count_tokens, draw_facts, draw_sequences
from mnemoscope.training.facts import FACTS, Extent, World, cross_entropy, draw_streams
from mnemoscope.ui.cli import main

SMALL = Facts(
    subjects=4, relations=3, answers=2, dim=16, heads=2, head_dim=4, width=8, length=8, batch=64, test_samples=128
)
WORDS = [
    "facts",
    "--subjects",
    "4",
    "--relations",
    "3",
    "--answers",
    "2",
    "--dim",
    "16",
    "--heads",
    "2",
    "--head-dim",
    "4",
    "--width",
    "8",
    "--length",
    "8",
    "--batch",
    "64",
    "--test-samples",
    "128",
]


def drawn(spec: Facts) -> tuple[model.Frozen, model.Weights, dict[str, jax.Array]]:
    keys = {name: jnp.asarray(key) for name, key in draw_streams(spec, 3).items()}
    heads, width = jnp.int32(spec.heads), jnp.int32(spec.width)
    return model.draw_frozen(spec, keys), model.draw_weights(spec, keys, heads, width), keys


@pytest.fixture(params=["tokens", "places"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Attention over all tokens, and over the places of a sequence."""
    if request.param == "places":
        monkeypatch.setattr(model, "MANY_SCORES", 0)
        monkeypatch.setattr(model, "MANY_TOKENS", 0)
    assert model.by_position(SMALL) == (request.param == "places")
    return request.param


def test_sequences_are_as_the_task_says():
    _, _, keys = drawn(SMALL)
    asked = draw_sequences(SMALL, Sizes.of(SMALL), keys["train"], jnp.arange(4000, dtype=jnp.uint32))
    counts = np.asarray(count_tokens(asked.tokens, SMALL.tokens))
    S, R = 4, 3
    assert (counts.sum(axis=1) == SMALL.length).all()
    assert (counts[:, :S].sum(axis=1) == 1).all()
    assert (counts[:, S : S + R].sum(axis=1) == 1).all()
    assert (counts[:, -1] == 1).all()
    assert (counts[np.arange(4000), np.asarray(asked.subject)] == 1).all()
    assert (counts[np.arange(4000), S + np.asarray(asked.relation)] == 1).all()
    # Every noise token comes up as often: a binomial count, within four standard deviations.
    noise = counts[:, S + R : -1].sum(axis=0)
    draws, share = 4000 * (SMALL.length - 3), 1 / SMALL.noise_tokens
    assert len(noise) == 7
    assert (abs(noise - draws * share) <= 4 * math.sqrt(draws * share * (1 - share))).all()
    facts = np.asarray(draw_facts(SMALL, Sizes.of(SMALL), keys["facts"]))
    assert (facts // SMALL.answers == np.arange(R)[None, :]).all()


@pytest.mark.parametrize("mixing", ["softmax", "linear"])
def test_the_model_is_attention_position_by_position(mixing: str, way: str):
    """The same model again, in plain loops over tokens in their places."""
    spec = SMALL.replace(mixing=mixing)
    if mixing == "linear" and way == "places":
        assert not model.by_position(spec)  # which is a sum over tokens anyway
        return
    frozen, weights, keys = drawn(spec)
    asked = draw_sequences(spec, Sizes.of(spec), keys["train"], jnp.arange(5, dtype=jnp.uint32))
    told = np.asarray(model.logits(spec, Sizes.of(spec), frozen, weights, asked.tokens), np.float64)
    E, U = (np.asarray(part, np.float64) for part in frozen)
    Q, K, V, O, W1, b, W2 = (np.asarray(part, np.float64) for part in weights)  # noqa: E741
    for row, tokens in enumerate(np.asarray(asked.tokens)):
        x = np.zeros(spec.dim)
        for h in range(spec.heads):
            scores = np.array([K[h] @ E[t] @ (Q[h] @ E[-1]) for t in tokens]) / 2.0
            if mixing == "softmax":
                scores = np.exp(scores) / np.exp(scores).sum()
            x += O[h].T @ sum(a * (V[h] @ E[t]) for a, t in zip(scores, tokens, strict=True))
        x = x + W2.T @ np.maximum(W1 @ x + b, 0)
        assert told[row] == pytest.approx(U @ x, rel=1e-4, abs=1e-5)


@pytest.mark.usefixtures("way")
def test_a_head_that_looks_at_one_token_alone_has_no_gradient_of_scores():
    """Not even noise, which Adam would make as large as a gradient."""
    frozen, weights, keys = drawn(SMALL)
    sizes = Sizes.of(SMALL)
    tokens = draw_sequences(SMALL, sizes, keys["train"], jnp.arange(64, dtype=jnp.uint32)).tokens
    pull = jax.random.normal(jax.random.key(1), (64, SMALL.outputs))
    # K = 0 but for a key that scores every subject alike, far above all else.
    E = frozen.E.at[:, 0].set(jnp.where(jnp.arange(SMALL.tokens) < SMALL.subjects, 1.0, 0.0))
    E = E.at[-1, 0].set(0.0).at[-1, 1].set(1.0)
    lone = jnp.zeros_like(weights.K).at[:, 0, 0].set(1.0)
    steep = weights._replace(K=lone, Q=jnp.zeros_like(weights.Q).at[:, 0, 1].set(400.0))

    def told(key: jax.Array) -> jax.Array:
        own = frozen._replace(E=E)
        return jnp.sum(pull * model.logits(SMALL, sizes, own, steep._replace(K=key), tokens))

    flat = jax.grad(told)(lone / 400.0)
    assert float(jnp.abs(flat).max()) > 0.1
    assert float(jnp.abs(jax.grad(told)(lone)).max()) == 0.0


@pytest.mark.usefixtures("way")
def test_scores_without_bounds_leave_numbers():
    frozen, weights, keys = drawn(SMALL)
    asked = draw_sequences(SMALL, Sizes.of(SMALL), keys["train"], jnp.arange(64, dtype=jnp.uint32))
    world = World(Sizes.of(SMALL), frozen, draw_facts(SMALL, Sizes.of(SMALL), keys["facts"]), keys)
    for scale in (1e2, 1e4):
        steep = weights._replace(Q=weights.Q * scale)
        loss, gradient = jax.value_and_grad(lambda w: cross_entropy(SMALL, world, w, asked))(steep)
        assert bool(jnp.isfinite(loss))
        assert all(bool(jnp.isfinite(part).all()) for part in gradient)


def test_parameters_are_those_of_the_arrays():
    _, weights, _ = drawn(SMALL)
    arrays = sum(part.size for part in weights) - weights.b.size  # the paper leaves out biases
    assert SMALL.parameters == arrays == 4 * 2 * 4 * 16 + 2 * 8 * 16
    told = FactsRun(SMALL, ()).as_dict()
    assert told["bits"] == pytest.approx(12 * math.log2(2))
    assert told["facts_per_parameter"] == pytest.approx(12 / 768)


@pytest.mark.long
def test_room_that_is_not_asked_for_changes_nothing():
    """Odd sizes, alone and inside a program with room for more of everything."""
    spec = SMALL.replace(subjects=9, relations=5, answers=3, heads=3, width=5)
    wide = FACTS.program(spec)
    assert (wide.subjects, wide.relations, wide.heads, wide.width) == (16, 8, 8, 64)
    assert wide.tokens > spec.tokens
    ends = []
    large = FACTS.program(spec, "gpu")
    many = large.replace(heads=32)
    assert [model.by_position(one) for one in (spec, wide, large, many)] == [False, False, False, True]
    for program in (spec, wide, large, many):
        keys = {name: jnp.asarray(key)[None] for name, key in draw_streams(spec, 3).items()}
        sizes = jax.tree.map(lambda part: part[None], Sizes.of(spec))
        extent = Extent(jnp.asarray([3]), jnp.asarray([5]))
        world, state = FACTS.start(program, (keys, sizes, extent))
        state, info = FACTS.advance(program, 20, world, state, jnp.asarray([0.01]))
        ends.append((state.weights, info, np.asarray(world.facts[0, :9, :5])))
    own, one, facts = ends[0]
    for padded, other, same in ends[1:]:
        assert (same == facts).all()
        assert float(other["loss"][0]) == pytest.approx(float(one["loss"][0]), rel=1e-3)
        assert float(other["accuracy"][0]) == pytest.approx(float(one["accuracy"][0]), abs=2 / 128)
        for narrow, broad in zip(own, padded, strict=True):
            part = tuple(slice(0, size) for size in narrow.shape)
            assert np.asarray(broad[part]) == pytest.approx(np.asarray(narrow), rel=1e-2, abs=1e-4)
        assert not np.asarray(padded.Q[:, 3:]).any()
        assert not np.asarray(padded.W1[:, 5:]).any()


@pytest.mark.long
def test_trainings_side_by_side_are_those_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    jobs = [(SMALL.replace(lr=lr, max_steps=256), seed) for lr in (0.01, 0.003) for seed in (0, 1)]
    together = FACTS.run(jobs)
    with monkeypatch.context() as patch:
        patch.setattr(device, "ONE_CORE", 0)  # as large ones: row by row, a call for every step
        _, alone = FACTS.run(jobs[1:3])
    assert together[2].status == alone.status
    assert together[2].metrics["steps"] == alone.metrics["steps"]
    assert together[2].accuracy == pytest.approx(alone.accuracy, abs=2 / 128)
    assert together[0].status == "ok"
    with Store(tmp_path / "s.db") as store:
        done = learn_facts(jobs[0][0], [0, 1], store=store)
        assert done.outcomes[0].metrics == pytest.approx(together[0].metrics, rel=1e-3)
        again = learn_facts(jobs[0][0], [0, 1], store=store)
        assert again.outcomes == done.outcomes
        assert verify(store)[1] == []


def test_what_is_not_reached_is_called_so():
    (told,) = FACTS.run([(SMALL.replace(lr=1e-6, max_steps=32), 0)])
    assert told.status == "unreached"
    assert told.accuracy is not None
    assert told.accuracy < 0.99
    assert told.message == "accuracy 0.99 not within 32 steps"


def test_a_loss_that_overflows_is_divergence(monkeypatch: pytest.MonkeyPatch):
    def overflow(*words: Any) -> tuple[Any, dict[str, Any]]:
        *_, state, _ = words
        return state, {name: jnp.full(1, math.nan) for name in ("loss", "accuracy", "relation_accuracy")}

    monkeypatch.setattr(FACTS, "advance", overflow)
    (told,) = FACTS.run([(SMALL.replace(max_steps=64), 0)])
    assert (told.status, told.accuracy) == ("diverged", None)


def test_the_facts_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = [*WORDS, "--seeds", "2", "--store", str(tmp_path / "s.db")]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"spec", "trials", "accuracy", "parameters"} <= set(told)
    assert all({"accuracy", "steps", "status"} <= set(trial) for trial in told["trials"])
    assert main(words) == 0
    assert "95 % interval over seeds" in capsys.readouterr().out
    for option, value, line in (
        ("--answers", "5", "--answers: expected at most subjects = 4"),
        ("--length", "2", "--length: expected a whole number of at least 3"),
        ("--heads", "0", "--heads: expected a whole number of at least 1"),
    ):
        changed = [*words]
        changed[changed.index(option) + 1] = value
        assert main(changed) == 2
        assert line in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("width", [0, 4096])
def test_weights_written_down_recall_every_fact(width: int):
    """The theorems' construction, by attention alone and by an MLP."""
    spec = Facts(subjects=16, relations=16, answers=8, dim=96, heads=4, head_dim=8, width=width, method="constructed")
    told = FACTS.run([(spec, seed) for seed in range(3)])
    assert [one.accuracy for one in told] == [1.0, 1.0, 1.0]
    # With too few dimensions, or too few hidden units, it cannot hold.
    (less,) = FACTS.run([(spec.replace(dim=32, width=width // 16), 0)])
    assert less.status == "ok"
    assert less.accuracy is not None
    assert less.accuracy < 0.9


def test_a_construction_without_room_is_refused():
    spec = SMALL.replace(method="constructed")
    with pytest.raises(SpecError, match="at least 2 of dimension 4"):
        FACTS.run([(spec.replace(heads=1), 0)])
    with pytest.raises(SpecError, match="expected softmax"):
        FACTS.run([(spec.replace(mixing="linear"), 0)])


def test_scalings_grow_together():
    assert [grown(SMALL, "equal", 20).relations, grown(SMALL, "equal", 20).answers] == [20, 8]
    assert [grown(SMALL, "sqrt", 25).relations, grown(SMALL, "sqrt", 3).answers] == [5, 3]
    assert grown(SMALL, "own", 12).answers == 12


@pytest.mark.long
def test_capacity_in_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = [
        "facts",
        "--capacity",
        "equal",
        "--dim",
        "8",
        "--heads",
        "2",
        "--head-dim",
        "4",
        "--width",
        "8",
        "--length",
        "5",
        "--batch",
        "64",
        "--test-samples",
        "256",
        "--max-steps",
        "512",
        "--rates",
        "1e-6,1e-2",
        "--seeds",
        "2",
        "--store",
        str(tmp_path / "s.db"),
        "--json",
    ]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"spec", "trials", "accuracy", "parameters", "capacity", "low", "high"} <= set(told)
    assert told["parameters"] == 4 * 2 * 4 * 8 + 2 * 8 * 8
    each = [one for one in told["each_seed"] if one is not None]
    assert told["capacity"] == pytest.approx(math.exp(np.mean(np.log(each))))
    reached = {one["subjects"] for one in told["trials"] if one["status"] == "ok"}
    assert max(each) >= min(reached) ** 2
    assert all(one["status"] in ("ok", "unreached") for one in told["trials"])
    # The faster rate is tried first, and the other only where it was not enough.
    tried: dict[tuple[int, int], dict[float, str]] = {}
    for one in told["trials"]:
        tried.setdefault((one["subjects"], one["seed"]), {})[one["lr"]] = one["status"]
    for made in tried.values():
        assert set(made) == ({1e-2} if made[1e-2] == "ok" else {1e-2, 1e-6})
    assert {"ok", "unreached"} == {made[1e-2] for made in tried.values()}
    assert main([*words[:2], "most", *words[3:]]) == 2
    assert "expected one of equal, sqrt, own" in capsys.readouterr().err
