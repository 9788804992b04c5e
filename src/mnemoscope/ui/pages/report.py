"""The report: one HTML file that needs nothing else, verdicts first, then every claim.

A figure is an SVG in the page from the first; once the page stands, Plotly takes its place on the
screen. Without scripts, and on paper, the SVG stays.
"""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import whole_file

MARKS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}
# Whose claim it is, by the beginning of its source: a class for the badge, and what it means.
SOURCES = {
    "paper A (statement)": ("stated", "the public text of paper A says it"),
    "paper B": ("stated", "paper B says it"),
    "ours": ("ours", "derived here in a paper's setting; the paper does not say it"),
    "news": ("news", "a popular summary says it"),
    "review": ("review", "reviewers of paper A asked"),
}
MEANING = {
    "supported": "the numbers lie where the rule wants them",
    "refuted": "they lie elsewhere, clear of their intervals",
    "inconclusive": "they do not decide, or base seeds that are not pooled disagree",
}


@dataclass(frozen=True)
class Exhibit:
    """One claim with all that is shown of it."""

    told: dict[str, Any]
    svg: str | None
    plotly: dict[str, Any]
    records: dict[str, Any]
    stale: bool = False


def write_page(exhibits: Sequence[Exhibit], path: Path, left_out: Sequence[str] = ()) -> int:
    """Write the page, and say how many bytes it has. It names studies that were left out."""
    text = make_page(exhibits, left_out)
    with whole_file(path) as part:
        Path(part).write_text(text, encoding="utf-8")
    return len(text.encode())


def make_page(exhibits: Sequence[Exhibit], left_out: Sequence[str] = ()) -> str:
    """The whole page as text."""
    figures = {exhibit.told["id"]: exhibit.plotly for exhibit in exhibits if exhibit.svg}
    data = json.dumps(figures, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    body = "\n".join(_section(one) for one in exhibits)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Mnemoscope: which claims hold</title>
<style>{_asset("page.css")}</style>
</head>
<body>
<header>
<h1>Which claims hold</h1>
<p>Claims about how much a transformer can learn to recall, each run by
<code>mnemoscope reproduce</code> and judged by a rule that was written before the run.</p>
{_summary(exhibits)}
{_sources()}
{_out_of_date(exhibits, left_out)}
</header>
<main>
{_table(exhibits)}
{body}
</main>
<footer><p>Made by <code>mnemoscope report</code>. This file needs no network.</p></footer>
<script type="application/json" id="figures">{data}</script>
<script type="text/plain" id="plotly">{_plotly()}</script>
<script>{_asset("page.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return (resources.files("mnemoscope.ui.pages") / "assets" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    need("pages")
    folder = resources.files("plotly") / "package_data"
    # Inside a script element only its own end tag has to be kept from the parser.
    return (folder / "plotly.min.js").read_text(encoding="utf-8").replace("</script", "<\\/script")


def _summary(exhibits: Sequence[Exhibit]) -> str:
    counts = Counter(one.told["verdict"] for one in exhibits)
    items = "".join(f"<li>{_badge(name)} {counts[name]}: {meaning}</li>" for name, meaning in MEANING.items())
    return f'<ul class="summary">{items}</ul>'


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict}">{MARKS[verdict]} {verdict}</span>'


def _source(source: str) -> str:
    kind = next((kind for name, (kind, _) in SOURCES.items() if source.startswith(name)), "ours")
    return f'<span class="source {kind}">{escape(source)}</span>'


def _sources() -> str:
    items = " ".join(f"{_source(name)} {meaning}." for name, (_, meaning) in SOURCES.items())
    return f'<p class="sources">Sources: {items}</p>'


def _out_of_date(exhibits: Sequence[Exhibit], left_out: Sequence[str]) -> str:
    """What on the page was judged by a rule that is no longer the study's, and what is missing."""
    lines = []
    earlier = sum("replaced" in exhibit.told for exhibit in exhibits)
    if earlier:
        lines.append(
            f"{earlier} of {len(exhibits)} were run before their rule was replaced: the verdict is "
            "that of the earlier rule, until they are run again."
        )
    if left_out:
        names = ", ".join(map(escape, left_out))
        lines.append(f"Not shown, since the study has changed: {names}.")
    return "".join(f'<p class="stale">{line}</p>' for line in lines)


def _table(exhibits: Sequence[Exhibit]) -> str:
    rows = "\n".join(_row(exhibit.told) for exhibit in exhibits)
    return f"""<table class="verdicts">
<caption>All verdicts</caption>
<thead><tr><th scope="col">Verdict</th><th scope="col">Study</th><th scope="col">Claim</th>
<th scope="col">Source</th><th scope="col">Size</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>"""


def _row(told: dict[str, Any]) -> str:
    name = told["id"]
    earlier = ' <span class="by">earlier rule</span>' if "replaced" in told else ""
    return (
        f"<tr><td>{_badge(told['verdict'])}{earlier}</td>"
        f'<th scope="row"><a href="#{name}">{name}</a></th>'
        f"<td>{escape(told['statement'])}</td><td>{_source(told['source'])}</td>"
        f"<td>{told['size']}</td></tr>"
    )


def _section(exhibit: Exhibit) -> str:
    told = exhibit.told
    name, bases = told["id"], told["bases"]
    place = f": {escape(told['place'])}" if told["place"] else ""
    # The script takes the picture from the section's figure.
    picture = "" if exhibit.svg is None else f' <a class="svg" download="{name}.svg" hidden>Figure (SVG)</a>'
    return f"""<section id="{name}">
<h2>{name} {_badge(told["verdict"])} {_source(told["source"])}</h2>
<p class="statement">{escape(told["statement"])}</p>
{_stale(exhibit)}{_figure(exhibit)}
<dl>
<dt>Source</dt><dd>{escape(told["source"])}{place}</dd>
<dt>Expected</dt><dd>{escape(told["expected"])}</dd>
<dt>Measured</dt><dd>{escape(told["measured"])}</dd>
<dt>Rule</dt><dd>{escape(told["rule"])}</dd>
<dt>Power</dt><dd>{escape(_power(told))}</dd>
<dt>Command</dt><dd><code>{escape(told["command"])}</code></dd>
<dt>Made with</dt><dd>{escape(_made(bases))}</dd>
</dl>
{_bases(told)}
{_history(told["history"])}
<p class="downloads"><a download="{name}.json.gz" href="{_records(exhibit.records)}">Numbers and
trials (JSON, gzip)</a>{picture}</p>
</section>"""


def _stale(exhibit: Exhibit) -> str:
    if not exhibit.stale:
        return ""
    replaced = exhibit.told.get("replaced")
    words = "The study or the numerics have changed since: run the command again."
    if replaced is not None:
        claim = ""
        if replaced["statement"] != exhibit.told["statement"]:
            claim = f"The claim now reads: {replaced['statement']} "
        words = (
            f"Run before {replaced['date']}, and judged by the rule of then, below. {claim}The "
            f"rule is now: {replaced['rule']} Run the command again."
        )
    return f'<p class="stale">{escape(words)}</p>\n'


def _figure(exhibit: Exhibit) -> str:
    if exhibit.svg is None:
        return "<p>The study draws other numbers now: these have no figure.</p>"
    told = exhibit.told
    picture = base64.b64encode(exhibit.svg.encode()).decode()
    return f"""<figure>
<div class="plot" data-study="{told["id"]}"></div>
<img class="still" src="data:image/svg+xml;base64,{picture}" width="518" height="302"
 alt="Figure of {told["id"]}. {escape(told["measured"])}">
</figure>"""


def _power(told: dict[str, Any]) -> str:
    """What the rule would have said before the run, in one line."""
    power = told["power"]
    if power is None:
        return "not computed for this rule"
    shares = ", ".join(f"{rival.replace('_', ' ')} {share:.2f}" for rival, share in power["rivals"].items())
    rivals = f"; where a rival law is right: {shares}" if shares else ""
    return (
        f"supported in {power['supported']:.2f} of {power['draws']} draws where the claim is "
        f"right{rivals}. {power['note']}."
    )


def _bases(told: dict[str, Any]) -> str:
    """Every base seed's own verdict, under that of all pooled."""
    if "replaced" in told:
        return ""
    rows = [(str(int(base["base"])), base) for base in told["bases"]]
    if told["pooled"] is not None and len(rows) > 1:
        rows = [("all, pooled", told["pooled"]), *rows]
    lines = "\n".join(
        f"<tr><td>{name}</td><td>{_badge(part['verdict'])}</td><td>{escape(part['measured'])}</td></tr>"
        for name, part in rows
    )
    return f"""<table class="bases">
<thead><tr><th scope="col">Base seed</th><th scope="col">Verdict</th><th scope="col">Measured,
with 95 % intervals</th></tr></thead>
<tbody>
{lines}
</tbody>
</table>"""


def _history(history: Sequence[dict[str, str]]) -> str:
    """Rules that were replaced, folded, the latest first."""
    if not history:
        return ""
    rules = "\n".join(
        f"<dl><dt>Until</dt><dd>{escape(earlier['date'])} {_badge(earlier['verdict'])}</dd>"
        f"{_claimed(earlier['statement'])}"
        f"<dt>Rule</dt><dd>{escape(earlier['rule'])}</dd>"
        f"<dt>Measured</dt><dd>{escape(earlier['measured'])}</dd>"
        f"<dt>Replaced</dt><dd>{escape(earlier['reason'])}</dd></dl>"
        for earlier in history
    )
    return f"""<details class="history"><summary>Earlier rules ({len(history)})</summary>
{rules}
</details>"""


def _claimed(statement: str) -> str:
    """What an earlier rule judged, where that was another claim."""
    return f"<dt>Claim</dt><dd>{escape(statement)}</dd>" if statement else ""


def _made(bases: Sequence[dict[str, Any]]) -> str:
    """Versions, device and date, each once."""
    words: dict[str, list[str]] = {}
    for part in bases:
        for name, value in part["made"].items():
            if value not in words.setdefault(name, []):
                words[name].append(value)
    return ", ".join(f"{name} {' and '.join(values)}" for name, values in words.items())


def _records(records: dict[str, Any]) -> str:
    """What can be downloaded, in the link itself."""
    text = json.dumps(records, allow_nan=False).encode()
    packed = gzip.compress(text, 9, mtime=0)
    return f"data:application/gzip;base64,{base64.b64encode(packed).decode()}"
