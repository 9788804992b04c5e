r"""`predict` where tokens are not equally frequent: accuracy by sequence, by fact, by rank and by band.

    by sequence   sum_v p_v recall_v           by fact   (1/V) sum_v recall_v                (Z17)
    coverage      1 - sum_v p_v (1 - p_v)^N    of facts  1 - (1/V) sum_v (1 - p_v)^N         (Z18)

A token's recall is its mean over draws of seeds. It is the same for all tokens of a group (`tokens.py`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.spec.token_laws import Band
from mnemoscope.theory.domain import doubts
from mnemoscope.theory.frequencies.draws import Draws
from mnemoscope.theory.frequencies.naming import Named, named
from mnemoscope.theory.frequencies.scores import draw_seeds, scores_of
from mnemoscope.theory.frequencies.tokens import Tokens
from mnemoscope.theory.frequencies.wins import Wins, draw_queries, locked, wins
from mnemoscope.theory.limits import FREQUENCIES
from mnemoscope.theory.predict import RECALLED, PredictionWithEnds
from mnemoscope.theory.registry import embedding_law

# Seeds that are drawn, and how many where many settings are compared.
SEEDS, FEW = 512, 128
LEVEL = 0.95


@dataclass(frozen=True)
class Rank:
    """Tokens of like frequency: ranks count from 1, the most frequent one."""

    first: int
    last: int
    probability: float
    recall: float
    attention: float


@dataclass(frozen=True)
class BandRecall:
    """The mean recall of a band's tokens, each counted once."""

    band: Band
    accuracy: float

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        of = {"least": self.band.least, "below": self.band.below, "tokens": len(self.band.tokens)}
        return {**of, "accuracy": self.accuracy}


@dataclass(frozen=True, repr=False)
class FrequencyPrediction(PredictionWithEnds):
    """What theory predicts where tokens are not equally frequent; `accuracy` is by sequence.

    `seen` and `seen_facts` are the shares of sequences and of facts whose token was ever informative in training.
    """

    accuracy_by_fact: float | None = None
    bands: tuple[BandRecall, ...] = ()
    ranks: tuple[Rank, ...] = ()
    seen: float | None = None
    seen_facts: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return super().as_dict() | {
            "accuracy_by_fact": self.accuracy_by_fact,
            "bands": [band.as_dict() for band in self.bands],
            "ranks": [vars(rank) for rank in self.ranks],
            "seen": {"by_sequence": self.seen, "by_fact": self.seen_facts},
        }


@dataclass(frozen=True)
class Solved:
    """The chances of every seed, and attention's noises."""

    tokens: Tokens
    wins: Wins
    named: Named
    terms: dict[str, float]

    @property
    def accuracy(self) -> float:
        """By sequence (Z17)."""
        return float(self.tokens.mean(self.named.single, self.named.rare).mean())

    @property
    def attention_accuracy(self) -> float:
        """The share of sequences in which attention is right."""
        return float(self.tokens.mean(self.wins.single_attended, self.wins.rare_attended).mean())


@lru_cache(maxsize=128)
def solve(spec: Retrieval, count: int = SEEDS) -> Solved:
    """A setting whose tokens are not uniform, in so many seeds."""
    seeds = draw_seeds(spec, Draws(count))
    queries = draw_queries(spec, seeds)
    if spec.attention == "locked" or spec.length == 1:
        found, terms = locked(seeds), {}
    else:
        scores = scores_of(spec, seeds)
        found, terms = wins(spec, seeds, scores, queries), scores.terms
    return Solved(seeds.tokens, found, named(spec, seeds, queries, found), terms)


def predict_frequencies(spec: Retrieval) -> FrequencyPrediction:
    """Accuracy by sequence, by fact, by rank and by band."""
    solved = solve(spec)
    tokens, right = solved.tokens, solved.named
    recall = tokens.by_token(right.single.mean(axis=0), right.rare.mean(axis=0))
    p = spec.probabilities
    unseen = np.exp(spec.samples * np.log1p(-np.minimum(p, 1 - 1e-12)))
    notes = tuple(doubts(spec, FREQUENCIES))
    seen = float(1 - p @ unseen)
    return FrequencyPrediction(
        spec=spec,
        accuracy=solved.accuracy,
        attention_accuracy=solved.attention_accuracy,
        regime=regime(spec, solved, seen),
        terms=dict(solved.terms) | {"interference": interference(spec, solved)},
        valid=not notes,
        notes=notes,
        accuracy_by_fact=float(recall.mean()),
        bands=tuple(BandRecall(band, float(recall[band.tokens].mean())) for band in spec.bands),
        ranks=tuple(_ranks(solved)),
        seen=seen,
        seen_facts=float(1 - unseen.mean()),
        ends=_interval(spec, solved),
    )


def regime(spec: Retrieval, solved: Solved, seen: float | None = None) -> str:
    """What limits accuracy by sequence, by the rule that `predict` uses."""
    accuracy, attended = solved.accuracy, solved.attention_accuracy
    if accuracy >= RECALLED:
        return "recall"
    recalled = min(1.0, accuracy / attended) if attended else 0.0
    if attended <= recalled:
        return max(solved.terms, key=lambda name: solved.terms[name])
    if seen is None:
        p = spec.probabilities
        seen = float(1 - p @ np.exp(spec.samples * np.log1p(-np.minimum(p, 1 - 1e-12))))
    return "unseen" if 1 - seen > (1 - recalled) / 2 else "interference"


def interference(spec: Retrieval, solved: Solved) -> float:
    """Standard deviation of a wrong logit over the right one of a token of the usual frequency (Z15).

    Usual is the root mean square of what sequences ask for, sum_v p_v^2: other pairs are stored n_v = N p_v times, and
    two random overlaps separate them from a label, of its own pair one.
    """
    if not embedding_law(spec.embedding).overlapping:
        return 0.0
    d = spec.dim
    pairs = solved.tokens.squares + 1 / spec.samples
    return float(np.sqrt(pairs / d * (1 + 1 / d) + 1 / d * solved.tokens.squares) / solved.tokens.squares / np.sqrt(d))


def _ranks(solved: Solved) -> list[Rank]:
    tokens, right, found = solved.tokens, solved.named, solved.wins
    size = [*np.ones(len(tokens.often)), *tokens.size]
    columns = (
        np.concatenate([tokens.often, tokens.rare]),
        np.concatenate([right.single.mean(axis=0), right.rare.mean(axis=0)]),
        np.concatenate([found.single_attended.mean(axis=0), found.rare_attended.mean(axis=0)]),
    )
    last = np.cumsum(size).astype(int)
    return [
        Rank(int(end - count) + 1, int(end), float(p), float(recall), float(attention))
        for end, count, p, recall, attention in zip(last, size, *columns, strict=True)
    ]


def _interval(spec: Retrieval, solved: Solved) -> tuple[float, float]:
    """The accuracies by sequence between which 95 % of seeds lie.

    Of a group's tokens each is right or wrong by itself, given the attention of its seed (Z19).
    """
    tokens, right, kept = solved.tokens, solved.named, solved.wins.rare_kept
    draws = Draws(len(kept))
    single = (draws.uniform(len(tokens.often)) < right.single) @ tokens.often
    often = right.rare.mean(axis=0) / np.maximum(kept.mean(axis=0), 1e-12)
    rare = np.minimum(kept * often, 1.0)
    mean = rare @ (tokens.size * tokens.rare)
    spread = (rare * (1 - rare)) @ (tokens.size * tokens.rare**2)
    accuracy = single + mean
    spread = spread + accuracy * (1 - np.minimum(accuracy, 1.0)) / spec.test_samples
    seeds = np.clip(accuracy + np.sqrt(np.maximum(spread, 0.0)) * draws.normal(), 0.0, 1.0)
    tail = (1 - LEVEL) / 2
    return float(np.quantile(seeds, tail)), float(np.quantile(seeds, 1 - tail))
