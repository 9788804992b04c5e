"""A training that a page watches as it happens: its loss, its accuracy, and where every head looks.

One training runs at a time, in a process of its own, which reports at every check. A new one ends the one before.
"""

import multiprocessing
import signal
import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from mnemoscope.spec import SpecError, Transformer
from mnemoscope.spec.validators import Device, nearest

# Small settings, by what a person sees in them.
PRESETS = {
    "facts: subjects, relations, answers": Transformer(layers=1, dim=48, heads=3, lr=0.002, batch=64, max_steps=1024),
    "a mark says which token": Transformer(task="retrieval", layers=1, dim=48, heads=2, batch=64, max_steps=1024),
    "the query says which token": Transformer(
        task="retrieval", cue="query", layers=1, dim=48, heads=2, batch=64, max_steps=2048
    ),
    "several keys at once": Transformer(
        task="mqar", vocab=32, pairs=4, queries=2, layers=2, dim=48, heads=2, batch=64, max_steps=4096
    ),
    "new facts after old ones": Transformer(
        new_subjects=8, first_steps=224, max_steps=640, layers=1, dim=48, heads=3, batch=64
    ),
}
SECONDS_TO_END = 5


def preset_of(name: str) -> Transformer:
    """The setting of that name."""
    if name not in PRESETS:
        raise SpecError("preset", f"expected one of {', '.join(PRESETS)}, got {name!r}{nearest(name, PRESETS)}")
    return PRESETS[name]


class Live:
    """The training under way, or the last one, as pages see it."""

    def __init__(self, device: Device = "auto") -> None:
        self.device: Device = device
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._number = 0
        self._state: dict[str, Any] = {"stage": "none", "preset": None, "message": "", "curve": [], "map": None}

    def start(self, preset: str, seed: int) -> None:
        """Begin a training; one that is under way ends."""
        spec = preset_of(preset)
        self.stop()
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=train, args=(theirs, spec, seed, self.device), daemon=True)
        process.start()
        theirs.close()
        with self._lock:
            self._number += 1
            self._process = process
            self._state = {"stage": "running", "preset": preset, "message": "starting", "curve": [], "map": None}
            number = self._number
        threading.Thread(target=self._listen, args=(ours, number), name="live", daemon=True).start()

    def stop(self) -> None:
        """End the training under way."""
        with self._lock:
            process, self._process = self._process, None
            self._number += 1  # what the old one still says is not heard
            if self._state["stage"] == "running":
                self._state = {**self._state, "stage": "stopped", "message": "stopped"}
        if process is not None:
            process.terminate()
            process.join(timeout=SECONDS_TO_END)
            if process.is_alive():
                process.kill()

    def state(self) -> dict[str, Any]:
        """Stage, message, curve and map."""
        with self._lock:
            return {**self._state, "curve": [*self._state["curve"]]}

    def _listen(self, line: Connection, number: int) -> None:
        value: Any
        while True:
            try:
                kind, value = line.recv()
            except (EOFError, OSError):
                kind, value = "failed", "the training's process ended unexpectedly"
            with self._lock:
                if number != self._number:
                    return
                if kind == "check":
                    self._state["curve"].append(value["check"])
                    shown = f"step {value['check']['step']:,}, accuracy {value['check']['accuracy']:.3f}"
                    self._state |= {"map": value["map"], "message": shown}
                    continue
                self._state |= {"stage": kind, "message": value}
                return


def train(line: Connection, spec: Transformer, seed: int, device: Device) -> None:
    """The process: train, and report every check."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles it and ends this process
    # The simulator is imported here: the server imports this module too, and does not need it.
    import jax
    import numpy as np

    from mnemoscope.engine.device import find_device
    from mnemoscope.experiments.attention_maps import show_maps
    from mnemoscope.training.transformer import TRANSFORMER

    taken = 0

    def watch(world: Any, weights: Any, measured: dict[str, np.ndarray]) -> None:
        nonlocal taken
        taken += TRANSFORMER.check
        first_world, first_weights = jax.tree.map(lambda part: part[0], (world, weights))
        maps = show_maps(spec, program, first_world, first_weights, seed=seed)
        layers, heads, _, positions = maps.weights.shape
        drawn = {
            "tokens": list(maps.tokens),
            "rows": [f"layer {layer + 1}, head {head + 1}" for layer in range(layers) for head in range(heads)],
            "weights": np.round(maps.weights[:, :, -1].reshape(layers * heads, positions), 4).tolist(),
            "answer": maps.answers[-1],
            "named": maps.named[-1],
        }
        check = {"step": taken, **{name: float(part[0]) for name, part in measured.items()}}
        line.send(("check", {"check": check, "map": drawn}))

    try:
        program = TRANSFORMER.program(spec, find_device(device).platform)
        (trial,) = TRANSFORMER.run([(spec, seed)], device, watch=watch)
        reached = {"ok": "reached its target", "unreached": "did not reach its target"}.get(trial.status, trial.status)
        line.send(
            ("done", f"{reached} after {int(trial.metrics['steps'] or 0):,} steps, accuracy {trial.accuracy:.3f}")
        )
    except OSError:
        return  # the server is gone
    except Exception as error:  # the page shows it
        line.send(("failed", f"{type(error).__name__}: {error}".splitlines()[0]))
