"""Which law is about a setting, and whether its number there is valid: what `predict`, `critical`, `plan`, the
explorer's maps and the matched filter ask.

The one place that decides `valid`. The laws' rows are in `domain_table.py`, what a row says in `limits.py`.
"""

from collections.abc import Collection

import numpy as np

from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.spec.validators import Measure
from mnemoscope.theory.domain_table import BARE, DOMAINS, MLP
from mnemoscope.theory.limits import FREQUENCIES, QUANTITIES, Domain, Law
from mnemoscope.theory.registry import missing, underived
from mnemoscope.theory.spec_grid import Sizes, SpecGrid

# The spec field behind each choice.
OPTIONS = {"model": "width", **{name: name for name in ("activation", "embedding", "trigger", "attention")}}


def choices_of(sizes: Sizes) -> dict[str, str]:
    """A setting's choices, under the names that rows use."""
    names = ("embedding", "trigger", "attention", *(["activation"] if sizes.hidden else []))
    return {"model": (MLP if sizes.hidden else BARE)[0], **{name: getattr(sizes, name) for name in names}}


def domain_of(sizes: Sizes, measure: Measure | Law = "accuracy") -> Domain | None:
    """The row of the law behind a prediction; None where nothing is derived."""
    # Attention accuracy comes from the same derivation as accuracy.
    kind = "accuracy" if measure == "attention_accuracy" else measure
    choices = choices_of(sizes)
    return next((row for row in DOMAINS if row.measure == kind and row.is_about(choices)), None)


def inside(cells: SpecGrid, measure: Measure | Law = "accuracy") -> np.ndarray:
    """Which of many settings have valid numbers."""
    row = domain_of(cells, measure)
    return np.zeros(np.shape(cells.vocab), bool) if row is None else row.holds(cells)


def doubts(spec: Sizes, measure: Measure | Law = "accuracy") -> list[str]:
    """Why the number for a setting is unreliable; empty inside the law's domain."""
    row = domain_of(spec, measure)
    if row is not None:
        return list(row.doubts(spec))
    return [missing(spec)[1] or "no law is about this setting: it was not held against simulation"]


def domains_with(spec: Retrieval, given: Collection[str]) -> list[Domain]:
    """The laws whose domains contain a setting, judged by the fields in `given` alone.

    Without any, a `SpecError` names the field that no law allows, and says why.
    """
    if not given:
        return list(DOMAINS)
    option, why = underived(spec)
    if option:
        raise _outside(spec, option, why)
    known = {name: value for name, value in choices_of(spec).items() if OPTIONS[name] in given}
    valid: list[Domain] = []
    outside: list[tuple[str, str]] = []
    # Laws of uniform tokens hold for those alone, and the laws of frequencies for all others.
    uneven = spec.tokens != UNIFORM
    fits = (row for row in DOMAINS if "tokens" not in given or (row.measure == FREQUENCIES) == uneven)
    for row in (row for row in fits if row.is_about(known)):
        broken = [
            limit for limit in row.limits if set(QUANTITIES[limit.quantity][0]) <= set(given) and not limit.holds(spec)
        ]
        if row.doubt:
            chosen = [OPTIONS[name] for name in row.about if OPTIONS[name] in given]
            outside.append(([*given, *chosen][-1], row.doubt))
        elif broken:
            outside.append((QUANTITIES[broken[0].quantity][0][0], broken[0].reason(spec)))
        else:
            valid.append(row)
    if not valid:
        raise _outside(spec, *outside[0])
    return valid


def _outside(spec: Retrieval, option: str, why: str) -> SpecError:
    return SpecError(option, f"expected a setting in the domain of a law, got {getattr(spec, option)!r}: {why}")
