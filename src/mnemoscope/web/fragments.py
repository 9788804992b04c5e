"""Pieces of pages that change: theory's word on a setting, measurements, a plan's answer."""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from mnemoscope.analysis.plan import Option, Plan
from mnemoscope.report.interactive import as_plotly
from mnemoscope.report.trade_off import make_figure
from mnemoscope.spec import SpecError
from mnemoscope.theory.bound import bound_samples, coverage_samples
from mnemoscope.theory.predict import REGIMES, predict
from mnemoscope.web.diagram import formula
from mnemoscope.web.measurements import Measurement
from mnemoscope.web.state import State


def complaint(error: SpecError) -> str:
    """What is wrong, in one line."""
    return f'<p class="complaint" role="alert">{escape(str(error))}</p>'


def told(state: State, seeds: int) -> str:
    """Theory's word on the setting under the cross, and the command for the whole map."""
    try:
        words = _word(state, seeds)
    except SpecError as error:
        words = complaint(error)
    command = f'<pre id="command" hx-swap-oob="true">{escape(state.command)}</pre>'
    return f'<div data-state="{escape(state.query)}">{words}</div>{command}'


def _word(state: State, seeds: int) -> str:
    """`predict`'s own numbers, and the bounds beside them."""
    said = predict(state.spec)
    law = formula(state, said.regime)
    notes = "".join(f"<li>{escape(note)}</li>" for note in said.notes)
    coverage = coverage_samples(state.spec, state.target)
    gradient = bound_samples(state.spec, state.target)
    rows = (
        ("Predicted accuracy", f"<b>{said.accuracy:.3f}</b> "
         f"({said.low:.3f} to {said.high:.3f} for 95 % of seeds)"),
        ("Attention right", f"{said.attention_accuracy:.3f}"),
        ("Regime", f"<b>{said.regime.replace('_', ' ')}</b>: {REGIMES[said.regime]}"),
        ("Law", f"{law} is what recall needs" if law else ""),
        (f"For accuracy {state.target:g}", '<span id="crossing"></span>any learner needs '
         f"N = {coverage:,.0f}" + (f"; from the first gradient alone N = {gradient:,.0f}"
                                  if gradient < 1e15 else "")),
        ("On the command line", f"<code>mnemoscope predict {escape(state.options())}</code><br>"
         f"<code>{escape(state.measure_command(seeds))}</code>"),
    )  # fmt: skip
    table = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows if value)
    return f"<dl>{table}</dl>" + (f'<ul class="notes">{notes}</ul>' if notes else "")


def jobs(notes: Sequence[Measurement], version: str, trouble: str = "") -> str:
    """Measurements, the latest first; asks again as long as one is under way."""
    again = ' hx-get="/jobs" hx-trigger="every 500ms"' if any(not n.over for n in notes) else ""
    items = "".join(_job(one) for one in notes)
    return (
        f'{trouble}<div class="jobs" data-version="{version}" hx-target="#jobs"{again}>'
        f"<ul>{items}</ul></div>"
    )


def _job(one: Measurement) -> str:
    total = one.order.trials
    stand = {
        "waiting": "waiting",
        "running": f"{int(one.done)} of {total} trials" if one.done else "starting",
        "done": f"{total} trials, kept in the store",
        "cancelled": f"cancelled; {int(one.done)} of {total} trials kept",
        "failed": one.message,
    }[one.stage]
    cancel = (
        f'<button type="button" hx-post="/cancel/{one.number}" '
        f'aria-label="Cancel measurement {one.number}">Cancel</button>'
        if not one.over
        else ""
    )
    bar = (
        f'<progress max="1" value="{one.share:.3f}" aria-label="Progress"></progress>'
        if one.stage == "running"
        else ""
    )
    return (
        f'<li class="{one.stage}" data-number="{one.number}"><span>{escape(one.words)}</span> '
        f'{bar} <span class="stand">{escape(stand)}</span> {cancel}</li>'
    )


def answer(made: Plan, command: str) -> str:
    """A plan: the way we would go, the others, and the trade-off as a figure."""
    best = made.recommended
    notes = "".join(f"<li>{escape(note)}</li>" for note in made.notes)
    ways = [*([best] if best else []), *made.alternatives]
    head = "" if best is None else _best(best)
    return f"""{head}<ul class="notes">{notes}</ul>
{_table(ways, best)}{_figure(made) if len(ways) > 1 else ""}
<h2>On the command line</h2><pre>{escape(command)}</pre>"""


def _best(one: Option) -> str:
    spec, said = one.spec, one.as_dict()
    mlp = f", an MLP of m = {spec.width:,} ({spec.activation})" if spec.width else ""
    gradient = said["first_gradient_bound"]
    bounds = f"any learner needs N = {said['coverage_bound']:,.0f}"
    if gradient is not None:
        bounds += f"; from the first gradient alone N = {gradient:,.0f}"
    rows = (
        ("Take", f"<b>d = {spec.dim:,}{mlp}, N = {spec.samples:,}</b>"),
        ("That is", f"{one.parameters:,} parameters, {said['bits_per_parameter']:.2f} bits in "
         f"each; {one.tokens:,} training tokens"),
        ("Accuracy", f"{_accuracy(one)} ({_basis(one)})"),
        ("Binding", f"{one.binding.replace('_', ' ')}: {REGIMES[one.binding]}"),
        ("Bounds", bounds),
    )  # fmt: skip
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
        f"<td>{one.spec.dim:,}</td><td>{one.spec.width or '–'}</td><td>{one.spec.samples:,}</td>"
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
