"""Many people dragging at once: how long the explorer takes to answer each redraw.

The server is a process of its own, started by `mnemoscope explore`. A client behaves like the page: it has one request
under way at a time, and sends the next at the page's pace, or after twice the time of the last answer. Every request is
for a new position of the slider.
"""

import asyncio
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import numpy as np

CLIENTS, REDRAWS = 50, 40
# Milliseconds between a page's requests while a slider moves, as in explorer.js.
PACE = 60
# What clients hold and what they drag: each its own corner of the map.
SLIDERS = {"vocab": (64, 8192), "length": (2, 1024), "dim": (8, 2048), "samples": (100, 10**6)}
# One in so many has an MLP, which costs more.
WITH_MLP = 5


def time_explorer(clients: int = CLIENTS, redraws: int = REDRAWS) -> dict[str, Any]:
    """Start a server, drag, and say how long redraws took, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["explore", "--no-browser", "--port", "0", "--store", str(Path(folder) / "s.db")]
        program = [sys.executable, "-m", "mnemoscope", *words]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                address = re.search(r"http://\S+/", server.stdout.readline())
                if address is None:
                    raise RuntimeError("the explorer did not start")
                return asyncio.run(_drag_all(address[0], clients, redraws))
            finally:
                server.terminate()


async def _drag_all(address: str, clients: int, redraws: int) -> dict[str, Any]:
    began = time.perf_counter()
    answers = await asyncio.gather(*(_drag(address, n, redraws) for n in range(clients)))
    seconds = time.perf_counter() - began
    times = [milliseconds for times, _ in answers for milliseconds in times]
    return {
        "clients": clients,
        "redraws": len(times),
        "errors": sum(bad for _, bad in answers),
        "median_ms": statistics.median(times),
        "worst_ms": max(times),
        "p95_ms": float(np.quantile(times, 0.95)),
        "redraws_per_second": len(times) / seconds,
    }


async def _drag(address: str, number: int, redraws: int) -> tuple[list[float], int]:
    """One client: milliseconds of each redraw, and how many were not answered well."""
    rng = np.random.default_rng(number)
    state = {name: _place(limits, rng.uniform()) for name, limits in SLIDERS.items()}
    state["width"] = 512 if number % WITH_MLP == 0 else 0
    dragged = list(SLIDERS)[number % 2]  # V or L: what moves the whole diagram
    place = urlsplit(address)
    connection = await _connect(place)
    times, bad = [], 0
    await asyncio.sleep(rng.uniform() * PACE / 1000)
    for at in range(redraws):
        state[dragged] = _place(SLIDERS[dragged], (at + rng.uniform()) / redraws)
        query = "&".join(f"{name}={value}" for name, value in state.items())
        request = f"GET /map.json?{query}&moving=1 HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n"
        began = time.perf_counter()
        try:
            head, body = await _ask(request, *connection)
        except (asyncio.IncompleteReadError, ConnectionError):
            # The server closes connections that were silent for some seconds; a browser opens another and asks again.
            connection[1].close()
            connection = await _connect(place)
            head, body = await _ask(request, *connection)
        times.append(1000 * (time.perf_counter() - began))
        bad += not (head.startswith("http/1.1 200") and body.startswith(b'{"x"'))
        await asyncio.sleep(max(PACE - times[-1], 2 * times[-1]) / 1000)
    connection[1].close()
    await connection[1].wait_closed()
    return times, bad


async def _connect(place: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    assert place.hostname is not None
    return await asyncio.open_connection(place.hostname, place.port)


async def _ask(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, bytes]:
    """The head and the body of the answer."""
    writer.write(request.encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = re.search(r"content-length: (\d+)", head)
    return head, await reader.readexactly(int(length[1])) if length else b""


def _place(limits: tuple[int, int], share: float) -> int:
    low, high = limits
    return round(low * (high / low) ** min(1.0, share))
