"""Wrong, odd, slow and many requests to the explorer: it answers, says no 5xx, and does not grow.

The server is a process of its own, as `mnemoscope explore` starts it, so that its memory and what
it logs are its own. All traffic stays on 127.0.0.1.
"""

import random
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

import patience
import pytest

from mnemoscope.ui.explorer.state import ACROSS, CHOICES, RANGES

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc"),
]

SEED = 20261116
# Requests, those before that warm it up, and connections held open: in the short form and in full.
SHORT, FULL = (400, 100, 20), (10_000, 1000, 200)
MOST_GROWTH = 50 * 10**6
MOST_SECONDS = 2.0  # that a visitor waits while connections are held; judged in the full form
CLIENTS = 4

CHEAP = ("/", "/plan", "/map.json", "/map.sh", "/measured.json", "/jobs", "/assets/explorer.js", "/assets/explorer.css")
COSTLY = ("/map.json", "/prediction", "/map.csv", "/explorer.json", "/plan/answer")
METHODS = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "HEAD", "get", "FOO", "\x00", "G" * 5000)
ODD_WORDS = (
    "",
    "nan",
    "inf",
    "-1",
    "0",
    "1e30",
    "9" * 400,
    "%00",
    "%ff",
    "%",
    "%zz",
    "8%0A9",
    "½",
    "\u2028",
    "<script>",
    "'\"",
    "../../etc/passwd",
    "file:/etc/passwd",
    "a" * 1500,
    "true",
    "[]",
    "%F0%9F%A6",
)
ODD_PATHS = (
    "/" + "a" * 9000,
    "//",
    "///plan",
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e",
    "/assets/..%2f..%2fapp.py",
    "/assets/",
    "/assets/%00",
    "/assets/" + "%ff" * 50,
    "/cancel/x",
    "/cancel/" + "9" * 3000,
    "*",
    "http://evil.example/",
    "/map.json/",
    "/MAP.JSON",
    "/%",
    "/?" + "&" * 2000,
    "/?" + "a" * 3000,
    "/🦉",
    "/\x00",
    "/ /",
    "",
    "?",
    "/map.json#x",
    "/jobs?known=" + "z" * 1900,
)
ODD_HEADERS = (
    "X-A: " + "a" * 8000,
    "X-A: " + "a" * 70_000,
    "\r\n".join(f"X-{n}: 1" for n in range(500)),
    "Content-Length: -1",
    "Content-Length: x",
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: " + "9" * 400,
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip",
    "Transfer-Encoding: chunked\r\nContent-Length: 4",
    "Expect: 100-continue",
    "Cookie: " + "c" * 3000,
    "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13",
    "Upgrade: h2c",
    "Host: evil.example",
    "Origin: http://[",
    "Origin: http://evil.example",
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: \x80",
    "X-Mnemoscope-Token: \xff",
    "Range: bytes=0-9",
    "If-None-Match: " + '"' * 500,
    "Accept-Encoding: gzip",
    "no colon here",
    ": nameless",
    "X\x00: 1",
    " folded: 1",
    "Content-Type: multipart/form-data; boundary=x",
    "Sec-Fetch-Mode: navigate",
)
GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\0" * 5000,
    b"\r\n" * 3000,
    b"GET /\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\xff" * 300,
    b"GET",
    b"",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\nHost: x\n\n",
    b"a" * 100_000,
)


class Asked(NamedTuple):
    """A request as bytes, and what is known of its answer."""

    kind: str
    sent: bytes
    status: int = 0  # expected; 0 where any below 500 will do, or none
    patient: bool = True  # whether it waits for the answer
    pieces: int = 1
    ends: bool = False  # whether it says that no more will come


class Server(NamedTuple):
    """Where it is, its token, its process, and what it logged."""

    port: int
    token: str
    process: subprocess.Popen[str]
    log: Path

    @property
    def resident(self) -> int:
        """Bytes of memory in use."""
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", told)
        assert found is not None
        return 1024 * int(found[1])


@contextmanager
def explorer(folder: Path) -> Iterator[Server]:
    """`mnemoscope explore`, on a store of its own."""
    words = ["explore", "--no-browser", "--port", "0", "--store", str(folder / "s.db")]
    log = folder / "log"
    with (
        log.open("w") as err,
        subprocess.Popen(
            [sys.executable, "-m", "mnemoscope", *words], stdout=subprocess.PIPE, stderr=err, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            assert found is not None, log.read_text()
            port = int(found[1])
            _, page = exchange(port, Asked("home", get(port, "/"), 200))
            token = re.search(rb'"X-Mnemoscope-Token": "([^"]+)"', page)
            assert token is not None
            yield Server(port, token[1].decode(), process, log)
        finally:
            process.terminate()


def get(port: int, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    """A request, and that the line may be closed after it."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body


def exchange(port: int, asked: Asked) -> tuple[int, bytes]:
    """Send one request; its status, 0 without an answer, and all that came back."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=patience.SECONDS) as line:
        try:
            size = -(-len(asked.sent) // asked.pieces) or 1
            for at in range(0, len(asked.sent), size):
                line.sendall(asked.sent[at : at + size])
                if asked.pieces > 1:
                    time.sleep(0.002)  # so that they go out one by one
            if not asked.patient:
                return 0, b""
            if asked.ends:  # before a whole request was said, else nobody would answer it
                line.shutdown(socket.SHUT_WR)
            while part := line.recv(2**16):
                got += part
        except (ConnectionResetError, BrokenPipeError):
            pass  # refused before it was all said
    found = re.match(rb"HTTP/1\.[01] (\d{3})", got)
    return int(found[1]) if found else 0, got


def state(dice: random.Random) -> dict[str, str]:
    """A setting that the page could show."""
    told = {name: str(round(low * (high / low) ** dice.random())) for name, (low, high) in RANGES.items()}
    if dice.random() < 0.7:
        told["width"] = "0"
    told |= {name: dice.choice(names) for name, names in CHOICES.items()}
    return {**told, "target": f"{dice.uniform(0.05, 0.95):.3f}", "x": dice.choice(ACROSS)}


def mutate(told: str, dice: random.Random) -> str:
    """A query with something wrong, or only odd."""
    at, odd = dice.randrange(len(told) + 1), dice.choice(ODD_WORDS)
    return dice.choice(
        (
            told[:at],
            told[:at] + odd + told[at:],
            f"{told}&{told}",
            told.replace("=", dice.choice(("", "==", "%3D"))),
            re.sub(r"=[^&]*", lambda _: "=" + quote(odd, safe="%"), told, count=1),
            f"{dice.choice(list(RANGES))}={odd}&{told}",
        )
    )


def requests(port: int, token: str, dice: random.Random) -> Iterator[Asked]:
    """Requests without end, of all kinds."""

    def valid() -> Asked:
        path = dice.choice(CHEAP if dice.random() < 0.8 else COSTLY)
        told = state(dice)
        if path == "/plan/answer":
            told = {"facts": str(dice.randint(2, 500)), "length": str(dice.randint(2, 64))}
        elif path in ("/map.json",) and dice.random() < 0.8:
            told["moving"] = "1"
        return Asked("valid", get(port, f"{path}?{urlencode(told)}"), 200)

    def mutated() -> Asked:
        path, told = dice.choice((*CHEAP, *COSTLY)), urlencode({**state(dice), "moving": "1"})
        for _ in range(dice.randint(1, 3)):
            told = mutate(told, dice)
        return Asked("mutated", get(port, f"{path}?{told}"))

    def method() -> Asked:
        path = dice.choice((*CHEAP, *COSTLY, "/measure", "/cancel/1", "/cancel/99999"))
        body = dice.choice((b"", b"seeds=1", b"x" * 5000, b"\xff" * 100))
        more = [f"X-Mnemoscope-Token: {token}"] if dice.random() < 0.5 else []
        # Whatever else it says, the last word of such a form is wrong: nothing is measured.
        if path == "/measure":
            body = f"{urlencode(state(dice))}&seeds={dice.choice(ODD_WORDS)}x".encode()
        said = "POST" if path == "/measure" else dice.choice(METHODS)
        return Asked("method", get(port, path, *more, method=said, body=body))

    def path() -> Asked:
        return Asked("path", get(port, dice.choice(ODD_PATHS)))

    def headers() -> Asked:
        some = dice.sample(ODD_HEADERS, dice.randint(1, 3))
        said = dice.choice(("GET", "GET", "POST"))
        return Asked("headers", get(port, dice.choice(CHEAP), *some, method=said))

    def garbage() -> Asked:
        return Asked("garbage", dice.choice(GARBAGE), ends=True)

    def slow() -> Asked:
        return valid()._replace(kind="slow", pieces=dice.randint(2, 12))

    def partial() -> Asked:
        whole = dice.choice((valid, method, headers))().sent
        cut = whole[: dice.randrange(1, len(whole))]
        return Asked("partial", cut, patient=dice.random() < 0.5, ends=True)

    def gone() -> Asked:
        return valid()._replace(kind="gone", status=0, patient=False)

    kinds: dict[Callable[[], Asked], int] = {
        valid: 8,
        mutated: 8,
        method: 4,
        path: 2,
        headers: 3,
        garbage: 2,
        slow: 1,
        partial: 2,
        gone: 1,
    }
    while True:
        yield dice.choices(list(kinds), list(kinds.values()))[0]()


def ask_all(server: Server, seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """So many requests, by several clients; how each kind was answered, and what should not be."""
    made = requests(server.port, server.token, random.Random(seed))
    several = [next(made) for _ in range(count)]
    tally: Counter[str] = Counter()
    faults: list[str] = []
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = pool.map(lambda one: exchange(server.port, one), several)
        for asked, (status, got) in zip(several, answers, strict=True):
            tally[f"{asked.kind} {status or 'none'}"] += 1
            if status >= 500 or (asked.status and status != asked.status):
                faults.append(f"{asked.kind} {status}: {asked.sent[:300]!r} got {got[:300]!r}")
    return tally, faults


@contextmanager
def held(server: Server, count: int) -> Iterator[None]:
    """Connections that somebody keeps open: silent ones, halves of requests, answers not read."""
    token = f"X-Mnemoscope-Token: {server.token}"
    begun = (
        b"",
        get(server.port, "/map.json")[:40],
        get(server.port, "/measure", token, method="POST", body=b"x" * 100)[:-50],
        get(server.port, "/assets/plotly.min.js"),
    )
    with ExitStack() as stack:
        for at in range(count):
            line = socket.create_connection(("127.0.0.1", server.port), timeout=patience.SECONDS)
            stack.enter_context(line)
            line.sendall(begun[at % len(begun)])
        yield


def visit(server: Server, times: int) -> list[float]:
    """Seconds that a visitor waits, for a page and for a diagram in turn."""
    took = []
    for at in range(times):
        path = "/" if at % 2 else f"/map.json?vocab={100 + at}&moving=1"
        began = time.monotonic()
        status, _ = exchange(server.port, Asked("visit", get(server.port, path), 200))
        took.append(time.monotonic() - began)
        assert status == 200
    return took


def test_whatever_is_asked(full: bool, tmp_path: Path):
    count, before, connections = FULL if full else SHORT
    with explorer(tmp_path) as server:
        # Programs are loaded, and what is kept of them is made, when first asked for.
        for path in (*CHEAP, *COSTLY):
            asked = get(server.port, f"{path}?facts=50&length=8&width=64")
            assert exchange(server.port, Asked("first", asked, 200))[0] == 200
        _, faults = ask_all(server, SEED - 1, before)
        with held(server, connections):
            visit(server, 4)
        resident = server.resident
        tally, more = ask_all(server, SEED, count)
        faults += more
        with held(server, connections):
            took = visit(server, 20 if full else 4)
        grown = server.resident - resident
        said = server.log.read_text(errors="replace")
        assert server.process.poll() is None
    print(f"\n{count} requests after {before}: {dict(sorted(tally.items()))}")
    print(f"{connections} connections held: a visitor waits {max(took):.2f} s at most")
    print(f"memory: {resident / 1e6:.0f} MB, grown by {grown / 1e6:.1f} MB")
    assert not faults, "\n".join(faults[:20])
    assert "Traceback" not in said, said[said.find("Traceback") :][:5000]
    assert "ERROR" not in said
    assert grown < MOST_GROWTH
    if full:
        assert max(took) < MOST_SECONDS
