"""Measurements that pages order: queued, cancelled, bounded, and kept."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import patience
import pytest
from explorer_server import Running, running
from patience import wait_until

from mnemoscope.store.trials import Store
from mnemoscope.ui.explorer.measurements import MOST_WAITING
from mnemoscope.ui.explorer.state import read_state

# Small enough to be measured in a moment.
SMALL = {"vocab": 64, "dim": 32, "length": 4, "samples": 300}


def test_a_measurement_is_kept_where_commands_keep_theirs(server: Running):
    number = next_number(server)
    text = server.order(**SMALL, seeds=2)
    assert f'data-number="{number}"' in text
    server.wait(number, "done")
    spec = read_state(SMALL).spec
    with Store(server.explorer.store, writing=False) as store:
        kept = [*store.get([(spec, seed) for seed in range(2)]).values()]
    assert [trial.status for trial in kept] == ["ok", "ok"]
    points = json.loads(server.ask(f"/measured.json?{query(SMALL)}")[2])["points"]
    assert [(one["samples"], one["seeds"]) for one in points] == [(300, 2)]
    known = [trial.accuracy for trial in kept if trial.accuracy is not None]
    assert points[0]["mean"] == pytest.approx(np.mean(known))
    assert points[0]["low"] <= points[0]["mean"] <= points[0]["high"]
    # Another law of embeddings is another curve.
    assert json.loads(server.ask(f"/measured.json?{query(SMALL)}&embedding=sphere")[2]) == {"points": []}


@pytest.mark.long
def test_a_second_measurement_waits_and_any_can_be_cancelled(server: Running):
    first = next_number(server)
    long = {"vocab": 512, "dim": 64, "length": 256, "samples": 200_000}
    server.order(**long, seeds=10)
    server.order(**{**SMALL, "dim": 40}, seeds=1, what="curve")
    server.order(**{**SMALL, "dim": 41}, seeds=1)
    server.wait(first, "running")
    stages = {one.number: one.stage for one in server.explorer.measurements.newest_first()}
    assert stages[first + 1] == stages[first + 2] == "waiting"
    token = {"X_Mnemoscope_Token": server.explorer.token}
    _, _, text = server.ask(f"/cancel/{first + 2}", method="POST", body="x=1", **token)
    assert "cancelled" in text
    server.ask(f"/cancel/{first}", method="POST", body="x=1", **token)
    server.wait(first, "cancelled")
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
    server.wait(again, "running", trials=1)
    server.ask(f"/cancel/{again}", method="POST", body="x=1", **token)
    server.wait(again, "cancelled")


def test_orders_that_cannot_be_are_refused(server: Running):
    before = len(server.explorer.measurements.newest_first())
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
    assert len(server.explorer.measurements.newest_first()) == before


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
        worker = wait_until(lambda: server.explorer.measurements._worker, "there is a worker")
        worker[0].kill()
        assert "ended unexpectedly" in server.wait(1, "failed").message
        server.order(**SMALL, seeds=1)
        server.wait(2, "done")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_that_is_stopped_leaves_no_worker(tmp_path: Path, how: signal.Signals):
    words = ["explore", "--no-browser", "--port", "0", "--store", str(tmp_path / "trials.db")]
    program = [sys.executable, "-m", "mnemoscope", *words]
    with subprocess.Popen(program, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        found = re.search(r"http://127.0.0.1:(\d+)/", process.stdout.readline())
        assert found is not None
        page = urlopen(found[0], timeout=patience.SECONDS).read().decode()
        token = re.search(r'"X-Mnemoscope-Token": "([^"]+)"', page)
        assert token is not None
        body = b"vocab=512&dim=64&length=256&samples=200000&seeds=10"
        asked = Request(f"{found[0]}measure", body, {"X-Mnemoscope-Token": token[1]})
        assert b"10 seeds" in urlopen(asked, timeout=patience.SECONDS).read()
        worker = wait_for_child(process.pid)
        if how == signal.SIGKILL:  # earlier, Python itself complains of the broken line
            wait_for_claim(tmp_path / "trials.db")
        process.send_signal(how)
        process.wait(timeout=patience.SECONDS)
        wait_until(lambda: not Path(f"/proc/{worker}").exists(), "the worker ends")
        said = process.stderr.read()
    if how != signal.SIGKILL:
        assert "1 measurement not finished" in said
    assert "Traceback" not in said


def wait_for_claim(path: Path) -> None:
    """Until somebody works on a trial of this store."""
    with Store(path, writing=False) as store:
        count = "SELECT count(*) FROM claims"
        wait_until(lambda: store.connection.execute(count).fetchone()[0], "somebody begins")


def wait_for_child(process: int) -> int:
    """The worker that a server has started."""

    def find() -> int:
        tasks = Path(f"/proc/{process}/task").glob("*/children")
        for child in (one for file in tasks for one in file.read_text().split()):
            if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                return int(child)
        return 0

    return wait_until(find, f"a worker below {process}")


def query(words: dict[str, Any]) -> str:
    return "&".join(f"{name}={value}" for name, value in words.items())


def next_number(server: Running) -> int:
    return max((one.number for one in server.explorer.measurements.newest_first()), default=0) + 1
