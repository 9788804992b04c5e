"use strict";
// Runs before the page is drawn, so that a dark page does not flash white.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    try { return localStorage.getItem("mnemoscope-theme"); } catch { return null; }
  };
  const apply = () => {
    root.dataset.theme = kept() ?? (system.matches ? "dark" : "light");
    document.dispatchEvent(new Event("themed"));
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const other = root.dataset.theme === "dark" ? "light" : "dark";
      try { localStorage.setItem("mnemoscope-theme", other); } catch { /* only for this visit */ }
      root.dataset.theme = other;
      document.dispatchEvent(new Event("themed"));
    });
  });

  // Show that the server is gone until it answers again.
  window.reachable = (there) => { document.getElementById("gone").hidden = there; };
  document.addEventListener("htmx:sendError", () => window.reachable(false));
  document.addEventListener("htmx:afterOnLoad", () => window.reachable(true));

  // The colours of figures, from the style sheet.
  window.palette = () => {
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue(name).trim();
    return { ink: of("--ink"), soft: of("--soft"), line: of("--line"), paper: of("--paper"),
      accent: of("--accent"), warm: of("--warm") };
  };
  window.figureLayout = (more) => {
    const { ink, line, paper } = window.palette();
    return { paper_bgcolor: paper, plot_bgcolor: paper,
      font: { color: ink, family: "system-ui, sans-serif", size: innerWidth < 640 ? 10 : 12 },
      margin: { l: 62, r: 16, t: 14, b: 46 }, hoverlabel: { bgcolor: paper, bordercolor: line },
      ...more };
  };
})();
