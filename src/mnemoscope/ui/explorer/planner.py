"""The planner: its form, and its answer, which is `mnemoscope plan`'s."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, get_args

from mnemoscope.experiments.plan import MEANINGS, Plan, plan_budget, plan_job
from mnemoscope.experiments.plan_laws import Training
from mnemoscope.spec import SpecError, read_option
from mnemoscope.spec.validators import between, one_of, whole
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.trials import Store
from mnemoscope.ui.figures.interactive import as_plotly
from mnemoscope.ui.figures.trade_off import make_figure
from mnemoscope.ui.pages.render import render


class Field(NamedTuple):
    """A field of the form: its label, what it holds at first, what it may hold, and its choices if it has any."""

    label: str
    initial: str
    check: Callable[[Any], Any]
    choices: tuple[str, ...] = ()


TRAININGS: tuple[Training, ...] = get_args(Training)
FIELDS = {
    "facts": Field("facts to recall (leave empty to ask what a budget buys)", "10000", whole(2, 2**20)),
    "length": Field("L: tokens in a sequence, one of which is informative", "64", whole(1, 2**12)),
    "target": Field("accuracy to reach", "0.95", between(0.001, 0.9999)),
    "parameters": Field("parameters, at most (optional)", "", between(1, 1e12)),
    "tokens": Field("training tokens, at most (optional)", "", between(1, 1e15)),
    "training": Field("training: to the end, or three steps", "trained", one_of(*TRAININGS), TRAININGS),
}


def page(words: Mapping[str, str], token: str) -> str:
    """The page with the form, filled from its address; it asks for the answer itself."""
    return render("explorer/templates/plan.html", fields=FIELDS, words=words, token=token)


def answer(words: Mapping[str, str], path: Path) -> str:
    """What a job needs, or what a budget buys; the trials in the store at `path` count."""
    # Thousands may have commas, as they do in the answer.
    texts = {name: words.get(name, "").replace(",", "").strip() for name in FIELDS}
    texts = {name: text for name, text in texts.items() if text}
    try:
        plan = _plan(texts, path)
    except SpecError as error:
        return render("explorer/templates/complaint.html", complaint=str(error))
    best = plan.recommended
    options = [*([best] if best else []), *plan.alternatives]
    return render(
        "explorer/templates/answer.html",
        best=best,
        options=options,
        notes=plan.notes,
        regimes=MEANINGS,
        figure=as_plotly(make_figure(plan)) if len(options) > 1 else None,
        command="mnemoscope plan " + " ".join(f"--{name} {text}" for name, text in texts.items()),
    )


def _plan(texts: Mapping[str, str], path: Path) -> Plan:
    job = {name: read_option(name, FIELDS[name].check, text) for name, text in texts.items()}
    if "length" not in job:
        raise SpecError("length", "expected a number, got none")
    there = path != NOWHERE and path.exists()
    with Store(path, writing=False) if there else nullcontext() as store:
        job = {"target": 0.95, **job, "store": store}
        return plan_job(**job) if "facts" in job else plan_budget(**job)
