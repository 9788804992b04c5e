r"""Each noise as a power law, and which one binds where.

These are the leading orders of the terms in `attention` and `recall` for many samples, long
sequences and a vocabulary larger than the dimension (N >= V, L >> N/V, V >> d). A law says

    noise over signal  =  const * V^a d^b L^c N^e m^f,

and recall needs it small. The powers are ours; `attention` and `recall` have the constants and logs.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from mnemoscope.theory.activation import coefficients

Axis = Literal["vocab", "dim", "length", "samples", "width"]


@dataclass(frozen=True)
class Law:
    """One noise: its powers, and its letter on a map."""

    name: str
    letter: str
    powers: dict[Axis, float]
    words: str

    def critical(self, axis: Axis) -> dict[Axis, float] | None:
        """How the critical value along one axis scales with the others; None if the axis does not help."""
        own = self.powers.get(axis, 0.0)
        if own >= 0:
            return None
        return {name: -power / own for name, power in self.powers.items() if name != axis}

    def size(self, d: np.ndarray, N: np.ndarray, L: float, m: float = 0.0) -> np.ndarray:
        """log_V of noise over signal where d, N, L and m are powers of V."""
        p = self.powers
        fixed = p.get("vocab", 0.0) + p.get("length", 0.0) * L + p.get("width", 0.0) * m
        return np.asarray(fixed + p.get("dim", 0.0) * d + p.get("samples", 0.0) * N)


LAWS = (
    Law("mean_bias", "b", {"vocab": 0.5, "dim": -1.5, "length": 2.0, "samples": -1.0}, "N d^1.5 >> L^2 V^0.5"),
    Law("gradient_noise", "g", {"vocab": 1.0, "dim": -1.5, "length": 1.0, "samples": -1.0}, "N d^1.5 >> L V"),
    Law("label_noise", "l", {"vocab": 1.0, "dim": -2.0, "length": 1.5, "samples": -1.0}, "N d^2 >> L^1.5 V"),
    Law("count_noise", "c", {"vocab": 0.5, "dim": -1.0, "length": 1.0, "samples": -1.0}, "N d >> L V^0.5"),
    Law("interference", "i", {"vocab": 0.5, "dim": -1.0}, "d^2 >> V"),
    Law("unseen", "u", {"vocab": 0.5, "samples": -0.5}, "N >> V"),
)
# Only with the trigger in the values.
LEAK = Law("leak", "k", {"vocab": 1.0, "dim": -0.5, "samples": -0.5}, "N d >> V^2")
# Reported only when no other noise binds: it falls with d alone, and slowly.
OVERLAP = Law("overlap", "o", {"dim": -0.5}, "d >> 1")
# Only with an MLP: its random features overlap by 1/m.
MLP_NOISE = Law("mlp_noise", "m", {"vocab": 0.5, "dim": -0.5, "width": -0.5}, "m d >> V")


def laws_for(trigger: str, order: int | None = None) -> tuple[Law, ...]:
    """The laws of the attention-only model, or with `order` of the attention-MLP model.

    `order` is the activation's `lowest_order`. Tokens overlap by d^(-order/2) through the MLP, and
    pairs stored in d output dimensions interfere accordingly. The laws of attention assume an
    activation with a slope at 0.
    """
    laws = LAWS
    if order is not None:
        power = order + 1
        interference = Law("interference", "i", {"vocab": 0.5, "dim": -power / 2}, f"d^{power} >> V")
        laws = (*(interference if law.name == "interference" else law for law in LAWS), MLP_NOISE)
    return (*laws, LEAK) if trigger == "additive" else laws


def law_of(regime: str, trigger: str, width: float, activation: str) -> Law | None:
    """The law behind a regime of this model; None for regimes without one, such as recall."""
    laws = laws_for(trigger, lowest_order(activation) if width else None)
    return next((law for law in (*laws, OVERLAP) if law.name == regime), None)


@lru_cache(maxsize=16)
def lowest_order(activation: str) -> int:
    """The activation's lowest Hermite order from 1 on, at unit norm."""
    sizes = np.abs(coefficients(activation, np.ones(1), 8)[0])
    return 1 + int(np.argmax(sizes[1:] > 1e-6))


@dataclass(frozen=True)
class RegimeMap:
    """Which law binds at each point: the index of the largest noise, or -1 where all are small.

    Rows follow `samples` and columns `dim`, both as powers of V, for L = V^length.
    """

    laws: tuple[Law, ...]
    dim: np.ndarray
    samples: np.ndarray
    length: float
    binding: np.ndarray

    def text(self) -> str:
        """The map as letters, with N upwards and d to the right; a dot is recall."""
        lines = []
        for row in range(len(self.samples) - 1, -1, -1):
            cells = "".join("." if at < 0 else self.laws[at].letter for at in self.binding[row])
            lines.append(f"{self.samples[row]:5.2f}  {cells}")
        ends = f"{self.dim[0]:.2f}".ljust(len(self.dim) - 4) + f"{self.dim[-1]:.2f}"
        return "\n".join(["log_V N", *lines, f"       {ends}  log_V d"])


def regime_map(
    length: float,
    *,
    trigger: str = "keys",
    width: float | None = None,
    order: int = 1,
    columns: int = 61,
    rows: int = 25,
) -> RegimeMap:
    """The (log_V d, log_V N) plane for L = V^length, without constants or logarithms.

    With `width`, for the attention-MLP model with m = V^width hidden units.
    """
    laws = laws_for(trigger, None if width is None else order)
    d = np.linspace(0, 1, columns)
    N = np.linspace(0.5, 2.5, rows)
    m = width or 0.0
    sizes = np.stack([law.size(d[None, :], N[:, None], length, m) + 0 * N[:, None] for law in laws])
    binding = np.where(sizes.max(axis=0) > 1e-12, sizes.argmax(axis=0), -1)
    return RegimeMap(laws, d, N, length, binding)
