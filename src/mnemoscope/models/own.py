"""Models of the user's own: plain functions of parameters, which may be any tree of arrays.

init(key, task) -> params                 from a key of `jax.random` and the task's sizes
logits(params, tokens) -> B x labels      for a batch of B x length tokens
attention(params, tokens) -> B x length   optional: where the last token looks
frozen                                    optional: names of parameters that are not trained
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import one_line


@runtime_checkable
class AnyModel(Protocol):
    """What a model needs; no base class."""

    def init(self, key: Any, task: Any) -> Any:
        """The initial parameters."""
        ...

    def logits(self, params: Any, tokens: Any) -> Any:
        """A logit for every label."""
        ...


@dataclass(frozen=True)
class Model:
    """A model from its parts, for those who need no class of their own."""

    init: Callable[[Any, Any], Any]
    logits: Callable[[Any, Any], Any]
    attention: Callable[[Any, Any], Any] | None = None
    frozen: tuple[str, ...] = ()
    # The function that it was made from, whose name it takes; by default the first.
    origin: Any = None

    def __post_init__(self) -> None:
        if self.origin is None:
            object.__setattr__(self, "origin", self.init)


class Parts(NamedTuple):
    """The shape of a model's parameters: their tree, the names of its leaves, and which of them are trained."""

    tree: Any
    names: tuple[str, ...]
    trained: tuple[bool, ...]
    shapes: tuple[Any, ...]

    def split(self, params: Any) -> tuple[list[Any], list[Any]]:
        """The trained leaves, and the others."""
        leaves = jax.tree.leaves(params)
        return tuple(  # pyright: ignore[reportReturnType]
            [jnp.asarray(leaf) for leaf, trained in zip(leaves, self.trained, strict=True) if trained is which]
            for which in (True, False)
        )

    def join(self, trained: list[Any], others: list[Any]) -> Any:
        """The parameters again."""
        left = [iter(others), iter(trained)]
        return self.tree.unflatten(next(left[which]) for which in self.trained)


def parts_of(place: str, model: AnyModel, task: Any) -> Parts:
    """The shape of a model's parameters, without computing them. Whole numbers are not trained."""
    try:
        shapes = jax.eval_shape(lambda key: model.init(key, task), jax.random.key(0))
    except Exception as error:  # a user's function may raise anything
        raise SpecError("model", f"expected parameters from {place}.init, got {one_line(error)}") from None
    paths, tree = jax.tree_util.tree_flatten_with_path(shapes)
    written = (jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths)
    names = tuple(name.removeprefix("arrays.") or "params" for name in written)
    frozen = tuple(getattr(model, "frozen", ()))
    unknown = [name for name in frozen if not any(_under(leaf, name) for leaf in names)]
    if unknown:
        raise SpecError("model", f"expected frozen parameters of {place} out of {', '.join(names)}, got {unknown[0]!r}")
    trained = tuple(
        jnp.issubdtype(shape.dtype, jnp.floating) and not any(_under(name, part) for part in frozen)
        for name, (_, shape) in zip(names, paths, strict=True)
    )
    if not any(trained):
        raise SpecError("model", f"expected parameters to train from {place}.init, got none")
    return Parts(tree, names, trained, tuple(shape for _, shape in paths))


def _under(leaf: str, name: str) -> bool:
    return leaf == name or leaf.startswith(f"{name}.")


def logits_of(
    place: str, model: AnyModel, params: Any, tokens: Int32[Array, "B T"], labels: int
) -> Float[Array, "B A"]:
    """The logits of a batch, with their shape checked."""
    try:
        made = jnp.asarray(model.logits(params, tokens))
    except Exception as error:  # a user's function may raise anything
        raise SpecError("model", f"expected logits from {place}, got {one_line(error)}") from None
    if made.shape != (len(tokens), labels):
        raise SpecError("model", f"expected logits of shape {(len(tokens), labels)} from {place}, got {made.shape}")
    return made.astype(float)


def attention_of(place: str, model: AnyModel, params: Any, tokens: Int32[Array, "B T"]) -> Float[Array, "B T"] | None:
    """The attention of a batch, of a model that tells it."""
    attend = getattr(model, "attention", None)
    if attend is None:
        return None
    made = jnp.asarray(attend(params, tokens))
    if made.shape != tokens.shape:
        raise SpecError("model", f"expected attention of shape {tokens.shape} from {place}, got {made.shape}")
    return made.astype(float)
