"""The dimension at which half of the labels are named, over a grid of settings."""

from collections.abc import Sequence

from mnemoscope.experiments.critical import critical_many
from mnemoscope.spec import Retrieval
from mnemoscope.studies.base import Bench, Numbers


def critical_dims(
    bench: Bench,
    specs: Sequence[Retrieval],
    ranges: Sequence[tuple[int, int]],
    tolerance: float,
) -> list[Numbers]:
    """The critical d of each setting, found without theory's help."""
    found = critical_many(
        specs, "dim", ranges=list(ranges), use_theory=False, tolerance=tolerance,
        first_seed=bench.seed, **bench.tools,
    )  # fmt: skip
    return [
        {"vocab": one.spec.vocab, "length": one.spec.length, "samples": one.spec.samples,
         "dim": one.estimate, "low": one.low, "high": one.high, "predicted": one.predicted,
         "status": one.status}
        for one in found
    ]  # fmt: skip
