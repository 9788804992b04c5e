"""The trials of the golden file, and every way to run them.

All that is imported from inside the package is imported here, so that moving modules touches this
file alone.

Compiling takes nearly all of the time: about 2.5 s of CPU for each program of the retrieval model.
So the whole product of laws, triggers, activations and step sizes is run operation by operation,
without compilation, and a few programs that meet every value of each as they are compiled. What
decides no program (seed, N, d and the values of the step sizes) is varied within them.
"""

import itertools
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import numpy as np

from mnemoscope import (
    Facts,
    Flow,
    Memory,
    Retrieval,
    Store,
    Transformer,
    capacity,
    dynamics,
    learn_facts,
    simulate,
    simulate_many,
)
from mnemoscope.engine.device import Precision
from mnemoscope.engine.layout import choose_layout
from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.sweep import ThisProcess, sweep
from mnemoscope.experiments.workers.batches import run_batch
from mnemoscope.models import frozen as draw_frozen_from
from mnemoscope.models.retrieval import draw_frozen
from mnemoscope.store.rows import KEY, trial_row
from mnemoscope.tasks.retrieval import draw
from mnemoscope.training.three_step import simulation as simulate_from
from mnemoscope.training.three_step import streaming as draw_from

Record = dict[str, Any]
Spec = Retrieval | Facts | Memory | Flow | Transformer

# Named one by one: a law or an activation that is added later does not change what is here.
LAWS = ("gaussian", "sphere", "orthonormal", "matrix")
TRIGGERS = ("keys", "additive")
ACTIVATIONS = ("", "relu", "gelu", "tanh", "linear", "hermite2", "hermite3")
RATES: dict[str, dict[str, Any]] = {
    "limits": {},
    "finite eta": {"eta": 2.0},
    "finite steps": {"eta": 2.0, "gamma": 30.0},
    "locked": {"attention": "locked"},
}
# Orthonormal embeddings need d >= V; one shape for all, so that compiled operations are shared.
SMALL = {"vocab": 8, "dim": 9, "length": 4, "samples": 100, "test_samples": 64}
# Not reported by a record of what was computed, but of where and when.
LEFT_OUT = ("code", "seconds", "versions", "device", "path")


@dataclass(frozen=True)
class Case:
    """One trial of the golden file."""

    group: str
    spec: Spec
    seed: int = 0
    precision: Precision = "float32"
    budget: int | None = None

    @property
    def optimiser(self) -> str:
        """What trains beyond the three steps."""
        spec = self.spec
        if isinstance(spec, Retrieval):
            return spec.then
        if isinstance(spec, Flow):
            return "gd"
        return "adamw" if spec.method == "trained" else "none"

    def identity(self) -> Record:
        """What is known of it before it is run."""
        spec = self.spec
        return {
            "group": self.group,
            "kind": spec.kind,
            "canonical": spec.canonical(),
            "id": spec.id,
            "seed": self.seed,
            "precision": self.precision,
            "budget": self.budget,
            "optimiser": self.optimiser,
        }


def where() -> Record:
    """What the last digits depend on beside the code: versions, and the kind of CPU."""
    return {
        **{name: version(name) for name in ("jax", "jaxlib", "numpy")},
        "machine": platform.machine(),
        "cpu": _cpu(),
    }


def _cpu() -> str:
    """Maker, family, model and vector instructions, by which XLA chooses its machine code."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor()
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    flags = [flag for flag in told.get("flags", "").split() if flag.startswith(("avx", "fma"))]
    return " ".join([*(told.get(name, "") for name in ("vendor_id", "cpu family", "model")), *sorted(flags)])


# --- the settings -----------------------------------------------------------------------------


def _matrix(shift: int) -> np.ndarray:
    """A matrix of the user's own, of ten tokens: fractions that any machine makes the same."""
    row, column = np.indices((10, 9))
    return ((37 * row * row + 11 * column + 5 * row * column + shift) % 101 / 50 - 1).astype("f4")


def _law(name: str) -> Any:
    if name == "matrix":
        return _matrix(0)
    return (_matrix(0), _matrix(13)) if name == "two matrices" else name


def retrieval(law: str, trigger: str, activation: str, rates: str, **more: Any) -> Retrieval:
    """A small setting by its names."""
    mlp = {"width": 5, "activation": activation} if activation else {}
    values = {**SMALL, "embedding": _law(law), "trigger": trigger, **mlp, **RATES[rates], **more}
    return Retrieval.read(values)


def _product() -> Iterator[Case]:
    for names in itertools.product(LAWS, TRIGGERS, ACTIVATIONS, RATES):
        yield Case("product", retrieval(*names))
    for names in itertools.product(["two matrices"], TRIGGERS, ["", "relu"], ["limits", "locked"]):
        yield Case("product", retrieval(*names))
    for law, then in (("orthonormal", "gd"), ("matrix", "adamw")):
        for names in (
            (law, "keys", "", "limits"),
            (law, "additive", "gelu", "finite eta"),
            (law, "keys", "hermite3", "finite steps"),
        ):
            yield Case("product", retrieval(*names, then=then, steps=2), seed=1)


# Every law, trigger, activation and kind of step at least once.
PROGRAMS = (
    ("gaussian", "keys", "", "limits"),
    ("gaussian", "keys", "hermite3", "limits"),
    ("sphere", "additive", "relu", "finite eta"),
    ("orthonormal", "keys", "gelu", "finite steps"),
    ("gaussian", "additive", "tanh", "locked"),
    ("sphere", "keys", "linear", "locked"),
    ("orthonormal", "additive", "hermite2", "locked"),
)


def _compiled() -> Iterator[Case]:
    for names in PROGRAMS:
        law, *_, rates = names
        for samples, seed in itertools.product((5, 100, 1000), (0, 1)):
            # An orthonormal frame keeps its d; others share a program up to the next power of two.
            dim = 9 if law == "orthonormal" else {5: 5, 100: 9, 1000: 16}[samples]
            yield Case("compiled", retrieval(*names, samples=samples, dim=dim), seed)
        if "eta" in RATES[rates]:
            yield Case("compiled", retrieval(*names, eta=0.3), 2)
        if "gamma" in RATES[rates]:
            yield Case("compiled", retrieval(*names, gamma=4.0), 2)
    for seed in (0, 1):
        spec = retrieval("sphere", "additive", "", "locked")
        yield Case("compiled", spec, seed, precision="float64")


def _beyond() -> Iterator[Case]:
    """Matrices of the user's own, and training that goes on: in parts, each of them compiled."""
    for law, seed in itertools.product(("matrix", "two matrices"), (0, 1)):
        yield Case("beyond", retrieval(law, "keys", "", "limits", samples=200), seed)
    for then, samples in itertools.product(("gd", "adamw"), (60, 200)):
        spec = retrieval("gaussian", "keys", "", "limits", samples=samples, then=then, steps=13)
        yield Case("beyond", spec)
        spec = retrieval("matrix", "keys", "", "limits", samples=samples, then=then, steps=3, lr=0.1)
        yield Case("beyond", spec)


# Too little for tables by pair of 128 tokens: products of rows take their place.
FACTORED_BUDGET = 150_000


def _factored() -> Iterator[Case]:
    """The other layout: everything else has tables by pair of tokens, as they are small."""
    for names in (("gaussian", "keys", "", "limits"), ("sphere", "additive", "relu", "finite eta")):
        for samples, seed in ((70, 0), (200, 1)):
            spec = retrieval(*names, vocab=128, dim=16, samples=samples)
            assert choose_layout(spec, budget=FACTORED_BUDGET).tables == "factored"
            yield Case("factored", spec, seed, budget=FACTORED_BUDGET)


def _facts() -> Iterator[Case]:
    sizes = {
        "subjects": 4,
        "relations": 2,
        "answers": 3,
        "dim": 8,
        "heads": 2,
        "head_dim": 4,
        "length": 6,
        "batch": 32,
        "test_samples": 64,
    }
    for mixing, width in itertools.product(("softmax", "linear"), (0, 8)):
        trained = {**sizes, "mixing": mixing, "width": width}
        # One program serves all sizes up to the next power of two.
        for more, seed in (
            ({"max_steps": 96, "target": 0.7, "lr": 0.03}, 0),
            ({"max_steps": 40, "target": 0.7, "lr": 0.03}, 1),
            ({"max_steps": 32, "subjects": 3, "heads": 1, "noise": 5}, 0),
            ({"max_steps": 32, "answers": 4, "width": width and 5}, 2),
        ):
            yield Case("facts", Facts.read({**trained, **more}), seed)
    for width, seed in itertools.product((0, 16), (0, 1)):
        made = {**sizes, "width": width, "method": "constructed"}
        yield Case("facts", Facts.read(made), seed)


def _memory(**values: Any) -> Memory:
    return Memory.read({"items": 20, "dim": 8, **values})


def _constructed() -> Iterator[Case]:
    """Memories that are written down, operation by operation."""
    settings: list[dict[str, Any]] = [
        {},
        {"embedding": "gaussian"},
        {"outputs": 5},
        {"rank": 3},
        {"rank": 3, "outputs": 5, "embedding": "gaussian"},
        *({"width": 12, "activation": name} for name in ACTIVATIONS[1:]),
        *({"width": 12, "order": order} for order in range(1, 9)),
        {"width": 12, "order": 2, "embedding": "gaussian", "outputs": 5},
        {"method": "least-squares"},
        {"method": "least-squares", "embedding": "gaussian", "outputs": 5},
    ]
    for values in settings:
        yield Case("constructed", _memory(**values))


def _memories() -> Iterator[Case]:
    """Memories as they are compiled: a few that are written down, and all that are trained."""
    constructed: list[dict[str, Any]] = [
        {},
        {"embedding": "orthonormal", "items": 7},
        {"rank": 3, "outputs": 5, "embedding": "gaussian"},
        {"width": 12, "order": 3, "embedding": "orthonormal", "items": 7},
        {"method": "least-squares"},
    ]
    trained: list[dict[str, Any]] = [
        {},
        {"embedding": "orthonormal", "items": 7},
        {"rank": 3, "embedding": "gaussian"},
        {"width": 12},
        {"width": 12, "activation": "gelu", "outputs": 5},
        {"width": 12, "activation": "hermite3", "embedding": "gaussian"},
    ]
    for values, (items, seed) in itertools.product(constructed, ((20, 0), (7, 1))):
        yield Case("memories", _memory(**{"items": items, **values}), seed)
    for values in trained:
        for more, seed in (({"max_steps": 96}, 0), ({"max_steps": 64, "lr": 0.1}, 1)):
            yield Case("memories", _memory(method="trained", **values, **more), seed)


def _flows() -> Iterator[Case]:
    for more, seed in (({}, 0), ({"batch": 16}, 0), ({"batch": 16}, 1)):
        values = {
            "subjects": 4,
            "relations": 2,
            "answers": 2,
            "noise": 3,
            "length": 6,
            "lr": 0.5,
            "start": 0.01,
            "steps": 60,
            **more,
        }
        yield Case("flows", Flow.read(values), seed)


def _capacities() -> Iterator[Case]:
    for values in ({"method": "hebbian"}, {"method": "trained", "max_steps": 64}):
        yield Case("capacities", Memory.read({"items": 1, "dim": 6, **values}))


def _transformers() -> Iterator[Case]:
    small = {"dim": 8, "heads": 2, "batch": 16, "max_steps": 64, "test_samples": 64}
    facts = {"subjects": 6, "relations": 3, "answers": 2, "length": 6}
    for values in (
        {**facts, "width": 12},
        {**facts, "layers": 1, "embeddings": "frozen", "new_subjects": 3, "first_steps": 32, "optimiser": "muon"},
        {"task": "mqar", "vocab": 12, "pairs": 3, "queries": 2, "positions": "rotary", "embeddings": "tied"},
        {"task": "random-strings", "vocab": 6, "length": 5, "strings": 12, "schedule": "cosine", "stop": "steps"},
    ):
        yield Case("transformers", Transformer.read({**small, **values}))


GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "product": _product,
    "compiled": _compiled,
    "beyond": _beyond,
    "factored": _factored,
    "facts": _facts,
    "constructed": _constructed,
    "memories": _memories,
    "flows": _flows,
    "capacities": _capacities,
    "transformers": _transformers,
}


# --- the ways to run them ---------------------------------------------------------------------


def entries(group: str) -> Iterator[Record]:
    """Every trial of a group: what it is, by which ways it was run, and the record of each.

    `record` is what all ways tell; where they differ it is one for each way.
    """
    cases = list(GROUPS[group]())
    for case, ways in _run(group, cases):
        told = {way: _reported(made) for way, made in ways.items()}
        first = next(iter(told.values()))
        same = all(repr(one) == repr(first) for one in told.values())
        key = None
        for made in ways.values():
            if isinstance(made, Trial):
                key = dict(zip(KEY, trial_row(made), strict=False))
        yield {**case.identity(), "store_key": key, "ways": list(told), "record": first if same else told}


def _reported(made: Any) -> Record:
    """All numbers of a record, as plain data."""
    return {name: value for name, value in made.as_dict().items() if name not in LEFT_OUT}


def _run(group: str, cases: Sequence[Case]) -> Iterator[tuple[Case, dict[str, Any]]]:
    if group == "product":
        with _operation_by_operation():
            for case in cases:
                yield case, {"simulate": simulate(_as(Retrieval, case), case.seed)}
    elif group == "constructed":
        with jax.disable_jit():
            for case in cases:
                yield case, {"run_batch": run_batch([(case.spec, case.seed)], "cpu")[0]}
    elif group == "flows":
        for case in cases:
            yield case, {"dynamics": dynamics(_as(Flow, case), case.seed)}
    elif group == "capacities":
        for case in cases:
            yield case, {"capacity": _capacity(_as(Memory, case))}
    elif group == "facts":
        yield from zip(cases, _learn_facts(cases), strict=True)
    elif group == "transformers":
        for case in cases:
            yield case, {"run_batch": run_batch([(case.spec, case.seed)], "cpu")[0]}
    elif group == "memories":
        yield from zip(cases, _recall(cases), strict=True)
    else:
        yield from zip(cases, _simulate(cases), strict=True)


def _as(kind: type[Any], case: Case) -> Any:
    assert isinstance(case.spec, kind)
    return case.spec


@contextmanager
def _operation_by_operation() -> Iterator[None]:
    """Trials without compilation, but for what is drawn.

    The generator's integers are the same however they are computed, and so are taken from a
    compiled program. The frozen vectors are drawn by one program for each law and size, as the rest
    of the setting does not matter to them.
    """

    def compiled(function: Callable[..., Any], *static: str) -> Callable[..., Any]:
        program = jax.jit(function, static_argnames=static)

        @wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            with jax.disable_jit(False):
                return program(*given, **named)

        return call

    frozen = compiled(draw_frozen, "spec", "law")

    def draw_once(spec: Retrieval, law: str, streams: Any) -> Any:
        sizes = {name: getattr(spec, name) for name in ("vocab", "dim", "width")}
        return frozen(Retrieval.read({**sizes, "length": 1, "samples": 1}), law, streams)

    with (
        patch.object(simulate_from, "call_for", lambda *_: None),
        patch.object(draw_frozen_from, "draw_frozen", draw_once),
        patch.object(draw_from, "draw", compiled(draw, "length")),
        jax.disable_jit(),
    ):
        yield


def _simulate(cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    """Alone, among others, and through a sweep and the store, which knows one precision."""
    ways: list[dict[str, Any]] = []
    for case in cases:
        how: dict[str, Any] = {"precision": case.precision, "budget": case.budget}
        ways.append({"simulate": simulate(_as(Retrieval, case), case.seed, device="cpu", **how)})
    for (precision, budget), numbers in _alike(cases).items():
        jobs = [(_as(Retrieval, cases[number]), cases[number].seed) for number in numbers]
        many = simulate_many(jobs, precision=precision, budget=budget, device="cpu")
        for number, trial in zip(numbers, many, strict=True):
            ways[number]["simulate_many"] = trial
        if precision == "float32":
            for number, trial in zip(numbers, _swept(jobs, budget), strict=True):
                ways[number]["sweep"] = trial
    yield from ways


def _alike(cases: Sequence[Case]) -> dict[tuple[Precision, int | None], list[int]]:
    found: dict[tuple[Precision, int | None], list[int]] = {}
    for number, case in enumerate(cases):
        found.setdefault((case.precision, case.budget), []).append(number)
    return found


def _swept(jobs: Sequence[AnyJob], budget: int | None = None) -> list[Any]:
    """What a store gives back after a sweep."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.db") as store:
        sweep(jobs, store, ThisProcess("cpu", budget))
        trials = store.get(jobs)
    return [trials[job] for job in jobs]


def _learn_facts(cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    for case in cases:
        spec = _as(Facts, case)
        (alone,) = run_batch([(spec, case.seed)], "cpu")
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.db") as store:
            (kept,) = learn_facts(spec, [case.seed], store=store, workers=ThisProcess("cpu")).outcomes
        yield {"run_batch": alone, "learn_facts": kept}


def _recall(cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    jobs = [(case.spec, case.seed) for case in cases]
    for job, kept in zip(jobs, _swept(jobs), strict=True):
        (alone,) = run_batch([job], "cpu")
        yield {"run_batch": alone, "sweep": kept}


def _capacity(spec: Memory) -> Any:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "s.db") as store:
        return capacity(spec, 0.9, seeds=2, most_seeds=3, store=store, workers=ThisProcess("cpu"))
