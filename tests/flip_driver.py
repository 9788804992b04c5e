"""Single flips in a store, as a process of its own: python flip_driver.py FOLDER COUNT.

Annotations are not checked here, as they are in tests: a search goes through every byte of a page.
"""

import logging
import random
import sys
from pathlib import Path

from mnemoscope.engine.record import Step, Trial
from mnemoscope.spec import Retrieval
from mnemoscope.store.trials import Store

SETTINGS = [Retrieval(vocab=64, dim=16 + 8 * number, length=4, samples=40) for number in range(5)]


def main(folder: Path, count: int) -> None:
    """Flip one bit at a time, and say where more than a record or a setting is lost."""
    logging.disable()  # which damage is found is not the question here
    path, draw = folder / "trials.db", random.Random(5)
    steps = (Step("V2", 0.5, 0.5, 0.5, signal=1.0, std=0.5, loss=2.0),)
    with Store(path) as store:
        store.add([Trial(SETTINGS[seed % 5], seed, "ok", steps) for seed in range(60)])
    whole = path.read_bytes()
    # The heads of pages, where a bit decides how the rest is read, and the file's own.
    heads = [at + place for at in range(0, len(whole), 4096) for place in range(12)]
    places = [*draw.choices(range(len(whole)), k=count), *draw.choices(heads, k=count)]
    for place in [*places, *range(28, 40)]:
        for left in folder.iterdir():
            left.unlink()
        broken = bytearray(whole)
        broken[place] ^= 1 << draw.randrange(8)
        path.write_bytes(broken)
        with Store(path, writing=False) as store:
            found = [trial.spec for trial in store.find()]
        hides_a_setting = (len({spec.id for spec in found}), len(found)) == (4, 48)
        if len(found) < 59 and not hides_a_setting:
            print(f"byte {place}: {60 - len(found)} trials are lost")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
