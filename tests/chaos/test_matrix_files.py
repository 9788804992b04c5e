"""Every malformed matrix file is refused: one line, status 2, little memory, no end of waiting."""

import contextlib
import gc
import io
import os
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hang_guard import no_hang

from chaos.malformed_files import npy, write_all
from mnemoscope.ui.cli import embeddings as _  # noqa: F401 - loaded before memory is watched
from mnemoscope.ui.cli import main

pytestmark = pytest.mark.chaos

MOST_BYTES = 2**30
SHORT = 64
# It is refused for what it is, not for a setting that it would make.
ABOUT_THE_FILE = ("mnemoscope: expected ", "mnemoscope: --dim: expected ")
# Runs in a process of its own, whose largest size is that of these files and nothing else.
CHILD = """
import sys
from chaos.test_matrix_files import refuse_each
refuse_each(sys.stdin.read().split("\\x1e"))
"""


def refuse(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with no_hang(path):
        status = main(["embeddings", path])
    told = capsys.readouterr()
    assert status == 2, path
    assert told.out == ""
    assert len(told.err.splitlines()) == 1, (path, told.err)
    assert told.err.startswith(ABOUT_THE_FILE), told.err


def test_every_malformed_file_is_refused(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "files"
    folder.mkdir()
    paths, mark = write_all(folder)
    assert len(paths) >= 300
    if full:
        _in_a_process_of_its_own(paths, capsys)
    else:
        gc.collect()
        tracemalloc.start()
        try:
            for path in paths[:: len(paths) // SHORT]:
                refuse(path, capsys)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < MOST_BYTES
    assert not mark.exists(), "a pickle was loaded"
    assert not (tmp_path / "data").exists(), "something was kept of what was refused"


def _in_a_process_of_its_own(paths: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told = subprocess.run(
        [sys.executable, "-c", CHILD],
        input="\x1e".join(paths),
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert told.returncode == 0, told.stdout + told.stderr
    with capsys.disabled():
        print(f"\n{told.stdout.strip()}")


def refuse_each(paths: list[str]) -> None:
    """Refuse these, and say how it went; status 1 where one was not refused as it should be."""
    refused, wrong = 0, []
    for path in paths:
        out, err = io.StringIO(), io.StringIO()
        try:
            with no_hang(path), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status: object = main(["embeddings", path])
        except Exception as error:
            status = repr(error)
        line = err.getvalue()
        good = status == 2 and not out.getvalue() and len(line.splitlines()) == 1
        good = good and line.startswith(ABOUT_THE_FILE)
        refused += good
        if not good:
            wrong.append((path, status, line[-500:]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"{len(paths)} malformed files, {refused} refused in one line, peak memory {peak / 2**20:,.0f} MiB")
    for one in wrong:
        print(*one)
    sys.exit(bool(wrong) or peak >= MOST_BYTES)


def test_the_file_they_are_made_from_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Else they would be refused for another reason than what is wrong with them."""
    (tmp_path / "z.npy").write_bytes(npy())
    words = ["--length", "4", "--samples", "200", "--seeds", "1", "--vocab", "32", "--json"]
    assert main(["run", "--embedding", f"file:{tmp_path / 'z.npy'}", *words]) == 0
    assert capsys.readouterr().out.startswith("{")
