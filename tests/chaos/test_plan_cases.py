"""`plan` asked from both ends: a job, and the budget that it would take.

What a budget is said to hold, asked for as a job, fits the budget; a job that fits a budget is not
more than the budget is said to hold; and what a job is said to take holds the job.
"""

import random
from typing import Any, get_args

import pytest

from mnemoscope.experiments.plan import Option, plan_budget, plan_job
from mnemoscope.experiments.plan_laws import Training
from mnemoscope.experiments.plan_search import MOST_FACTS

pytestmark = pytest.mark.chaos


def fits(option: Option, limits: dict[str, Any]) -> bool:
    """Whether an option keeps within every limit that there is."""
    return all(limit is None or getattr(option, name) <= limit for name, limit in limits.items())


@pytest.mark.parametrize("training", get_args(Training))
def test_job_against_budget(training: Training, full: bool):
    draw = random.Random(11)
    held = jobs = nothing = 0
    for number in range(200 if full else 4):
        length = round(2 ** draw.uniform(1, 12))
        target = draw.choice([0.3, 0.5, 0.9, 0.99])
        parameters = round(10 ** draw.uniform(3, 10))
        # Tokens from too few to more than enough, in units of what the parameters can hold.
        tokens = round(parameters * length * 10 ** draw.uniform(-1.5, 1.5))
        limits: dict[str, Any] = {"parameters": float(parameters), "tokens": float(min(tokens, 10**15))}
        if number % 4 == 3:  # one of the two alone
            limits[draw.choice(["parameters", "tokens"])] = None
        case = (number, length, target, limits)
        plan = plan_budget(length, target, **limits, training=training)
        bought = plan.recommended
        # Without a limit on tokens a few facts less are recommended, and the most stay beside.
        ways = [] if bought is None else [bought, *plan.alternatives]
        most = max((option.spec.vocab for option in ways), default=0)
        if bought is None:
            nothing += 1
        else:
            assert fits(bought, limits), case
            assert (bought.prediction.accuracy or 0) >= target, case
            job = plan_job(most, length, target, **limits, training=training).recommended
            assert job is not None, case
            assert fits(job, limits), case
            held += 1
        facts = min(MOST_FACTS, max(2, round(max(most, 8) * 2 ** draw.uniform(-4, 2))))
        job = plan_job(facts, length, target, **limits, training=training).recommended
        if job is not None:
            assert facts <= most, case
            # And what it is said to take holds it.
            own: dict[str, Any] = {"parameters": float(job.parameters), "tokens": float(job.tokens)}
            back = plan_budget(length, target, **own, training=training).recommended
            assert back is not None, (case, facts)
            assert back.spec.vocab >= facts, (case, facts)
            jobs += 1
    print(f"{training}: {held + nothing} budgets, {held} of which hold facts; {jobs} jobs that fit")
    assert held
    assert jobs
