r"""The MLP's activations, and their Hermite parts.

A hidden unit is phi(a) with a = w . h, w ~ N(0, I), so a is N(0, |h|^2). At |h| = 1 expand phi in
the orthonormal Hermite polynomials h_k = He_k / sqrt(k!):

    phi = c_0 h_0 + c_1 h_1 + c_2 h_2 + ...,      c_k = E[phi(a) h_k(a)],   a ~ N(0, 1).

Two inputs of unit norm and overlap rho then have features whose overlap per unit is

    E[phi(a) phi(a')] = c_0^2 + c_1^2 rho + c_2^2 rho^2 + c_3^2 rho^3 + ...

Between different tokens rho is about 1/sqrt(d). So all tokens share the constant part c_0; the linear part c_1
interferes exactly as a d-dimensional memory without an MLP does, whatever the width; and only the parts k >= 2 separate
more tokens than d dimensions can. `hermite_parts` gives the three shares.

To add an activation, write its function here under `@activation` and add its name to `Activation` in `spec/names.py`;
in your own module the decorator is enough. Until `theory/activation.py` has its formula, theory reports "not derived".

Worked example at a = 2: relu 2, gelu 1.954, tanh 0.964, linear 2, hermite2 3/sqrt(2) = 2.121,
hermite3 2/sqrt(6) = 0.816.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mnemoscope.spec.names import ACTIVATIONS, add_name

Phi = Callable[[Float[Array, "*n"]], Float[Array, "*n"]]
_ACTIVATIONS: dict[str, Phi] = {}


def activation(phi: Phi) -> Phi:
    """Register a function, so that specs accept its name."""
    add_name(ACTIVATIONS, phi.__name__)
    _ACTIVATIONS[phi.__name__] = phi
    return phi


def named(name: str) -> Phi:
    """The activation of that name."""
    return _ACTIVATIONS[name]


@activation
def relu(a: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """max(a, 0): c_0 = 1/sqrt(2 pi), c_1 = 1/2."""
    return jnp.maximum(a, 0)


@activation
def gelu(a: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """a Phi(a), with the exact normal distribution function."""
    return jax.nn.gelu(a, approximate=False)


@activation
def tanh(a: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """tanh(a): odd, so all even parts vanish."""
    return jnp.tanh(a)


@activation
def linear(a: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """a, which is h_1: no higher part, the control case."""
    return a


@activation
def hermite2(a: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """h_2(a) = (a^2 - 1)/sqrt(2): a pure second part, flat at a = 0."""
    return (a * a - 1) / np.sqrt(2.0)


@activation
def hermite3(a: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """h_3(a) = (a^3 - 3 a)/sqrt(6): a pure third part, with slope -3/sqrt(6) at a = 0."""
    return (a * a - 3) * a / np.sqrt(6.0)


def hermite_parts(name: str) -> dict[str, float]:
    """Shares of E[phi(a)^2] in the constant, the linear and all higher Hermite parts.

    Integrals over N(0, 1) are sums over a fine grid of cells, which handles the kink of ReLU.
    """
    edges = np.linspace(-12.0, 12.0, 48_001)
    a = (edges[1:] + edges[:-1]) / 2
    weight = np.exp(-a * a / 2)
    weight /= weight.sum()
    phi = np.asarray(named(name)(jnp.asarray(a)), dtype=np.float64)
    total = float(weight @ phi**2)
    constant = float(weight @ phi) ** 2 / total
    linear_part = float(weight @ (phi * a)) ** 2 / total
    return {"constant": constant, "linear": linear_part, "higher": 1 - constant - linear_part}
