"""Names that specs accept: embedding laws and activations. Their functions are in `models/`.

The built-in names are listed here, so that specs are validated without JAX. The decorators
`models.embeddings.law` and `models.activations.activation` add the names of further functions.
"""

from typing import TYPE_CHECKING, Any, Literal, get_args

Activation = Literal["relu", "gelu", "tanh", "linear", "hermite2", "hermite3"]
Embedding = Literal["gaussian", "sphere", "orthonormal"]

# A name, where an object may be given in its place: settings hold its name, and type checkers take the object, too.
if TYPE_CHECKING:
    NameOrObject = str | Any
else:
    NameOrObject = str

# In the order in which help and error messages list them.
ACTIVATIONS: list[str] = list(get_args(Activation))
LAWS: list[str] = list(get_args(Embedding))


def add_name(names: list[str], name: str) -> None:
    """Add a name that is not listed yet."""
    if name not in names:
        names.append(name)


def with_registered(annotation: Any) -> Any:
    """A field's type as help shows it, with registered names beside the built-in ones."""
    names = {Activation: ACTIVATIONS, Embedding: LAWS}.get(annotation)
    return annotation if names is None else Literal[tuple(names)]
