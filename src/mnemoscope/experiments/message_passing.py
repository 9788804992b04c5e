r"""Message passing, the best decoder of the first gradient that we have for normal counts.

Whitened from both sides, the gradient is a few noisy linear measurements of the permutation's
matrix P (labels by tokens):

    Y = A^T P B + sigma W,    A^T A = 1,  B^T B = 1,  W standard normal,  sigma^2 = L/N,

d^2 numbers for V^2 unknowns, a share a = d^2/V^2. Orthogonal message passing takes turns: a linear
step that treats the error of the estimate x as noise of variance v,

    r = x + A (Y - A^T x B) B^T / a,      t = (1/a - 1) v + sigma^2/a,

and the posterior of P given r = P + (noise of variance t), with every label and every token used
once (rows and columns of exp(r/t) scaled in turn), of which the part that only repeats r is taken
out again. The first r is the least-squares decoder.
"""

import numpy as np

ROUNDS = 25
# Scalings of rows and columns in each round.
SCALINGS = 3
SETTLED = 1e-6


def message_passing(G: np.ndarray, Z: np.ndarray, U: np.ndarray, *, length: int, samples: int) -> np.ndarray:
    """Scores of every (label, token)."""
    V = len(Z)
    centred = U - U.mean(axis=0)
    to_u, to_z = _whitener(centred), _whitener(Z)
    A, B = centred @ to_u, Z @ to_z
    # The signal in the gradient is P / (L V).
    Y = length * V * (to_u.T @ G @ to_z)
    share = A.shape[1] * B.shape[1] / V**2
    noise = length / samples
    guess = np.full((V, V), 1 / V)
    x, variance, before = guess, (1 - 1 / V) / V, 0.0
    r = x
    for number in range(ROUNDS):
        t = (1 / share - 1) * variance + noise / share
        r = x + A @ (Y - A.T @ x @ B) @ B.T / share
        new = _each_once(r / t)
        guess = (guess + new) / 2 if number else new
        left = max(float(np.mean(new * (1 - new))), 1e-9)
        if abs(left - before) < SETTLED * (1 - 1 / V) / V:
            break
        before = left
        repeats = left / t
        if repeats < 0.9:
            x = (guess - repeats * r) / (1 - repeats)
            variance = max(left / (1 - repeats), 1e-9)
        else:  # the posterior knows no more than r: go on from it as it is
            x = guess
    return r


def _each_once(logits: np.ndarray) -> np.ndarray:
    """exp(logits) scaled so that its rows and columns sum to about 1."""
    for _ in range(SCALINGS):
        for axis in (1, 0):
            # ln sum exp(logits), from the largest down: scipy's own takes five times as long.
            logits = logits - logits.max(axis=axis, keepdims=True)
            logits = logits - np.log(np.exp(logits).sum(axis=axis, keepdims=True))
    return np.exp(logits)


def _whitener(M: np.ndarray) -> np.ndarray:
    """S such that M S has orthonormal columns."""
    values, vectors = np.linalg.eigh(M.T @ M)
    kept = values > 1e-6 * values.max()
    return vectors[:, kept] / np.sqrt(values[kept])
