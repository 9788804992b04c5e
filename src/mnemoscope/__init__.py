"""Mnemoscope: an instrument that shows how much a transformer can learn to recall."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mnemoscope.spec import Facts, Flow, Memory, Retrieval, SpecError
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.predict import Prediction, predict

if TYPE_CHECKING:
    from mnemoscope.engine.record import Step, Trial
    from mnemoscope.engine.words import Words, below, normal, uniform
    from mnemoscope.experiments.calibration import Calibration, calibrate
    from mnemoscope.experiments.capacity import Capacities, Capacity, capacity, capacity_many
    from mnemoscope.experiments.critical import Critical, critical, critical_many
    from mnemoscope.experiments.dynamics import Dynamics, dynamics
    from mnemoscope.experiments.facts import FactsRun, learn_facts
    from mnemoscope.experiments.fit import Scaling, fit
    from mnemoscope.experiments.phase import PhaseDiagram, phase_diagram, predicted_diagram
    from mnemoscope.experiments.run import Run, run
    from mnemoscope.models.embeddings import frame, law
    from mnemoscope.store.trials import Store
    from mnemoscope.training.three_step.batch import simulate_many
    from mnemoscope.training.three_step.simulation import simulate

__all__ = [
    "Calibration",
    "Capacities",
    "Capacity",
    "Critical",
    "Dynamics",
    "Facts",
    "FactsRun",
    "Flow",
    "Memory",
    "PhaseDiagram",
    "Prediction",
    "Retrieval",
    "Run",
    "Scaling",
    "SpecError",
    "Step",
    "Store",
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
    "law",
    "learn_facts",
    "normal",
    "phase_diagram",
    "predict",
    "predicted_diagram",
    "run",
    "simulate",
    "simulate_many",
    "uniform",
]

# What needs the simulator is loaded when it is first asked for: theory alone starts in a moment.
_SIMULATOR = {
    "engine.record": ("Step", "Trial"),
    "engine.words": ("Words", "below", "normal", "uniform"),
    "experiments.calibration": ("Calibration", "calibrate"),
    "experiments.capacity": ("Capacities", "Capacity", "capacity", "capacity_many"),
    "experiments.critical": ("Critical", "critical", "critical_many"),
    "experiments.dynamics": ("Dynamics", "dynamics"),
    "experiments.facts": ("FactsRun", "learn_facts"),
    "experiments.fit": ("Scaling", "fit"),
    "experiments.phase": ("PhaseDiagram", "phase_diagram", "predicted_diagram"),
    "experiments.run": ("Run", "run"),
    "models.embeddings": ("frame", "law"),
    "store.trials": ("Store",),
    "training.three_step.batch": ("simulate_many",),
    "training.three_step.simulation": ("simulate",),
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
