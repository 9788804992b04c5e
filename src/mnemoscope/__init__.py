"""Mnemoscope: an instrument that shows how much a transformer can learn to recall."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mnemoscope.spec import Facts, Flow, Memory, Own, Retrieval, SpecError
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.predict import Prediction, predict
from mnemoscope.theory.stated import Moments

if TYPE_CHECKING:
    from mnemoscope.engine.record import Step, Trial
    from mnemoscope.engine.words import Words, below, normal, uniform
    from mnemoscope.experiments.calibration import Calibration, calibrate
    from mnemoscope.experiments.capacity import Capacities, Capacity, capacity_many
    from mnemoscope.experiments.critical import Critical, critical, critical_many
    from mnemoscope.experiments.dynamics import Dynamics, dynamics
    from mnemoscope.experiments.facts import FactsRun, learn_facts
    from mnemoscope.experiments.fit import Scaling, fit
    from mnemoscope.experiments.own_capacity import OwnCapacity, capacity
    from mnemoscope.experiments.phase import PhaseDiagram, phase_diagram, predicted_diagram
    from mnemoscope.experiments.run import Run, run
    from mnemoscope.experiments.search import Found, search
    from mnemoscope.models.adapters import from_equinox, from_nnx, from_torch
    from mnemoscope.models.embeddings import frame, law
    from mnemoscope.models.own import Model
    from mnemoscope.store.trials import Store
    from mnemoscope.tasks.own import Task
    from mnemoscope.training.any_kind import simulate, simulate_many

__all__ = [
    "Calibration",
    "Capacities",
    "Capacity",
    "Critical",
    "Dynamics",
    "Facts",
    "FactsRun",
    "Flow",
    "Found",
    "Memory",
    "Model",
    "Moments",
    "Own",
    "OwnCapacity",
    "PhaseDiagram",
    "Prediction",
    "Retrieval",
    "Run",
    "Scaling",
    "SpecError",
    "Step",
    "Store",
    "Task",
    "Trial",
    "Words",
    "below",
    "calibrate",
    "capacity",
    "capacity_many",
    "critical",
    "critical_many",
    "critical_value",
    "dynamics",
    "fit",
    "frame",
    "from_equinox",
    "from_nnx",
    "from_torch",
    "law",
    "learn_facts",
    "normal",
    "phase_diagram",
    "predict",
    "predicted_diagram",
    "run",
    "search",
    "simulate",
    "simulate_many",
    "uniform",
]

# What needs the simulator is loaded when it is first asked for: theory alone starts in a moment.
_SIMULATOR = {
    "engine.record": ("Step", "Trial"),
    "engine.words": ("Words", "below", "normal", "uniform"),
    "experiments.calibration": ("Calibration", "calibrate"),
    "experiments.capacity": ("Capacities", "Capacity", "capacity_many"),
    "experiments.critical": ("Critical", "critical", "critical_many"),
    "experiments.dynamics": ("Dynamics", "dynamics"),
    "experiments.facts": ("FactsRun", "learn_facts"),
    "experiments.fit": ("Scaling", "fit"),
    "experiments.phase": ("PhaseDiagram", "phase_diagram", "predicted_diagram"),
    "experiments.own_capacity": ("OwnCapacity", "capacity"),
    "experiments.run": ("Run", "run"),
    "experiments.search": ("Found", "search"),
    "models.adapters": ("from_equinox", "from_nnx", "from_torch"),
    "models.embeddings": ("frame", "law"),
    "models.own": ("Model",),
    "store.trials": ("Store",),
    "tasks.own": ("Task",),
    "training.any_kind": ("simulate", "simulate_many"),
}


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version(__name__)
    for module, names in _SIMULATOR.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
