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

from mnemoscope.extras import need
from mnemoscope.files import whole_file

MARKS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}
MEANING = {
    "supported": "the numbers lie where the rule wants them",
    "refuted": "they lie elsewhere, clear of their intervals",
    "inconclusive": "they do not decide, or base seeds disagree",
}


@dataclass(frozen=True)
class Exhibit:
    """One claim with all that is shown of it."""

    told: dict[str, Any]
    svg: str
    plotly: dict[str, Any]
    records: dict[str, Any]
    stale: bool = False


def write_page(exhibits: Sequence[Exhibit], path: Path) -> int:
    """Write the page, and say how many bytes it has."""
    text = make_page(exhibits)
    with whole_file(path) as part:
        Path(part).write_text(text, encoding="utf-8")
    return len(text.encode())


def make_page(exhibits: Sequence[Exhibit]) -> str:
    """The whole page as text."""
    figures = {one.told["id"]: one.plotly for one in exhibits}
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
    return (resources.files("mnemoscope.report") / "assets" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    need("pages")
    folder = resources.files("plotly") / "package_data"
    # Inside a script element only its own end tag has to be kept from the parser.
    return (folder / "plotly.min.js").read_text(encoding="utf-8").replace("</script", "<\\/script")


def _summary(exhibits: Sequence[Exhibit]) -> str:
    counts = Counter(one.told["verdict"] for one in exhibits)
    items = "".join(
        f"<li>{_badge(name)} {counts[name]}: {meaning}</li>" for name, meaning in MEANING.items()
    )
    return f'<ul class="summary">{items}</ul>'


def _badge(verdict: str) -> str:
    return f'<span class="verdict {verdict}">{MARKS[verdict]} {verdict}</span>'


def _table(exhibits: Sequence[Exhibit]) -> str:
    rows = "\n".join(
        f"<tr><td>{_badge(one.told['verdict'])}</td>"
        f'<th scope="row"><a href="#{one.told["id"]}">{one.told["id"]}</a></th>'
        f"<td>{escape(one.told['statement'])}</td><td>{escape(one.told['source'])}</td>"
        f"<td>{one.told['size']}</td></tr>"
        for one in exhibits
    )
    return f"""<table class="verdicts">
<caption>All verdicts</caption>
<thead><tr><th scope="col">Verdict</th><th scope="col">Study</th><th scope="col">Claim</th>
<th scope="col">Source</th><th scope="col">Size</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>"""


def _section(one: Exhibit) -> str:
    told = one.told
    name = told["id"]
    bases = told["bases"]
    picture = base64.b64encode(one.svg.encode()).decode()
    rows = "\n".join(
        f"<tr><td>{int(part['base'])}</td><td>{_badge(part['verdict'])}</td>"
        f"<td>{escape(part['measured'])}</td></tr>"
        for part in bases
    )
    stale = (
        '<p class="stale">The study or the numerics have changed since: run the command again.</p>'
        if one.stale
        else ""
    )
    return f"""<section id="{name}">
<h2>{name} {_badge(told["verdict"])}</h2>
<p class="statement">{escape(told["statement"])}</p>
{stale}<figure>
<div class="plot" data-study="{name}"></div>
<img class="still" src="data:image/svg+xml;base64,{picture}" width="518" height="302"
 alt="Figure of {name}. {escape(bases[0]["measured"])}">
</figure>
<dl>
<dt>Source</dt><dd>{escape(told["source"])}</dd>
<dt>Expected</dt><dd>{escape(told["expected"])}</dd>
<dt>Rule</dt><dd>{escape(told["rule"])}</dd>
<dt>Command</dt><dd><code>{escape(told["command"])}</code></dd>
<dt>Made with</dt><dd>{escape(_made(bases))}</dd>
</dl>
<table class="bases">
<thead><tr><th scope="col">Base seed</th><th scope="col">Verdict</th><th scope="col">Measured,
with 95 % intervals</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<p class="downloads"><a download="{name}.json.gz" href="{_records(one.records)}">Numbers and
trials (JSON, gzip)</a> <a class="svg" download="{name}.svg" hidden>Figure (SVG)</a></p>
</section>"""


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
