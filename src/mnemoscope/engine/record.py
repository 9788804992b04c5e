"""What one trial leaves behind: its inputs, its outcome, and how it was computed."""

import importlib.metadata
import math
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from mnemoscope.spec import Retrieval, Spec
from mnemoscope.spec.validators import Measure

# Raised whenever a change makes old and new results differ by more than rounding.
NUMERICS_VERSION = 3

# What a trial is of: a setting and a seed. Any kind of setting, where the kind does not matter.
Job = tuple[Retrieval, int]
AnyJob = tuple[Spec, int]
Status = Literal["ok", "crashed", "diverged", "unreached"]
S = TypeVar("S", bound=Spec)


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
class Trial(Generic[S]):
    """One setting, one seed, one outcome, of any kind of setting.

    `history` is how the outcome came about: the steps of a kind that is trained in a few steps, or
    the curve of checks of one that is trained until it stops; the spec's `history` says which.
    `metrics` are the numbers at the end, by name. With steps they are those of the last step, and
    there are none unless the status is ok. A trial that is `unreached` has the accuracy that it
    reached. `code` is the git state of the package's source, None for an installed package.
    """

    spec: S
    seed: int
    status: Status
    history: tuple[Any, ...] = field(default=(), repr=False)
    metrics: dict[str, float | None] = field(default_factory=dict)
    seconds: float = 0.0
    message: str = ""
    precision: str = "float32"
    device: str = "cpu"
    versions: dict[str, str] = field(default_factory=lambda: versions())
    code: dict[str, Any] | None = field(default_factory=lambda: code_state())

    def __post_init__(self) -> None:
        if self.steps:
            last = vars(self.steps[-1])
            known = {name: value for name, value in last.items() if name != "name" and value is not None}
            object.__setattr__(self, "metrics", known if self.status == "ok" else {})

    @property
    def steps(self) -> tuple[Step, ...]:
        """The model after each step, for a kind that is trained in a few."""
        return self.history if self.spec.history == "steps" else ()

    @property
    def curve(self) -> tuple[dict[str, float], ...]:
        """The checks during training, for a kind that is trained until it stops."""
        return self.history if self.spec.history == "curve" else ()

    @property
    def accuracy(self) -> float | None:
        """Share of right answers on fresh sequences; None where there is none to speak of."""
        return self.metrics.get("accuracy")

    @property
    def attention_accuracy(self) -> float | None:
        """Share of fresh sequences whose largest attention weight is on the informative token."""
        return self.metrics.get("attention_accuracy")

    @property
    def recall(self) -> float | None:
        """Accuracy among the sequences where attention is right; None where it never is."""
        return self.metrics.get("recall")

    def measured(self, measure: Measure) -> float | None:
        """One of the measures that may cross a target; None where the trial does not have it."""
        if measure == "first_gradient":
            # argmax_y u_y^T V1 z_v, and V1 is the first gradient: the matched filter.
            first = [step for step in self.steps if step.name == "V1" and self.status == "ok"]
            return first[0].map_accuracy if first else None
        return self.metrics.get(measure)

    def meets(self, aim: float) -> bool | None:
        """Whether its accuracy is at least `aim`; None where it crashed, which says neither.

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
        names = ("seconds", "message", "precision", "device", "versions", "code")
        provenance = {**{name: getattr(self, name) for name in names}, "spec_id": self.spec.id}
        head = {"seed": self.seed, "status": self.status}
        if self.spec.history == "curve":
            return finite({**head, **self.metrics, **provenance, "curve": self.curve})
        metrics = {name: self.metrics.get(name) for name in _AT_THE_END}
        margin = {name: self.metrics.get(name) for name in ("signal", "std")}
        ratio = self.steps[-1].ratio if self.metrics else None
        steps = [{**vars(step), "ratio": step.ratio} for step in self.steps]
        return finite({**head, **metrics, "margin": {**margin, "ratio": ratio}, "steps": steps, **provenance})


# Metrics that a trial of a few steps always names in its JSON.
_AT_THE_END = ("accuracy", "attention_accuracy", "recall", "map_accuracy")


def crashed(
    spec: Spec, seed: int, reason: BaseException | str, device: str = "cpu", precision: str = "float32"
) -> Trial:
    """The record of a trial that failed, which is not one that could not recall."""
    if isinstance(reason, BaseException):
        reason = f"{type(reason).__name__}: {reason}".splitlines()[0]
    return Trial(spec, seed, "crashed", message=reason, precision=precision, device=device)


def versions() -> dict[str, str]:
    """Versions that a later reader may need to make the same numbers."""
    return {"mnemoscope": _version("mnemoscope"), "numerics": str(NUMERICS_VERSION), "jax": _version("jax")}


@lru_cache
def _version(package: str) -> str:
    """Looked up once: a file is read for it, and every trial asks."""
    return importlib.metadata.version(package)


@lru_cache
def code_state(package: Path = Path(__file__).parents[1]) -> dict[str, Any] | None:
    """Commit of the source that runs, and whether files that git tracks differ from it.

    None unless the package lies in a checkout of its own: a wheel that is installed somewhere
    inside a user's repository says nothing of that repository. Asked once in a process.
    """
    root = package.parents[1]
    if package.parent.name != "src" or not (root / ".git").exists():
        return None
    status = ["git", "-C", str(root), "--no-optional-locks", "status", "--porcelain=v2", "--branch", "-uno"]
    try:
        lines = subprocess.run(status, capture_output=True, text=True, timeout=10, check=True).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    commits = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
    changed = any(not line.startswith("#") for line in lines)
    return {"commit": commits[0], "dirty": changed} if commits else None


def finite(value: Any) -> Any:
    """Plain data in which numbers that are not finite are None, as JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value
