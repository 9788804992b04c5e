"""The explorer's server: what it answers, what it refuses, and how it measures."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import numpy as np
import pytest
from explorer_server import Running, running
from starlette.responses import PlainTextResponse

from mnemoscope.cli import main
from mnemoscope.cli.explore import listen
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.store.trials import Store
from mnemoscope.theory.predict import predict
from mnemoscope.web.guard import Guard, is_loopback, own_names
from mnemoscope.web.measurements import MOST_WAITING
from mnemoscope.web.state import FIRST, RANGES, read_state

# Small enough to be measured in a moment.
SMALL = {"vocab": 64, "dim": 32, "length": 4, "samples": 300}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("explorer")) as made:
        yield made


def test_pages_come_from_here_alone(server: Running):
    for path in ("/", "/plan"):
        status, headers, text = server.ask(path)
        assert status == 200
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        # Whatever a page loads is an address on this server.
        for address in re.findall(r'(?:src|href|action|hx-get|hx-post)="([^"]*)"', text):
            assert re.match(r"/(?!/)|data:", address), address
    own = resources.files("mnemoscope.web") / "assets"
    for one in own.iterdir():
        status, headers, text = server.ask(f"/assets/{one.name}")
        assert status == 200
        assert text == one.read_text()
        assert server.ask(f"/assets/{one.name}", If_None_Match=headers["etag"])[0] == 304
        if one.name != "htmx.min.js":
            assert not re.search(r"https?://", text)


def test_foreign_names_are_refused(server: Running):
    """A name that was made to point here (DNS rebinding) reads nothing."""
    port = server.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1",
                 f"127.0.0.1.evil.example:{port}", f"localhost.evil.example:{port}"):  # fmt: skip
        for path in ("/", "/map.json", "/jobs", "/assets/explorer.js"):
            status, headers, text = server.ask(path, host=host)
            assert status == 421
            assert "default-src 'none'" in headers["content-security-policy"]
            assert server.explorer.token not in text
    assert server.ask("/", host=f"localhost:{port}")[0] == 200
    assert server.ask("/", host=f"LOCALHOST:{port}")[0] == 200


def test_changes_need_the_pages_own_token(server: Running):
    before = len(server.explorer.measurements.notes())
    token = server.explorer.token
    good = {"X_Mnemoscope_Token": token}
    for headers in (
        {}, {"X_Mnemoscope_Token": "x" * len(token)}, {"X_Mnemoscope_Token": ""},
        {**good, "Origin": "http://evil.example"}, {**good, "Origin": "null"},
        {**good, "Origin": f"http://evil.example:{server.port}"},
        {**good, "Sec_Fetch_Site": "cross-site"}, {**good, "Sec_Fetch_Site": "same-site"},
    ):  # fmt: skip
        for path in ("/measure", "/cancel/1"):
            assert server.ask(path, method="POST", body="seeds=1", **headers)[0] == 403
    assert server.ask("/measure", method="POST", body="x" * 5000, **good)[0] == 413
    assert server.ask("/measure?seeds=1")[0] == 405  # reading changes nothing
    assert server.ask("/", method="DELETE", body="x", **good)[0] == 405
    assert len(server.explorer.measurements.notes()) == before
    for number in ("x", "-1", "9" * 5000, "%32%33x", "²"):
        path = f"/cancel/{quote(number)}"
        assert server.ask(path, method="POST", body="x=1", **good)[0] == 404
    # A page of our own may.
    own = {**good, "Origin": f"http://{server.name}", "Sec_Fetch_Site": "same-origin"}
    assert server.ask("/cancel/99", method="POST", body="x=1", **own)[0] == 200


def test_other_sites_have_nothing_computed(server: Running):
    """An image or a script elsewhere may not ask for work; a link elsewhere may open a page."""
    for path in ("/map.json", "/told", "/plan/answer?facts=100&length=8", "/jobs", "/map.csv",
                 "/assets/explorer.js", "/", "/plan"):  # fmt: skip
        for site in ("cross-site", "same-site"):
            assert server.ask(path, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")[0] == 403
    for path in ("/", "/plan?facts=100&length=8"):
        assert server.ask(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200
    assert server.ask("/told", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 403
    assert server.ask("/told", Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors")[0] == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("vocab=1e12", "vocab: expected a whole number of at least 64 and at most 8,192"),
        ("dim=-3", "dim: expected"),
        ("length=nan", "length: expected"),
        ("samples=1e30", "samples: expected"),
        ("samples=%00", "samples: expected"),
        ("width=3", "width: expected 0, or at least 16"),
        ("width=99999999999999999999999999", "width: expected"),
        ("embedding=file:/etc/passwd", "embedding: expected one of gaussian"),
        ("embedding=file:0123456789abcdef", "embedding: expected one of"),
        ("activation=__import__", "activation: expected one of"),
        ("target=2", "target: expected"),
        ("x=samples", "x: expected one of"),
    ],
)
def test_sizes_are_bounded_and_files_are_never_named(server: Running, words: str, said: str):
    for path in ("/map.json", "/told", "/measured.json", "/map.csv", "/explorer.json", "/map.sh"):
        status, _, text = server.ask(f"{path}?{words}")
        assert status == 400, path
        assert json.loads(text)["message"].startswith(said)
    status, _, text = server.ask(f"/?{words}")
    assert status == 200
    assert 'class="complaint"' in text  # and the page of a first visit
    assert 'value="512"' in text


def test_odd_addresses_are_refused(server: Running):
    for path in ("/assets/../app.py", "/assets/..%2fapp.py", "/assets/%2e%2e/state.py",
                 "/assets/app.py", "/assets/", "/cancel/x", "/etc/passwd"):  # fmt: skip
        assert server.ask(path)[0] in (404, 405), path
    assert server.ask("/map.json?vocab=" + "1" * 3000)[0] == 414
    text = server.ask("/?vocab=%3Cscript%3Ealert(1)%3C/script%3E")[2]
    assert "<script>alert" not in text


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


def test_every_axis_and_choice_has_a_map(server: Running):
    for words in ("x=length", "x=vocab", "x=width", "x=width&width=300", "embedding=sphere",
                  "embedding=orthonormal", "embedding=orthonormal&vocab=128&width=64",
                  "trigger=additive", "width=64&activation=tanh&trigger=additive"):  # fmt: skip
        for moving in ("", "&moving=1"):
            status, _, text = server.ask(f"/map.json?{words}{moving}")
            assert status == 200, text
            told = json.loads(text)
            assert len(told["accuracy"]) == len(told["y"]["values"])
            assert len(told["accuracy"][0]) == len(told["x"]["values"])
        assert server.ask(f"/told?{words}")[0] == 200
    # Orthonormal embeddings need as many dimensions as tokens: what cannot be is left empty.
    told = json.loads(server.ask("/map.json?embedding=orthonormal&vocab=512")[2])
    for c, d in enumerate(told["x"]["values"]):
        assert (told["accuracy"][0][c] is None) == (d < 512)
    assert told["laws"]["none"]["name"] == "no such setting"
    assert "at least vocab" in server.ask("/told?embedding=orthonormal&vocab=512&dim=100")[2]
    # Laws are those of the model on the map, also where the cross itself has no MLP.
    for width in (0, 64):
        made = json.loads(server.ask(f"/map.json?x=width&width={width}&dim=20")[2])
        assert made["laws"]["mlp_noise"]["formula"] == "m d ≫ V"


def test_the_readout_is_predicts_own(server: Running):
    _, _, text = server.ask("/told")
    usual = Retrieval.read({k: v for k, v in FIRST.items() if k not in ("target", "x")})
    told = predict(usual)
    assert f"<b>{told.accuracy:.3f}</b>" in text
    assert told.regime.replace("_", " ") in text
    plain = re.sub(r"<[^>]+>", "", text)
    for command in ("predict", "run"):
        assert f"mnemoscope {command} --vocab 512 --dim 128 --length 64 --samples 4000" in plain
    assert "too few hidden" in server.ask("/told?dim=32&width=64&samples=1000000&length=4")[2]


def test_what_can_be_taken_along(server: Running, tmp_path: Path,
                                 capsys: pytest.CaptureFixture[str],
                                 monkeypatch: pytest.MonkeyPatch):  # fmt: skip
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


def test_a_measurement_is_kept_where_commands_keep_theirs(server: Running):
    number = next_number(server)
    text = server.order(**SMALL, seeds=2)
    assert f'data-number="{number}"' in text
    server.wait(number, "done")
    spec = read_state(SMALL).spec
    with Store(server.explorer.store, writing=False) as store:
        kept = [store.get(spec, seed) for seed in range(2)]
    assert all(one is not None and one.status == "ok" for one in kept)
    points = json.loads(server.ask(f"/measured.json?{query(SMALL)}")[2])["points"]
    assert [(one["samples"], one["seeds"]) for one in points] == [(300, 2)]
    known = [one.accuracy for one in kept if one is not None and one.accuracy is not None]
    assert points[0]["mean"] == pytest.approx(np.mean(known))
    assert points[0]["low"] <= points[0]["mean"] <= points[0]["high"]
    # Another law of embeddings is another curve.
    assert json.loads(server.ask(f"/measured.json?{query(SMALL)}&embedding=sphere")[2]) == {
        "points": []
    }


def test_a_second_measurement_waits_and_any_can_be_cancelled(server: Running):
    first = next_number(server)
    long = {"vocab": 512, "dim": 64, "length": 256, "samples": 200_000}
    server.order(**long, seeds=10)
    server.order(**{**SMALL, "dim": 40}, seeds=1, what="curve")
    server.order(**{**SMALL, "dim": 41}, seeds=1)
    server.wait(first, "running")
    stages = {one.number: one.stage for one in server.explorer.measurements.notes()}
    assert stages[first + 1] == stages[first + 2] == "waiting"
    token = {"X_Mnemoscope_Token": server.explorer.token}
    _, _, text = server.ask(f"/cancel/{first + 2}", method="POST", body="x=1", **token)
    assert "cancelled" in text
    server.ask(f"/cancel/{first}", method="POST", body="x=1", **token)
    server.wait(first, "cancelled", seconds=10)
    done = server.wait(first + 1, "done")
    assert done.order.trials == 7
    with Store(server.explorer.store, writing=False) as store:
        assert store.count("dim = 40") == 7
        assert store.count("dim = 41") == 0
    # Nothing of the cancelled one is left claimed: it is taken up again, and gets on.
    again = next_number(server)
    server.order(**{**long, "samples": 20_000}, seeds=10)
    server.wait(again, "done")
    again = next_number(server)
    server.order(**long, seeds=10)
    while server.wait(again, "running").done < 1:
        time.sleep(0.05)
    server.ask(f"/cancel/{again}", method="POST", body="x=1", **token)
    server.wait(again, "cancelled", seconds=10)


def test_orders_that_cannot_be_are_refused(server: Running):
    before = len(server.explorer.measurements.notes())
    for words, said in (
        ({**SMALL, "seeds": 1000}, "seeds: expected"),
        ({**SMALL, "seeds": "many"}, "seeds: expected"),
        ({**SMALL, "what": "everything"}, "what: expected one of point, curve"),
        ({**SMALL, "samples": "-1"}, "samples: expected"),
        ({**SMALL, "embedding": "orthonormal"}, "dim: expected at least vocab"),
    ):
        text = server.order(**words)
        assert 'class="complaint"' in text
        assert said in text
    assert len(server.explorer.measurements.notes()) == before


def test_work_without_end_is_refused(server: Running):
    """Hidden units and dimensions count as well as tokens."""
    for more in ({"length": 1024, "seeds": 32}, {"length": 64, "width": 8192, "seeds": 1}):
        number = next_number(server)
        large = {"vocab": 8192, "dim": 2048, "samples": 1_000_000, **more}
        server.order(**large)
        said = server.wait(number, "failed").message
        assert "expected at most 15 minutes of work" in said


def test_a_page_that_knows_the_list_gets_only_progress(server: Running):
    number = next_number(server)
    server.order(vocab=512, dim=64, length=256, samples=200_000, seeds=10)
    server.wait(number, "running")
    known = server.explorer.measurements.version
    status, headers, text = server.ask(f"/jobs?known={known}")
    assert status == 200
    assert headers["hx-reswap"] == "none"
    assert f'id="stand-{number}"' in text
    assert "<button" not in text
    status, headers, text = server.ask("/jobs?known=other")
    assert "hx-reswap" not in headers
    assert f'id="cancel-{number}"' in text
    server.explorer.measurements.cancel(number)
    server.wait(number, "cancelled")


def test_only_so_many_wait(tmp_path: Path):
    with running(tmp_path) as server:
        long = {"vocab": 512, "dim": 64, "length": 256, "samples": 300_000, "seeds": 10}
        server.order(**long)
        server.wait(1, "running")
        for _ in range(MOST_WAITING):
            server.order(**SMALL, seeds=1)
        assert f"expected at most {MOST_WAITING} waiting" in server.order(**SMALL, seeds=1)
        assert server.explorer.measurements.close() == MOST_WAITING + 1


def test_a_worker_that_dies_is_replaced(tmp_path: Path):
    with running(tmp_path) as server:
        server.order(**{**SMALL, "length": 256, "samples": 300_000}, seeds=10)
        server.wait(1, "running")
        while (worker := server.explorer.measurements._worker) is None:
            time.sleep(0.02)
        worker[0].kill()
        assert "ended by itself" in server.wait(1, "failed", seconds=20).message
        server.order(**SMALL, seeds=1)
        server.wait(2, "done")


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


def test_names_under_which_it_may_be_called():
    assert own_names("127.0.0.1", 80) >= {"127.0.0.1", "localhost", "localhost:80", "[::1]"}
    assert "192.0.2.7:8000" in own_names("192.0.2.7", 8000)
    assert "[2001:db8::1]:8000" in own_names("2001:db8::1", 8000)
    assert f"{socket.gethostname().lower()}:9" in own_names("0.0.0.0", 9)
    assert [is_loopback(one) for one in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "a.b")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_every_address_of_this_machine():
    """Where it listens on all of them, the one that was called is ours, and no name for it is."""
    guard = Guard(PlainTextResponse("here"), "0.0.0.0", 8000, "token")
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/", "query_string": b"",
        "server": ("192.0.2.7", 8000), "headers": [(b"host", b"192.0.2.7:8000")],
    }  # fmt: skip
    assert guard.refusal(scope) is None
    for host in (b"192.0.2.8:8000", b"evil.example:8000", b"192.0.2.7"):
        refused = guard.refusal({**scope, "headers": [(b"host", host)]})
        assert refused is not None
        assert refused[0] == 421
    alone = Guard(PlainTextResponse("here"), "127.0.0.1", 8000, "token")
    assert alone.refusal(scope) is not None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_that_is_stopped_leaves_no_worker(tmp_path: Path, how: signal.Signals):
    words = ["explore", "--no-browser", "--port", "0", "--store", str(tmp_path / "trials.db")]
    program = [sys.executable, "-m", "mnemoscope", *words]
    with subprocess.Popen(program, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        found = re.search(r"http://127.0.0.1:(\d+)/", process.stdout.readline())
        assert found is not None
        page = urlopen(found[0]).read().decode()
        token = re.search(r'"X-Mnemoscope-Token": "([^"]+)"', page)
        assert token is not None
        body = b"vocab=512&dim=64&length=256&samples=200000&seeds=10"
        asked = Request(f"{found[0]}measure", body, {"X-Mnemoscope-Token": token[1]})
        assert b"10 seeds" in urlopen(asked).read()
        worker = wait_for_child(process.pid)
        process.send_signal(how)
        process.wait(timeout=20)
        until = time.monotonic() + 10
        while Path(f"/proc/{worker}/cmdline").exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not Path(f"/proc/{worker}").exists()
        said = process.stderr.read()
    if how != signal.SIGKILL:
        assert "1 measurement not finished" in said
    assert "Traceback" not in said


def wait_for_child(process: int) -> int:
    """The worker that a server has started."""
    for _ in range(400):
        tasks = Path(f"/proc/{process}/task").glob("*/children")
        for child in (one for file in tasks for one in file.read_text().split()):
            if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
        time.sleep(0.05)
    raise AssertionError(f"no worker below {process}")


def test_places_to_listen():
    with listen("127.0.0.1", 0) as taken:
        port = int(taken.getsockname()[1])
        with pytest.raises(SpecError, match="expected a free place to listen on"):
            listen("127.0.0.1", port)
    with pytest.raises(SpecError, match="host: expected"):
        listen("no such name.invalid", 0)
    with pytest.raises(SpecError, match="host: expected"):
        listen("192.0.2.7", 0)


def test_the_command_refuses_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for words, said in (
        (["--port", "99999"], "--port: expected"),
        (["--port", "x"], "--port: expected"),
        (["--device", "abacus"], "--device: expected"),
        (["--store", str(tmp_path)], "--store: expected a file"),
        (["--store", "none"], "--store: expected a file"),
        (["--host", "192.0.2.7"], "--host: expected"),
    ):
        assert main(["explore", "--no-browser", *words]) == 2
        assert said in capsys.readouterr().err


def test_slider_ranges_hold_every_first_visit():
    state = read_state({})
    for name, (low, high) in RANGES.items():
        assert state.values[name] == 0 or low <= state.values[name] <= high
    assert read_state(dict(one.split("=") for one in state.query.split("&"))) == state


def query(words: dict[str, Any]) -> str:
    return "&".join(f"{name}={value}" for name, value in words.items())


def next_number(server: Running) -> int:
    return max((one.number for one in server.explorer.measurements.notes()), default=0) + 1


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
