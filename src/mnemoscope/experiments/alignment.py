r"""How far the second step points attention at the trigger.

W1 = gamma alpha z_EOS^T has rank one, so the cosine of W1 and z_trig z_EOS^T, as vectors of d^2
numbers, is the cosine of alpha and z_trig. A random direction has one of size 1/sqrt(d).
"""

import numpy as np

from mnemoscope.experiments.trial_parts import trial_parts
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.algorithm import train_three_steps


def trigger_cosine(spec: Retrieval, seed: int, device: Device = "auto") -> float:
    """cos(alpha, z_trig) of a trial."""
    if spec.attention == "locked":
        raise SpecError("attention", "expected learned attention, got locked")
    with trial_parts(spec, seed, device) as (layout, frozen, source):
        learned = train_three_steps(spec, layout, frozen, source)
        alpha, trigger = (np.asarray(part, np.float64) for part in (learned.alpha, frozen.trigger))
    return float(alpha @ trigger / (np.linalg.norm(alpha) * np.linalg.norm(trigger)))
