"""The power laws against the terms they are the limit of, and the map they make."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import attention_terms
from mnemoscope.theory.laws import LAWS, OVERLAP, Axis, Law, laws_for, regime_map
from mnemoscope.theory.predict import predict
from mnemoscope.ui.cli import main

# Far out: V >> d >> 1, N >> V, L >> N/V, L << V.
FAR: dict[str, Any] = dict(vocab=2**28, dim=2**10, length=2**16, samples=2**31)
ATTENTION = [law for law in (*LAWS, OVERLAP) if law.name not in ("interference", "unseen")]


@pytest.mark.parametrize("law", ATTENTION, ids=lambda law: law.name)
def test_powers_are_the_slopes_of_the_terms(law: Law):
    def noise(**changes: int) -> float:
        return attention_terms(Retrieval.read({**FAR, **changes})).terms[law.name]

    for axis in ("vocab", "dim", "length"):
        slope = math.log2(noise(**{axis: 2 * FAR[axis]}) / noise()) / 2
        assert slope == pytest.approx(law.powers.get(axis, 0), abs=0.05), axis
    # 2 N would be past what a spec holds.
    slope = math.log2(noise() / noise(samples=FAR["samples"] // 2)) / 2
    assert slope == pytest.approx(law.powers.get("samples", 0), abs=0.07)


def test_interference_scales_as_its_law():
    def noise(**changes: int) -> float:
        spec = Retrieval.read({**dict(vocab=2**16, dim=2**9, length=1, samples=2**30), **changes})
        return predict(spec.replace(attention="locked")).terms["interference"]

    (law,) = [law for law in LAWS if law.name == "interference"]
    sizes: list[tuple[Axis, int]] = [("vocab", 2**16), ("dim", 2**9)]
    for axis, size in sizes:
        slope = math.log2(noise(**{axis: 2 * size}) / noise())
        assert slope == pytest.approx(law.powers[axis], abs=0.03)


def test_an_mlp_trades_width_for_dimension():
    """m d >> V, and interference that falls as d^-(k+1) through the activation's k-th part."""

    def terms(**changes: int) -> dict[str, float]:
        base = dict(vocab=2**20, dim=2**7, length=1, samples=2**30, width=2**12)
        spec = Retrieval.read({**base, "activation": "hermite2", "embedding": "sphere", **changes})
        return predict(spec.replace(attention="locked")).terms

    laws = {law.name: law for law in laws_for("keys", 2)}
    sizes: dict[Axis, int] = {"vocab": 2**20, "dim": 2**7, "width": 2**12}
    for name in ("mlp_noise", "interference"):
        for axis, size in sizes.items():
            slope = math.log2(terms(**{axis: 2 * size})[name] / terms()[name])
            assert slope == pytest.approx(laws[name].powers.get(axis, 0), abs=0.12), (name, axis)


def test_critical_exponents_follow_from_the_powers():
    bias, unseen = LAWS[0], LAWS[-1]
    assert bias.critical("samples") == {"vocab": 0.5, "dim": -1.5, "length": 2.0}
    assert bias.critical("dim") == pytest.approx({"vocab": 1 / 3, "length": 4 / 3, "samples": -2 / 3})
    assert bias.critical("length") is None  # a longer sequence never helps
    assert unseen.critical("samples") == {"vocab": 1.0}
    assert unseen.critical("dim") is None


def test_the_map_names_the_largest_noise():
    made = regime_map(0.75)
    assert made.binding.shape == (25, 61)
    names = [["recall" if at < 0 else made.laws[at].name for at in row] for row in made.binding]
    assert names[-1][-1] == "recall"  # d = V and N = V^2.5
    assert names[-1][0] == "interference"  # d = 1: however many samples
    # At N = V and d = V^(1/3) the powers are 0.5 for mean bias, 0.46 for label noise.
    assert names[6][20] == "mean_bias"
    assert made.text().count("\n") == 26


def test_recall_needs_every_law():
    made = regime_map(0.5)
    for row, column in np.argwhere(made.binding < 0)[::37]:
        d, N = made.dim[column], made.samples[row]
        assert all(law.size(np.array(d), np.array(N), 0.5) <= 1e-12 for law in LAWS)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    picture = tmp_path / "map.svg"
    assert main(["laws", "--length-power", "0.75", "--out", str(picture), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == str(picture)
    assert {law["name"] for law in told["laws"]} >= {"mean_bias", "gradient_noise", "interference"}
    text = picture.read_text()
    assert "<svg" in text
    assert main(["laws", "--trigger", "additive"]) == 0
    assert "N d >> V^2" in capsys.readouterr().out
    for words, line in (
        (["--length-power", "2"], "--length-power: expected a number from 0 to 1, got '2'"),
        (["--out", "map.jpg"], "--out: expected a file ending in .png, .svg, .pdf, .pgf, got 'map.jpg'"),
        (["--trigger", "kees"], "--trigger: expected one of keys, additive, got 'kees'; did you"),
    ):
        assert main(["laws", *words]) == 2
        assert capsys.readouterr().err.startswith(f"mnemoscope: {line}")
