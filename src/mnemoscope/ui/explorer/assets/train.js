// The page of a training: asks for its state twice a second, and draws what is new.
const form = document.getElementById("training");
const token = JSON.parse(document.body.getAttribute("hx-headers"))["X-Mnemoscope-Token"];
let seen = "", state = null, timer = 0;

const shares = { accuracy: "solid", old_accuracy: "dash", relation_accuracy: "dot" };
const config = { responsive: true, displaylogo: false, displayModeBar: false };

function drawCurves() {
  const steps = state.curve.map((check) => check.step);
  const { accent, warm, line } = palette();
  const data = [{ type: "scatter", mode: "lines", name: "loss", x: steps, y: state.curve.map((check) => check.loss),
    yaxis: "y2", line: { color: warm, width: 2 } }];
  for (const [name, dash] of Object.entries(shares)) {
    if (!state.curve.length || !(name in state.curve[0])) continue;
    data.push({ type: "scatter", mode: "lines", name: name.replace("_", " "), x: steps,
      y: state.curve.map((check) => check[name]), line: { color: accent, width: 2, dash } });
  }
  const side = { gridcolor: line, zeroline: false, fixedrange: true, automargin: true };
  Plotly.react("curves", data, figureLayout({ height: 300,
    xaxis: { ...side, title: { text: "step" } }, yaxis: { ...side, range: [-0.03, 1.03], title: { text: "share right" } },
    yaxis2: { ...side, type: "log", overlaying: "y", side: "right", showgrid: false, title: { text: "loss" } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, margin: { l: 62, r: 62, t: 34, b: 46 } }), config);
}

function drawHeads() {
  const map = state.map;
  if (!map) return Plotly.purge("heads");
  const right = map.answer === map.named ? "named right" : `named ${map.named}`;
  const places = map.tokens.map((_, place) => place);
  const plain = { fixedrange: true, automargin: true, showgrid: false, zeroline: false };
  Plotly.react("heads", [{ type: "heatmap", x: places, y: map.rows, z: map.weights, zmin: 0, zmax: 1, colorscale: "Viridis",
    hovertemplate: "%{y} looks at place %{x}: %{z:.2f}<extra></extra>", colorbar: { thickness: 10 } }],
  figureLayout({ height: 120 + 30 * map.rows.length, title: { text: `answer ${map.answer}, ${right}`, font: { size: 13 } },
    xaxis: { ...plain, tickvals: places, ticktext: map.tokens }, yaxis: { ...plain, autorange: "reversed" },
    margin: { l: 62, r: 16, t: 40, b: 46 } }), config);
}

function show() {
  const now = `${state.stage} ${state.message}`;
  if (now === seen) return;
  seen = now;
  const stage = document.getElementById("stage");
  stage.textContent = state.message;
  stage.dataset.stage = state.stage;
  document.getElementById("end").disabled = state.stage !== "running";
  drawCurves();
  drawHeads();
}

async function ask() {
  clearTimeout(timer);
  try {
    state = await (await fetch("/train.json")).json();
    reachable(true);
    show();
  } catch { reachable(false); }
  if (!state || state.stage === "running") timer = setTimeout(ask, 500);
}

async function order(path, words) {
  const answer = await fetch(path, { method: "POST", body: new URLSearchParams(words),
    headers: { "X-Mnemoscope-Token": token, "Content-Type": "application/x-www-form-urlencoded" } });
  if (!answer.ok) document.getElementById("stage").textContent = (await answer.json()).message;
  else await ask();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  order("/train/start", new FormData(form));
});
document.getElementById("end").addEventListener("click", () => order("/train/stop", {}));
document.addEventListener("themed", () => { if (state) { seen = ""; show(); } });
ask();
