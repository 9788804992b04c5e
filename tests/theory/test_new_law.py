"""A law or an activation added as ARCHITECTURE.md says: it runs, and theory claims nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import mnemoscope
from mnemoscope.spec import Activation, Embedding, Retrieval
from mnemoscope.theory.activation import FORMULAS
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.fast_predict import surface
from mnemoscope.theory.predict import predict
from mnemoscope.theory.registry import derived_laws
from mnemoscope.theory.spec_grid import SpecGrid

SPEC = Retrieval(vocab=128, dim=40, length=8, samples=2000, width=64)
LAW = '''

@law
def rademacher(draw: Float[Array, "n D"], dim: Array | int) -> Float[Array, "n D"]:
    """Signs, over sqrt(d)."""
    return jnp.sign(draw) / jnp.sqrt(jnp.asarray(dim, draw.dtype))
'''
CUBE = '''

@activation
def cube(a: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The third power."""
    return a**3
'''


def test_theory_lists_what_there_is():
    assert get_args(Embedding) == derived_laws()
    assert get_args(Activation) == tuple(FORMULAS)


@pytest.mark.parametrize("change", [{"embedding": "rademacher"}, {"activation": "cube"}])
def test_theory_has_no_word_on_what_it_does_not_list(change: dict[str, str]):
    spec = SPEC.model_copy(update=change)  # a name that this version does not accept yet
    told = predict(spec)
    assert (told.accuracy, told.low, told.attention_accuracy) == (None, None, None)
    assert not told.valid
    assert told.regime == "none"
    assert f"{next(iter(change.values()))}" in told.notes[0]
    assert "not derived" in told.notes[0]
    assert critical_value(spec, "samples", 0.5) is None
    made = surface(SpecGrid.of(spec.model_dump(), samples=np.array([500.0, 2000.0])))
    assert np.isnan(made.accuracy).all()
    assert set(made.regime) == {"none"}
    # Without an MLP its activation does not matter.
    alone = predict(SPEC.model_copy(update={"activation": "cube", "width": 0}))
    assert alone.valid
    assert alone.accuracy == predict(SPEC.replace(width=0)).accuracy


def test_added_as_the_document_says_it_runs_and_nothing_is_claimed(tmp_path: Path):
    house = tmp_path / "mnemoscope"
    shutil.copytree(Path(mnemoscope.__file__).parent, house)
    names = house / "spec" / "names.py"
    text = names.read_text()
    assert '"orthonormal"]\n' in text
    assert '"hermite3"]\n' in text
    text = text.replace('"orthonormal"]\n', '"orthonormal", "rademacher"]\n')
    names.write_text(text.replace('"hermite3"]\n', '"hermite3", "cube"]\n'))
    for file, more in (("models/embeddings.py", LAW), ("models/activations.py", CUBE)):
        (house / file).write_text((house / file).read_text() + more)
    sizes = ["--vocab", "64", "--dim", "24", "--length", "4", "--samples", "600"]
    for more, name in (
        (["--embedding", "rademacher"], "rademacher"),
        (["--width", "32", "--activation", "cube"], "cube"),
    ):
        run = json.loads(called(tmp_path, "run", *sizes, *more, "--seeds", "1", "--json"))
        assert run["trials"][0]["status"] == "ok"
        told = json.loads(called(tmp_path, "predict", *sizes, *more, "--json"))
        assert told["accuracy"] is None
        assert told["valid"] is False
        assert name in told["notes"][0]
        assert set(told["critical"].values()) == {None}
    shown = " ".join(called(tmp_path, "run", "--help").replace("│", " ").split())
    assert "gaussian, sphere, orthonormal, rademacher" in shown
    assert "hermite3, cube" in shown
    # The explorer offers it, leaves its map empty, and says why.
    code = (
        "from mnemoscope.ui.explorer import diagram, fragments, state\n"
        "now = state.read_state({'embedding': 'rademacher'})\n"
        "print(diagram.as_json(now, moving=True).decode(), fragments.told(now))"
    )
    seen = python(tmp_path, "-c", code)
    assert '"name":"not derived"' in seen
    assert "rademacher embeddings are not derived" in seen


def called(folder: Path, *words: str) -> str:
    return python(folder, "-m", "mnemoscope", *words)


def python(folder: Path, *words: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    done = subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
