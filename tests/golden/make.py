"""Makes the golden file: uv run python tests/golden/make.py

Trials that the file has already are kept as they are, so that nothing is lost by adding some. To
make all of them anew, after numbers were meant to change, remove the file first.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

# Matrices of the user's own are kept in the data folder: not in that of whoever runs this.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="mnemoscope-golden-")
os.environ["JAX_PLATFORMS"] = "cpu"

import trials

PATH = Path(__file__).with_name("trials.json")


def main() -> None:
    """Write the file, a trial to a line."""
    kept = {"where": trials.where(), "trials": []}
    if PATH.exists():
        kept = json.loads(PATH.read_text())
    if kept["where"] != trials.where():
        sys.exit(f"made where the last digits differ: {kept['where']}, not {trials.where()}")
    known = {_name(one): one for one in kept["trials"]}
    lines = []
    for group, cases in trials.GROUPS.items():
        names = [_name(case.identity()) for case in cases()]
        if all(name in known for name in names):
            made = [known[name] for name in names]
        else:
            made = [known.get(_name(one), one) for one in trials.entries(group)]
        lines += [json.dumps(one) for one in made]
        print(f"{group}: {len(made)} trials")
    where = json.dumps(kept["where"])
    PATH.write_text(f'{{"where": {where},\n"trials": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{PATH}: {len(lines)} trials, {PATH.stat().st_size:,} bytes")


def _name(entry: trials.Record) -> str:
    names = ("group", "canonical", "seed", "precision", "budget")
    return json.dumps([entry[name] for name in names])


if __name__ == "__main__":
    main()
