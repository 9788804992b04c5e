"""Laws of one's own: functions of words, rows and dim, handed to a setting as they are."""

import json
import math
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import mnemoscope as mn
from mnemoscope.engine.record import Trial
from mnemoscope.models.embeddings import orthonormal, pads
from mnemoscope.spec.objects import name_object
from mnemoscope.ui.cli import main

PLACE = f"{__name__}:own_sphere"
SIZES: dict[str, Any] = {"vocab": 16, "dim": 24, "length": 4, "samples": 400, "test_samples": 256}


def made_of(**more: Any) -> mn.Retrieval:
    return mn.Retrieval(**{**SIZES, **more})


# Our own three laws, written again.
def own_gaussian(words: Any, rows: int, dim: Any) -> Any:
    return mn.normal(words, rows, dim) / jnp.sqrt(dim)


def own_sphere(words: Any, rows: int, dim: Any) -> Any:
    draw = mn.normal(words, rows, dim)
    return draw / jnp.linalg.norm(draw, axis=1, keepdims=True)


@mn.frame
def own_orthonormal(words: Any, rows: int, dim: Any) -> Any:
    return orthonormal(words, rows, dim)


def at_host(words: Any, rows: int, dim: int) -> Any:
    """Needs a dimension that is known beforehand."""
    return mn.normal(words, rows, dim) / math.sqrt(dim)


def shifted(words: Any, rows: int, dim: Any) -> Any:
    """Spare columns would not stay zero."""
    return mn.normal(words, rows, dim) / dim**0.5 + 0.1


def transposed(words: Any, rows: int, dim: Any) -> Any:
    return mn.normal(words, rows, dim).T


def broken(words: Any, rows: int, dim: Any) -> Any:
    return mn.normal(words, rows, dim) / (0.0 * dim)


def raising(words: Any, rows: int, dim: Any) -> Any:
    raise RuntimeError("no\nlaw")


def zipf(vocab: int) -> np.ndarray:
    p = 1.0 / np.arange(1, vocab + 1)
    return p / p.sum()


def too_few(vocab: int) -> list[float]:
    return [0.5, 0.5]


def numbers(trial: Trial) -> list[object]:
    return [trial.status, trial.steps]


@pytest.mark.parametrize(
    ("own", "name"), [(own_gaussian, "gaussian"), (own_sphere, "sphere"), (own_orthonormal, "orthonormal")]
)
@pytest.mark.parametrize("dim", [24, 32])
@pytest.mark.long
def test_our_laws_written_again_give_equal_bits(own: Any, name: str, dim: int):
    spec = made_of(dim=dim, embedding=own)
    built_in = spec.replace(embedding=name)
    for seed in (0, 1):
        trial = mn.simulate(spec, seed, device="cpu")
        assert numbers(trial) == numbers(mn.simulate(built_in, seed, device="cpu"))
        assert trial.as_dict()["path"] == "exact"


@pytest.mark.long
def test_a_law_is_padded_only_where_that_changes_nothing():
    padded = {own: pads(name_object("embedding", own)) for own in (own_gaussian, own_sphere, at_host, shifted)}
    assert list(padded.values()) == [True, True, False, False]
    trial = mn.simulate(made_of(embedding=at_host), 0, device="cpu")
    plain = mn.simulate(made_of(embedding="gaussian"), 0, device="cpu")
    assert trial.accuracy == pytest.approx(plain.accuracy, abs=0.02)
    assert mn.simulate(made_of(embedding=shifted), 0, device="cpu").status == "ok"


@pytest.mark.parametrize(
    ("own", "line"),
    [
        (transposed, r"expected 6 x 12 finite numbers from .*test_own_laws:transposed, got shape \(12, 6\)"),
        (broken, r"expected 6 x 12 finite numbers from .*:broken, got 72 that are not finite"),
        (raising, r"expected 6 x 12 finite numbers from .*:raising, got RuntimeError: no"),
    ],
)
def test_a_law_that_is_none_is_refused_in_one_line(own: Any, line: str):
    with pytest.raises(mn.SpecError, match=f"^embedding: {line}$"):
        mn.simulate(made_of(embedding=own), 0, device="cpu")


def test_a_token_law_is_evaluated_and_kept_by_content():
    spec = made_of(tokens=zipf)
    assert spec.tokens == made_of(tokens=zipf(16)).tokens
    assert numbers(mn.simulate(spec, 0, device="cpu")) == numbers(
        mn.simulate(made_of(tokens="zipf:1"), 0, device="cpu")
    )
    with pytest.raises(mn.SpecError, match=r"^tokens: expected 16 probabilities from too_few, got 2$"):
        made_of(tokens=too_few)
    for law, line in (
        (lambda vocab: np.ones(vocab), "sum to 1 within 1e-06 from <lambda>, got 16"),
        (lambda vocab: vocab / 0, "expected 16 probabilities from <lambda>, got ZeroDivisionError: division by zero"),
        (lambda vocab: "many", "two or more probabilities from <lambda>, got an object of type str"),
    ):
        with pytest.raises(mn.SpecError, match=line):
            made_of(tokens=law)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that one is in, with laws of one's own."""
    (tmp_path / "mylaws.py").write_text(
        "import jax.numpy as jnp\nimport mnemoscope as mn\n\n\ndef rademacher(words, rows, dim):\n"
        "    return jnp.sign(mn.normal(words, rows, dim)) / jnp.sqrt(dim)\n\n\n"
        "def flat(vocab):\n    return [1 / vocab] * vocab\n"
    )
    (tmp_path / "fails.py").write_text("raise OSError('at import')")
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


WORDS = ["run", "--vocab", "16", "--dim", "24", "--length", "4", "--samples", "400", "--seeds", "2", "--json"]


@pytest.mark.long
def test_commands_take_laws_by_place(folder: Path, capsys: pytest.CaptureFixture[str]):
    words = [*WORDS, "--store", "s.db", "--embedding", "mylaws:rademacher", "--tokens", "mylaws:flat"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["spec"]["embedding"].startswith("mylaws:rademacher@")
    assert told["path"] == "exact"
    assert [trial["status"] for trial in told["trials"]] == ["ok", "ok"]
    assert main([word for word in words if word != "--json"]) == 0
    assert "2 of 2 seeds were in the store" in capsys.readouterr().out
    assert main(["predict", *WORDS[1:9], "--embedding", "mylaws:rademacher", "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note == "mylaws:rademacher embeddings are not derived: theory is for gaussian, sphere, orthonormal"


@pytest.mark.parametrize(
    ("option", "place", "line"),
    [
        ("embedding", "nowhere:law", "expected a module that can be imported, got 'nowhere': ModuleNotFoundError"),
        ("embedding", "mylaws:rademachr", "expected an object of mylaws, got 'mylaws:rademachr'; did you mean 'radem"),
        ("embedding", "fails:law", "expected a module that can be imported, got 'fails': OSError: at import"),
        ("tokens", "leaves:law", "expected a module that can be imported, got 'leaves', which exits"),
        ("tokens", "mylaws:rademacher", "expected 16 probabilities from mylaws:rademacher, got TypeError"),
    ],
)
def test_places_that_have_no_law(folder: Path, capsys: pytest.CaptureFixture[str], option: str, place: str, line: str):
    assert main([*WORDS, "--store", "none", f"--{option}", place]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"mnemoscope: --{option}: {line}")
    assert said.count("\n") == 1


@pytest.mark.parametrize("own", [own_sphere, PLACE])
def test_a_memory_takes_a_law_of_ones_own(own: Any):
    """Our own law written again stores the same items, under a name of its own."""
    sizes: dict[str, Any] = dict(items=40, dim=16)
    built_in, mine = (mn.Memory(**sizes, embedding=law) for law in ("sphere", own))
    assert mine.embedding.startswith(f"{PLACE}@")
    assert mine.id != built_in.id
    ours, theirs = mn.simulate_many([(built_in, 0), (mine, 0)])
    assert ours.metrics == theirs.metrics
    trained = mn.simulate(mine.replace(method="trained", max_steps=32), 0)
    assert trained.status in ("ok", "unreached")


@pytest.mark.long
def test_the_memory_command_takes_a_law_by_place(capsys: pytest.CaptureFixture[str]):
    words = ["memory", "--dim", "16", "--seeds", "2", "--tolerance", "10", "--store", "none"]
    assert main([*words, "--embedding", PLACE, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["spec"]["embedding"].startswith(f"{PLACE}@")
    assert main([*words, "--embedding", "sphere", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["each_seed"] == told["each_seed"]
    for law, line in (
        (f"{__name__}:nothing", f"--embedding: expected an object of {__name__}"),
        ("spher", "--embedding: expected one of gaussian, sphere, orthonormal"),
    ):
        assert main([*words, "--embedding", law]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"mnemoscope: {line}")
        assert said.count("\n") == 1


@pytest.mark.parametrize(("own", "line"), [(transposed, "expected"), (raising, "RuntimeError: no")])
def test_a_memory_refuses_a_law_that_is_none(own: Any, line: str):
    with pytest.raises(mn.SpecError, match=line):
        mn.simulate(mn.Memory(items=9, dim=4, embedding=own), 0)
