"""Paper O: GPTs have room for about 3.6 bits a parameter, measured with random strings, which cannot be generalised.

Strings of T tokens, each uniform among V, have T log2 V bits and no pattern. Nothing says which of the n strings is
asked for, so a model that knows them all still needs log2 n bits for each: n (T log2 V - log2 n) is the most that
coding can save. The models are given about 7 bits of strings for each parameter, of which they can save at least 4.9.
"""

import math
from collections.abc import Sequence
from typing import Any

from mnemoscope.spec import Transformer
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.stored_bits import Claim, draw_bits, judge_bits, measure_bits, power_of_bits, trained

DIMS: dict[Size, tuple[int, ...]] = {"quick": (6, 10, 16), "full": (32, 56, 104)}
LAYERS: dict[Size, int] = {"quick": 1, "full": 2}
SEEDS: dict[Size, int] = {"quick": 3, "full": 2}
EXPOSURES: dict[Size, int] = {"quick": 150, "full": 2000}
VOCAB: dict[Size, int] = {"quick": 16, "full": 64}
LENGTH: dict[Size, int] = {"quick": 8, "full": 16}
LOAD = 7
# From halfway to paper N's 2 to as far above.
CLAIM = Claim(3.6, 2.8, 4.4, rivals=(2.0, 5.2))


def specs_of(size: Size) -> list[Transformer]:
    """The models, each with about 7 bits of strings for a parameter."""
    layers, vocab, length = LAYERS[size], VOCAB[size], LENGTH[size]
    specs = []
    for dim in DIMS[size]:
        model = Transformer(
            task="random-strings",
            vocab=vocab,
            length=length,
            layers=layers,
            dim=dim,
            heads=layers,
            width=4 * dim,
            embeddings="tied",
        )
        strings = round(LOAD * model.parameters / (length * math.log2(vocab)))
        specs.append(trained(model.replace(strings=strings), EXPOSURES[size]))
    return specs


def measure(size: Size, bench: Bench) -> Numbers:
    """Bits a parameter at every size."""
    return measure_bits(bench, specs_of(size), SEEDS[size])


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """Beside 3.6."""
    return judge_bits(all_numbers, CLAIM)


def power(size: Size) -> Power:
    """The power at 3.6 bits a parameter, and at others."""
    return power_of_bits(specs_of(size), size, SEEDS[size], CLAIM)


def draw(numbers: Numbers, figure: Any) -> None:
    """Bits a parameter against parameters."""
    draw_bits(numbers, figure, CLAIM)


STUDY = Study(
    id="bits-random",
    revision=1,
    source="paper O (abstract)",
    place="the abstract: GPT-style models have a capacity of about 3.6 bits a parameter, where generalisation is "
    "eliminated; that this was measured with random strings is in summaries of the paper",
    statement="A GPT that was given more random strings than it can hold memorises about 3.6 bits of them for each "
    "parameter.",
    expected="3.6 bits a parameter at every size",
    rule="Mean and 95 % interval over all base seeds' seeds of the bits that coding by the model saves, over all "
    "trained parameters, at three sizes. A size was trained to the end if the second half of its steps adds less than "
    "5 %, with the 95 % interval; else it was cut short. Supported if no size was cut short and all intervals lie "
    "within 2.8 to 4.4. Refuted if one lies above 4.4, or if all lie below 2.8 and at least two sizes were trained to "
    "the end.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
