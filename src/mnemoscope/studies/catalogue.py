"""All studies, in the order of the ledger: ours, and those of installed packages. Each is imported on first use."""

import logging
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from mnemoscope.spec import SpecError
from mnemoscope.spec.installed import free_names
from mnemoscope.spec.objects import import_object
from mnemoscope.spec.validators import nearest
from mnemoscope.studies.base import Study

log = logging.getLogger(__name__)


class Listed(NamedTuple):
    """A study's module, and about how many minutes it takes, compilation included.

    Quick is one base seed on two CPU cores, two studies at once. Full is three base seeds on one H200, mostly beside
    seven other studies, in a run that was stopped once and resumed. For the studies that were running at the stop
    (b-fig1-left, b-fig1-right, b-fig4-left, a-width, a-gradient-noise) only the second part was timed; their minutes
    are estimates.

    Searches ask for few trials at a time, round after round (`asks_often`). Without priority they would wait for the
    large steps of the others, and end last.
    """

    module: str
    quick: float
    full: float
    asks_often: bool = False
    # Set if another module added it.
    study: Study | None = None
    # An installed package's study: where it stands, and whose it is.
    place: str = ""
    package: str = ""


# Costs are listed here and not in a study's file, which is about its numbers.
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
    "lin-hebbian": Listed("lin_hebbian", 0.4, 3.0),
    "lin-optimal": Listed("lin_optimal", 0.4, 10.0),
    "lin-listwise": Listed("lin_listwise", 0.7, 8.0),
    "lin-two-layer": Listed("lin_two_layer", 0.8, 10.0, asks_often=True),
    "opt-one-step": Listed("opt_one_step", 0.3, 0.4),
    "opt-batch": Listed("opt_batch", 0.3, 0.2),
    "opt-rates": Listed("opt_rates", 0.3, 0.2),
    "opt-balance": Listed("opt_balance", 0.3, 0.2),
    "zipf-scaling": Listed("zipf_scaling", 0.3, 0.3),
    "zipf-gd": Listed("zipf_gd", 0.2, 0.2),
    "t-converged": Listed("t_converged", 0.8, 5.0),
    "geometric": Listed("geometric", 0.7, 12.0),
    "learned": Listed("learned", 0.7, 6.0),
    "no-mark": Listed("no_mark", 0.7, 6.0),
    "mqar": Listed("mqar", 1.0, 10.0),
    "induction": Listed("induction", 0.7, 2.0),
    "stages": Listed("stages", 0.9, 4.0),
    "bits-gpt": Listed("bits_gpt", 0.8, 6.0),
    "bits-random": Listed("bits_random", 0.6, 6.0),
    "mlp-built": Listed("mlp_built", 0.7, 5.0),
    "bits-axis": Listed("bits_axis", 0.4, 3.0),
}


for _name, _added in free_names("studies", STUDIES).items():
    # Nobody has timed it.
    STUDIES[_name] = Listed(_added.place.partition(":")[0], 1.0, 1.0, place=_added.place, package=_added.package)


def add_study(study: Study, module: str, *, quick: float, full: float, asks_often: bool = False) -> None:
    """Add a study of your own, with about how many minutes it takes.

    `module` is the module that calls this, its `__name__`: processes that run studies in parallel import it.
    """
    if study.id in STUDIES:
        raise ValueError(f"expected an id that is not in the catalogue yet, got {study.id!r}")
    STUDIES[study.id] = Listed(module, quick, full, asks_often, study)


def module_of(name: str) -> str:
    """The full name of the module that defines a study."""
    listed = STUDIES[name]
    return listed.module if listed.study or listed.place else f"mnemoscope.studies.{listed.module}"


def load(name: str) -> Study:
    """The study with this id."""
    if name not in STUDIES:
        raise SpecError("", f"expected studies that --list shows, got {name!r}{nearest(name, STUDIES)}")
    listed = STUDIES[name]
    if listed.place:
        return _installed(name, listed)
    return listed.study or import_module(module_of(name)).STUDY


def _installed(name: str, listed: Listed) -> Study:
    """A package's study, which must be one, of this name, and say that it is its author's own."""
    study = import_object("", listed.place)
    if not isinstance(study, Study) or study.id != name or study.source != "own":
        got = f"{study.id!r} of source {study.source!r}" if isinstance(study, Study) else f"a {type(study).__name__}"
        raise SpecError(
            "", f"expected a study {name!r} of source 'own' from {listed.place} ({listed.package}), got {got}"
        )
    return study


def load_all(names: Sequence[str] = ()) -> list[Study]:
    """The studies with these ids, each once; by default all of them, less those of packages that cannot be loaded."""
    if names:
        return [load(name) for name in dict.fromkeys(names)]
    studies = []
    for name, listed in STUDIES.items():
        try:
            studies.append(load(name))
        except SpecError as error:
            if not listed.place:
                raise
            log.warning("the study %s of %s is left out: %s", name, listed.package, error.message)
    return studies
