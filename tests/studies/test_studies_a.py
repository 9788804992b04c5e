"""Rules of paper A's studies: each can be supported, refuted and left open by numbers alone."""

import json
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from mnemoscope.experiments.alignment import trigger_cosine
from mnemoscope.experiments.decoders import decode, see
from mnemoscope.experiments.noisy_decoding import NAMES, allowed_share, name_labels
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.studies import (
    a_bound,
    a_first_steps,
    a_monotone,
    a_orthogonal,
    a_per_parameter,
    a_phase,
    a_predicted,
    a_superposition,
    a_trigger,
    news_facts,
    q_beyond,
    q_large_dimension,
)
from mnemoscope.studies.base import Study
from mnemoscope.studies.power import ENOUGH
from mnemoscope.theory.bound import noisy_samples

Numbers = dict[str, Any]


def verdict(study: Study, *bases: Numbers) -> str:
    """Of all bases in one; and the figure is drawn from the numbers as JSON has them."""
    kept = json.loads(json.dumps(bases))
    figure = Figure()
    study.draw(kept[0], figure)
    assert figure.axes
    assert study.judge_all is not None
    judgement = study.judge_all(kept)
    if len(bases) == 1:
        assert study.judge(kept[0]) == judgement
    assert judgement.measured
    return judgement.verdict


def about(value: float, wide: float = 1.1) -> Numbers:
    """A critical value with its interval."""
    return {"low": value / wide, "high": value * wide, "status": "found"}


def runs(kept: int, flipped: int, lost: int, optimiser: str) -> Numbers:
    """Runs that stay unlocked, that lock later, and that are locked, some of them lost again."""
    pairs = [[0.2, 0.3]] * kept + [[0.3, 0.8]] * flipped
    return {"optimiser": optimiser, "pairs": pairs + [[0.8, 0.9]] * 40 + [[0.7, 0.4]] * lost}


@pytest.mark.parametrize(
    ("kept", "flipped", "lost", "expected"),
    [
        (60, 1, 0, "supported"),
        (20, 20, 0, "refuted"),
        (60, 1, 40, "refuted"),
        (20, 5, 0, "inconclusive"),
        (4, 0, 0, "inconclusive"),
    ],
)
def test_the_rule_of_locking(kept: int, flipped: int, lost: int, expected: str):
    rows = [runs(kept, flipped, lost, name) for name in a_first_steps.OPTIMISERS]
    assert verdict(a_first_steps.STUDY, {"steps": 9, "rows": rows}) == expected


def test_locking_is_pooled_and_asks_both_optimisers():
    half = {"steps": 9, "rows": [runs(12, 1, 0, name) for name in a_first_steps.OPTIMISERS]}
    assert verdict(a_first_steps.STUDY, half) == "inconclusive"
    assert verdict(a_first_steps.STUDY, half, half, half) == "supported"
    mixed = {"steps": 9, "rows": [runs(60, 1, 0, "gd"), runs(20, 20, 0, "adamw")]}
    assert verdict(a_first_steps.STUDY, mixed) == "inconclusive"


@pytest.mark.parametrize(
    ("gains", "expected"), [((0.3, 0.0), "supported"), ((0.3, -0.3), "refuted"), ((0.0, 0.0), "inconclusive")]
)
def test_the_rule_beyond_three_steps(gains: tuple[float, ...], expected: str):
    def mean(value: float) -> Numbers:
        return {"mean": value, "low": value - 0.05, "high": value + 0.05}

    rows = [
        {"samples": 10 + at, "three": mean(0.4), "more": mean(0.4 + gain), "gain": mean(gain)}
        for at, gain in enumerate(gains)
    ]
    assert q_beyond.judge({"rows": rows, "steps": 5}).verdict == expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0.2, 0.9, "supported"),
        (0.9, 0.5, "refuted"),
        (0.01, 0.1, "refuted"),
        (0.2, 0.5, "inconclusive"),
        (0.9, 0.9, "inconclusive"),
    ],
)
def test_the_rule_of_the_cosine(first: float, last: float, expected: str):
    rows = [
        {"samples": n, "cosines": [cosine - 0.01, cosine, cosine + 0.01]} for n, cosine in ((10, first), (100, last))
    ]
    assert verdict(a_trigger.STUDY, {"rows": rows, "chance": 0.25, "dim": 64}) == expected


def test_alpha_turns_to_the_trigger_and_only_where_it_is_learned():
    base = Retrieval(vocab=32, dim=16, length=4, samples=20)
    few, many = (np.mean([trigger_cosine(base.replace(samples=n), seed) for seed in range(4)]) for n in (20, 20_000))
    assert few < many
    assert many > 0.95
    with pytest.raises(SpecError, match="expected learned attention"):
        trigger_cosine(base.replace(attention="locked"), 0)


def bound_numbers(times: float, additive: bool = False, above: bool = False) -> Numbers:
    """Decoders whose critical N is so many times the bound's, on a grid of d and L."""
    rows = []
    for dim in (24, 32, 48):
        for length in (8, 16, 32):
            bound = 100.0 * length * (32 / dim) ** 2
            n = 1e4 * (24 / dim) ** 4 + 60.0 * length**2 if additive else times * bound
            share = 0.9 if above else 0.2
            place = {
                "samples": round(bound),
                "allowed": 0.5,
                "vocab": 64,
                "shares": {name: [share] * 4 for name in NAMES},
            }
            rows.append(
                {
                    "vocab": 64,
                    "dim": dim,
                    "length": length,
                    "bound": n / 5 if additive else bound,
                    "places": [place],
                    "samples": n,
                    "low": n / 1.05,
                    "high": n * 1.05,
                    "decoders": {name: {"samples": n} for name in NAMES},
                }
            )
    written = [
        {"bits": 1, "dim": 8, "samples": 9, "allowed": 0.4, "vocab": 64, "shares": {name: [0.2] * 4 for name in NAMES}}
    ]
    return {"rows": rows, "written": written}


def test_the_rule_of_the_bound():
    assert verdict(a_bound.STUDY, bound_numbers(5)) == "supported"
    assert verdict(a_bound.STUDY, bound_numbers(20)) == "inconclusive"
    assert verdict(a_bound.STUDY, bound_numbers(5, additive=True)) == "refuted"
    assert verdict(a_bound.STUDY, bound_numbers(5, above=True)) == "refuted"
    written = bound_numbers(5)
    written["written"][0]["shares"]["matched_filter"] = [0.9] * 4
    assert verdict(a_bound.STUDY, written) == "refuted"
    missing = bound_numbers(5)
    missing["rows"][0] |= {"samples": None, "decoders": {}}
    assert verdict(a_bound.STUDY, missing) == "inconclusive"


def test_noise_and_bits_take_labels_away():
    spec = Retrieval(vocab=32, dim=16, length=4, samples=4000)
    seen = [
        np.mean([name_labels(spec, seed, noise=noise).shares["matched_filter"] for seed in (0, 1)])
        for noise in (0.01, 5.0)
    ]
    assert seen[0] > seen[1] + 0.2
    # The bound's own N allows half of the labels, and not much more.
    long = spec.replace(length=64)
    least = round(noisy_samples(long, 1.0, 0.5))
    share = allowed_share(long.replace(samples=least), noise=1.0)
    assert share == pytest.approx(0.5, abs=0.01)
    narrow = spec.replace(dim=8)
    assert name_labels(narrow, 0, bits=1).allowed < name_labels(narrow, 0, bits=3).allowed == 1


def test_the_ridge_lies_between_matched_filter_and_least_squares():
    seen = see(Retrieval(vocab=32, dim=16, length=4, samples=4000), 0)
    names = ("matched_filter", "squares_filter", "ridge_filter")
    for noise, same in ((1e6, "matched_filter"), (0.0, "least_squares")):
        shares = decode(seen._replace(noise=noise), names)
        assert shares["ridge_filter"] == pytest.approx(shares[same], abs=1e-9)
    assert shares["matched_filter"] != shares["least_squares"]
    assert see(Retrieval(vocab=32, dim=16, length=4, samples=40), 0, noise=2.0).noise == 2.0


def orthogonal_numbers(random: float, frame: float, more: float) -> Numbers:
    """N at two d and two L: what the smaller d costs each law, and random ones against frames."""
    points = []
    for law, cost, level in (("gaussian", random, more), ("orthonormal", frame, 1.0)):
        for dim in (80, 128):
            for length in (16, 128):
                n = 100.0 * level * (cost if dim == 80 else 1.0) * length / 16
                points.append({"law": law, "dim": dim, "length": length, "samples": n, **about(n, 1.05)})
    return {"vocab": 64, "points": points}


@pytest.mark.parametrize(
    ("random", "frame", "more", "expected"),
    [
        (2.0, 1.0, 5.0, "supported"),
        (2.0, 2.0, 5.0, "refuted"),
        (1.0, 1.0, 5.0, "refuted"),
        (2.0, 1.0, 0.2, "refuted"),
        (1.25, 1.0, 5.0, "inconclusive"),
        (2.0, 1.0, 1.0, "inconclusive"),
    ],
)
def test_the_rule_of_orthogonal_embeddings(random: float, frame: float, more: float, expected: str):
    assert verdict(a_orthogonal.STUDY, orthogonal_numbers(random, frame, more)) == expected


@pytest.mark.parametrize(("times", "expected"), [(1.2, "supported"), (2.0, "inconclusive"), (9.0, "refuted")])
def test_the_rule_of_large_dimensions(times: float, expected: str):
    points = [
        {"law": law, "dim": 128, "length": length, "samples": 100 * ratio, **about(100 * ratio)}
        for law in q_large_dimension.LAWS
        for length, ratio in ((16, 1.0), (128, times))
    ]
    numbers = {"vocab": 64, "dim": 128, "seen": 100.0, "points": points}
    assert verdict(q_large_dimension.STUDY, numbers) == expected
    measured = q_large_dimension.STUDY.judge(numbers).measured
    assert ("enough to L = 128" in measured) == (expected == "supported")


def ladder(*means: float, sign: int = 1) -> Numbers:
    # Every place has its own order: pairs differ, and on the average by the means.
    gaps = [-0.03, -0.02, -0.01, 0.01, 0.02, 0.03]
    accuracy = [[mean + gap for gap in gaps[at:] + gaps[:at]] for at, mean in enumerate(means)]
    return {"name": "N", "sign": sign, "sizes": [2**k for k in range(len(means))], "accuracy": accuracy}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ladder(0.2, 0.4, 0.6), "supported"),
        (ladder(0.6, 0.4, 0.2, sign=-1), "supported"),
        (ladder(0.6, 0.4, 0.2), "refuted"),
        (ladder(0.2, 0.8, 0.6), "refuted"),
        (ladder(0.5, 0.5, 0.5), "inconclusive"),
    ],
)
def test_the_rule_of_ladders(row: Numbers, expected: str):
    rows = [ladder(0.2, 0.3, 0.4) for _ in a_monotone.LADDERS[1:]]
    assert verdict(a_monotone.STUDY, {"rows": [row, *rows]}) == expected


def test_a_seed_that_crashed_is_left_out_of_its_pairs():
    row = ladder(0.2, 0.4, 0.6)
    row["accuracy"][1][3] = None
    assert a_monotone.STUDY.judge({"rows": [row] * 6}).verdict == "supported"


def phase_numbers(gains: dict[str, tuple[float, float]]) -> Numbers:
    """What 4 m and 4 N add in each region."""
    rows = []
    wiggle = [-0.02, 0.0, 0.02, 0.0]
    for region, (by_width, by_samples) in gains.items():
        adds = {"base": 0.0, "width": by_width, "samples": by_samples}
        rows.append(
            {
                "region": region,
                "length": 8,
                "width": 64,
                "dim": 40,
                "samples": 9,
                "vocab": 128,
                "largest": region,
                "gradient": 0.1,
                "attention": [0.9] * 4,
                "accuracy": {
                    name: [0.4 + add + (gap if name == "width" else 0) for gap in wiggle] for name, add in adds.items()
                },
            }
        )
    return {"rows": rows}


def test_the_rule_of_phases():
    right = {"mlp_noise": (0.4, 0.0), "mean_bias": (0.0, 0.4)}
    assert verdict(a_phase.STUDY, phase_numbers(right)) == "supported"
    turned = {"mlp_noise": (0.4, 0.0), "mean_bias": (0.4, 0.0)}
    assert verdict(a_phase.STUDY, phase_numbers(turned)) == "refuted"
    neither = {"mlp_noise": (0.4, 0.0), "mean_bias": (0.3, 0.4)}
    assert verdict(a_phase.STUDY, phase_numbers(neither)) == "inconclusive"


@pytest.mark.parametrize(("ratio", "expected"), [(1.2, "supported"), (1.5, "inconclusive"), (2.0, "refuted")])
def test_the_rule_of_predictions(ratio: float, expected: str):
    points = [
        {"dim": dim, "length": length, "samples": 1000 * times, "predicted": 1000, **about(1000 * times)}
        for dim, length, times in ((48, 8, 1.0), (48, 128, ratio), (96, 8, 1.0), (96, 128, 0.9))
    ]
    assert verdict(a_predicted.STUDY, {"vocab": 128, "points": points}) == expected
    points[0] |= {"samples": None, "low": None, "high": None}
    assert a_predicted.STUDY.judge({"vocab": 128, "points": points}).verdict != "supported"


def dims(power: float, wide: float) -> Numbers:
    """Critical d as V^power."""
    return {
        "points": [
            {"vocab": V, "dim": V**power, "predicted": V**power, **about(V**power, wide)}
            for V in (64, 128, 256, 512, 1024)
        ]
    }


def test_the_rule_of_facts_a_parameter():
    assert verdict(a_per_parameter.STUDY, dims(0.55, 1.01)) == "supported"
    assert verdict(a_per_parameter.STUDY, dims(0.45, 1.01)) == "refuted"
    assert verdict(a_per_parameter.STUDY, dims(0.51, 1.1)) == "inconclusive"
    few = {"points": dims(0.55, 1.01)["points"][:3]}
    assert verdict(a_per_parameter.STUDY, few) == "inconclusive"


@pytest.mark.parametrize(
    ("facts", "expected"), [((60, 120), "supported"), ((20, 30), "refuted"), ((30, 64), "inconclusive")]
)
def test_the_rule_of_superposition(facts: tuple[int, int], expected: str):
    rows = [{"law": "orthonormal", "vocab": 64, "facts": [63.0, 64.0, 65.0]}]
    rows += [
        {"law": "gaussian", "vocab": V, "facts": [value - 1.0, value, value + 1.0]}
        for V, value in ((64, 50), *zip((128, 256), facts, strict=True))
    ]
    assert verdict(a_superposition.STUDY, {"dim": 64, "rows": rows}) == expected


def news_numbers(of_vocab: float, of_length: float, wide: float = 1.02) -> Numbers:
    return {
        "points": [
            {
                "vocab": V,
                "length": L,
                "dim": 9.0 * V**of_vocab * L**of_length,
                **about(9.0 * V**of_vocab * L**of_length, wide),
            }
            for V in (64, 128, 256)
            for L in (8, 64)
        ]
    }


def test_the_rule_of_the_news():
    assert verdict(news_facts.STUDY, news_numbers(1.0, -1.0)) == "supported"
    assert verdict(news_facts.STUDY, news_numbers(0.5, 0.0)) == "refuted"
    assert verdict(news_facts.STUDY, news_numbers(1.0, 0.0)) == "refuted"
    assert verdict(news_facts.STUDY, news_numbers(1.0, -0.8, 1.4)) == "inconclusive"


@pytest.mark.long
def test_power_is_enough_at_full_size_and_rivals_are_told_apart():
    for study in (a_per_parameter.STUDY, news_facts.STUDY):
        assert study.power is not None
        power = study.power("full")
        assert power.supported >= ENOUGH
        assert all(share <= 0.05 for share in power.rivals.values())
