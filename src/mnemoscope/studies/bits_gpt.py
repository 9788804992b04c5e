r"""Paper N: a language model stores 2 bits of knowledge for each parameter.

Small GPTs are given facts (s, r) -> one of D answers of r: log2 D bits each. All weights are trained, embeddings among
them, so S subjects cost S d parameters. With R = 2 d relations of D = 8 answers and S = 14 d (1 + layers) subjects the
facts have about 3 bits for each parameter, more than the claim lets the model store.
"""

from collections.abc import Sequence
from typing import Any

from mnemoscope.spec import Transformer
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.stored_bits import Claim, draw_bits, judge_bits, measure_bits, power_of_bits, trained

DIMS: dict[Size, tuple[int, ...]] = {"quick": (4, 6, 8), "full": (20, 36, 64)}
LAYERS: dict[Size, int] = {"quick": 1, "full": 2}
SEEDS: dict[Size, int] = {"quick": 3, "full": 2}
EXPOSURES: dict[Size, int] = {"quick": 200, "full": 1000}
ANSWERS = 8
# From halfway to what notes report after 100 exposures, 1, to as far above.
CLAIM = Claim(2.0, 1.5, 2.5, rivals=(1.0, 2.8, 3.6))


def specs_of(size: Size) -> list[Transformer]:
    """The models, each with about 3 bits of facts for a parameter."""
    layers = LAYERS[size]
    return [
        trained(
            Transformer(
                task="facts",
                subjects=14 * (1 + layers) * dim,
                relations=2 * dim,
                answers=ANSWERS,
                noise=1,
                length=3,
                layers=layers,
                dim=dim,
                heads=layers,
                width=4 * dim,
            ),
            EXPOSURES[size],
        )
        for dim in DIMS[size]
    ]


def measure(size: Size, bench: Bench) -> Numbers:
    """Bits a parameter at every size."""
    return measure_bits(bench, specs_of(size), SEEDS[size])


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """Beside 2."""
    return judge_bits(all_numbers, CLAIM)


def power(size: Size) -> Power:
    """The power at 2 bits a parameter, and at others."""
    return power_of_bits(specs_of(size), size, SEEDS[size], CLAIM)


def draw(numbers: Numbers, figure: Any) -> None:
    """Bits a parameter against parameters."""
    draw_bits(numbers, figure, CLAIM)


STUDY = Study(
    id="bits-gpt",
    revision=1,
    source="paper N (abstract)",
    place="the abstract: language models store 2 bits of knowledge for each parameter, and no more; that it takes "
    "about 1000 exposures is reported by notes on it",
    statement="A GPT that was given more facts than it can hold stores 2 bits of them for each parameter.",
    expected="2 bits a parameter at every size",
    rule="Mean and 95 % interval over all base seeds' seeds of the bits that coding by the model saves, over all "
    "trained parameters, at three sizes. A size was trained to the end if the second half of its steps adds less than "
    "5 %, with the 95 % interval; else it was cut short. Supported if no size was cut short and all intervals lie "
    "within 1.5 to 2.5. Refuted if one lies above 2.5, or if all lie below 1.5 and at least two sizes were trained to "
    "the end.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
