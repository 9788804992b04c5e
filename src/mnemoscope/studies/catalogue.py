"""All studies, in the order of the ledger. Each is loaded when it is asked for."""

from collections.abc import Sequence
from importlib import import_module

from mnemoscope.fields import nearest
from mnemoscope.spec import SpecError
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
    "a-trigger": "a_trigger",
    "a-first-steps": "a_first_steps",
    "a-width": "a_width",
    "a-activations": "a_activations",
    "news-dl": "news_linear",
    "q-coupling": "q_coupling",
    "q-mlp": "q_mlp",
    "q-beyond": "q_beyond",
    "q-large-dimension": "q_large_dimension",
    "b-fig1-left": "b_linear_memory",
    "b-fig1-right": "b_mlp_memory",
    "b-fig4-left": "b_facts",
    "b-fig4-right": "b_trade_off",
    "b-fig5": "b_stages",
    "b-bits": "b_bits",
}


def load(name: str) -> Study:
    """The study of that name."""
    if name not in MODULES:
        raise SpecError(
            "", f"expected studies that --list shows, got {name!r}{nearest(name, MODULES)}"
        )
    return import_module(f"mnemoscope.studies.{MODULES[name]}").STUDY


def load_all(names: Sequence[str] = ()) -> list[Study]:
    """The studies of these names, each once, or all of them."""
    return [load(name) for name in dict.fromkeys(names or MODULES)]
