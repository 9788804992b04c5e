"""The record of one trial: its inputs, its outcome, and how it was computed."""

import importlib.metadata
import math
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from mnemoscope.spec import Retrieval, Spec
from mnemoscope.spec.summary import Shown, Summary, brief, number
from mnemoscope.spec.validators import Measure

# Raised whenever a change makes old and new results differ by more than rounding.
NUMERICS_VERSION = 3
# The metric of weights before they were rounded, where a trial rounds them.
UNROUNDED = "unrounded_accuracy"

# What a trial runs: a setting and a seed. `AnyJob` may be of any kind.
Job = tuple[Retrieval, int]
AnyJob = tuple[Spec, int]
Status = Literal["ok", "crashed", "diverged", "unreached"]
S = TypeVar("S", bound=Spec)


@dataclass(frozen=True)
class Step:
    """The model after one step of training, on fresh sequences; `evaluation` defines the fields.

    The last two are measured where tokens are not uniform; `bands` has an accuracy for each of the spec's bands.
    """

    name: str
    accuracy: float
    attention_accuracy: float
    map_accuracy: float
    recall: float | None = None
    signal: float | None = None
    std: float | None = None
    loss: float | None = None
    tied: int | None = None
    accuracy_by_fact: float | None = None
    bands: tuple[float, ...] | None = None

    @property
    def taken(self) -> int | None:
        """The number of steps beyond the three, which the name ends with, as `adamw 200`; None before."""
        _, _, number = self.name.partition(" ")
        return int(number) if number.isdigit() else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data. What is measured by fact alone is left out where tokens are uniform."""
        values = {**vars(self), "ratio": self.ratio}
        return {name: value for name, value in values.items() if value is not None or name not in _BY_FACT}

    @property
    def ratio(self) -> float | None:
        """Signal over standard deviation of the attention scores."""
        if self.signal is None or not self.std:
            return None
        return self.signal / self.std


@dataclass(frozen=True, repr=False)
class Trial(Shown, Generic[S]):
    """One setting of any kind, one seed, one outcome.

    `history` shows how the outcome came about: the steps of a kind that trains in a few steps, or the curve of checks
    of a kind that trains until it stops; the spec's `history` says which. `metrics` are the final numbers, by name.
    With steps they are those of the last step, and empty unless the status is ok or unreached; `steps` among them is
    how many steps it took to settle. An `unreached` trial has the accuracy that it reached. `code` is the git state of
    the package's source, None for an installed package.
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
            known = {name: value for name, value in last.items() if name not in ("name", "bands") and value is not None}
            if getattr(self.spec, "stop", "steps") == "settled":
                # The weights may have been rounded after the last of them.
                known["steps"] = max((step.taken or 0 for step in self.steps), default=0)
            object.__setattr__(self, "metrics", known if self.status in ("ok", "unreached") else {})

    @property
    def steps(self) -> tuple[Step, ...]:
        """The model after each step, for a kind that trains in a few steps."""
        return self.history if self.spec.history == "steps" else ()

    @property
    def curve(self) -> tuple[dict[str, float], ...]:
        """The checks during training, for a kind that trains until it stops."""
        return self.history if self.spec.history == "curve" else ()

    @property
    def accuracy(self) -> float | None:
        """The share of right answers on fresh sequences, or None if the trial has no result."""
        return self.metrics.get("accuracy")

    @property
    def attention_accuracy(self) -> float | None:
        """The share of fresh sequences whose largest attention weight is on the informative token."""
        return self.metrics.get("attention_accuracy")

    @property
    def recall(self) -> float | None:
        """Accuracy among the sequences where attention is right, or None if it never is."""
        return self.metrics.get("recall")

    @property
    def accuracy_by_fact(self) -> float | None:
        """Accuracy with each token asked for equally often; None where tokens are uniform."""
        return self.metrics.get("accuracy_by_fact")

    @property
    def bands(self) -> tuple[float, ...] | None:
        """The same for the tokens of each of the spec's bands."""
        return self.steps[-1].bands if self.metrics and self.steps else None

    def measured(self, measure: Measure) -> float | None:
        """One of the measures that may cross a target, or None if the trial does not have it."""
        if measure == "first_gradient":
            # argmax_y u_y^T V1 z_v, and V1 is the first gradient: the matched filter.
            first = [step for step in self.steps if step.name == "V1" and self.metrics]
            return first[0].map_accuracy if first else None
        return self.metrics.get(measure)

    def meets(self, aim: float) -> bool | None:
        """Whether accuracy is at least `aim`; None for a crash, which decides neither way.

        A training that stopped at a target of at least `aim` has met it, though its accuracy on
        other data may be slightly lower; one that diverged has not. Rounding comes after the stop, and may lose it.
        """
        if self.status == "crashed":
            return None
        stopped_at = getattr(self.spec, "target", None)
        rounded = getattr(self.spec, "bits", 0)
        at_target = getattr(self.spec, "stop", "target") == "target"
        if self.status == "ok" and "steps" in self.metrics and stopped_at is not None and at_target and not rounded:
            return stopped_at >= aim
        return self.accuracy is not None and self.accuracy >= aim

    def summary(self) -> Summary:
        """The outcome, and the model after each step where there are steps."""
        names = ("accuracy", "attention_accuracy", "recall") if self.steps else self.metrics
        known = {name: value for name in names if (value := self.metrics.get(name)) is not None}
        # Accuracies are shares; how many steps were taken is a whole number.
        numbers = {name: f"{value:,}" if isinstance(value, int) else f"{value:.3f}" for name, value in known.items()}
        head = {"status": self.status} | ({"message": self.message} if self.message else {})
        rows = tuple(
            (
                step.name,
                number(step.accuracy),
                number(step.attention_accuracy),
                number(step.recall),
                number(step.ratio, 1),
            )
            for step in self.steps
        )
        return Summary(
            f"{brief(self.spec)}, seed {self.seed}",
            head | numbers | {"seconds": f"{self.seconds:.2f}"},
            ("after", "accuracy", "attention", "recall", "lift"),
            rows,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: non-finite numbers become None."""
        names = ("seconds", "message", "precision", "device", "versions", "code")
        provenance = {
            **{name: getattr(self, name) for name in names},
            **{"path": self.spec.path, "spec_id": self.spec.id},
        }
        head = {"seed": self.seed, "status": self.status}
        if self.spec.history == "curve":
            return finite({**head, **self.metrics, **provenance, "curve": self.curve})
        metrics = {name: self.metrics.get(name) for name in _AT_THE_END}
        metrics |= {name: self.metrics[name] for name in _BY_FACT if name in self.metrics}
        margin = {name: self.metrics.get(name) for name in ("signal", "std")}
        ratio = self.steps[-1].ratio if self.metrics else None
        taken = {"steps_taken": self.metrics["steps"]} if "steps" in self.metrics else {}
        steps = [step.as_dict() for step in self.steps]
        return finite({**head, **metrics, **taken, "margin": {**margin, "ratio": ratio}, "steps": steps, **provenance})


# Metrics that are always in the JSON of a trial with steps.
_AT_THE_END = ("accuracy", "attention_accuracy", "recall", "map_accuracy")
# Measured only where tokens are not uniform.
_BY_FACT = ("accuracy_by_fact", "bands")


def crashed(spec: Spec, seed: int, reason: str, device: str = "cpu", precision: str = "float32") -> Trial:
    """The record of a trial that crashed, as opposed to one that could not recall."""
    return Trial(spec, seed, "crashed", message=reason, precision=precision, device=device)


def versions() -> dict[str, str]:
    """The versions needed to reproduce the numbers."""
    return {"mnemoscope": _version("mnemoscope"), "numerics": str(NUMERICS_VERSION), "jax": _version("jax")}


@lru_cache
def _version(package: str) -> str:
    """The version of a package, cached: looking it up reads a file, and every trial needs it."""
    return importlib.metadata.version(package)


@lru_cache
def code_state(package: Path = Path(__file__).parents[1]) -> dict[str, Any] | None:
    """The commit of the running source, and whether tracked files differ from it.

    None unless the package is in a checkout of its own: a wheel installed somewhere inside a user's
    repository must not report that repository. Computed once per process.
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
    """The same plain data with None for non-finite numbers, as JSON requires."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value
