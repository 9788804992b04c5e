"""The spec: what it accepts, what it says when it refuses, and its identity."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.spec import Retrieval, SpecError, read_toml

SMALL: dict[str, Any] = {"vocab": 8, "dim": 4, "length": 3, "samples": 10}


def refusal(**values: Any) -> str:
    with pytest.raises(SpecError) as caught:
        Retrieval.read({**SMALL, **values})
    return str(caught.value)


def test_numbers_may_be_written_as_people_write_them():
    spec = Retrieval.read({"vocab": "1e3", "dim": 64.0, "length": "16", "samples": "16_384"})
    assert (spec.vocab, spec.dim, spec.length, spec.samples) == (1000, 64, 16, 16384)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"dim": 0}, "dim: expected a whole number of at least 1 and at most 2,147,483,647, got 0"),
        ({"samples": -3}, "samples: expected a whole number of at least 1 and at most 4,294,967,295, got -3"),
        ({"vocab": "many"}, "vocab: expected a whole number of at least 2 and at most 2,147,483,647, got 'many'"),
        ({"length": 2.5}, "length: expected a whole number of at least 1 and at most 2,147,483,647, got 2.5"),
        ({"vocab": True}, "vocab: expected a whole number of at least 2 and at most 2,147,483,647, got True"),
        ({"eta": "nan"}, "eta: expected 'limit' or a number from 1e-12 to 1e+12, got 'nan'"),
        ({"eta": 1, "gamma": float("inf")}, "gamma: expected 'limit' or a number from 1e-12 to 1e+24, got inf"),
        ({"eta": -1}, "eta: expected 'limit' or a number from 1e-12 to 1e+12, got -1"),
        (
            {"gamma": 5},
            "gamma: expected 'limit' while eta is 'limit' (attention moves by gamma * eta, which "
            "would vanish), got 5; give eta a number too",
        ),
        (
            {"width": 4, "activation": "relo"},
            "activation: expected one of relu, gelu, tanh, linear, hermite2, hermite3, "
            "got 'relo'; did you mean 'relu'?",
        ),
        ({"embedding": "orthonormal"}, "dim: expected at least vocab = 8 for orthonormal embeddings, got 4"),
        ({"vocap": 3}, "expected known settings, got 'vocap'; did you mean 'vocab'?"),
        ({"lr": 0, "then": "gd", "steps": 1}, "lr: expected a number from 1e-30 to 1e+38, got 0"),
        (
            {"vocab": 2, "samples": 2**32 - 1, "length": 100},
            "samples: expected few enough for 32-bit counts, about 1% of this at vocab = 2 and "
            "length = 100, got 4,294,967,295",
        ),
        (
            {"then": "gd"},
            "steps: expected 0 unless `then` names an optimiser, and at least 1 when it does, got 0 with then='gd'",
        ),
        ({"lr": 0.1}, "lr: expected none unless `then` names an optimiser, got 0.1"),
        (
            {"attention": "locked", "eta": 0.5},
            "eta: expected 'limit' with locked attention (one step is taken), got 0.5",
        ),
        ({"attention": "locked", "then": "gd", "steps": 5}, "then: expected none with locked attention, got 'gd'"),
    ],
)
def test_refusals_say_what_was_expected_and_what_came(values: dict[str, Any], text: str):
    assert refusal(**values) == text


def test_a_missing_size_is_named():
    with pytest.raises(SpecError, match=r"^dim: expected a value, got none$"):
        Retrieval.read({"vocab": 8, "length": 3, "samples": 10})


def test_specs_are_frozen_and_compare_by_value():
    spec = Retrieval(**SMALL)
    with pytest.raises(ValueError, match="frozen"):
        spec.dim = 5  # pyright: ignore[reportAttributeAccessIssue]
    assert spec == Retrieval(**SMALL)
    assert hash(spec) == hash(Retrieval(**SMALL))


def test_the_id_is_pinned():
    # Stored results are found by this id: it must not change with a release.
    spec = Retrieval(vocab=1024, dim=128, length=64, samples=16_384)
    text = '{"dim":128,"kind":"retrieval","length":64,"samples":16384,"vocab":1024}'
    assert spec.canonical() == text
    assert spec.id == "40c8b51a96b5a1e5"


def test_the_id_leaves_out_defaults_and_what_has_no_effect():
    spec = Retrieval(**SMALL)
    assert spec.id == Retrieval(**SMALL, width=0, activation="tanh", eta="limit").id
    assert spec.id != spec.replace(width=4).id
    assert spec.replace(width=4).id != spec.replace(width=4, activation="tanh").id


@given(
    st.fixed_dictionaries(
        {name: st.integers(500, 10**6) for name in ("vocab", "dim", "length", "samples", "width")},
        optional={
            "activation": st.sampled_from(["tanh", "hermite3"]),
            "trigger": st.sampled_from(["keys", "additive"]),
            "eta": st.floats(1e-9, 1e9),
            "test_samples": st.integers(1, 10**9),
        },
    )
)
def test_canonical_json_tells_the_whole_spec(values: dict[str, Any]):
    spec = Retrieval.read(values)
    told = json.loads(spec.canonical())
    assert told.pop("kind") == "retrieval"
    assert Retrieval.read(told) == spec


def test_toml_settings_and_their_typos(tmp_path: Path):
    good = tmp_path / "good.toml"
    good.write_text("vocab = 8\ndim = 4\nlength = 3\nsamples = 1e3\ntest-samples = 7\n")
    assert Retrieval.read(read_toml(good, Retrieval)).test_samples == 7
    typo = tmp_path / "typo.toml"
    typo.write_text("vocab = 8\nlenght = 3\n")
    with pytest.raises(SpecError) as caught:
        read_toml(typo, Retrieval)
    assert str(caught.value) == (f"spec: expected known settings, got 'lenght' in '{typo}'; did you mean 'length'?")
    broken = tmp_path / "broken.toml"
    broken.write_text("vocab =")
    with pytest.raises(SpecError, match=r"^spec: expected TOML, got '.*broken\.toml': "):
        read_toml(broken, Retrieval)
    with pytest.raises(SpecError, match=r"^spec: expected a readable TOML file, got .*No such"):
        read_toml(tmp_path / "absent.toml", Retrieval)
