"""Mnemoscope: an instrument that shows how much a transformer can learn to recall."""

from mnemoscope.batch import simulate_many
from mnemoscope.experiments.trials import Run, run
from mnemoscope.record import Step, Trial
from mnemoscope.simulate import simulate
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.theory.predict import Prediction, critical_value, predict

__all__ = [
    "Prediction",
    "Retrieval",
    "Run",
    "SpecError",
    "Step",
    "Trial",
    "critical_value",
    "predict",
    "run",
    "simulate",
    "simulate_many",
]
