"""Studies of transformers: every rule can support, refute and leave open; a narrowed model is the smaller one."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.models.transformer import read
from mnemoscope.spec import Transformer
from mnemoscope.studies import geometric, induction, learned, mqar, no_mark
from mnemoscope.studies.base import Numbers, Study
from mnemoscope.studies.narrow import Narrowed
from mnemoscope.studies.seed_limits import limit_point
from mnemoscope.tasks.sequences import Which, ask
from mnemoscope.training.transformer import TRANSFORMER

SUPPORTED, REFUTED, OPEN = "supported", "refuted", "inconclusive"
NEAR = (0.97, 1.0, 1.03)


def dims(power: float = 0.0, half_power: float | None = None) -> Numbers:
    """Critical d on 3 ln S, or on a power of S, with all steps and with half of them."""

    def law(S: int, power: float) -> float:
        return S**power if power else 3 * float(np.log(S))

    half = power if half_power is None else half_power
    points = []
    for S in (16, 24, 40, 72, 128, 256):
        each = [law(S, power) * factor for factor in NEAR]
        points.append({**limit_point(each, 0.03, size=S), "half": [law(S, half) * factor for factor in NEAR]})
    return {"points": points}


def two(first: str, second: str, laws: tuple[float, float], spread: tuple[float, ...] = NEAR) -> Numbers:
    """Critical d of two kinds, on powers of the size; the first is eight times as large."""
    numbers: Numbers = {}
    for name, power, level in zip((first, second), laws, (16.0, 2.0), strict=True):
        numbers[name] = []
        for size in (32, 64, 128):
            # The factors in another order for each, or ratios would not scatter.
            each = [level * (size / 32) ** power * f for f in (spread if name == first else spread[1:] + spread[:1])]
            numbers[name].append({**limit_point(each, 0.03, size=size), "half": each})
    return numbers


def accuracies(frozen: float, learned: float, spread: float = 0.02) -> Numbers:
    """Accuracies with a mark, and lower ones without."""
    rows = []
    for name, gap in (("frozen", frozen), ("learned", learned)):
        for groups in (0, 4, 16):
            level = 1.0 - (gap if groups else 0.0)
            each = [level, level - (spread if gap and groups else 0.001), level]
            rows.append({"embeddings": name, "groups": groups, "accuracy": each, "attention": [0.5] * 3})
    return {"rows": rows}


def stages(late: tuple[int | None, ...], one_layer: float = 0.4) -> Numbers:
    """Steps of both parts with two layers, and what is left of the loss with one."""
    rows = []
    for layers, last in ((2, 0.05), (1, one_layer)):
        steps = {"bigrams": [90, 100, 110], "induction": list(late)}
        course = {"bigrams": [1.0, 0.1, 0.05], "induction": [3.0, 2.0, 0.2]}
        ends = [0.9 * last, last, 1.1 * last]
        rows.append({"layers": layers, "most": 1024, "steps": steps, "last": ends, "course": course})
    return {"rows": rows}


CASES: list[tuple[Study, Numbers, str]] = [
    (geometric.STUDY, dims(), SUPPORTED),
    (geometric.STUDY, dims(power=0.6), REFUTED),
    (geometric.STUDY, dims(half_power=0.6), OPEN),
    (learned.STUDY, two("frozen", "learned", (0.5, 0.0)), SUPPORTED),
    (learned.STUDY, two("frozen", "learned", (0.0, 0.5)), REFUTED),
    (learned.STUDY, two("learned", "frozen", (0.0, 0.5)), REFUTED),
    (learned.STUDY, two("frozen", "learned", (0.5, 0.5)), OPEN),
    (no_mark.STUDY, accuracies(0.3, 0.2), SUPPORTED),
    (no_mark.STUDY, accuracies(0.3, 0.0), REFUTED),
    (no_mark.STUDY, accuracies(0.3, 0.2, spread=0.6), OPEN),
    (mqar.STUDY, two("softmax", "linear", (0.0, 0.5)), SUPPORTED),
    (mqar.STUDY, two("softmax", "linear", (0.5, 0.5)), REFUTED),
    (mqar.STUDY, two("softmax", "linear", (0.0, 0.0)), REFUTED),
    (mqar.STUDY, two("softmax", "linear", (0.0, 0.5), spread=(0.5, 1.0, 2.0)), OPEN),
    (induction.STUDY, stages((300, 400, None)), SUPPORTED),
    (induction.STUDY, stages((30, 40, 50)), REFUTED),
    (induction.STUDY, stages((50, 100, 500)), OPEN),
    (induction.STUDY, stages((300, None, None)), OPEN),
    (induction.STUDY, stages((300, 400, 500), one_layer=0.01), REFUTED),
]


@pytest.mark.parametrize(("study", "numbers", "verdict"), CASES, ids=lambda part: getattr(part, "id", None))
def test_rules_go_every_way(study: Study, numbers: Numbers, verdict: str):
    plain: Any = json.loads(json.dumps(numbers))
    assert study.judge(plain).verdict == verdict


@pytest.mark.parametrize("case", [case for case in CASES if case[2] == SUPPORTED], ids=lambda case: case[0].id)
def test_figures_are_drawn_from_the_numbers(case: tuple[Study, Numbers, str]):
    figure = Figure()
    case[0].draw(json.loads(json.dumps(case[1])), figure)
    assert figure.axes
    assert all(axes.get_xlabel() for axes in figure.axes)


@pytest.mark.long
def test_both_losses_of_a_model_that_knows_nothing():
    spec = Transformer(task="induction", vocab=16, length=32, layers=1, dim=4, heads=1, norm="none", batch=8)
    program = TRANSFORMER.program(spec, "cpu")
    with numerics("float32", find_device("cpu")):
        world, state = TRANSFORMER.start(program, TRANSFORMER.arguments([(spec, 0)]))
        world, weights = jax.tree.map(lambda part: part[0], (world, state.weights))
        found = induction.losses(program, world, {**weights, "U": 0 * weights["U"]})
    # Every answer has probability 1/V: ln V after a trigger. After other tokens the chain's own surprise is taken off,
    # whose mean is the entropy of its rows, ln V less about half for p proportional to exp(g), g ~ N(0, 1).
    assert float(found["induction"]) == pytest.approx(np.log(16), rel=1e-5)
    assert 0.3 < float(found["bigrams"]) < 0.6


def test_the_step_at_which_a_loss_has_fallen():
    assert induction.fallen([4.0, 3.0, 0.39, 0.5, 0.1]) == 2 * induction.EVERY
    assert induction.fallen([4.0, 3.0, 0.41]) is None


@pytest.mark.long
def test_a_narrowed_model_is_the_smaller_one():
    most, d = 6, 4
    spec = Transformer(
        **{"task": "facts", "subjects": 8, "relations": 2, "answers": 4, "noise": 1, "length": 3, "layers": 2},
        **{"dim": most, "heads": 1, "head_dim": 6, "width": 8, "norm": "none", "batch": 8, "max_steps": 32},
    )
    task = Narrowed(spec, narrow_heads=True, table=lambda draw: draw.integers(8, size=(8, 2)))
    program = TRANSFORMER.program(spec, "cpu")
    with numerics("float32", find_device("cpu")):
        world, state = task.begin([d], [3], "cpu")
        before = {name: np.array(part[0]) for name, part in state.weights.items()}
        state, _ = TRANSFORMER.advance(program, 32, world, state, jnp.asarray([0.01]))
        world, weights = jax.tree.map(lambda part: part[0], (world, state.weights))
        assert not any(np.array_equal(before[name], part) for name, part in weights.items())
        for name, part in weights.items():
            if name != "b":
                assert not np.any(part[..., d:]), name
        # The same weights without the zeros, in a model of the smaller size.
        asked = ask(program, world.counts, world.tables, world.keys, Which("test", jnp.arange(16, dtype=jnp.uint32)))
        cut = {name: part if name == "b" else part[..., :d] for name, part in weights.items()}
        small = program.replace(dim=d)
        wide, narrow = read(program, weights, asked, 8).logits, read(small, cut, asked, 8).logits
        np.testing.assert_allclose(np.asarray(narrow), np.asarray(wide), rtol=1e-5, atol=1e-6)
        for name in ("Q", "K", "V", "O"):
            assert not np.any(weights[name][..., d:, :]), name
