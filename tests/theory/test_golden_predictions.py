"""Predictions, critical values and maps stay what they were when the golden file was written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnemoscope.spec import Retrieval
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.fast_predict import COARSE, FINER, surface
from mnemoscope.theory.matched_filter import matched_filter_accuracy
from mnemoscope.theory.predict import predict
from mnemoscope.theory.spec_grid import SpecGrid

GOLDEN = json.loads((Path(__file__).parent / "golden_predictions.json").read_text())


def same(value: Any) -> Any:
    """The value within rounding, part by part: pytest compares no None within a tolerance."""
    if isinstance(value, dict):
        return {name: same(part) for name, part in value.items()}
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.long
def test_predictions():
    for row in GOLDEN["predictions"]:
        spec = Retrieval.read(row["spec"])
        prediction = predict(spec).as_dict()
        for name in ("accuracy", "interval", "attention_accuracy", "terms"):
            assert prediction[name] == same(row[name]), (spec.canonical(), name)
        assert prediction["regime"] == row["regime"], spec.canonical()
        if row["matched_filter"] is not None:
            assert matched_filter_accuracy(spec) == same(row["matched_filter"]), spec.canonical()


def test_critical_values():
    for row in GOLDEN["critical"]:
        spec = Retrieval.read(row["spec"])
        assert critical_value(spec, row["axis"], 0.4, row["measure"]) == row["value"], (spec.canonical(), row["axis"])


def test_maps():
    samples, dims = np.geomspace(100, 20000, 4).round()[:, None], np.array([10, 40, 130, 300])[None]
    for row in GOLDEN["maps"]:
        cells = SpecGrid.of(row["values"], samples=samples, dim=dims, length=np.array([4, 16, 40, 8])[None])
        drawn = surface(cells, (COARSE, FINER)[row["q"]])
        for name, values in (("accuracy", drawn.accuracy), ("attention", drawn.attention_accuracy)):
            expected = np.array([float(value) for value in row[name]])
            assert np.allclose(values, expected, rtol=1e-9, atol=1e-12, equal_nan=True), (row["values"], name)
        assert drawn.regime.tolist() == row["regime"]
