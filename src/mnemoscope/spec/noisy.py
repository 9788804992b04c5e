"""A user's function at one place, whose answers are noisy: what `search` asks for."""

from typing import Any, ClassVar

from pydantic import Field, model_validator

from mnemoscope.spec.base import SpecError
from mnemoscope.spec.carrying import Carrying
from mnemoscope.spec.objects import name_object
from mnemoscope.spec.validators import is_kept_name


class Noisy(Carrying, frozen=True, extra="forbid"):
    """A function of a place and a seed, and the place; its answers lie between two bounds."""

    kind: ClassVar[str] = "noisy"

    function: str = Field(description="a function of (x, seed) that returns a number")
    x: int | float = Field(description="the place")
    least: float = Field(default=0.0, description="the least answer that there is")
    most: float = Field(default=1.0, description="the largest one")

    @model_validator(mode="before")
    @classmethod
    def _take_function(cls, values: Any) -> Any:
        """Name the function."""
        if not isinstance(values, dict) or is_kept_name(values.get("function")):
            return values
        thing = values.get("function")
        if not callable(thing) and not isinstance(thing, str):
            raise SpecError("function", f"expected a function of (x, seed), got a {type(thing).__name__}")
        return {**values, "function": name_object("function", thing)}

    @model_validator(mode="after")
    def _check_together(self) -> "Noisy":
        if not self.least < self.most:
            raise SpecError("bounds", f"expected the least answer below the largest, got {self.least:g}, {self.most:g}")
        return self
