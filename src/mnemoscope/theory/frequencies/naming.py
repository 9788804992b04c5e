r"""Which label the map names, where pairs are stored as often as their tokens occur.

The third step stores W[y, v] pairs of label y and token v, less the mean of each column. A query x finds

    h_y = sum_v W[y, v] z_v . z_x,          logit_y = u_y . U^T h = sum_y' (u_y . u_y') h_y'   (Z14)

Of the single tokens every term is drawn. A group's label has its own pair, of mean square E n^2 t/d with t = |z_x|^2,
and from everything else a normal logit of variance |U^T h|^2/d (Z15).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from mnemoscope.spec import Retrieval
from mnemoscope.theory.frequencies.scores import Seeds
from mnemoscope.theory.frequencies.wins import Queries, Wins
from mnemoscope.theory.quadrature import nodes_first, poisson_nodes
from mnemoscope.theory.recall import normal_quantile
from mnemoscope.theory.registry import embedding_law

# Nodes over the stored pairs of a group's label.
PAIRS = 4
LEAST = 1e-300


@dataclass(frozen=True)
class Named:
    """Chances in every seed: the right label, of single tokens and of each group's query."""

    single: np.ndarray
    rare: np.ndarray


@dataclass(frozen=True)
class _Logits:
    """Logits of the single labels, means of the groups' and the squared length |U^T h|^2."""

    single: np.ndarray
    rare: np.ndarray
    length: np.ndarray


class _Map:
    """What the third step stored, in every seed."""

    def __init__(self, spec: Retrieval, seeds: Seeds, wins: Wins) -> None:
        tokens, law = seeds.tokens, embedding_law(spec.embedding)
        self.seeds, self.wins, self.size = seeds, wins, tokens.size
        self.dim, self.bounded = spec.dim, law.bounded
        self.per = 1 / spec.dim if law.overlapping else 0.0
        expected = spec.samples * tokens.rare
        pairs = spec.samples * tokens.often[:, None] * wins.single_by_single
        at = np.arange(len(tokens.often))
        pairs[:, at, at] += seeds.count * wins.single_kept
        rare = expected[:, None] * wins.rare_by_single
        column = (pairs.sum(1) + np.einsum("g,sgv->sv", self.size, rare)) / spec.vocab
        self.pairs, self.rare = pairs - column[:, None], rare - column[:, None]
        self.stored, self.chance = nodes_first(poisson_nodes(np.maximum(expected * wins.usual_kept, 1e-9), PAIRS))
        self.squares = np.sum(self.stored**2 * self.chance, axis=0)

    def logits(self, overlaps: np.ndarray, square: np.ndarray, own: np.ndarray | float, errors: np.ndarray) -> _Logits:
        """(Z14) for queries with these overlaps; `own` has the wrong pairs at the query itself."""
        normal = self.seeds.draws.normal(*overlaps.shape[1:])
        h = np.einsum("syv,sqv->sqy", self.pairs, overlaps) + own
        h += np.sqrt(self.per * self.wins.single_squares[:, None] * square[..., None]) * normal
        mean = np.einsum("sgv,sqv->sqg", self.rare, overlaps)
        # What the groups' labels hold of the query.
        rest = (self.squares @ self.size)[:, None] + self.wins.errors
        rest = mean**2 @ self.size + self.per * rest * square + errors * square**2
        across = np.einsum("syi,sqy->sqi", self.seeds.U, h)
        single = np.einsum("syi,sqi->sqy", self.seeds.U, across)
        single += np.sqrt(self.per * rest)[..., None] * self.seeds.draws.normal(*overlaps.shape[1:])
        return _Logits(single, mean, (across**2).sum(-1) + rest)

    def rares_below(
        self, at: np.ndarray, variance: np.ndarray, square: np.ndarray, mean: np.ndarray, errors: np.ndarray
    ) -> np.ndarray:
        """The chance that the groups' labels all stay below a logit (Z15)."""
        # Axes: nodes over stored pairs, seeds, queries, groups.
        own = self.stored[:, :, None] ** 2 * (self.per * square)[..., None]
        ahead = (at[..., None] - mean) / np.sqrt(np.maximum(variance[..., None] + own, LEAST))
        if self.bounded:
            ahead = normal_quantile(ahead, self.dim)
        log = np.einsum("nsqg,nsg,g->sq", log_ndtr(ahead), self.chance, self.size)
        # A wrong pair at the query itself has a logit of its square.
        return np.exp(log) * ndtr((at - square) / np.sqrt(np.maximum(variance, LEAST))) ** errors


def named(spec: Retrieval, seeds: Seeds, queries: Queries, wins: Wins) -> Named:
    """How often the right label is named, for single tokens and the groups' queries."""
    stored, draws, tokens = _Map(spec, seeds, wins), seeds.draws, seeds.tokens
    often, rare, size = tokens.often, tokens.rare, tokens.size
    labels, groups, per, t = np.arange(len(often)), np.arange(len(rare)), stored.per, queries.square
    # Queries of the groups: their own pairs are none of the map's single ones.
    own = spec.samples * (often[:, None] * wins.single_by_query).transpose(0, 2, 1) * t[..., None]
    found = stored.logits(queries.overlaps, t, own, wins.query_errors)
    norm = np.ones_like(t)
    if not embedding_law(spec.embedding).unit_norm:
        norm = draws.chi_square(float(spec.dim), len(rare)) / spec.dim
    count = draws.poisson(spec.samples * rare * wins.rare_kept)
    right = (count * t + found.rare[:, groups, groups]) * norm
    right = right + np.sqrt(found.length * norm * per) * draws.normal(len(rare))
    # The part of the other logits along u_x follows from the right one (B4).
    variance = per * (right**2 / norm + found.length * (1 - per))
    best = found.single.max(axis=-1)
    is_right = (right > best) * stored.rares_below(right, variance, t, found.rare, wins.query_errors)
    is_best = (best > right) * stored.rares_below(best, per * found.length, t, found.rare, wins.query_errors)
    by_query = (found.single.argmax(axis=-1)[..., None] == labels) * is_best[..., None]
    # Single tokens.
    overlaps = seeds.Z @ seeds.Z.transpose(0, 2, 1)
    none = np.zeros(overlaps.shape[:2])
    square = overlaps[:, labels, labels]
    seen = stored.logits(overlaps, square, 0.0, none)
    best = seen.single.max(axis=-1)
    is_best = stored.rares_below(best, per * seen.length, square, seen.rare, none)
    by_single = (seen.single.argmax(axis=-1)[..., None] == labels) * is_best[..., None]
    # A token whose sequence another one wins is named if that one's label is its own (Z16).
    single = wins.single_kept * by_single[:, labels, labels]
    single += np.einsum("syv,svy->sy", wins.single_by_single, by_single)
    single += np.einsum("syv,svy,v->sy", wins.single_by_query, by_query, size)
    neither = 1 - is_right - by_query.sum(-1), 1 - by_single.sum(-1)
    other = np.einsum("sgv,sv->sg", wins.rare_by_single, neither[1])
    share = np.clip(1 - wins.rare_kept - wins.rare_by_single.sum(-1), 0.0, 1.0)
    other += share * (neither[0] @ (size * rare) / max(float(size @ rare), LEAST))[:, None]
    return Named(np.clip(single, 0.0, 1.0), np.clip(wins.rare_kept * is_right + other / spec.vocab, 0.0, 1.0))
