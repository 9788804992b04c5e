"""Studies of stored bits: every rule goes every way; figures are drawn; models are given too much."""

import json
import math
from typing import Any

import pytest
from matplotlib.figure import Figure

from mnemoscope.studies import bits_axis, bits_gpt, bits_random
from mnemoscope.studies.base import Numbers, Study

SUPPORTED, REFUTED, OPEN = "supported", "refuted", "inconclusive"
NEAR, FAR = (0.98, 1.0, 1.02), (0.2, 1.0, 1.8)


def bits(*levels: float, gain: float = 1.01, spread: tuple[float, ...] = NEAR) -> Numbers:
    """Bits a parameter at three sizes, and a half of the steps after which they were less by a factor."""
    rows = []
    for parameters, level in zip((1000, 3000, 10_000), levels, strict=True):
        each = [level * factor for factor in spread]
        rows.append({"dim": 8, "parameters": parameters, "each": each, "half": [value / gain for value in each]})
    return {"rows": rows}


def axis(spread: tuple[float, ...] = NEAR, **changed: float) -> Numbers:
    """Bits a parameter of every kind; the factual transformer has a load that is too large for it as well."""
    levels = {"linear": 1.0, "mlp": 2.0, "gpt": 1.0, "strings": 1.2, **changed}
    names = {"linear": bits_axis.LINEAR, "mlp": bits_axis.MLP, "gpt": bits_axis.GPT, "strings": bits_axis.STRINGS}
    rows = [
        {"name": names[name], "parameters": 100, "each": [level * factor for factor in spread]}
        for name, level in levels.items()
    ]
    return {"rows": [*rows, *({"name": bits_axis.FACTUAL, "parameters": 90, "each": [b, b]} for b in (0.4, 0.0))]}


CASES: list[tuple[Study, Numbers, str]] = [
    (bits_gpt.STUDY, bits(2.1, 2.0, 1.9), SUPPORTED),
    (bits_gpt.STUDY, bits(1.2, 1.1, 1.0), REFUTED),
    (bits_gpt.STUDY, bits(2.0, 2.0, 2.8), REFUTED),
    # A training that was cut short shows too little, never too much.
    (bits_gpt.STUDY, bits(1.2, 1.1, 1.0, gain=1.3), OPEN),
    (bits_gpt.STUDY, bits(2.0, 2.0, 2.0, gain=1.3), OPEN),
    (bits_gpt.STUDY, bits(2.0, 2.0, 2.8, gain=1.3), REFUTED),
    (bits_gpt.STUDY, bits(2.0, 2.0, 1.2), OPEN),
    (bits_gpt.STUDY, bits(2.0, 2.0, 2.0, spread=FAR), OPEN),
    (bits_random.STUDY, bits(3.5, 3.6, 3.7), SUPPORTED),
    (bits_random.STUDY, bits(2.0, 2.0, 2.0), REFUTED),
    (bits_random.STUDY, bits(5.0, 5.0, 5.0), REFUTED),
    (bits_random.STUDY, bits(3.6, 3.6, 3.6, spread=FAR), OPEN),
    (bits_axis.STUDY, axis(), SUPPORTED),
    (bits_axis.STUDY, axis(strings=3.6), REFUTED),
    (bits_axis.STUDY, axis(linear=3.0), REFUTED),
    (bits_axis.STUDY, axis(gpt=2.0), OPEN),
    (bits_axis.STUDY, axis(spread=FAR), OPEN),
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


@pytest.mark.parametrize("study", [bits_gpt, bits_random], ids=lambda study: study.STUDY.id)
@pytest.mark.parametrize("size", ["quick", "full"])
def test_models_are_given_more_than_the_claim_lets_them_hold(study: Any, size: Any):
    specs = study.specs_of(size)
    assert len({spec.parameters for spec in specs}) == 3
    for spec in specs:
        # Which string is asked for cannot be known: log2 n bits of each are never saved.
        lost = spec.facts * math.log2(spec.facts) if spec.task == "random-strings" else 0.0
        assert study.CLAIM.most < (spec.entropy - lost) / spec.parameters < 2 * study.CLAIM.most
        # Every item is seen as often as the study says, on average.
        seen = spec.batch * spec.max_steps / spec.facts
        assert study.EXPOSURES[size] <= seen < study.EXPOSURES[size] + spec.batch / spec.facts


@pytest.mark.parametrize("study", [bits_gpt, bits_random, bits_axis], ids=lambda study: study.STUDY.id)
def test_the_rules_find_their_claim_and_no_rival(study: Any):
    power = study.power("full")
    assert power.supported >= 0.8
    assert max(power.rivals.values()) <= 0.05


def test_the_best_load_of_a_model_counts():
    measured = bits_axis.STUDY.judge(axis()).measured
    assert "factual transformer 0.400" in measured


def test_equal_limits_are_known_no_better_than_they_were_searched():
    rows = axis()["rows"]
    rows[0] |= {"each": [1.0, 1.0, 1.0], "resolution": bits_axis.BITS_RESOLUTION}
    (linear,) = [row for row in bits_axis._pool([{"rows": rows}]) if row["name"] == bits_axis.LINEAR]
    assert linear["low"] < 1.0 < linear["high"]
