"""The state of a page, read from its address: bounded, checked, and the same after a reload."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast, get_args
from urllib.parse import urlencode

from mnemoscope.experiments.plan_laws import Training
from mnemoscope.spec import Retrieval, SpecError, Trigger, read_option
from mnemoscope.spec.names import ACTIVATIONS, LAWS
from mnemoscope.spec.token_laws import read_tokens
from mnemoscope.spec.validators import FROM_FILE, between, one_of, shown, whole
from mnemoscope.tasks.token_files import load
from mnemoscope.theory.spec_grid import SpecGrid

# The range of every size. Wide enough to see each regime; small enough that no request is costly.
RANGES = {"vocab": (64, 8192), "dim": (8, 2048), "length": (2, 1024), "samples": (100, 1_000_000), "width": (16, 8192)}
CHOICES = {"activation": ACTIVATIONS, "embedding": LAWS, "trigger": get_args(Trigger)}
# The largest exponent of Zipf's law on the page; 0 is uniform tokens.
MOST_ZIPF = 3.0
# Fields that can be the x axis; the y axis is always samples.
ACROSS = ("dim", "length", "vocab", "width")
# What trains a model to the end when it is measured: as many steps as it takes to settle, at most so many.
TO_THE_END = {"then": "adamw", "steps": 3000, "stop": "settled"}
# What a first visit shows: a setting in which several regimes meet, after the three steps that the laws are about.
FIRST: dict[str, Any] = {
    **{"vocab": 512, "dim": 128, "length": 64, "samples": 4000, "width": 0},
    **{"activation": "hermite3", "embedding": "gaussian", "trigger": "keys", "zipf": 0, "law": "", "target": 0.5},
    **{"x": "dim", "training": "three-steps"},
}


@dataclass(frozen=True)
class State:
    """Sizes and choices of the setting at the cross, the contour's accuracy, the x axis, and the training."""

    values: Mapping[str, Any]
    target: float
    x: str
    training: Training = "three-steps"

    @property
    def trained(self) -> bool:
        """Whether models are trained to the end."""
        return self.training == "trained"

    @property
    def tokens(self) -> str:
        """The law of the tokens' frequencies."""
        return self.values["tokens"]

    @property
    def zipf(self) -> float:
        """Its exponent; 0 is uniform, or a law of the user's own."""
        return float(self.tokens.removeprefix("zipf:")) if self.tokens.startswith("zipf:") else 0.0

    @property
    def own_law(self) -> str:
        """The user's own probabilities, by the name that they are kept under; empty without."""
        return self.tokens if FROM_FILE.fullmatch(self.tokens) else ""

    @cached_property
    def spec(self) -> Retrieval:
        """The setting; an error if it is impossible, as with fewer orthonormal dimensions than tokens."""
        return Retrieval.read(dict(self.values))

    @property
    def query(self) -> str:
        """The state as a query string."""
        values = {name: value for name, value in self.values.items() if name != "tokens"}
        law = {"law": self.own_law} if self.own_law else {"zipf": f"{self.zipf:g}"}
        page = {**law, "target": self.target, "x": self.x, "training": self.training}
        return urlencode({**values, **page})

    @property
    def measured_spec(self) -> Retrieval:
        """The setting with the training that a measurement gives it."""
        return self.spec.replace(**TO_THE_END) if self.trained else self.spec

    @property
    def further(self) -> str:
        """That training as a command's options, empty after three steps."""
        return "".join(f" --{name} {value}" for name, value in TO_THE_END.items()) if self.trained else ""

    def cells(self, **sizes: Any) -> SpecGrid:
        """A grid of settings with other sizes."""
        return SpecGrid.of(self.values, **sizes)

    def options(self, *without: str) -> str:
        """The setting as a command's options, without defaults."""
        options = {name: self.values[name] for name in RANGES}
        options |= {name: self.values[name] for name in ("embedding", "trigger", "tokens")}
        if self.values["width"] or "width" in without:
            options["activation"] = self.values["activation"]
        for name in without:
            options.pop(name)
        fields = Retrieval.model_fields
        return " ".join(f"--{name} {value}" for name, value in options.items() if value != fields[name].default)

    @property
    def command(self) -> str:
        """The command that predicts and draws the same diagram; empty if the diagram is."""
        (left, right), (low, high) = RANGES[self.x], RANGES["samples"]
        if self.values["embedding"] == "orthonormal":  # only where settings exist
            if self.x == "dim":
                left = max(left, self.values["vocab"])
            elif self.x == "vocab":
                right = min(right, self.values["dim"])
            if left >= right or (self.x in ("length", "width") and not self.possible):
                return ""
        return (
            f"mnemoscope phase {self.options(self.x, 'samples')}{self.further} --x {self.x}={left}:{right}:33 "
            f"--y samples={low}:{high}:25 --target {self.target:g} --theory --out map.svg"
        )

    @property
    def possible(self) -> bool:
        """Whether the setting exists."""
        return self.values["embedding"] != "orthonormal" or (self.values["dim"] >= self.values["vocab"])


def axes_of(tokens: str) -> tuple[str, ...]:
    """What can be the x axis: not V, where the tokens' probabilities are given one by one."""
    return tuple(name for name in ACROSS if name != "vocab" or not FROM_FILE.fullmatch(tokens))


def count_tokens(law: str, option: str) -> int:
    """V, which probabilities of the user's own decide; it must be one that the page can show."""
    if not FROM_FILE.fullmatch(law):
        raise SpecError(option, f"expected the name of probabilities that are kept here, got {shown(law)}")
    try:
        count = len(load(law))
    except SpecError as error:
        raise SpecError(option, error.message) from None
    low, high = RANGES["vocab"]
    if not low <= count <= high:
        raise SpecError(option, f"expected from {low} to {high:,} probabilities here, got {count:,}")
    return count


def read_state(words: Mapping[str, Any]) -> State:
    """A page's state from its address; missing values are those of a first visit."""
    given = {**FIRST, **{name: value for name, value in words.items() if name in FIRST}}
    values: dict[str, Any] = {}
    for name, (low, high) in RANGES.items():
        values[name] = read_option(name, whole(0 if name == "width" else low, high), given[name])
    for name, names in CHOICES.items():
        values[name] = read_option(name, one_of(*names), given[name])
    least = RANGES["width"][0]
    if 0 < values["width"] < least:
        raise SpecError("width", f"expected 0, or at least {least}, got {values['width']}")
    if given["law"]:
        values |= {"tokens": given["law"], "vocab": count_tokens(given["law"], "law")}
    else:
        exponent = read_option("zipf", between(0, MOST_ZIPF), given["zipf"])
        values["tokens"] = read_tokens(f"zipf:{exponent:g}")
    target = read_option("target", between(0.01, 0.99), given["target"])
    x = read_option("x", one_of(*axes_of(values["tokens"])), given["x"])
    training = cast(Training, read_option("training", one_of(*get_args(Training)), given["training"]))
    return State(values, target, x, training)
