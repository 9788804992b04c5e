"""Associative memories: plain loops, laws, capacities, and the search for each seed's limit."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope import Memory, SpecError, capacity, capacity_many
from mnemoscope.experiments.estimate.limits import Limits, search_limits
from mnemoscope.experiments.estimate.search import Place
from mnemoscope.models.memory import Full, construct, draw_pairs, least_squares, logits
from mnemoscope.store.trials import Store
from mnemoscope.theory.activation import apply
from mnemoscope.theory.associative import hebbian_accuracy, hebbian_capacity, items_by_law
from mnemoscope.training.memory import MEMORY, draw_streams
from mnemoscope.ui.cli import main

KINDS = [
    {},
    {"outputs": 3},
    {"rank": 5},
    {"width": 16},
    {"width": 16, "activation": "hermite3", "outputs": 4},
    {"method": "least-squares"},
    {"method": "least-squares", "outputs": 7},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_constructions_are_the_sums_they_say(kind: dict):
    """Item by item in plain loops, alone and inside a program with room for more."""
    spec = Memory(items=13, dim=8, embedding="gaussian", **kind)
    told = []
    for program in (spec, spec.replace(items=16)):
        keys, items = draw_streams([(spec, 5)])
        one = {name: part[0] for name, part in keys.items()}
        pairs = draw_pairs(program, one, items[0])
        E, U = np.asarray(pairs.E[:13], float), np.asarray(pairs.U[: spec.labels], float)
        if spec.method == "hebbian":
            weights = construct(program, one, pairs)
        else:
            weights = Full(jnp.asarray(least_squares(E, U, np.asarray(pairs.label[:13])), float))
        told.append(np.asarray(logits(program, pairs, weights, pairs.E[:13]))[:, : spec.labels])
        label = [x % (spec.outputs or 13) for x in range(13)]
        Y = np.zeros((13, spec.labels))
        Y[np.arange(13), label] = 1
        if isinstance(weights, Full) and spec.method == "hebbian":
            want = E @ sum((np.outer(E[x], U[label[x]]) for x in range(13)), np.zeros((8, 8))) @ U.T
        elif isinstance(weights, Full):
            want = E @ np.linalg.pinv(E) @ Y @ np.linalg.pinv(U.T) @ U.T
        else:
            F = np.asarray(weights.F, float)
            A = E @ F.T
            hidden = apply(spec.activation, A) if spec.width else A
            if spec.width:
                order3 = spec.activation == "hermite3"
                A = apply("hermite3" if order3 else "hermite2", A) / spec.width
            V = sum((np.outer(A[x], U[label[x]]) for x in range(13)), np.zeros((len(F), 8)))
            want = hidden @ V @ U.T
        assert told[-1] == pytest.approx(want, rel=2e-3, abs=2e-3)
        assert sum(part.size for part in weights) == spec.parameters
    assert told[0] == pytest.approx(told[1], rel=1e-3, abs=1e-4)


def test_the_same_seed_has_the_same_first_items():
    small, large = (
        draw_pairs(spec, {name: part[0] for name, part in draw_streams([(spec, 1)])[0].items()}, jnp.uint32(spec.items))
        for spec in (Memory(items=5, dim=6), Memory(items=9, dim=6))
    )
    assert (np.asarray(large.E[:5]) == np.asarray(small.E)).all()
    assert (np.asarray(large.U[:5]) == np.asarray(small.U)).all()


def test_hebbian_accuracy_is_theorys():
    for items, outputs in ((600, 0), (900, 0), (300, 8)):
        spec = Memory(items=items, dim=128, outputs=outputs)
        told = [one.accuracy or 0.0 for one in MEMORY.run([(spec, seed) for seed in range(12)])]
        error = float(np.std(told, ddof=1)) / math.sqrt(12)
        # (H2) leaves out that the logits of one item depend on each other: docs/memory.md.
        assert abs(np.mean(told) - hebbian_accuracy(items, 128, outputs)) < 4 * error + 0.03


def test_laws_come_back():
    n = items_by_law(128**2, 8.0)
    assert 8 * n * math.log(n) == pytest.approx(128**2)
    # N^2 Q(t) = ln 2 with t^2 = d^2 / (2 N), Q's tail taken to first order, is the sharp law with
    # the logarithm's next term. (H2) nears it as d grows.
    misses = []
    for d in (100, 1_000, 10_000):
        n = hebbian_capacity(d, 1.0)
        t = d / math.sqrt(2 * n)
        law = 8 * n * (math.log(n) - math.log(math.sqrt(2 * math.pi) * math.log(2) * t) / 2)
        misses.append(abs(d**2 / law - 1))
    assert misses[0] > misses[1] > misses[2]
    assert misses[2] < 0.02
    # Two answers: N grows like d, not like d^2.
    assert hebbian_capacity(512, 0.99, 2) / hebbian_capacity(256, 0.99, 2) == pytest.approx(2, 0.1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("dim", "criterion", "known"), [(128, 1.0, 334), (128, 0.99, 433), (256, 1.0, 1148), (256, 0.99, 1729)]
)
def test_known_hebbian_capacities(dim: int, criterion: float, known: int, tmp_path: Path):
    with Store(tmp_path / "s.db") as store:
        found = capacity(Memory(items=2, dim=dim), criterion, store=store)
        assert found.status == "found"
        assert found.limits.estimate == pytest.approx(known, rel=0.1)
        low, mean, high = (value or 0.0 for value in (found.limits.low, found.limits.estimate, found.limits.high))
        assert 0 < low < mean < high


@pytest.mark.long
def test_training_stores_more_than_outer_products(tmp_path: Path):
    spec = Memory(items=60, dim=16, method="trained")
    with Store(tmp_path / "s.db") as store:
        more = {"store": store, "most_seeds": 3, "seeds": 3, "tolerance": 0.5}
        made = capacity_many([spec, spec.replace(method="hebbian")], 0.99, **more)
        trained, written = (point.limits for point in made.points)
        assert min(one or 0 for one in trained.each) > max(one or 1e9 for one in written.each)
        again = capacity_many([spec], 0.99, **more)
        assert again.points[0].limits == trained


def test_side_by_side_is_alone():
    jobs = [
        (Memory(items=n, dim=12, width=8, method="trained", max_steps=256), seed) for n in (33, 34) for seed in (0, 1)
    ]
    assert MEMORY.program(jobs[0][0]) == MEMORY.program(jobs[2][0])
    together = MEMORY.run(jobs)
    (alone,) = MEMORY.run(jobs[2:3])
    assert together[2].status == alone.status
    assert together[2].accuracy == pytest.approx(alone.accuracy, abs=2 / 34)


def answer(limits: dict[int, float], places: list[Place], crashed: tuple[int, ...] = ()) -> dict[Place, bool | None]:
    return {(value, seed): None if seed in crashed else bool(value <= limits[seed]) for value, seed in places}


def drive(limits: dict[int, float], crashed: tuple[int, ...] = (), **more) -> tuple[Limits, int]:
    search, asked = search_limits(more.pop("guess", 100), **more), 0
    told: Mapping[Place, bool | None] | None = None
    try:
        while True:
            places = next(search) if told is None else search.send(told)
            asked += len(places)
            told = answer(limits, places, crashed)
    except StopIteration as end:
        return end.value, asked


def test_each_seed_finds_its_own_limit():
    truth = {0: 3170.0, 1: 2810.0, 2: 3333.0, 3: 3050.0}
    found, asked = drive(truth, resolution=0.02, most_seeds=4, tolerance=0.2)
    assert found.status == "found"
    for seed, limit in truth.items():
        assert found.each[seed] == pytest.approx(limit, rel=0.02)
    assert asked < 4 * 18
    assert found.low is not None
    assert found.high is not None
    assert found.low < 3090 < found.high


def test_a_range_that_does_not_hold_it_says_so():
    truth = dict.fromkeys(range(4), 50.0)
    assert drive(truth, ends=(60, 100))[0].status == "below-range"
    assert drive(truth, ends=(10, 40))[0].status == "above-range"
    assert drive(truth, ends=(10, 90))[0].status == "found"
    assert drive(dict.fromkeys(range(4), 0.0))[0].status == "below-range"


def test_a_crash_is_not_a_limit():
    truth = dict.fromkeys(range(8), 50.0)
    found, _ = drive(truth, crashed=(1,), most_seeds=4)
    assert found.each[1] is None
    assert found.estimate == pytest.approx(50, rel=0.05)
    assert drive(truth, crashed=(0, 1, 2, 3), most_seeds=4)[0].status == "unresolved"


def test_the_interval_covers():
    """Limits with a spread of 10 %, 400 searches: 95 % within four standard errors."""
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(400):
        truth = dict(enumerate(1000 * np.exp(0.1 * rng.normal(size=6))))
        found, _ = drive(truth, guess=1000, most_seeds=6, seeds_at_first=6, resolution=0.03)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1000 <= found.high
    assert abs(covered / 400 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 400)


@pytest.mark.long
def test_the_command_tells_all_that_is_promised(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["memory", "--dim", "24", "--criterion", "all", "--store", str(tmp_path / "s.db")]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"kind", "method", "criterion", "capacity", "low", "high", "status"} <= set(told)
    assert (told["kind"], told["method"], told["criterion"]) == ("linear", "hebbian", "all")
    assert told["parameters"] == 576
    assert main([*words, "--out", str(tmp_path / "c.png")]) == 0
    assert "all items right" in capsys.readouterr().out
    assert (tmp_path / "c.png").stat().st_size > 5000
    words[2] = "16,24"
    assert main([*words, "--json"]) == 0
    assert [one["spec"]["dim"] for one in json.loads(capsys.readouterr().out)["points"]] == [16, 24]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--dim", "8", "--kind", "mlp"], "--width: expected hidden units for an mlp, got none"),
        (["--dim", "8", "--kind", "linear", "--width", "3"], "--width: expected none for a linear memory, got 3"),
        (["--dim", "8", "--criterion", "most"], "--criterion: expected 'all' or a number from 0.01 to 1, got 'most'"),
        (["--dim", "8", "--rank", "9"], "--rank: expected at most dim = 8, got 9"),
        (["--dim", "8", "--range", "9:3"], "--range: expected LOW below HIGH, got '9:3'"),
        (["--dim", "8", "--order", "2"], "--order: expected a constructed MLP (width, hebbian) for it, got 2"),
    ],
)
def test_bad_requests_get_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]):
    assert main(["memory", *words]) == 2
    assert capsys.readouterr().err == f"mnemoscope: {line}\n"


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(SpecError, match="at most dim = 4 orthonormal"):
        Memory(items=5, dim=4, embedding="orthonormal")
    with pytest.raises(SpecError, match="full rank for least-squares"):
        Memory(items=5, dim=4, rank=2, method="least-squares")
