"""No factorisation begins that memory cannot hold: it is refused in one line before."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mnemoscope
from mnemoscope.engine import free_memory
from mnemoscope.experiments.decoders import Seen, decode
from mnemoscope.experiments.estimate.geometry import look_at
from mnemoscope.models.matrices import read_matrices
from mnemoscope.spec import Facts, Memory, SpecError
from mnemoscope.theory.associative import LARGEST, hebbian_capacity
from mnemoscope.training.facts import FACTS
from mnemoscope.training.memory import MEMORY
from mnemoscope.ui.cli import main

FACTORISATIONS = {"cholesky", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "pinv", "qr", "solve", "svd"}
# Where matrices are factorised whose size a user decides: each has its place in REFUSED below.
BY_SIZE = {
    "experiments/estimate/geometry.py",
    "experiments/decoders.py",
    "experiments/message_passing.py",
    "models/matrices.py",
    "models/memory.py",
    "models/constructed.py",
    "models/one_step.py",
}
# And where they have as many rows as an average has nodes, a fit has parameters, or a study or table has set.
SMALL = {
    "experiments/estimate/power_law.py",
    "experiments/estimate/threshold.py",
    "experiments/exact_storage.py",
    "studies/b_hebbian.py",
    "studies/geometric.py",
    "studies/lin_two_layer.py",
    "studies/mlp_built.py",
    "theory/quadrature.py",
    "theory/trained/fixed_point.py",
}


def seen() -> Seen:
    side = np.eye(64)
    return Seen(side, side, side, np.arange(64), 4, 100)


REFUSED: dict[str, Any] = {
    "experiments/estimate/geometry.py": lambda: look_at(np.eye(400)),
    "experiments/decoders.py": lambda: decode(seen()),
    "experiments/message_passing.py": lambda: decode(seen(), ("message_passing",)),
    "models/matrices.py": lambda: read_matrices(np.eye(400), whiten=True),
    "models/memory.py": lambda: MEMORY.run([(Memory(items=8, dim=64, method="least-squares"), 0)]),
    "models/one_step.py": lambda: MEMORY.run([(Memory(items=8, dim=64, method="one-step", optimiser="muon"), 0)]),
    "models/constructed.py": lambda: FACTS.run(
        [(Facts(subjects=8, relations=2, answers=2, dim=128, heads=5, head_dim=2, batch=1, method="constructed"), 0)]
    ),
}


def test_every_factorisation_is_known():
    house = Path(mnemoscope.__file__).parent
    found = set()
    for file in house.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in FACTORISATIONS:
                owner = node.value
                if isinstance(owner, ast.Attribute) and owner.attr == "linalg":
                    found.add(str(file.relative_to(house)))
    assert found == BY_SIZE | SMALL
    assert set(REFUSED) == BY_SIZE


@pytest.mark.parametrize("where", sorted(BY_SIZE))
def test_what_does_not_fit_is_refused_before_it_is_begun(where: str, monkeypatch: pytest.MonkeyPatch):
    def begun(*_: Any, **__: Any) -> None:
        raise AssertionError("a factorisation was begun")

    for name in FACTORISATIONS:
        monkeypatch.setattr(np.linalg, name, begun)
    # Enough for the arrays of a training step, and not for a factorisation; that a matrix may be
    # too large to be read is another refusal.
    monkeypatch.setattr("mnemoscope.models.matrix_files.check_fits", lambda *_: None)
    monkeypatch.setattr(free_memory, "free_in_host", lambda: 300_000)
    with pytest.raises(SpecError, match=r"expected a size that fits in the 300 kB free") as caught:
        REFUSED[where]()
    assert len(str(caught.value).splitlines()) == 1


def test_it_goes_on_where_it_fits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(free_memory, "free_in_host", lambda: 2**40)
    for call in REFUSED.values():
        call()
    monkeypatch.setattr(free_memory, "free_in_host", lambda: None)  # it cannot be told
    look_at(np.eye(50))


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["dynamics", "--subjects", "16384", "--relations", "16384", "--steps", "1"], "subjects"),
        (
            [
                "run",
                "--vocab",
                "9000000",
                "--dim",
                "9000000",
                "--length",
                "2",
                "--samples",
                "9",
                "--embedding",
                "orthonormal",
            ],
            "vocab",
        ),
        (["memory", "--dim", "60000", "--method", "least-squares"], "dim"),
        (["bound", "--vocab", "64", "--dim", "9000000", "--length", "2", "--samples", "9"], "dim"),
    ],
)
def test_commands_refuse_sizes_beyond_any_machine(words: list[str], option: str, capsys: pytest.CaptureFixture[str]):
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mnemoscope: --{option}: expected")


def test_a_memory_beyond_the_search_has_no_root():
    assert hebbian_capacity(60_000, 0.99) == LARGEST
    assert hebbian_capacity(128, 0.99) < 10_000
