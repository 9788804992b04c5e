"""Mnemoscope: an instrument that shows how much a transformer can learn to recall."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mnemoscope.spec import Facts, Flow, Memory, Own, Retrieval, SpecError, Transformer
from mnemoscope.theory.critical import critical_value
from mnemoscope.theory.predict import Prediction, predict
from mnemoscope.theory.stated import Moments

if TYPE_CHECKING:
    from mnemoscope.engine.record import Step, Trial
    from mnemoscope.engine.words import Words, below, normal, uniform
    from mnemoscope.experiments.attention_maps import AttentionMaps, attention_maps
    from mnemoscope.experiments.bound import Bound, bound
    from mnemoscope.experiments.calibration import Calibration, calibrate
    from mnemoscope.experiments.capacity import Capacities, Capacity, capacity_many
    from mnemoscope.experiments.compare_embeddings import Comparison, compare_embeddings
    from mnemoscope.experiments.critical import Critical, critical, critical_many
    from mnemoscope.experiments.dynamics import Dynamics, dynamics
    from mnemoscope.experiments.facts import FactsRun, learn_facts
    from mnemoscope.experiments.fit import Scaling, fit
    from mnemoscope.experiments.laws import LawMap, laws
    from mnemoscope.experiments.own_capacity import OwnCapacity, capacity
    from mnemoscope.experiments.phase import PhaseDiagram, phase_diagram, predicted_diagram
    from mnemoscope.experiments.plan import Plan
    from mnemoscope.experiments.plan_question import plan
    from mnemoscope.experiments.run import Run, run
    from mnemoscope.experiments.search import Found, search
    from mnemoscope.experiments.transformer_capacity import TransformerCapacity
    from mnemoscope.experiments.validation.parts import Validation, validate
    from mnemoscope.models.adapters import from_equinox, from_nnx, from_torch
    from mnemoscope.models.embeddings import frame, law
    from mnemoscope.models.own import Model
    from mnemoscope.store.trials import Store
    from mnemoscope.studies.reproduction import Reproduction, reproduce
    from mnemoscope.tasks.own import Task
    from mnemoscope.training.any_kind import simulate, simulate_many
    from mnemoscope.ui.bench.benchmark import Benchmark, bench
    from mnemoscope.ui.cli.explore import explore
    from mnemoscope.ui.pages.exhibits import report

__all__ = [
    "AttentionMaps",
    "Benchmark",
    "Bound",
    "Calibration",
    "Capacities",
    "Capacity",
    "Comparison",
    "Critical",
    "Dynamics",
    "Facts",
    "FactsRun",
    "Flow",
    "Found",
    "LawMap",
    "Memory",
    "Model",
    "Moments",
    "Own",
    "OwnCapacity",
    "PhaseDiagram",
    "Plan",
    "Prediction",
    "Reproduction",
    "Retrieval",
    "Run",
    "Scaling",
    "SpecError",
    "Step",
    "Store",
    "Task",
    "Transformer",
    "TransformerCapacity",
    "Trial",
    "Validation",
    "Words",
    "attention_maps",
    "below",
    "bench",
    "bound",
    "calibrate",
    "capacity",
    "capacity_many",
    "compare_embeddings",
    "critical",
    "critical_many",
    "critical_value",
    "dynamics",
    "explore",
    "fit",
    "frame",
    "from_equinox",
    "from_nnx",
    "from_torch",
    "law",
    "laws",
    "learn_facts",
    "normal",
    "phase_diagram",
    "plan",
    "predict",
    "predicted_diagram",
    "report",
    "reproduce",
    "run",
    "search",
    "simulate",
    "simulate_many",
    "uniform",
    "validate",
]

# What needs the simulator is loaded when it is first asked for: theory alone starts in a moment.
_SIMULATOR = {
    "engine.record": ("Step", "Trial"),
    "engine.words": ("Words", "below", "normal", "uniform"),
    "experiments.attention_maps": ("AttentionMaps", "attention_maps"),
    "experiments.bound": ("Bound", "bound"),
    "experiments.calibration": ("Calibration", "calibrate"),
    "experiments.capacity": ("Capacities", "Capacity", "capacity_many"),
    "experiments.compare_embeddings": ("Comparison", "compare_embeddings"),
    "experiments.critical": ("Critical", "critical", "critical_many"),
    "experiments.dynamics": ("Dynamics", "dynamics"),
    "experiments.facts": ("FactsRun", "learn_facts"),
    "experiments.fit": ("Scaling", "fit"),
    "experiments.laws": ("LawMap", "laws"),
    "experiments.phase": ("PhaseDiagram", "phase_diagram", "predicted_diagram"),
    "experiments.own_capacity": ("OwnCapacity", "capacity"),
    "experiments.plan": ("Plan",),
    "experiments.plan_question": ("plan",),
    "experiments.run": ("Run", "run"),
    "experiments.search": ("Found", "search"),
    "experiments.transformer_capacity": ("TransformerCapacity",),
    "experiments.validation.parts": ("Validation", "validate"),
    "models.adapters": ("from_equinox", "from_nnx", "from_torch"),
    "models.embeddings": ("frame", "law"),
    "models.own": ("Model",),
    "store.trials": ("Store",),
    "studies.reproduction": ("Reproduction", "reproduce"),
    "tasks.own": ("Task",),
    "training.any_kind": ("simulate", "simulate_many"),
    "ui.bench.benchmark": ("Benchmark", "bench"),
    "ui.cli.explore": ("explore",),
    "ui.pages.exhibits": ("report",),
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
