"""The explorer in a real browser: dragged, measured, cancelled, reloaded, taken along.

Screenshots are left in tests/artefacts. With MNEMOSCOPE_IDLE=1 and `-n 0`, redraws are held to
200 ms as well: two browsers on two cores, as when all tests run, say nothing about that.
"""

import itertools
import json
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import patience
import pytest
from browser import Watched, open_browser, open_page
from explorer_server import Running, running
from places import TESTS
from playwright.sync_api import Browser, Page, Route

from mnemoscope.engine.record import Step, Trial
from mnemoscope.store.trials import Store
from mnemoscope.tasks.token_files import keep
from mnemoscope.ui.explorer.state import read_state

pytestmark = pytest.mark.long
ARTEFACTS = TESTS / "artefacts"
SMALL = "vocab=64&dim=32&length=4&samples=300"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    ARTEFACTS.mkdir(exist_ok=True)
    with open_browser() as made:
        yield made


@pytest.fixture
def seen(browser: Browser, server: Running) -> Iterator[Watched]:
    """A page; whatever a test does, no error is said and nothing is fetched elsewhere."""
    made = Watched(browser, 1300, 950)
    yield made
    assert made.errors == []
    assert made.left(server.address, f"blob:{server.address}") == []
    made.page.close()


def visit(page: Page, address: str) -> None:
    """Open it, and wait until the fine diagram and theory's word are there."""
    page.goto(address)
    settle(page)


def until(page: Page, truth: str | Callable[[], object]) -> None:
    """Wait for a JavaScript expression, or for something here.

    The page's own rules forbid Playwright's way of doing so, by `eval`.
    """
    ready = truth if callable(truth) else lambda: page.evaluate(truth)
    patience.wait_until(ready, str(truth), lambda: page.wait_for_timeout(20))


def settle(page: Page) -> None:
    until(
        page,
        """(() => {
          const form = new FormData(document.querySelector('#state'));
          const words = [...new URLSearchParams(form)].sort().toString();
          const of = (text) => [...new URLSearchParams(text ?? '')].sort().toString();
          const told = document.querySelector('#prediction [data-state]');
          return of(document.querySelector('#map').dataset.settled) === words
            && told !== null && of(told.dataset.state) === words;
        })()""",
    )


def accuracy_told(page: Page) -> str:
    return page.locator("#prediction dd b").first.inner_text()


def numbers(page: Page) -> dict[str, str]:
    return page.evaluate("Object.fromEntries(new FormData(document.querySelector('#state')).entries())")


def test_a_first_visit_explains_itself(server: Running, seen: Watched):
    page = seen.page
    visit(page, server.address)
    welcome = page.locator("#welcome")
    assert welcome.is_visible()
    said = welcome.locator("p").inner_text()
    assert len(re.findall(r"[.!?](?:\s|$)", said)) == 3
    for drawn in ("#map .heatmaplayer image", "#map .contourlayer path", "#curve .lines path"):
        page.locator(drawn).first.wait_for(state="attached")
    assert page.locator("#map .annotation-text").count() >= 3  # names of regimes
    page.screenshot(path=ARTEFACTS / "first_visit.png", full_page=True)
    page.click("#understood")
    assert not welcome.is_visible()
    visit(page, server.address)
    assert not welcome.is_visible()  # it is remembered


def test_dragging_redraws_at_once(server: Running, seen: Watched):
    page = seen.page
    visit(page, server.address)
    before = page.evaluate("document.querySelector('#map').data[0].z")
    # Every redraw notes how long it took, from the request to the picture.
    page.evaluate("""() => {
      const map = document.querySelector('#map');
      window.took = [];
      new MutationObserver(() => window.took.push(Number(map.dataset.took)))
        .observe(map, { attributeFilter: ['data-took'] });
    }""")
    slider = page.locator("input[data-for=length]")
    box = slider.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    at = float(slider.input_value()) / 1000
    page.mouse.move(box["x"] + at * box["width"], y)
    page.mouse.down()
    places = zigzag(at, 0.95)

    def drag() -> None:
        page.mouse.move(box["x"] + next(places) * box["width"], y)
        page.wait_for_timeout(30)  # as fast as a hand

    for _ in range(30):
        drag()
    # While it is held, and not only when it rests.
    patience.wait_until(lambda: page.evaluate("window.took.length") >= 5, "five redraws", drag)
    redrawn = page.evaluate("window.took")
    page.mouse.move(box["x"] + 0.95 * box["width"], y)
    page.mouse.up()
    if patience.IDLE:
        print(f"median redraw {statistics.median(redrawn):.0f} ms of {len(redrawn)}")
        assert statistics.median(redrawn) < 200
    settle(page)
    assert int(numbers(page)["length"]) > 500
    after = page.evaluate("document.querySelector('#map').data[0].z")
    assert after != before
    # Longer sequences need more samples: there is less recall on the map.
    assert share(after) < share(before) - 0.1
    page.screenshot(path=ARTEFACTS / "dragged.png", full_page=True)


def test_the_exponent_of_the_tokens(server: Running, seen: Watched):
    page = seen.page
    visit(page, f"{server.address}?{SMALL}")
    before = page.evaluate("document.querySelector('#map').data[0].z")
    page.locator("#zipf-slider").fill("1.5")
    settle(page)
    assert numbers(page)["zipf"] == "1.5"
    assert "zipf=1.5" in page.url
    assert share(page.evaluate("document.querySelector('#map').data[0].z")) < share(before) - 0.1
    page.locator("#zipf").fill("0")
    settle(page)
    assert page.locator("#zipf-slider").input_value() == "0"
    assert page.evaluate("document.querySelector('#map').data[0].z") == before


def test_tokens_of_ones_own_frequencies(server: Running, seen: Watched):
    page = seen.page
    law = keep(np.random.default_rng(0).dirichlet(np.full(80, 0.2)))
    visit(page, f"{server.address}?{SMALL}&law={law}")
    assert numbers(page)["vocab"] == "80"
    assert page.locator("#vocab").get_attribute("readonly") is not None
    assert page.locator("#x option").all_inner_texts() == ["d, dim", "L, length", "m, width"]
    before = page.evaluate("document.querySelector('#map').data[0].z")
    page.locator("#length").fill("64")
    settle(page)
    assert f"law={law.replace(':', '%3A')}" in page.url
    assert share(page.evaluate("document.querySelector('#map').data[0].z")) < share(before)
    assert f"--tokens {law}" in page.locator("#prediction").inner_text()
    page.screenshot(path=ARTEFACTS / "own_law.png", full_page=True)


def zigzag(low: float, high: float) -> Iterator[float]:
    """To the high end in thirty steps, back again, and so on."""
    up = [low + (high - low) * step / 29 for step in range(30)]
    return itertools.cycle([*up, *up[::-1]])


def share(cells: list[list[float]]) -> float:
    """Mean accuracy over a map."""
    return statistics.fmean(one for row in cells for one in row)


def test_the_regime_under_the_pointer(server: Running, seen: Watched):
    page = seen.page
    visit(page, f"{server.address}?length=400")
    box = page.locator("#map .nsewdrag").first.bounding_box()
    assert box is not None
    under, found = page.locator("#under"), set()
    # Every one of these places reads differently from the last.
    for across, up in ((0.9, 0.95), (0.2, 0.9), (0.95, 0.1), (0.55, 0.2)):
        said = under.text_content()
        page.mouse.move(box["x"] + across * box["width"], box["y"] + (1 - up) * box["height"])
        until(page, lambda said=said: under.text_content() != said)
        found.add(under.locator("b").inner_text())
    assert {"recall", "interference", "mean bias"} <= found
    assert page.locator("#under .formula").inner_html() == "N d<sup>1.5</sup> ≫ L<sup>2</sup> V<sup>0.5</sup>"
    # A click puts the cross there.
    page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 0.25 * box["height"])
    settle(page)
    assert int(numbers(page)["dim"]) > 300
    assert int(numbers(page)["samples"]) > 50_000


def test_a_measurement_to_the_end_and_one_cancelled(server: Running, seen: Watched):
    page = seen.page
    visit(page, f"{server.address}?{SMALL}")
    assert page.locator("#curve").get_attribute("data-points") == "0"
    page.fill("#order input[name=seeds]", "3")
    page.get_by_role("button", name="Measure", exact=True).click()
    first = page.locator("#jobs li").first
    first.wait_for()
    page.locator("#jobs li.done").first.wait_for()
    until(page, "document.querySelector('#curve').dataset.points === '1'")
    with Store(server.explorer.store, writing=False) as store:
        assert store.count("dim = 32 AND samples = 300") == 3
    # A long one runs while another waits; closing the page loses neither.
    visit(page, f"{server.address}?vocab=512&dim=64&length=256&samples=200000")
    page.get_by_role("button", name="Measure", exact=True).click()
    page.locator("#jobs li.running").wait_for()
    page.select_option("#order select", "curve")
    page.fill("#order input[name=seeds]", "2")
    page.fill("#dim", "65")
    page.fill("#length", "4")
    page.fill("#vocab", "64")
    page.get_by_role("button", name="Measure", exact=True).click()
    page.locator("#jobs li.waiting").wait_for()
    page.locator("#jobs li.running progress").wait_for()
    page.screenshot(path=ARTEFACTS / "measuring.png", full_page=True)
    page.goto("about:blank")
    visit(page, f"{server.address}?{SMALL}")
    assert page.locator("#jobs li.running").count() == 1
    assert page.locator("#jobs li.waiting").count() == 1
    page.locator("#jobs li.running").get_by_role("button").click()
    page.locator("#jobs li.cancelled").wait_for()
    until(page, "document.querySelectorAll('#jobs li.done').length === 2")
    visit(page, f"{server.address}?vocab=64&dim=65&length=4")
    until(page, "document.querySelector('#curve').dataset.points === '7'")
    assert page.locator("#curve .errorbar").count() == 7
    page.screenshot(path=ARTEFACTS / "measured.png", full_page=True)


def test_a_link_holds_the_whole_state(server: Running, seen: Watched):
    page = seen.page
    visit(page, server.address)
    page.fill("#vocab", "1000")
    page.fill("#width", "256")
    page.select_option("#activation", "tanh")
    page.select_option("#embedding", "sphere")
    page.select_option("#x", "length")
    page.fill("#target", "0.75")
    settle(page)
    was, link, told = numbers(page), page.url, accuracy_told(page)
    command = page.locator("#command").inner_text()
    other = Watched(page.context.browser or pytest.fail("no browser"), 1300, 950)
    visit(other.page, link)
    assert numbers(other.page) == was
    assert accuracy_told(other.page) == told
    assert other.page.locator("#command").inner_text() == command
    assert other.page.locator("#map .xtitle").text_content() == "L, length"
    assert "--embedding sphere" in command
    assert read_state(dict(one.split("=") for one in link.split("?")[1].split("&"))).target == 0.75
    other.page.reload()
    settle(other.page)
    assert numbers(other.page) == was
    assert other.errors == []
    other.page.close()


def test_downloads(server: Running, seen: Watched):
    page = seen.page
    visit(page, f"{server.address}?{SMALL}")
    found = {}
    for name in ("Figure (SVG)", "Map (CSV)", "All data (JSON)", "Command"):
        with page.expect_download() as download:
            page.get_by_text(name, exact=True).click()
        text = Path(download.value.path()).read_text()
        found[download.value.suggested_filename] = text
    assert set(found) == {"map.svg", "map.csv", "explorer.json", "map.sh"}
    assert found["map.svg"].startswith("<svg")
    assert "recall" in found["map.svg"]
    assert found["map.csv"].startswith("vocab,dim,length,samples,width")
    assert "V = 64, L = 4" in found["map.svg"]
    assert json.loads(found["explorer.json"])["state"]["vocab"] == 64
    assert page.locator("#command").inner_text() in found["map.sh"]


def test_keys_alone_will_do(server: Running, seen: Watched):
    page = seen.page
    visit(page, f"{server.address}?dim=100&samples=1000")
    page.locator("#vocab").focus()
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        here = "document.activeElement"
        reached.append(page.evaluate(f"{here}.id || {here}.dataset.for || {here}.name"))
    for name in (
        "dim",
        "length",
        "samples",
        "width",
        "embedding",
        "trigger",
        "x",
        "target",
        "map",
        "seeds",
        "link",
        "figure",
        "table",
        "data",
        "script",
    ):
        assert name in reached
    page.locator("input[data-for=length]").focus()
    before = int(numbers(page)["length"])
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert int(numbers(page)["length"]) > before
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowUp")
    settle(page)
    told = numbers(page)
    assert int(told["dim"]) == 110
    assert 1600 <= int(told["samples"]) <= 1700
    # Small numbers move by one at least, and only along the arrow's own axis.
    visit(page, f"{server.address}?x=length&length=4")
    page.locator("#map").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert int(numbers(page)["length"]) == 7
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    assert int(numbers(page)["length"]) == 3
    visit(page, f"{server.address}?x=width&width=0")
    assert "no MLP" in page.locator("#under").inner_text()
    page.locator("#map").focus()
    page.keyboard.press("ArrowUp")
    assert int(numbers(page)["width"]) == 0
    page.keyboard.press("ArrowRight")
    assert int(numbers(page)["width"]) == 16


def test_narrow_dark_and_wrong(server: Running, browser: Browser):
    narrow = Watched(browser, 390, 844)
    page = narrow.page
    page.emulate_media(color_scheme="dark")
    visit(page, f"{server.address}?width=512&length=200")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert brightness(ink) > 0.8
    assert brightness(paper) < 0.2
    page.screenshot(path=ARTEFACTS / "narrow.png", full_page=True)
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    before = server.explorer.measurements.version
    page.goto(f"{server.address}?vocab=1e9")
    assert "vocab: expected" in page.locator("body > .complaint:not(#gone)").inner_text()
    page.fill("#dim", "5")  # below its range: said, and not asked for
    assert page.locator("#wrong").inner_text().startswith("d dimension:")
    page.get_by_role("button", name="Measure", exact=True).click()
    page.fill("#dim", "200")
    settle(page)
    # Nothing was measured under an error: what was asked for later has been answered by now.
    assert server.explorer.measurements.version == before
    assert not page.locator("#wrong").is_visible()
    assert page.locator("body > .complaint:not(#gone)").count() == 0
    visit(page, f"{server.address}?embedding=orthonormal")
    assert "at least vocab" in page.locator("#prediction").inner_text()
    assert narrow.errors == []
    page.close()


def test_old_answers_are_not_drawn(server: Running, seen: Watched):
    """One that was held up on its way must not take the place of a newer one."""
    page = seen.page
    visit(page, f"{server.address}?vocab=500")
    held: list[Route] = []
    page.route("**/map.json?vocab=600&**moving=1", lambda route: held.append(route))
    page.fill("#vocab", "600")
    until(page, lambda: held)
    page.fill("#vocab", "8000")
    settle(page)
    fine = page.evaluate("document.querySelector('#map').data[0].z")
    with page.expect_request_finished(lambda one: one.url == held[0].request.url):
        held[0].continue_()
    page.evaluate("fetch('/jobs').then((answer) => answer.text())")  # a whole answer later
    assert page.evaluate("document.querySelector('#map').data[0].z") == fine


def test_points_of_another_setting_are_not_on_the_curve(server: Running, seen: Watched):
    spec = read_state({"vocab": 64, "dim": 30, "length": 4, "samples": 300}).spec
    with Store(server.explorer.store) as store:
        store.add([Trial(spec, seed, "ok", (Step("V2", 0.5, 1.0, 0.5),)) for seed in range(3)])
    page = seen.page
    visit(page, f"{server.address}?vocab=64&dim=30&length=4&samples=300")
    assert page.locator("#curve").get_attribute("data-points") == "1"
    page.fill("#samples", "5000")  # the same curve
    until(page, "Number(document.querySelector('#map').dataset.took) > 0")
    assert page.locator("#curve").get_attribute("data-points") == "1"
    page.fill("#dim", "31")
    until(page, "document.querySelector('#curve').dataset.points === '0'")
    settle(page)
    assert page.locator("#curve").get_attribute("data-points") == "0"


def test_cancel_buttons_stay_where_they_are(server: Running, seen: Watched):
    """Progress is put in its place; the button keeps the focus, and a slow press works."""
    page = seen.page
    visit(page, f"{server.address}?vocab=512&dim=64&length=256&samples=200000")
    page.get_by_role("button", name="Measure", exact=True).click()
    button = page.locator("#jobs li.running button")
    button.wait_for()
    button.focus()
    wait_for_polls(seen, 3)
    assert page.evaluate("document.activeElement.id").startswith("cancel-")
    box = button.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    wait_for_polls(seen, 2)
    page.mouse.up()
    page.locator("#jobs li.cancelled").first.wait_for()


def wait_for_polls(seen: Watched, count: int) -> None:
    """Until the page has asked so many times more how far measurements are; all but one of these
    have been answered then."""

    def asked() -> int:
        return sum("/jobs?known=" in url for url in seen.requests)

    before = asked()
    until(seen.page, lambda: asked() > before + count)


def test_a_tap_puts_the_cross_there_and_any_contour_is_drawn(server: Running, browser: Browser):
    page = open_page(browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    visit(page, f"{server.address}?target=0.555")
    box = page.locator("#map .nsewdrag").first.bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + 0.8 * box["width"], box["y"] + 0.2 * box["height"])
    settle(page)
    assert int(numbers(page)["dim"]) > 400
    assert int(numbers(page)["samples"]) > 50_000
    page.context.close()


def test_a_server_that_is_gone_is_said_to_be(tmp_path: Path, browser: Browser):
    page = open_page(browser)
    with running(tmp_path) as server:
        visit(page, server.address)
        assert not page.locator("#gone").is_visible()
    page.fill("#dim", "300")
    page.locator("#gone").wait_for()
    page.close()


def brightness(color: str) -> float:
    return sum(int(part) for part in re.findall(r"\d+", color)[:3]) / 765


def test_the_planner(server: Running, seen: Watched):
    page = seen.page
    page.goto(f"{server.address}plan")
    page.locator("#trade[data-drawn]").wait_for()
    assert page.locator("#trade .scatterlayer path.point").count() >= 3
    page.fill("#facts", "500")
    page.fill("#length", "16")
    page.select_option("#training", "three-steps")
    page.get_by_role("button", name="Plan").click()
    page.locator("td", has_text=re.compile("^500$")).first.wait_for()
    page.locator("#trade[data-drawn]").wait_for()
    assert "mnemoscope plan --facts 500 --length 16" in page.locator("pre").inner_text()
    assert {"theory"} <= set(page.locator(".basis").all_inner_texts())
    page.screenshot(path=ARTEFACTS / "plan.png", full_page=True)
    link = page.url
    assert "facts=500" in link
    page.goto(link)
    page.locator("#trade[data-drawn]").wait_for()
    assert page.locator("td", has_text=re.compile("^500$")).count() >= 3
    page.fill("#target", "2")
    page.get_by_role("button", name="Plan").click()
    page.locator("#answer .complaint").wait_for()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [1300, 390])
def test_the_switch_moves_the_map(server: Running, browser: Browser, width: int):
    """At a glance: the whole map brightens, and what was the map's contour is now dotted."""
    seen = Watched(browser, width, 900)
    page = seen.page
    visit(page, server.address)
    page.click("#understood")
    before = page.evaluate("document.querySelector('#map').data.slice(0, 3).map((trace) => trace.z)")
    switch = page.locator(".switch")
    place, map_ = switch.bounding_box(), page.locator("#map").bounding_box()
    assert place is not None
    assert map_ is not None
    assert place["y"] + place["height"] <= map_["y"] + 1
    assert place["width"] <= width
    switch.get_by_text("trained to the end").click()
    settle(page)
    after = page.evaluate("document.querySelector('#map').data.slice(0, 3).map((trace) => trace.z)")
    assert share(after[0]) > share(before[0]) + 0.03
    assert after[2] == before[0]
    assert before[2] == after[0]
    assert "storage" in page.locator("#map .annotation-text").all_text_contents()
    assert "--then adamw" in page.locator("#command").inner_text()
    assert "training=trained" in page.url
    page.screenshot(path=ARTEFACTS / f"trained_{width}.png", full_page=True)
    page.reload()
    settle(page)
    assert page.locator("input[name=training][value=trained]").is_checked()
    page.locator("input[name=training][value=trained]").press("ArrowLeft")  # by keys, too
    settle(page)
    assert "training=three-steps" in page.url
    assert seen.errors == []
    page.close()
