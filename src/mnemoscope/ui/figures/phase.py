"""A phase diagram: measured cells, both contours, and the borders of regimes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import whole_file
from mnemoscope.experiments.phase import PhaseDiagram
from mnemoscope.spec.summary import axis_words, brief
from mnemoscope.ui.figures.canvas import open_canvas, plain, saved, ticks_at

# The names of regimes: their size in points, and the height of a line and the width of a letter over it.
POINTS, LINE, LETTER = 8, 1.6, 0.6
# The cells that theory says nothing about.
UNDERIVED = "none"
# A regime has a name if it is at least this share of the name's own size.
LEAST_ROOM = 0.5


def draw_phase(diagram: PhaseDiagram, path: Path) -> None:
    """Write the diagram into a file: .png, .svg or .pdf for paper, .html for a browser."""
    if path.suffix == ".html":
        _draw_page(diagram, path)
    else:
        saved(make_figure)(diagram, path)


def make_figure(diagram: PhaseDiagram) -> Any:
    """The diagram as a matplotlib figure."""
    figure, axes = open_canvas(width=6.4, height=5.0)
    mesh, words = _draw_cells(axes, diagram)
    figure.colorbar(mesh, ax=axes, label=words)
    # Outside, where it covers no region and no name.
    legend = figure.legend(loc="outside lower center", ncols=2, facecolor="#555555", labelcolor="white")
    legend.set_title(f"{_measure(diagram)} {diagram.target:g}")
    legend.get_title().set_color("white")
    figure.draw_without_rendering()  # the axes have their size only now
    _write_names(axes, diagram)
    return figure


def draw_on(axes: Any, diagram: PhaseDiagram) -> None:
    """The diagram on axes of the caller's, without a legend and a colour bar."""
    _draw_cells(axes, diagram)
    _write_names(axes, diagram)


def _draw_cells(axes: Any, diagram: PhaseDiagram) -> tuple[Any, str]:
    """Cells, contours and regimes; return the mesh, and what its colours show."""
    x, y = _edges(diagram.x.values), _edges(diagram.y.values)
    shown, words = _shown(diagram)
    mesh = axes.pcolormesh(x, y, shown, vmin=0, vmax=1, cmap="viridis")
    axes.set(facecolor="#dddddd", xscale="log", yscale="log")  # grey where nothing was run
    for values, style, name in ((diagram.accuracy, "-", "measured"), (diagram.predicted, "--", "predicted")):
        if not np.isnan(values).all():
            _contour(axes, diagram, values, style)
            axes.plot([], [], f"w{style}", label=name)
    for (x0, y0), (x1, y1) in regime_edges(diagram):
        axes.plot([x0, x1], [y0, y1], color="black", linewidth=0.8)
    ticks_at(axes, "x", _every(diagram.x.values, 8))
    ticks_at(axes, "y", _every(diagram.y.values, 8))
    labels = [axis_words(name) for name in (diagram.x.field, diagram.y.field)]
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel=labels[0], ylabel=labels[1])
    axes.set_title(_title(diagram), fontsize=9, wrap=True)
    return mesh, words


def _write_names(axes: Any, diagram: PhaseDiagram) -> None:
    """The name of each predicted regime, inside it."""
    inches = axes.get_window_extent().size / axes.get_figure(root=True).dpi
    for name, (across, up) in regime_places(diagram, *inches).items():
        box = {"facecolor": "white", "alpha": 0.6, "linewidth": 0, "pad": 1}
        axes.text(across, up, name.replace("_", " "), ha="center", va="center", fontsize=POINTS, bbox=box)


def _shown(diagram: PhaseDiagram) -> tuple[np.ndarray, str]:
    """The values that the colours show, with their name: measured, or predicted where nothing was run."""
    if np.isnan(diagram.accuracy).all():
        return diagram.predicted, f"predicted {_measure(diagram)}"
    return diagram.accuracy, _measure(diagram)


def _measure(diagram: PhaseDiagram) -> str:
    return diagram.measure.replace("_", " ")


def _contour(axes: Any, diagram: PhaseDiagram, values: np.ndarray, style: str) -> None:
    """The contour at the target; column by column if some cells were not run."""
    if min(values.shape) > 1 and not np.isnan(values).any():
        grid = (diagram.x.values, diagram.y.values, values)
        axes.contour(*grid, [diagram.target], colors="white", linestyles=style, linewidths=1.6)
        return
    line = replace(diagram, accuracy=values).contour()
    crossings = [(a, b) for a, b in zip(diagram.x.values, line, strict=True) if b is not None]
    if crossings:
        axes.plot(*zip(*crossings, strict=True), f"w{style}", linewidth=1.6, marker=".")


def regime_edges(diagram: PhaseDiagram) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Sides of cells between which the predicted regime changes."""
    x, y = _edges(diagram.x.values), _edges(diagram.y.values)
    rows, columns = len(diagram.regimes), len(diagram.regimes[0])
    lines = []
    for r in range(rows):
        for c in range(columns):
            here = diagram.regimes[r][c]
            if c + 1 < columns and diagram.regimes[r][c + 1] != here:
                lines.append(((x[c + 1], y[r]), (x[c + 1], y[r + 1])))
            if r + 1 < rows and diagram.regimes[r + 1][c] != here:
                lines.append(((x[c], y[r + 1]), (x[c + 1], y[r + 1])))
    return lines


def regime_places(diagram: PhaseDiagram, width: float = 6.0, height: float = 4.5) -> dict[str, tuple[float, float]]:
    """Where to write the names of the predicted regimes on axes of this size in inches, so that none covers another.

    Each stands at a cell of its regime, as deep inside as it can. A regime of too few cells for its name has none.
    """
    regimes = np.array(diagram.regimes)
    cell = np.array([height / regimes.shape[0], width / regimes.shape[1]])
    places: dict[str, tuple[float, float]] = {}
    boxes: list[np.ndarray] = []
    sizes_of = {name: int((regimes == name).sum()) for name in dict.fromkeys(regimes.ravel().tolist())}
    sizes_of.pop(UNDERIVED, None)
    for name in sorted(sizes_of, key=lambda name: -sizes_of[name]):
        half = np.array([LINE, LETTER * len(name)]) * POINTS / 72 / 2
        if sizes_of[name] * cell.prod() < LEAST_ROOM * 4 * half.prod():
            continue
        inside = np.argwhere(regimes == name)
        others = np.argwhere(regimes != name)
        centres = (inside + 0.5) * cell
        # A name may not hang over the edge of the axes.
        centres = np.clip(centres, half, np.maximum(half, np.array([height, width]) - half))
        depth = np.array([_depth(place, others, regimes.shape, cell) for place in inside])
        for at in np.argsort(-depth, kind="stable"):
            box = np.array([centres[at] - half, centres[at] + half])
            if all((box[1] < other[0]).any() or (other[1] < box[0]).any() for other in boxes):
                boxes.append(box)
                places[name] = _at(diagram, centres[at] / np.array([height, width]))
                break
    return places


def _depth(place: np.ndarray, others: np.ndarray, shape: tuple[int, ...], cell: np.ndarray) -> float:
    """How far a cell is from another regime, or from the edge; names are wide, so width counts for less."""
    scale = cell * [1.0, 0.4]
    borders = (np.minimum(place + 1, np.array(shape) - place) * scale).min()
    return min(float(borders), float(np.hypot(*((others - place) * scale).T).min(initial=np.inf)))


def _at(diagram: PhaseDiagram, share: np.ndarray) -> tuple[float, float]:
    """The x and y at these shares, up and across, of axes in logarithms."""
    (low_y, high_y), (low_x, high_x) = (np.log(_edges(axis.values))[[0, -1]] for axis in (diagram.y, diagram.x))
    return float(np.exp(low_x + share[1] * (high_x - low_x))), float(np.exp(low_y + share[0] * (high_y - low_y)))


def _edges(values: Sequence[float]) -> list[float]:
    """Borders of the cells around these values, half-way in the logarithm."""
    logs = np.log(np.asarray(values, float))
    if len(logs) == 1:
        return [float(values[0]) / 1.2, float(values[0]) * 1.2]
    between = (logs[1:] + logs[:-1]) / 2
    ends = (logs[0] - (between[0] - logs[0]), logs[-1] + (logs[-1] - between[-1]))
    return np.exp([ends[0], *between, ends[1]]).tolist()


def _every(values: Sequence[float], most: int) -> list[float]:
    """At most `most` of the values, evenly spaced from the first."""
    return list(values[:: -(-len(values) // most)])


def _draw_page(diagram: PhaseDiagram, path: Path) -> None:
    """One self-contained page, which loads nothing from the network."""
    need("pages")
    import plotly.graph_objects as go

    x, y = list(diagram.x.values), list(diagram.y.values)
    texts = [[_hover(diagram, r, c) for c in range(len(x))] for r in range(len(y))]
    values, words = _shown(diagram)
    shown = [[None if np.isnan(value) else value for value in row] for row in values]
    heat = go.Heatmap(
        {"x": x, "y": y, "z": shown, "zmin": 0, "zmax": 1, "colorscale": "Viridis", "colorbar": {"title": words}},
        hovertext=texts,
        hoverinfo="text",
    )
    figure: Any = go.Figure(heat)
    for accuracy, dash, name in ((diagram.accuracy, "solid", "measured"), (diagram.predicted, "dash", "predicted")):
        contour, label = (
            replace(diagram, accuracy=accuracy).contour(),
            f"{name}, {_measure(diagram)} {diagram.target:g}",
        )
        figure.add_scatter(x=x, y=contour, mode="lines", name=label, line={"dash": dash, "color": "white"})
    edges = regime_edges(diagram)
    figure.add_scatter(
        x=[value for (x0, _), (x1, _) in edges for value in (x0, x1, None)],
        y=[value for (_, y0), (_, y1) in edges for value in (y0, y1, None)],
        mode="lines",
        name="predicted regimes",
        hoverinfo="skip",
        line={"color": "black", "width": 1},
    )
    for name, (across, up) in regime_places(diagram).items():
        # On an axis in logarithms an annotation's place is a logarithm.
        figure.add_annotation(
            x=float(np.log10(across)),
            y=float(np.log10(up)),
            text=name.replace("_", " "),
            showarrow=False,
            bgcolor="rgba(255,255,255,0.6)",
            font={"size": 11},
        )
    for update, axis in ((figure.update_xaxes, diagram.x), (figure.update_yaxes, diagram.y)):
        ticks, borders = _every(axis.values, 10), np.log10(_edges(axis.values))
        ends = [borders[0], borders[-1]]
        update(type="log", title=axis.field, tickvals=ticks, ticktext=[*map(plain, ticks)], range=ends)
    figure.update_layout(
        legend={"bgcolor": "rgba(80,80,80,0.6)", "font": {"color": "white"}, "x": 0.01, "y": 0.01},
        title=_title(diagram),
        template="plotly_white",
        height=680,
    )
    with whole_file(path) as part:
        figure.write_html(part, include_plotlyjs=True, full_html=True)


def _title(diagram: PhaseDiagram) -> str:
    """The setting: what does not vary, and the seeds."""
    fixed = brief(diagram.spec, without=(diagram.x.field, diagram.y.field))
    most, least = int(diagram.seeds.max()), int(diagram.seeds.min())
    seeds = f"{most:,} seed{'s' * (most != 1)} a cell" if most else "theory alone"
    return f"{fixed}, {'up to ' * (most > least)}{seeds}"


def _hover(diagram: PhaseDiagram, r: int, c: int) -> str:
    """The text of a cell under the pointer."""
    measured, predicted = (
        "–" if np.isnan(value) else f"{value:.3f}" for value in (diagram.accuracy[r, c], diagram.predicted[r, c])
    )
    regime = diagram.regimes[r][c].replace(UNDERIVED, "not derived")
    return (
        f"{diagram.x.field} {diagram.x.values[c]:,}<br>{diagram.y.field} {diagram.y.values[r]:,}<br>"
        f"measured {measured} ({diagram.seeds[r, c]:.0f} seeds)<br>predicted {predicted}<br>{regime}"
    )
