"""A case of the benchmark: ours and its rivals at one setting, and how near ours is to the limit."""

import fcntl
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.engine.device import untouched_environment
from mnemoscope.spec import Retrieval

# float32 on both sides, sums in different orders: results further apart than this are not equal.
AGREE = 1e-3


class WorkerError(RuntimeError):
    """One side of a case did not come back with an answer."""


# What a rival is, for whoever reads a ratio.
RIVALS = {
    "autodiff": "jax.grad of the model as it is written down (W z_EOS first), jitted as a whole, XLA's default flags",
    "torch": "torch.func.grad of the same model under torch.compile, PyTorch's default flags",
}


@dataclass(frozen=True)
class Case:
    """What one setting took. A ratio is None where the rival was not run or did not agree.

    With a batch, `seconds` are those of one trial in it; the rivals run one trial.
    """

    spec: dict[str, Any]
    batch: int
    seconds: float
    autodiff_seconds: float | None
    ratio: float | None
    torch_seconds: float | None
    torch_ratio: float | None
    peak_bytes: int
    process_bytes: int
    tables: str
    autodiff_peak_bytes: int | None
    torch_peak_bytes: int | None
    tokens_per_second: float
    limit_fraction: float
    first_seconds: float
    difference: float | None
    note: str = ""


@dataclass(frozen=True)
class Side:
    """A rival's figures, those that there are, and what kept it from the others."""

    seconds: float | None = None
    peak_bytes: int | None = None
    difference: float | None = None
    note: str = ""

    def ratio(self, ours: float) -> float | None:
        """How many times as long as ours it takes, where it computes the same."""
        agrees = self.difference is not None and self.difference < AGREE
        return self.seconds / ours if self.seconds is not None and agrees else None


def run_cases(cases: Sequence[tuple[Retrieval, int]], bandwidth: float, device: str, **how: Any) -> Iterator[Case]:
    """`run_case` for each setting and its batch, in order.

    On a GPU, whose host has cores to spare, all of them compile at once: that takes longer than timing them.
    """
    if device == "cpu":
        yield from (run_case(spec, bandwidth, device, batch=batch, **how) for spec, batch in cases)
        return
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(cases)) as pool:
        turn = Path(folder) / "turn"
        yield from pool.map(lambda case: run_case(case[0], bandwidth, device, batch=case[1], turn=turn, **how), cases)


def run_case(
    spec: Retrieval,
    bandwidth: float,
    device: str,
    *,
    with_autodiff: bool,
    repeats: int,
    budget: int | None = None,
    with_torch: bool = False,
    batch: int = 1,
    turn: Path | None = None,
) -> Case:
    """Time ours and its rivals, each in its own process. `budget` is in bytes.

    They run one after the other; with the file `turn`, they compile together and only time one after the other.
    """
    wanted = {"ours": True, "autodiff": with_autodiff, "torch": with_torch}
    request = {"device": device, "budget": budget, "platform": device, "batch": batch, "turn": turn and str(turn)}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(wanted) if turn else 1) as pool:
        asked = {
            side: pool.submit(
                _ask, spec, side, {**request, "repeats": repeats if side == "ours" else min(3, repeats)}, Path(folder)
            )
            for side, is_wanted in wanted.items()
            if is_wanted
        }
        try:
            ours, results = asked.pop("ours").result()
        except WorkerError:
            pool.shutdown(cancel_futures=True)
            raise
        sides = {side: _compared(side, results, answer) for side, answer in asked.items()}
    ours["seconds"] /= batch
    autodiff, torch = (sides.get(side, Side()) for side in ("autodiff", "torch"))
    return Case(
        spec=spec.model_dump(),
        batch=batch,
        **ours,  # seconds, first_seconds, peak_bytes, process_bytes and tables
        autodiff_seconds=autodiff.seconds,
        ratio=autodiff.ratio(ours["seconds"]),
        torch_seconds=torch.seconds,
        torch_ratio=torch.ratio(ours["seconds"]),
        autodiff_peak_bytes=autodiff.peak_bytes,
        torch_peak_bytes=torch.peak_bytes,
        tokens_per_second=spec.samples * spec.length / ours["seconds"],
        limit_fraction=must_move(spec, ours["tables"]) / bandwidth / ours["seconds"],
        difference=autodiff.difference,
        note="; ".join(side.note for side in (autodiff, torch) if side.note),
    )


def torch_is_here() -> bool:
    """Whether PyTorch can be imported."""
    return importlib.util.find_spec("torch") is not None


def _compared(name: str, ours: dict[str, np.ndarray], asked: Future[tuple[dict[str, Any], Any]]) -> Side:
    """A rival's figures, where it came back and computed the same."""
    try:
        answer, theirs = asked.result()
    except WorkerError as error:
        return Side(note=f"{name} failed: {error}")
    difference = max(
        float(np.linalg.norm(ours[part] - theirs[part])) / float(np.linalg.norm(theirs[part]))
        for part in ("V1", "alpha", "V2")
    )
    note = "" if difference < AGREE else f"results differ by {difference:.1e}: no ratio"
    return Side(answer["seconds"], answer["peak_bytes"], difference, note)


def measure_bandwidth(device: str) -> float:
    """Bytes a second that a large copy reads and writes on this device."""
    return _call_worker({"side": "bandwidth", "device": device})["bandwidth"]


def _ask(
    spec: Retrieval, side: str, request: dict[str, Any], folder: Path
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    results = folder / f"{side}.npz"
    request = {**request, "spec": spec.model_dump(), "side": side, "results": str(results)}
    try:
        answer = _call_worker(request)
    except WorkerError:
        if not request["turn"]:
            raise
        # Beside others it may have been short of memory: once more, alone.
        with Path(request["turn"]).open("a") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            answer = _call_worker({**request, "turn": None})
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
        # A worker that has the GPU to itself sets its memory aside, so that fragments do not stop the larger side. It
        # reports the peak in use, not what was set aside.
        env={
            **(os.environ if side == "ours" else untouched_environment()),
            "JAX_ENABLE_COMPILATION_CACHE": "false",  # the first call is to compile
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false" if request.get("turn") else "true",
            "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92",
            "JAX_TRACEBACK_FILTERING": "off",
            **({"JAX_PLATFORMS": "cpu"} if side == "torch" else {}),
        },
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        reason = lines[-1][:200] if lines else f"status {done.returncode}"
        raise WorkerError(f"{side}: {reason}")
    return json.loads(done.stdout)


def must_move(spec: Retrieval, tables: str) -> int:
    """Bytes that the three steps cannot help moving, were memory the only limit and nothing cached but a chunk.

    Three passes read every token (4 bytes). Without an MLP, as eta -> 0, the tables by pair of tokens are each written
    and read once: K, R and the winners. Otherwise, or where those tables are factored, two passes and, at finite gamma,
    a third read a d-vector for every token, unless the first still counts. The embeddings are read once a pass. Caches
    that hold them all move less, and a share of the limit above 1 says that they do.
    """
    tokens = spec.samples * spec.length
    total = 3 * 4 * tokens + 3 * 2 * 4 * spec.vocab * spec.dim
    dense = spec.width == 0 and tables == "dense"
    if dense and spec.eta == "limit":
        return total + 3 * 2 * 4 * spec.vocab**2
    passes = (not dense) + 1 + (spec.gamma != "limit")
    return total + passes * 4 * tokens * spec.dim
