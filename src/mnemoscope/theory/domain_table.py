"""The domain of every law: a row for each, with where it was checked against simulation.

To cover another law, add a row or split one. Rows of one measure must not overlap, and together they cover every
setting that is derived (`tests/theory/test_domain.py` goes through all choices).
"""

from functools import partial

from mnemoscope.theory.limits import FREQUENCIES, TRAINED, Domain, Limit

RANDOM = ("gaussian", "sphere")
BARE, MLP = ("attention-only",), ("attention-MLP",)
TOKENS = Limit("V", low=64, why="fewer than 64 tokens: averages over the vocabulary are rough")
DIMENSIONS = Limit("d", low=12, why="fewer than 12 dimensions: overlaps are far from normal")
SAMPLES = Limit("N", low=200, why="fewer than 200 samples: counts are far from their means")
USUAL = (TOKENS, DIMENSIONS, SAMPLES)
# The ranges of `for_accuracy`, `for_spread` and `for_mlp` in experiments/validation/drawn_settings.py.
RUN = {"V": (128, 1024), "d": (12, 512), "L": (8, 256), "N/V": (0.7, 150)}
FRAME_RUN = {"V": (64, 512), "L": (4, 64), "N/V": (0.7, 60)}
MLP_RUN = {"V": (64, 384), "d": (16, 192), "L": (4, 32), "N/V": (2, 80), "m": (64, 2048)}
MLP_DIMENSIONS = Limit("d", low=16, why="fewer than 16 dimensions with an MLP: overlaps are far from normal")
UNITS = Limit("m", low=64, why="fewer than 64 hidden units: a query hangs on a handful of them")
SHARE = Limit(
    "L/V",
    high=0.2,
    why="L/V = {value} with an MLP: a sequence holds a token twice too often, and attention comes out up to 0.17 low",
)
SPHERE_SHARE = Limit(
    "L/V", high=0.2, why="L/V = {value} on the sphere: attention came out up to 0.23 lower than in simulation"
)

# The ranges of `for_frequencies`.
FREQUENCIES_RUN = {"V": (64, 512), "d": (12, 256), "L": (2, 64), "N": (500, 30_000)}
TRAINED_RUN = {"V": (64, 220), "d": (12, 64), "L": (4, 48), "N/V": (1.5, 25)}
SHOWN = Limit("N/V", low=1.5, why="{value} samples a token: training stores part of them by their noise")
STORED = Limit(
    "N/N_c",
    high=0.9,
    why="{value} times the facts that the values can hold: near 1 and above, attention, too, chooses among them; "
    "accuracy lies between that of values trained alone, which is given, and the interval's upper end",
)

_ACCURACY = partial(Domain, measure="accuracy")
_ATTENTION = partial(_ACCURACY, limits=USUAL, validated="mnemoscope validate accuracy", held=RUN)
_FRAME = partial(_ACCURACY, validated="mnemoscope validate spread", held=FRAME_RUN)
_MLP = partial(_ACCURACY, validated="mnemoscope validate mlp", held=MLP_RUN)
_MATCHED = partial(Domain, measure="first_gradient")
TRIGGER_FITS = Limit(
    "d - V", low=1, why="no room for the trigger beside the tokens: their overlaps with it are left out of (B9)"
)
SHORT = Limit(
    "L",
    high=8,
    why="L = {value} with hermite2: attention hangs on the embeddings' "
    "mean and on label counts, which a seed draws once; held up to 8",
)
SMOOTH = ("hermite3", "relu", "gelu", "tanh")

DOMAINS = (
    _ATTENTION("attention-only, keys", about={"model": BARE, "embedding": ("gaussian",), "trigger": ("keys",)}),
    _ATTENTION("attention-only, additive", about={"model": BARE, "embedding": ("gaussian",), "trigger": ("additive",)}),
    _ATTENTION(
        "attention-only, sphere", about={"model": BARE, "embedding": ("sphere",)}, limits=(*USUAL, SPHERE_SHARE)
    ),
    _FRAME(
        "attention-only, orthonormal, keys",
        about={"model": BARE, "embedding": ("orthonormal",), "trigger": ("keys",)},
        limits=(TOKENS, SAMPLES),
    ),
    _FRAME(
        "attention-only, orthonormal, additive",
        about={"model": BARE, "embedding": ("orthonormal",), "trigger": ("additive",)},
        limits=(TOKENS, SAMPLES, TRIGGER_FITS),
    ),
    _MLP(
        "attention-MLP",
        about={"model": MLP, "embedding": RANDOM, "activation": SMOOTH},
        limits=(TOKENS, MLP_DIMENSIONS, SAMPLES, UNITS, SHARE),
    ),
    _MLP(
        "attention-MLP, hermite2",
        about={"model": MLP, "activation": ("hermite2",), "trigger": ("keys",)},
        limits=(TOKENS, MLP_DIMENSIONS, SAMPLES, UNITS, SHORT),
    ),
    _ACCURACY(
        "attention-MLP, hermite2, additive",
        about={"model": MLP, "activation": ("hermite2",), "trigger": ("additive",)},
        doubt="hermite2 with the trigger in the values: the trigger's weight is a difference of "
        "two terms of like size (C4), and accuracy comes out up to 0.14 off",
    ),
    _MLP(
        "attention-MLP, orthonormal",
        about={"model": MLP, "embedding": ("orthonormal",), "activation": SMOOTH},
        limits=(TOKENS, SAMPLES, UNITS),
        held={**MLP_RUN, "d": (64, 576)},
    ),
    _ACCURACY(
        "attention-MLP, linear",
        about={"model": MLP, "activation": ("linear",)},
        doubt="an MLP that is linear: not held against simulation",
    ),
    # (D4). Larger vocabularies are inside, too: what is left out of it falls as 1/V and 1/d.
    _MATCHED(
        "matched filter (D4)",
        about={"model": BARE, "embedding": RANDOM, "trigger": ("keys",)},
        limits=(
            Limit("V", low=32, why="fewer than 32 tokens: sums over labels are not close to their means"),
            Limit("d", low=5, why="fewer than 5 dimensions: overlaps are far from normal"),
            Limit("V/d", 1 / 4, 16.0, "V/d = {value}: (D4) was held against simulation from 1/4 to 16"),
            Limit("L/V", high=2.0, why="L/V = {value}: (D4) was held against simulation up to 2"),
        ),
        validated="mnemoscope validate matched",
        held={"V": (32, 2048)},
    ),
    _MATCHED(
        "matched filter, attention-MLP", about={"model": MLP}, doubt="an MLP changes the scores: (D4) is attention-only"
    ),
    _MATCHED(
        "matched filter, additive",
        about={"model": BARE, "trigger": ("additive",)},
        doubt="a trigger in the values adds to every score: (D4) has it in the keys alone",
    ),
    _MATCHED(
        "matched filter, orthonormal",
        about={"model": BARE, "trigger": ("keys",), "embedding": ("orthonormal",)},
        doubt="orthonormal embeddings are not derived: (D4) is for gaussian and sphere",
    ),
    # (T10).
    Domain(
        "end of training, attention-only",
        TRAINED,
        about={"model": BARE, "trigger": ("keys",)},
        limits=(TOKENS, SHOWN, STORED),
        validated="mnemoscope validate trained",
        held=TRAINED_RUN,
    ),
    Domain(
        "end of training, additive",
        TRAINED,
        about={"model": BARE, "trigger": ("additive",)},
        doubt="a trigger in the values: its training was not held against simulation",
    ),
    Domain(
        "end of training, attention-MLP",
        TRAINED,
        about={"model": MLP},
        doubt="an MLP: N_c was held against exact solutions, but not the whole model's training",
    ),
    # (Z17).
    Domain(
        "frequencies of tokens, attention-only",
        FREQUENCIES,
        about={"model": BARE, "trigger": ("keys",), "embedding": RANDOM},
        limits=USUAL,
        validated="mnemoscope validate frequencies",
        held=FREQUENCIES_RUN,
    ),
    Domain(
        "frequencies of tokens, orthonormal",
        FREQUENCIES,
        about={"model": BARE, "trigger": ("keys",), "embedding": ("orthonormal",)},
        limits=(TOKENS, SAMPLES, TRIGGER_FITS),
        validated="mnemoscope validate frequencies",
        held={**FREQUENCIES_RUN, "d": (65, 768)},
    ),
)
