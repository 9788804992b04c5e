"""What the first gradient reveals: bounds on every decoder, and what our decoders name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mnemoscope.engine.device import find_device
from mnemoscope.engine.memory_budget import MemoryBudget, plan_memory
from mnemoscope.experiments.decoders import decode, see
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import ShowSteps, watch_steps
from mnemoscope.spec import Retrieval
from mnemoscope.spec.summary import Shown, Summary, brief, number
from mnemoscope.spec.validators import Device
from mnemoscope.theory.bound import collapse, limits, needed_nats


@dataclass(frozen=True, repr=False)
class Bound(Shown, Tabular):
    """Bounds on naming a share of the labels from the first gradient, and the share that each decoder names."""

    axes: ClassVar[tuple[str, ...]] = ("decoder",)
    spec: Retrieval
    target: float
    bits: int | None
    noise: float | None
    bounds: tuple[dict[str, Any], ...]
    decoders: dict[str, Estimate]

    def records(self) -> list[dict[str, Any]]:
        """A row for each decoder."""
        return [{"decoder": name, **share.ends("accuracy")} for name, share in self.decoders.items()]

    def summary(self) -> Summary:
        """The proved bounds as numbers, and each decoder."""
        proved = [limit for limit in self.bounds if limit["proved"]]
        rows = tuple((name.replace("_", " "), str(share)) for name, share in self.decoders.items())
        return Summary(
            brief(self.spec),
            {
                f"N for {self.target:g}, {limit['name'].replace('_', ' ')}": number(limit["samples"], 0)
                for limit in proved
            },
            ("decoder", "names"),
            rows,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        by_name = {limit["name"]: limit for limit in self.bounds}
        surrogate = by_name["gaussian_surrogate"]
        return {
            "spec": self.spec.model_dump(),
            "any_learner_samples": by_name["any_learner"]["samples"] if self.target < 1 else None,
            "target": self.target,
            "bits": self.bits,
            "noise": self.noise,
            "bounds": list(self.bounds),
            # The Gaussian surrogate's, under their original names.
            "information_bound_samples": surrogate["samples"],
            "bound_accuracy": surrogate["accuracy"],
            "known_nats": surrogate["nats"],
            "needed_nats": needed_nats(self.spec.vocab, self.target),
            "collapse": {"x": collapse(self.spec).x, "formula": collapse(self.spec).formula},
            **{name: share.ends("mean") for name, share in self.decoders.items()},
        }


def bound(
    spec: Retrieval,
    target: float = 0.5,
    *,
    seeds: int | Sequence[int] = 8,
    bits: int | None = None,
    noise: float | None = None,
    device: Device = "auto",
    progress: ShowSteps = None,
) -> Bound:
    """Bounds on every decoder of the first gradient, and decoders of it over several seeds.

    With `noise`, a multiple of the gradient's rms, or `bits` for each of its entries, also for decoders that see it so.
    """
    plan_memory(spec, "float32", MemoryBudget.of(find_device(device)))
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    shares: list[dict[str, float]] = []
    with watch_steps("seeds", len(numbers), progress) as report:
        for seed in numbers:
            shares.append(decode(see(spec, seed, device, noise=noise, bits=bits)))
            report(1)
    named = {name: mean_interval([share[name] for share in shares], float(spec.vocab)) for name in shares[0]}
    bounds = tuple(limit.as_dict() for limit in limits(spec, target, bits=bits, noise=noise))
    return Bound(spec, target, bits, noise, bounds, named)
