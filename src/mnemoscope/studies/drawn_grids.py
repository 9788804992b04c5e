"""What a study would measure on its grid, drawn before the run: theory's values, scattered."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mnemoscope.studies.base import Numbers, Power, Size
from mnemoscope.studies.expected_scatter import Expected
from mnemoscope.studies.power import Draw, JudgeAll, base_by_base, rehearse, say_bases, scattered
from mnemoscope.studies.rival_laws import Powers


@dataclass(frozen=True)
class Place:
    """One place of a grid: its sizes by axis, theory's value there, and how it will scatter."""

    sizes: Mapping[str, float]
    value: float
    scatter: Expected


def draw_grid(places: Sequence[Place], law: Sequence[float], size: Size, value: str, log_of: str | None = None) -> Draw:
    """Numbers of all base seeds if `law` were the true values; `value` is their key in a point."""
    axes = [{"axis": axis} for axis in places[0].sizes]

    def base(rng: np.random.Generator) -> Numbers:
        points = []
        for place, true in zip(places, law, strict=True):
            estimate, low, high = scattered(rng, true, place.scatter.error, place.scatter.beyond)
            points.append({**place.sizes, value: estimate, "low": low, "high": high, "predicted": place.value})
        return {"exponents": axes, "log_of": log_of, "points": points}

    return base_by_base(size, base)


def as_theory(places: Sequence[Place]) -> list[float]:
    """Theory's own values."""
    return [place.value for place in places]


def pure_power(places: Sequence[Place], powers: Powers) -> list[float]:
    """A power law through theory's geometric mean on these places."""
    logs = [math.fsum(power * math.log(place.sizes[axis]) for axis, power in powers.items()) for place in places]
    return _centred(places, logs)


def sum_of_powers(places: Sequence[Place], powers: Powers) -> list[float]:
    """A term for each axis, with its claimed power, all as large at the middle of the grid."""
    terms = []
    for axis, power in powers.items():
        logs = np.log([place.sizes[axis] for place in places])
        terms.append(power * (logs - logs.mean()))
    return _centred(places, np.logaddexp.reduce(terms, axis=0).tolist())


def _centred(places: Sequence[Place], logs: Sequence[float]) -> list[float]:
    level = math.fsum(math.log(place.value) for place in places) / len(places)
    mean = math.fsum(logs) / len(logs)
    return [math.exp(level + log - mean) for log in logs]


def rehearse_grid(
    judge_all: JudgeAll, places: Sequence[Place], rivals: Mapping[str, Powers], size: Size, value: str, what: str
) -> Power:
    """The power of a rule where theory is right, and where each rival's powers are."""
    draws = {name: draw_grid(places, pure_power(places, powers), size, value) for name, powers in rivals.items()}
    return rehearse(
        judge_all, draw_grid(places, as_theory(places), size, value), draws, note=say_draw(places, size, what)
    )


def say_draw(places: Sequence[Place], size: Size, what: str) -> str:
    """What a rehearsal draws, in words."""
    squares = [place.scatter.error**2 + place.scatter.beyond**2 for place in places]
    typical = math.sqrt(math.fsum(squares) / len(squares))
    where = f"at {len(places)} places, {say_bases(size)}"
    return f"Drawn from theory's {what} {where}, scattered by {typical:.3f} in its logarithm"
