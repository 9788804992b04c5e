"""The store: what is written stays, trouble is one clear line, and drivers do not collide."""

import json
import math
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import pytest
from stored_trials import SPEC, made, repeat_trials

from mnemoscope import SpecError, Trial
from mnemoscope.spec import Facts, Memory
from mnemoscope.store import sqlite
from mnemoscope.store.claims import Claims
from mnemoscope.store.query import condition, list_settings, open_array, open_frame
from mnemoscope.store.rows import read_setting
from mnemoscope.store.schema import _read_format, default_path
from mnemoscope.store.tables import FORMAT
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import main


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "trials.db") as opened:
        yield opened


def test_tables_that_another_process_makes_while_a_store_is_opened(tmp_path: Path):
    path = tmp_path / "trials.db"

    class Rows(list[Any]):
        def fetchone(self) -> Any:
            return self[0]

    class Meanwhile(sqlite3.Connection):
        """A connection after whose first answer another one makes the tables."""

        asked = 0

        def execute(self, sql: str, *_: Any) -> Any:
            rows = Rows(super().execute(sql).fetchall())
            self.asked += 1
            if self.asked == 1:
                with Store(path):
                    pass
            return rows

    connection = Meanwhile(path)
    assert _read_format(connection, path) == FORMAT
    connection.close()


def test_a_trial_comes_back_whole(store: Store):
    trial = made(accuracy=0.25)
    store.add([trial])
    jobs = [(SPEC, 1), (SPEC.replace(dim=8), 0), (SPEC, 0)]
    assert store.get(jobs) == {(SPEC, 0): trial}
    assert store.finished(jobs) == {(SPEC, 0)}


def test_only_the_jobs_that_were_asked_for_come_back_in_their_order(store: Store):
    other = SPEC.replace(dim=8)
    store.add([made(spec, seed) for spec in (SPEC, other) for seed in range(3)])
    jobs = [(other, 2), (SPEC, 1), (SPEC, 0)]
    assert [*store.get(jobs)] == jobs  # and not the other pairs of these settings and seeds
    assert store.finished(jobs) == set(jobs)
    assert store.get([]) == {}
    assert store.finished([]) == set()


def test_what_is_there_stays_but_a_crash_gives_way(store: Store):
    store.add([made(accuracy=0.25), made(seed=1, status="crashed")])
    store.add([made(accuracy=0.75), made(seed=1, accuracy=0.75)])
    assert [trial.accuracy for trial in store.find()] == [0.25, 0.75]
    store.add([made(seed=2, status="crashed"), made(seed=2, status="crashed")])
    assert store.finished([(SPEC, seed) for seed in range(3)]) == {(SPEC, 0), (SPEC, 1)}
    assert store.count() == 3


def test_another_version_of_the_numerics_does_not_mix(store: Store):
    old = made(accuracy=0.1)
    store.add([Trial(**{**vars(old), "versions": {**old.versions, "numerics": "0"}})])
    assert store.finished([(SPEC, 0)]) == set()
    assert store.get([(SPEC, 0)]) == {}
    assert store.count() == 1


def test_all_or_none(store: Store):
    broken = Trial(**{**vars(made(seed=1)), "seconds": math.nan})  # which SQLite has no number for
    with pytest.raises(SpecError):
        store.add([made(), broken])
    assert store.count() == 0


def test_troubles_are_one_line(tmp_path: Path):
    path = tmp_path / "trials.db"
    with pytest.raises(SpecError, match=r"^store: expected a store that is there, got "):
        Store(path, writing=False)
    Store(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE about SET value = ?", (str(FORMAT + 1),))
        raw.execute(f"PRAGMA user_version = {FORMAT + 1}")
    raw.close()
    with pytest.raises(SpecError, match="it was written by a newer mnemoscope"):
        Store(path)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as raw:
        raw.execute("CREATE TABLE mine (x)")
    raw.close()
    with pytest.raises(SpecError, match="expected a store of mnemoscope's"):
        Store(other)
    (tmp_path / "text.db").write_text("no database " * 400)
    with pytest.raises(SpecError, match=r"expected a sound store.*not a database"):
        Store(tmp_path / "text.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecError, match="expected a place to write to"):
        Store(tmp_path / "file" / "trials.db")


def test_a_full_disk_keeps_what_was_there(store: Store):
    """SQLite's own limit on pages gives the error that a full disk gives."""
    store.add([made(seed=seed) for seed in range(50)])
    pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
    store.connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(SpecError, match=r"^store: expected room on the disk, got "):
        store.add([made(seed=seed) for seed in range(50, 1000)])
    assert store.count() == 50
    store.connection.execute("PRAGMA max_page_count = 1000000")
    store.add([made(seed=seed) for seed in range(50, 60)])
    assert store.count() == 60


def test_a_store_that_cannot_be_written(store: Store):
    store.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(SpecError, match=r"^store: expected a file that can be written \(`none`"):
        store.add([made()])
    assert store.count() == 0


def test_a_closed_folder_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Store(tmp_path / "trials.db") as store:
        store.add([made()])
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with Store(tmp_path / "trials.db", writing=False) as store:
        assert store.get([(SPEC, 0)]) == {(SPEC, 0): made()}
    assert not list(tmp_path.glob("*-shm"))


def test_nowhere_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with Store(Path("none")) as store:
        claims = Claims(store)
        assert claims.take([(SPEC, 0)]) == [(SPEC, 0)]
        claims.finish([made()])
        claims.close()
        assert store.count() == 1
    assert not list(tmp_path.iterdir())


def test_files_are_whole_or_not_there(tmp_path: Path):
    from mnemoscope.engine.files import whole_file

    target = tmp_path / "table.csv"
    target.write_text("before")
    with pytest.raises(ZeroDivisionError), whole_file(target) as part:
        part.write_text(f"half {1 / 0}")
    with pytest.raises(SpecError, match=r"^out: expected a place to write to"), whole_file(target):
        Path("/dev/full").write_text("no room")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert target.read_text() == "before"


def test_conditions_name_columns_and_carry_values():
    where, values = condition(["vocab=512", "dim>=64"])
    assert where == '1 AND "vocab" = (SELECT ?) AND "dim" >= (SELECT ?)'
    assert values == [512, 64]
    with pytest.raises(SpecError, match=r"^where: expected one of .*, got 'vocab; DROP TABLE x'$"):
        condition(["vocab; DROP TABLE x=1"])
    with pytest.raises(SpecError, match=r"^where: expected a condition such as vocab=512, got 'x'$"):
        condition(["x"])


def test_tables_have_labelled_axes(store: Store):
    specs = [SPEC.replace(dim=d, samples=N) for d in (16, 32) for N in (100, 200, 400)]
    store.add([made(spec, seed, spec.samples / 1000) for spec in specs for seed in range(2)])
    (row,) = list_settings(store, ["dim=16", "samples=200"])
    assert (row["trials"], row["accuracy"]) == (2, 0.2)
    assert len(list_settings(store, most=4)) == 4
    frame = open_frame(store, ["dim=32"])
    assert len(frame) == 6
    assert {"vocab", "samples", "accuracy", "attention_accuracy", "device"} <= set(frame.columns)
    array = open_array(store, ["dim", "samples"])
    assert array.dims == ("dim", "samples", "seed")
    assert float(array.sel(dim=16, samples=400, seed=1)) == 0.4
    with pytest.raises(SpecError, match="expected axes that tell trials apart"):
        open_array(store, ["dim"])


def test_tables_know_the_fields_of_other_kinds(store: Store):
    facts = Facts(subjects=4, relations=2, answers=2, dim=8, heads=1, head_dim=8, width=0)
    steps: dict[str, float | None] = {"accuracy": 0.99, "steps": 640.0, "relation_accuracy": 1.0}
    store.add([made(), Trial(facts, 0, "ok", metrics=steps), Trial(facts.replace(lr=0.1), 0, "ok")])
    store.add([Trial(Memory(dim=8, items=5), 0, "ok", metrics={"accuracy": 1.0})])
    assert len(list_settings(store, ["subjects=4"])) == 2
    assert len(list_settings(store, ["mixing=softmax", f"lr={facts.lr}"])) == 1
    assert len(list_settings(store, ["lr=0"])) == 1  # the memory's own default
    assert len(list_settings(store, ["kind=memory"])) == 1
    assert len(list_settings(store, ["steps_taken>600", "relation-accuracy=1"])) == 1
    (row,) = open_frame(store, ["kind=facts", "lr=0.1"]).to_dict("records")
    assert (row["subjects"], row["dim"], row["max_steps"]) == (4, 8, facts.max_steps)
    assert "items" not in row
    assert "subjects" not in open_frame(store, ["kind=retrieval"]).columns


def sqlite_steps(store: Store, work: Callable[[], object]) -> int:
    """What work costs in SQLite's own instructions: the same on any machine, however busy."""
    tens = 0

    def count() -> int:
        nonlocal tens
        tens += 1
        return 0

    store.connection.set_progress_handler(count, 10)
    work()
    store.connection.set_progress_handler(None, 0)
    return 10 * tens


def test_a_table_of_every_kinds_trials_has_no_column_twice(store: Store):
    golden = json.loads((Path(__file__).parents[1] / "golden" / "trials.json").read_text())["trials"]
    known = {"loss", "accuracy", "attention_accuracy", "bits_stored", "bits_coded", "bits_per_parameter"}
    assert known <= {name for trial in golden for name in trial["record"]}
    no_metrics = {"seed", "status", "message", "precision", "spec_id", "curve"}
    made_of = [
        Trial(
            read_setting(trial["canonical"]),
            trial["seed"],
            trial["record"]["status"],
            metrics={
                name: None if value is None else float(value)
                for name, value in trial["record"].items()
                if name not in no_metrics and (value is None or isinstance(value, int | float))
            },
        )
        for trial in golden
        if "capacity" not in trial["record"]  # a measured capacity is many trials
    ]
    store.add(made_of)
    columns = [*open_frame(store).columns]
    assert len(columns) == len({*columns}), [name for name in columns if columns.count(name) > 1]
    assert {"bits", "bits_stored"} <= {*columns}


def test_a_write_costs_little_however_many_there_are(tmp_path: Path):
    with Store(tmp_path / "trials.db") as store:
        store.add([made(seed=seed) for seed in range(2000)])
        assert 0 < sqlite_steps(store, lambda: store.add([made(seed=2000)])) < 500


def test_two_drivers_share_the_work(tmp_path: Path):
    path = tmp_path / "trials.db"
    jobs = [(SPEC, seed) for seed in range(10)]
    with Store(path) as one, Store(path) as two:
        first, second = Claims(one), Claims(two)
        mine = first.take(jobs[:6])
        theirs = second.take(jobs)
        assert not set(mine) & set(theirs)
        assert len(mine) + len(theirs) == 10
        first.finish([made(seed=seed) for _, seed in mine])
        second.finish([made(seed=theirs[0][1])])
        second.close()
        assert first.take(jobs) == theirs[1:]
        first.close()
        assert one.connection.execute("SELECT count(*) FROM claims").fetchone() == (0,)


def test_drivers_may_make_a_store_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """While another one is at it, SQLite refuses the log at once; we wait."""
    path = tmp_path / "trials.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE theirs (number INTEGER)")
    other.execute("DROP TABLE theirs")
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            other.execute("COMMIT")

    clock = SimpleNamespace(monotonic=time.monotonic, time=time.time, sleep=wait)
    monkeypatch.setattr(sqlite, "time", clock)
    with Store(path) as store:
        assert store.count() == 0
    assert len(waited) == 3
    other.close()


def test_a_dead_drivers_claims_fall_to_the_next(tmp_path: Path):
    path = tmp_path / "trials.db"
    code = (
        "import os, sys; from pathlib import Path; from mnemoscope import Retrieval; "
        "from mnemoscope.store.claims import Claims; from mnemoscope.store.trials import Store; "
        "claims = Claims(Store(Path(sys.argv[1]))); "
        "spec = Retrieval(vocab=64, dim=32, length=4, samples=500); "
        "print(len(claims.take([(spec, 0), (spec, 1)])), flush=True); os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert dead.stdout.strip() == "2"
    with Store(path) as store:
        claims = Claims(store)
        assert len(claims.take([(SPEC, 0), (SPEC, 1)])) == 2
        claims.close()


def test_where_it_is_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "mnemoscope" / "trials.db"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "trials.db"
    where = ["--store", str(path)]
    with Store(path) as store:
        store.add([made(seed=seed, accuracy=0.5) for seed in range(3)])
        store.add([made(SPEC.replace(dim=16), 0, status="crashed")])
    assert main(["store", "list", *where, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["trials"], len(told["settings"])) == (4, 2)
    assert main(["store", "list", *where, "--where", "dim=32"]) == 0
    assert "0.500" in capsys.readouterr().out
    for form in ("parquet", "csv"):
        out = tmp_path / f"table.{form}"
        assert main(["store", "export", str(out), *where]) == 0
        read = pandas.read_parquet(out) if form == "parquet" else pandas.read_csv(out)
        assert read["accuracy"].dropna().tolist() == [0.5, 0.5, 0.5]
        assert len(read) == 4
    assert main(["store", "verify", *where]) == 0
    assert main(["store", "prune", *where, "--where", "status=crashed"]) == 0
    assert "1 trials would be removed" in capsys.readouterr().out
    assert main(["store", "prune", *where, "--where", "status=crashed", "--yes"]) == 0
    with Store(path) as store:
        assert store.count() == 3
        store.connection.execute("UPDATE trials SET accuracy = 7 WHERE seed = 1")
    assert main(["store", "verify", *where]) == 1
    assert f"{SPEC.id} seed 1: damaged" in capsys.readouterr().out
    assert main(["store", "prune", *where]) == 2
    assert "--where: expected a condition" in capsys.readouterr().err
    assert main(["store", "list", "--store", str(tmp_path / "none.db")]) == 2
    assert "expected a store that is there" in capsys.readouterr().err


def test_listing_looks_only_at_what_was_asked_for(tmp_path: Path):
    """1,100 trials out of 100,000: to look at every one would cost ten times as much."""
    with Store(tmp_path / "trials.db") as store:
        specs = [SPEC.replace(dim=d, samples=N) for d in range(2, 52) for N in range(100, 2100, 100)]
        store.add([made(spec) for spec in specs])
        (columns,) = [row for row in store.connection.execute("SELECT count(*) FROM settings")]
        assert columns == (1000,)
        repeat_trials(store, range(1, 100))
        assert store.count(checked=False) == 100_000
        rows: list[dict[str, Any]] = []
        words = ["dim=20", "samples>=1000"]
        assert sqlite_steps(store, lambda: rows.extend(list_settings(store, words))) < 300 * 1100
        assert sum(row["trials"] for row in rows) == 1100
