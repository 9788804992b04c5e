"""How weights are trained: optimisers, schedules, label noise and rounding, as settings name them.

A field of these types has the same meaning in every spec that has it.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator

from mnemoscope.spec.validators import between, one_of, whole

# `gd` and `sgd` take the same step; with a batch it is stochastic under either name.
Optimiser = Literal["gd", "sgd", "adam", "adamw", "muon", "sign"]
# Newton's step is written down where the Hessian is known: one step from zero.
OneStep = Literal["gd", "sgd", "adam", "adamw", "muon", "newton", "sign"]
Schedule = Literal["constant", "linear", "cosine", "warmup-cosine"]
# The share of the steps over which `warmup-cosine` raises the rate.
WARMUP = 0.1
MOST_BATCH = 2**26


def _below_one(value: Any) -> float:
    share = between(0, 1)(value)
    if share == 1:
        raise ValueError("expected a share of at least 0 and below 1, got 1")
    return share


OptimiserName = Annotated[Optimiser, BeforeValidator(one_of(*get_args(Optimiser)))]
OneStepName = Annotated[OneStep, BeforeValidator(one_of(*get_args(OneStep)))]
ScheduleName = Annotated[Schedule, BeforeValidator(one_of(*get_args(Schedule)))]
WeightDecay = Annotated[float, BeforeValidator(between(0, 1e6))]
LabelNoise = Annotated[float, BeforeValidator(_below_one)]
Bits = Annotated[int, BeforeValidator(whole(0, 16))]
Batch = Annotated[int, BeforeValidator(whole(0, MOST_BATCH))]

DECAY_TEXT = "weight decay: lr times this, times the weights, is taken from the weights in every step"
SCHEDULE_TEXT = "how the learning rate changes over the steps"
NOISE_TEXT = "share of training samples whose label is replaced by a uniform one"
BITS_TEXT = "round every matrix of weights to this many bits at the end; 0 keeps them as they are"
