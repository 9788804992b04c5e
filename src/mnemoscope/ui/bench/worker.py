"""One side of one case, in a process of its own so that its peak of memory is its own.

Reads one JSON request on standard input, answers with one JSON object on standard output. What is timed is the three
steps on the training samples, and the samples' own making with them; the frozen vectors are drawn before.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.engine import random
from mnemoscope.engine.device import find_device, numerics
from mnemoscope.engine.layout import Layout
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.models.frozen import make_frozen
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval
from mnemoscope.tasks.retrieval import sample
from mnemoscope.training.three_step.algorithm import Rates, ThreeSteps, three_steps, train_three_steps
from mnemoscope.training.three_step.reference import train_by_autodiff
from mnemoscope.training.three_step.streaming import Count, Source
from mnemoscope.ui.bench.torch_rival import TorchRival

SEED = 0
# Calls that are handed to the device before the host waits for them. A GPU works while the host prepares the next call,
# as in a loop over trials; how long the host takes to wake up after each is then no part of either side's time.
QUEUED = {"cpu": 1, "gpu": 10}


def main() -> None:
    """Answer one request: a side of a case, or the bandwidth of a device."""
    request: dict[str, Any] = json.load(sys.stdin)
    if request["side"] == "bandwidth":
        print(json.dumps({"bandwidth": copy_bandwidth(find_device(request["device"]))}))
        return
    take_turn(request["turn"], alone=False)
    spec = Retrieval.read(request["spec"])
    if request["side"] == "torch":
        print(json.dumps(time_torch(spec, request)))
        return
    place = find_device(request["device"])
    with numerics("float32", place):
        layout = plan_memory(spec, "float32", MemoryBudget.of(place, request["budget"]))
        if request["side"] == "ours" and request["batch"] > 1:
            go = batch_of_ours(spec, layout, request["batch"])
        else:
            streams = random.streams(spec, SEED)
            frozen = make_frozen(spec, streams)
            source = Source.of(spec, streams["train"], frozen.permutation)
            go = SIDES[request["side"]](spec, layout, frozen, source)
        answer = _time(go, request, Peak(place))
    print(json.dumps({**answer, "tables": layout.tables}))


def _time(go: Callable[[], ThreeSteps], request: dict[str, Any], peak: "Peak") -> dict[str, Any]:
    """The first call's results, to a file, and the time and memory of the following ones."""
    began = time.perf_counter()
    learned = jax.block_until_ready(go())
    first_seconds = time.perf_counter() - began
    first = jax.tree.map(lambda part: part[0], learned) if request["batch"] > 1 and learned[1].ndim > 1 else learned
    V1, alpha, V2 = (np.asarray(part) for part in first)
    np.savez(request["results"], V1=V1, alpha=alpha, V2=V2)
    del learned, first, V1, alpha, V2
    take_turn(request["turn"], alone=True)
    _give_back()
    peak.restart()
    return {
        "seconds": statistics.median(seconds_of(go, request["repeats"], QUEUED[request["platform"]])),
        "first_seconds": first_seconds,
        "peak_bytes": peak.above(),
        "process_bytes": peak.in_all(),
    }


def take_turn(turn: str | None, *, alone: bool) -> None:
    """Wait until this process may compile beside others, or have the device alone; it keeps the turn to its end.

    Workers that were started together share a lock on a file while they compile, and time one after the other.
    """
    if turn is not None:
        fcntl.flock(_open_once(turn), fcntl.LOCK_EX if alone else fcntl.LOCK_SH)


@lru_cache
def _open_once(path: str) -> int:
    """A descriptor that stays open, and with it the lock, until the process ends."""
    return os.open(path, os.O_RDWR | os.O_CREAT)


def seconds_of(
    call: Callable[[], Any], times: int, queued: int = 1, wait: Callable[[Any], Any] = jax.block_until_ready
) -> list[float]:
    """The seconds of a call, several times: those of `queued` calls until what they compute is there, shared out."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        wait([call() for _ in range(queued)])
        seconds.append((time.perf_counter() - began) / queued)
    return seconds


def ours(spec: Retrieval, layout: Layout, frozen: Frozen, source: Source) -> Callable[[], ThreeSteps]:
    """The fast path."""
    return partial(train_three_steps, spec, layout, frozen, source)


def batch_of_ours(spec: Retrieval, layout: Layout, batch: int) -> Callable[[], ThreeSteps]:
    """The fast path for so many seeds in one call, as phase diagrams and searches run it on a GPU."""
    program, rates = spec.program(), Rates.of(spec)
    streams = [random.streams(spec, SEED + number) for number in range(batch)]
    frozen = [make_frozen(spec, each) for each in streams]
    rows = jax.tree.map(lambda *parts: jnp.stack(parts), *frozen)
    keys = jnp.stack([each["train"] for each in streams])

    @jax.jit
    def go(rows: Frozen, keys: jax.Array) -> ThreeSteps:
        def steps(frozen: Frozen, key: jax.Array) -> ThreeSteps:
            source = Source.of(spec, key, frozen.permutation)
            return three_steps(program, layout, frozen, source, Count.of(spec.samples), rates)

        return jax.vmap(steps)(rows, keys)

    return partial(go, rows, keys)


def autodiff(spec: Retrieval, layout: Layout, frozen: Frozen, source: Source) -> Callable[[], ThreeSteps]:
    """The plain reference, jitted as a whole, samples and all."""

    @jax.jit
    def go(frozen: Frozen, source: Source) -> ThreeSteps:
        index = jnp.arange(spec.samples, dtype=jnp.uint32)
        batch = sample(source.key, index, source.permutation, spec.length, source.table)
        return train_by_autodiff(spec, frozen, batch)

    return partial(go, frozen, source)


def time_torch(spec: Retrieval, request: dict[str, Any]) -> dict[str, Any]:
    """PyTorch on the device that ours runs on. JAX is on the CPU here and only makes samples to compare results on."""
    place = find_device("cpu")
    with numerics("float32", place):
        streams = random.streams(spec, SEED)
        frozen = make_frozen(spec, streams)
        index = jnp.arange(spec.samples, dtype=jnp.uint32)
        source = Source.of(spec, streams["train"], frozen.permutation)
        batch = sample(source.key, index, source.permutation, spec.length, source.table)
    parts = {name: None if part is None else np.asarray(part) for name, part in frozen._asdict().items()}
    parts["permutation"] = np.asarray(frozen.permutation, np.int64)
    rival = TorchRival(spec, parts, request["platform"])
    began = time.perf_counter()
    V1, alpha, V2 = rival.on(*(np.asarray(part) for part in batch))
    first_seconds = time.perf_counter() - began
    np.savez(request["results"], V1=V1, alpha=alpha, V2=V2)
    take_turn(request["turn"], alone=True)
    queued = QUEUED[request["platform"]]
    seconds = statistics.median(seconds_of(rival.run, request["repeats"], queued, rival.wait))
    return {"seconds": seconds, "first_seconds": first_seconds, "peak_bytes": rival.peak_bytes()}


def copy_bandwidth(place: Any) -> float:
    """Bytes a second, read and written, of the fastest of ten copies of a large array."""
    size = 2**28 if place.platform == "cpu" else 2**32
    with jax.default_device(place):
        copy = jax.jit(lambda x: x + 1)
        x = jnp.zeros(size // 4, jnp.float32)
        jax.block_until_ready(copy(x))
        return 2 * size / min(seconds_of(partial(copy, x), 10))


SIDES = {"ours": ours, "autodiff": autodiff}


def _give_back() -> None:
    """Hand freed memory back to the system, so that the peak to come is not hidden in it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


class Peak:
    """The most memory in use from now on, above what is in use now.

    On a GPU, what JAX's allocator counts. On a CPU, resident memory: Linux lets a process start
    its high-water mark afresh; elsewhere the mark of the whole run has to do.
    """

    def __init__(self, place: Any) -> None:
        self.place = place
        self.restart()

    def restart(self) -> None:
        """Watch from now on."""
        if self.place.platform != "cpu":
            self.before = 0
            return
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.before = self._mark()
        except OSError:
            self.before = 0

    def above(self) -> int:
        """Bytes at the peak, less those in use when the watch began."""
        if self.place.platform != "cpu":
            return int(self.place.memory_stats()["peak_bytes_in_use"])
        return self._mark() - self.before

    def in_all(self) -> int:
        """Bytes at the peak, with everything else that the process holds."""
        return self.above() + self.before

    @staticmethod
    def _mark() -> int:
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
            return 1024 * int(next(x for x in lines if x.startswith("VmHWM")).split()[1])
        except (OSError, StopIteration):
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
