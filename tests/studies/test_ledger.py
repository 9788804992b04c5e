"""The ledger: what studies found is kept, by several processes at once, and judged again."""

import dataclasses
import json
import multiprocessing
import os
import sqlite3
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from study_numbers import points
from study_processes import die, note, refuse

from mnemoscope.experiments.sweep import Tally, ThisProcess, sweep
from mnemoscope.experiments.workers.shared_batches import Client
from mnemoscope.spec import Memory, Retrieval, SpecError
from mnemoscope.store.trials import Store
from mnemoscope.studies import b_stages, parallel
from mnemoscope.studies.base import Bench, Earlier, Judgement, Numbers, Power, Size, Study
from mnemoscope.studies.catalogue import load_all
from mnemoscope.studies.claims import Claim
from mnemoscope.studies.entries import Entry, trials_of
from mnemoscope.studies.fingerprints import REVISIONS
from mnemoscope.studies.ledger import Ledger, run_studies
from mnemoscope.studies.parallel import pieces_left
from mnemoscope.studies.seed_means import run_settings
from mnemoscope.ui.cli import main


def make_bench(store: Store, study: Study, seed: int) -> Bench:
    return Bench(store, ThisProcess(), None, seed)


def make_study(judge_all: Callable[[Sequence[Numbers]], Judgement] | None = None) -> Study:
    """One number from each base seed, which has to be 1."""

    def judge(numbers: Numbers) -> Judgement:
        value = numbers["value"]
        return Judgement(f"value {value}", "supported" if value == 1 else "refuted")

    return Study(
        id="b-fig5",
        revision=1,
        source="paper B",
        statement="it is one",
        expected="1",
        rule="by its value",
        measure=lambda size, bench: {"value": 1 if bench.seed == 0 else 2},
        judge=judge,
        draw=lambda numbers, figure: None,
        judge_all=judge_all,
        power=lambda size: Power(0.9, {"two": 0.0}, 10, "drawn"),
    )


def test_base_seeds_have_to_agree_unless_they_are_pooled(tmp_path: Path):
    with Store(tmp_path / "s.db") as store:
        book = Ledger(tmp_path / "ledger.json")
        bench = partial(make_bench, store)
        (claim,) = run_studies([make_study()], "quick", 2, book, bench)
        assert [own.verdict for own in claim.judgements] == ["supported", "refuted"]
        assert claim.verdict == "inconclusive"
        assert claim.as_dict()["pooled"] is None
        again = Ledger(tmp_path / "ledger.json")
        before = again.path.read_bytes()

        def judge_all(bases: Sequence[Numbers]) -> Judgement:
            return Judgement(f"{len(bases)} together", "supported")

        (pooled,) = run_studies([make_study(judge_all)], "quick", 2, again, bench)
        assert again.path.read_bytes() == before  # a rule is no measurement
    claim_dict = pooled.as_dict()
    assert (claim_dict["verdict"], claim_dict["measured"]) == ("supported", "2 together")
    assert [own["verdict"] for own in claim_dict["bases"]] == ["supported", "refuted"]
    assert claim_dict["power"] == {"supported": 0.9, "rivals": {"two": 0.0}, "draws": 10, "note": "drawn"}


def test_what_ran_for_a_replaced_rule_is_told_as_that_had_it():
    earlier = Earlier("2026-11-18", "any value will do", "value 7", "refuted", "it was too easy")
    study = dataclasses.replace(make_study(), history=(earlier,))
    old = Claim(study, "full", (Entry("b-fig5", "full", 0, 0, {}),))
    assert old.earlier is earlier
    replaced = old.as_earlier(earlier)
    assert (replaced["verdict"], replaced["measured"], replaced["rule"]) == ("refuted", "value 7", "any value will do")
    assert replaced["replaced"] == {"date": "2026-11-18", "rule": "by its value", "statement": "it is one"}
    assert Claim(study, "quick", old.entries).earlier is None  # known at full size alone
    new = Entry("b-fig5", "full", 0, study.revision, {"value": 1})
    assert Claim(study, "full", (new,)).earlier is None
    assert Claim(study, "full", (new,)).as_dict()["history"] == [earlier.as_dict()]


def test_the_larger_size_speaks(tmp_path: Path):
    book = Ledger(tmp_path / "ledger.json")
    seeds = [{**point, "each": [point["low"], point["high"]], "resolution": 0.0} for point in points(1.0)]
    numbers = {"points": seeds}
    for size in ("quick", "full"):
        book.add(Entry("b-fig4-left", size, 0, 0, numbers))
    (claim,) = book.claims(load_all())
    assert isinstance(claim, Claim)
    assert claim.size == "full"
    assert claim.as_dict()["command"] == "mnemoscope reproduce b-fig4-left --full --bases 1"


def test_an_entry_has_its_trials(tmp_path: Path):
    with Store(tmp_path / "s.db") as store:
        bench = Bench(store, ThisProcess())
        specs = [Retrieval(vocab=16, dim=12, length=4, samples=n) for n in (50, 100)]
        run_settings(bench, specs, 2)
        memory = Memory(items=8, dim=16)
        ask([memory], bench)
        trials = trials_of(store, bench.asked)
    kinds = [setting["kind"] for setting in trials["settings"]]
    assert kinds[:2] == ["retrieval", "retrieval"]
    assert "memory" in kinds
    rows = [dict(zip(trials["columns"], row, strict=True)) for row in trials["rows"]]
    own = [row for row in rows if row["setting"] == 1]
    assert [row["seed"] for row in own] == [0, 1]
    assert all(0 <= row["accuracy"] <= 1 for row in own)
    assert all(row["first_gradient"] is not None for row in own)
    json.dumps(trials, allow_nan=False)


def ask(specs: list[Memory], bench: Bench) -> None:
    jobs = [(spec, seed) for spec in specs for seed in range(2)]
    sweep(jobs, bench.store, bench.workers, bench.progress)


def test_several_write_to_one_ledger(tmp_path: Path):
    first, second = Ledger(tmp_path / "ledger.json"), Ledger(tmp_path / "ledger.json")
    numbers = {"points": [], "fit": None, "few": []}
    first.add(Entry("b-fig4-left", "quick", 0, 0, numbers))
    second.add(Entry("b-fig4-left", "quick", 1, 0, numbers))  # which has not seen the first's
    assert len(Ledger(tmp_path / "ledger.json").entries) == 2
    first.read()
    assert len(first.entries) == 2


def test_the_users_own_ledger_is_a_table_and_takes_in_an_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    older = tmp_path / "mnemoscope" / "ledger.json"
    older.parent.mkdir()
    Ledger(older).add(Entry("b-fig5", "quick", 0, 2, {"value": 1}))
    before = older.read_bytes()
    first, second = Ledger(), Ledger()
    assert first.path == older.with_name("ledger.db")
    assert len(first.entries) == 1
    assert not first.path.exists()  # nothing is written before there is something to add
    first.add(Entry("b-fig5", "quick", 1, 2, {"value": 2}))
    second.add(Entry("b-fig5", "quick", 2, 2, {"value": 3}))  # which has not seen the first's
    second.add(Entry("b-fig5", "quick", 0, 2, {"value": 4}))
    assert [entry.numbers["value"] for entry in Ledger().entries.values()] == [4, 2, 3]
    assert older.read_bytes() == before
    Ledger().export(tmp_path / "export.json")
    assert Ledger(tmp_path / "export.json").entries == Ledger().entries


def add_entries(path: Path, base: int) -> None:
    for number in range(base, base + 20):
        Ledger(path).add(Entry("b-fig5", "quick", number, 2, {}))


@pytest.mark.parametrize("name", ["l.db", "l.json"])
def test_processes_that_add_at_once_lose_nothing(tmp_path: Path, name: str):
    processes = [multiprocessing.Process(target=add_entries, args=(tmp_path / name, 20 * part)) for part in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX's threads do not mind here
        for process in processes:
            process.start()
    for process in processes:
        process.join()
    assert len(Ledger(tmp_path / name).entries) == 60


def test_a_table_that_is_no_ledger_is_refused(tmp_path: Path):
    path = tmp_path / "l.db"
    path.write_text("no database " * 400)
    with pytest.raises(SpecError, match="a ledger that `reproduce` wrote"):
        Ledger(path)
    path.unlink()
    Ledger(path).add(Entry("b-fig5", "quick", 0, 2, {}))
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 4")
    with pytest.raises(SpecError, match="a newer mnemoscope wrote it"):
        Ledger(path)


@pytest.mark.long
def test_studies_run_at_once_and_are_found_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = [
        "reproduce",
        "b-fig5",
        "a-trigger",
        "--ledger",
        str(tmp_path / "l.json"),
        "--store",
        str(tmp_path / "s.db"),
        "--json",
    ]
    assert main([*words, "--at-once", "2"]) == 0
    printed = capsys.readouterr()
    assert "2 of 2 done" in printed.err
    claims = json.loads(printed.out)["claims"]
    assert [claim["id"] for claim in claims] == ["b-fig5", "a-trigger"]
    assert main([*words, "--at-once", "2"]) == 0
    again = capsys.readouterr()
    assert "done" not in again.err
    assert json.loads(again.out)["claims"] == claims
    assert main([*words, "--at-once", "0"]) == 2
    assert main([*words, "--at-once", "2", "--cluster", "local:1"]) == 2


def test_what_takes_long_comes_first_and_what_is_kept_is_left_out(tmp_path: Path):
    book = Ledger(tmp_path / "ledger.json")
    studies = load_all(["b-fig5", "b-fig1-right"])
    book.add(Entry("b-fig5", "quick", 1, b_stages.STUDY.revision, {}))
    assert pieces_left(studies, "quick", 2, book, side_by_side=True) == [
        ("b-fig1-right", "quick", (0, 1)),
        ("b-fig5", "quick", (0,)),
    ]
    assert pieces_left(studies, "quick", 2, book, side_by_side=False) == [
        ("b-fig1-right", "quick", (0,)),
        ("b-fig1-right", "quick", (1,)),
        ("b-fig5", "quick", (0,)),
    ]


def test_what_a_process_refuses_is_told_as_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parallel, "_run", refuse)
    pieces: list[parallel.Piece] = [("b-fig5", "quick", (0,))]
    with pytest.raises(SpecError, match="expected another one") as caught:
        list(parallel.run_parallel(pieces, 1, "cpu", tmp_path / "s.db", tmp_path / "l.json"))
    assert caught.value.field == "device"


@pytest.mark.long
def test_searches_go_ahead_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And Ctrl-C, which reaches them all, is left to the process that started them."""
    monkeypatch.setattr(parallel, "_run", note)
    names = ["b-fig1-right", "b-fig4-left", "b-fig4-right", "b-fig5"]
    studies = load_all(names[::-1])
    pieces = pieces_left(studies, "full", 1, Ledger(tmp_path / "none"), side_by_side=True)
    assert [name for name, _, _ in pieces] == names  # searches, then the longest
    list(parallel.run_parallel(pieces, 4, "cpu", tmp_path / "s.db", tmp_path / "l.json"))
    own = os.nice(0)
    states = [json.loads((tmp_path / name).read_text()) for name in names]
    assert states == [[own, None, True]] * 2 + [[max(own, 10), "1", True]] * 2
    list(parallel.run_parallel(pieces[2:], 1, "cpu", tmp_path / "s.db", tmp_path / "l.json"))
    assert json.loads((tmp_path / names[2]).read_text()) == [own, None, True]


def test_one_base_seed_that_fails_leaves_the_others_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def measure(study: Study, size: Size, base: int, bench: Bench) -> Entry:
        if base == 0:
            raise SpecError("memory", "expected more of it, got this")
        assert isinstance(bench.workers, Client)
        return Entry(study.id, size, base, study.revision, {})

    monkeypatch.setattr(parallel, "measure_entry", measure)
    book = tmp_path / "l.json"
    with pytest.raises(SpecError, match="expected more of it"):
        parallel._run(("b-fig5", "quick", (0, 1, 2)), "cpu", tmp_path / "s.db", book, True, b_stages.__name__)
    kept = Ledger(book)
    found = [kept.find(b_stages.STUDY, "quick", base) is not None for base in range(3)]
    assert found == [False, True, True]


def test_a_ledger_is_looked_at_before_work_goes_into_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "b-fig5", "--ledger", str(tmp_path / "file" / "l.json")]) == 2
    assert "--ledger: expected a place to write to" in capsys.readouterr().err
    entry = Entry("b-fig5", "quick", 0, 0, {}).as_dict()
    for wrong in (
        {"base": "<script>"},
        {"made": None},
        {"seconds": "x"},
        {"size": "huge"},
        {"numbers": []},
        {"power": {"supported": 1}},
        {"power": {"supported": "<b>", "rivals": {}, "draws": 1, "note": ""}},
        {"power": {"supported": 1, "rivals": [], "draws": 1, "note": ""}},
    ):
        (tmp_path / "l.json").write_text(json.dumps({"format": 3, "entries": [{**entry, **wrong}]}))
        with pytest.raises(SpecError, match="a ledger that `reproduce` wrote"):
            Ledger(tmp_path / "l.json")
    (tmp_path / "l.json").write_text(json.dumps({"format": 3, "entries": [entry]}))
    page = str(tmp_path / "p.html")
    assert main(["report", "--ledger", str(tmp_path / "l.json"), "--out", page]) == 2
    assert "expected numbers of b-fig5 as it is now" in capsys.readouterr().err
    assert main(["report", "--ledger", str(tmp_path / "l.json"), "--figures", str(tmp_path)]) == 2
    assert "expected numbers of b-fig5 as it is now" in capsys.readouterr().err


def test_older_ledgers_name_a_revision_by_a_fingerprint(tmp_path: Path):
    new = Entry("b-fig5", "quick", 0, 2, {}, made={"numerics": "3"}).as_dict()
    old = {name: new[name] for name in new if name not in ("revision", "numerics")}
    known = next(key for key in REVISIONS if key[0] == "b-fig5")[1]
    for text, revision in ((known, b_stages.STUDY.revision), ("another", 0)):
        entries = [{**old, "print": text}]
        (tmp_path / "l.json").write_text(json.dumps({"format": 2, "entries": entries}))
        (entry,) = Ledger(tmp_path / "l.json").entries.values()
        assert (entry.revision, entry.numerics) == (revision, 3)


def test_a_process_that_dies_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parallel, "_run", die)
    pieces: list[parallel.Piece] = [("b-fig5", "quick", (0,))]
    with pytest.raises(SpecError, match="what was finished is kept"):
        list(parallel.run_parallel(pieces, 1, "cpu", tmp_path / "s.db", tmp_path / "l.json"))


@pytest.mark.long
def test_a_study_alone_reports_to_the_one_display(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """The base seeds side by side are one count, and the other process prints nothing."""
    heard: list[tuple[int, int, str]] = []
    sweeps: list[Tally] = []

    def progress(tally: Tally, what: str) -> None:
        sweeps.append(tally)
        heard.append((tally.done, tally.total, what))

    pieces: list[parallel.Piece] = [("a-three-steps", "quick", (0, 1))]
    list(parallel.run_parallel(pieces, 1, "cpu", tmp_path / "s.db", tmp_path / "l.db", progress))
    assert heard[-1] == (16, 16, "a-three-steps: trials")
    assert {what for _, _, what in heard} == {"a-three-steps: trials"}
    assert all(tally is sweeps[0] for tally in sweeps)  # so that the display does not count it twice
    assert capfd.readouterr().err == ""
