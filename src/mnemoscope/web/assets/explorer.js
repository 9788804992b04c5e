"use strict";
(() => {
  const form = document.getElementById("state");
  const map = document.getElementById("map");
  const curve = document.getElementById("curve");
  const under = document.getElementById("under");
  const byId = (id) => document.getElementById(id);
  // At most one request under way; the next waits PACE milliseconds, or as long as the last one
  // took, so that a server with many visitors is not asked faster than it answers. REST after the
  // last move the fine diagram is asked for, with theory's own word beside it.
  const PACE = 60, REST = 180;
  let shown = null, measured = [], busy = false, wanted = false, next = 0, resting = null;

  // ---- the state: in the form, and in the address --------------------------------------------
  const words = () => new URLSearchParams(new FormData(form));
  const value = (name) => Number(byId(name).value);

  // Three digits are finer than a slider's step.
  const rounded = (x) => {
    const ten = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, x))) - 2);
    return Math.round(x / ten) * ten;
  };

  const sliders = [...form.querySelectorAll("input[type=range]")];
  for (const slider of sliders) {
    const low = Number(slider.dataset.low), high = Number(slider.dataset.high);
    const number = byId(slider.dataset.for);
    const optional = slider.dataset.optional === "1";  // whose left end is 0
    slider.place = () => {
      const x = Number(number.value);
      const share = Math.log(Math.max(x, low) / low) / Math.log(high / low);
      slider.value = optional && x < low ? 0 : Math.max(optional ? 1 : 0, 1000 * share);
      slider.setAttribute("aria-valuetext", number.value);
    };
    slider.addEventListener("input", () => {
      const share = Number(slider.value) / 1000;
      const x = rounded(low * (high / low) ** share);
      number.value = optional && slider.value === "0" ? 0 : Math.min(high, Math.max(low, x));
      slider.setAttribute("aria-valuetext", number.value);
      moved();
    });
    slider.place();
  }
  form.addEventListener("input", (event) => {
    if (event.target.type === "range") return;
    for (const slider of sliders) slider.place();
    moved();
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  function moved() {
    if (!form.checkValidity()) {
      const wrong = form.querySelector(":invalid");
      under.textContent = `${wrong.name}: ${wrong.validationMessage}`;
      return;
    }
    byId("activation").closest(".field").hidden = value("width") === 0 && byId("x").value !== "width";
    history.replaceState(null, "", `/?${words()}`);
    for (const [id, address] of [["table", "/map.csv"], ["data", "/explorer.json"], ["script", "/map.sh"]]) {
      byId(id).href = `${address}?${words()}`;
    }
    ask();
    clearTimeout(resting);
    resting = setTimeout(rest, REST);
  }

  // ---- asking ---------------------------------------------------------------------------------
  async function fetchJson(address) {
    const answer = await fetch(address);
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.message);
    return told;
  }

  async function ask() {
    if (busy) { wanted = true; return; }
    busy = true;
    wanted = false;
    const pause = next - performance.now();
    if (pause > 0) await new Promise((done) => setTimeout(done, pause));
    const asked = performance.now(), now = words().toString();
    try {
      // The fine one may have come first: then this one would only blur it.
      const told = map.dataset.settled === now ? null : await fetchJson(`/map.json?${now}&moving=1`);
      if (told && map.dataset.settled !== now) {
        show(told);
        map.dataset.took = (performance.now() - asked).toFixed(1);
      }
    } catch (error) {
      under.textContent = error.message;
    }
    const done = performance.now();
    next = Math.max(asked + PACE, done + (done - asked));
    busy = false;
    if (wanted) ask();
  }

  async function rest() {
    htmx.trigger(document.body, "settled");
    const now = words().toString();
    try {
      const [fine, found] = await Promise.all(
        [fetchJson(`/map.json?${now}`), fetchJson(`/measured.json?${now}`)]);
      if (now !== words().toString()) return;  // it moved on meanwhile
      measured = found.points;
      map.dataset.settled = now;
      show(fine);
    } catch (error) {
      under.textContent = error.message;
    }
  }

  async function look() {
    const now = words().toString();
    const found = await fetchJson(`/measured.json?${now}`);
    if (now !== words().toString()) return;
    measured = found.points;
    if (shown) drawCurve();
  }

  // ---- drawing --------------------------------------------------------------------------------
  const ticks = (low, high, firsts) => {
    const found = [];
    for (let ten = Math.floor(Math.log10(low)); ten <= Math.ceil(Math.log10(high)); ten++) {
      for (const first of firsts) {
        const at = first * 10 ** ten;
        if (at >= low / 1.2 && at <= high * 1.2) found.push(at);
      }
    }
    return { tickvals: found, ticktext: found.map((x) => x.toLocaleString("en")) };
  };
  const axis = (side, firsts = innerWidth < 640 ? [1] : [1, 2, 5]) => ({ type: "log",
    title: { text: side.label }, fixedrange: true, gridcolor: palette().line, zeroline: false,
    automargin: true, range: [Math.log10(side.values[0]), Math.log10(side.values.at(-1))],
    ...ticks(side.values[0], side.values.at(-1), firsts) });

  // Lines between cells of different regimes, and a place near each region's middle for its name.
  function regions(told) {
    const edge = (values, at) => at < 0 ? values[0] : at + 1 >= values.length ? values.at(-1)
      : Math.sqrt(values[at] * values[at + 1]);
    const x = [], y = [], places = new Map();
    const grid = told.regimes, X = told.x.values, Y = told.y.values;
    grid.forEach((row, r) => row.forEach((name, c) => {
      if (c + 1 < row.length && row[c + 1] !== name) {
        x.push(edge(X, c), edge(X, c), null);
        y.push(edge(Y, r - 1), edge(Y, r), null);
      }
      if (r + 1 < grid.length && grid[r + 1][c] !== name) {
        x.push(edge(X, c - 1), edge(X, c), null);
        y.push(edge(Y, r), edge(Y, r), null);
      }
      if (!places.has(name)) places.set(name, []);
      places.get(name).push([c, r]);
    }));
    const middle = (cells) => {
      const half = (k) => cells.map((one) => one[k]).sort((a, b) => a - b)[cells.length >> 1];
      const [mc, mr] = [half(0), half(1)];
      const far = ([c, r]) => (c - mc) ** 2 + 2 * (r - mr) ** 2;
      return cells.reduce((a, b) => (far(a) <= far(b) ? a : b));
    };
    const names = [...places].filter(([, cells]) => cells.length > 0.015 * X.length * Y.length)
      .map(([name, cells]) => {
        const [c, r] = middle(cells);
        return { x: Math.log10(X[c]), y: Math.log10(Y[r]), text: told.laws[told.names[name]].name,
          showarrow: false, bgcolor: "rgba(255,255,255,0.72)", font: { size: 11, color: "#1b1f24" } };
      });
    return { x, y, names };
  }

  const cross = () => ({ x: [value(shown.x.field)], y: [value("samples")] });

  function show(told) {
    shown = told;
    const lines = regions(told);
    const { warm } = palette();
    const data = [
      { type: "heatmap", x: told.x.values, y: told.y.values, z: told.accuracy, zmin: 0, zmax: 1,
        colorscale: "Viridis", zsmooth: "best", hoverinfo: "none",
        colorbar: { thickness: 10, title: { text: "accuracy", side: "right" } } },
      { type: "contour", x: told.x.values, y: told.y.values, z: told.accuracy, showscale: false,
        autocontour: false, hoverinfo: "skip", name: `accuracy ${told.target}`,
        contours: { start: told.target, end: told.target, size: 1, coloring: "none" },
        line: { color: "#fff", width: 2.5, dash: "dash" } },
      { type: "scatter", mode: "lines", x: lines.x, y: lines.y, hoverinfo: "skip",
        line: { color: "rgba(0,0,0,0.45)", width: 1 } },
      { type: "scatter", mode: "markers", ...cross(), hoverinfo: "skip",
        marker: { symbol: "cross-thin", size: 18, line: { width: 5, color: "#fff" } } },
      { type: "scatter", mode: "markers", ...cross(), hoverinfo: "skip",
        marker: { symbol: "cross-thin", size: 16, line: { width: 2.5, color: warm } } },
    ];
    Plotly.react(map, data, figureLayout({ xaxis: axis(told.x), yaxis: axis(told.y),
      showlegend: false, annotations: lines.names, hovermode: "closest" }),
    { responsive: true, displayModeBar: false });
    map.dataset.drawn = String(Number(map.dataset.drawn || 0) + 1);
    drawCurve();
    say(nearest(value(told.x.field), value("samples")));
    tellCrossing();
  }

  function drawCurve() {
    const told = shown, { accent, warm, soft } = palette();
    const side = { label: "N, samples", values: told.y.values };
    const data = [
      { type: "scatter", mode: "lines", name: "predicted", x: told.curve.samples,
        y: told.curve.accuracy, line: { color: accent, width: 2.5 },
        hovertemplate: "N = %{x:,}<br>predicted %{y:.3f}<extra></extra>" },
      { type: "scatter", mode: "markers", name: "measured", x: measured.map((one) => one.samples),
        y: measured.map((one) => one.mean), marker: { color: warm, size: 8 },
        error_y: { type: "data", symmetric: false, color: warm, thickness: 1.5,
          array: measured.map((one) => (one.high ?? one.mean) - one.mean),
          arrayminus: measured.map((one) => one.mean - (one.low ?? one.mean)) },
        text: measured.map((one) => `${one.seeds} seed${one.seeds > 1 ? "s" : ""}`),
        hovertemplate: "N = %{x:,}<br>measured %{y:.3f}, %{text}<extra></extra>" },
    ];
    const line = (more) => ({ type: "line", line: { color: soft, width: 1, dash: "dot" }, ...more });
    const N = value("samples");
    Plotly.react(curve, data, figureLayout({ xaxis: axis(side, [1]),
      yaxis: { range: [-0.03, 1.03], title: { text: "accuracy" }, gridcolor: palette().line,
        zeroline: false, fixedrange: true },
      shapes: [line({ xref: "paper", x0: 0, x1: 1, y0: told.target, y1: told.target }),
        line({ yref: "paper", y0: 0, y1: 1, x0: N, x1: N })],
      legend: { x: 0.02, y: 0.98, bgcolor: "rgba(0,0,0,0)" } }),
    { responsive: true, displayModeBar: false });
    curve.dataset.points = String(measured.length);
  }

  function tellCrossing() {
    const place = byId("crossing");
    if (!place || !shown) return;
    const N = shown.crossing;
    place.textContent = N === null ? "theory: not reached on this map; "
      : `theory: N = ${N.toLocaleString("en")}; `;
  }

  // ---- the regime under the pointer -----------------------------------------------------------
  function nearest(x, y) {
    const closest = (values, to) => values.reduce((best, one, at) =>
      (Math.abs(Math.log(one / to)) < Math.abs(Math.log(values[best] / to)) ? at : best), 0);
    return [closest(shown.x.values, x), closest(shown.y.values, y)];
  }

  function say([c, r]) {
    const law = shown.laws[shown.names[shown.regimes[r][c]]];
    const right = shown.accuracy[r][c];
    under.replaceChildren();
    const bold = document.createElement("b");
    bold.textContent = law.name;
    under.append(`${shown.x.label.split(",")[0]} = ${shown.x.values[c].toLocaleString("en")}, N = ` +
      `${shown.y.values[r].toLocaleString("en")}: accuracy ${right === null ? "–" : right.toFixed(2)}, `);
    under.append(bold, `: ${law.words}`);
    if (law.formula) {
      const span = document.createElement("span");
      span.className = "formula";
      span.innerHTML = law.formula;  // our own words, from the server's table of laws
      under.append(". Recall needs ", span);
    }
  }

  // Where the pointer is, in the axes' own numbers.
  function pointed(event) {
    const { xaxis, yaxis } = map._fullLayout;
    const box = map.getBoundingClientRect();
    const x = 10 ** xaxis.p2l(event.clientX - box.left - xaxis._offset);
    const y = 10 ** yaxis.p2l(event.clientY - box.top - yaxis._offset);
    const inside = (side, at) => at >= side.values[0] / 1.01 && at <= side.values.at(-1) * 1.01;
    return inside(shown.x, x) && inside(shown.y, y) ? [x, y] : null;
  }
  map.addEventListener("pointermove", (event) => {
    const at = shown && pointed(event);
    if (at) say(nearest(...at));
  });
  map.addEventListener("pointerleave", () => {
    if (shown) say(nearest(value(shown.x.field), value("samples")));
  });
  map.addEventListener("click", (event) => {
    const at = shown && pointed(event);
    if (at) place(rounded(at[0]), rounded(at[1]));
  });
  map.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step || !shown) return;
    event.preventDefault();
    const by = event.shiftKey ? 1.5 : 1.1;
    place(rounded(value(shown.x.field) * by ** step[0]), rounded(value("samples") * by ** step[1]));
  });

  function place(x, y) {
    for (const [name, to] of [[shown.x.field, x], ["samples", y]]) {
      const number = byId(name);
      const slider = sliders.find((one) => one.dataset.for === name);
      const least = Number(slider.dataset.low);
      // A small number must move by at least one.
      const was = Number(number.value);
      number.value = Math.min(Number(number.max), Math.max(least, to));
      if (to > was && Number(number.value) === was) number.value = Math.min(Number(number.max), was + 1);
      slider.place();
    }
    moved();
  }

  // ---- measurements: their list is the server's; the curve follows it ---------------------------
  let version = "";
  document.body.addEventListener("htmx:afterSettle", () => {
    const list = document.querySelector("#jobs .jobs");
    if (list && list.dataset.version !== version) {
      version = list.dataset.version;
      look().catch((error) => { under.textContent = error.message; });
    }
    tellCrossing();
  });

  // ---- taking it along --------------------------------------------------------------------------
  async function copy(button, text) {
    const name = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = text;  // where copying is not allowed, it can be read
      return;
    }
    setTimeout(() => { button.textContent = name; }, 1500);
  }
  byId("link").addEventListener("click", () => copy(byId("link"), location.href));
  byId("figure").addEventListener("click", () => {
    Plotly.downloadImage(map, { format: "svg", filename: "map", width: 900, height: 620 });
  });

  // ---- the first visit --------------------------------------------------------------------------
  const welcome = byId("welcome");
  const known = () => { try { return localStorage.getItem("mnemoscope-known"); } catch { return null; } };
  welcome.hidden = location.search !== "" || known() !== null;
  byId("understood").addEventListener("click", () => {
    welcome.hidden = true;
    try { localStorage.setItem("mnemoscope-known", "1"); } catch { /* shown again next time */ }
  });

  document.addEventListener("themed", () => { if (shown) show(shown); });
  moved();
})();
