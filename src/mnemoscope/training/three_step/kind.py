"""Token retrieval as a kind: its programs, their cost, and how trials run."""

from collections.abc import Sequence

from mnemoscope.engine.kinds import USUAL_SHARE, Cost, Hear
from mnemoscope.engine.layout import choose_layout, needed_bytes
from mnemoscope.engine.rates import RATES, REFERENCE_CORES, Rates, known_platform
from mnemoscope.engine.record import Job, Trial
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.batch import simulate_many
from mnemoscope.training.three_step.call import bucket
from mnemoscope.training.three_step.simulation import passes

# Batches end after about this many tokens, so that long trials are saved from time to time.
TOKENS_IN_A_BATCH = 2e9
# Above this many entries, tables by pair of tokens are factored.
DENSE = 1.5e8
COMPILE_SECONDS = 5.0


class RetrievalKind:
    """Paper A's task, model and three steps."""

    def program(self, spec: Retrieval, platform: str) -> Retrieval:
        """Seeds, N, d within a bucket, and step sizes are arguments of the compiled program."""
        return bucket(spec, platform)

    def program_id(self, spec: Retrieval, platform: str) -> str:
        """The embedding law and further training are compiled in."""
        further = f"{spec.then} {spec.stop}" if spec.settles else spec.then
        return f"{spec.embedding} {further} {bucket(spec, platform).canonical()}"

    def bytes_needed(self, program: Retrieval) -> int:
        """The bytes of the layout that a CPU uses without a budget."""
        return sum(needed_bytes(program, choose_layout(program)).values())

    def cost(self, spec: Retrieval, platform: str) -> Cost:
        """The cost of training, with all of its steps, and of the answers to all tokens."""
        rates = RATES[known_platform(platform)]
        V, tokens = spec.vocab, float(spec.samples * spec.length)
        answers = 2 * V**2 * spec.dim * rates.product + V**2 * rates.entry / 2
        seconds = training_seconds(spec, rates) + answers + rates.trial
        cost = Cost(seconds, COMPILE_SECONDS, order=tokens, share=tokens / TOKENS_IN_A_BATCH)
        if not spec.settles:
            return cost
        # Every core of a CPU has trainings of its own.
        alone = seconds / REFERENCE_CORES if known_platform(platform) == "cpu" else seconds
        return cost._replace(seconds=alone, most_steps=spec.steps, usual_share=USUAL_SHARE)

    def run(
        self, jobs: Sequence[Job], device: Device = "auto", budget: int | None = None, hear: Hear | None = None
    ) -> list[Trial]:
        """Return one trial for each (spec, seed), in order."""
        return simulate_many(jobs, device=device, budget=budget, hear=hear)


RETRIEVAL = RetrievalKind()


def training_seconds(spec: Retrieval, rates: Rates) -> float:
    """Seconds for training alone, without the answers to all tokens."""
    V, d, m, N = spec.vocab, spec.dim, spec.width, spec.samples
    pass_count = passes(spec)
    dense = V**2 <= DENSE
    # With an MLP or factored tables, a token costs a d-vector rather than a look-up.
    vectors = max(1.0, d / 16) if m or not dense else 1.0
    total = N * spec.length * pass_count * rates.token * vectors
    if dense:
        total += V**2 * d * rates.product + V**2 * rates.entry / 2
    total += N * m * pass_count * (2 * d * rates.product + rates.unit)
    if spec.eta != "limit" or spec.steps:
        total += N * V * pass_count * (2 * (m or d) * rates.product + 2 * rates.unit)
    return total + spec.steps * rates.step
