"""JAX's set-up: once, for Python and commands alike, and never over what the user has set."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mnemoscope.engine import device
from mnemoscope.engine.device import warn_of_slow_sums

SIMULATE = (
    "import os, jax, mnemoscope as mn; mn.simulate(mn.Retrieval(vocab=8, dim=4, length=2, samples=9), 0); "
    "print(os.environ['XLA_FLAGS'], jax.config.jax_compilation_cache_dir, sep='|')"
)


def python(folder: Path, **settings: str) -> list[str]:
    known = {
        name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR")
    }
    known |= {"XDG_CACHE_HOME": str(folder), "XDG_DATA_HOME": str(folder), **settings}
    told = subprocess.run([sys.executable, "-c", SIMULATE], capture_output=True, text=True, check=True, env=known)
    return told.stdout.strip().split("|")


def test_python_keeps_compiled_programs_as_commands_do(tmp_path: Path):
    flags, folder = python(tmp_path)
    assert flags == device.NO_AUTOTUNING
    assert Path(folder) == tmp_path / "mnemoscope" / "compiled"
    assert list(Path(folder).iterdir())


def test_what_the_user_has_set_stays(tmp_path: Path):
    own = str(tmp_path / "own")
    assert python(tmp_path, XLA_FLAGS="", JAX_COMPILATION_CACHE_DIR=own) == ["", own]


def test_a_rival_does_not_inherit_our_flags(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XLA_FLAGS", device.NO_AUTOTUNING)
    assert device.untouched_environment()["XLA_FLAGS"] == ""
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    assert device.untouched_environment()["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"
    monkeypatch.delenv("XLA_FLAGS")
    assert device.untouched_environment()["XLA_FLAGS"] == ""


@pytest.mark.parametrize(("version", "lines"), [("0.10.2", 1), ("0.11.0", 1), ("0.10.1", 0), ("0.11.1", 0)])
def test_a_version_whose_gpu_programs_are_slow_is_named_once(
    version: str, lines: int, caplog: pytest.LogCaptureFixture
):
    warn_of_slow_sums.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            warn_of_slow_sums(version)
    assert len(caplog.records) == lines
