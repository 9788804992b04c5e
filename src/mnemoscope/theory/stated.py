"""Laws of the user's own that state their moments: theory from these alone.

    law.moments = Moments(unit_norm=True)                                    directions are uniform
    law.moments = Moments(spectrum=lambda d: 1 / np.arange(1, d + 1))        the covariance's eigenvalues, in any scale

Two rows overlap by sqrt(tr S^2) / tr S for the covariance S of a row: as much as isotropic rows in tr(S)^2 / tr S^2
dimensions do. The prediction is that of these rows, normal ones or, where norms are fixed, unit ones. Higher moments of
the law are not used, and nobody has held it against simulation, so it is never `valid`.

A common mean of the rows is not derived. All pairs of rows then overlap by its square, which does not fall with d. The
first step puts (n_y - N/V) u_y mu^T into V1, n_y the count of label y, which moves the logits of all tokens alike. This
term is drawn once for a seed, and enters attention's scores; the terms of `attention.py` take overlaps to be
independent and of mean zero.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.objects import find_object, place_in
from mnemoscope.spec.validators import is_kept_name, one_line


@dataclass(frozen=True)
class Moments:
    """The moments of one row: the length of its mean, its covariance's eigenvalues by d, and whether its norm is 1."""

    mean: float = 0.0
    spectrum: Callable[[int], Any] | None = None
    unit_norm: bool = False

    def effective_dim(self, dim: int, place: str) -> float:
        """tr(S)^2 / tr S^2."""
        if self.spectrum is None:
            return float(dim)
        try:
            values = np.asarray(self.spectrum(dim), float)
        except Exception as error:  # a user's function may raise anything
            raise SpecError("embedding", f"expected a spectrum of {place}, got {one_line(error)}") from None
        if values.shape != (dim,) or not np.isfinite(values).all() or (values < 0).any() or not values.any():
            raise SpecError("embedding", f"expected {dim} eigenvalues of at least 0 from {place}, got {values.shape}")
        return float(values.sum() ** 2 / (values**2).sum())


def moments_of(spec: Retrieval) -> Moments | None:
    """What the setting's own law states, if it has one that does."""
    if not is_kept_name(getattr(spec, "embedding", None)):
        return None
    try:
        law = find_object("embedding", spec.embedding)
    except SpecError:  # a record of a law that is not here, or has changed
        return None
    stated = getattr(law, "moments", None)
    return stated if isinstance(stated, Moments) else None


def stand_in(spec: Retrieval) -> Retrieval:
    """The setting whose isotropic embeddings overlap as much; the setting itself if its law states nothing."""
    stated = moments_of(spec)
    if stated is None or stated.mean:
        return spec
    dim = max(1, round(stated.effective_dim(spec.dim, place_in(spec.embedding))))
    return spec.replace(embedding="sphere" if stated.unit_norm else "gaussian", dim=dim)


def note_on(spec: Retrieval) -> str:
    """What was predicted in place of the setting's own law, or why nothing was; empty if its law states nothing."""
    stated = moments_of(spec)
    if stated is None:
        return ""
    place = place_in(spec.embedding)
    if stated.mean:
        return f"{place} states a mean of {stated.mean:g}: embeddings with a common mean are not derived"
    other = stand_in(spec)
    rows = f"{other.embedding} embeddings in {other.dim:,} dimensions"
    return f"from the moments that {place} states, as for {rows}: not held against simulation"
