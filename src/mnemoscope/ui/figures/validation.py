"""Theory against simulation as Markdown: the aims, what was reached, and every setting."""

import math
from collections.abc import Mapping, Sequence

from mnemoscope.experiments.estimate.agreement import Agreement, Compared, amplitude_off
from mnemoscope.spec import Retrieval
from mnemoscope.spec.token_laws import UNIFORM

TITLES = {
    "terms": "Attention's signal and each noise",
    "accuracy": "Accuracy, attention-only",
    "mlp": "Accuracy, attention-MLP",
    "critical": "Critical N at accuracy 0.5",
    "bound": "The Gaussian surrogate of the first gradient, and decoders",
    "matched": "What the matched filter names",
    "spread": "The interval over seeds",
    "capacity": "Facts that fit, by a solver with certificates",
    "overload": "The minimum of cross-entropy above capacity",
    "steps": "AdamW's steps to 99 % of a matrix's items",
    "trained": "Accuracy after training to the end",
    "frequencies": "Accuracy where tokens are not equally frequent",
}
NOTES = {
    "terms": "Noises are variances over the predicted signal squared; `miss` is that of the "
    "amplitude, predicted over observed less 1.",
    "accuracy": "`error` is the standard error over seeds; errors are absolute.",
    "mlp": "`error` is the standard error over seeds; errors are absolute, and of settings in the "
    "domain of their law unless the figure says otherwise.",
    "critical": "`needed` is what any learner needs, since an unseen token can only be guessed.",
    "bound": "`bound` is the least N at which a Gaussian surrogate of the first gradient allows "
    "half of the labels (D1), `observed` the N at which a decoder names half of them. These "
    "decoders treat the counts as normal, as the surrogate does. A decoder that searches for whole "
    "numbers is not bound by it (bound.md).",
    "matched": "`error` is the standard error over seeds; errors are absolute. `core`: V from 128, "
    "V/d from 1 to 16, L to V/2; `edge`: the rest of the domain.",
    "spread": "`observed` is the share of seeds whose accuracy is within the predicted interval, "
    "which should contain 0.95 of them; `error` is a share's standard error at that level. `of` "
    "is the predicted accuracy with its interval, and the seeds' mean ± their standard deviation. "
    "A law's standard error is that over its settings.",
    "capacity": "`observed` is the number of items that half of the seeds can store, `error` its standard error, and "
    "`open` counts seeds for which neither proof was found.",
    "overload": "Items of equal weight; `error` is the standard error over seeds, errors are absolute.",
    "steps": "`observed` is the median over seeds; N/N_c runs from 0.5 to 0.98. Steps are counted in checks of 32.",
    "trained": "`error` is the standard error over seeds; errors are absolute, and of settings in the law's domain "
    "unless the figure says otherwise. The note is what binds.",
    "frequencies": "`error` is the standard error over seeds; errors are absolute, and of settings in the law's domain "
    "unless the figure says otherwise. A band holds the tokens expected so often in training; its figures average over "
    "all bands of all settings. `interval` is the share of seeds whose accuracy by sequence is in the predicted one, "
    "beside the one that it is made for; `error` is a share's standard error at that level.",
}


def page(head: str, comparisons: Mapping[str, tuple[Agreement, Sequence[Compared]]]) -> str:
    """The whole page."""
    parts = [section(name, agreement, rows) for name, (agreement, rows) in comparisons.items()]
    return "\n\n".join(["# Theory against simulation", f"Made by {head}.", *parts]) + "\n"


def section(name: str, agreement: Agreement, compared: Sequence[Compared], rows: int | None = None) -> str:
    """One comparison; `rows` of its settings, or all."""
    lines = [f"## {TITLES[name]}", "", "| figure | measured | aim |", "|---|---|---|"]
    for figure, value in agreement.figures.items():
        aim, reached = agreement.aims.get(figure, ("", True))
        mark = f"{aim}: {'reached' if reached else 'missed'}" if aim else ""
        lines.append(f"| {figure} | {_number(value)} | {mark} |")
    lines += ["", NOTES[name], "", *_table(name, compared[:rows])]
    if rows is not None and len(compared) > rows:
        lines += ["", f"and {len(compared) - rows} more rows: `--out FILE` or `--json`"]
    return "\n".join(lines)


def _table(name: str, compared: Sequence[Compared]) -> list[str]:
    last = {
        "terms": ["miss", "error"],
        "critical": ["error", "needed"],
        "bound": ["error"],
        "matched": ["error", "part"],
        "spread": ["error", "law"],
        "capacity": ["error", "proofs"],
        "overload": ["error"],
        "steps": ["error"],
        "trained": ["error", "binding"],
    }
    searched, many = name in ("critical", "bound", "capacity"), name in ("terms", "bound", "spread", "frequencies")
    head = ["setting", "V", "d", "L"] + ([] if searched else ["N"]) + (["of"] if many else [])
    head += ["bound" if name == "bound" else "predicted", "observed"]
    head += last.get(name, ["error", "regime"])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in compared:
        spec = row.spec
        cells = [_kind(spec), f"{spec.vocab}", f"{spec.dim}", f"{spec.length}"]
        cells += [] if searched else [f"{spec.samples}"]
        cells += [row.name] if many else []
        cells += [_number(row.predicted), _number(row.observed)]
        if name == "terms":
            off, error = amplitude_off(row)
            cells += [f"{off:+.3f}", f"{error:.3f}"]
        else:
            cells += [_number(row.error)] + ([row.note] if row.note else [])
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _kind(spec: Retrieval) -> str:
    """A setting without its sizes, in a word or two."""
    words = [spec.embedding, spec.trigger]
    if spec.tokens != UNIFORM:
        words.append(spec.tokens if spec.tokens.startswith("zipf") else "a random vector")
        words += ["locked"] if spec.attention == "locked" else []
    if spec.width:
        words.append(f"{spec.activation} m={spec.width}")
    return ", ".join(words)


def _number(value: float) -> str:
    if math.isnan(value):
        return "never"
    if value == int(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
