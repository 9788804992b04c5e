"""The documentation as it was built, opened from disk in a real browser: wide, and on a phone.

CI builds it before it runs this: `uv run --group docs sphinx-build -W -b html docs site`, then `pytest -m docs`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from browser import Watched, open_browser
from places import PROJECT
from playwright.sync_api import Browser

SITE = PROJECT / "site"
pytestmark = pytest.mark.docs
SCREENS = {"wide": (1300, 900), "phone": (390, 844)}
# One page of each kind: with pictures, formulas, a notebook, tables, and pages that are generated.
PAGES = (
    "index.html",
    "tour.html",
    "theory/recall.html",
    "tutorials/phase_diagram.html",
    "tutorials/every_function.html",
    "api/critical.html",
    "commands/run.html",
    "glossary.html",
    "claims.html",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert (SITE / "index.html").exists(), "expected the site to be built"
    with open_browser() as browser:
        yield browser


def address(page: str) -> str:
    return (SITE / page).as_uri()


@pytest.mark.parametrize("screen", SCREENS)
def test_pages_open_from_disk(browser: Browser, screen: str, tmp_path: Path):
    watched = Watched(browser, *SCREENS[screen])
    page = watched.page
    for name in PAGES:
        page.goto(address(name))
        page.wait_for_load_state("networkidle")
        assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)"), name
        # Nothing is wider than the screen, apart from what scrolls in its own place.
        assert page.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen][0], name
        if name.startswith("theory"):
            page.wait_for_selector("mjx-container")
            assert page.locator("mjx-merror").count() == 0
    assert watched.errors == []
    assert watched.left(SITE.as_uri()) == []


@pytest.mark.parametrize("screen", SCREENS)
def test_search_finds_a_command(browser: Browser, screen: str):
    watched = Watched(browser, *SCREENS[screen])
    watched.page.goto(address("search.html") + "?q=critical")
    found = watched.page.locator("#search-results li a")
    found.first.wait_for()
    names = found.all_inner_texts()
    assert {"critical", "mnemoscope critical"} <= set(names) | {name.split(" (")[0] for name in names}
    assert watched.errors == []
    assert watched.left(SITE.as_uri()) == []


def test_light_and_dark_and_copying(browser: Browser):
    watched = Watched(browser)
    page = watched.page
    page.goto(address("start.html"))
    seen = set()
    for _ in range(3):
        page.locator("button.theme-toggle:visible").first.click()
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        seen.add((page.evaluate("document.body.dataset.theme"), colour))
    assert {theme for theme, _ in seen} == {"auto", "light", "dark"}
    assert len({colour for _, colour in seen}) >= 2
    assert page.locator("button.copybtn").count() >= 2
    assert watched.errors == []


def test_every_link_within_the_site_leads_somewhere():
    broken = []
    ids: dict[Path, set[str]] = {}
    for page in SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:|#$|//", link):
                continue
            path, fragment = urldefrag(link)
            target = (page.parent / unquote(path.split("?")[0])).resolve() if path else page
            if not target.exists():
                broken.append(f"{page.relative_to(SITE)}: {link}")
            elif fragment and target.suffix == ".html":
                if target not in ids:
                    ids[target] = set(re.findall(r'\bid="([^"]+)"', target.read_text(encoding="utf-8")))
                if unquote(fragment) not in ids[target]:
                    broken.append(f"{page.relative_to(SITE)}: {link}")
    assert not broken
