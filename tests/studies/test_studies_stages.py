"""Phases of learning and constructed MLPs: every rule goes every way; plateaus and constructions are what they say."""

import json
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mnemoscope.spec import Transformer
from mnemoscope.studies import mlp_built, stages
from mnemoscope.studies.base import Numbers, Study
from mnemoscope.studies.seed_limits import limit_point

SUPPORTED, REFUTED, OPEN = "supported", "refuted", "inconclusive"
NEAR, FAR = (0.99, 1.0, 1.01), (0.1, 1.0, 10.0)
CURVE = {"steps": [0, 32, 64], "recall": [0.0, 0.1, 0.5], "loss": [3.0, 2.0, 1.0]}


def phases(
    grows: float = 1.0, shorter: float = 0.5, lost: float = 0.4, long: float = 300.0, spread: tuple[float, ...] = NEAR
) -> Numbers:
    """Plateaus after 100 steps, of `long` steps at the most subjects."""

    def row(subjects: int, law: str, length: float) -> Numbers:
        ends = [100.0 + length * factor for factor in spread]
        return {"subjects": subjects, "law": law, "begins": [100.0] * len(ends), "ends": ends, "curve": CURVE}

    rows = [row(count, "uniform", long * (count / 128) ** grows) for count in (32, 64, 128)]
    rows.append(row(128, stages.LAW, long * shorter))
    return {"rows": rows, "damage": [{"before": 1.0, "after": 1 - lost * factor} for factor in NEAR]}


def built(power: float = 0.0, share: float = 0.2, gain: float = 1.0, spread: tuple[float, ...] = NEAR) -> Numbers:
    """Limits of memories, trained in proportion to m d, and built as a share of them with this power of m d."""
    points: dict[str, list[Numbers]] = {"built": [], "trained": []}
    for dim, width in ((8, 32), (12, 48), (16, 64), (24, 96)):
        place = {"dim": dim, "width": width, "size": dim * width}
        stored = 0.5 * dim * width
        own = [share * stored * (dim * width / 256) ** power * factor for factor in spread]
        points["built"].append(limit_point(own, 0.0, **place))
        trained = limit_point([stored * factor for factor in NEAR], 0.0, **place)
        points["trained"].append({**trained, "half": [each / gain for each in trained["each"]]})
    return points


CASES: list[tuple[Study, Numbers, str]] = [
    (stages.STUDY, phases(), SUPPORTED),
    (stages.STUDY, phases(grows=0.0), REFUTED),
    (stages.STUDY, phases(shorter=1.5), REFUTED),
    (stages.STUDY, phases(lost=0.01), REFUTED),
    (stages.STUDY, phases(long=20.0), REFUTED),
    (stages.STUDY, phases(spread=FAR), OPEN),
    (mlp_built.STUDY, built(), SUPPORTED),
    (mlp_built.STUDY, built(power=-0.4), REFUTED),
    (mlp_built.STUDY, built(power=0.4), REFUTED),
    (mlp_built.STUDY, built(spread=FAR), OPEN),
    # Every trained limit is that of the steps: nothing to compare with.
    (mlp_built.STUDY, built(gain=1.5), OPEN),
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


@pytest.mark.parametrize("study", [stages, mlp_built], ids=lambda study: study.STUDY.id)
def test_the_rules_find_their_claim_and_no_rival(study: Any):
    power = study.power("full")
    assert power.supported >= 0.8
    assert max(power.rivals.values()) <= 0.05


def test_facts_recalled_before_the_relation_is_known_leave_no_plateau():
    early = phases()
    for row in early["rows"]:
        row["ends"] = [50.0] * len(row["ends"])
    assert stages.STUDY.judge(early).verdict == REFUTED


@pytest.mark.long
def test_a_plateau_is_timed_between_checks():
    spec = Transformer(
        task="facts", subjects=8, relations=2, answers=4, noise=2, length=4, layers=1, dim=16, heads=2, width=16
    ).replace(batch=32, lr=0.01, max_steps=256)
    (found,) = stages.plateaus(spec, [3])
    steps, recall = found["steps"], found["recall"]
    level = 1 / 4 + stages.RECALLED * 3 / 4
    after = next(at for at, value in enumerate(recall) if value >= level)
    assert steps[after - 1] <= found["ends"] <= steps[after]
    assert np.interp(found["ends"], steps[after - 1 : after + 1], recall[after - 1 : after + 1]) == pytest.approx(level)
    assert recall[-1] == 1.0


def test_codes_name_their_values_and_units_are_as_many_as_were_asked_for():
    rng = np.random.default_rng(0)
    E, U = rng.standard_normal((2, 20, 12))
    codes, right = mlp_built.find_codes(U)
    assert right == 1.0
    # 20 facts of 12 coordinates are 240 equations in 12 * 32 unknowns: the encoder is exact.
    F, V = mlp_built.encode(E, codes, np.eye(12), 32, rng)
    assert F.shape == V.shape == (64, 12)
    assert np.maximum(E @ F.T, 0) @ V == pytest.approx(codes, abs=1e-4)
    assert mlp_built.share_right(E, U, F, V) == 1.0


def test_a_wrong_memory_is_not_called_right():
    rng = np.random.default_rng(1)
    E, U, F, V = rng.standard_normal((4, 200, 12))
    assert mlp_built.share_right(E, U, F, V) < 0.1
    # Far more facts than the units have room for.
    assert mlp_built.build(E, U, 8, rng) is None
