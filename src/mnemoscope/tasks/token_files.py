"""The user's own token probabilities: from a file, an array or a function of V, checked, and kept by content.

A setting names them `file:` and sixteen digits, so that a record keeps its meaning when the file moves or changes.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mnemoscope.engine.files import data_home, whole_file
from mnemoscope.spec.base import SpecError, read_option
from mnemoscope.spec.objects import import_object
from mnemoscope.spec.validators import FROM_FILE, is_place, one_line, whole

# How far the sum may be from 1.
TOLERANCE = 1e-6
MOST_BYTES = 2**30


def take_probabilities(values: dict[str, Any]) -> dict[str, Any]:
    """Replace probabilities given as `tokens` by their name, and take V from their number.

    They come as `file:PATH`, as an array, or as a function of V that returns them.
    """
    source = values.get("tokens")
    if callable(source) or is_place(source):
        return {**values, "tokens": keep(_evaluated(source, values.get("vocab")))}
    from_path = isinstance(source, str) and source.startswith("file:") and not FROM_FILE.fullmatch(source)
    if source is None or (isinstance(source, str) and not from_path):
        return values
    p = _checked(_read(source.removeprefix("file:")) if isinstance(source, str) else source)
    return {"vocab": len(p), **values, "tokens": keep(p)}


def take_frequencies(source: Any, count: Any, option: str = "frequencies") -> str:
    """The name of the probabilities of facts or items, given as `take_probabilities` takes those of tokens.

    `count` is how many there are, for a function of that number.
    """
    try:
        return take_probabilities({"tokens": source, "vocab": count})["tokens"]
    except SpecError as error:
        raise SpecError(option, error.message) from None


def keep(p: np.ndarray) -> str:
    """Store probabilities for settings to use, and return their name."""
    name = f"file:{hashlib.sha256(p.tobytes()).hexdigest()[:16]}"
    with suppress(SpecError):
        load(name)
        return name  # stored already, and intact
    path = _path(name)
    with suppress(OSError):  # `whole_file` reports a folder that cannot be made
        path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, "tokens") as part, Path(part).open("wb") as file:
        np.save(file, p)
    return name


def load(name: str) -> np.ndarray:
    """The stored probabilities of that name."""
    try:
        with _path(name).open("rb") as file:
            return _checked(np.load(file, allow_pickle=False))
    except Exception:  # missing, or damaged in any way
        raise SpecError(
            "tokens", f"expected probabilities that are kept here, got {name!r}: give file:PATH again"
        ) from None


def _evaluated(source: Any, vocab: Any) -> np.ndarray:
    """The probabilities of V tokens by a function, or by the one at "module:object"."""
    place = source if isinstance(source, str) else getattr(source, "__name__", type(source).__name__)
    count = read_option("vocab", whole(2, 2**31 - 1), vocab)
    law = import_object("tokens", source) if isinstance(source, str) else source
    try:
        p = law(count)
    except Exception as error:  # a user's function may raise anything
        raise SpecError("tokens", f"expected {count:,} probabilities from {place}, got {one_line(error)}") from None
    p = _checked(p, f" from {place}")
    if len(p) != count:
        raise SpecError("tokens", f"expected {count:,} probabilities from {place}, got {len(p):,}")
    return p


def _read(path: str) -> np.ndarray:
    """Numbers from a .npy file, or from text with one number a line."""
    shown = repr(path)
    try:
        size = Path(path).stat().st_size
        if not Path(path).is_file() or size > MOST_BYTES:
            raise OSError(0, f"not a file of at most {MOST_BYTES:,} bytes")
        if path.endswith(".npy"):
            return np.load(path, allow_pickle=False)
        return np.array([float(word) for word in Path(path).read_text().replace(",", " ").split()])
    except OSError as error:
        raise SpecError("tokens", f"expected a readable file, got {shown} ({error.strerror})") from None
    except (ValueError, EOFError, MemoryError) as error:
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise SpecError("tokens", f"expected numbers, as .npy or as text, got {shown}: {reason}") from None


def _checked(source: Any, origin: str = "") -> np.ndarray:
    """Probabilities as float64 that sum to 1, or a refusal."""
    try:
        p = np.asarray(source)
        p = p.astype(np.float64) if p.dtype.kind in "fiu" else None
    except Exception:  # an object's own conversion may raise anything
        p = None
    if p is None or p.ndim != 1 or len(p) < 2:
        what = f"an array of shape {p.shape}" if p is not None else f"an object of type {type(source).__name__}"
        raise SpecError("tokens", f"expected a vector of two or more probabilities{origin}, got {what}")
    if not np.isfinite(p).all() or (p < 0).any():
        bad = int(np.argmax(~np.isfinite(p) | (p < 0)))
        raise SpecError("tokens", f"expected probabilities of at least 0{origin}, got {p[bad]:g} for token {bad}")
    total = float(p.sum())
    if abs(total - 1) > TOLERANCE:
        raise SpecError("tokens", f"expected probabilities that sum to 1 within {TOLERANCE:g}{origin}, got {total:.9g}")
    return p / total


def _path(name: str) -> Path:
    return data_home() / "tokens" / f"{name.removeprefix('file:')}.npy"
