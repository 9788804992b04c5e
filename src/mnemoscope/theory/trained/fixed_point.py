r"""The end of training above capacity: the minimum of cross-entropy, from two equations.

Above N_c the loss has a finite minimum. Without an item's own influence its pre-activation would be s g with
g ~ N(0, I_d). Its own loss ell_x(w) = ln sum_y exp((u_y - u_x)^T w), weighted by c, the number of samples that show it
over the mean number, moves it to (T6)

    w = prox_{tau c ell_x}(s g) = argmin_w |w - s g|^2 / (2 tau) + c ell_x(w),

and s and tau satisfy, for N items and m inputs to each of the d outputs, (T7)

    N E|w - s g|^2 = m d s^2,        E div w / d = 1 - m/N.

By Stein's identity E g^T w = s E div w, so that m/N = E g^T (s g - w) / (s d). Put into the first equation, this leaves

    E w^T (s g - w) = 0,  that is  E c w^T grad ell_x(w) = 0                                           (T8)

which says that the loss no longer changes when all weights grow by a common factor. It is one equation for tau at each
s. As s grows, w/s tends to the projection on C_x and N/m to d/delta: the curve ends at N_c. Accuracy is the share of
items whose w names the right label.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import poisson

from mnemoscope.theory.trained.cones import draw_labels, project

# The share of items whose label is among the first so many.
TOPS = (1, 2, 5, 10)
# Draws of embeddings, among which the items are divided.
VOCABULARIES = 8
NEWTON_STEPS, HALVINGS = 60, 14
# How precisely ln tau is found.
TAU_PRECISION = 0.01


class Point(NamedTuple):
    """One point of the curve: the load N/N_c, and the share of items whose label is among the first 1, 2, 5, 10."""

    load: float
    accuracy: tuple[float, ...]


class Items(NamedTuple):
    """Items of one vocabulary: its labels, each item's g, right label and weight in the loss."""

    U: np.ndarray
    g: np.ndarray
    own: np.ndarray
    weight: np.ndarray


def draw_items(labels: int, dim: int, law: str, rate: float, draws: int, seed: int) -> list[Items]:
    """Items whose component along their label runs through the quantiles of its law.

    An item has a Poisson number of samples, `rate` on average over all tokens; those without one are no items. A rate
    of 0 stands for infinity: all weigh the same.
    """
    random = np.random.default_rng((seed, labels, dim))
    quantiles = ndtri((random.permutation(draws) + random.random(draws)) / draws)
    drawn = []
    for part in np.array_split(quantiles, VOCABULARIES):
        U = draw_labels(random, labels, dim, law)
        g, own = random.standard_normal((len(part), dim)), random.integers(labels, size=len(part))
        along = U[own] / np.linalg.norm(U[own], axis=1, keepdims=True)
        g += (part - np.sum(g * along, axis=1))[:, None] * along
        weight = np.ones(len(part))
        if rate:
            # The quantiles of a Poisson law without its zeros.
            none = math.exp(-rate)
            counts = poisson.ppf(none + (1 - none) * random.random(len(part)), rate)
            weight = counts * (1 - none) / rate
        drawn.append(Items(U, g, own, weight))
    return drawn


def curve(
    labels: int, dim: int, law: str, rate: float, scales: Sequence[float], draws: int, seed: int = 0
) -> list[Point]:
    """Points of the curve at each s, over `draws` items."""
    drawn = draw_items(labels, dim, law, rate, draws, seed)
    # The dimension of these very items' cones, so that the curve ends at a load of 1.
    dimension = np.mean(
        [
            np.sum(project(g, (np.delete(items.U, own, axis=0) - items.U[own]).T) ** 2)
            for items in drawn
            for g, own in zip(items.g, items.own, strict=True)
        ]
    )
    points, log_tau = [], 0.0
    for s in scales:
        starts = [s * items.g for items in drawn]

        def move(log_tau: float, s: float = s, starts: list[np.ndarray] = starts) -> float:
            """E w^T (w - s g) at this tau; its moves stay in `starts`."""
            starts[:] = [prox(items, s, math.exp(log_tau), start) for items, start in zip(drawn, starts, strict=True)]
            return sum(np.sum(w * (w - s * items.g)) for items, w in zip(drawn, starts, strict=True)) / draws

        log_tau = _root(move, log_tau)
        move(log_tau)
        along = sum(np.sum(items.g * (s * items.g - w)) for items, w in zip(drawn, starts, strict=True)) / draws
        above = np.concatenate([_above(items, w) for items, w in zip(drawn, starts, strict=True)])
        accuracy = tuple(float(np.mean(above < top)) for top in TOPS)
        points.append(Point(float(dimension * s / along), accuracy))
    return points


def _above(items: Items, w: np.ndarray) -> np.ndarray:
    logits = w @ items.U.T
    return np.sum(logits > np.take_along_axis(logits, items.own[:, None], axis=1), axis=1)


def _root(rising: Callable[[float], float], start: float) -> float:
    """Where a function of ln tau rises through zero."""
    low, high = start - 0.5, start + 1.0
    while rising(low) > 0:
        low, high = low - 1, low
    while rising(high) < 0 and high < start + 30:
        low, high = high, high + 1
    if rising(high) <= 0:
        return high
    return float(brentq(rising, low, high, xtol=TAU_PRECISION))  # pyright: ignore[reportArgumentType]


def prox(items: Items, s: float, tau: float, w: np.ndarray) -> np.ndarray:
    """(T6) for many items, by Newton's method with halved steps, from `w` on."""
    U, g, own, weight = items
    dim, rows = g.shape[1], np.arange(len(g))

    def value(w: np.ndarray) -> np.ndarray:
        logits = w @ U.T
        top = logits.max(axis=1)
        loss = top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - logits[rows, own]
        return np.sum((w - s * g) ** 2, axis=1) / (2 * tau) + weight * loss

    now = value(w)
    for _ in range(NEWTON_STEPS):
        logits = w @ U.T
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        mean = p @ U
        gradient = (w - s * g) / tau + weight[:, None] * (mean - U[own])
        # grad^2 = c U^T (diag p - p p^T) U + 1/tau
        hessian = np.matmul(U.T * p[:, None, :], U) - mean[:, :, None] * mean[:, None, :]
        hessian = weight[:, None, None] * hessian + np.eye(dim) / tau
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        decrement = np.sum(gradient * step, axis=1)
        size = np.ones(len(g))
        for _ in range(HALVINGS):
            failed = value(w - size[:, None] * step) > now - 1e-4 * size * decrement + 1e-12 * (1 + np.abs(now))
            if not failed.any():
                break
            size = np.where(failed, size / 2, size)
        w = w - size[:, None] * step
        now = value(w)
        if decrement.max() < 1e-6:
            break
    return w
