"""Figures fit for print: nothing overlaps, every region with room is named, and the setting stands on them."""

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import mnemoscope as mn
from mnemoscope.experiments.drawable import Style
from mnemoscope.experiments.run import Run
from mnemoscope.spec import SpecError
from mnemoscope.ui.figures.canvas import WIDTHS, in_style

DIMS = [24, 29, 35, 43, 53, 64]


@cache
def coarse() -> mn.PhaseDiagram:
    return mn.predicted_diagram(
        {"vocab": 128, "length": 32}, ("dim", DIMS), ("samples", [100, 215, 464, 1000, 2154, 4642])
    )


@cache
def fine() -> mn.PhaseDiagram:
    return mn.predicted_diagram(
        {"vocab": 256, "length": 32},
        ("dim", np.geomspace(16, 400, 12).astype(int).tolist()),
        ("samples", np.geomspace(30, 1e5, 12).astype(int).tolist()),
    )


diagrams = pytest.mark.parametrize("make", [coarse, fine])
STYLES: tuple[Style, ...] = ("screen", "column", "page")


def boxes(figure: Figure) -> dict[str, Any]:
    """Where the texts within the axes, the title and the legend are."""
    figure.draw_without_rendering()
    axes = figure.axes[0]
    parts = {text.get_text(): text.get_window_extent() for text in axes.texts}
    parts["title"] = axes.title.get_window_extent()
    parts |= {f"legend {at}": legend.get_window_extent() for at, legend in enumerate(figure.legends)}
    return parts


@pytest.mark.parametrize("style", STYLES)
@diagrams
def test_nothing_overlaps_on_a_phase_diagram(make: Callable[[], mn.PhaseDiagram], style: Style):
    figure = make().plot(style=style)
    parts = boxes(figure)
    for (one, box), (other, another) in combinations(parts.items(), 2):
        assert not box.overlaps(another), f"{one} and {other}"
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 for box in parts.values())


def check_nothing_overlaps(figure: Figure) -> None:
    figure.draw_without_rendering()
    parts: dict[str, Any] = {}
    for at, axes in enumerate(figure.axes):
        legend = axes.get_legend()
        words = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())  # ticks beyond it are there, and are not drawn
            words += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        shown = [word for word in words if word.get_text() and word.get_visible()]
        parts |= {f"{at}.{number} {word.get_text()}": word.get_window_extent() for number, word in enumerate(shown)}
        parts |= {f"legend of {at}": legend.get_window_extent()} if legend else {}
    parts |= {f"legend {at}": legend.get_window_extent() for at, legend in enumerate(figure.legends)}
    for (one, box), (other, another) in combinations(parts.items(), 2):
        assert not box.overlaps(another), f"{one} and {other}"
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in parts.values())


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "make",
    [lambda: mn.laws(0.75), lambda: mn.laws(0.75, width_power=1.0), lambda: mn.plan(1_000, length=16)],
    ids=["laws", "laws-width", "plan"],
)
def test_nothing_overlaps_on_figures_of_theory(make: Callable[[], Any], style: Style):
    check_nothing_overlaps(make().plot(style=style))


SPEC = mn.Retrieval(vocab=64, dim=40, length=4, samples=600)
SMALL = mn.Transformer(subjects=8, relations=4, answers=4, dim=16, heads=2, max_steps=256, stop="steps")
MEASURED: dict[str, Callable[[], Any]] = {
    "run": lambda: mn.run(SPEC, seeds=3),
    "bands": lambda: mn.run(SPEC.replace(tokens="zipf:1.2", samples=5_000), seeds=3),
    "training": lambda: mn.run(SMALL, seeds=2),
    "attention": lambda: mn.attention_maps(SMALL),
    "dynamics": lambda: mn.dynamics(mn.Flow(subjects=8, relations=4, answers=4, steps=1_500)),
    "critical": lambda: mn.critical(SPEC, "samples", most_seeds=4),
    "fit": lambda: mn.fit({"length": 4}, [("vocab", [48, 64]), ("dim", [40, 48, 56])], most_seeds=4),
    "capacity": lambda: mn.capacity_many([mn.Memory(items=2, dim=dim) for dim in (12, 16, 24)], seeds=3, most_seeds=3),
    "embeddings": lambda: mn.compare_embeddings(
        np.random.default_rng(0).normal(size=(64, 48)) + 0.3, length=4, seeds=2
    ),
}


@cache
def measured(name: str) -> Any:
    return MEASURED[name]()


@pytest.mark.long
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", MEASURED)
def test_nothing_overlaps_on_figures_of_measurements(name: str, style: Style):
    check_nothing_overlaps(measured(name).plot(style=style))


@diagrams
def test_every_region_with_room_is_named_where_it_is(make: Callable[[], mn.PhaseDiagram]):
    diagram = make()
    axes = diagram.plot().axes[0]
    regimes = np.array(diagram.regimes)
    named = {text.get_text().replace(" ", "_"): text.get_position() for text in axes.texts}
    for name in np.unique(regimes):
        if (regimes == name).mean() >= 0.05:
            assert name in named
    for name, (across, up) in named.items():
        column = np.abs(np.log(np.array(diagram.x.values) / across)).argmin()
        row = np.abs(np.log(np.array(diagram.y.values) / up)).argmin()
        assert name in regimes[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2]


def test_a_diagram_says_what_it_is_of():
    assert coarse().plot().axes[0].get_title() == "V=128 L=32, theory alone"


@pytest.mark.parametrize(
    "make", [coarse, lambda: mn.laws(0.75), lambda: mn.plan(1_000, length=16)], ids=["phase", "laws", "plan"]
)
def test_styles_axes_and_files(make: Callable[[], Any], tmp_path: Path):
    result = make()
    for style, width in WIDTHS.items():
        figure = result.plot(style=style)
        assert width is None or figure.get_figwidth() == width
    axes = Figure().add_subplot()
    assert result.plot(ax=axes) is axes
    assert axes.has_data() or axes.images
    result.plot(tmp_path / "figure.pdf", style="column")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(SpecError, match="expected a path or axes to draw on, got both"):
        result.plot(tmp_path / "figure.pdf", ax=axes)


def test_an_unknown_style_is_refused():
    with pytest.raises(SpecError, match="expected one of screen, column, page, got 'poster'"), in_style("poster"):
        pass


def test_a_file_for_latex_needs_latex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpecError, match="expected pdflatex to be installed"):
        coarse().plot(tmp_path / "figure.pgf")


def run_of(spec: mn.Retrieval, seeds: int) -> Run:
    """A run with made-up steps."""
    names = ("start", "V1", "W1", "V2")

    def trial(seed: int) -> mn.Trial:
        return mn.Trial(spec, seed, "ok", tuple(mn.Step(name, at / 4, at / 3, at / 4) for at, name in enumerate(names)))

    return Run(spec, tuple(map(trial, range(seeds))))


def test_results_show_themselves_in_one_line_and_as_a_table():
    spec = mn.Retrieval(vocab=64, dim=32, length=4, samples=500)
    run = run_of(spec, 30)
    results = [
        spec,
        run,
        run.trials[0],
        coarse(),
        mn.predict(spec),
        mn.predict(spec, trained=True),
        mn.plan(300, length=8),
    ]
    for result in results:
        assert len(repr(result)) < 200
        assert "\n" not in repr(result)
    assert repr(spec) == "Retrieval(vocab=64, dim=32, length=4, samples=500)"
    assert repr(run).startswith("Run(V=64 d=32 L=4 N=500: accuracy 0.750 [")
    assert repr(run).endswith(", seeds 30)")
    for result in results[1:]:
        page = result._repr_html_()
        assert "<table>" in page
        assert page.count("<tr>") < 60
    assert "and 22 more seeds" in run._repr_html_()
    assert "data:image/png" in coarse()._repr_html_()


def test_data_with_spread_and_counts():
    run = run_of(mn.Retrieval(vocab=64, dim=32, length=4, samples=500), 3)
    assert len(run.to_frame()) == 12
    assert dict(run.to_xarray().sizes) == {"seed": 3, "after": 4}
    labelled = coarse().to_xarray()
    assert {"accuracy", "spread", "seeds", "predicted", "regime"} <= set(labelled)
    assert labelled.predicted.sel(dim=64, samples=1000) == coarse().predicted[3, 5]
    assert math.isnan(float(labelled.spread.sel(dim=64, samples=1000)))
    assert int(labelled.seeds.sum()) == 0
