"""What theory has a derivation for. A law or an activation that is not listed has none yet.

The formulas of `gram`, `attention`, `kernel` and `recall` tell the listed laws apart; for another
they would give the numbers of one of these, so it is refused before they are asked.
"""

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
