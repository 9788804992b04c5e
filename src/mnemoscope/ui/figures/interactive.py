"""A Matplotlib figure as Plotly data, for the browser.

A study draws once, and both the printed and the interactive figure come from that drawing. Only what studies use is
converted: lines, error bars, bars, one image per panel, level lines, bands, and texts.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

Data = dict[str, Any]

DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
SYMBOLS = {"o": "circle", ".": "circle", "x": "x-thin-open", "|": "line-ns-open", "s": "square"}
# The share of the width between two panels.
GAP = 0.12


def as_plotly(figure: Any) -> Data:
    """Traces and layout of a figure whose panels are side by side."""
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    traces: list[Data] = []
    layout: Data = {"shapes": [], "annotations": [], "showlegend": False}
    each = (1 - GAP * (len(panels) - 1)) / len(panels)
    for at, axes in enumerate(panels):
        number = "" if at == 0 else str(at + 1)
        left = at * (each + GAP)
        layout[f"xaxis{number}"] = {**_axis(axes, "x"), "domain": [left, left + each], "anchor": f"y{number}"}
        layout[f"yaxis{number}"] = {**_axis(axes, "y"), "anchor": f"x{number}"}
        traces += [{**trace, "xaxis": f"x{number}", "yaxis": f"y{number}"} for trace in _traces(axes)]
        layout["shapes"] += _shapes(axes, number)
        layout["annotations"] += _texts(axes, number)
        layout["showlegend"] |= axes.get_legend() is not None
        if axes.get_title():
            place = {"xref": f"x{number} domain", "x": 0.5, "yref": f"y{number} domain", "y": 1.0, "yanchor": "bottom"}
            layout["annotations"].append({"text": axes.get_title(), **place, "showarrow": False})
    return {"data": _named_once(traces), "layout": layout}


def _named_once(traces: list[Data]) -> list[Data]:
    """Traces with the same name and style in several panels share one entry of the legend."""
    named: list[Data] = []
    for trace in traces:
        style = {key: trace.get(key) for key in ("name", "type", "mode", "line", "marker")}
        if style in named:
            trace["showlegend"] = False
        else:
            named.append(style)
        trace["legendgroup"] = str(named.index(style))
    return traces


def _axis(axes: Any, name: str) -> Data:
    """Label, scale, limits, and ticks if they are fixed."""
    from matplotlib.ticker import FixedLocator

    axis = getattr(axes, f"{name}axis")
    low, high = getattr(axes, f"get_{name}lim")()
    log = getattr(axes, f"get_{name}scale")() == "log"
    ends = np.log10([low, high]) if log else np.array([low, high])
    axis_layout: Data = {
        "title": {"text": axis.get_label_text()},
        "type": "log" if log else "linear",
        "range": ends.tolist(),
        "zeroline": False,
    }
    locator = axis.get_major_locator()
    if isinstance(locator, FixedLocator):
        ticks = [float(value) for value in locator()]
        words = axis.get_major_formatter().format_ticks(ticks)
        axis_layout |= {"tickvals": ticks, "ticktext": [word.replace("\n", "<br>") for word in words]}
    return axis_layout


def _traces(axes: Any) -> Iterator[Data]:
    """Everything that has data."""
    from matplotlib.container import BarContainer, ErrorbarContainer

    for image in axes.images:
        low, high = image.get_clim()
        scale = image.colorbar.ax.get_ylabel() if image.colorbar else ""
        yield {
            "type": "heatmap",
            "z": _plain(np.ma.filled(image.get_array().astype(float), np.nan)),
            "zmin": low,
            "zmax": high,
            "colorscale": "Viridis",
            "colorbar": {"title": {"text": scale, "side": "right"}},
            **({"texttemplate": "%{z:.2f}"} if axes.texts else {}),
        }
    converted: set[int] = set()
    for group in axes.containers:
        if isinstance(group, BarContainer):
            heights = np.array([bar.get_height() for bar in group], float)
            yield {
                "type": "bar",
                "x": _plain([bar.get_x() + bar.get_width() / 2 for bar in group]),
                "y": _plain(heights),
                "marker": {"color": _hex(group[0].get_facecolor())},
                "error_y": _errors(group.errorbar, heights),
                **_name(group.get_label()),
            }
        elif isinstance(group, ErrorbarContainer) and group[0] is not None:
            line, caps, _ = group
            converted |= {id(line), *(id(cap) for cap in caps)}
            heights = np.asarray(line.get_ydata(), float)
            yield {**_line(line), **_name(group.get_label()), "error_y": _errors(group, heights)}
        elif isinstance(group, ErrorbarContainer):
            converted |= {id(cap) for cap in group[1]}  # of bars, converted with them
    for line in axes.get_lines():
        if id(line) not in converted and all(_in_data(line, axes)):
            yield {**_line(line), **_name(line.get_label())}


def _line(line: Any) -> Data:
    """A line, or points, or both."""
    lines, points = line.get_linestyle() in DASHES, line.get_marker() in SYMBOLS
    stroke = _stroke(line)
    symbol = SYMBOLS.get(line.get_marker(), "circle")
    if line.get_fillstyle() == "none":
        symbol += "-open"
    return {
        "type": "scatter",
        "x": _plain(line.get_xdata()),
        "y": _plain(line.get_ydata()),
        "mode": "+".join(["lines"] * lines + ["markers"] * points) or "lines",
        "line": stroke,
        "marker": {
            "color": stroke["color"],
            "symbol": symbol,
            "size": line.get_markersize() + 2,
            "line": {"color": stroke["color"], "width": 2},
        },
    }


def _stroke(line: Any) -> Data:
    dash = DASHES.get(line.get_linestyle(), "solid")
    return {"color": _hex(line.get_color()), "width": line.get_linewidth(), "dash": dash}


def _errors(group: Any, middle: np.ndarray) -> Data:
    """Both ends of upright error bars, as distances from their middles."""
    if group is None:
        return {"visible": False}
    ends = np.array([segment[:, 1] for segment in group[2][0].get_segments()], float)
    return {
        "type": "data",
        "symmetric": False,
        "array": _plain(ends[:, 1] - middle),
        "arrayminus": _plain(middle - ends[:, 0]),
        "thickness": 1.2,
        "width": 3,
    }


def _shapes(axes: Any, number: str) -> Iterator[Data]:
    """Level lines and bands: across the whole panel in one direction."""
    for line in axes.get_lines():
        along_x, along_y = _in_data(line, axes)
        if along_x == along_y:
            continue
        x, y = (np.asarray(part, float) for part in line.get_data())
        yield {
            "type": "line",
            "xref": f"x{number}" + " domain" * (not along_x),
            "yref": f"y{number}" + " domain" * (not along_y),
            **{"x0": x[0], "x1": x[-1], "y0": y[0], "y1": y[-1]},
            **_name(line.get_label()),
            "line": _stroke(line),
        }
    bars = {id(bar) for group in axes.containers for bar in getattr(group, "patches", ())}
    for patch in axes.patches:
        if id(patch) not in bars:
            x0, x1 = patch.get_x(), patch.get_x() + patch.get_width()
            yield {
                "type": "rect",
                "xref": f"x{number}",
                "yref": f"y{number} domain",
                **{"x0": x0, "x1": x1, "y0": 0, "y1": 1},
                "line": {"width": 0},
                "layer": "below",
                "fillcolor": _hex(patch.get_facecolor()),
                "opacity": patch.get_alpha() or 1,
            }


def _texts(axes: Any, number: str) -> Iterator[Data]:
    """Labels of levels. The heatmap itself prints the numbers in its cells."""
    if axes.images:
        return
    for text in axes.texts:
        x, y = getattr(text, "xy", text.get_position())
        beside = getattr(text, "xycoords", "data") != "data"
        # On a logarithmic axis a position is a logarithm, unless it is a share of the panel.
        across = float(x) if beside or axes.get_xscale() != "log" else float(np.log10(x))
        moved = getattr(text, "anncoords", "") == "offset points"
        right, up = text.get_position() if moved else (0.0, 0.0)
        yield {
            "text": text.get_text(),
            "xshift": 2 * right,
            "yshift": 2 * up,
            "x": across,
            "xref": f"x{number}" + " domain" * beside,
            "y": float(y) if axes.get_yscale() != "log" else float(np.log10(y)),
            "yref": f"y{number}",
            "xanchor": text.get_horizontalalignment(),
            "showarrow": False,
        }


def _in_data(line: Any, axes: Any) -> tuple[bool, bool]:
    """Whether x and y of a line are data, or shares of the panel."""
    return line.get_transform().contains_branch_seperately(axes.transData)


def _name(label: Any) -> Data:
    """A name for the legend; Matplotlib's names for unnamed artists begin with an underscore."""
    shown = bool(label) and not str(label).startswith("_")
    return {"name": str(label) if shown else "", "showlegend": shown}


def _plain(values: Any) -> list[Any]:
    """Numbers for JSON, None where they are not finite."""
    numbers = np.asarray(values, float)
    # Six digits are more than a screen shows.
    rounded = [None if not np.isfinite(number) else float(f"{number:.6g}") for number in numbers.ravel()]
    if numbers.ndim < 2:
        return rounded
    wide = numbers.shape[1]
    return [rounded[first : first + wide] for first in range(0, len(rounded), wide)]


def _hex(color: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(color)
