"""Gradient flow: the loss with its levels, and the probability of the right answers."""

from typing import Any

from mnemoscope.experiments.dynamics import Dynamics
from mnemoscope.ui.figures.canvas import open_canvas, saved


def make_figure(dynamics: Dynamics) -> Any:
    """The run as a matplotlib figure."""
    figure, (left, right) = open_canvas(width=9.0, height=3.8, columns=2, share=False)
    course = dynamics.course
    draw_on(left, dynamics)
    right.plot(course.relation_mass, label="the relation's answers")
    right.plot(course.answer_mass, label="the answer")
    right.set(xlabel="step", ylabel="mean probability")
    right.legend(fontsize=8)
    return figure


def draw_on(left: Any, dynamics: Dynamics) -> None:
    """The loss, its levels, and where it rests at them."""
    course = dynamics.course
    left.plot(course.loss, linewidth=1.2)
    names = ("ln(RD)", "ln D", "0")
    for name, stage in zip(names, dynamics.stages, strict=True):
        left.axhline(stage.level, color="black", linewidth=0.6, linestyle=":")
        left.annotate(
            name, (1, stage.level), (3, 0), ("axes fraction", "data"), "offset points", va="center", fontsize=8
        )
        if stage.first is not None and stage.last is not None:
            left.axvspan(stage.first, stage.last, alpha=0.12, color="C1")
            middle = (stage.first + stage.last) / 2
            above = stage.level < 1  # the curve falls: only its end has space above
            height = stage.level + (0.15 if above else -0.25)
            left.text(middle, height, stage.name, ha="center", fontsize=8)
    left.set(xlabel="step", ylabel="loss")


draw_dynamics = saved(make_figure)
