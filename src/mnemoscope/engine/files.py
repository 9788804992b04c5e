"""Where the user's files are, and files that are written whole or not at all."""

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from platformdirs import user_cache_path, user_data_path

from mnemoscope.spec import SpecError


def data_home() -> Path:
    """The user's data folder: in XDG_DATA_HOME, or where the system has such."""
    return _home("XDG_DATA_HOME", user_data_path)


def cache_home() -> Path:
    """The user's folder for what can be made again: in XDG_CACHE_HOME, or where the system has such."""
    return _home("XDG_CACHE_HOME", user_cache_path)


def _home(variable: str, of_system: Callable[..., Path]) -> Path:
    """The variable counts on every system: platformdirs honours it on some alone."""
    base = os.environ.get(variable)
    return Path(base) / "mnemoscope" if base else of_system("mnemoscope", appauthor=False)


def check_place(path: Path, option: str) -> None:
    """Refuse what can be no file: an impossible name, a folder, a pipe that would never answer.

    That there is nothing yet is for the caller to judge.
    """
    shown = repr(str(path))
    if "\0" in str(path):
        raise SpecError(option, f"expected a file, got {shown}, which no file can be called")
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise SpecError(option, f"expected a file, got {shown} ({error.strerror})") from None
    if stat.S_ISDIR(mode):
        raise SpecError(option, f"expected a file, got the folder {shown}")
    if not stat.S_ISREG(mode):
        raise SpecError(option, f"expected a file, got {shown}, which is a pipe or a device")


def check_folder(path: Path, option: str) -> None:
    """Refuse what is not a folder that is there."""
    there = False
    with suppress(OSError, ValueError):  # a name that is too long, or that no file can have
        there = path.is_dir()
    if not there:
        raise SpecError(option, f"expected a folder that is there, got {str(path)!r}")


def check_target(path: Path, option: str = "out", *, make_folders: bool = False) -> None:
    """Refuse a file that could not be written, before any work goes into it.

    With `make_folders` its folders may be missing: the nearest one that exists has to take them.
    """
    check_place(path, option)
    folder = path.parent
    while make_folders and not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise SpecError(option, f"expected a file in a folder that is there, got {str(path)!r}")
    part = _part(folder / path.name)
    try:
        part.touch()
        part.unlink()
    except OSError as error:
        raise _no_place(path, option, error) from None


def _part(path: Path) -> Path:
    """Where a file is made before it takes its place.

    The ending stays, since writers go by it; of the name only a hash, since more might be too long.
    """
    name = hashlib.sha256(path.name.encode(errors="surrogateescape")).hexdigest()[:8]
    own = f"{os.getpid()}-{threading.get_ident()}"
    return path.with_name(f".{name}.{own}{path.suffix}")


def _put_new(part: Path, path: Path) -> None:
    """Put a file in a place where there is none; one that is there by then stays."""
    try:
        path.hardlink_to(part)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        if not path.exists():
            part.rename(path)


def _no_place(path: Path, option: str, error: OSError) -> SpecError:
    reason = error.strerror or type(error).__name__
    return SpecError(option, f"expected a place to write to, got {str(path)!r} ({reason})")


@contextmanager
def whole_file(path: Path, option: str = "out", *, new: bool = False) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place at the end; gone if that fails.

    With `new`, a file that somebody else has put there meanwhile stays. A full disk or a closed
    folder becomes one clear line about the option that asked for it.
    """
    check_place(path, option)
    part = _part(path)
    try:
        yield part
        if new:
            _put_new(part, path)
        else:
            part.replace(path)
    except OSError as error:
        raise _no_place(path, option, error) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
