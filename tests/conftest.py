"""Shapes and types in signatures are checked while testing, and only then."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# One thread for each product of matrices: pytest's processes are as many as the cores already, and
# threads that wait for each other take the others' time. Before anything imports NumPy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

if TYPE_CHECKING:
    from explorer_server import Running

# What takes long to make and is the same in every run: bytecode and compiled programs. JAX finds a
# program by a hash of its code, its flags and JAX's version, Python a module by its time and size.
KEPT = Path(__file__).parents[1] / ".pytest_cache" / "kept"
PROGRAMS, BYTECODE = KEPT / "programs", KEPT / "bytecode"
MOST_BYTES = 2 * 2**30

# Commands keep what they compile in the user's cache folder, and trials in the data folder: not in
# those of whoever runs tests. The cache folder is one for all of pytest's processes, which inherit its
# name from the first; stores are each process's own.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="mnemoscope-tests-")
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    if sum(program.stat().st_size for program in PROGRAMS.iterdir()) > MOST_BYTES:  # those of many versions
        shutil.rmtree(PROGRAMS)
        PROGRAMS.mkdir()
    (Path(os.environ["XDG_CACHE_HOME"]) / "mnemoscope").mkdir()
    (Path(os.environ["XDG_CACHE_HOME"]) / "mnemoscope" / "compiled").symlink_to(PROGRAMS)
    if sys.dont_write_bytecode:
        # Else each of the many processes that tests start would compile JAX's and our own sources anew.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(BYTECODE)
        sys.dont_write_bytecode = False
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="data-", dir=os.environ["XDG_CACHE_HOME"])

# The first example of a property may have to compile, and a machine may be busy: how long it takes
# says nothing.
settings.register_profile("compiled", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("compiled")

# Before anything imports the package, so that every annotated function is checked.
install_import_hook("mnemoscope", "type_checks.check")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chaos-full", action="store_true", help="all of chaos, not its short form")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether all of chaos is asked for."""
    return bool(request.config.getoption("--chaos-full"))


@pytest.fixture(autouse=True)
def a_known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long work is said to take, and so what is refused, does not depend on where it is run."""
    from mnemoscope.experiments import cost

    monkeypatch.setattr(cost, "machine_speed", lambda: 1.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Running"]:
    """An explorer that runs, on a store of its own."""
    from explorer_server import running

    with running(tmp_path_factory.mktemp("explorer")) as made:
        yield made


# The files that take longest, the longest first.
LONGEST = (
    "training/test_golden.py",
    "training/test_settled.py",
    "training/test_three_step.py",
    "training/test_simulation.py",
    "training/test_paper_b.py",
    "training/test_batch.py",
    "experiments/test_plan.py",
    "theory/test_matched_filter.py",
    "chaos/test_kills.py",
    "studies/test_rules.py",
    "models/test_matrices.py",
    "studies/test_studies_b.py",
    "ui/test_explorer_page.py",
    "ui/test_exit_status.py",
    "experiments/test_capacity.py",
    "ui/test_explorer.py",
    "ui/test_explorer_measure.py",
    "chaos/test_explorer.py",
    "chaos/test_plan_cases.py",
)

# Files that the fast tier leaves out, `-m "not slow"`: those above, and others of many seconds.
SLOW = (
    *LONGEST,
    "experiments/test_cluster.py",
    "experiments/test_gpu_workers.py",
    "experiments/test_shared_batches.py",
    "experiments/test_forecast.py",
    "experiments/test_sweep.py",
    "experiments/test_fit.py",
    "experiments/test_phase.py",
    "engine/test_interrupts.py",
    "studies/test_studies_a.py",
    "studies/test_studies_lin.py",
    "studies/test_ledger.py",
    "studies/test_studies_bits.py",
    "studies/test_studies_stages.py",
    "studies/test_studies_transformer.py",
    "store/test_damage.py",
    "tasks/test_sequences.py",
    "models/test_embeddings.py",
    "engine/test_files.py",
    "theory/test_predict.py",
    "training/test_memory.py",
    "theory/test_bound.py",
    "theory/test_trained_searches.py",
    "theory/test_domain.py",
    "theory/test_frequencies.py",
    "ui/test_bench.py",
    "ui/test_report.py",
    "ui/test_run_command.py",
    "training/test_further_options.py",
    "training/test_facts_options.py",
    "training/test_full_batch.py",
    "training/test_transformer.py",
    "ui/test_explorer_live.py",
    "ui/test_transformer_command.py",
    "models/test_own_laws.py",
    "experiments/test_own.py",
    "chaos/test_options.py",
    "chaos/test_matrix_files.py",
    "test_adding.py",
    "test_names.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: begun last, one would keep one worker busy while the others wait.

    The tests of a file share compiled programs and fixtures, and so a worker.
    """
    tests = Path(__file__).parent
    order = {tests / name: at for at, name in enumerate(LONGEST)}
    slow = {tests / name for name in SLOW}
    for item in items:
        if item.path in slow:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: order.get(item.path, len(order)))


def keep_programs() -> None:
    """Keep what a process of tests compiles: small programs, too, which commands do not.

    They go into the folder at once. JAX would write in place, and others read half a file.
    """
    import jax
    from jax._src.lru_cache import LRUCache

    def put_whole(self: LRUCache, key: str, value: bytes) -> None:
        path = Path(str(self.path)) / f"{key}-cache"
        if not path.exists():
            part = path.with_name(f"{key}.{os.getpid()}")
            part.write_bytes(value)
            part.replace(path)

    LRUCache.put = put_whole
    jax.config.update("jax_compilation_cache_dir", str(PROGRAMS))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def pytest_configure(config: pytest.Config) -> None:
    """The fast tier leaves out what the usual run leaves out, too."""
    if "PYTEST_XDIST_WORKER" in os.environ or not config.option.numprocesses:  # else the others run the tests
        keep_programs()
    if config.option.markexpr == "not slow":
        usual = next(word for word in config.getini("addopts") if word.startswith("not "))
        config.option.markexpr = f"{usual} and not slow"
