"use strict";
// The page is readable before any of this runs. Plotly is large: it starts once the page
// is loaded, and a figure is drawn when it comes near the screen.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);

  for (const link of document.querySelectorAll("a.svg")) {
    link.href = link.closest("section").querySelector("img.still").src;
    link.hidden = false;
  }

  const narrow = () => window.innerWidth < 640;

  // Pixels on a phone: height of a panel, gap between panels, gap above the legend, height of a legend entry.
  const PANEL = 215, GAP = 100, BELOW = 70, NAME = 20;

  // On a phone, panels are stacked, with the legend below them.
  function stack(place, data, layout) {
    const numbers = Object.keys(layout).filter((name) => /^xaxis/.test(name)).map((n) => n.slice(5));
    const named = [...data, ...layout.shapes].filter((trace) => trace.showlegend && trace.name);
    const area = numbers.length * (PANEL + GAP) - GAP;
    const bottom = BELOW + NAME * (layout.showlegend ? named.length : 0);
    numbers.forEach((number, at) => {
      const top = 1 - (at * (PANEL + GAP)) / area;
      layout["xaxis" + number].domain = [0, 1];
      layout["yaxis" + number].domain = [Math.max(0, top - PANEL / area), top];
    });
    layout.margin.b = bottom;
    layout.legend.y = -BELOW / area;
    place.style.height = `${layout.margin.t + area + bottom}px`;
  }

  // Break text that is wider than `pixels` into lines; `size` is the font size.
  function wrap(text, pixels, size) {
    const most = Math.floor(pixels / (0.56 * size));
    return text.split(" ").reduce((wrapped, word) => {
      const line = wrapped.split("<br>").pop();
      return line.length + word.length + 1 > most ? `${wrapped}<br>${word}` : `${wrapped} ${word}`;
    });
  }

  function draw(place) {
    const { data, layout } = structuredClone(figures[place.dataset.study]);
    place.closest("figure").classList.add("live");
    const size = narrow() ? 10 : 12;
    // Width in pixels of the panel of an axis.
    const panelWidth = (axis) => {
      const [left, right] = narrow() ? [0, 1] : layout[axis.replace("x", "xaxis")].domain;
      return (place.clientWidth - 104) * (right - left);
    };
    let lines = 1;
    for (const note of layout.annotations) {
      if (/domain/.test(note.yref)) note.text = wrap(note.text, panelWidth(note.xref.split(" ")[0]), size);
      lines = Math.max(lines, note.text.split("<br>").length);
    }
    Object.assign(layout, {
      margin: { l: 64, r: 40, t: 15 + 15 * lines, b: 60 },
      font: { family: "system-ui, sans-serif", size },
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      legend: { orientation: "h", y: -0.22, yanchor: "top", tracegroupgap: 0 },
    });
    if (narrow()) stack(place, data, layout);
    const high = narrow() ? PANEL : place.clientHeight - 130;
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis/.test(name)) {
        const axis = layout[name];
        const pixels = name[0] === "y" ? high : panelWidth(name.replace("axis", ""));
        Object.assign(axis, { gridcolor: "#e6e9ed", linecolor: "#57606a", mirror: true });
        axis.automargin = true;
        // On a phone, tick labels of several lines would overlap: they become one vertical line each.
        if (narrow() && axis.ticktext?.some((text) => text.includes("<br>"))) {
          axis.ticktext = axis.ticktext.map((text) => text.replaceAll("<br>", " "));
          axis.tickangle = 90;
        }
        axis.title.text = wrap(axis.title.text, pixels, 1.2 * size);
      }
    }
    Plotly.newPlot(place, data, layout, { responsive: true, displaylogo: false });
  }

  function start() {
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) {
          watch.unobserve(entry.target);
          draw(entry.target.querySelector(".plot"));
        }
      }
    }, { rootMargin: "400px" });
    for (const figure of document.querySelectorAll("figure")) watch.observe(figure);
  }

  window.addEventListener("load", () => setTimeout(start, 50));
})();
