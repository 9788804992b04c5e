"""The registry of kinds: how trials of a kind of spec are compiled, costed and run.

The spec's `kind` selects it. A kind may be registered as text, "module:object", which is imported
when its first trial runs, so that specs and theory never load the simulator. To add a kind, write a
`Spec` with a new `kind` and a class with the methods of `Kind`, and register both:

    register(Parity, ParityKind())
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from mnemoscope.engine.record import Trial
from mnemoscope.spec import KINDS, Spec
from mnemoscope.spec.validators import Device, nearest

# A progress callback: hear(spec, seed, share of the trial that is done).
Hear = Callable[[Any, int, float], None]
# The share of its steps that a training usually takes to reach its target.
USUAL_SHARE = 0.3


class Cost(NamedTuple):
    """What one trial costs on the reference machine of `engine/rates.py`."""

    # To run it among others of its kind, with all of its steps; and to compile its program.
    seconds: float
    compile_seconds: float
    # Trials of one program run in this order, so that trials of similar length are neighbours.
    order: float = 0.0
    # The share of a batch that it fills.
    share: float = 0.0
    # The steps after which a training gives up; 0 if trials never stop early.
    most_steps: int = 0
    # The share of these steps that it usually takes.
    usual_share: float = 1.0


@runtime_checkable
class Kind(Protocol):
    """What the package needs to know about a kind. `spec` is always of the kind's own class."""

    def program(self, spec: Any, platform: str) -> Spec:
        """The setting whose compiled program serves this one."""
        ...

    def program_id(self, spec: Any, platform: str) -> str:
        """Equal for settings that share a compiled program on that platform."""
        ...

    def bytes_needed(self, program: Any) -> int:
        """About how many bytes one trial of a program holds in memory."""
        ...

    def cost(self, spec: Any, platform: str) -> Cost:
        """The cost of one trial."""
        ...

    def run(
        self,
        jobs: Sequence[tuple[Any, int]],
        device: Device = "auto",
        budget: int | None = None,
        hear: Hear | None = None,
    ) -> Sequence[Trial]:
        """Return one trial for each (spec, seed), in order. `budget` is in bytes."""
        ...


# A built-in kind is in the module of its name, as FACTS in training/facts.py; retrieval has a folder.
_KINDS: dict[str, Kind | str] = {name: f"mnemoscope.training.{name}:{name.upper()}" for name in KINDS}
_KINDS["retrieval"] = "mnemoscope.training.three_step.kind:RETRIEVAL"


def register(spec: type[Spec], kind: Kind | str) -> None:
    """Run specs of this class with this kind, or with the one at "module:object"; stores can read them."""
    if spec.kind in _KINDS:
        raise ValueError(f"expected a kind that is not registered yet, got {spec.kind!r}")
    KINDS[spec.kind] = spec
    _KINDS[spec.kind] = kind


def kind_of(spec: Spec) -> Kind:
    """The kind that runs this spec."""
    if spec.kind not in _KINDS:
        raise LookupError(f"expected a registered kind, got {spec.kind!r}{nearest(spec.kind, _KINDS)}")
    kind = _KINDS[spec.kind]
    if isinstance(kind, str):
        module, _, name = kind.partition(":")
        kind = _KINDS[spec.kind] = cast(Kind, getattr(import_module(module), name))
    return kind
