"""Names that specs accept: embedding laws and activations. Their functions stand in `models/`.

The built-in names are listed here, so that a spec is read and refused without JAX. A function that
is registered by its decorator (`models.embeddings.law`, `models.activations.activation`) adds its
name, which specs accept from then on.
"""

from typing import Any, Literal, get_args

Activation = Literal["relu", "gelu", "tanh", "linear", "hermite2", "hermite3"]
Embedding = Literal["gaussian", "sphere", "orthonormal"]

# In order, as help and refusals list them.
ACTIVATIONS: list[str] = list(get_args(Activation))
LAWS: list[str] = list(get_args(Embedding))


def add_name(names: list[str], name: str) -> None:
    """Make a name known; one that is known stays where it is."""
    if name not in names:
        names.append(name)


def with_registered(annotation: Any) -> Any:
    """A field's type as help shows it: where it lists built-in names, those that were registered are added."""
    names = {Activation: ACTIVATIONS, Embedding: LAWS}.get(annotation)
    return annotation if names is None else Literal[tuple(names)]
