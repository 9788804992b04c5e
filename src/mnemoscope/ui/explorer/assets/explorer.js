import { curveFigure, mapFigure } from "./figures.js";

const byId = (id) => document.getElementById(id);
const form = byId("state"), map = byId("map"), curve = byId("curve"), under = byId("under");
// At most one request at a time, and one in PACE milliseconds; the next waits twice as long as the
// last answer took, so that a busy server is not asked faster than it answers. REST milliseconds
// after the last move the page requests the fine diagram and the full prediction.
const PACE = 60, REST = 180;
let shown = null, busy = false, wanted = false, next = 0, resting = null;
// The last valid state, as a query string; the whole page shows this state.
let words = "";
// Measured points, and their setting: everything but N, the contour and the axis.
let measured = { of: "", points: [] };

const value = (name) => Number(byId(name).value);
const settingOf = (text) => {
  const query = new URLSearchParams(text);
  for (const name of ["samples", "target", "x"]) query.delete(name);
  return query.toString();
};

// ---- numbers and sliders ---------------------------------------------------------------------
// Three digits are finer than a slider's step.
const rounded = (x) => {
  const ten = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, x))) - 2);
  return Math.round(x / ten) * ten;
};
const sliders = new Map();
for (const slider of form.querySelectorAll("input[type=range][data-for]")) {
  const name = slider.dataset.for, number = byId(name);
  const low = Number(slider.dataset.low), high = Number(slider.dataset.high);
  const optional = slider.dataset.optional === "1";  // the left end is 0
  const place = () => {
    const x = Number(number.value);
    const share = Math.log(Math.max(x, low) / low) / Math.log(high / low);
    slider.value = optional && x < low ? 0 : Math.max(optional ? 1 : 0, 1000 * share);
    slider.setAttribute("aria-valuetext", number.value);
  };
  const set = (x) => {
    number.value = optional && x < low / 1.05 ? 0 : Math.min(high, Math.max(low, x));
    place();
  };
  // By about a tenth, and at least by one.
  const nudge = (factor) => {
    const x = Number(number.value);
    const to = rounded((x || low / factor) * factor);
    set(to === x ? x + Math.sign(factor - 1) : to);
    moved();
  };
  slider.addEventListener("input", () => {
    const at = Number(slider.value);
    const x = at >= 1000 ? high : rounded(low * (high / low) ** (at / 1000));
    number.value = optional && at === 0 ? 0 : Math.min(high, Math.max(low, x));
    slider.setAttribute("aria-valuetext", number.value);
    moved();
  });
  slider.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    nudge(1.1 ** way);
  });
  place();
  sliders.set(name, { place, set, nudge });
}
// The exponent's slider is linear: its number is its place. Probabilities of one's own have none.
const zipf = byId("zipf"), zipfSlider = byId("zipf-slider");
zipfSlider?.addEventListener("input", () => { zipf.value = zipfSlider.value; moved(); });
zipf?.addEventListener("input", () => { zipfSlider.value = zipf.value; });
form.addEventListener("input", (event) => {
  if (event.target.type === "range") return;
  for (const slider of sliders.values()) slider.place();
  moved();
});
// The switch stands above the map, outside the form that it belongs to.
for (const side of document.querySelectorAll("input[name=training]")) {
  side.addEventListener("change", () => moved());
}
form.addEventListener("submit", (event) => event.preventDefault());

const label = (field) => form.querySelector(`label[for=${field.id}]`).textContent.trim();

function complain(text) {
  byId("wrong").textContent = text;
  byId("wrong").hidden = !text;
}

function moved(first = false) {
  byId("activation").closest(".field").hidden = value("width") === 0 && byId("x").value !== "width";
  const wrong = form.querySelector("input:invalid");
  complain(wrong ? `${label(wrong)}: ${wrong.validationMessage}` : "");
  if (wrong) return;  // the page keeps the last valid state
  // The error about the address no longer applies once something else was chosen.
  if (!first) document.querySelector("body > .complaint:not(#gone)")?.remove();
  words = new URLSearchParams(new FormData(form)).toString();
  history.replaceState(null, "", `/?${words}`);
  for (const [id, address] of [["table", "/map.csv"], ["data", "/explorer.json"], ["script", "/map.sh"]]) {
    byId(id).href = `${address}?${words}`;
  }
  ask();
  clearTimeout(resting);
  resting = setTimeout(rest, REST);
}

// ---- asking ----------------------------------------------------------------------------------
async function fetchJson(address) {
  let answer;
  try {
    answer = await fetch(address);
  } catch {
    reachable(false);
    throw new Error("The server does not answer.");
  }
  reachable(true);
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.message);
  return content;
}

async function ask() {
  if (busy) { wanted = true; return; }
  busy = true;
  wanted = false;
  const pause = next - performance.now();
  if (pause > 0) await new Promise((done) => setTimeout(done, pause));
  const asked = performance.now(), now = words;
  let answered = asked;
  try {
    // If the fine diagram came first, do not replace it with the coarse one.
    if (map.dataset.settled !== now) {
      const diagram = await fetchJson(`/map.json?${now}&moving=1`);
      answered = performance.now();
      if (map.dataset.settled !== words) {
        show(diagram);
        map.dataset.took = (performance.now() - asked).toFixed(1);
      }
    }
  } catch (error) {
    complain(error.message);
  }
  next = Math.max(asked + PACE, answered + 2 * (answered - asked));
  busy = false;
  if (wanted) ask();
}

async function rest() {
  const now = words;
  htmx.ajax("GET", `/prediction?${now}`, "#prediction");
  try {
    const [fine] = await Promise.all([fetchJson(`/map.json?${now}`), fetchMeasured(now)]);
    if (now !== words) return;  // the state has changed since
    map.dataset.settled = now;
    show(fine);
  } catch (error) {
    complain(error.message);
  }
}

let requests = 0;
async function fetchMeasured(now) {
  const request = ++requests;
  const answer = await fetchJson(`/measured.json?${now}`);
  if (request !== requests) return;  // a later request is newer
  measured = { of: settingOf(now), points: answer.points };
  if (shown) drawCurve();
}

// ---- drawing ---------------------------------------------------------------------------------
const PLAIN = { responsive: true, displayModeBar: false };

function show(diagram) {
  shown = diagram;
  const { data, layout } = mapFigure(diagram, value(diagram.x.field), value("samples"));
  Plotly.react(map, data, layout, PLAIN);
  drawCurve();
  describe(null);
  tellCrossing();
}

function drawCurve() {
  const points = measured.of === settingOf(words) ? measured.points : [];
  const { data, layout } = curveFigure(shown, points, value("samples"));
  Plotly.react(curve, data, layout, PLAIN);
  curve.dataset.points = String(points.length);
}

function tellCrossing() {
  const place = byId("crossing");
  if (!place || !shown) return;
  const N = shown.crossing;
  const text = N === null ? "not reached on this map"
    : N <= shown.y.values[0] ? `N of ${N.toLocaleString("en")} or fewer`
      : `N = ${N.toLocaleString("en")}`;
  place.textContent = `theory: ${text}`;
}

// ---- the regime under the pointer ------------------------------------------------------------
function nearest(x, y) {
  const closest = (values, to) => values.reduce((best, value, at) =>
    (Math.abs(Math.log(value / to)) < Math.abs(Math.log(values[best] / to)) ? at : best), 0);
  return [closest(shown.x.values, x), closest(shown.y.values, y)];
}

let described = "";
function describe(cell) {
  if (cell === null) {
    described = "";
    under.textContent = byId("x").value === "width" && value("width") === 0
      ? "The cross has no MLP, m = 0, and so is not on this map."
      : "Hover over the map to read what limits recall; click to move the cross.";
    return;
  }
  const [c, r] = cell;
  const law = shown.laws[shown.names[shown.regimes[r][c]]];
  const right = shown.accuracy[r][c];
  const place = `${shown.x.label.split(",")[0]} = ${shown.x.values[c].toLocaleString("en")}, N = ` +
    `${shown.y.values[r].toLocaleString("en")}: accuracy ${right === null ? "–" : right.toFixed(2)}, `;
  if (place + law.name === described) return;
  described = place + law.name;
  const bold = document.createElement("b");
  bold.textContent = law.name;
  under.replaceChildren(place, bold, `: ${law.words}`);
  if (law.formula) {
    const span = document.createElement("span");
    span.className = "formula";
    span.innerHTML = law.formula;  // our own text, from the server's table of laws
    under.append(". Recall needs ", span);
  }
}

// The pointer's position in the units of the axes.
function pointed(event) {
  if (!shown) return null;
  const { xaxis, yaxis } = map._fullLayout;
  const box = map.getBoundingClientRect();
  const x = 10 ** xaxis.p2l(event.clientX - box.left - xaxis._offset);
  const y = 10 ** yaxis.p2l(event.clientY - box.top - yaxis._offset);
  const inside = (side, at) => at >= side.values[0] / 1.01 && at <= side.values.at(-1) * 1.01;
  return inside(shown.x, x) && inside(shown.y, y) ? [x, y] : null;
}
map.addEventListener("pointermove", (event) => {
  const at = pointed(event);
  if (at) describe(nearest(...at));
});
map.addEventListener("pointerleave", () => { if (shown) describe(null); });
// Pointer down and up, since a tap makes no click here; Plotly may move the target of the second.
let pressed = null;
map.addEventListener("pointerdown", (event) => { pressed = [event.clientX, event.clientY]; }, true);
window.addEventListener("pointerup", (event) => {
  const from = pressed, at = from && pointed(event);
  pressed = null;
  if (!at || Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 8) return;
  sliders.get(shown.x.field).set(rounded(at[0]));
  sliders.get("samples").set(rounded(at[1]));
  moved();
}, true);
map.addEventListener("keydown", (event) => {
  const way = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 }[event.key];
  if (!way || !shown) return;
  event.preventDefault();
  const name = event.key === "ArrowLeft" || event.key === "ArrowRight" ? shown.x.field : "samples";
  sliders.get(name).nudge((event.shiftKey ? 1.5 : 1.1) ** way);
});

// ---- measurements: their list is the server's; the curve follows it ----------------------------
byId("order").addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "order" && !form.reportValidity()) event.preventDefault();
});
let finished = "";
const follow = () => {
  const now = byId("finished")?.dataset.finished ?? "";
  if (now !== finished) {
    finished = now;
    fetchMeasured(words).catch((error) => complain(error.message));
  }
  tellCrossing();
};
document.body.addEventListener("htmx:afterSettle", follow);
document.body.addEventListener("htmx:oobAfterSwap", follow);

// ---- taking it along ---------------------------------------------------------------------------
async function copy(button, text) {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = text;  // if copying is not allowed, show it
    return;
  }
  setTimeout(() => { button.textContent = name; }, 1500);
}
byId("link").addEventListener("click", () => copy(byId("link"), location.href));
byId("figure").addEventListener("click", () => {
  if (!shown) return;
  const { data, layout } = mapFigure(shown, value(shown.x.field), value("samples"));
  const query = new URLSearchParams(words);
  const held = [["V", "vocab"], ["d", "dim"], ["L", "length"], ["m", "width"]]
    .filter(([, name]) => name !== shown.x.field && query.get(name) !== "0")
    .map(([letter, name]) => `${letter} = ${query.get(name)}`);
  if (!zipf) held.push(`tokens by ${byId("law").value}`);
  else if (Number(zipf.value) > 0) held.push(`tokens by zipf:${zipf.value}`);
  const how = shown.training === "trained" ? "trained to the end" : "after three steps";
  layout.title = { text: `Predicted accuracy ${how}, ${held.join(", ")}; dashed: ${shown.target}`,
    font: { size: 14 } };
  layout.margin = { ...layout.margin, t: 44 };
  Plotly.downloadImage({ data, layout }, { format: "svg", filename: "map", width: 900, height: 640 });
});

// ---- the first visit ---------------------------------------------------------------------------
const welcome = byId("welcome");
const known = () => { try { return localStorage.getItem("mnemoscope-known"); } catch { return null; } };
welcome.hidden = known() !== null;
byId("understood").addEventListener("click", () => {
  welcome.hidden = true;
  try { localStorage.setItem("mnemoscope-known", "1"); } catch { /* shown again next time */ }
});

document.addEventListener("themed", () => { if (shown) show(shown); });
moved(true);
