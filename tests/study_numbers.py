"""Numbers such as a study measures, made up."""

from typing import Any


def points(power: float) -> list[dict[str, Any]]:
    """Limits on an exact power law, with intervals of 5 %."""
    made = []
    for dim in (8, 11, 16, 22, 32):
        stored = 2.0 * (dim * dim) ** power
        made.append(
            {
                "dim": dim,
                "width": dim,
                "size": dim * dim,
                "stored": stored,
                "low": stored / 1.05,
                "high": stored * 1.05,
                "status": "found",
                "steps": 3 * dim,
            }
        )
    return made
