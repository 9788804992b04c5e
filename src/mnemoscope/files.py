"""Where the user's files are, and files that are written whole or not at all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mnemoscope.spec import SpecError


def data_home() -> Path:
    """The user's data directory: XDG_DATA_HOME, or what the system has in its place."""
    if os.environ.get("XDG_DATA_HOME"):
        base = Path(os.environ["XDG_DATA_HOME"])
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", str(Path.home())))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path.home() / ".local" / "share"
    return base / "mnemoscope"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place at the end; gone if that fails.

    A full disk or a closed folder becomes one clear line.
    """
    # The ending stays, since writers go by it.
    part = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SpecError(
            "out", f"expected a place to write to, got {str(path)!r} ({reason})"
        ) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
