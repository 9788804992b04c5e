"""Mnemoscope: an instrument that shows how much a transformer can learn to recall."""

from mnemoscope.record import Step, Trial
from mnemoscope.simulate import simulate
from mnemoscope.spec import Retrieval, SpecError

__all__ = ["Retrieval", "SpecError", "Step", "Trial", "simulate"]
