"""The pages as text: the frame that all share, the explorer, and the plan's form."""

from html import escape

from mnemoscope.spec import LETTERS, Retrieval
from mnemoscope.ui.explorer.state import ACROSS, CHOICES, RANGES, State

SEEDS_AT_MOST = 32
TITLES = {
    "vocab": "tokens",
    "dim": "dimension",
    "length": "sequence length",
    "samples": "training samples",
    "width": "MLP width",
}
GLYPH = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle "
    "cx='8' cy='8' r='6' fill='none' stroke='%230a7' stroke-width='3'/%3E%3C/svg%3E"
)

WORDS = """<details><summary>What the words mean</summary><dl>
<dt>m</dt><dd>hidden units of a fixed random MLP before the values; 0 leaves it out</dd>
<dt>activation</dt><dd>the MLP's; hermite2 and hermite3 are polynomials, and hold the most</dd>
<dt>embedding</dt><dd>gaussian: random; sphere: random of length one; orthonormal: without overlaps,
which needs d of V at least</dd>
<dt>trigger</dt><dd>the vector that marks the informative token: in the keys alone, or added to the
values too</dd>
<dt>mean bias, noise, overlap</dt><dd>attention is drawn elsewhere</dd>
<dt>interference, mlp noise</dt><dd>stored pairs disturb each other</dd>
<dt>unseen</dt><dd>too few samples to have met every token</dd>
<dt>dotted lines</dt><dd>the cross' N, and the contour's accuracy</dd>
</dl></details>"""


def frame(title: str, body: str, token: str, *, here: str, script: str) -> str:
    """A whole page."""
    links = "".join(
        f'<a href="{address}"{" aria-current=page" if address == here else ""}>{name}</a>'
        for address, name in (("/", "Explore"), ("/plan", "Plan"))
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="htmx-config" content='{{"includeIndicatorStyles": false, "allowEval": false}}'>
<link rel="icon" href="{GLYPH}">
<title>{title} – Mnemoscope</title>
<link rel="stylesheet" href="/assets/explorer.css">
<script src="/assets/theme.js"></script>
<script src="/assets/htmx.min.js" defer></script>
<script src="/assets/plotly.min.js" defer></script>
<script src="/assets/{script}" type="module"></script>
</head>
<body hx-headers='{{"X-Mnemoscope-Token": "{token}"}}'>
<header class="top"><h1>Mnemoscope</h1><nav aria-label="Pages">{links}</nav>
<button type="button" id="theme" aria-label="Light or dark">◐</button></header>
<p id="gone" class="complaint" role="alert" hidden>The server does not answer. Was it stopped? Start
<code>mnemoscope explore</code> again: what was finished is kept.</p>
{body}
</body>
</html>
"""


def explorer(state: State, complaint: str, token: str) -> str:
    """The page with the sliders."""
    notice = f'<p class="complaint" role="alert">{escape(complaint)}</p>' if complaint else ""
    body = f"""{notice}<section id="welcome" class="welcome" hidden aria-label="What this is">
<p>Every point of the map is a one-layer transformer that has to find one informative token among L
and name its label; its colour is the share it gets right after three gradient steps, as theory
predicts it. The dashed line is where that share is {state.target:g}: drag L to the right and
watch the line climb, since longer sequences need more samples. The names on the map say what gives
way there, and <em>Measure</em> trains the model under the cross to see whether theory is
right.</p><button type="button" id="understood">Understood</button></section>
<main class="explorer">
<form id="state" class="controls" aria-label="Setting">
{"".join(_size(name, state) for name in RANGES)}
{"".join(_choice(name, CHOICES[name], state.values[name]) for name in CHOICES)}
{_choice("x", ACROSS, state.x, "across the map")}
<div class="field"><label for="target">contour at accuracy</label>
<input type="number" id="target" name="target" min="0.01" max="0.99" step="any" required
 value="{state.target}"></div>
{WORDS}
</form>
<section class="map" aria-label="Predicted map">
<div id="map" class="plot" tabindex="0" role="application" aria-roledescription="map"
 aria-label="Predicted accuracy. Arrow keys move the cross."></div>
<p id="under"></p>
<p id="wrong" class="complaint" role="alert" hidden></p>
</section>
<section class="beside" aria-label="Accuracy against samples">
<div id="curve" class="plot low"></div>
<div id="told" aria-live="polite"></div>
</section>
<section class="measure" aria-label="Measure">
<form hx-post="/measure" hx-target="#jobs" hx-include="#state" hx-sync="#jobs:replace" id="order">
<label>measure <select name="what"><option value="point">this setting</option>
<option value="curve">a curve: seven N about the contour</option></select></label>
<label>seeds <input type="number" name="seeds" value="8" min="1" max="{SEEDS_AT_MOST}" required>
</label>
<button type="submit">Measure</button>
</form>
<div id="jobs" hx-get="/jobs" hx-trigger="load"></div>
</section>
<section class="take" aria-label="Take it along">
<h2>Take it along</h2>
<p><button type="button" id="link">Copy the link</button>
<button type="button" id="figure">Figure (SVG)</button>
<a id="table" class="button" download="map.csv" href="/map.csv">Map (CSV)</a>
<a id="data" class="button" download="explorer.json" href="/explorer.json">All data (JSON)</a>
<a id="script" class="button" download="map.sh" href="/map.sh">Command</a></p>
<p>The command, to which <code>uv run</code> belongs in a copy of the project:</p>
<pre id="command">{escape(state.command)}</pre>
</section>
</main>"""
    return frame("Explore", body, token, here="/", script="explorer.js")


def _size(name: str, state: State) -> str:
    low, high = RANGES[name]
    optional = ' data-optional="1"' if name == "width" else ""
    least = 0 if name == "width" else low
    words = f"<b>{LETTERS[name]}</b> {TITLES[name]}"
    described = escape(Retrieval.model_fields[name].description or "")
    return f"""<div class="field size" title="{described}">
<label for="{name}">{words}</label>
<input type="number" id="{name}" name="{name}" min="{least}" max="{high}" step="1" required
 value="{state.values[name]}">
<input type="range" data-for="{name}" min="0" max="1000" step="1" data-low="{low}"
 data-high="{high}"{optional} aria-label="{TITLES[name]}"></div>
"""


def _choice(name: str, names: tuple[str, ...], chosen: str, label: str = "") -> str:
    options = "".join(
        f'<option value="{one}"{" selected" if one == chosen else ""}>'
        f"{LETTERS[one] + ', ' + one if name == 'x' else one}</option>"
        for one in names
    )
    return (
        f'<div class="field"><label for="{name}">{label or name}</label>'
        f'<select id="{name}" name="{name}">{options}</select></div>\n'
    )


def plan_form(words: dict[str, str], token: str) -> str:
    """The planner's page; the answer to what its address or its fields say comes a moment later."""
    fields = (
        ("facts", "facts to recall (leave empty to ask what a budget buys)", "10000"),
        ("length", "L: tokens among which each is hidden", "64"),
        ("target", "accuracy to reach", "0.95"),
        ("parameters", "parameters, at most (optional)", ""),
        ("tokens", "training tokens, at most (optional)", ""),
    )
    shown = words or {name: usual for name, _, usual in fields}
    inputs = "".join(
        f'<div class="field"><label for="{name}">{label}</label>'
        f'<input id="{name}" name="{name}" inputmode="decimal" autocomplete="off" '
        f'value="{escape(shown.get(name, ""))}"></div>\n'
        for name, label, _ in fields
    )
    body = f"""<main class="plan">
<form id="job" class="controls" action="/plan" hx-get="/plan/answer" hx-target="#answer"
 aria-label="Job">
<p>How large must a model be, and how long must it train, to recall so many facts? Say what the job
is; or leave the facts empty, give a budget, and see how many it can hold.</p>
{inputs}<div class="field"><button type="submit">Plan</button></div>
</form>
<section id="answer" aria-live="polite" aria-label="Answer" hx-get="/plan/answer"
 hx-trigger="load" hx-include="#job"></section>
</main>"""
    return frame("Plan", body, token, here="/plan", script="plan.js")
