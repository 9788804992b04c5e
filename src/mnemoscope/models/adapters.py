"""Modules of Equinox, Flax and PyTorch as models. None of these libraries is needed unless it is used.

    from_equinox(make)    make(key, task) -> module, which maps the tokens of one sequence to logits
    from_nnx(make)        make(rngs, task) -> module, which maps a batch of tokens to logits
    from_torch(make)      make(task) -> module, which maps a batch of tokens to logits

`make` may take sizes with defaults after these, which become sizes of the model; `frozen` names parameters that are not
to be trained. A torch module runs in PyTorch, on the
CPU, called from the compiled step; its gradient is PyTorch's, the optimiser is optax's.
"""

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.models.own import Model
from mnemoscope.spec import SpecError

# Torch modules by what makes them and their task: a call replaces their parameters.
_torch_modules: dict[Any, Any] = {}


def _library(name: str, package: str) -> Any:
    """A library that a user brings, or one line that says it is missing."""
    try:
        return import_module(name)
    except ImportError:
        line = f"expected {package} to be installed for this model, got none: pip install {package}"
        raise SpecError("model", line) from None


def _sized(make: Callable[..., Any], first: int, adapt: Callable[[Callable[..., Any]], Model]) -> Any:
    """The model; or, if `make` has sizes after its first parameters, a function of these that makes it."""
    sizes = [*inspect.signature(make).parameters.values()][first:]
    if not sizes:
        return adapt(make)

    def model(**values: Any) -> Model:
        return adapt(functools.partial(make, **values))

    model.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in sizes]
    )
    model.origin = make  # pyright: ignore[reportFunctionMemberAccess]
    return model


class _Still(NamedTuple):
    """The leaves of a module that are no arrays, and its tree; compared and hashed as such."""

    leaves: tuple[Any, ...]
    tree: Any


@functools.partial(jax.tree_util.register_dataclass, data_fields=["arrays"], meta_fields=["still"])
class _Arrays:
    """A module's arrays as parameters, with the rest of it in the tree."""

    def __init__(self, arrays: Any, still: _Still) -> None:
        self.arrays, self.still = arrays, still


def from_equinox(make: Callable[..., Any], *, frozen: tuple[str, ...] = ()) -> Any:
    """A model from an Equinox module that maps the tokens of one sequence to logits."""
    eqx = _library("equinox", "equinox")

    def adapt(make: Callable[..., Any]) -> Model:
        def init(key: Any, task: Any) -> _Arrays:
            arrays, still = eqx.partition(make(key, task), eqx.is_array)
            leaves, tree = jax.tree.flatten(still)
            return _Arrays(arrays, _Still(tuple(leaves), tree))

        def logits(params: _Arrays, tokens: Any) -> Any:
            module = eqx.combine(params.arrays, params.still.tree.unflatten(params.still.leaves))
            return jax.vmap(module)(tokens)

        return Model(init, logits, frozen=frozen, origin=make)

    return _sized(make, 2, adapt)


def from_nnx(make: Callable[..., Any], *, frozen: tuple[str, ...] = ()) -> Any:
    """A model from a module of flax.nnx that maps a batch of tokens to logits. Its state is taken as parameters."""
    nnx = _library("flax.nnx", "flax")

    def adapt(make: Callable[..., Any]) -> Model:
        def init(key: Any, task: Any) -> _Arrays:
            graph, state = nnx.split(make(nnx.Rngs(params=key), task))
            return _Arrays(state, _Still((), graph))

        def logits(params: _Arrays, tokens: Any) -> Any:
            return nnx.merge(params.still.tree, params.arrays)(tokens)

        return Model(init, logits, frozen=frozen, origin=make)

    return _sized(make, 2, adapt)


def from_torch(make: Callable[..., Any], *, frozen: tuple[str, ...] = ()) -> Any:
    """A model from a PyTorch module that maps a batch of tokens to logits.

    Initial weights are PyTorch's own, from a seed that the key gives.
    """
    torch = _library("torch", "torch")

    def adapt(make: Callable[..., Any]) -> Model:
        def module_of(task: Any) -> Any:
            if (make, task) not in _torch_modules:
                _torch_modules[make, task] = make(task).float()
            return _torch_modules[make, task]

        def draw(words: Any, task: Any) -> tuple[np.ndarray, ...]:
            high, low = (int(word) for word in np.asarray(words))
            torch.manual_seed((high << 31) ^ low)
            return tuple(part.detach().numpy().copy() for part in make(task).float().parameters())

        def init(key: Any, task: Any) -> _Arrays:
            module = module_of(task)
            names = [name for name, _ in module.named_parameters()]
            shapes = tuple(jax.ShapeDtypeStruct(tuple(part.shape), jnp.float32) for part in module.parameters())
            drawn = jax.pure_callback(
                functools.partial(draw, task=task), shapes, jax.random.key_data(key), vmap_method="sequential"
            )
            return _Arrays(dict(zip(names, drawn, strict=True)), _Still((task, task.labels), None))

        def forward(task: Any, tokens: Any, params: dict[str, Any]) -> np.ndarray:
            with torch.no_grad():
                return _call(torch, module_of(task), params, tokens).numpy()

        def backward(task: Any, tokens: Any, params: dict[str, Any], above: Any) -> dict[str, Any]:
            leaves = {name: _tensor(torch, part).requires_grad_() for name, part in params.items()}
            with torch.enable_grad():
                made = torch.func.functional_call(module_of(task), leaves, (_tensor(torch, tokens).long(),))
                parts = torch.autograd.grad(made, [*leaves.values()], _tensor(torch, above), allow_unused=True)
            told = zip(leaves.items(), parts, strict=True)
            return {name: (torch.zeros_like(leaf) if part is None else part).numpy() for (name, leaf), part in told}

        @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
        def called(still: Any, params: Any, tokens: Any) -> Any:
            task, labels = still
            shape = jax.ShapeDtypeStruct((len(tokens), labels), jnp.float32)
            return jax.pure_callback(functools.partial(forward, task), shape, tokens, params, vmap_method="sequential")

        def called_forward(still: Any, params: Any, tokens: Any) -> Any:
            return called(still, params, tokens), (params, tokens)

        def called_backward(still: Any, kept: Any, above: Any) -> Any:
            params, tokens = kept
            shapes = {name: jax.ShapeDtypeStruct(part.shape, jnp.float32) for name, part in params.items()}
            run = functools.partial(backward, still[0])
            gradient = jax.pure_callback(run, shapes, tokens, params, above, vmap_method="sequential")
            return gradient, np.zeros(tokens.shape, jax.dtypes.float0)

        called.defvjp(called_forward, called_backward)

        def logits(params: _Arrays, tokens: Any) -> Any:
            return called(params.still.leaves, params.arrays, tokens)

        return Model(init, logits, frozen=frozen, origin=make)

    return _sized(make, 1, adapt)


def _tensor(torch: Any, part: Any) -> Any:
    return torch.from_numpy(np.array(part))


def _call(torch: Any, module: Any, params: dict[str, Any], tokens: Any) -> Any:
    named = {name: _tensor(torch, part) for name, part in params.items()}
    return torch.func.functional_call(module, named, (_tensor(torch, tokens).long(),))
