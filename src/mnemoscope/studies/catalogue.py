"""All studies, in the order of the ledger. Each is loaded when it is asked for."""

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import nearest
from mnemoscope.studies.base import Study


class Listed(NamedTuple):
    """A study's module, and about how many minutes it takes, compilation included.

    Quick is one base seed on two CPU cores with two studies at once. Full is three base seeds on
    one H200, with seven others beside it most of the time, in a run that was stopped once and went
    on. Of the studies that were under way at the stop only the second part was timed: b-fig1-left,
    b-fig1-right, b-fig4-left, a-width and a-gradient-noise have estimates in its place.

    Some ask round after round, for little at a time (`asks_often`): they would wait for everybody
    else's large steps, and end last.
    """

    module: str
    quick: float
    full: float
    asks_often: bool = False
    # One that another package has added.
    study: Study | None = None


# What a study costs stands here and not in its file, which decides its numbers.
STUDIES = {
    "a-three-steps": Listed("a_three_steps", 0.1, 0.1),
    "a-monotone": Listed("a_monotone", 0.5, 1.3),
    "a-first-gradient": Listed("a_first_gradient", 1.0, 6.3),
    "a-mean-bias": Listed("a_mean_bias", 1.6, 7.4),
    "a-gradient-noise": Listed("a_gradient_noise", 0.7, 2.0),
    "a-dimension-and-length": Listed("a_dimension_and_length", 0.9, 7.8),
    "a-orthogonal": Listed("a_orthogonal", 0.4, 2.6),
    "a-bound": Listed("a_bound", 0.3, 1.0),
    "a-predicted": Listed("a_predicted", 0.3, 1.8),
    "a-phase": Listed("a_phase", 0.3, 0.4),
    "a-per-parameter": Listed("a_per_parameter", 0.2, 1.0),
    "a-superposition": Listed("a_superposition", 0.2, 0.5),
    "a-trigger": Listed("a_trigger", 0.1, 0.1),
    "a-first-steps": Listed("a_first_steps", 0.4, 4.3),
    "a-width": Listed("a_width", 1.3, 2.5),
    "a-activations": Listed("a_activations", 0.7, 0.7),
    "news-dl": Listed("news_linear", 0.1, 0.6),
    "news-facts": Listed("news_facts", 0.3, 2.0),
    "q-coupling": Listed("q_coupling", 1.3, 1.7),
    "q-mlp": Listed("q_mlp", 1.1, 0.8),
    "q-beyond": Listed("q_beyond", 0.2, 0.9),
    "q-large-dimension": Listed("q_large_dimension", 0.3, 0.3),
    "b-fig1-left": Listed("b_linear_memory", 0.6, 9.0),
    "b-fig1-right": Listed("b_mlp_memory", 0.8, 13.0, asks_often=True),
    "b-fig4-left": Listed("b_facts", 0.8, 12.0, asks_often=True),
    "b-fig4-right": Listed("b_trade_off", 0.4, 7.7),
    "b-fig5": Listed("b_stages", 0.1, 0.5),
    "b-plateau": Listed("b_plateau", 0.3, 1.9),
    "b-bits": Listed("b_bits", 0.5, 6.7),
    "b-hebbian": Listed("b_hebbian", 0.2, 2.7),
    "b-low-rank": Listed("b_low_rank", 0.3, 0.7),
    "b-shared-answers": Listed("b_shared_answers", 0.2, 1.1),
}


def add_study(study: Study, module: str, *, quick: float, full: float, asks_often: bool = False) -> None:
    """Add a study of your own, with about how many minutes it takes.

    `module` is the one that adds it, `__name__` there: processes that run studies in parallel
    import it.
    """
    if study.id in STUDIES:
        raise ValueError(f"expected an id that is not in the catalogue yet, got {study.id!r}")
    STUDIES[study.id] = Listed(module, quick, full, asks_often, study)


def module_of(name: str) -> str:
    """The module that brings a study, in full."""
    listed = STUDIES[name]
    return listed.module if listed.study else f"mnemoscope.studies.{listed.module}"


def load(name: str) -> Study:
    """The study of that name."""
    if name not in STUDIES:
        raise SpecError("", f"expected studies that --list shows, got {name!r}{nearest(name, STUDIES)}")
    return STUDIES[name].study or import_module(module_of(name)).STUDY


def load_all(names: Sequence[str] = ()) -> list[Study]:
    """The studies of these names, each once, or all of them."""
    return [load(name) for name in dict.fromkeys(names or STUDIES)]
