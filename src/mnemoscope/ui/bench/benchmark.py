"""The benchmark from Python: settings timed beside their rivals on this machine."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from mnemoscope.engine.device import find_device, share_gpu
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import ShowSteps, watch_steps
from mnemoscope.spec import Retrieval
from mnemoscope.spec.summary import Shown, Summary, number
from mnemoscope.spec.validators import Device
from mnemoscope.ui.bench.compare import Case, measure_bandwidth, run_cases, torch_is_here

QUICK = dict(vocab=256, dim=64, length=16, samples=4096)


@dataclass(frozen=True, repr=False)
class Benchmark(Shown, Tabular):
    """What each setting took, ours and the rivals."""

    axes: ClassVar[tuple[str, ...]] = ("vocab", "dim", "length", "samples")
    device: str
    bandwidth: float
    cases: tuple[Case, ...]

    def records(self) -> list[dict[str, Any]]:
        """A row for each setting."""
        return [{**row.pop("spec"), **row} for row in map(asdict, self.cases)]

    def summary(self) -> Summary:
        """The seconds of each setting, and the ratio to automatic differentiation."""
        names = [" ".join(f"{name}={case.spec[name]}" for name in self.axes) for case in self.cases]
        rows = tuple(
            (name, f"{case.seconds * 1e3:.3f}", number(case.ratio, 1))
            for name, case in zip(names, self.cases, strict=True)
        )
        return Summary(self.device, {"settings": f"{len(rows)}"}, ("setting", "ours, ms", "ratio to autodiff"), rows)


def bench(
    specs: Sequence[Retrieval] | None = None,
    *,
    autodiff: bool = True,
    torch: bool = False,
    repeats: int = 3,
    device: Device = "auto",
    budget: int | None = None,
    progress: ShowSteps = None,
) -> Benchmark:
    """Time the three steps of these settings, by default of one small setting, beside automatic differentiation."""
    share_gpu()  # this process only looks up the device; its memory is for the workers
    place = find_device(device)
    runs = [(spec, 1) for spec in specs or [Retrieval.read(QUICK)]]
    rivals = {"with_autodiff": autodiff, "with_torch": torch and torch_is_here()}
    cases: list[Case] = []
    with watch_steps("cases", len(runs), progress) as report:
        bandwidth = measure_bandwidth(device)
        for case in run_cases(runs, bandwidth, place.platform, **rivals, repeats=repeats, budget=budget):
            cases.append(case)
            report(1)
    return Benchmark(place.device_kind, bandwidth, tuple(cases))
