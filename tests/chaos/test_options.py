"""Wrong words for every command: status 2, one line that names the option, nothing written.

Commands and options are read off the application, so a new one is met at once. Each line is a
request that would run, with one thing wrong with it: what is wrong is known from how it was made.
"""

import contextlib
import io
import multiprocessing
import os
import random
import resource
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import cyclopts
import numpy as np
import pytest
import uvicorn

from mnemoscope.spec import Retrieval
from mnemoscope.store.trials import Store
from mnemoscope.ui.cli import COMMANDS, main, make_app

pytestmark = pytest.mark.chaos

SEED = 20261116
# Lines of the short form, besides those that are known by name.
SHORT_LINES = 60
MOST_BYTES, MOST_CPU_SECONDS = 2**30, 20.0
# The longest complaint: a line is read, not scrolled through.
MOST_LETTERS = 1500
LEDGER = Path(__file__).parents[2] / "data" / "quick.json"

SIZES = {"--vocab": "8", "--dim": "4", "--length": "2", "--samples": "9"}
KEPT = {"--store": "kept.db"}
# Small requests that would run, had they nothing wrong with them. Words by place come first, under
# names without dashes.
GOOD: dict[str, dict[str, str]] = {
    "run": {**SIZES, "--seeds": "1"},
    "predict": SIZES,
    "critical": {**SIZES, "--range": "2:9", "--seeds": "3"},
    "phase": {"--vocab": "8", "--length": "2", "--x": "dim=4,5", "--y": "samples=8,9", "--seeds": "1"},
    "fit": {"--vocab": "8", "--length": "2", "--axis": "dim=4,5,6", "--range": "2:9", "--seeds": "3"},
    "capacity": {
        "--model": "mnemoscope.studies.conformance:Constant",
        "--task": "mnemoscope.tasks.own:Lookup",
        "--set": "max_steps=32",
        "--along": "vocab",
        "--range": "2:9",
        "--seeds": "2",
    },
    "check": {"OBJECT": "mnemoscope.tasks.own:Lookup"},
    "memory": {"--dim": "4", "--range": "2:9", "--seeds": "2"},
    "facts": {
        "--subjects": "2",
        "--relations": "2",
        "--answers": "2",
        "--dim": "4",
        "--heads": "1",
        "--head-dim": "2",
        "--max-steps": "1",
        "--batch": "1",
        "--seeds": "1",
    },
    "dynamics": {"--steps": "1"},
    "reproduce": {"IDS": "b-fig5"},
    "report": {"--ledger": str(LEDGER), "--out": "page.html"},
    "plan": {"--facts": "10", "--length": "2"},
    "explore": {"--no-browser": "", "--port": "0", **KEPT},
    "embeddings": {"PATH": "own.npy", "--samples": "9", "--seeds": "1"},
    "bound": {**SIZES, "--seeds": "2"},
    "validate": {"PARTS": "accuracy", "--quick": "", "--seeds": "2"},
    "store list": KEPT,
    "store export": {"OUT": "table.csv", **KEPT},
    "store verify": KEPT,
    "store repair": KEPT,
    "store prune": {"--where": "vocab=9", **KEPT},
    "bench": {**SIZES, "--quick": "", "--no-growth": "", "--no-autodiff": ""},
}

# What several commands take alike.
SHARED = {f"--{name.replace('_', '-')}" for name in (*Retrieval.model_fields, "spec")}
# No option that takes a word or a number takes one of these.
NONSENSE = (
    "",
    " ",
    "x",
    "-1",
    "-inf",
    "inf",
    "nan",
    "1e30",
    "9" * 400,
    "1e400",
    "-1e400",
    "0x10",
    "1.5e",
    "½",
    "8 8",
    "=8",
    "9,8;",
    "[]",
    "{}",
    "None",
    "true",
    "$(x)",
    "../../etc/passwd",
    "🦉",
    "ª",
    "\0",
    "8\0",
    "\x1b[31m",
    "8\n9",
    "a\r\nb",
    "\u2028",
    "\x85",
    "\udcff",
    "a" * 100_000,
    "9" * 5000,
)
# Names that are looked up without asking a network, and that no machine has.
NO_HOST = ("", "256.1.1.1", "\0", "a..b", "a" * 300, "🦉" * 80, "\udcff", "192.0.2.7", "[::1", " ")
NO_PATH = (
    "text.txt/below",
    "folder",
    "folder/missing/x.png",
    "x" * 300,
    "x" * 300 + ".png",
    "\0.png",
    "x\0",
    "\udcff/\udcff",
)
# Files that could be written, with an ending that says nothing of what to write.
NO_FORM = ("a\nb", "x.exe", "text.txt", "x.PNG.", ".png")
NO_AXIS = (
    "dim=",
    "=3",
    "dim",
    "dim=5:4:3",
    "dim=1:2",
    "dim=1:2:3:4",
    "dim=0:5:3",
    "dim=-5:5:3",
    "dim=nan",
    "dim=inf",
    "dim=1:inf:4",
    "dim=1:1e400:5",
    "dim=nan:4:3",
    "dim=2:9:1e9",
    "dim=2:9:2.5",
    "dim=2:9:1",
    "dim=2:9:-3",
    "dim=2:9:nan",
    "dim=2:9:inf",
    "dim=4,x",
    "dim=1e30",
    "dim==8",
    "dim=4:",
    "dim=::",
    "activation=1:2:3",
    "activation=swish",
    "vocab=1e300:1e301:3",
    "seeds=1,2",
    "d\0m=3",
    "dim=3\0",
    "dim=1e-300:1e300:10000",
    "DIM=4",
    "dim=4;5",
    "dim=" + "4," * 30_000 + "x",
)
# Ranges LOW:HIGH.
NO_RANGE = ("2", "9:2", "2:2", "0:9", ":", "2:", ":9", "2:9:3", "nan:9", "2:inf", "2:1e30", "-2:9")
NO_TOML = (
    b"vocab = ",
    b"vocab = 'x'",
    b"vocab = nan",
    b"vocab = -3",
    b"vocab = 0",
    b"vocab = [8]",
    b"vocab = {a = 1}",
    b"[vocab]\na = 1",
    b"vocab = true",
    b"vocab = 2024-01-01",
    b"vocab = 8.5",
    b"vocab = 1e30",
    b"vocab = " + b"9" * 400,
    b"vocab = " + b"9" * 5000,
    b"vocab = 8\nvocab = 8",
    b"vocab = 8\nvocabulary = 8",
    b"\xff\xfe",
    b"\0",
    b"vocab = 8\0",
    b"\xef\xbb\xbf\xef\xbb\xbf",
    b"a = " + b"[" * 100_000,
    b"a." * 50_000 + b"b = 1",
    b"'' = 1",
    b'"\\u0000" = 1',
    b'vocab = "\\u001b[31m"',
    b'"\\u001b[31m" = 3',
    b"vocab = " + b'"' + b"8" * 10**6 + b'"',
    b"x" * 3_000_000,
)
NO_LEDGER = (
    b"{",
    b"[]",
    b"3",
    b"null",
    b"\xff",
    b'{"entries": 3}',
    b'{"entries": [3]}',
    b"\0",
    b"[" * 100_000,
    b'{"entries": [{}]}',
    b'{"a": NaN}',
)
NO_STORE = (b"no database " * 400, b"SQLite format 3\0" + b"\xff" * 5000)

ODD_FILES = {
    **{f"toml{at}.toml": text for at, text in enumerate(NO_TOML)},
    **{f"ledger{at}.json": text for at, text in enumerate(NO_LEDGER)},
    **{f"store{at}.db": text for at, text in enumerate(NO_STORE)},
    "text.txt": b"a text",
}

# What does not go together, by command; the option that is named.
TOGETHER: dict[str, tuple[tuple[str, str], ...]] = {
    "run": (
        ("--embedding orthonormal", "--dim"),
        ("--gamma 3", "--gamma"),
        ("--then adamw", "--steps"),
        ("--steps 3", "--steps"),
        ("--lr 0.1", "--lr"),
        ("--attention locked --eta 1", "--eta"),
        ("--attention locked --then gd --steps 2", "--then"),
        ("--vocab 1", "--vocab"),
        ("--embedding file:missing.npy", "--embedding"),
        ("--vocab 2e9", "--vocab"),
        ("--embedding file:text.txt", "--embedding"),
        ("--embedding file:", "--embedding"),
        ("--seed 9223372036854775807 --seeds 2", "--seed"),
        ("--memory 1", "--vocab"),
    ),
    "critical": (("--range 9:2", "--range"), ("--along trigger", "--along")),
    "phase": (
        ("--x dim=4,5 --y dim=8,9", "--y"),
        ("--dim x", "--dim"),
        ("--x dim=2:1e6:10000 --y samples=2:1e9:10000", "--y"),
        ("--x dim=2:200:100 --y samples=2:200:100 --seeds 10000", "--seeds"),
        ("--theory --out missing/x.png", "--out"),
    ),
    "fit": (
        ("--log vocab", "--log"),
        ("--along dim", "--axis"),
        ("--axis vocab=2:1e6:10000 --axis dim=2:1e6:10000 --axis length=2:1e5:10000", "--axis"),
    ),
    "memory": (
        ("--kind mlp", "--width"),
        ("--kind linear --width 3", "--width"),
        ("--rank 9", "--rank"),
        ("--width 4 --rank 2", "--rank"),
        ("--method least-squares --width 4", "--method"),
        ("--order 3", "--order"),
        ("--embedding orthonormal --dim 1", "--embedding"),
    ),
    "facts": (
        ("--answers 3", "--answers"),
        ("--batch 1048576 --max-steps 4194304", "--max-steps"),
        ("--capacity equal --rates 0", "--rates"),
        ("--capacity own --rates nan", "--rates"),
    ),
    "dynamics": (("--answers 3", "--answers"), ("--batch 1048576 --steps 1e7", "--steps")),
    "reproduce": (
        ("--quick --full", "--full"),
        ("--cluster local:1 --at-once 2", "--jobs"),
        ("--jobs 0", "--jobs"),
        ("--at-once 0", "--at-once"),
        ("--jobs 2 --at-once 3", "--at-once"),
        ("b-fig5 a-fig1x", ""),
        ("b-fig5 --out text.txt/x", "--out"),
    ),
    "report": (("--ledger missing.json", "--ledger"), ("--figures missing", "--figures")),
    "plan": (
        ("--facts 1", "--facts"),
        ("--facts 10 --out missing/x.png", "--out"),
        ("--target 1", "--target"),
        ("--store missing.db", "--store"),
    ),
    "explore": (("--store none", "--store"), ("--host 127.0.0.1 --port 65536", "--port")),
    "embeddings": (("--vocab 9", "--vocab"), ("--path own.npy#nothing", ""), ("--path text.txt", "")),
    "bound": (
        ("--collapse x.exe", "--collapse"),
        ("--collapse missing/x.png", "--collapse"),
        ("--bits 0", "--bits"),
        ("--noise 0", "--noise"),
        ("--bits 1 --collapse x.svg", "--bits"),
        ("--noise 1 --collapse x.svg", "--noise"),
    ),
    "store list": (("--store missing.db", "--store"), ("--where nothing=3", "--where")),
    "store prune": (("--where vocab~3", "--where"),),
    "bench": (("--profile --vocab 0", "--vocab"), ("--quick --samples 0", "--samples")),
}


# What was once answered wrongly, by command: an option and its value.
FOUND: tuple[tuple[str, str, str], ...] = (
    ("run", "--lr", "a" * 100_000),
    ("run", "--spec", "/dev/zero"),
    ("critical", "--cluster", "x"),
    ("phase", "--dim", "½"),
    ("phase", "--x", "dim=2:9:inf"),
    ("phase", "--y", "dim=1e-300:1e300:10000"),
    ("phase", "--out", "x" * 300 + ".png"),
    ("phase", "--x", "vocab=1e300:1e301:3"),
    ("facts", "--rates", "x"),
    ("facts", "--tolerance", "x"),
    ("fit", "--axis", "dim=1e30"),
    ("fit", "--dim", "\0"),
    ("report", "--form", "\0"),
    ("report", "--figures", "x" * 300),
    ("report", "--ledger", "/dev/zero"),
    ("report", "--ledger", "ledger8.json"),
    ("reproduce", "--cluster", "x"),
    ("reproduce", "--ledger", "\0"),
    ("reproduce", "--ledger", "x" * 300),
    ("reproduce", "--out", "x" * 300),
    ("reproduce", "--store", "folder"),
    ("explore", "--host", "a..b"),
    ("laws", "--out", "\0.png"),
    ("validate", "--out", "folder"),
    ("bound", "--collapse", "\0.png"),
    ("embeddings", "--path", "missing.npy"),
)


class Line(NamedTuple):
    """Words that cannot be right, and the option whose fault it is; empty where it is none's."""

    command: str
    words: tuple[str, ...]
    names: str


class Told(NamedTuple):
    """What came of a line."""

    status: int
    out: str
    err: str
    changed: tuple[str, ...]
    cpu_seconds: float
    peak_bytes: int


def commands() -> dict[str, cyclopts.ArgumentCollection]:
    """Every command by its words, with its arguments."""
    found = {}
    for name in COMMANDS:
        app = make_app(name)[name]
        below = [word for word in app if not word.startswith("-")]
        for word in below or [""]:
            one = app[word] if word else app
            found[f"{name} {word}".strip()] = one.assemble_argument_collection()
    return found


def good(command: str, *without: str) -> list[str]:
    """The request that would run, less some options; None-like words stand for flags."""
    told: list[str] = []
    for name, value in GOOD.get(command, {}).items():
        if name in without:
            continue
        told += ([name] if name.startswith("--") else []) + ([value] if value else [])
    return told


def bad_values(command: str, argument: cyclopts.Argument) -> Iterator[str]:
    """What an option cannot be."""
    name = argument.name
    if name == "--host":
        yield from NO_HOST
    elif name in ("--x", "--y", "--axis"):
        yield from (*NONSENSE, *NO_AXIS)
    elif name == "--range":
        yield from (*NONSENSE, *NO_RANGE)
    elif name == "--spec":
        yield from ("missing.toml", "folder", "x" * 300, "\0", "/dev/zero", "own.npy")
        yield from (f"toml{at}.toml" for at in range(len(NO_TOML)))
    elif name == "--ledger":
        yield from ("folder", "x" * 300, "\0", "text.txt/below", "text.txt", "/dev/zero")
        yield from (f"ledger{at}.json" for at in range(len(NO_LEDGER)))
    elif name == "--store":
        yield from ("folder", "\0", "text.txt/below", "text.txt", "/proc/x.db", "")
        yield from (f"store{at}.db" for at in range(len(NO_STORE)))
    elif Path in (argument.hint, *get_args(argument.hint)):
        # An empty word is the folder one is in, which some of these take.
        folders = name == "--figures" or command == "reproduce"
        yield from (one for one in NO_PATH if one != "folder" or not folders)
        if command != "validate":  # whose file is a text, whatever it is called
            yield from NO_FORM
    else:
        yield from NONSENSE


def all_lines() -> list[Line]:
    """Every line there is, the same ones every time."""
    dice = random.Random(SEED)
    found: list[Line] = []
    for command, arguments in commands().items():
        first = command.split()

        def add(words: list[str], names: str, command: str = command, first: Any = first) -> None:
            found.append(Line(command, (*first, *words), names))

        for argument in arguments:
            name = argument.name
            if name == "*" or not argument.parse:
                continue
            if argument.index is not None:  # by its place
                place = name.strip("-").upper()
                for value in (*NONSENSE, *NO_PATH, *NO_FORM):
                    # The file that `store export` writes may have any name but a wrong ending.
                    if value and not value.startswith("-"):
                        add([value, *good(command, place)], "")
                continue
            rest = good(command, name)
            if argument.hint is bool:
                for value in ("maybe", "", "2", "\x1b"):
                    add([*rest, f"{name}={value}"], name)
                continue
            values = list(bad_values(command, argument))
            # A setting's options are read in one place: all that is wrong there, `run` is told.
            if name in SHARED and command != "run":
                values = dice.sample(values, 3)
            for value in values:
                # What the setting's file says is what counts: options beside it would win.
                beside = good(command, name, "--vocab") if value.startswith("toml") else rest
                joined = value.startswith("-") or dice.random() < 0.5
                words = [f"{name}={value}"] if joined else [name, value]
                add([*beside, *words], "" if value.startswith("toml") else name)
            add([*rest, name], name)
            if list not in (argument.hint, getattr(argument.hint, "__origin__", None)) and not any(
                getattr(one, "__origin__", None) is list for one in get_args(argument.hint)
            ):
                value = GOOD.get(command, {}).get(name, "8")
                add([*rest, name, value, name, value], name)
        for word in ("--vocabb", "--VOCAB", "--no-such-thing", "--🦉", "--j\x1b[31mson", "--jso"):
            add([*good(command), word], word if word.isascii() and word.isprintable() else "")
            add([*good(command), f"{word}=3"], "")
        for word in ("-z", "-1", "---", "stray\x1b", "stray\nline"):
            add([*good(command), word], "")
    for words in (["nothing"], ["runn"], ["\x1b"], ["store", "nothing"], ["🦉"], ["--nothing"], ["a" * 100_000]):
        found.append(Line("", tuple(words), ""))
    return found + known_lines()


def known_lines() -> list[Line]:
    """What does not go together, and what was once answered wrongly."""
    found: list[Line] = []
    for command, several in TOGETHER.items():
        for words, names in several:
            told = words.split()
            places = [one for one in GOOD[command] if not one.startswith("--")]
            by_position = [] if told[0].startswith("--") and told[0] != "--path" else places
            line = (*command.split(), *good(command, *told, *by_position), *told)
            found.append(Line(command, line, names))
    for command, option, value in FOUND:
        rest = good(command, option, "PATH" if option == "--path" else "")
        names = "" if option == "--path" else option
        found.append(Line(command, (command, *rest, f"{option}={value}"), names))
    return found


def chosen(many: int) -> list[Line]:
    """So many of them, about as many of each command."""
    dice = random.Random(SEED)
    by_command: dict[str, list[Line]] = {}
    for line in all_lines():
        by_command.setdefault(line.command, []).append(line)
    each = -(-many // len(by_command))
    return [line for lines in by_command.values() for line in dice.sample(lines, min(each, len(lines)))]


def furnish(folder: Path) -> None:
    """What lines speak of: a store, a matrix, a folder, odd files."""
    (folder / "folder").mkdir(parents=True)
    Store(folder / "kept.db").close()
    np.save(folder / "own.npy", np.random.default_rng(0).normal(size=(8, 4)))
    for name, text in ODD_FILES.items():
        (folder / name).write_bytes(text)


def look(folder: Path) -> dict[str, tuple[int, int]]:
    """What lies there."""
    return {
        str(path.relative_to(folder)): (one.st_size, one.st_mtime_ns if path.is_file() else 0)
        for path in folder.rglob("*")
        if "-wal" not in path.name and "-shm" not in path.name
        for one in (path.stat(),)
    }


def say(line: Line, folder: Path) -> Told:
    """Say one line to the program, in this process and in that folder."""
    before = look(folder)
    out, err = io.StringIO(), io.StringIO()
    began = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(line.words))
        except BaseException as error:  # a traceback, had it been the program itself
            status = -1
            err.write(f"{type(error).__name__}: {error}")
    cpu = time.process_time() - began
    after = look(folder)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    shutil.rmtree(folder / "data", ignore_errors=True)  # what one line left, the next one finds not
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Told(status, out.getvalue(), err.getvalue(), tuple(sorted(changed)), cpu, peak)


def fault(line: Line, told: Told) -> str:
    """What is wrong with the answer, or nothing."""
    lines = told.err.splitlines()
    if told.status != 2:
        return f"status {told.status}: {told.err[:200]!r}"
    if len(lines) != 1 or not told.err.endswith("\n") or not lines[0].isprintable():
        return f"{len(lines)} lines: {told.err[:200]!r}"
    if len(lines[0]) > MOST_LETTERS:
        return f"{len(lines[0])} letters: {told.err[:200]!r}"
    if "Traceback" in told.err or not lines[0].startswith("mnemoscope: "):
        return f"no complaint of ours: {told.err[:200]!r}"
    if not lines[0].startswith(f"mnemoscope: {line.names}"):
        return f"expected {line.names} to be named: {told.err[:200]!r}"
    if told.out:
        return f"on standard output: {told.out[:200]!r}"
    if told.changed:
        return f"written: {told.changed}"
    return ""


def too_dear(told: Told) -> str:
    """What a refusal cost beyond measure, or nothing."""
    if told.cpu_seconds > MOST_CPU_SECONDS:
        return f"{told.cpu_seconds:.0f} s of CPU"
    return f"{told.peak_bytes / 2**20:.0f} MiB" if told.peak_bytes > MOST_BYTES else ""


def go_to(folder: Path) -> None:
    """Be where the lines are said, with a data folder that is watched too."""
    os.chdir(folder)
    os.environ["XDG_DATA_HOME"] = str(folder / "data")
    os.environ["XDG_CACHE_HOME"] = str(folder.parent / "cache")


def say_all(lines: list[Line], folder: Path) -> list[Told]:
    """Say lines of one command in a process of their own."""
    # What would take all memory is refused it, and told as a fault.
    resource.setrlimit(resource.RLIMIT_AS, (8 * MOST_BYTES, 8 * MOST_BYTES))
    furnish(folder)
    go_to(folder)
    uvicorn.Server.run = lambda *_, **__: None  # pyright: ignore[reportAttributeAccessIssue]
    return [say(line, folder) for line in lines]


def shortened(words: tuple[str, ...]) -> str:
    return " ".join(word if len(word) < 60 else f"{word[:30]}…({len(word)})" for word in words)


def in_this_process(lines: list[Line], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Told]:
    """Say lines of all commands here, one after the other."""
    furnish(folder)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")  # put back at the end
    monkeypatch.chdir(folder)
    go_to(folder)
    # A server that began would not end.
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    return [say(line, folder) for line in lines]


def in_fresh_processes(lines: list[Line], folder: Path) -> list[Told]:
    """Say each command's lines in a process of its own, and tell what refusing them costs."""
    by_command: dict[str, list[Line]] = {}
    for line in lines:
        by_command.setdefault(line.command, []).append(line)
    context = multiprocessing.get_context("spawn")
    found: dict[Line, Told] = {}
    with ProcessPoolExecutor(2, context, max_tasks_per_child=1) as pool:
        tasks = {
            command: pool.submit(say_all, some, folder / f"at-{at}" / "here")
            for at, (command, some) in enumerate(by_command.items())
        }
        for command, task in tasks.items():
            told = task.result()
            found |= zip(by_command[command], told, strict=True)
            cost, peak = max(one.cpu_seconds for one in told), max(one.peak_bytes for one in told)
            print(
                f"{command or '(none)':14} {len(told):5} lines, at most {cost:.2f} s of CPU, {peak / 2**20:.0f} MiB",
                flush=True,
            )
    print(f"{'in all':14} {len(lines):5} lines", flush=True)
    return [found[line] for line in lines]


def test_wrong_options(full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lines = list(dict.fromkeys(all_lines() if full else [*chosen(SHORT_LINES), *known_lines()]))
    assert {line.command for line in lines} >= set(commands())
    assert len(lines) >= (1000 if full else 100)
    run_lines = in_fresh_processes if full else partial(in_this_process, monkeypatch=monkeypatch)
    told = run_lines(lines, tmp_path / "here")
    faults = [
        f"{shortened(line.words)!r}: {wrong}"
        for line, one in zip(lines, told, strict=True)
        if (wrong := fault(line, one) or (too_dear(one) if full else ""))
    ]
    assert not faults, "\n".join(faults)
