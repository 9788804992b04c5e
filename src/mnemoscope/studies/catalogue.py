"""All studies, in the order of the ledger. Each is loaded when it is asked for."""

from collections.abc import Sequence
from importlib import import_module

from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import nearest
from mnemoscope.studies.base import Study

MODULES = {
    "a-three-steps": "a_three_steps",
    "a-monotone": "a_monotone",
    "a-first-gradient": "a_first_gradient",
    "a-mean-bias": "a_mean_bias",
    "a-gradient-noise": "a_gradient_noise",
    "a-dimension-and-length": "a_dimension_and_length",
    "a-orthogonal": "a_orthogonal",
    "a-bound": "a_bound",
    "a-predicted": "a_predicted",
    "a-phase": "a_phase",
    "a-per-parameter": "a_per_parameter",
    "a-superposition": "a_superposition",
    "a-trigger": "a_trigger",
    "a-first-steps": "a_first_steps",
    "a-width": "a_width",
    "a-activations": "a_activations",
    "news-dl": "news_linear",
    "news-facts": "news_facts",
    "q-coupling": "q_coupling",
    "q-mlp": "q_mlp",
    "q-beyond": "q_beyond",
    "q-large-dimension": "q_large_dimension",
    "b-fig1-left": "b_linear_memory",
    "b-fig1-right": "b_mlp_memory",
    "b-fig4-left": "b_facts",
    "b-fig4-right": "b_trade_off",
    "b-fig5": "b_stages",
    "b-plateau": "b_plateau",
    "b-bits": "b_bits",
    "b-hebbian": "b_hebbian",
    "b-low-rank": "b_low_rank",
    "b-shared-answers": "b_shared_answers",
}

# About what a study takes, in minutes, compilation included: quick, one base seed on two CPU cores
# with two studies at once; full, three base seeds on one H200, with seven others beside it most of
# the time, in a run that was stopped once and went on. Of the studies that were under way at the stop
# only the second part was timed; b-fig1-left, b-fig1-right, b-fig4-left, a-width and a-gradient-noise
# have estimates in its place.
MINUTES = {
    "a-three-steps": (0.1, 0.1),
    "a-monotone": (0.5, 1.3),
    "a-first-gradient": (1.0, 6.3),
    "a-mean-bias": (1.6, 7.4),
    "a-gradient-noise": (0.7, 2.0),
    "a-dimension-and-length": (0.9, 7.8),
    "a-orthogonal": (0.4, 2.6),
    "a-bound": (0.3, 1.0),
    "a-predicted": (0.3, 1.8),
    "a-phase": (0.3, 0.4),
    "a-per-parameter": (0.2, 1.0),
    "a-superposition": (0.2, 0.5),
    "a-trigger": (0.1, 0.1),
    "a-first-steps": (0.4, 4.3),
    "a-width": (1.3, 2.5),
    "a-activations": (0.7, 0.7),
    "news-dl": (0.1, 0.6),
    "news-facts": (0.3, 2.0),
    "q-coupling": (1.3, 1.7),
    "q-mlp": (1.1, 0.8),
    "q-beyond": (0.2, 0.9),
    "q-large-dimension": (0.3, 0.3),
    "b-fig1-left": (0.6, 9.0),
    "b-fig1-right": (0.8, 13.0),
    "b-fig4-left": (0.8, 12.0),
    "b-fig4-right": (0.4, 7.7),
    "b-fig5": (0.1, 0.5),
    "b-plateau": (0.3, 1.9),
    "b-bits": (0.5, 6.7),
    "b-hebbian": (0.2, 2.7),
    "b-low-rank": (0.3, 0.7),
    "b-shared-answers": (0.2, 1.1),
}

# These ask round after round, for little at a time: they would wait for everybody else's large
# steps, and end last.
SEARCHES = ("b-fig1-right", "b-fig4-left")


def load(name: str) -> Study:
    """The study of that name."""
    if name not in MODULES:
        raise SpecError("", f"expected studies that --list shows, got {name!r}{nearest(name, MODULES)}")
    return import_module(f"mnemoscope.studies.{MODULES[name]}").STUDY


def load_all(names: Sequence[str] = ()) -> list[Study]:
    """The studies of these names, each once, or all of them."""
    return [load(name) for name in dict.fromkeys(names or MODULES)]
