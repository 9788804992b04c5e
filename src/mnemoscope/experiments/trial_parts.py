"""The parts of one trial of retrieval, for measurements that train or decode it in their own way."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mnemoscope.engine import random
from mnemoscope.engine.device import Precision, find_device, forget_programs, numerics
from mnemoscope.engine.layout import Layout
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.models.frozen import make_frozen
from mnemoscope.models.retrieval import Frozen
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.streaming import Source


class Parts(NamedTuple):
    """What training starts from."""

    layout: Layout
    frozen: Frozen
    source: Source


@contextmanager
def trial_parts(spec: Retrieval, seed: int, device: Device, precision: Precision = "float32") -> Iterator[Parts]:
    """The parts of a trial, from the same random numbers as `simulate`; use them inside the block."""
    forget_programs()
    place = find_device(device)
    with numerics(precision, place):
        layout = plan_memory(spec, precision, MemoryBudget.of(place))  # refuses what does not fit, before it is drawn
        streams = random.streams(spec, seed)
        frozen = make_frozen(spec, streams)
        yield Parts(layout, frozen, Source.of(spec, streams["train"], frozen.permutation))
