r"""How far the second step points attention at the trigger.

W1 = gamma alpha z_EOS^T has rank one, so the cosine of W1 and z_trig z_EOS^T, as vectors of d^2
numbers, is the cosine of alpha and z_trig. A random direction has one of size 1/sqrt(d).
"""

import numpy as np

from mnemoscope.engine import random
from mnemoscope.engine.device import find_device, forget_programs, numerics
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.models.frozen import make_frozen
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.algorithm import train_three_steps
from mnemoscope.training.three_step.streaming import Source


def trigger_cosine(spec: Retrieval, seed: int, device: Device = "auto") -> float:
    """cos(alpha, z_trig) of a trial, from the same random numbers as `simulate`."""
    if spec.attention == "locked":
        raise SpecError("attention", "expected learned attention, got locked")
    forget_programs()
    place = find_device(device)
    with numerics("float32", place):
        layout = plan_memory(spec, "float32", MemoryBudget.of(place))
        streams = random.streams(spec, seed)
        frozen = make_frozen(spec, streams)
        learned = train_three_steps(spec, layout, frozen, Source(streams["train"], frozen.permutation))
        alpha, trigger = (np.asarray(part, np.float64) for part in (learned.alpha, frozen.trigger))
    return float(alpha @ trigger / (np.linalg.norm(alpha) * np.linalg.norm(trigger)))
