"""The comparison of theory with simulation: how settings are drawn, searched and judged."""

import json
import math
from pathlib import Path

import pytest

from mnemoscope import Retrieval, predict
from mnemoscope.experiments.collapse import settings
from mnemoscope.experiments.estimate.agreement import Compared, judge
from mnemoscope.experiments.validation import drawn_settings
from mnemoscope.theory.bound import collapse, coverage_samples
from mnemoscope.ui.cli import main
from mnemoscope.ui.figures.validation import section

SPEC = Retrieval(vocab=128, dim=40, length=8, samples=2000)


def test_settings_are_drawn_within_their_ranges_and_always_the_same():
    some = drawn_settings.for_terms(20)
    assert some == drawn_settings.for_terms(20)
    for one in some:
        assert 128 <= one.vocab <= 2048
        assert 16 <= one.dim <= one.vocab / 2
        assert 8 <= one.length <= 1024
        assert 500 <= one.samples <= 100_000
        assert one.samples * one.length <= 3e7
    mlp = drawn_settings.for_mlp(30)
    kinds = {(one.activation, one.embedding, one.trigger) for one in mlp}
    assert len(kinds) == 5 * 3 * 2
    assert all(one.samples * one.width * one.dim <= drawn_settings.MOST_HIDDEN_WORK for one in mlp)
    assert len({one.id for one in drawn_settings.for_bound(30)}) == 30


def test_accuracy_settings_meet_every_regime_and_both_triggers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drawn_settings, "DRAWS", 400)
    some = drawn_settings.for_accuracy(40)
    regimes = {predict(one).regime for one in some}
    assert regimes >= {"recall", "interference", "mean_bias", "unseen"}
    assert {one.trigger for one in some} == {"keys", "additive"}


def compared(predicted: float, observed: float, name: str = "a", note: str = "") -> Compared:
    return Compared(SPEC, name, predicted, observed, 0.01, note)


def test_judging_can_fail():
    good, bad = compared(0.5, 0.51), compared(0.5, 0.7)
    assert all(reached for _, reached in judge("accuracy", [good]).aims.values())
    assert not any(reached for _, reached in judge("accuracy", [bad]).aims.values())
    assert not judge("mlp", [bad]).aims["mean error"][1]
    terms = judge("terms", [compared(1.0, 1.03, "signal"), compared(1.0, 2.0, "overlap")])
    assert terms.aims["signal: share within"][1]
    assert not terms.aims["overlap: share within"][1]
    low = judge("critical", [compared(100.0, 200.0, note="90")])
    assert low.aims["observed / what any learner needs: least"][1]
    assert not low.aims["predicted / observed: least"][1]
    broken = judge("bound", [compared(100.0, 50.0), compared(100.0, math.nan)])
    assert broken.figures["a: never reach it"] == 1
    assert "| never |" in section("bound", broken, [compared(100.0, math.nan)])
    assert not broken.aims["a: observed / bound, least"][1]


def test_what_any_learner_needs():
    """(D3): at that N, seeing decides; one more than half of the tokens."""
    N = coverage_samples(SPEC, 0.5)
    assert pytest.approx(0.5) == 1 - (1 - 1 / 128) ** N + 1 / 128
    assert coverage_samples(SPEC, 0.001) == 0


def test_the_collapse_settings_stand_where_they_should():
    for one in settings():
        assert min(abs(collapse(one).x / x - 1) for x in (0.3, 1, 3, 10, 30, 100)) < 0.05


@pytest.mark.long
def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small = [SPEC, SPEC.replace(dim=32)]
    from mnemoscope.experiments.validation import parts as validate

    part = validate.PARTS["accuracy"]._replace(settings=lambda count: small[:count], quick=2)
    monkeypatch.setitem(validate.PARTS, "accuracy", part)
    page = tmp_path / "page.md"
    words = ["validate", "accuracy", "--quick", "--seeds", "3"]
    assert main([*words, "--json", "--out", str(page)]) == 0
    told = json.loads(capsys.readouterr().out)["parts"]["accuracy"]
    assert told["summary"]["settings"] == 2
    assert len(told["rows"]) == 2
    text = page.read_text()
    assert "| gaussian, keys | 128 | 32 | 8 | 2000 |" in text
    assert "mnemoscope validate accuracy --quick --seeds 3" in text
    assert main([*words]) == 0
    assert "Accuracy, attention-only" in capsys.readouterr().out
    assert main(["validate", "acuracy"]) == 2
    assert "expected" in capsys.readouterr().err
    assert main([*words, "--out", str(tmp_path / "no" / "page.md")]) == 2
    assert "expected a file in a folder that is there" in capsys.readouterr().err
