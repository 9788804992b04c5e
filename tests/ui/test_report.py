"""The report: figures told to Plotly, the page's text, its files; the page in a real browser."""

import base64
import gzip
import json
import re
from html import unescape
from pathlib import Path
from typing import Any, get_args

import numpy as np
import patience
import pytest
from browser import Watched, open_browser, open_page
from markupsafe import escape
from matplotlib.figure import Figure
from places import DATA

from mnemoscope.studies.base import Source
from mnemoscope.studies.catalogue import STUDIES, load, load_all
from mnemoscope.studies.entries import Entry, is_current
from mnemoscope.studies.ledger import Ledger
from mnemoscope.studies.sources import PAPERS
from mnemoscope.ui.cli import main
from mnemoscope.ui.figures.canvas import plain_log_ticks
from mnemoscope.ui.figures.interactive import as_plotly
from mnemoscope.ui.pages.exhibits import show_all
from mnemoscope.ui.pages.report import Exhibit, make_page, write_page

QUICK = DATA / "quick.json"

# Names of axes and panels that stick out of their figure, or into each other or into the legend.
HIDDEN_WORDS = """
() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
  const own = plot.getBoundingClientRect();
  const words = ".xtitle, .x2title, .ytitle, .y2title, .annotation-text, .legend";
  const all = [...plot.querySelectorAll(words)].map((one) => [one, one.getBoundingClientRect()]);
  return all.filter(([one, box]) =>
    box.top < own.top - 1 || box.left < own.left - 1 || box.right > own.right + 1
    || box.bottom > own.bottom + 1
    || all.some(([other, near]) => other !== one && box.left < near.right - 1
      && near.left < box.right - 1 && box.top < near.bottom - 1 && near.top < box.bottom - 1)
  ).map(([one]) => plot.dataset.study + ": " + one.textContent);
})
"""


def traces(figure: Figure) -> list[dict[str, Any]]:
    made = as_plotly(figure)
    json.dumps(made, allow_nan=False)  # plain data, without numbers that JSON does not have
    return made["data"]


def test_what_looks_alike_in_two_panels_is_named_once():
    figure = Figure()
    for axes in figure.subplots(1, 2):
        axes.plot([1, 2], [3, 4], "o", color="red", label="same")
        axes.plot([1, 2], [3, 4], "--", color="red", label="same")
        axes.legend()
    told = traces(figure)
    assert [one["showlegend"] for one in told] == [True, True, False, False]
    assert [one["legendgroup"] for one in told] == ["0", "1", "0", "1"]


def test_a_logarithmic_axis_has_enough_ticks_and_not_too_many():
    def ticks(low: float, high: float) -> list[float]:
        axes = Figure().add_subplot()
        plain_log_ticks(axes, "x", low, high)
        return [round(float(tick), 6) for tick in axes.get_xticks()]

    assert ticks(1, 1e5) == [1, 10, 100, 1e3, 1e4, 1e5]
    assert ticks(20, 1500) == [30, 100, 300, 1000]
    assert ticks(10, 100) == [10, 20, 50, 100]
    # Labels along the axis need room: those that would stand on the one before are left out.
    assert ticks(48, 128) == [40, 50, 60, 70, 80, 100]
    assert ticks(0.3, 2) == [0.3, 0.4, 0.5, 0.7, 1, 2]


def test_lines_and_error_bars_are_told():
    figure = Figure()
    axes = figure.add_subplot()
    axes.errorbar([1, 2], [3.0, 5.0], yerr=[[0.5, 1.0], [1.5, 2.0]], fmt="o--", label="measured")
    axes.plot([1, 2], [np.nan, 4.0], ":", color="red")
    axes.set_xscale("log")
    axes.set_xlim(1, 100)
    measured, line = traces(figure)[0], traces(figure)[1]
    assert measured["x"] == [1, 2]
    assert measured["y"] == [3, 5]
    assert measured["mode"] == "lines+markers"
    assert measured["line"]["dash"] == "dash"
    assert measured["name"] == "measured"
    assert measured["error_y"]["array"] == [1.5, 2.0]
    assert measured["error_y"]["arrayminus"] == [0.5, 1.0]
    assert line["y"] == [None, 4]
    assert line["line"] == {"color": "#ff0000", "width": 1.5, "dash": "dot"}
    assert not line["showlegend"]
    layout = as_plotly(figure)["layout"]
    assert layout["xaxis"]["type"] == "log"
    assert layout["xaxis"]["range"] == [0, 2]
    assert len(traces(figure)) == 2  # caps of error bars are no lines of their own


def test_bars_maps_levels_and_bands_are_told():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.bar([0, 1], [2.0, 3.0], yerr=[[1, 1], [0.5, 2]])
    left.set_xticks([0, 1], ["a\nb", "c"])
    left.axhline(0.25, label="chance")
    left.axvspan(0.2, 0.4, alpha=0.5)
    left.annotate("here", (1, 0.25), (3, 0), ("axes fraction", "data"), "offset points")
    image = right.imshow([[0.0, 1.0]], vmin=0, vmax=1)
    right.text(0, 0, "0.00")
    figure.colorbar(image, ax=right, label="accuracy")
    made = as_plotly(figure)
    bars, heat = made["data"]
    assert bars["y"] == [2, 3]
    assert bars["x"] == [0, 1]
    assert bars["error_y"]["arrayminus"] == [1, 1]
    assert made["layout"]["xaxis"]["ticktext"] == ["a<br>b", "c"]
    level, band = made["layout"]["shapes"]
    assert (level["y0"], level["xref"], level["name"]) == (0.25, "x domain", "chance")
    assert (band["x0"], band["x1"], band["yref"]) == (0.2, pytest.approx(0.4), "y domain")
    assert heat["z"] == [[0, 1]]
    assert heat["xaxis"] == "x2"
    assert heat["colorbar"]["title"]["text"] == "accuracy"
    (note,) = made["layout"]["annotations"]
    assert (note["text"], note["y"]) == ("here", 0.25)


def exhibit(told: dict[str, Any] | None = None, **more: Any) -> Exhibit:
    known = {
        "id": "a-one",
        "source": "paper B",
        "place": "Fig. <9>",
        "statement": "1 < 2 & so on",
        "expected": "two",
        "rule": "supported if",
        "verdict": "refuted",
        "size": "quick",
        "command": "run it",
        "measured": "four",
        "pooled": None,
        "history": [],
        "power": None,
        "bases": [
            {
                "base": 0,
                "verdict": "refuted",
                "measured": "three </script>",
                "seconds": 2.0,
                "made": {"jax": "1", "date": "today"},
            }
        ],
        **(told or {}),
    }
    figure = {"data": [{"name": "</script>"}], "layout": {}}
    return Exhibit(known, "<svg/>", figure, {"trials": [1, 2]}, **more)


def test_the_page_says_what_there_is():
    text = make_page([exhibit()])
    assert "1 &lt; 2 &amp; so on" in text
    for words in ("supported if", "run it", "jax 1, date today", "three &lt;/script&gt;"):
        assert words in text
    assert text.index("All verdicts") < text.index('id="a-one"')
    assert "have changed since" not in text
    assert "have changed since" in make_page([exhibit(stale=True)])
    figures = re.search(r'id="figures">(.*?)</script>', text, re.DOTALL)
    assert figures is not None
    assert json.loads(figures[1])["a-one"]["data"][0]["name"] == "</script>"
    packed = re.search(r"application/gzip;base64,([^\"]+)", text)
    assert packed is not None
    assert json.loads(gzip.decompress(base64.b64decode(packed[1]))) == {"trials": [1, 2]}


def test_the_page_shows_whose_claim_it_is_and_what_all_base_seeds_say():
    text = make_page([exhibit()])
    assert '<span class="source stated">paper B</span>' in text
    assert "Fig. &lt;9&gt;" in text
    assert "all, pooled" not in text
    assert "not computed for this rule" in text
    power = {"supported": 0.93, "rivals": {"label_noise": 0.01}, "draws": 200, "note": "Drawn <so>"}
    more = {
        "source": "ours, after paper A",
        "power": power,
        "verdict": "supported",
        "pooled": {"verdict": "supported", "measured": "both"},
        "bases": [{**exhibit().claim["bases"][0], "base": base} for base in (0, 1)],
    }
    text = make_page([exhibit(more)])
    assert '<span class="source ours">ours, after paper A</span>' in text
    assert "supported in 0.93 of 200 draws where the claim is right" in text
    assert "label noise 0.01" in text
    assert "Drawn &lt;so&gt;." in text
    rows = re.findall(r"<tr><td>(all, pooled|[01])</td><td><span class=\"verdict (\w+)", text)
    assert rows == [("all, pooled", "supported"), ("0", "refuted"), ("1", "refuted")]
    assert "Earlier rules" not in text


def test_the_page_cites_its_papers_in_full():
    text = unescape(make_page([exhibit()]))
    for paper in PAPERS:
        cited = re.search(rf"<dt>{paper.name}</dt>(.*?)</dd>", text, re.DOTALL)
        assert cited is not None
        plain = " ".join(re.sub(r"<[^>]+>", "", cited[1]).split())
        assert plain == f"{paper.authors}: {paper.title}, {paper.venue}, arXiv {paper.arxiv}"
        assert f'href="https://arxiv.org/abs/{paper.arxiv}"' in cited[1]
    first = {"2603.15923", "2412.06538", "2605.05189", "2605.10795"}
    later = {"2603.26554", "2602.05725", "2509.26030", "2310.02984", "2402.18724"}
    transformers = {"2605.12426", "2306.00802", "2312.04927", "2503.21676", "2404.05405", "2505.24832", "2512.00207"}
    assert {paper.arxiv for paper in PAPERS} == first | later | transformers
    named = {name for source in get_args(Source) for name in re.findall(r"paper \w", source)}
    assert named == {paper.name for paper in PAPERS}  # none that a study names stays unresolved


def test_a_ledger_cannot_write_into_the_page():
    """Every text that a claim carries is escaped, also where it becomes an attribute."""
    evil = '"><script>alert(1)</script>'
    base = {"base": 0, "verdict": "refuted", "measured": evil, "seconds": 1.0, "made": {evil: evil}}
    earlier = dict.fromkeys(("date", "rule", "measured", "reason", "statement"), evil) | {"verdict": "refuted"}
    words = dict.fromkeys(
        ("id", "source", "place", "statement", "expected", "rule", "size", "command", "measured"), evil
    )
    power = {"supported": 0.5, "rivals": {evil: 0.5}, "draws": 1, "note": evil}
    replaced = {"date": evil, "rule": evil, "statement": "other" + evil}
    more = {**words, "bases": [base], "history": [earlier], "power": power}
    for claim in (more, {**more, "replaced": replaced}):
        text = make_page([exhibit(claim, stale=True)], [evil])
        assert "<script>alert" not in text
        assert '"><script' not in text
        assert text.count("&lt;script&gt;alert") > 20


def test_the_page_keeps_earlier_rules():
    earlier = {
        "date": "2026-11-18",
        "rule": "a box of < 0.5",
        "measured": "0.4",
        "verdict": "supported",
        "reason": "too wide",
        "statement": "it was > 0",
    }
    text = make_page([exhibit({"history": [earlier]})])
    for words in ("Earlier rules (1)", "a box of &lt; 0.5", "too wide", "it was &gt; 0"):
        assert words in text
    assert "earlier rule<" not in text
    now = {"date": "2026-11-18", "rule": "a box of 0.25", "statement": "it is > 1"}
    old = {"history": [earlier], "replaced": now}
    before = Exhibit(
        {**exhibit(old).claim, "bases": [{"base": 0, "seconds": 1.0, "made": {}}]}, None, {}, {}, stale=True
    )
    text = make_page([before, exhibit()], ["a-two"])
    assert "1 of 2 were run before their rule was replaced" in text
    assert '<span class="by">earlier rule</span>' in text
    assert "The claim now reads: it is &gt; 1 The rule is now: a box of 0.25" in text
    assert "these have no figure" in text
    assert text.count('class="svg"') == 1  # of the other: a picture is offered where there is one
    assert "Not shown, since the study has changed: a-two." in text


def test_results_of_replaced_rules_stay_readable(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A ledger that was made for an earlier rule, in numbers that the study no longer reads."""
    old = tmp_path / "old.json"
    entry = Entry("a-width", "full", 0, 0, {"points": [], "fit": None}).as_dict()
    made = Entry("q-mlp", "full", 0, 0, {}).as_dict()
    old.write_text(json.dumps({"format": 3, "entries": [entry, made]}))
    page = tmp_path / "p.html"
    assert main(["report", "--ledger", str(old), "--out", str(page), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["claims"] == [{"id": "a-width", "verdict": "inconclusive", "stale": True}]
    assert told["left_out"] == ["q-mlp"]  # which has no earlier rule to speak for it
    text = page.read_text()
    study = load("a-width")
    for words in (study.rule, study.statement, study.history[0].rule, study.history[0].statement):
        assert escape(words) in text


def test_the_quick_ledger_is_of_these_studies():
    """A study that changes has to be run again: `mnemoscope reproduce ID --ledger data/quick.json`.

    So the page that is looked at below is that of the whole catalogue as it stands.
    """
    book = Ledger(QUICK)
    assert {name for name, size, _ in book.entries if size == "quick"} == set(STUDIES)
    for (name, _, _), entry in book.entries.items():
        assert is_current(load(name), entry), name


def test_reports_and_figures_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "claims.html"
    words = ["report", "b-fig5", "a-three-steps", "--ledger", str(QUICK)]
    assert main([*words, "--out", str(page), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == str(page)
    assert told["bytes"] == page.stat().st_size
    assert {one["id"] for one in told["claims"]} == {"b-fig5", "a-three-steps"}
    again = page.read_bytes()
    assert main([*words, "--out", str(page)]) == 0
    assert page.read_bytes() == again  # the same from the same ledger
    assert main([*words, "--figures", str(tmp_path)]) == 0
    assert (tmp_path / "b-fig5.pdf").read_bytes()[:4] == b"%PDF"
    assert main([*words, "--figures", str(tmp_path), "--form", "svg"]) == 0
    assert "<svg" in (tmp_path / "a-three-steps.svg").read_text()[:400]


def test_wrong_requests_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    empty = str(tmp_path / "none.json")
    for words, said in (
        (["--ledger", empty], "expected an existing ledger"),
        (["--ledger", str(QUICK), "--out", "page.pdf"], "expected a file ending in .html"),
        (["--ledger", str(QUICK), "--figures", str(tmp_path / "no")], "a folder that is there"),
        (["--ledger", str(QUICK), "--out", str(tmp_path / "no" / "x.html")], "folder"),
        (["nothing", "--ledger", str(QUICK)], "expected studies that --list shows"),
        (["--ledger", str(QUICK), "--figures", ".", "--form", "gif"], "--form"),
    ):
        assert main(["report", *words]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("size", ["quick", "full"])
def test_the_report_in_a_browser(size: str, tmp_path: Path):
    page = tmp_path / "claims.html"
    book = Ledger(DATA / f"{size}.json")
    exhibits, left_out = show_all(book.claims(load_all()))
    assert len(exhibits) + len(left_out) == len({name for name, _, _ in book.entries} & {*STUDIES})
    told = {"shown": len(exhibits), "stale": sum(exhibit.stale for exhibit in exhibits)}
    write_page(exhibits, page, left_out)
    assert page.stat().st_size < 8e6
    with open_browser() as browser:
        for width in (1200, 390):
            seen = Watched(browser, width)
            seen.page.goto(page.as_uri())
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            if patience.IDLE:
                assert seen.page.evaluate(paint) < 2000
            assert seen.page.locator("section").count() == told["shown"]
            figures = seen.page.locator("figure")
            assert figures.count() >= told["shown"] - told["stale"]  # all that is up to date
            for at in range(figures.count()):
                figure = figures.nth(at)
                figure.scroll_into_view_if_needed()
                figure.locator(".main-svg").first.wait_for()
                # Something is drawn in it, and it has taken the picture's place.
                drawn = figure.locator(".plot :is(.scatterlayer, .barlayer, .heatmaplayer) > *")
                drawn.first.wait_for(state="attached")
                assert not figure.locator("img").is_visible()
            assert seen.page.evaluate(HIDDEN_WORDS) == []
            assert seen.errors == []
            assert seen.left("file://") == []
            wide = seen.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width  # nothing to scroll sideways
        seen.page.emulate_media(media="print")
        assert seen.page.locator("img").first.is_visible()
        assert not seen.page.locator(".plot").first.is_visible()
        seen.page.emulate_media(media="screen")
        with seen.page.expect_download() as download:
            seen.page.locator("section").first.get_by_text("Numbers and").click()
        told = json.loads(gzip.decompress(Path(download.value.path()).read_bytes()))
        assert told["entries"][0]["trials"]["rows"]
        with seen.page.expect_download() as download:
            seen.page.locator("section").first.get_by_text("Figure (SVG)").click()
        assert b"<svg" in Path(download.value.path()).read_bytes()[:400]


def test_the_page_reads_without_scripts(tmp_path: Path):
    page = tmp_path / "claims.html"
    assert main(["report", "b-fig5", "--ledger", str(QUICK), "--out", str(page)]) == 0
    with open_browser() as browser:
        plain = open_page(browser, java_script_enabled=False)
        plain.goto(page.as_uri())
        assert plain.locator("img.still").first.is_visible()
        assert plain.get_by_text("All verdicts").is_visible()
