"""Paper A: where the mean bias binds, the critical N of attention goes as L^2 V^(1/2) d^(-3/2)."""

from mnemoscope.studies.base import Size
from mnemoscope.studies.exponents import Axes, law_study

AXES: dict[Size, Axes] = {
    "quick": [("vocab", (128, 192)), ("dim", (32, 48)), ("length", (64, 96))],
    "full": [("vocab", (256, 512, 1024)), ("dim", (64, 96, 128)), ("length", (128, 256))],
}
LEADING = {"vocab": 0.5, "dim": -1.5, "length": 2.0}

STUDY = law_study(
    id="a-mean-bias",
    source="ours, after paper A",
    place="attention's noise terms",
    statement="For long sequences attention is limited by the mean bias: N d^(3/2) must exceed "
    "L^2 V^(1/2).",
    expected="L^2 V^0.5 d^-1.5",
    axes=AXES,
    leading=LEADING,
    measure="attention_accuracy",
)
