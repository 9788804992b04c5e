r"""A decoder that reads the counts off a first gradient that is known exactly.

    N L G = sum_{y, v} M[y, v] u'_y z_v^T,    u'_y = u_y - mean of u

M[y, v] counts how often token v stood in a sequence of label y. For generic embeddings no two
tables of counts give the same G, but for a constant added to a column, which G does not see. So
whoever knows G exactly can find M by looking for whole numbers. That is a closest-vector problem:
the vectors (x, A x), x whole, form a lattice, A x being the d^2 numbers that counts x make, and the
counts are the smallest x with A x = N L G. Reducing the lattice (Lenstra, Lenstra and Lovász 1982)
and rounding (Babai 1986) finds them.

A and G are exact: float64 embeddings are fractions, and so are their products. The lattice is
reduced a few digits of A at a time, from the leading ones on, so that float64 is enough for the
reduction itself.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

# Of A's binary digits, how many more are looked at in each round.
DIGITS = 16
# Lovász's condition: above 1/4, below 1.
DELTA = 0.75


def centred(U: np.ndarray) -> list[list[Fraction]]:
    """u_y less the mean of all labels, exactly."""
    rows = [[Fraction(number) for number in row] for row in U]
    means = [sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]
    return [[number - mean for number, mean in zip(row, means, strict=True)] for row in rows]


def exact_gradient(M: np.ndarray, U: np.ndarray, Z: np.ndarray, draws: int) -> list[Fraction]:
    """G = U'^T M Z / (N L), its d^2 entries row by row; `draws` is N L."""
    pairs = [(y, v) for y in range(len(U)) for v in range(len(Z)) if M[y, v]]
    labels, tokens = centred(U), [[Fraction(number) for number in row] for row in Z]
    return [
        sum((int(M[y, v]) * labels[y][a] * tokens[v][b] for y, v in pairs), Fraction(0)) / draws
        for a in range(U.shape[1])
        for b in range(Z.shape[1])
    ]


class Round(NamedTuple):
    """The lattice with A in multiples of `unit`: rows (x, A x), and the whole x alone."""

    unit: int
    rows: np.ndarray
    basis: np.ndarray


class Lattice:
    """The lattice of some embeddings, reduced once for all gradients.

    Counts are taken less those of the last label: the u'_y add up to 0, so G sees no more.
    """

    def __init__(self, U: np.ndarray, Z: np.ndarray) -> None:
        self.vocab = len(U)
        A = [[u * Fraction(z) for u in label for z in token] for label in centred(U)[:-1] for token in Z]
        self.scale = lcm(*(entry.denominator for row in A for entry in row))
        self.A = np.array([[int(entry * self.scale) for entry in row] for row in A], dtype=object)
        self.rounds = list(self._reduce())

    def _reduce(self) -> Iterator[Round]:
        basis = np.eye(len(self.A), dtype=object)
        shift = max(int(abs(entry)).bit_length() for entry in self.A.ravel())
        while shift > 0:
            shift = max(0, shift - DIGITS)
            seen = (basis @ self.A / 2**shift).astype(float)
            rows = reduce_rows(np.hstack([basis.astype(float), seen]))
            basis = np.rint(rows[:, : len(self.A)]).astype(int).astype(object)
            yield Round(2**shift, rows, basis)

    def read_counts(self, G: list[Fraction], draws: int, error: float = 0.0) -> tuple[np.ndarray, bool]:
        """M less its last row, and whether it gives G to the last digit.

        Where G is known up to an `error`, digits below it are not looked at.
        """
        left = np.array([round(entry * draws * self.scale) for entry in G], dtype=object)
        counts = np.zeros(len(self.A), dtype=object)
        for unit, rows, basis in self.rounds:
            if unit < error * draws * self.scale:
                break
            step = nearest(rows, np.append(-counts, left / unit).astype(float)) @ basis
            counts, left = counts + step, left - step @ self.A
        table = counts.reshape(self.vocab - 1, self.vocab)
        return np.vstack([table, np.zeros((1, self.vocab), object)]), not any(left)

    def read_labels(self, G: list[Fraction], draws: int, error: float = 0.0) -> np.ndarray:
        """The labels of all tokens, every one once, that were met most often."""
        counts, _ = self.read_counts(G, draws, error)
        return linear_sum_assignment(counts.T.astype(float), maximize=True)[1]


def reduce_rows(rows: np.ndarray) -> np.ndarray:
    """LLL, every other pair of neighbours at a time."""
    rows = rows.copy()
    idle, parity = 0, 0
    while idle < 2:
        R = np.linalg.qr(rows.T).R
        for j in range(len(rows) - 2, -1, -1):
            whole = np.rint(R[j, j + 1 :] / R[j, j])
            R[:, j + 1 :] -= np.outer(R[:, j], whole)
            rows[j + 1 :] -= np.outer(whole, rows[j])
        k = np.arange(parity, len(rows) - 1, 2)
        worse = k[R[k + 1, k + 1] ** 2 + R[k, k + 1] ** 2 < DELTA * R[k, k] ** 2]
        rows[np.concatenate([worse, worse + 1])] = rows[np.concatenate([worse + 1, worse])]
        idle, parity = (0 if len(worse) else idle + 1), 1 - parity
    return rows


def nearest(rows: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Babai's nearest plane: whole multiples of the rows that come near to a point."""
    Q, R = np.linalg.qr(rows.T)
    left, multiples = Q.T @ point, np.zeros(len(rows))
    for i in range(len(rows) - 1, -1, -1):
        multiples[i] = np.rint(left[i] / R[i, i])
        left -= multiples[i] * R[:, i]
    return np.array([int(number) for number in multiples], dtype=object)
