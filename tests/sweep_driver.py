"""A sweep as a process of its own, for tests that kill it: python sweep_driver.py STORE COUNT."""

import sys
from pathlib import Path

from mnemoscope.experiments.sweep import Tally, ThisProcess, sweep
from mnemoscope.spec import Retrieval
from mnemoscope.store.trials import Store


def jobs(count: int) -> list[tuple[Retrieval, int]]:
    """Tiny trials of one shape: seeds of four sample sizes."""
    return [
        (Retrieval(vocab=16, dim=8, length=4, samples=40 + 20 * (seed % 4), test_samples=64), seed)
        for seed in range(count)
    ]


def table(store: Store) -> list[tuple[object, ...]]:
    """All that two sweeps must agree in."""
    return [(t.spec, t.seed, t.status, t.steps) for t in store.find()]


def main() -> None:
    """Run the sweep, and say after every batch what is kept."""

    def say(tally: Tally) -> None:
        print(tally.found, tally.done, tally.failed, flush=True)

    with Store(Path(sys.argv[1])) as store:
        sweep(jobs(int(sys.argv[2])), store, ThisProcess("cpu"), say)


if __name__ == "__main__":
    main()
