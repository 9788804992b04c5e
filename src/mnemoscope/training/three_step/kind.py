"""Token retrieval as a kind: what its trials share, what they cost, and how they run."""

from collections.abc import Sequence

from mnemoscope.engine.kinds import Cost, Hear
from mnemoscope.engine.layout import choose_layout, needed_bytes
from mnemoscope.engine.rates import RATES, Rates, known_platform
from mnemoscope.engine.record import Job, Trial
from mnemoscope.spec import Retrieval
from mnemoscope.spec.validators import Device
from mnemoscope.training.three_step.batch import simulate_many
from mnemoscope.training.three_step.call import bucket
from mnemoscope.training.three_step.simulation import passes

# A batch of long trials is cut shorter, to be acknowledged about this often.
TOKENS_IN_A_BATCH = 2e9
# Tables by pair of tokens above this many entries are given up for a factored form.
DENSE = 1.5e8
COMPILE_SECONDS = 5.0


class RetrievalKind:
    """Paper A's task, model and three steps."""

    def program(self, spec: Retrieval, platform: str) -> Retrieval:
        """Seeds, N, d up to a bucket, and step sizes are arguments of the compiled program."""
        return bucket(spec)

    def program_id(self, spec: Retrieval, platform: str) -> str:
        """The law of the embeddings and further training are compiled in."""
        return f"{spec.embedding} {spec.then} {bucket(spec).canonical()}"

    def bytes_needed(self, program: Retrieval) -> int:
        """In the layout that a CPU takes without a budget."""
        return sum(needed_bytes(program, choose_layout(program)).values())

    def cost(self, spec: Retrieval, platform: str) -> Cost:
        """Training, and the answers to all tokens."""
        rates = RATES[known_platform(platform)]
        V, tokens = spec.vocab, float(spec.samples * spec.length)
        answers = 2 * V**2 * spec.dim * rates.product + V**2 * rates.entry / 2
        seconds = training_seconds(spec, rates) + answers + rates.trial
        return Cost(seconds, COMPILE_SECONDS, order=tokens, share=tokens / TOKENS_IN_A_BATCH)

    def run(
        self, jobs: Sequence[Job], device: Device = "auto", budget: int | None = None, hear: Hear | None = None
    ) -> list[Trial]:
        """One trial for each (spec, seed), in the order asked for."""
        return simulate_many(jobs, device=device, budget=budget, hear=hear)


RETRIEVAL = RetrievalKind()


def training_seconds(spec: Retrieval, rates: Rates) -> float:
    """The steps alone, without answers to all tokens."""
    V, d, m, N = spec.vocab, spec.dim, spec.width, spec.samples
    gone_through = passes(spec)
    dense = V**2 <= DENSE
    # With an MLP, or with factored tables, a token is a d-vector and not a look-up in a table.
    vectors = max(1.0, d / 16) if m or not dense else 1.0
    total = N * spec.length * gone_through * rates.token * vectors
    if dense:
        total += V**2 * d * rates.product + V**2 * rates.entry / 2
    total += N * m * gone_through * (2 * d * rates.product + rates.unit)
    if spec.eta != "limit" or spec.steps:
        total += N * V * gone_through * (2 * (m or d) * rates.product + 2 * rates.unit)
    return total + spec.steps * rates.step
