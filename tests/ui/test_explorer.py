"""What the explorer's server answers: maps, words, files to take along, plans."""

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from explorer_server import Running

from mnemoscope.experiments.sweep import OneByOne, sweep
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.store.trials import Store
from mnemoscope.theory.laws import OVERLAP, laws_for
from mnemoscope.theory.predict import predict, regime_of
from mnemoscope.ui.cli import main
from mnemoscope.ui.cli.explore import first_visit
from mnemoscope.ui.explorer.diagram import as_json
from mnemoscope.ui.explorer.fragments import prediction
from mnemoscope.ui.explorer.measured import measured_points
from mnemoscope.ui.explorer.measurements import make_order
from mnemoscope.ui.explorer.state import ACROSS, FIRST, RANGES, read_state


def test_the_map_is_what_theory_says(server: Running):
    status, _, text = server.ask("/map.json?vocab=256&length=32&dim=100&target=0.4")
    assert status == 200
    told = json.loads(text)
    X, Y = told["x"]["values"], told["y"]["values"]
    base = Retrieval(vocab=256, dim=100, length=32, samples=1000)
    away, same = [], []
    for r in range(0, len(Y), 4):
        for c in range(0, len(X), 4):
            one = predict(base.replace(dim=int(X[c]), samples=int(Y[r])))
            assert one.accuracy is not None
            away.append(abs(told["accuracy"][r][c] - one.accuracy))
            same.append(told["names"][told["regimes"][r][c]] == one.regime)
    assert np.mean(away) < 0.01
    assert np.max(away) < 0.06
    assert np.mean(same) > 0.9
    # Where the curve crosses the target is where theory does.
    curve = dict(zip(told["curve"]["samples"], told["curve"]["accuracy"], strict=True))
    for N in list(curve)[::8]:
        one = predict(base.replace(samples=int(N)))
        assert curve[N] == pytest.approx(one.accuracy, abs=0.06)
    assert predict(base.replace(samples=told["crossing"])).accuracy == pytest.approx(0.4, abs=0.05)
    for name in told["names"]:
        assert told["laws"][name]["words"]
    assert told["laws"]["interference"]["formula"] == "d<sup>2</sup> ≫ V"


@pytest.mark.long
def test_the_map_follows_the_frequencies_of_tokens(server: Running):
    words = "vocab=128&length=16&dim=128&target=0.5"
    even, uneven = (json.loads(server.ask(f"/map.json?{words}&zipf={zipf}")[2]) for zipf in (0, 0.5))
    assert even["crossing"] != uneven["crossing"]
    base = Retrieval(vocab=128, dim=128, length=16, samples=1000, tokens="zipf:0.5")
    X, Y = uneven["x"]["values"], uneven["y"]["values"]
    away = []
    for r in range(0, len(Y), 4):
        for c in range(0, len(X), 5):
            one = predict(base.replace(dim=int(X[c]), samples=int(Y[r])))
            away.append(abs(uneven["accuracy"][r][c] - (one.accuracy or 0)))
    assert np.mean(away) < 0.02  # seeds are fewer: tests/theory/test_frequencies.py bounds what that does
    assert predict(base.replace(samples=uneven["crossing"])).accuracy == pytest.approx(0.5, abs=0.08)
    # The laws of uniform tokens are not shown, and each name is explained.
    assert all(law["words"] and not law["formula"] for law in uneven["laws"].values())
    moving = json.loads(server.ask(f"/map.json?{words}&zipf=0.5&moving=1")[2])
    assert len(moving["y"]["values"]) < len(Y)
    # What is not derived says so.
    for more, said in (("training=trained", "the end of training"), ("width=64", "with an MLP")):
        told = json.loads(server.ask(f"/map.json?{words}&zipf=0.5&{more}")[2])
        assert list(told["laws"]) == ["none"]
        assert said in told["laws"]["none"]["words"]
        assert said in server.ask(f"/prediction?{words}&zipf=0.5&{more}")[2]


def test_the_readout_with_frequencies(server: Running):
    told = predict(Retrieval(vocab=128, dim=64, length=8, samples=3000, tokens="zipf:1.1"))
    text = server.ask("/prediction?vocab=128&length=8&dim=64&samples=3000&zipf=1.1")[2]
    assert f"<b>{told.accuracy:.3f}</b>" in text
    assert f"{told.as_dict()['accuracy_by_fact']:.3f}, each token once" in text
    assert "any learner" not in text  # the bound is for uniform tokens
    assert "--tokens zipf:1.1" in re.sub(r"<[^>]+>", "", text)
    assert "zipf: expected" in server.ask("/map.json?zipf=-1")[2]
    assert 'value="1.1"' in server.ask("/?zipf=1.1")[2]


@pytest.mark.long
def test_a_measurement_has_the_pages_frequencies(tmp_path: Path):
    words = {"vocab": 64, "dim": 32, "length": 4, "samples": 300}
    path = tmp_path / "trials.db"
    counts = {}
    for zipf in (0, 1.1):
        state = read_state({**words, "zipf": zipf})
        said, order = make_order(state, "point", 2)
        assert ("tokens zipf:1.1" in said) == bool(zipf)
        assert [spec.tokens for spec in order.specs] == ["zipf:1.1" if zipf else "uniform"]
        with Store(path) as store:
            sweep([(spec, seed) for spec in order.specs for seed in range(2 + bool(zipf))], store, OneByOne("cpu"))
        counts[zipf] = [point["seeds"] for point in measured_points(state.measured_spec, path)]
    # Each page draws its own trials.
    assert counts == {0: [2], 1.1: [3]}


@pytest.mark.parametrize("words", ["zipf:-1", "zipf:4", "zipf:x", "file:tokens.npy", "even"])
def test_a_wrong_first_visit_is_one_line(words: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explore", "--tokens", words, "--no-browser"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "--tokens: expected" in told


def test_a_first_visit_with_frequencies():
    assert first_visit("uniform") == first_visit("zipf:0") == ""
    query = first_visit("zipf:1.10").removeprefix("?")
    assert read_state(dict([query.split("=")])).tokens == "zipf:1.1"


def test_frequencies_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    probabilities = np.random.default_rng(0).dirichlet(np.ones(80))
    np.savetxt(tmp_path / "p.txt", probabilities)
    query = first_visit(f"file:{tmp_path / 'p.txt'}").removeprefix("?")
    name, law = query.split("=")
    assert (name, law[:5]) == ("law", "file:")
    # V is their number, whatever the address says, and no axis.
    state = read_state({"law": law, "vocab": "512", "zipf": "1", "length": "8", "dim": "64", "samples": "400"})
    own = Retrieval(vocab=80, dim=64, length=8, samples=400, tokens=probabilities)
    assert state.spec == own.replace(activation=FIRST["activation"])
    assert read_state(dict(parse_qsl(state.query))) == state
    assert f"--tokens {law}" in state.command
    assert state.zipf == 0
    with pytest.raises(SpecError, match=r"^x: expected one of dim, length, width, got 'vocab'"):
        read_state({"law": law, "x": "vocab"})
    for wrong in ("file:0123456789abcdef", "p.txt", "zipf:1"):
        with pytest.raises(SpecError, match=r"^law: expected "):
            read_state({"law": wrong})
    np.savetxt(tmp_path / "few.txt", np.ones(3) / 3)
    assert main(["explore", "--tokens", f"file:{tmp_path / 'few.txt'}", "--no-browser"]) == 2
    assert "--tokens: expected from 64 to 8,192 probabilities here, got 3" in capsys.readouterr().err
    # The map is that of the law.
    drawn = json.loads(as_json(state, moving=True))
    assert drawn != json.loads(as_json(read_state({**state.values, "law": "", "zipf": "0"}), moving=True))
    told = predict(state.spec)
    assert told.accuracy is not None
    assert np.interp(np.log(400), np.log(drawn["curve"]["samples"]), drawn["curve"]["accuracy"]) == pytest.approx(
        told.accuracy, abs=0.05
    )


@pytest.mark.long
def test_every_axis_and_choice_has_a_map(server: Running):
    for words in (
        "x=length",
        "x=vocab",
        "x=width",
        "x=width&width=300",
        "embedding=sphere",
        "embedding=orthonormal",
        "embedding=orthonormal&vocab=128&width=64",
        "trigger=additive",
        "width=64&activation=tanh&trigger=additive",
    ):
        for moving in ("", "&moving=1"):
            status, _, text = server.ask(f"/map.json?{words}{moving}")
            assert status == 200, text
            told = json.loads(text)
            assert len(told["accuracy"]) == len(told["y"]["values"])
            assert len(told["accuracy"][0]) == len(told["x"]["values"])
        assert server.ask(f"/prediction?{words}")[0] == 200
    # Orthonormal embeddings need as many dimensions as tokens: what cannot be is left empty.
    told = json.loads(server.ask("/map.json?embedding=orthonormal&vocab=512")[2])
    for c, d in enumerate(told["x"]["values"]):
        assert (told["accuracy"][0][c] is None) == (d < 512)
    assert told["laws"]["none"]["name"] == "no such setting"
    assert "at least vocab" in server.ask("/prediction?embedding=orthonormal&vocab=512&dim=100")[2]
    # Laws are those of the model on the map, also where the cross itself has no MLP.
    for width in (0, 64):
        made = json.loads(server.ask(f"/map.json?x=width&width={width}&dim=20")[2])
        assert made["laws"]["mlp_noise"]["formula"] == "m d ≫ V"


def test_the_readout_is_predicts_own(server: Running):
    _, _, text = server.ask("/prediction")
    usual = Retrieval.read({k: v for k, v in FIRST.items() if k not in ("target", "x", "training", "zipf", "law")})
    told = predict(usual)
    assert f"<b>{told.accuracy:.3f}</b>" in text
    assert told.regime.replace("_", " ") in text
    plain = re.sub(r"<[^>]+>", "", text)
    for command in ("predict", "run"):
        assert f"mnemoscope {command} --vocab 512 --dim 128 --length 64 --samples 4000" in plain
    assert "too few hidden" in server.ask("/prediction?dim=32&width=64&samples=1000000&length=4")[2]


@pytest.mark.long
def test_the_law_at_the_cross_is_that_of_its_setting(monkeypatch: pytest.MonkeyPatch):
    """Whatever lies across the map: with widths there, the cross may still have no MLP."""
    # The interval over seeds stands beside the law, has no part in it, and takes most of the time.
    monkeypatch.setattr("mnemoscope.theory.predict.interval", lambda *_: (0.0, 1.0))
    order = {"hermite3": 3, "relu": 1, "hermite2": 2}
    met = set()
    for activation, lowest in order.items():
        for width in (0, 16, 64, 8192):
            for trigger in ("keys", "additive"):
                for dim, samples in ((10, 1_000_000), (128, 100), (2048, 100), (40, 20_000)):
                    values = dict(
                        width=width,
                        activation=activation,
                        trigger=trigger,
                        dim=dim,
                        samples=samples,
                        vocab=2048,
                        length=64,
                    )
                    regime = regime_of(Retrieval.read(values))
                    laws = laws_for(trigger, lowest if width else None)
                    words = {law.name: law.words for law in (*laws, OVERLAP)}.get(regime, "")
                    met.add((regime, words))
                    for across in ACROSS:
                        text = prediction(read_state({**values, "x": across}))
                        found = re.search(r"<dt>Law</dt><dd>recall needs (.*?)</dd>", text)
                        plain = re.sub(r"<sup>(.*?)</sup>", r"^\1", found[1]) if found else ""
                        assert plain.replace("≫", ">>") == words, (values, across)
    # Among them the law that differs with and without an MLP.
    assert {("interference", "d^2 >> V"), ("interference", "d^4 >> V")} <= met


def test_what_can_be_taken_along(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    words = "vocab=128&length=8&width=64&activation=tanh&x=dim&target=0.4"
    status, headers, table = server.ask(f"/map.csv?{words}")
    assert status == 200
    assert 'filename="map.csv"' in headers["content-disposition"]
    rows = table.splitlines()
    assert rows[0].startswith("vocab,dim,length,samples,width,")
    assert rows[1].startswith("128,8,8,100,64,tanh,gaussian,keys,")
    data = json.loads(server.ask(f"/explorer.json?{words}")[2])
    assert len(rows) - 1 == sum(len(row) for row in data["predicted"]["accuracy"])
    assert data["state"]["vocab"] == 128
    assert data["versions"]["mnemoscope"]
    # The command makes the same map: with fewer cells here, which are among the same.
    command = server.ask(f"/map.sh?{words}")[2].splitlines()[1]
    assert command == data["command"]
    monkeypatch.chdir(tmp_path)
    few = re.sub(r":(33|25)\b", ":2", command)
    assert main([*shlex.split(few)[1:], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (tmp_path / "map.svg").exists()
    for r in (0, -1):
        for c in (0, -1):
            near = data["predicted"]["accuracy"][r][c]
            assert told["predicted"][r][c] == pytest.approx(near, abs=0.03)
    assert told["trials"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("facts=200&length=8&target=0.9", "Take"),
        ("facts=200&length=8&target=0.9", 'data-figure="{'),
        ("length=16&parameters=1e5&tokens=1e6", "the most facts for this budget"),
        ("facts=200", "length: expected a number"),
        ("facts=1e99&length=8", "facts: expected"),
        ("facts=2,000&length=8", "mnemoscope plan <span"),
        ("facts=200&length=100000", "length: expected"),
        ("facts=200&length=8&target=7", "target: expected"),
        ("length=16", "expected facts, or a budget"),
        ("facts=%3Cb%3E&length=8", "&lt;b&gt;"),
    ],
)
def test_plans(server: Running, words: str, said: str):
    status, _, text = server.ask(f"/plan/answer?{words}")
    assert status == 200
    assert said in text
    page = server.ask(f"/plan?{words}")[2]  # which asks for the answer itself
    assert 'hx-get="/plan/answer"' in page
    assert "<b>&" not in page


def test_slider_ranges_hold_every_first_visit():
    state = read_state({})
    for name, (low, high) in RANGES.items():
        assert state.values[name] == 0 or low <= state.values[name] <= high
    assert read_state(dict(one.split("=") for one in state.query.split("&"))) == state


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"embedding": "orthonormal"}, "--x dim=512:2048:33"),
        ({"embedding": "orthonormal", "x": "vocab", "dim": 300}, "--x vocab=64:300:33"),
        ({"embedding": "orthonormal", "x": "length", "dim": 600}, "--x length=2:1024:33"),
        ({"embedding": "orthonormal", "x": "length"}, ""),
        ({"embedding": "orthonormal", "vocab": 4096}, ""),
    ],
)
def test_commands_ask_only_for_settings_that_exist(words: dict[str, Any], said: str):
    command = read_state(words).command
    assert said in command
    assert bool(command) == bool(said)


def test_the_switch_shows_the_end_of_training(server: Running):
    words = "vocab=256&length=32&dim=100&target=0.4"
    short, end = (json.loads(server.ask(f"/map.json?{words}{more}")[2]) for more in ("", "&training=trained"))
    assert (short["training"], end["training"]) == ("three-steps", "trained")
    # Each has the other's numbers for its dotted line.
    for one, other in ((short, end), (end, short)):
        assert one["other"] == other["accuracy"]
        assert one["curve"]["other"] == other["curve"]["accuracy"]
    assert {"storage", "unseen", "recall"} <= set(end["names"])
    assert all(end["laws"][name]["words"] for name in end["names"])
    assert end["crossing"] < short["crossing"]
    X, Y = end["x"]["values"], end["y"]["values"]
    base = Retrieval(vocab=256, dim=100, length=32, samples=1000)
    away = []
    for r in range(0, len(Y), 4):
        for c in range(0, len(X), 4):
            one = predict(base.replace(dim=int(X[c]), samples=int(Y[r])), trained=True)
            away.append(abs(end["accuracy"][r][c] - (one.accuracy or 0)))
    assert np.median(away) < 0.005
    assert np.mean(np.array(away) < 0.05) > 0.95  # but where attention is at the border of being found
    rows = server.ask(f"/map.csv?{words}&training=trained")[2].splitlines()
    assert all(row.endswith(",trained") for row in rows[1:])


def test_the_readout_at_the_end_of_training(server: Running):
    told = predict(Retrieval(vocab=512, dim=128, length=64, samples=4000), trained=True)
    text = server.ask("/prediction?training=trained")[2]
    assert f"<b>{told.accuracy:.3f}</b>" in text
    plain = " ".join(re.sub(r"<[^>]+>", "", text).split())
    assert "the weights hold about" in plain
    assert "mnemoscope predict --vocab 512 --dim 128 --length 64 --samples 4000 --trained" in plain
    assert "--samples 4000 --then adamw --steps 3000 --stop settled" in plain
    overfull = server.ask("/prediction?training=trained&dim=20&length=2")[2]
    assert "more facts than the weights can hold" in overfull
    assert "d<sup>2</sup> ≫ 2 V ln V" in overfull
    assert server.ask("/map.json?training=forever")[0] == 400


def test_a_measurement_trains_as_the_switch_says():
    words = {"vocab": 64, "dim": 32, "length": 4, "samples": 300}
    for training, then in (("trained", "adamw"), ("three-steps", "none")):
        state = read_state({**words, "training": training})
        for what in ("point", "curve"):
            said, order = make_order(state, what, 2)
            assert {spec.then for spec in order.specs} == {then}
            assert ("trained to the end" in said) == (training == "trained")


def test_the_planner_plans_both_trainings(server: Running):
    job = "facts=200&length=8&target=0.9"
    assert "the weights hold about" in server.ask(f"/plan/answer?{job}")[2]
    assert "the weights hold about" not in server.ask(f"/plan/answer?{job}&training=three-steps")[2]
    assert "training: expected one of" in server.ask(f"/plan/answer?{job}&training=forever")[2]
    assert "<option selected>three-steps</option>" in server.ask(f"/plan?{job}&training=three-steps")[2]
