"use strict";
// The page is readable before any of this runs. Plotly is large: it is started once the page
// stands, and a figure is drawn when it comes near the screen.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);

  for (const link of document.querySelectorAll("a.svg")) {
    link.href = link.closest("section").querySelector("img.still").src;
    link.hidden = false;
  }

  const narrow = () => window.innerWidth < 640;

  // On a phone, panels that stand side by side go one below the other.
  function stack(place, layout) {
    const numbers = Object.keys(layout).filter((name) => /^xaxis/.test(name)).map((n) => n.slice(5));
    if (numbers.length < 2) return;
    numbers.forEach((number, at) => {
      const top = 1 - at / numbers.length;
      layout["xaxis" + number].domain = [0, 1];
      layout["yaxis" + number].domain = [top - 1 / numbers.length + (top < 1 ? 0 : 0.16), top];
    });
    place.style.height = "38rem";
  }

  function draw(place) {
    const { data, layout } = structuredClone(figures[place.dataset.study]);
    place.closest("figure").classList.add("live");
    Object.assign(layout, {
      margin: { l: 64, r: 40, t: 30, b: 60 },
      font: { family: "system-ui, sans-serif", size: narrow() ? 10 : 12 },
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      legend: { orientation: "h", y: narrow() ? -0.15 : -0.22, yanchor: "top" },
    });
    if (narrow()) stack(place, layout);
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis/.test(name)) {
        Object.assign(layout[name], { gridcolor: "#e6e9ed", linecolor: "#57606a", mirror: true });
        layout[name].automargin = true;
      }
    }
    Plotly.newPlot(place, data, layout, { responsive: true, displaylogo: false });
  }

  function start() {
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
    const watch = new IntersectionObserver((seen) => {
      for (const one of seen) {
        if (one.isIntersecting) {
          watch.unobserve(one.target);
          draw(one.target.querySelector(".plot"));
        }
      }
    }, { rootMargin: "400px" });
    for (const figure of document.querySelectorAll("figure")) watch.observe(figure);
  }

  window.addEventListener("load", () => setTimeout(start, 50));
})();
