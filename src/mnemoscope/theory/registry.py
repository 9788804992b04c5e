"""What theory covers, by kind of spec and embedding law.

A law registers its moments here (ours are in `embedding_laws.py`), an activation its formula in
`activation.FORMULAS`. Everything else is "not derived": no number, `valid` false, and the reason.
The bounds of `bound.py` hold for every U and Z and need no entry.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory.activation import FORMULAS
from mnemoscope.theory.quadrature import Nodes, chi_square_nodes
from mnemoscope.theory.spec_grid import Number, Sizes


@dataclass(frozen=True)
class Gram:
    """Moments of Z, whose V rows are the input embeddings: B = Z Z^T, t = |z|^2."""

    # V/d, the mean over tokens of sum_{w != v} (z_v . z_w)^2.
    load: Number
    # E t^2, E t^3, E t^4.
    norm2: Number
    norm3: Number
    norm4: Number
    # E tr B^3 / d and E tr B^4 / V, with the mean removed.
    third: Number
    fourth: Number


@dataclass(frozen=True)
class EmbeddingLaw:
    """What the formulas need to know about an embedding law.

    `gram` gives its moments from V and d; None means orthonormal embeddings. Squared norms are 1
    with `unit_norm`, else chi^2_d / d.
    """

    name: str
    unit_norm: bool
    gram: Callable[[Number, Number], Gram] | None

    @property
    def overlapping(self) -> bool:
        """Whether tokens overlap, by 1/sqrt(d); otherwise they are orthonormal."""
        return self.gram is not None

    @property
    def bounded(self) -> bool:
        """Whether an overlap is a unit vector's coordinate, with lighter tails than a normal one (B7)."""
        return self.unit_norm and self.overlapping

    def squared_norm_nodes(self, dim: Number, count: int) -> Nodes:
        """Nodes of |z|^2, along a new first axis."""
        if self.unit_norm:
            return np.ones((1, *np.shape(dim))), np.ones(1)
        return chi_square_nodes(np.asarray(dim, float), count)

    def norm_variance(self, dim: Number) -> Number:
        """The variance of |z|^2."""
        return 0.0 if self.unit_norm else 2 / dim

    def overlaps_trigger(self, spec: Sizes) -> Number:
        """Whether tokens overlap with the trigger; orthonormal ones do where d leaves no room for it."""
        return 1 if self.overlapping else spec.dim <= spec.vocab

    def least_dim(self, vocab: Number) -> Number:
        """The smallest possible dimension."""
        return 1 if self.overlapping else vocab


_LAWS: dict[tuple[str, str], EmbeddingLaw] = {}


def register(kind: str, law: EmbeddingLaw) -> None:
    """Let theory cover specs of this kind with this embedding law."""
    _LAWS[kind, law.name] = law


def embedding_law(name: str, kind: str = Retrieval.kind) -> EmbeddingLaw:
    """The registered law `name`."""
    return _LAWS[kind, name]


def gram_moments(spec: Sizes) -> Gram:
    """The moments of a spec's embeddings; the law must have overlaps."""
    gram = embedding_law(spec.embedding, spec.kind).gram
    assert gram is not None
    return gram(spec.vocab, spec.dim)


def derived_laws(kind: str = Retrieval.kind) -> tuple[str, ...]:
    """The names of the laws registered for a kind of spec."""
    return tuple(name for registered, name in _LAWS if registered == kind)


def kind_not_derived(kind: str) -> str:
    """Why theory says nothing of a kind of spec for which no law is registered."""
    kinds = dict.fromkeys(registered for registered, _ in _LAWS)
    return f"{kind} is not derived: theory is for {', '.join(kinds)}"


def missing(spec: Sizes) -> tuple[str, str]:
    """The choice that is not derived, and why; both empty where a derivation exists."""
    laws = derived_laws(spec.kind)
    if not laws:
        return "kind", kind_not_derived(spec.kind)
    if spec.embedding not in laws:
        shown = spec.embedding.partition("@")[0]
        return "embedding", f"{shown} embeddings are not derived: theory is for {', '.join(laws)}"
    if spec.hidden and spec.activation not in FORMULAS:
        return "activation", f"the activation {spec.activation} is not derived: theory is for {', '.join(FORMULAS)}"
    return "", ""


def not_derived(spec: Retrieval, *, trained: bool = False) -> str:
    """Why a setting is not derived; empty where a derivation exists. With `trained`, at the end of training."""
    if trained and spec.kind == Retrieval.kind and spec.tokens != UNIFORM:
        return f"the end of training is not derived for tokens by {spec.tokens}: its law is for uniform ones"
    return underived(spec)[1]


def underived(spec: Retrieval) -> tuple[str, str]:
    """The field that makes a setting not derived, and why; both empty where a derivation exists."""
    if spec.kind != Retrieval.kind:
        return missing(spec)
    if spec.eta != "limit" or spec.gamma != "limit":
        why = "finite step sizes are not derived: theory is for eta -> 0, gamma -> infinity"
        return ("eta" if spec.eta != "limit" else "gamma"), why
    if spec.then != "none":
        return "then", "training beyond the three steps is not derived"
    if spec.bits:
        return "bits", "rounded weights are not derived"
    if spec.tokens != UNIFORM and spec.hidden:
        return "tokens", f"tokens by {spec.tokens} are not derived with an MLP: its laws are for uniform ones"
    if spec.tokens != UNIFORM and spec.trigger != "keys":
        return "tokens", f"tokens by {spec.tokens} are not derived with the trigger in the values"
    if spec.from_file:
        return "embedding", "embeddings from a file are not derived: theory is for random ones"
    return missing(spec)
