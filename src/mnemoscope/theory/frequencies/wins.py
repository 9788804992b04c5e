r"""Which token of a sequence attention picks, and so which pairs the third step stores.

A sequence's other tokens are independent. With F(t) the chance that one of them scores below t, the informative token
x keeps attention with the chance F(s_x + lift)^(L-1) (Z11). Where the lift is negative, a second x in the sequence
beats it, which does no harm to the value. Token v wins as noise, against label y, with the chance

    F(s_v)^(L-1) - F(s_v-)^(L-1),    and only if    s_v > s_y + lift                         (Z12)

A seed's tokens keep their scores. With pi the chance that a token of a group scores above t, and p' its probability
given that the others stay below, the mean over seeds of F^(L-1) is larger than the power of the mean by

    prod_v [1 - pi + pi (1 - p')^(L-1)] / (1 - p' pi)^(L-1)                                  (Z13)
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.frequencies.scores import Scores, Seeds
from mnemoscope.theory.quadrature import normal_nodes
from mnemoscope.theory.registry import embedding_law

# Nodes over the scores of a group's tokens.
NODES = 5
LEAST, SURE = 1e-12, 1 - 1e-12


@dataclass(frozen=True)
class Queries:
    """One token of every group in every seed, as a query: its overlaps with the single tokens, and its square.

    `place` holds its coordinates in the vectors of `Seeds`.
    """

    overlaps: np.ndarray
    square: np.ndarray
    place: np.ndarray


@dataclass(frozen=True)
class Wins:
    """Shares of sequences. Axes: seeds; the label's token, if any; the token that attention picks."""

    # Attention is right; the value that attention reads is the informative token's.
    single_attended: np.ndarray
    rare_attended: np.ndarray
    single_kept: np.ndarray
    rare_kept: np.ndarray
    # The same, averaged over a group's tokens.
    usual_kept: np.ndarray
    # A token wins as noise: single ones, and the query of every group.
    single_by_single: np.ndarray
    rare_by_single: np.ndarray
    single_by_query: np.ndarray
    # Wrong pairs at a group's query from the labels of all groups.
    query_errors: np.ndarray
    # In the groups' columns: mean square of the wrong pairs of each single label, and all pairs of the others.
    single_squares: np.ndarray
    errors: np.ndarray


def draw_queries(spec: Retrieval, seeds: Seeds) -> Queries:
    """The vectors of the groups' queries."""
    tokens, draws = seeds.tokens, seeds.draws
    law, groups, known = embedding_law(spec.embedding), len(tokens.rare), seeds.Z.shape[-1]
    if not law.overlapping:
        place = np.zeros((draws.count, groups, known))
        return Queries(np.zeros((draws.count, groups, len(tokens.single))), np.ones((draws.count, groups)), place)
    place = draws.normal(groups, known) * (np.arange(known) < spec.dim) / np.sqrt(spec.dim)
    square = (place**2).sum(-1) + draws.chi_square(float(spec.dim - known), groups) / spec.dim
    if law.bounded:
        place = place / np.sqrt(square)[..., None]
        square = np.ones_like(square)
    return Queries(np.einsum("sgi,ski->sgk", place, seeds.Z), square, place)


def locked(seeds: Seeds) -> Wins:
    """Attention that is always right."""
    S, K, B = seeds.draws.count, len(seeds.tokens.single), len(seeds.tokens.rare)

    def none(*shape: int) -> np.ndarray:
        return np.zeros((S, *shape))

    single, rare = np.ones((S, K)), np.ones((S, B))
    pairs = none(K, K), none(B, K), none(K, B)
    return Wins(single, rare, single, rare, rare, *pairs, none(B), none(K), none(1))


def wins(spec: Retrieval, seeds: Seeds, scores: Scores, queries: Queries) -> Wins:
    """Shares of sequences that tokens win."""
    tokens, N, others = seeds.tokens, spec.samples, spec.length - 1
    often, rare, size = tokens.often, tokens.rare, tokens.size
    lift = scores.lift

    def below(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """F, the chance that a token scores below t, and the logarithm of what its power gains over seeds (Z13)."""
        above = 1 - rares_below(t)
        F = (scores.single[:, None] < t[..., None]) @ often + (1 - above) @ (size * rare)
        F = np.clip(F, 0.0, 1.0)
        p = np.minimum(rare / np.maximum(F[..., None] + rare, 0.5), SURE)  # below a half, the power is next to nothing
        gain = np.log1p(-above * (1 - (1 - p) ** others)) - others * np.log1p(-np.minimum(p * above, SURE))
        return F, gain @ size

    def rares_below(t: np.ndarray) -> np.ndarray:
        return ndtr((t[..., None] - scores.mean[:, None]) / scores.spread[:, None])

    def power(F: np.ndarray, gain: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(others * np.log(F + LEAST) + gain, 0.0))

    def top_of(p: np.ndarray, F: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """The chance that one of L - 1 tokens is one of probability p, and the others stay below."""
        return np.exp(np.minimum(np.log(others * p + LEAST) + (others - 1) * np.log(F + LEAST) + gain, 0.0))

    def kept(p: np.ndarray, F: np.ndarray, gain: np.ndarray, attended: np.ndarray) -> np.ndarray:
        """With a lift below zero, another x in the sequence may still bring its value."""
        twice = power(np.minimum(F + p, 1.0), gain) - power(F, gain) + np.minimum(attended, power(F, gain))
        return np.where(lift >= 0, attended, twice)

    drawn = np.einsum("sgi,si->sg", queries.place, scores.alpha)
    drawn = scores.mean + drawn + np.sqrt(scores.own) * seeds.draws.normal(len(rare))
    (F, gain), (G, query_gain) = below(scores.single), below(drawn)
    attended, query_attended = power(*below(scores.single + lift)), power(*below(drawn + lift))
    # (Z12) for single tokens.
    top = power(np.minimum(F + often, 1.0), gain) - power(F, gain)
    beaten = scores.single[:, None] > (scores.single + lift)[..., None]
    single_by_single = top[:, None] * beaten
    at = np.arange(len(often))
    single_by_single[:, at, at] = 0.0
    rare_by_single = top[:, None] * rares_below(scores.single - lift).transpose(0, 2, 1)
    # For one token of a group: it is there with the chance (L-1) p.
    query_top = top_of(rare, G, query_gain)
    single_by_query = query_top[:, None] * (drawn[:, None] > (scores.single + lift)[..., None])
    query_errors = N * query_top * (rares_below(drawn - lift) @ (size * rare))
    # Averages over a group's scores.
    node, chance = normal_nodes(NODES)
    score = scores.mean[..., None] + scores.spread[..., None] * node
    flat = score.reshape(len(score), -1)
    at_score, at_gain = (part.reshape(score.shape) for part in below(flat))
    won = top_of(rare[:, None], at_score, at_gain)
    errors = N * won * (rares_below(flat - lift) @ (size * rare)).reshape(score.shape)
    label = N * often[:, None, None] * won[:, None] * (score[:, None] > (scores.single + lift)[..., None, None])
    return Wins(
        single_attended=attended,
        rare_attended=query_attended,
        single_kept=kept(often, F, gain, attended),
        rare_kept=kept(rare, G, query_gain, query_attended),
        usual_kept=power(*below(flat + lift)).reshape(score.shape) @ chance,
        single_by_single=single_by_single,
        rare_by_single=rare_by_single,
        single_by_query=single_by_query,
        query_errors=query_errors,
        single_squares=(label**2 + label) @ chance @ size,
        errors=(errors @ chance @ size)[:, None],
    )
