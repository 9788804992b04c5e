function draw() {
  const place = document.getElementById("trade");
  if (!place) return;
  const { data, layout } = JSON.parse(place.dataset.figure);
  for (const name of Object.keys(layout)) {
    if (/^[xy]axis/.test(name)) {
      Object.assign(layout[name], { gridcolor: palette().line, automargin: true, fixedrange: true });
    }
  }
  // Black becomes the theme's text colour.
  for (const trace of data) {
    for (const part of [trace.line, trace.marker, trace.marker && trace.marker.line]) {
      if (part && part.color === "#000000") part.color = palette().ink;
    }
  }
  Plotly.newPlot(place, data, figureLayout({ ...layout,
    margin: { l: 62, r: 16, t: 50, b: 46 }, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" } }),
    { responsive: true, displaylogo: false, displayModeBar: false });
  place.dataset.drawn = "1";
}
const form = document.getElementById("job");
document.body.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "answer") return;
  history.replaceState(null, "", `/plan?${new URLSearchParams(new FormData(form))}`);
  draw();
});
document.addEventListener("themed", draw);
draw();
