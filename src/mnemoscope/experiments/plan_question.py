"""The question that `plan` answers: what a job needs, or what a budget buys."""

from contextlib import nullcontext
from pathlib import Path

from mnemoscope.experiments.plan import Plan, plan_budget, plan_job
from mnemoscope.experiments.plan_laws import Training
from mnemoscope.store.schema import default_path
from mnemoscope.store.trials import Store


def plan(
    facts: int | None = None,
    *,
    length: int,
    target: float = 0.95,
    parameters: float | None = None,
    tokens: float | None = None,
    training: Training = "trained",
    store: Store | Path | str | None = None,
) -> Plan:
    """What it takes to recall so many facts among `length` tokens; without `facts`, the most that a budget can recall.

    The budget is in parameters and in training tokens. Measurements in `store`, by default the user's own, go before
    theory.
    """
    place = store or default_path()
    if isinstance(place, Store):
        trials = nullcontext(place)
    else:
        trials = Store(place, writing=False) if store or Path(place).exists() else nullcontext()
    with trials as kept:
        budget = {"parameters": parameters, "tokens": tokens, "store": kept, "training": training}
        return plan_budget(length, target, **budget) if facts is None else plan_job(facts, length, target, **budget)
