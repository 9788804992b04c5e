"""Who and what the explorer's server refuses."""

import json
import re
import socket
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from explorer_server import Running
from starlette.responses import PlainTextResponse

from mnemoscope.spec import SpecError
from mnemoscope.ui.cli import main
from mnemoscope.ui.cli.explore import listen
from mnemoscope.ui.explorer.guard import Guard, is_loopback, own_names


def test_pages_come_from_here_alone(server: Running):
    for path in ("/", "/plan"):
        status, headers, text = server.ask(path)
        assert status == 200
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        # Whatever a page loads is an address on this server.
        for address in re.findall(r'(?:src|href|action|hx-get|hx-post)="([^"]*)"', text):
            assert re.match(r"/(?!/)|data:", address), address
    own = resources.files("mnemoscope.ui.explorer") / "assets"
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
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1.evil.example:{port}",
        f"localhost.evil.example:{port}",
    ):
        for path in ("/", "/map.json", "/jobs", "/assets/explorer.js"):
            status, headers, text = server.ask(path, host=host)
            assert status == 421
            assert "default-src 'none'" in headers["content-security-policy"]
            assert server.explorer.token not in text
    assert server.ask("/", host=f"localhost:{port}")[0] == 200
    assert server.ask("/", host=f"LOCALHOST:{port}")[0] == 200


def test_changes_need_the_pages_own_token(server: Running):
    before = len(server.explorer.measurements.newest_first())
    token = server.explorer.token
    good = {"X_Mnemoscope_Token": token}
    for headers in (
        {},
        {"X_Mnemoscope_Token": "x" * len(token)},
        {"X_Mnemoscope_Token": ""},
        {**good, "Origin": "http://evil.example"},
        {**good, "Origin": "null"},
        {**good, "Origin": "http://["},
        {**good, "Origin": f"http://evil.example:{server.port}"},
        {**good, "Sec_Fetch_Site": "cross-site"},
        {**good, "Sec_Fetch_Site": "same-site"},
    ):
        for path in ("/measure", "/cancel/1"):
            assert server.ask(path, method="POST", body="seeds=1", **headers)[0] == 403
    assert server.ask("/measure", method="POST", body="x" * 5000, **good)[0] == 413
    assert server.ask("/measure?seeds=1")[0] == 405  # reading changes nothing
    assert server.ask("/", method="DELETE", body="x", **good)[0] == 405
    assert len(server.explorer.measurements.newest_first()) == before
    for number in ("x", "-1", "9" * 5000, "%32%33x", "²"):
        path = f"/cancel/{quote(number)}"
        assert server.ask(path, method="POST", body="x=1", **good)[0] == 404
    # A page of our own may.
    own = {**good, "Origin": f"http://{server.name}", "Sec_Fetch_Site": "same-origin"}
    assert server.ask("/cancel/99", method="POST", body="x=1", **own)[0] == 200


def test_other_sites_have_nothing_computed(server: Running):
    """An image or a script elsewhere may not ask for work; a link elsewhere may open a page."""
    for path in (
        "/map.json",
        "/prediction",
        "/plan/answer?facts=100&length=8",
        "/jobs",
        "/map.csv",
        "/assets/explorer.js",
        "/",
        "/plan",
    ):
        for site in ("cross-site", "same-site"):
            assert server.ask(path, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")[0] == 403
    for path in ("/", "/plan?facts=100&length=8"):
        assert server.ask(path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200
    assert server.ask("/prediction", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 403
    assert server.ask("/prediction", Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors")[0] == 200


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
    for path in ("/map.json", "/prediction", "/measured.json", "/map.csv", "/explorer.json", "/map.sh"):
        status, _, text = server.ask(f"{path}?{words}")
        assert status == 400, path
        assert json.loads(text)["message"].startswith(said)
    status, _, text = server.ask(f"/?{words}")
    assert status == 200
    assert 'class="complaint"' in text  # and the page of a first visit
    assert 'value="512"' in text


def test_odd_addresses_are_refused(server: Running):
    for path in (
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/state.py",
        "/assets/app.py",
        "/assets/",
        "/cancel/x",
        "/etc/passwd",
    ):
        assert server.ask(path)[0] in (404, 405), path
    assert server.ask("/map.json?vocab=" + "1" * 3000)[0] == 414
    text = server.ask("/?vocab=%3Cscript%3Ealert(1)%3C/script%3E")[2]
    assert "<script>alert" not in text


def test_names_under_which_it_may_be_called():
    assert own_names("127.0.0.1", 80) >= {"127.0.0.1", "localhost", "localhost:80", "[::1]"}
    assert "192.0.2.7:8000" in own_names("192.0.2.7", 8000)
    assert "[2001:db8::1]:8000" in own_names("2001:db8::1", 8000)
    assert f"{socket.gethostname().lower()}:9" in own_names("0.0.0.0", 9)
    assert [is_loopback(one) for one in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "a.b")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_every_address_of_this_machine():
    """Where it listens on all of them, the one that was called is ours, and no name for it is."""
    guard = Guard(PlainTextResponse("here"), "0.0.0.0", 8000, "token")
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "server": ("192.0.2.7", 8000),
        "headers": [(b"host", b"192.0.2.7:8000")],
    }
    assert guard.refusal(scope) is None
    for host in (b"192.0.2.8:8000", b"evil.example:8000", b"192.0.2.7"):
        refused = guard.refusal({**scope, "headers": [(b"host", host)]})
        assert refused is not None
        assert refused[0] == 421
    alone = Guard(PlainTextResponse("here"), "127.0.0.1", 8000, "token")
    assert alone.refusal(scope) is not None


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


def test_a_gpu_that_is_not_there_is_missed_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert main(["explore", "--no-browser", "--device", "gpu"]) == 2
    assert "--device: expected a device that JAX sees (cpu), got 'gpu'" in capsys.readouterr().err
