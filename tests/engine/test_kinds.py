"""The registry of kinds: what is registered has every answer, and a kind of one's own runs like the others."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field

from mnemoscope.engine import kinds
from mnemoscope.engine.kinds import Cost, Hear, Kind, kind_of, register
from mnemoscope.engine.record import AnyJob, Trial
from mnemoscope.experiments.cost import estimate_seconds
from mnemoscope.experiments.workers.batches import batches, run_batch
from mnemoscope.spec import KINDS, Facts, Flow, Memory, Retrieval, Spec

SPECS = [
    Retrieval(vocab=8, dim=4, length=2, samples=8),
    Facts(subjects=4, relations=2, answers=2, dim=8, heads=1, head_dim=2),
    Memory(items=8, dim=8),
    Memory(items=8, dim=8, method="trained"),
    Flow(subjects=4, relations=2, answers=2, noise=2, length=4, steps=40),
]


class Coin(Spec, frozen=True, extra="forbid"):
    """How often a coin that lands the same way each time is guessed right."""

    kind: ClassVar[str] = "coin"
    sides: int = Field(description="how many sides it has")


class CoinKind:
    """No program at all: what is shared is the number of sides."""

    def program(self, spec: Coin, platform: str) -> Coin:
        return spec

    def program_id(self, spec: Coin, platform: str) -> str:
        return str(spec.sides)

    def bytes_needed(self, program: Coin) -> int:
        return 1

    def cost(self, spec: Coin, platform: str) -> Cost:
        return Cost(seconds=2.0, compile_seconds=1.0, share=1 / 2)

    def run(
        self,
        jobs: Sequence[tuple[Coin, int]],
        device: Any = "auto",
        budget: int | None = None,
        hear: Hear | None = None,
    ) -> list[Trial]:
        if any(seed == 13 for _, seed in jobs):
            raise RuntimeError("bad luck")
        return [Trial(spec, seed, "ok", metrics={"accuracy": 1 / spec.sides}) for spec, seed in jobs]


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_KINDS", dict(kinds._KINDS))
    monkeypatch.setitem(KINDS, "coin", Coin)
    register(Coin, CoinKind())


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.canonical()[:40])
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_every_kind_answers(spec: Spec, platform: str):
    kind = kind_of(spec)
    assert isinstance(kind, Kind)
    program = kind.program(spec, platform)
    assert type(program) is type(spec)
    assert kind.program_id(spec, platform) == kind.program_id(spec.replace(), platform)
    assert kind.bytes_needed(program) > 0
    cost = kind.cost(spec, platform)
    assert min(cost.seconds, cost.compile_seconds) > 0
    assert 0 < cost.usual_share <= 1
    assert (cost.most_steps > 0) == (getattr(spec, "method", "") == "trained")


@pytest.mark.usefixtures("coin")
def test_a_kind_of_ones_own_is_costed_cut_and_run():
    jobs: list[AnyJob] = [(Coin(sides=sides), seed) for sides in (2, 4) for seed in range(3)]
    # Two compilations, and six trials of two seconds each.
    assert estimate_seconds(jobs, "cpu", speed=1.0) == pytest.approx(2 * 1.0 + 6 * 2.0)
    assert [len(batch) for batch in batches(jobs, 8)] == [2, 1, 2, 1]
    assert [record.accuracy for record in run_batch(jobs[:3])] == [0.5, 0.5, 0.5]
    good, bad = run_batch([(Coin(sides=2), 12), (Coin(sides=2), 13)])
    assert (good.status, bad.status, bad.message) == ("ok", "crashed", "RuntimeError: bad luck")


@pytest.mark.usefixtures("coin")
def test_a_name_is_taken_once_and_must_be_known():
    with pytest.raises(ValueError, match="not registered yet, got 'coin'"):
        register(Coin, CoinKind())
    with pytest.raises(LookupError, match="got 'parity'"):
        kind_of(type("Parity", (Coin,), {"kind": "parity", "__annotations__": {"kind": ClassVar[str]}})(sides=2))


def test_a_gradient_flow_runs_as_a_batch():
    (record,) = run_batch([(SPECS[-1], 0)], "cpu")
    assert isinstance(record, Trial)
    assert record.status == "ok"
    assert record.curve[0]["step"] == 0
    assert record.curve[-1]["step"] == 39
    assert record.metrics["loss"] == record.curve[-1]["loss"]


def test_settings_and_the_registry_do_not_load_jax():
    code = "import sys, mnemoscope.spec, mnemoscope.engine.kinds; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
