"""What one trial leaves behind: its inputs, its outcome, and how it was computed."""

import dataclasses
import importlib.metadata
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from mnemoscope.spec import Retrieval, Spec
from mnemoscope.spec.validators import Measure

# Raised whenever a change makes old and new results differ by more than rounding.
NUMERICS_VERSION = 3

# What a trial is of: a setting and a seed. Any kind of setting, where the kind does not matter.
Job = tuple[Retrieval, int]
AnyJob = tuple[Spec, int]
Status = Literal["ok", "crashed", "diverged", "unreached"]


@dataclass(frozen=True)
class Step:
    """The model after one step of training, on fresh sequences. See `evaluation` for the words."""

    name: str
    accuracy: float
    attention_accuracy: float
    map_accuracy: float
    recall: float | None = None
    signal: float | None = None
    std: float | None = None
    loss: float | None = None
    tied: int | None = None

    @property
    def ratio(self) -> float | None:
        """Signal over standard deviation of the attention scores."""
        if self.signal is None or not self.std:
            return None
        return self.signal / self.std


@dataclass(frozen=True)
class Trial:
    """One spec, one seed, one outcome. `accuracy` and what follows are None unless status is ok."""

    spec: Retrieval
    seed: int
    status: Status
    steps: tuple[Step, ...] = ()
    seconds: float = 0.0
    message: str = ""
    precision: str = "float32"
    device: str = "cpu"
    versions: dict[str, str] = field(default_factory=lambda: versions())

    @property
    def _end(self) -> Step | None:
        return self.steps[-1] if self.status == "ok" and self.steps else None

    @property
    def accuracy(self) -> float | None:
        """Share of fresh sequences whose label is named."""
        return self._end.accuracy if self._end else None

    @property
    def attention_accuracy(self) -> float | None:
        """Share of fresh sequences whose largest attention weight is on the informative token."""
        return self._end.attention_accuracy if self._end else None

    @property
    def recall(self) -> float | None:
        """Accuracy among the sequences where attention is right; None where it never is."""
        return self._end.recall if self._end else None

    def measured(self, measure: Measure) -> float | None:
        """One of the measures that may cross a target; None where the trial does not have it."""
        if measure == "first_gradient":
            # argmax_y u_y^T V1 z_v, and V1 is the first gradient: the matched filter.
            first = [step for step in self.steps if step.name == "V1" and self.status == "ok"]
            return first[0].map_accuracy if first else None
        return self.accuracy if measure == "accuracy" else self.attention_accuracy

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: numbers that are not finite become None."""
        steps = [{**dataclasses.asdict(step), "ratio": step.ratio} for step in self.steps]
        end = steps[-1] if self._end else dict.fromkeys(f.name for f in dataclasses.fields(Step))
        return finite(
            {
                "seed": self.seed,
                "status": self.status,
                "accuracy": end["accuracy"],
                "attention_accuracy": end["attention_accuracy"],
                "recall": end["recall"],
                "map_accuracy": end["map_accuracy"],
                "margin": {name: end.get(name) for name in ("signal", "std", "ratio")},
                "steps": steps,
                **_how(self),
            }
        )


@dataclass(frozen=True)
class Outcome:
    """One training of another kind: numbers by name, and how they came to be.

    An outcome that is `unreached` has the accuracy that was reached.
    """

    spec: Spec
    seed: int
    status: Status
    metrics: dict[str, float | None] = field(default_factory=dict)
    curve: tuple[dict[str, float], ...] = field(default=(), repr=False)
    seconds: float = 0.0
    message: str = ""
    precision: str = "float32"
    device: str = "cpu"
    versions: dict[str, str] = field(default_factory=lambda: versions())

    @property
    def accuracy(self) -> float | None:
        """Share of right answers; None where there is none to speak of."""
        return self.metrics.get("accuracy")

    def meets(self, aim: float) -> bool | None:
        """Whether its accuracy is at least that; None where it crashed, which says neither.

        A training that stopped at a target of this height has met it, though its accuracy on
        other data may be a little less; one that diverged has not.
        """
        if self.status == "crashed":
            return None
        stopped_at = getattr(self.spec, "target", None)
        if self.status == "ok" and "steps" in self.metrics and stopped_at is not None:
            return stopped_at >= aim
        return self.accuracy is not None and self.accuracy >= aim

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: numbers that are not finite become None."""
        return finite(
            {"seed": self.seed, "status": self.status, **self.metrics, **_how(self), "curve": list(self.curve)}
        )


Record = Trial | Outcome


def versions() -> dict[str, str]:
    """Versions that a later reader may need to make the same numbers."""
    return {"mnemoscope": _version("mnemoscope"), "numerics": str(NUMERICS_VERSION), "jax": _version("jax")}


@lru_cache
def _version(package: str) -> str:
    """Looked up once: a file is read for it, and every trial asks."""
    return importlib.metadata.version(package)


def _how(record: Record) -> dict[str, Any]:
    """How a record was computed."""
    return {
        "seconds": record.seconds,
        "message": record.message,
        "precision": record.precision,
        "device": record.device,
        "versions": record.versions,
        "spec_id": record.spec.id,
    }


def finite(value: Any) -> Any:
    """Plain data in which numbers that are not finite are None, as JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value
