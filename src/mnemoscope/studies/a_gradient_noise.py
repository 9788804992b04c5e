"""Paper A: where the gradient noise binds, the critical N of attention goes as L V d^(-3/2)."""

from mnemoscope.studies.base import Size
from mnemoscope.studies.exponents import Axes, law_study

AXES: dict[Size, Axes] = {
    "quick": [("vocab", (512, 1024)), ("dim", (24, 36)), ("length", (6, 10))],
    "full": [("vocab", (1024, 2048, 4096)), ("dim", (24, 36, 54)), ("length", (6, 12))],
}
LEADING = {"vocab": 1.0, "dim": -1.5, "length": 1.0}

STUDY = law_study(
    id="a-gradient-noise",
    source="ours, after paper A",
    place="attention's noise terms",
    statement="For short sequences and V much larger than d, attention is limited by gradient "
    "noise: N d^(3/2) must exceed L V.",
    expected="L V d^-1.5",
    axes=AXES,
    leading=LEADING,
    measure="attention_accuracy",
)
