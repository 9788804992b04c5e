"""A case of the benchmark: ours and autodiff at one setting, and how near ours is to the limit."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.engine.device import untouched_environment
from mnemoscope.spec import Retrieval

# float32 on both sides, sums in different orders: results further apart than this are not equal.
AGREE = 1e-3


class WorkerError(RuntimeError):
    """One side of a case did not come back with an answer."""


@dataclass(frozen=True)
class Case:
    """What one setting took. `ratio` is None where autodiff was not run or did not agree."""

    spec: dict[str, Any]
    seconds: float
    autodiff_seconds: float | None
    ratio: float | None
    peak_bytes: int
    process_bytes: int
    tables: str
    autodiff_peak_bytes: int | None
    tokens_per_second: float
    limit_fraction: float
    first_seconds: float
    difference: float | None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def run_case(
    spec: Retrieval, bandwidth: float, device: str, *, with_autodiff: bool, repeats: int, budget: int | None = None
) -> Case:
    """Time both sides, each in its own process, one after the other. `budget` is in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        ours, ours_result = _ask(spec, "ours", device, repeats, budget, Path(folder))
        theirs, difference, note = None, None, ""
        if with_autodiff:
            try:
                theirs, their_result = _ask(spec, "autodiff", device, min(3, repeats), budget, Path(folder))
                difference = max(
                    float(np.linalg.norm(ours_result[k] - their_result[k])) / float(np.linalg.norm(their_result[k]))
                    for k in ("V1", "alpha", "V2")
                )
            except WorkerError as error:
                note = f"autodiff failed: {error}"
    agrees = difference is not None and difference < AGREE
    if difference is not None and not agrees:
        note = f"results differ by {difference:.1e}: no ratio"
    return Case(
        spec=spec.model_dump(),
        **ours,  # seconds, first_seconds, peak_bytes, process_bytes and tables
        autodiff_seconds=theirs["seconds"] if theirs else None,
        ratio=theirs["seconds"] / ours["seconds"] if theirs and agrees else None,
        autodiff_peak_bytes=theirs["peak_bytes"] if theirs else None,
        tokens_per_second=spec.samples * spec.length / ours["seconds"],
        limit_fraction=must_move(spec, ours["tables"]) / bandwidth / ours["seconds"],
        difference=difference,
        note=note,
    )


def measure_bandwidth(device: str) -> float:
    """Bytes a second that a large copy reads and writes on this device."""
    return _call_worker({"side": "bandwidth", "device": device})["bandwidth"]


def _ask(
    spec: Retrieval, side: str, device: str, repeats: int, budget: int | None, folder: Path
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    results = folder / f"{side}.npz"
    request = {"side": side, "repeats": repeats, "device": device, "budget": budget, "results": str(results)}
    answer = _call_worker({"spec": spec.model_dump(), **request})
    with np.load(results) as arrays:
        return answer, dict(arrays)


def _call_worker(request: dict[str, Any]) -> dict[str, Any]:
    side = request["side"]
    done = subprocess.run(
        [sys.executable, "-m", "mnemoscope.ui.bench.worker"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        # The worker has the GPU to itself, so that fragmented memory does not stop the larger side. It reports the
        # peak in use, not what was set aside.
        env={
            **(os.environ if side == "ours" else untouched_environment()),
            "JAX_ENABLE_COMPILATION_CACHE": "false",  # the first call is to compile
            "XLA_PYTHON_CLIENT_PREALLOCATE": "true",
            "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92",
            "JAX_TRACEBACK_FILTERING": "off",
        },
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        reason = lines[-1][:200] if lines else f"status {done.returncode}"
        raise WorkerError(f"{side}: {reason}")
    return json.loads(done.stdout)


def must_move(spec: Retrieval, tables: str) -> int:
    """Bytes that the three steps cannot help moving, were memory the only limit.

    Three passes read every token (4 bytes). Without an MLP, as eta -> 0, the tables by pair of tokens are each written
    and read once: K, R and the winners. Otherwise, or where those tables are factored, two passes and, at finite gamma,
    a third read a d-vector for every token, unless the first still counts. The embeddings are read once a pass.
    """
    tokens = spec.samples * spec.length
    total = 3 * 4 * tokens + 3 * 2 * 4 * spec.vocab * spec.dim
    dense = spec.width == 0 and tables == "dense"
    if dense and spec.eta == "limit":
        return total + 3 * 2 * 4 * spec.vocab**2
    passes = (not dense) + 1 + (spec.gamma != "limit")
    return total + passes * 4 * tokens * spec.dim
