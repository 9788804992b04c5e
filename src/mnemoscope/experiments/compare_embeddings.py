"""What recall a matrix of one's own allows, beside random embeddings of its shape.

Four ways are run on the same sequences: the matrix as it is, centred, whitened, and random.
Centring takes away what the mean bias feeds on, whitening all anisotropy; what each gains is what
that part of the geometry costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope.experiments.estimate.geometry import Geometry, look_at
from mnemoscope.experiments.estimate.intervals import Interval, mean_interval
from mnemoscope.experiments.sweep import sweep
from mnemoscope.experiments.tools import Tools
from mnemoscope.models.matrices import Matrices, keep, read_matrices
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.theory.critical import critical_value

WAYS = {"as it is": {}, "centred": {"centre": True}, "whitened": {"whiten": True}}
# Tokens that a trial has, unless the file has fewer or the user says otherwise, and the accuracy
# that random embeddings are predicted to reach.
USUAL_VOCAB, USUAL_LENGTH, AIM = 512, 16, 0.8


@dataclass(frozen=True)
class Variant:
    """One form of the matrix: its geometry, its setting, and the accuracy it reached."""

    name: str
    geometry: Geometry | None
    spec: Retrieval
    accuracy: Interval
    attention: Interval

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "name": self.name,
            "embedding": self.spec.embedding,
            "geometry": None if self.geometry is None else self.geometry.as_dict(),
            "accuracy": self.accuracy.as_dict(),
            "attention_accuracy": self.attention.as_dict(),
        }


def prepare_ways(
    told: Any,
    *,
    dim: int | None = None,
    vocab: int | None = None,
    length: int = USUAL_LENGTH,
    samples: int | None = None,
) -> tuple[dict[str, Matrices], Retrieval]:
    """Every form of the matrix, and the setting of random embeddings that goes with them.

    Without `samples`, N is where random embeddings recall most tokens.
    """
    forms = {name: read_matrices(told, dim=dim, **how) for name, how in WAYS.items()}
    rows, columns = forms["as it is"].Z.shape
    tokens = min(rows, USUAL_VOCAB) if vocab is None else vocab
    if tokens > rows:
        raise SpecError("vocab", f"expected at most {rows:,}, the rows of the file, got {tokens:,}")
    sizes = {"vocab": tokens, "dim": columns, "length": length, "samples": samples or 1}
    random = Retrieval.read(sizes)
    if samples is None:
        needed = critical_value(random, "samples", AIM)
        if needed is None:
            raise SpecError(
                "samples", f"expected a number, since random embeddings do not reach {AIM:g} at any N here, got none"
            )
        random = random.replace(samples=needed)
    return forms, random


def compare_ways(made: dict[str, Matrices], random: Retrieval, *, seeds: Sequence[int], tools: Tools) -> list[Variant]:
    """Every way's geometry and recall."""
    specs = {name: random.replace(embedding=keep(matrices)) for name, matrices in made.items()}
    specs["random"] = random
    sweep(
        [(spec, seed) for spec in specs.values() for seed in seeds], tools.store, tools.workers, tools.report("trials")
    )
    ways = []
    for name, spec in specs.items():
        trials = [tools.store.get(spec, seed) for seed in seeds]
        good = [trial for trial in trials if trial is not None and trial.status == "ok"]
        intervals = [
            mean_interval([v for v in values if v is not None], float(spec.test_samples))
            for values in ([trial.accuracy for trial in good], [trial.attention_accuracy for trial in good])
        ]
        geometry = look_at(made[name].Z) if name in made else None
        ways.append(Variant(name, geometry, spec, intervals[0], intervals[1]))
    return ways
