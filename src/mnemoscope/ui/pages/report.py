"""The report: one HTML file that needs nothing else, verdicts first, then every claim.

Every figure is an SVG image in the page. Once the page is loaded, Plotly replaces it on the screen.
Without scripts, and in print, the SVG stays.
"""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import whole_file
from mnemoscope.studies.sources import PAPERS
from mnemoscope.ui.pages.render import render

MARKS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}
MEANINGS = {
    "supported": "the numbers lie where the rule requires",
    "refuted": "the numbers lie elsewhere, and so do their intervals",
    "inconclusive": "the numbers do not decide, or base seeds that are not pooled disagree",
}
# How a source begins: the class of its badge, and what it means.
SOURCES = {
    "paper A (statement)": ("stated", "the public text of paper A says it"),
    "paper B": ("stated", "paper B says it"),
    **{f"paper {name} (abstract)": ("stated", f"the abstract of paper {name} says it") for name in "CDEFGHI"},
    "ours": ("ours", "derived here in a paper's setting; the paper does not say it"),
    "news": ("news", "a popular summary says it"),
    "review": ("review", "reviewers of paper A asked about it"),
    "own": ("ours", "a study that was added to the catalogue"),
}


@dataclass(frozen=True)
class Exhibit:
    """A claim with everything that the page shows about it; `claim` is its JSON object."""

    claim: dict[str, Any]
    svg: str | None
    plotly: dict[str, Any]
    records: dict[str, Any]
    stale: bool = False

    @property
    def picture(self) -> str:
        """The SVG as a data URL."""
        return _data_url("image/svg+xml", (self.svg or "").encode())

    @property
    def download(self) -> str:
        """The compressed records as a data URL."""
        text = json.dumps(self.records, allow_nan=False).encode()
        return _data_url("application/gzip", gzip.compress(text, 9, mtime=0))

    @property
    def judgements(self) -> list[tuple[str, dict[str, Any]]]:
        """The pooled verdict, if there is one, then that of each base seed."""
        rows = [(str(int(base["base"])), base) for base in self.claim["bases"]]
        pooled = self.claim["pooled"]
        return [("all, pooled", pooled), *rows] if pooled is not None and len(rows) > 1 else rows

    @property
    def power(self) -> str:
        """How often the rule would have supported the claim, known before the run."""
        power = self.claim["power"]
        if power is None:
            return "not computed for this rule"
        shares = ", ".join(f"{rival.replace('_', ' ')} {share:.2f}" for rival, share in power["rivals"].items())
        rivals = f"; where a rival law is right: {shares}" if shares else ""
        return (
            f"supported in {power['supported']:.2f} of {power['draws']} draws where the claim is "
            f"right{rivals}. {power['note']}."
        )

    @property
    def made_with(self) -> str:
        """Versions, device and date; each value once, however many base seeds have it."""
        values: dict[str, dict[str, None]] = {}
        for base in self.claim["bases"]:
            for name, value in base["made"].items():
                values.setdefault(name, {})[value] = None
        return ", ".join(f"{name} {' and '.join(different)}" for name, different in values.items())


def write_page(exhibits: Sequence[Exhibit], path: Path, left_out: Sequence[str] = ()) -> int:
    """Write the page, which also names the studies left out; return its size in bytes."""
    text = make_page(exhibits, left_out)
    with whole_file(path) as part:
        Path(part).write_text(text, encoding="utf-8")
    return len(text.encode())


def make_page(exhibits: Sequence[Exhibit], left_out: Sequence[str] = ()) -> str:
    """The page as text."""
    need("pages")
    from markupsafe import Markup

    assets = resources.files("mnemoscope.ui.pages") / "assets"
    plotly = (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return render(
        "pages/templates/report.html",
        exhibits=exhibits,
        left_out=left_out,
        replaced=sum("replaced" in exhibit.claim for exhibit in exhibits),
        counts=Counter(exhibit.claim["verdict"] for exhibit in exhibits),
        figures={exhibit.claim["id"]: exhibit.plotly for exhibit in exhibits if exhibit.svg},
        marks=MARKS,
        meanings=MEANINGS,
        sources=SOURCES,
        papers=PAPERS,
        kind_of=_kind_of,
        # Our own files, unescaped. Inside a script element only the end tag has to be escaped.
        style=Markup((assets / "page.css").read_text(encoding="utf-8")),
        script=Markup((assets / "page.js").read_text(encoding="utf-8")),
        plotly=Markup(plotly.replace("</script", "<\\/script")),
    )


def _kind_of(source: str) -> str:
    return next((kind for start, (kind, _) in SOURCES.items() if source.startswith(start)), "ours")


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
