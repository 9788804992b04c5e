"""The transformer on the trained path: its special case, its gradients, its padding, and what it measures."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.engine.early_stopping import FIRST_WINDOW, stopped_falling
from mnemoscope.models.transformer import read
from mnemoscope.spec import Facts, SpecError, Transformer
from mnemoscope.tasks.sequences import Questions, Which, ask
from mnemoscope.training.answering import World, look, outputs_of, read_answers
from mnemoscope.training.facts import FACTS
from mnemoscope.training.transformer import TRANSFORMER

SHARED: dict[str, Any] = dict(
    subjects=6, relations=4, answers=3, noise=5, length=7, dim=16, heads=2, head_dim=4, width=10
)
TRAINING: dict[str, Any] = dict(lr=0.01, batch=32, max_steps=64, target=1.0, test_samples=64)
PLAIN: dict[str, Any] = dict(layers=1, embeddings="frozen", positions="none", mask="none", norm="none", residual="mlp")
TINY: dict[str, Any] = dict(batch=16, max_steps=32, test_samples=32, dim=8, heads=2, layers=2)
TASKS: dict[str, dict[str, Any]] = {
    "facts": dict(subjects=5, relations=3, answers=2, length=6),
    "relation": dict(subjects=5, relations=3, answers=2, length=6, query="relation", overlap=0.5),
    "retrieval": dict(task="retrieval", vocab=12, length=5),
    "query": dict(task="retrieval", vocab=12, length=5, cue="query", groups=3),
    "mqar": dict(task="mqar", vocab=12, pairs=4, queries=2),
    "induction": dict(task="induction", vocab=8, length=12, triggers=2),
    "strings": dict(task="random-strings", vocab=6, length=5, strings=12),
}
# The others are as quick, but compile programs of their own.
QUICK = ("facts", "strings")


def begun(spec: Transformer, seed: int = 0) -> tuple[Transformer, World, dict]:
    program = TRANSFORMER.program(spec)
    world, state = TRANSFORMER.start(program, TRANSFORMER.arguments([(spec, seed)]))
    world, weights = jax.tree.map(lambda part: part[0], (world, state.weights))
    return program, world, weights


FURTHER = {"frequencies": "zipf:1", "optimiser": "sgd", "schedule": "cosine", "label_noise": 0.2, "weight_decay": 0.1}


@pytest.mark.parametrize(
    ("attention", "more"),
    [
        ("softmax", FURTHER),
        ("linear", {}),
        pytest.param("softmax", {}, marks=pytest.mark.long),
        pytest.param("linear", FURTHER, marks=pytest.mark.long),
    ],
    ids=["softmax-everything", "linear-plain", "softmax-plain", "linear-everything"],
)
def test_one_layer_on_frozen_embeddings_is_the_model_of_facts(attention, more):
    facts = Facts(**SHARED, **TRAINING, mixing=attention, **more)
    same = Transformer(**SHARED, **TRAINING, **PLAIN, activation="relu", attention=attention, **more)
    (old,) = FACTS.run([(facts, 3)], precision="float64")
    (new,) = TRANSFORMER.run([(same, 3)], precision="float64")
    assert (new.status, new.metrics["steps"], new.accuracy) == (old.status, old.metrics["steps"], old.accuracy)
    for mine, theirs in zip(new.curve, old.curve, strict=True):
        assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-10)
        assert (mine["accuracy"], mine["relation_accuracy"]) == (theirs["accuracy"], theirs["relation_accuracy"])


MODELS: dict[str, dict[str, Any]] = {
    "usual": dict(width=6),
    "rotary": dict(positions="rotary", attention="linear", width=6, mlp="fixed", activation="tanh"),
    "bare": dict(norm="none", residual="mlp", positions="none", embeddings="frozen", mask="none"),
}


@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("mqar", "usual"),
        pytest.param("relation", "rotary", marks=pytest.mark.long),
        pytest.param("facts", "usual", marks=pytest.mark.long),
        pytest.param("retrieval", "bare", marks=pytest.mark.long),
        pytest.param("strings", "rotary", marks=pytest.mark.long),
    ],
)
def test_gradients_are_finite_differences(task, model):
    tied: dict[str, Any] = {"embeddings": "tied"} if task in ("mqar", "strings") else {}
    spec = Transformer(**TINY, **TASKS[task], **MODELS[model], **tied, precision="float64")
    with numerics("float64", find_device("cpu")):
        program, world, weights = begun(spec)
        loss = jax.jit(partial(TRANSFORMER.loss, program, world, taken=jnp.uint32(1)))
        gradient = jax.grad(lambda weights: loss(weights))(weights)
        assert sum(part.size for part in jax.tree.leaves(weights)) == program.parameters
        for name, part in weights.items():
            way = jax.random.normal(jax.random.key(len(name)), part.shape)

            def difference(step: float, name=name, part=part, way=way) -> float:
                there, back = (float(loss({**weights, name: part + sign * step * way})) for sign in (1, -1))
                return (there - back) / (2 * step)

            # Two central differences without their common error of order step^2; rounding adds about 1e-16 / step.
            measured = (4 * difference(5e-5) - difference(1e-4)) / 3
            assert measured == pytest.approx(float(jnp.vdot(gradient[name], way)), rel=1e-6, abs=1e-9), name


def by_hand(spec: Transformer, weights: dict, tokens: np.ndarray, marked: int | None) -> np.ndarray:
    """The logits at the last position, in loops, from the equations of `models.transformer`."""
    d, H, k, T = spec.dim, spec.heads, spec.head_size, len(tokens)
    w = {name: np.asarray(part, float) for name, part in weights.items()}

    def norm(number: int, x: np.ndarray) -> np.ndarray:
        if spec.norm == "none":
            return x
        return w["gain"][number] * (x - x.mean()) / np.sqrt(x.var() + 1e-5) + w["shift"][number]

    def turned(v: np.ndarray, t: int) -> np.ndarray:
        if spec.positions != "rotary":
            return v
        out, half = v.copy(), k // 2
        for i in range(half):
            a = t / 10_000 ** (2 * i / k)
            out[i] = v[i] * np.cos(a) - v[i + half] * np.sin(a)
            out[i + half] = v[i] * np.sin(a) + v[i + half] * np.cos(a)
        return out

    X = [w["E"][token].copy() for token in tokens]
    if marked is not None:
        X[marked] = X[marked] + w["mark"]
    if spec.positions == "learned":
        X = [x + w["P"][t] for t, x in enumerate(X)]
    for layer in range(spec.layers):
        N, new = [norm(2 * layer, x) for x in X], []
        for i in range(T):
            seen = range(i + 1 if spec.mask == "causal" else T)
            total = X[i].copy() if spec.residual == "all" else np.zeros(d)
            for h in range(H):
                q = turned(w["Q"][layer, h] @ N[i], i)
                s = np.array([q @ turned(w["K"][layer, h] @ N[j], j) / np.sqrt(k) for j in seen])
                a = np.exp(s) / np.exp(s).sum() if spec.attention == "softmax" else s
                mixed = sum(share * (w["V"][layer, h] @ N[j]) for share, j in zip(a, seen, strict=True))
                total = total + w["O"][layer, h].T @ mixed
            if spec.width:
                hidden = np.tanh(w["W1"][layer] @ norm(2 * layer + 1, total) + w["b"][layer])
                total = total + w["W2"][layer].T @ hidden
            new.append(total)
        X = new
    U = w["E"][: spec.sizes.outputs] if spec.embeddings == "tied" else w["U"]
    return U @ norm(2 * spec.layers, X[-1])


@pytest.mark.parametrize(
    ("task", "more"),
    [
        ("facts", {"width": 6}),
        ("retrieval", {"positions": "rotary", "attention": "linear", "width": 6, "embeddings": "tied"}),
        ("mqar", {"norm": "none", "positions": "none", "mask": "none", "residual": "mlp"}),
        ("mqar", {"embeddings": "frozen", "norm": "none", "layers": 3}),
    ],
)
def test_the_model_is_its_equations(task, more):
    spec = Transformer(**{**TINY, **TASKS[task], "activation": "tanh", **more})
    program, world, weights = begun(spec)
    asked = ask(program, world.counts, world.tables, world.keys, Which("test", jnp.arange(3, dtype=jnp.uint32)))
    told = np.asarray(read_answers(program, world, weights, asked).logits)
    real = int(outputs_of(program, world))
    everything = {**world.fixed, **weights}
    for row in range(3):
        marked = None if asked.marked is None else int(asked.marked[row])
        made = by_hand(spec, everything, np.asarray(asked.tokens[row]), marked)
        if spec.width:  # the program may have room for more hidden units
            assert not np.asarray(everything["W2"][:, spec.width :]).any()
        assert told[row, -1, :real] == pytest.approx(made[:real], rel=2e-4, abs=2e-5)
        assert np.isneginf(told[row, :, real:]).all()


def test_a_causal_position_sees_nothing_later_and_weights_add_up():
    spec = Transformer(**TINY, **TASKS["strings"])
    program, world, weights = begun(spec)
    which = Which("test", jnp.arange(4, dtype=jnp.uint32))
    asked = ask(program, world.counts, world.tables, world.keys, which)
    before = np.asarray(read_answers(program, world, weights, asked).logits)
    changed = asked._replace(tokens=asked.tokens.at[:, 3].set((asked.tokens[:, 3] + 1) % 6))
    after = read_answers(program, world, weights, changed)
    assert np.array_equal(np.asarray(after.logits)[:, :3], before[:, :3])
    assert not np.array_equal(np.asarray(after.logits)[:, 3:], before[:, 3:])
    for layer in after.looks:
        assert np.asarray(layer.sum(-1)) == pytest.approx(1.0, abs=1e-6)
        assert not np.triu(np.asarray(layer), 1).any()


@pytest.mark.parametrize(
    "task", [task if task in QUICK else pytest.param(task, marks=pytest.mark.long) for task in TASKS]
)
def test_every_task_trains_and_is_measured(task):
    (trial,) = TRANSFORMER.run([(Transformer(**{**TINY, **TASKS[task]}), 0)])
    metrics: Any = trial.metrics
    assert trial.status == "unreached"
    assert all(0 <= (metrics[name] or 0) <= 1 for name in ("accuracy", "confidence"))
    assert metrics["parameters"] == trial.spec.parameters
    if task != "strings":
        heads = [metrics[f"attention_{layer}_{head}"] for layer in (1, 2) for head in (1, 2)]
        assert all(0 <= weight <= 1.001 for weight in heads if weight is not None)
    if trial.spec.facts:
        assert 0 <= metrics["bits_coded"] <= metrics["bits_stored"] <= trial.spec.entropy * (1 + 1e-6)
        assert metrics["bits_per_parameter"] == pytest.approx(metrics["bits_stored"] / trial.spec.parameters)
    else:
        assert "bits_stored" not in metrics
    if task == "facts":
        assert metrics["hallucination"] == pytest.approx(metrics["relation_accuracy"] - metrics["accuracy"], abs=1e-6)


@pytest.mark.long
def test_stored_bits_are_those_of_the_model_by_hand():
    """All facts of a half-trained model, its probabilities taken one fact after the other."""
    spec = Transformer(**{**TINY, **TASKS["facts"], "max_steps": 64, "target": 1.0}, frequencies="zipf:1", lr=0.01)
    kept: list = []
    (trial,) = TRANSFORMER.run([(spec, 1)], watch=lambda world, weights, _: kept.append((world, weights)))
    world, weights = jax.tree.map(lambda part: part[0], kept[-1])
    world = TRANSFORMER.unseen(world)
    program = TRANSFORMER.program(spec)
    which = Which("test", jnp.arange(15, dtype=jnp.uint32), item=jnp.arange(15, dtype=jnp.uint32))
    asked = ask(program, world.counts, world.tables, world.keys, which)
    logits = np.asarray(read(program, {**world.fixed, **weights}, asked, 6).logits, float)[:, 0, :6]
    answer = np.asarray(asked.answer)[:, 0]
    p = np.exp(logits - logits.max(1, keepdims=True))
    code = -np.log2(p[np.arange(15), answer] / p.sum(1))
    assert 0.5 < code.mean() < 6
    assert trial.metrics["bits_stored"] == pytest.approx(np.maximum(0, 1 - code).sum(), rel=1e-4, abs=1e-5)
    assert trial.metrics["bits_coded"] == pytest.approx(max(0.0, (1 - code).sum()), rel=1e-4, abs=1e-5)
    right = logits.argmax(1) == answer
    assert trial.metrics["recalled"] == pytest.approx(right.mean(), abs=1e-6)
    assert trial.metrics["recall_rank_1"] == pytest.approx(right[:10].mean(), abs=1e-6)
    assert trial.metrics["recall_rank_11"] == pytest.approx(right[10:].mean(), abs=1e-6)


@pytest.mark.long
def test_learning_by_heart_is_measured_in_full():
    """Strings that a model has learned: all bits but those of telling which string it is."""
    sizes: dict[str, Any] = dict(vocab=8, length=8, strings=4, dim=32, heads=2, layers=1, width=64)
    spec = Transformer(task="random-strings", **sizes, lr=0.01, batch=16, max_steps=600, stop="settled")
    (trial,) = TRANSFORMER.run([(spec, 0)])
    assert spec.entropy == 4 * 8 * 3
    # Without a prompt, which of the four strings begins is 2 bits each, whatever the model.
    stored: Any = trial.metrics["bits_stored"]
    assert spec.entropy - 4 * 2 - 4 < stored <= spec.entropy - 4 * 2 + 1e-3


@pytest.mark.long
def test_new_facts_are_learned_and_old_ones_forgotten():
    spec = Transformer(new_subjects=8, first_steps=224, max_steps=640, batch=64, test_samples=512)
    (trial,) = TRANSFORMER.run([(spec, 0)])
    by_step = {check["step"]: check for check in trial.curve}
    assert by_step[224]["old_accuracy"] > 0.97
    assert by_step[224]["accuracy"] < 0.5  # chance among the relation's four answers is 0.25
    assert trial.status == "ok"
    assert trial.accuracy is not None
    assert trial.accuracy > 0.9
    assert trial.curve[-1]["old_accuracy"] < by_step[224]["old_accuracy"] - 0.1


@pytest.mark.long
def test_room_that_is_not_asked_for_changes_nothing():
    """The same training alone and in a program with room for more facts and hidden units."""
    spec = Transformer(**{**TINY, "max_steps": 64}, subjects=9, relations=5, answers=3, noise=9, length=6, width=5)
    large = TRANSFORMER.program(spec, "gpu")
    assert (large.subjects, large.answers, large.noise, large.width) == (10, 3, 10, 64)
    ends = []
    for program in (spec, large):
        world, state = TRANSFORMER.start(program, TRANSFORMER.arguments([(spec, 3)]))
        state, told = TRANSFORMER.advance(program, 20, world, state, jnp.asarray([0.01]))
        ends.append({name: float(part[0]) for name, part in told.items()})
        if program is large:
            assert not np.asarray(state.weights["W1"][0, :, 5:]).any()
    assert ends[1]["loss"] == pytest.approx(ends[0]["loss"], rel=1e-3)
    assert ends[1]["accuracy"] == pytest.approx(ends[0]["accuracy"], abs=1.5 / 32)


@pytest.mark.long
def test_trainings_side_by_side_are_those_alone():
    spec = Transformer(**{**TINY, **TASKS["facts"]})
    jobs = [(spec.replace(lr=lr), seed) for lr in (0.01, 0.003) for seed in (0, 1)]
    program = TRANSFORMER.program(spec)
    world, state = TRANSFORMER.start(program, TRANSFORMER.arguments(jobs))
    _, together = TRANSFORMER.advance(program, 16, world, state, jnp.asarray([spec.lr for spec, _ in jobs]))
    for row, job in enumerate(jobs):
        world, state = TRANSFORMER.start(program, TRANSFORMER.arguments([job]))
        _, alone = TRANSFORMER.advance(program, 16, world, state, jnp.asarray([job[0].lr]))
        assert float(together["loss"][row]) == pytest.approx(float(alone["loss"][0]), rel=1e-4)


@pytest.mark.long
def test_bfloat16_differs_from_float32_by_its_rounding():
    spec = Transformer(**{**TINY, **TASKS["facts"]})
    losses = []
    for precision in ("float32", "bfloat16"):
        program, world, weights = begun(spec.replace(precision=precision))
        losses.append(float(TRANSFORMER.loss(program, world, weights, jnp.uint32(0))))
        assert {part.dtype for part in jax.tree.leaves(weights)} == {jnp.dtype("float32")}
    # A factor has 8 bits, and a few products lie behind a logit of order 1.
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], abs=0.02)


def test_a_loss_has_stopped_falling_by_its_windows():
    assert not stopped_falling([1.0] * (2 * FIRST_WINDOW - 1))
    assert stopped_falling([1.0] * (2 * FIRST_WINDOW))
    assert not stopped_falling([0.99**k for k in range(300)])
    assert stopped_falling([1.0, 0.004])
    # It is judged when a window is full: a later rise of the loss alone changes nothing.
    falling = [1.0] * FIRST_WINDOW + [0.5] * FIRST_WINDOW
    assert not stopped_falling([*falling, *[0.6] * (FIRST_WINDOW // 2)])


def test_a_model_that_does_not_fit_is_refused_by_its_largest_part():
    refused: list[tuple[dict[str, Any], str]] = [
        (dict(dim=2**16, heads=16, layers=64), "dim"),
        (dict(length=2**16), "length"),
        (dict(width=2**20, layers=64, length=64), "width"),
        (dict(task="induction", vocab=2**20, batch=2**10), "vocab"),
    ]
    for more, field in refused:
        with pytest.raises(SpecError, match=f"^{field}: expected a size that fits in the free memory"):
            TRANSFORMER.check_fits(Transformer(**more, max_steps=1), "cpu")


def test_looks_are_those_of_the_answers():
    spec = Transformer(**{**TINY, **TASKS["mqar"]})
    program, world, weights = begun(spec)
    looks = look(program, world, weights, 2)
    asked: Questions = ask(
        program, world.counts, world.tables, world.keys, Which("test", jnp.arange(2, dtype=jnp.uint32))
    )
    assert np.array_equal(np.asarray(looks.tokens), np.asarray(asked.tokens))
    assert [layer.shape for layer in looks.weights] == [(2, 2, 2, 10)] * 2
