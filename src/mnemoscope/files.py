"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mnemoscope.spec import SpecError


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
