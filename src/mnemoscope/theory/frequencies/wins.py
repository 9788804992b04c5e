r"""Which token of a sequence attention picks, and so which pairs the third step stores.

A sequence's other tokens are independent. With F(t) the chance that one of them scores below t, the informative token
x keeps attention with the chance F(s_x + lift)^(L-1) (Z11). Where the lift is negative, a second x in the sequence
beats it, which does no harm to the value. Token v wins as noise, against label y, with the chance

    F(s_v)^(L-1) - F(s_v-)^(L-1),    and only if    s_v > s_y + lift                         (Z12)
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

    def below(t: np.ndarray) -> np.ndarray:
        """F: the chance that a token scores below t."""
        single = (scores.single[:, None] < t[..., None]) @ often
        return np.minimum(single + rares_below(t) @ (size * rare), 1.0)

    def rares_below(t: np.ndarray) -> np.ndarray:
        return ndtr((t[..., None] - scores.mean[:, None]) / scores.spread[:, None])

    def kept(score: np.ndarray, p: np.ndarray, F: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """With a lift below zero, another x in the sequence may still bring its value."""
        twice = np.minimum(F + p, 1.0) ** others - F**others + np.minimum(ahead, F) ** others
        return np.where(lift >= 0, ahead**others, twice)

    drawn = np.einsum("sgi,si->sg", queries.place, scores.alpha)
    drawn = scores.mean + drawn + np.sqrt(scores.own) * seeds.draws.normal(len(rare))
    F, G = below(scores.single), below(drawn)
    ahead, query_ahead = below(scores.single + lift), below(drawn + lift)
    # (Z12) for single tokens.
    top = np.minimum(F + often, 1.0) ** others - F**others
    beaten = scores.single[:, None] > (scores.single + lift)[..., None]
    single_by_single = top[:, None] * beaten
    at = np.arange(len(often))
    single_by_single[:, at, at] = 0.0
    rare_by_single = top[:, None] * rares_below(scores.single - lift).transpose(0, 2, 1)
    # For one token of a group: it is there with the chance (L-1) p.
    query_top = others * rare * G ** max(others - 1, 0)
    single_by_query = query_top[:, None] * (drawn[:, None] > (scores.single + lift)[..., None])
    query_errors = N * query_top * (rares_below(drawn - lift) @ (size * rare))
    # Averages over a group's scores.
    node, chance = normal_nodes(NODES)
    score = scores.mean[..., None] + scores.spread[..., None] * node
    flat = score.reshape(len(score), -1)
    won = (others * rare)[:, None] * below(flat).reshape(score.shape) ** max(others - 1, 0)
    errors = N * won * (rares_below(flat - lift) @ (size * rare)).reshape(score.shape)
    label = N * often[:, None, None] * won[:, None] * (score[:, None] > (scores.single + lift)[..., None, None])
    return Wins(
        single_attended=ahead**others,
        rare_attended=query_ahead**others,
        single_kept=kept(scores.single, often, F, ahead),
        rare_kept=kept(drawn, rare, G, query_ahead),
        usual_kept=below(flat + lift).reshape(score.shape) ** others @ chance,
        single_by_single=single_by_single,
        rare_by_single=rare_by_single,
        single_by_query=single_by_query,
        query_errors=query_errors,
        single_squares=(label**2 + label) @ chance @ size,
        errors=(errors @ chance @ size)[:, None],
    )
