"""A user's noisy function as a kind of work: one call is a trial."""

import math
import time
from collections.abc import Sequence

from mnemoscope.engine.interrupts import keeping_partial, stop_if_asked
from mnemoscope.engine.kinds import Cost, Hear
from mnemoscope.engine.record import Trial, crashed
from mnemoscope.spec.noisy import Noisy
from mnemoscope.spec.objects import find_object, place_in
from mnemoscope.spec.validators import Device, one_line

NoisyJob = tuple[Noisy, int]


class NoisyKind:
    """Calls of a user's function; an answer out of bounds is a crash, as an error is."""

    def program(self, spec: Noisy, platform: str) -> Noisy:
        """Nothing is compiled."""
        return spec

    def program_id(self, spec: Noisy, platform: str) -> str:
        """All places of one function share a batch."""
        return spec.function

    def bytes_needed(self, program: Noisy) -> int:
        """Unknown, and taken for nothing."""
        return 0

    def cost(self, spec: Noisy, platform: str) -> Cost:
        """Unknown, and taken for nothing."""
        return Cost(0.0, 0.0)

    def run(
        self, jobs: Sequence[NoisyJob], device: Device = "auto", budget: int | None = None, hear: Hear | None = None
    ) -> list[Trial]:
        """Return one trial for each (spec, seed), in order."""
        done: dict[int, Trial] = {}
        with keeping_partial(done):
            for number, (spec, seed) in enumerate(jobs):
                stop_if_asked(done.values())
                done[number] = _call(spec, seed)
        return [done[number] for number in range(len(jobs))]


NOISY = NoisyKind()


def _call(spec: Noisy, seed: int) -> Trial:
    function, began = find_object("function", spec.function), time.perf_counter()
    try:
        answer = float(function(spec.x, seed))
    except Exception as error:  # a user's function may raise anything
        return crashed(spec, seed, one_line(error))
    if not spec.least <= answer <= spec.most or math.isnan(answer):
        bounds = f"from {spec.least:g} to {spec.most:g}"
        return crashed(spec, seed, f"expected a number {bounds} from {place_in(spec.function)}, got {answer:g}")
    return Trial(spec, seed, "ok", metrics={"answer": answer}, seconds=time.perf_counter() - began)
