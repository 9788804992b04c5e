"""Studies of linear memories after papers C and D, and of the end of training: every rule can support, refute and leave
open."""

import json
import math
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from matplotlib.figure import Figure

from mnemoscope.experiments.best_limits import draw_items, largest_held
from mnemoscope.experiments.exact_storage import store
from mnemoscope.experiments.listwise_storage import holds_listwise, soften, top_average
from mnemoscope.spec import Memory
from mnemoscope.studies import lin_hebbian, lin_listwise, lin_optimal, lin_two_layer, t_converged
from mnemoscope.studies.base import Numbers, Size, Study
from mnemoscope.studies.one_constant import fit_levels, lead_of
from mnemoscope.studies.power import ENOUGH
from mnemoscope.studies.seed_limits import limit_point
from mnemoscope.theory.associative import hebbian_constant
from mnemoscope.theory.trained.attention import FOUND, first_attention
from mnemoscope.theory.trained.capacity import critical_items

SUPPORTED, REFUTED, OPEN = "supported", "refuted", "inconclusive"
QUANTILES = (np.arange(16) + 0.5) / 16


def hebbian(law: str = lin_hebbian.CLAIM, level: float = 1.0, widens: float = 1.0, spread: float = 1.0) -> Numbers:
    """Limits at the quantiles of their law, times a factor; their width is (C1)'s, or `widens` each time d doubles."""
    points = []
    for dim in (64, 128, 256, 512, 1024, 2048):
        place = {"dim": dim}
        width = lin_hebbian.width_at(dim) if widens == 1.0 else 0.05 * (dim / 64) ** math.log2(widens)
        middle = lin_hebbian.LAWS[law](place) * lin_hebbian.items_at(256) / lin_hebbian.LAWS[law]({"dim": 256})
        logs = (np.log(-np.log(1 - QUANTILES)) + np.euler_gamma) / lin_hebbian.SCATTER_OF_LOG
        points.append(
            limit_point((level * middle * np.exp(spread * width * logs)).tolist(), 0.04, **place, size=dim**2)
        )
    return {"points": points}


def test_the_rule_of_outer_products_with_gaussian_pairs():
    supported = lin_hebbian.STUDY.judge(hebbian())
    assert supported.verdict == SUPPORTED
    assert "so 8 becomes 7.9" in supported.measured
    assert lin_hebbian.STUDY.judge(hebbian("n as d^1.5")).verdict == REFUTED
    assert lin_hebbian.STUDY.judge(hebbian(level=0.6)).verdict == REFUTED
    assert lin_hebbian.STUDY.judge(hebbian(widens=1.3)).verdict == REFUTED  # it smears out
    assert lin_hebbian.STUDY.judge(hebbian(spread=6.0)).verdict == OPEN
    assert lin_hebbian.STUDY.judge({"points": hebbian()["points"][:3]}).verdict == OPEN


def test_the_finite_form_of_outer_products_goes_to_eight():
    """By (H3), which knows no lengths: they matter less and less."""
    assert hebbian_constant(lin_hebbian.items_at(10**4), 10**4) == pytest.approx(8.0, abs=0.15)
    gaps = [hebbian_constant(lin_hebbian.items_at(d), d) - 8 for d in (64, 256, 1024, 4096)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 5


def test_levels_of_laws_with_one_constant():
    points = [limit_point([3.0 * d * f for f in (0.99, 1.0, 1.01)], 0.0, dim=d, size=d) for d in (8, 16, 32, 64, 128)]
    fits = fit_levels(
        points, {"d": lambda p: p["dim"], "d²": lambda p: p["dim"] ** 2, "root": lambda p: p["dim"] ** 0.5}
    )
    assert fits is not None
    assert fits["d"]["level"] == pytest.approx(3.0, rel=1e-3)
    assert fits["d"]["low"] < 3.0 < fits["d"]["high"] < 3.2
    lead, rival = lead_of(fits, "d")
    assert lead > 20
    assert rival in ("d²", "root")
    assert lead_of(fits, "d²")[1] == "d"
    assert lead_of(fits, "d²")[0] < -20
    assert fit_levels(points[:3], {"d": lambda p: p["dim"]}) is None


def optimal(law: str = lin_optimal.CLAIM, level: float = 1.0, spread: float = 1.0) -> Numbers:
    points = []
    for dim in (6, 8, 11, 16, 22, 32):
        middle = lin_optimal.LAWS[law]({"dim": dim}) * lin_optimal.items_at(16) / lin_optimal.LAWS[law]({"dim": 16})
        each = [level * middle * math.exp(spread * off) for off in (-0.06, -0.02, 0.02, 0.06)]
        points.append(limit_point(each, 0.02, dim=dim, size=dim * dim))
    return {"points": points}


def test_the_rule_of_the_best_matrix():
    supported = lin_optimal.STUDY.judge(optimal())
    assert supported.verdict == SUPPORTED
    assert "so its limit of 1/2 becomes 0.500" in supported.measured
    assert lin_optimal.STUDY.judge(optimal(level=2.0)).verdict == REFUTED  # a constant of 1
    assert lin_optimal.STUDY.judge(optimal(level=0.5)).verdict == REFUTED
    assert lin_optimal.STUDY.judge(optimal("p as d², no logarithm")).verdict == REFUTED
    assert lin_optimal.STUDY.judge(optimal(level=1.09)).verdict == OPEN
    assert lin_optimal.STUDY.judge(optimal(spread=20.0)).verdict == OPEN
    assert lin_optimal.STUDY.judge({"points": optimal()["points"][:3]}).verdict == OPEN


def test_the_best_limit_is_certified_on_both_sides():
    dim, seed = 6, 3
    limit = lin_optimal.best_limit(dim, seed)
    assert limit is not None
    items, labels = draw_items(Memory(items=40, dim=dim), seed)
    for count, separable in ((math.floor(limit / 1.03), True), (math.ceil(limit * 1.03), False)):
        assert store(labels[:count], items[:count], np.arange(count)).separable is separable
    # A seed has the same items at any number of them.
    fewer, _ = draw_items(Memory(items=10, dim=dim), seed)
    assert np.array_equal(items[:10], fewer)


@pytest.mark.parametrize("true", [1, 2, 7, 90, 399])
def test_a_limit_is_found_wherever_it_is(true: int):
    found = largest_held(lambda items: items <= true, 60.0, 400, 0.02)
    assert found is not None
    assert true * 0.98 <= found <= (true + 1) * 1.02
    assert largest_held(lambda items: True, 60.0, 400, 0.02) is None
    assert largest_held(lambda items: None, 60.0, 400, 0.02) is None


def listwise(law: str = lin_listwise.CLAIM, level: float = 1.0, spread: float = 1.0) -> Numbers:
    points = []
    for share in lin_listwise.SHARES:
        for dim in (8, 11, 16, 22, 32):
            place, middle = lin_listwise.place_of(dim, share), lin_listwise.place_of(16, share)
            items = lin_listwise.LAWS[law](place) * lin_listwise.items_at(16, share) / lin_listwise.LAWS[law](middle)
            each = [level * items * math.exp(spread * off) for off in (-0.06, -0.02, 0.02, 0.06)]
            points.append(limit_point(each, 0.02, **place))
    return {"points": points}


def test_the_rule_of_lists():
    supported = lin_listwise.STUDY.judge(listwise())
    assert supported.verdict == SUPPORTED
    assert "so 0.658 becomes 0.658" in supported.measured
    assert lin_listwise.STUDY.judge(listwise(level=1.3)).verdict == REFUTED
    assert lin_listwise.STUDY.judge(listwise(level=0.8)).verdict == REFUTED
    assert lin_listwise.STUDY.judge(listwise(lin_listwise.LOGARITHM)).verdict == REFUTED
    assert lin_listwise.STUDY.judge(listwise(level=1.09)).verdict == OPEN
    assert lin_listwise.STUDY.judge(listwise(spread=20.0)).verdict == OPEN
    assert lin_listwise.STUDY.judge({"points": listwise()["points"][:3]}).verdict == OPEN


def test_the_finite_form_of_lists_goes_to_the_closed_form():
    for share, load in ((0.5, 0.658), (0.1, 0.246), (0.01, 0.123)):
        assert lin_listwise.critical_load(share) == pytest.approx(load, abs=5e-4)
        loads = [lin_listwise.items_at(dim, share) / dim**2 for dim in (16, 64, 1024, 2**14)]
        assert loads == sorted(loads, reverse=True)
        assert loads[-1] == pytest.approx(load, rel=0.01)


def test_lists_are_certified_on_both_sides():
    """Feasible up to a limit; and with a list of one the criterion is top-1, where another certificate agrees."""
    random = np.random.default_rng(0)
    U, E = (random.standard_normal((90, 6)) for _ in range(2))
    held = [holds_listwise(U[:n], E[:n], 0.5) for n in (8, 16, 24, 32, 48, 64, 90)]
    assert held[0] is True
    assert held[-1] is False
    assert held == [True] * held.index(False) + [False] * (len(held) - held.index(False))
    for n in (10, 14, 18, 22, 28):
        assert holds_listwise(U[:n], E[:n], 0.0) == store(U[:n], E[:n], np.arange(n)).separable


def test_the_soft_average_bounds_the_top_average():
    gaps = np.random.default_rng(1).standard_normal((5, 40)) * 3
    for count in (1.0, 2.5, 10.0, 39.0):
        found = soften(gaps, count)
        assert np.allclose(found.weights.sum(axis=1), 1.0)
        assert (found.weights <= 1 / count + 1e-12).all()
        assert (found.value >= top_average(gaps, count)).all()
        # Its derivative, by differences.
        step = 1e-5 * np.eye(40)[7]
        slope = (soften(gaps + step, count).value - soften(gaps - step, count).value) / 2e-5
        assert np.allclose(slope, found.weights[:, 7], atol=1e-6)
    assert top_average(np.array([[3.0, 1.0, 2.0]]), 1.5)[0] == pytest.approx((3 + 0.5 * 2) / 1.5)


def two_layers(law: str = lin_two_layer.CLAIM, level: float = 1.0, spread: float = 1.0, moved: float = 1.0) -> Numbers:
    points = []
    for place in lin_two_layer.places_of("quick"):
        items = lin_two_layer.LAWS[law](place)
        each = [level * items * math.exp(spread * off) for off in (-0.04, 0.0, 0.04)]
        point = limit_point(each, 0.02, **place)
        points.append({**point, "half": [limit / moved for limit in each]})
    return {"points": points}


def test_the_rule_of_two_layers():
    judge = lin_two_layer.STUDY.judge
    assert judge(two_layers()).verdict == SUPPORTED
    for name in ("degrees of freedom", "parameters, up to d²", "r d", "d², whatever the rank"):
        assert judge(two_layers(name)).verdict == REFUTED
    assert judge(two_layers(level=0.8)).verdict == REFUTED
    assert judge(two_layers(level=1.09)).verdict == OPEN
    assert judge(two_layers(spread=20.0)).verdict == OPEN
    assert judge(two_layers(moved=1.3)).verdict == OPEN  # out of steps everywhere


def test_what_low_rank_leaves_of_a_gaussian_matrix():
    sums = lin_two_layer.squares_of(24)
    assert sums[-1] == pytest.approx(24**2, rel=0.02)
    # At half of the ranks, by the quarter-circle law of the singular values.
    x = np.linspace(0, 2, 20001)
    density = np.sqrt(4 - x**2) / np.pi
    share = np.cumsum(density) / density.sum()
    above = x > x[np.searchsorted(share, 0.5)]
    wanted = np.sum(x[above] ** 2 * density[above]) / np.sum(x**2 * density)
    assert lin_two_layer.squares_of(96)[47] / 96**2 == pytest.approx(wanted, abs=0.01)
    full = {"dim": 24, "width": 24}
    assert lin_two_layer.items_at(full) == pytest.approx(critical_items(24, 24, "sphere"), rel=0.03)


def converged(off: Callable[[float], float], swing: float = 0.002, missing: int = 0) -> Numbers:
    """Accuracies off the law's by `off` of the load, seeds swinging about that."""
    points = []
    for at, (said, load) in enumerate(
        [(1.0, 0.3), (1.0, 0.5), (0.9, 0.4), (0.8, 0.9), (0.6, 1.1), (0.4, 1.5), (0.2, 2.5)]
    ):
        mean = said + off(load)
        place = {"vocab": 96, "dim": 20, "length": 8, "samples": 500, "embedding": ("gaussian", "sphere")[at % 2]}
        each = [] if at < missing else [mean - swing, mean, mean + swing]
        points.append({**place, "predicted": said, "load": load, "accuracies": each})
    return {"points": points, "seeds": 3}


def test_the_rule_of_the_end_of_training():
    judge = t_converged.STUDY.judge
    assert judge(converged(lambda load: 0.0)).verdict == SUPPORTED
    assert judge(converged(lambda load: -0.015)).verdict == SUPPORTED
    assert judge(converged(lambda load: -0.05)).verdict == REFUTED  # all are a little off
    assert judge(converged(lambda load: 0.15 * (load > 2))).verdict == REFUTED  # one is far off
    assert judge(converged(lambda load: 0.0, swing=0.1)).verdict == OPEN
    lost = judge(converged(lambda load: 0.0, missing=1))
    assert lost.verdict == SUPPORTED
    assert "3 runs did not settle" in lost.measured
    assert judge(converged(lambda load: 0.0, missing=5)).verdict == OPEN


def test_what_noise_adds_to_an_absolute_error():
    random = np.random.default_rng(0)
    for true in (0.0, 0.01, 0.05):
        drawn = np.abs(random.normal(true, 0.02, 200_000)).mean() - true
        assert t_converged.added_by_noise(np.array([true]), np.array([0.02]))[0] == pytest.approx(drawn, abs=2e-4)


@pytest.mark.parametrize("size", get_args(Size))
def test_settings_are_drawn_on_both_sides_of_capacity_where_attention_starts_right(size: Size):
    specs = t_converged.drawn_settings(size)
    assert specs == t_converged.drawn_settings(size)
    assert len(set(specs)) == t_converged.SETTINGS[size]
    assert all(first_attention(spec) >= FOUND for spec in specs)
    loads = [t_converged.predicted(spec).terms["load"] for spec in specs]
    assert min(loads) < 0.6 < 1.5 < max(loads)


POWERED = (lin_hebbian, lin_optimal, lin_listwise, lin_two_layer, t_converged)


@pytest.mark.long
@pytest.mark.parametrize(
    "study",
    [
        pytest.param(module.STUDY, marks=[pytest.mark.longest] if module is lin_two_layer else [], id=module.STUDY.id)
        for module in POWERED
    ],
)
def test_power_is_enough_at_full_size(study: Study):
    assert study.power is not None
    found = study.power("full")
    assert found.supported >= ENOUGH
    # A rule that calls a rival law supported says so in its note.
    confused = [name for name, share in found.rivals.items() if share > 0.05]
    assert confused == (["p as d^1.5"] if study.id == "lin-optimal" else [])
    assert "cannot tell" in found.note or not confused


def test_figures_are_drawn_from_numbers_alone():
    drawn: list[tuple[Any, Numbers]] = [
        (lin_hebbian, hebbian()),
        (lin_optimal, optimal()),
        (lin_listwise, listwise()),
        (lin_two_layer, two_layers()),
        (t_converged, converged(lambda load: 0.01)),
    ]
    for module, numbers in drawn:
        figure = Figure()
        module.draw(json.loads(json.dumps(numbers)), figure)
        assert figure.axes
        figure.canvas.draw()
