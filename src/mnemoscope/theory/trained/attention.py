r"""Attention after training.

Where training starts from the three steps, what attention does in the end depends on what it does there:

- It mostly finds the informative token already. Then more of it makes every sample's loss smaller, training keeps it,
  and the share of sequences in which it errs shrinks towards those that no direction w can tell apart. Tokens are told
  apart if their scores z_v^T w span less than the trigger's lift. With r the least largest score of V tokens over all w
  with a lift of 1, (T5), scores span about 2 r, so that

      attention accuracy -> 1   where   2 r(V, d) < 1.                                                    (T12)

- It mostly does not. Then training may store whole sequences instead, by the noise in them, and what comes of
  attention differs from seed to seed. No law is known; the three steps' attention stands in for it, and the prediction
  is not valid.

The line between the two, FOUND, was drawn from trainings (docs/theory/trained.md).
"""

from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import attended_by_seed, attention_terms, lift_over_seeds

# The three steps' attention accuracy from which training makes it perfect.
FOUND = 0.8


def first_attention(spec: Retrieval) -> float:
    """The share of sequences in which attention is right after the three steps."""
    if spec.length == 1:
        return 1.0
    seeds = lift_over_seeds(spec, attention_terms(spec))
    return float(seeds.weight @ attended_by_seed(spec.length, seeds))


def attended_share(spec: Retrieval) -> float:
    """The share of sequences in which the trained model's attention is on the informative token."""
    first = first_attention(spec)
    return 1.0 if first >= FOUND else first
