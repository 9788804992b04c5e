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
from mnemoscope.studies import geometric
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


CASES: list[tuple[Study, Numbers, str]] = [
    (geometric.STUDY, dims(), SUPPORTED),
    (geometric.STUDY, dims(power=0.6), REFUTED),
    (geometric.STUDY, dims(half_power=0.6), OPEN),
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
