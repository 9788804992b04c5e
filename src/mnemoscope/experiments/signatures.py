"""Signatures that show every option, also those that a function passes on."""

import inspect
from collections.abc import Callable, Collection
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def spells_out(passed_to: Callable[..., Any], *, without: Collection[str] = ()) -> Callable[[F], F]:
    """Show the options of `passed_to`, with their defaults, in place of the `**options` that go there.

    Those in `without` the function gives itself.
    """

    def give(function: F) -> F:
        own = inspect.signature(function)
        named = [part for part in own.parameters.values() if part.kind is not inspect.Parameter.VAR_KEYWORD]
        passed = [
            part.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for part in inspect.signature(passed_to).parameters.values()
            if part.name not in (*own.parameters, *without) and part.default is not inspect.Parameter.empty
        ]
        vars(function)["__signature__"] = own.replace(parameters=[*named, *passed])
        return function

    return give
