"""What theory has a derivation for. A law or an activation that is not listed has none yet.

The formulas of `gram`, `attention`, `kernel` and `recall` tell the listed laws apart; for another
they would give the numbers of one of these, so it is refused before they are asked.
"""

from mnemoscope.spec import Retrieval
from mnemoscope.theory.activation import FORMULAS

LAWS = ("gaussian", "sphere", "orthonormal")


def missing(embedding: str, activation: str, hidden: bool) -> str:
    """What is not derived of embeddings and, where there is an MLP, of its activation; or nothing.

    >>> missing("rademacher", "relu", False)
    'rademacher embeddings are not derived: theory is for gaussian, sphere, orthonormal'
    """
    if embedding not in LAWS:
        return f"{embedding} embeddings are not derived: theory is for {', '.join(LAWS)}"
    if hidden and activation not in FORMULAS:
        return f"the activation {activation} is not derived: theory is for {', '.join(FORMULAS)}"
    return ""


def not_derived(spec: Retrieval) -> str:
    """Why theory has nothing to say of a setting, or nothing when it has."""
    return underived(spec)[1]


def underived(spec: Retrieval) -> tuple[str, str]:
    """The field that theory has no derivation for, and why; both empty where it has one."""
    if spec.eta != "limit" or spec.gamma != "limit":
        why = "finite step sizes are not derived: theory is for eta -> 0, gamma -> infinity"
        return ("eta" if spec.eta != "limit" else "gamma"), why
    if spec.then != "none":
        return "then", "training beyond the three steps is not derived"
    if spec.from_file:
        return "embedding", "embeddings from a file are not derived: theory is for random ones"
    why = missing(spec.embedding, spec.activation, spec.width > 0)
    return ("embedding" if spec.embedding not in LAWS else "activation") if why else "", why
