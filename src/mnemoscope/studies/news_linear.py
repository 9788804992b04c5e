"""A news summary of paper A says that N grows like d times L."""

from collections.abc import Sequence
from functools import partial

from mnemoscope.studies.a_dimension_and_length import GRIDS, measure
from mnemoscope.studies.base import Earlier, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.exponents import draw_exponents, fit_pooled, say_exponents
from mnemoscope.studies.law_studies import critical_places
from mnemoscope.studies.power import DRAWS, as_theory, draw_grid, pure_power, rehearse, say_draw, verdicts_of
from mnemoscope.studies.rival_laws import CRITICAL_SAMPLES, half_width, judge_powers, nearest, rivals_of

CLAIMED = CRITICAL_SAMPLES["news"]
RIVALS = rivals_of("news", CRITICAL_SAMPLES, tuple(CLAIMED))
HALF = half_width(CLAIMED, RIVALS, tuple(CLAIMED))
RIVAL, AWAY = nearest(CLAIMED, RIVALS, tuple(CLAIMED))


def judge_all(bases: Sequence[Numbers]) -> Judgement:
    """Are the powers of d and L near 1? Theory's powers, which are not, play no part."""
    fitted = fit_pooled(bases)
    rows = [{**row, "predicted": None} for row in fitted["exponents"]]
    return Judgement(say_exponents(fitted), judge_powers(rows, CLAIMED, HALF))


def power(size: Size) -> Power:
    """The power if the summary is right, and if another law or theory is."""
    places = critical_places(GRIDS[size], "accuracy")
    rivals = {name: draw_grid(places, pure_power(places, powers), size, "samples") for name, powers in RIVALS.items()}
    theory = draw_grid(places, as_theory(places), size, "samples")
    refuted = verdicts_of(judge_all, theory, DRAWS)["refuted"] / DRAWS
    note = say_draw(places, size, "theory's critical N")
    note += f"; where theory is right, the summary is refuted in {refuted:.2f} of the draws"
    claim = draw_grid(places, pure_power(places, CLAIMED), size, "samples")
    return rehearse(judge_all, claim, {**rivals, "theory": theory}, note=note)


STUDY = Study(
    id="news-dl",
    revision=2,
    source="news",
    place="a popular summary of paper A",
    statement="The number of samples that recall needs grows like d times L.",
    expected="N as d^1 L^1",
    rule="Powers of d and L in the critical N (accuracy 0.5), one fit to all base seeds. Supported "
    f"if both 95 % intervals lie within {HALF:g} of 1, refuted if one lies outside that box "
    f"altogether. The nearest rival law, {RIVAL.replace('_', ' ')}, is {AWAY:g} away. Theory's "
    "powers stand beside and have no part in the verdict.",
    measure=measure,
    judge_all=judge_all,
    draw=partial(draw_exponents, leading=CLAIMED),
    power=power,
    history=(
        Earlier(
            date="2026-11-18",
            rule="Powers of d and L in the critical N (accuracy 0.5). Supported if both 95 % intervals lie within 0.5 "
            "to 1.5, refuted if one lies outside. Three base seeds had to agree.",
            measured="critical N goes as d^-2.08 [-3.50, -0.67, theory -2.03] L^0.79 [0.45, 1.13, theory 0.81] over 12 "
            "points",
            verdict="refuted",
            reason="Base seeds are pooled in one fit, the box is as narrow as those of the other power laws, and the "
            "power is computed before the run.",
        ),
    ),
)
