// The explorer's two figures, for Plotly, from the server's answer, which they do not change.

const ticks = (low, high, firsts) => {
  const marks = [];
  for (let ten = Math.floor(Math.log10(low)); ten <= Math.ceil(Math.log10(high)); ten++) {
    for (const first of firsts) {
      const at = first * 10 ** ten;
      if (at >= low / 1.2 && at <= high * 1.2) marks.push(at);
    }
  }
  return { tickvals: marks, ticktext: marks.map((x) => x.toLocaleString("en")) };
};
const axis = (side, firsts = innerWidth < 640 ? [1] : [1, 2, 5]) => ({ type: "log",
  title: { text: side.label }, fixedrange: true, gridcolor: palette().line, zeroline: false,
  automargin: true, range: [Math.log10(side.values[0]), Math.log10(side.values.at(-1))],
  ...ticks(side.values[0], side.values.at(-1), firsts) });

// Lines between cells of different regimes, and a place near each region's middle for its name.
function regions(diagram) {
  const edge = (values, at) => at < 0 ? values[0] : at + 1 >= values.length ? values.at(-1)
    : Math.sqrt(values[at] * values[at + 1]);
  const x = [], y = [], places = new Map();
  const grid = diagram.regimes, X = diagram.x.values, Y = diagram.y.values;
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
    const half = (k) => cells.map((cell) => cell[k]).sort((a, b) => a - b)[cells.length >> 1];
    const [mc, mr] = [half(0), half(1)];
    const far = ([c, r]) => (c - mc) ** 2 + 2 * (r - mr) ** 2;
    return cells.reduce((a, b) => (far(a) <= far(b) ? a : b));
  };
  const names = [...places].filter(([, cells]) => cells.length > 0.03 * X.length * Y.length)
    .map(([name, cells]) => {
      const [c, r] = middle(cells);
      // Near an edge, a name is aligned inwards.
      const side = (at, count) => (at < 0.15 * count ? 0 : at > 0.85 * count ? 2 : 1);
      return { x: Math.log10(X[c]), y: Math.log10(Y[r]), text: diagram.laws[diagram.names[name]].name,
        xanchor: ["left", "center", "right"][side(c, X.length)],
        yanchor: ["bottom", "middle", "top"][side(r, Y.length)], showarrow: false,
        bgcolor: "rgba(255,255,255,0.72)", font: { size: 11, color: "#1b1f24" } };
    });
  return { x, y, names };
}

// The map, with a cross at these two numbers.
export function mapFigure(diagram, x, N) {
  const lines = regions(diagram);
  const cross = { x: [x], y: [N] };
  const mark = (size, width, color) => ({ type: "scatter", mode: "markers", ...cross,
    hoverinfo: "skip", cliponaxis: false,
    marker: { symbol: "cross-thin", size, line: { width, color } } });
  const data = [
    { type: "heatmap", x: diagram.x.values, y: diagram.y.values, z: diagram.accuracy, zmin: 0, zmax: 1,
      colorscale: "Viridis", zsmooth: "best", hoverinfo: "none",
      colorbar: { thickness: 10, title: { text: "accuracy", side: "right" } } },
    { type: "contour", x: diagram.x.values, y: diagram.y.values, z: diagram.accuracy, showscale: false,
      autocontour: false, hoverinfo: "skip", name: `accuracy ${diagram.target}`,
      contours: { start: diagram.target, end: diagram.target, size: 1, coloring: "none" },
      line: { color: "#fff", width: 2.5, dash: "dash" } },
    { type: "contour", x: diagram.x.values, y: diagram.y.values, z: diagram.other, showscale: false,
      autocontour: false, hoverinfo: "skip", name: "after the other training",
      contours: { start: diagram.target, end: diagram.target, size: 1, coloring: "none" },
      line: { color: "rgba(255,255,255,0.75)", width: 1.5, dash: "dot" } },
    { type: "scatter", mode: "lines", x: lines.x, y: lines.y, hoverinfo: "skip",
      line: { color: "rgba(140,140,140,0.9)", width: 1 } },
    mark(18, 5, "#fff"), mark(16, 2.5, palette().warm),
  ];
  const layout = figureLayout({ xaxis: axis(diagram.x), yaxis: axis(diagram.y), showlegend: false,
    annotations: lines.names, hovermode: false, dragmode: false });
  return { data, layout };
}

// Accuracy against N, with measured points and their intervals, and dotted lines at the cross' N and
// at the contour's accuracy.
export function curveFigure(diagram, points, N) {
  const { accent, warm, soft } = palette();
  const names = ["three steps", "trained"];
  if (diagram.training === "trained") names.reverse();
  const side = { label: "N, samples", values: diagram.y.values };
  const data = [
    { type: "scatter", mode: "lines", name: names[1], x: diagram.curve.samples, y: diagram.curve.other,
      line: { color: soft, width: 1.5, dash: "dot" },
      hovertemplate: `N = %{x:,}<br>${names[1]} %{y:.3f}<extra></extra>` },
    { type: "scatter", mode: "lines", name: names[0], x: diagram.curve.samples,
      y: diagram.curve.accuracy, line: { color: accent, width: 2.5 },
      hovertemplate: "N = %{x:,}<br>predicted %{y:.3f}<extra></extra>" },
    { type: "scatter", mode: "markers", name: "measured", x: points.map((point) => point.samples),
      y: points.map((point) => point.mean), marker: { color: warm, size: 8 },
      error_y: { type: "data", symmetric: false, color: warm, thickness: 1.5,
        array: points.map((point) => (point.high ?? point.mean) - point.mean),
        arrayminus: points.map((point) => point.mean - (point.low ?? point.mean)) },
      text: points.map((point) => `${point.seeds} seed${point.seeds > 1 ? "s" : ""}`),
      hovertemplate: "N = %{x:,}<br>measured %{y:.3f}, %{text}<extra></extra>" },
  ];
  const line = (more) => ({ type: "line", line: { color: soft, width: 1, dash: "dot" }, ...more });
  const layout = figureLayout({ xaxis: axis(side, [1]), hovermode: "closest",
    yaxis: { range: [-0.03, 1.03], title: { text: "accuracy" }, gridcolor: palette().line,
      zeroline: false, fixedrange: true },
    margin: { l: 62, r: 16, t: 34, b: 46 }, dragmode: false,
    shapes: [line({ xref: "paper", x0: 0, x1: 1, y0: diagram.target, y1: diagram.target }),
      line({ yref: "paper", y0: 0, y1: 1, x0: N, x1: N })],
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, showlegend: true });
  return { data, layout };
}
