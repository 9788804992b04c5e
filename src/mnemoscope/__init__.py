"""Mnemoscope: an instrument that shows how much a transformer can learn to recall."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mnemoscope.spec import Facts, Flow, Memory, Retrieval, SpecError
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.predict import Prediction, predict

if TYPE_CHECKING:
    from mnemoscope.engine.record import Step, Trial
    from mnemoscope.experiments.capacity import Capacities, Capacity, capacity, capacity_many
    from mnemoscope.experiments.critical import Critical, critical, critical_many
    from mnemoscope.experiments.dynamics import Dynamics, dynamics
    from mnemoscope.experiments.facts import FactsRun, learn_facts
    from mnemoscope.experiments.fit import Scaling, fit
    from mnemoscope.experiments.phase import PhaseDiagram, phase_diagram, predicted_diagram
    from mnemoscope.experiments.run import Run, run
    from mnemoscope.store.trials import Store
    from mnemoscope.training.three_step.batch import simulate_many
    from mnemoscope.training.three_step.simulation import simulate

__all__ = [
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
    "capacity",
    "capacity_many",
    "critical",
    "critical_many",
    "critical_value",
    "dynamics",
    "fit",
    "learn_facts",
    "phase_diagram",
    "predict",
    "predicted_diagram",
    "run",
    "simulate",
    "simulate_many",
]

# What needs the simulator is loaded when it is first asked for: theory alone starts in a moment.
_SIMULATOR = {
    "Capacities": "experiments.capacity",
    "Capacity": "experiments.capacity",
    "capacity": "experiments.capacity",
    "capacity_many": "experiments.capacity",
    "Critical": "experiments.critical",
    "Dynamics": "experiments.dynamics",
    "FactsRun": "experiments.facts",
    "PhaseDiagram": "experiments.phase",
    "Run": "experiments.run",
    "Scaling": "experiments.fit",
    "Step": "engine.record",
    "Store": "store.trials",
    "Trial": "engine.record",
    "critical": "experiments.critical",
    "critical_many": "experiments.critical",
    "dynamics": "experiments.dynamics",
    "fit": "experiments.fit",
    "learn_facts": "experiments.facts",
    "phase_diagram": "experiments.phase",
    "predicted_diagram": "experiments.phase",
    "run": "experiments.run",
    "simulate": "training.three_step.simulation",
    "simulate_many": "training.three_step.batch",
}


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version(__name__)
    if name not in _SIMULATOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_SIMULATOR[name]}"), name)
