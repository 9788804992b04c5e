"""The end of training in theory: cones, capacity, what is left above it, steps, and `predict(trained=True)`."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import linprog

import mnemoscope as mn
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.theory.critical import first_that
from mnemoscope.theory.trained.capacity import (
    critical_items,
    effective_inputs,
    half_point,
    load,
    separable_probability,
    taken,
)
from mnemoscope.theory.trained.cones import draw_cones, draw_labels, draw_orthogonal_cones, project
from mnemoscope.theory.trained.fixed_point import curve, draw_items, prox
from mnemoscope.theory.trained.hull import closed_share
from mnemoscope.theory.trained.overload import overloaded, stored_share
from mnemoscope.theory.trained.predict import accuracy_of, coverage, predict_trained
from mnemoscope.theory.trained.steps import margin, steps_to_store
from mnemoscope.ui.cli import main

SPEC = Retrieval(vocab=128, dim=48, length=16, samples=1000)


def test_a_projection_is_nearest_and_leaves_a_remainder_that_no_edge_can_shorten():
    random = np.random.default_rng(0)
    for dim, labels in ((4, 9), (12, 200), (30, 20)):
        U = draw_labels(random, labels, dim, "sphere")
        g, edges = random.standard_normal(dim), (U[1:] - U[0]).T
        projected = project(g, edges)
        # Moreau: the remainder lies in the polar cone, at a right angle to the projection.
        assert np.max((g - projected) @ edges) < 1e-7
        assert abs((g - projected) @ projected) < 1e-7


def test_two_labels_take_half_a_dimension_and_three_orthogonal_ones_five_sixths():
    """A half-space; and three cones of 120 degrees each, whose polar takes 3 - (1 + 2/3 + 1/2)."""
    assert draw_orthogonal_cones(2, 100_000).dimension == pytest.approx(1 / 2, abs=0.006)
    assert draw_orthogonal_cones(3, 100_000).dimension == pytest.approx(5 / 6, abs=0.01)
    cone = draw_cones(2, 6, "sphere", 4000)
    assert cone.dimension == pytest.approx(1 / 2, abs=4 * cone.error + 0.01)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
@pytest.mark.parametrize(("labels", "dim"), [(24, 8), (90, 16), (300, 40)])
def test_the_table_holds_what_fresh_draws_give(law: str, labels: int, dim: int):
    cone = draw_cones(labels, dim, law, 800, seed=1)
    tabulated = taken(labels, dim, law)
    # The table's own error is a fifth of this one, and interpolation adds less than a percent.
    assert tabulated.dimension == pytest.approx(cone.dimension, abs=4 * cone.error + 0.01 * cone.dimension)


def test_dimensions_join_the_orthogonal_limit():
    limit = draw_orthogonal_cones(1024, 50_000).dimension
    assert taken(1024, 16, "sphere").dimension < taken(1024, 48, "sphere").dimension < 0.97 * limit
    assert taken(1024, 2**20, "sphere").dimension == pytest.approx(limit, rel=0.01)


def test_at_leading_order_a_matrix_holds_the_conjectured_number():
    """d^2 / (2 N ln N) comes down to 1 with ln ln N / ln N: slowly, and from below as delta < 2 ln N."""
    ratios = [taken(N, math.inf, "sphere").dimension / (2 * math.log(N)) for N in (2**6, 2**11, 2**17, 2**24)]
    assert ratios == sorted(ratios)
    assert 0.5 < ratios[0] < ratios[-1] < 1


def test_critical_items_are_where_the_load_is_one():
    for dim, inputs in ((8, 8), (64, 64), (16, 200)):
        items = critical_items(dim, inputs, "sphere")
        assert load(items, items, dim, inputs, "sphere") == pytest.approx(1, abs=1e-4)
    # With few answers, N_c grows like the weights.
    few = [critical_items(d, d, "sphere", labels=32) for d in (32, 64, 128)]
    assert few[1] / few[0] == pytest.approx(4, rel=0.05)
    assert few[2] / few[1] == pytest.approx(4, rel=0.05)


def test_half_of_the_draws_store_the_half_point():
    for dim, inputs, law in ((16, 16, "sphere"), (8, 24, "gaussian")):
        items = half_point(dim, inputs, law)
        assert separable_probability(items, items, dim, inputs, law) == pytest.approx(0.5, abs=1e-3)
    # Gaussian labels inside the hull of the others are lost at any width.
    assert half_point(8, 24, "gaussian") < 0.85 * half_point(8, 24, "sphere")


@pytest.mark.parametrize(("labels", "dim"), [(64, 8), (256, 8), (512, 16)])
def test_gaussian_labels_inside_the_hull_are_as_many_as_predicted(labels: int, dim: int):
    random = np.random.default_rng(2)
    draws, inside = 150, 0
    for _ in range(draws):
        U = draw_labels(random, labels, dim, "gaussian")
        # Is u_0 a mean of the others?
        equal = np.vstack([U[1:].T, np.ones(labels - 1)])
        inside += linprog(np.zeros(labels - 1), A_eq=equal, b_eq=np.append(U[0], 1.0)).status == 0
    share, error = inside / draws, math.sqrt(inside + 1) / draws
    assert taken(labels, dim, "gaussian").closed == pytest.approx(share, abs=3 * error + 0.1 * share)


def test_fewer_labels_than_dimensions_surround_nothing():
    assert closed_share(9, 8, draws=10) == 0.0


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_the_fixed_point_is_stationary_and_ends_at_capacity(rate: float):
    points = curve(64, 8, "sphere", rate, (1.0, 4.0, 40.0), 240)
    loads, top1 = [point.load for point in points], [point.accuracy[0] for point in points]
    assert loads == sorted(loads, reverse=True)
    assert top1 == sorted(top1)
    assert loads[-1] == pytest.approx(1, abs=0.03)
    assert all(np.diff(point.accuracy).min() >= 0 for point in points)


def test_a_proximal_step_has_no_gradient_left():
    (items, *_) = draw_items(50, 6, "sphere", 2.0, 40, seed=3)
    s, tau = 2.0, 3.0
    w = prox(items, s, tau, s * items.g)
    logits = w @ items.U.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    gradient = (w - s * items.g) / tau + items.weight[:, None] * (p @ items.U - items.U[items.own])
    assert np.abs(gradient).max() < 1e-3


def test_above_capacity_accuracy_falls_and_ranks_are_ordered():
    loads = np.array([0.5, 1.0, 1.05, 1.3, 2.0, 5.0, 40.0, 400.0])
    top1, top5 = (overloaded(loads, 256, 16, 4.0, "sphere", top) for top in (1, 5))
    assert top1[0] == 1
    assert (np.diff(top1) <= 0).all()
    assert (top5 >= top1).all()
    assert top1[-1] >= 1 / 256


def test_the_share_stored_falls_through_the_crossing():
    inside, at, beyond = (stored_share(n, n, 16, 16, "sphere") for n in (40, 65, 130))
    assert inside > 0.99
    assert 0.4 < at < 0.9
    assert beyond < 0.3


def test_polynomial_activations_tell_few_inputs_apart():
    assert effective_inputs(8, 0, "relu") == 8
    assert effective_inputs(8, 500, "relu") == 500
    assert effective_inputs(8, 500, "hermite2") == 36
    assert effective_inputs(8, 500, "hermite3") == 120
    assert effective_inputs(8, 20, "hermite3") == 20
    assert effective_inputs(8, 500, "linear") == 8


def test_margins_shrink_towards_capacity_and_steps_grow():
    top = critical_items(24, 24, "sphere")
    margins = [margin(share * top, share * top, 24, 24, "sphere") or 0.0 for share in (0.5, 0.8, 0.95)]
    assert margins == sorted(margins, reverse=True)
    assert margins[-1] > 0
    assert margin(1.05 * top, 1.05 * top, 24, 24, "sphere") is None
    slow, quick = (steps_to_store(0.8 * top, 24, "sphere", rate) or 0 for rate in (0.01, 0.1))
    assert slow == pytest.approx(10 * quick, rel=0.02)


def test_below_capacity_coverage_alone_decides():
    prediction = mn.predict(Retrieval(vocab=256, dim=96, length=16, samples=500), trained=True)
    assert prediction.accuracy == pytest.approx(1 - (1 - 1 / 256) ** 500, abs=1e-3)
    assert prediction.as_dict()["binding"] == "unseen"
    assert prediction.valid, prediction.notes
    assert (prediction.low or 1.0) < (prediction.accuracy or 0.0) < (prediction.high or 0.0)


def test_what_binds_is_named():
    assert predict_trained(SPEC.replace(samples=60)).binding == "unseen"
    assert predict_trained(SPEC.replace(dim=16, samples=5000)).binding == "storage"
    lost = predict_trained(SPEC.replace(length=400, samples=300))
    assert (lost.binding, lost.valid) == ("attention", False)
    stopped = predict_trained(SPEC.replace(then="adamw", steps=3))
    assert (stopped.binding, stopped.valid) == ("steps", False)
    assert "stops after 3" in stopped.notes[0]


def test_beyond_capacity_the_interval_reaches_to_the_items_that_fit():
    prediction = predict_trained(SPEC.replace(dim=16, samples=5000))
    at = prediction.terms["load"]
    assert at > 1
    assert not prediction.valid
    assert (prediction.high or 0.0) >= 1 / at * coverage(prediction.spec)
    assert prediction.capacity == pytest.approx(128 / at, rel=0.01)


def test_searches_see_more_samples_and_dimensions_help():
    accuracies = [accuracy_of(SPEC.replace(samples=n)) for n in (50, 200, 1000, 5000)]
    assert accuracies == sorted(accuracies)
    least = first_that(lambda d: accuracy_of(SPEC.replace(dim=d, samples=5000)) >= 0.9, 12, 400)
    assert least is not None
    assert least**2 / (128 * math.log(128)) < 1.3


@pytest.mark.parametrize(
    ("options", "field"),
    [({"eta": 1.0, "gamma": 3.0}, "eta"), ({"eta": 0.5}, "eta"), ({"attention": "locked"}, "attention")],
)
def test_options_of_three_steps_alone_are_refused(options: dict[str, object], field: str):
    with pytest.raises(SpecError, match="trained model") as refused:
        mn.predict(Retrieval.read({**SPEC.model_dump(), **options}), trained=True)
    assert refused.value.field == field


def test_the_prediction_is_plain_data():
    told = json.loads(json.dumps(predict_trained(SPEC).as_dict()))
    for key in ("spec", "accuracy", "attention_accuracy", "regime", "terms", "valid", "notes", "binding"):
        assert key in told


def test_the_domain_is_in_the_printed_table(capsys: pytest.CaptureFixture[str]):
    assert main(["predict", "--domain", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert any(row["measure"] == "trained" and row["validated"] for row in told["domains"])


def test_a_prediction_loads_no_simulator():
    code = (
        "import sys, mnemoscope as mn; mn.predict(mn.Retrieval(vocab=64, dim=24, length=8, samples=400), trained=True); "
        "print([name for name in sys.modules if name == 'jax' or name.startswith('mnemoscope.training')])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
