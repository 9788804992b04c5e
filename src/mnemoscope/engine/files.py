"""The user's folders, and files that are written completely or not at all."""

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
    """The user's data folder: in XDG_DATA_HOME, or the system's default."""
    return _home("XDG_DATA_HOME", user_data_path)


def cache_home() -> Path:
    """The user's cache folder: in XDG_CACHE_HOME, or the system's default."""
    return _home("XDG_CACHE_HOME", user_cache_path)


def _home(variable: str, default: Callable[..., Path]) -> Path:
    """Honour the variable on every system; platformdirs does so only on some."""
    base = os.environ.get(variable)
    return Path(base) / "mnemoscope" if base else default("mnemoscope", appauthor=False)


def check_place(path: Path, option: str) -> None:
    """Refuse what cannot be a file: an impossible name, a folder, a pipe that would block.

    A path where nothing exists passes; the caller decides whether that is right.
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
    """Refuse anything but an existing folder."""
    exists = False
    with suppress(OSError, ValueError):  # a name that is too long, or that no file can have
        exists = path.is_dir()
    if not exists:
        raise SpecError(option, f"expected a folder that is there, got {str(path)!r}")


def check_target(path: Path, option: str = "out", *, make_folders: bool = False) -> None:
    """Refuse a file that cannot be written, before any work goes into it.

    With `make_folders` its folders may be missing: the nearest existing one must be writable.
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
    """The temporary file that is written before it replaces `path`.

    The suffix stays, since writers depend on it. A hash replaces the name, which might become too long.
    """
    name = hashlib.sha256(path.name.encode(errors="surrogateescape")).hexdigest()[:8]
    own = f"{os.getpid()}-{threading.get_ident()}"
    return path.with_name(f".{name}.{own}{path.suffix}")


def _put_new(part: Path, path: Path) -> None:
    """Move a file to a path, unless another file is already there."""
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
    """Yield a temporary file beside `path`, which replaces it at the end, or is removed on failure.

    With `new`, a file that appears at `path` meanwhile stays. A full disk or a read-only folder
    raises one clear line that names the option.
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
