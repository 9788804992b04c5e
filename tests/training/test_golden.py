"""Every trial of the golden file, run again: the same numbers, to the last bit.

Moving code about may change nothing. `tests/golden/trials.py` says which trials these are and how
they are run, `tests/golden/make.py` makes the file.
"""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from golden import trials
from places import TESTS

GOLDEN = json.loads((TESTS / "golden" / "trials.json").read_text())
# Another CPU or another version of XLA takes sums in another order, and rounds otherwise.
ROUNDING = 1e-4
SHOWN = 10


def bound() -> float:
    """By how much numbers may differ, relatively: not at all, where the file was made."""
    return ROUNDING if GOLDEN["where"] != trials.where() else 0.0


def differences(got: Any, kept: Any, rounding: float, path: str = "") -> Iterator[str]:
    """Where two pieces of plain data differ, in words."""
    if isinstance(got, dict) and isinstance(kept, dict) and got.keys() == kept.keys():
        for name in kept:
            yield from differences(got[name], kept[name], rounding, f"{path}/{name}")
    elif isinstance(got, list) and isinstance(kept, list) and len(got) == len(kept):
        for at, (one, other) in enumerate(zip(got, kept, strict=True)):
            yield from differences(one, other, rounding, f"{path}/{at}")
    elif rounding and isinstance(got, float) and isinstance(kept, float):
        if not math.isclose(got, kept, rel_tol=rounding, abs_tol=rounding**2):
            yield f"{path}: {got!r}, and was {kept!r}"
    elif repr(got) != repr(kept):  # which tells every float from the next, and -0.0 from 0.0
        yield f"{path}: {got!r}, and was {kept!r}"


def numbers(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without what is no number of the trial: a setting's fields, whose canonical JSON is compared and which
    may get new ones with a default, and formulas that a capacity is shown beside."""
    record = {name: value for name, value in entry.get("record", {}).items() if name not in ("spec", "laws")}
    return {**entry, "record": record}


@pytest.mark.long
@pytest.mark.parametrize("group", trials.GROUPS)
def test_trials_are_what_they_were(group: str):
    kept = [entry for entry in GOLDEN["trials"] if entry["group"] == group]
    # As they are after a file: what a record calls a tuple is a list there.
    made = [json.loads(json.dumps(entry)) for entry in trials.entries(group)]
    assert [one["canonical"] for one in made] == [one["canonical"] for one in kept]
    wrong = [
        f"{entry['canonical']} seed {entry['seed']} {difference}"
        for now, entry in zip(made, kept, strict=True)
        # Elsewhere, AdamW's rates of up to 1000 make much of little.
        if not (bound() and entry["optimiser"] == "adamw")
        for difference in differences(numbers(now), numbers(entry), bound())
    ]
    assert not wrong, "\n".join([f"{len(wrong)} numbers differ:", *wrong[:SHOWN]])
