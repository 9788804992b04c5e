"""Pieces of pages that change: theory's word on a setting, measurements, a plan's answer."""

import json
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

from mnemoscope.experiments.plan import Option, Plan
from mnemoscope.spec import SpecError
from mnemoscope.theory.bound import coverage_samples, first_gradient_samples
from mnemoscope.theory.predict import REGIMES, predict
from mnemoscope.ui.explorer.diagram import formula
from mnemoscope.ui.explorer.measurements import Measurement, Measurements
from mnemoscope.ui.explorer.state import State
from mnemoscope.ui.figures.interactive import as_plotly
from mnemoscope.ui.figures.trade_off import make_figure

# A page asks again about the same setting whenever only its map has changed.
_predict = lru_cache(maxsize=64)(predict)


def complaint(error: SpecError) -> str:
    """What is wrong, in one line."""
    return f'<p class="complaint" role="alert">{escape(str(error))}</p>'


def told(state: State) -> str:
    """Theory's word on the setting under the cross, and the command for the whole map."""
    try:
        words = _word(state)
    except SpecError as error:
        words = complaint(error)
    command = f'<pre id="command" hx-swap-oob="true">{as_code(state.command)}</pre>'
    return f'<div data-state="{escape(state.query)}">{words}</div>{command}'


def as_code(command: str) -> str:
    """A command whose options are not torn apart at the end of a line."""
    first, *options = escape(command).split(" --")
    return " ".join([first, *(f'<span class="option">--{one}</span>' for one in options)])


def _word(state: State) -> str:
    """`predict`'s own numbers, and the bounds beside them."""
    said = _predict(state.spec)
    if said.accuracy is None:
        return f'<p class="complaint" role="alert">{escape("; ".join(said.notes))}</p>'
    law = formula(state, said.regime, state.spec.width)
    notes = "".join(f"<li>{escape(note)}</li>" for note in said.notes)
    coverage = coverage_samples(state.spec, state.target)
    bounds = _bounds(coverage, first_gradient_samples(state.spec, state.target))
    options = state.options()
    rows = (
        ("Predicted accuracy", f"<b>{said.accuracy:.3f}</b> ({said.low:.3f} to {said.high:.3f} for 95 % of seeds)"),
        ("Attention right", f"{said.attention_accuracy:.3f}"),
        ("Regime", f"<b>{said.regime.replace('_', ' ')}</b>: {REGIMES[said.regime]}"),
        ("Law", f"{law} is what recall needs" if law else ""),
        (f"For accuracy {state.target:g}", f'<span id="crossing"></span>{bounds}'),
        (
            "On the command line",
            f"<code>{as_code(f'mnemoscope predict {options}')}</code><br>"
            f"<code>{as_code(f'mnemoscope run {options}')}</code>",
        ),
    )
    table = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows if value)
    return f"<dl>{table}</dl>" + (f'<ul class="notes">{notes}</ul>' if notes else "")


def _bounds(coverage: float, gradient: float | None) -> str:
    """What any learner needs, and where it is derived one that sees only the first gradient."""
    told = f"any learner needs at least N = {coverage:,.0f}"
    if gradient is None:
        return told
    return f"{told}; one that sees only the first gradient, at least N = {gradient:,.0f}"


def jobs(made: Measurements, trouble: str = "") -> str:
    """Measurements, the latest first; asks again as long as one is under way."""
    notes = made.notes()
    again = ""
    if any(not one.over for one in notes):
        again = f' hx-get="/jobs?known={made.version}" hx-trigger="every 500ms" hx-sync="this:drop"'
    items = "".join(
        f'<li class="{one.stage}" data-number="{one.number}"><span>{escape(one.words)}</span> '
        f"{_bar(one)} {_stand(one)} {_cancel(one)}</li>"
        for one in notes
    )
    told = f"{_finished(made)}<ul>{items}</ul>"
    return f'{trouble}<div class="jobs" hx-target="#jobs"{again}>{told}</div>'


def progress(made: Measurements) -> str:
    """How far those are that run, put in their places: buttons stay as they are."""
    again = ' hx-swap-oob="true"'
    running = [one for one in made.notes() if one.stage == "running"]
    parts = [_bar(one, again) + _stand(one, again) for one in running]
    return "".join([_finished(made, again), *parts])


def _finished(made: Measurements, more: str = "") -> str:
    """Tells the page when the store has more to show."""
    return f'<span id="finished" data-finished="{made.version} {made.finished}"{more} hidden></span>'


def _bar(one: Measurement, more: str = "") -> str:
    if one.stage != "running":
        return ""
    return f'<progress id="bar-{one.number}" max="1" value="{one.share:.3f}" aria-label="Progress"{more}></progress>'


def _stand(one: Measurement, more: str = "") -> str:
    total = one.order.trials
    words = {
        "waiting": "waiting",
        "running": f"{int(one.done)} of {total} trials" if one.done else "starting",
        "done": one.message,
        "cancelled": f"cancelled; {int(one.done)} of {total} trials kept",
        "failed": one.message,
    }[one.stage]
    return f'<span class="stand" id="stand-{one.number}"{more}>{escape(words)}</span>'


def _cancel(one: Measurement) -> str:
    if one.over:
        return ""
    return (
        f'<button type="button" id="cancel-{one.number}" hx-post="/cancel/{one.number}" '
        f'hx-sync="#jobs:replace" aria-label="Cancel measurement {one.number}">Cancel</button>'
    )


def answer(made: Plan, command: str) -> str:
    """A plan: the way we would go, the others, and the trade-off as a figure."""
    best = made.recommended
    notes = "".join(f"<li>{escape(note)}</li>" for note in made.notes)
    ways = [*([best] if best else []), *made.alternatives]
    head = "" if best is None else _best(best)
    return f"""{head}<ul class="notes">{notes}</ul>
{_table(ways, best)}{_figure(made) if len(ways) > 1 else ""}
<h2>On the command line</h2><pre>{as_code(command)}</pre>"""


def _best(one: Option) -> str:
    spec, said = one.spec, one.as_dict()
    mlp = f", an MLP of m = {spec.width:,} ({spec.activation})" if spec.width else ""
    rows = (
        ("Take", f"<b>d = {spec.dim:,}{mlp}, N = {spec.samples:,}</b>"),
        (
            "That is",
            f"{one.parameters:,} parameters, {said['bits_per_parameter']:.2f} bits in "
            f"each; {one.tokens:,} training tokens",
        ),
        ("Accuracy", f"{_accuracy(one)} ({_basis(one)})"),
        ("Binding", f"{one.binding.replace('_', ' ')}: {REGIMES[one.binding]}"),
        ("Bounds", _bounds(said["coverage_bound"], said["first_gradient_bound"])),
    )
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows) + "</dl>"


def _accuracy(one: Option) -> str:
    told = one.measured
    if told is not None and told.mean is not None:
        return f"{told.mean:.3f} [{told.low:.3f}, {told.high:.3f}]"
    return f"{one.told.accuracy:.3f}"


def _basis(one: Option) -> str:
    return f'<span class="basis {one.basis}">{one.basis}</span>'


def _table(ways: Sequence[Option], best: Option | None) -> str:
    if not ways:
        return ""
    rows = "".join(
        f"<tr{' class=best' if one is best else ''}><td>{one.spec.vocab:,}</td>"
        f"<td>{one.spec.dim:,}</td><td>{one.spec.width:,}</td><td>{one.spec.samples:,}</td>"
        f"<td>{one.parameters:,}</td><td>{one.tokens:,}</td><td>{_accuracy(one)}</td>"
        f"<td>{_basis(one)}</td><td>{one.binding.replace('_', ' ')}</td></tr>"
        for one in ways
    )
    names = ("facts", "d", "m", "N", "parameters", "tokens", "accuracy", "basis", "binding")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f"""<div class="wide"><table><caption>All ways</caption><thead><tr>{head}</tr></thead>
<tbody>{rows}</tbody></table></div>"""


def _figure(made: Plan) -> str:
    figure: dict[str, Any] = as_plotly(make_figure(made))
    packed = escape(json.dumps(figure, allow_nan=False, separators=(",", ":")))
    return f'<div id="trade" class="plot" data-figure="{packed}"></div>'
