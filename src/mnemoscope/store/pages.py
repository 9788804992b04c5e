"""Read rows directly from the pages of an SQLite file that SQLite itself refuses.

SQLite refuses a whole table for one damaged page. This module reads each page on its own, cell by cell, follows
overflow pages, and skips what does not decode. If a page's list of cells is damaged, it tries every offset as the
start of a cell. Callers must compare checksums before they use a row.

The format is that of https://www.sqlite.org/fileformat2.html, sections 1.6 (b-tree pages) and 2.1 (records). Pages in
the write-ahead log (section 4) take precedence over those of the file.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, no_type_check

# Pages that hold rows: leaves of tables with row numbers, and all pages of tables WITHOUT ROWID.
TABLE_LEAF, KEY_LEAF, KEY_NODE = 13, 10, 2
# The most pages to search offset by offset, which takes some seconds.
MOST_SEARCHED = 200
PAGE_SIZES = tuple(2**k for k in range(9, 17))
USUAL_SIZE = 4096
# Raised when bytes that are no cell are decoded.
BROKEN = (struct.error, IndexError, ValueError)
# Serial types of integers, and their sizes in bytes.
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def all_rows(path: Path) -> Iterator[tuple[int | None, list[Any]]]:
    """(row number, values) of every cell that can be decoded; text comes as marked bytes.

    The header states the page size, but may be damaged: the usual size is tried, too.
    """
    data = path.read_bytes()
    stated = struct.unpack(">H", data[16:18])[0] if len(data) >= 18 else 0
    log = path.with_name(path.name + "-wal")
    logged = log.read_bytes() if log.exists() else b""
    for size in {65536 if stated == 1 else stated, USUAL_SIZE} & set(PAGE_SIZES):
        yield from Pages(data, logged, size).rows()


# A search reads cells at every byte of a damaged page: `no_type_check` keeps the checks of annotations that
# tests turn on out of its innermost functions.
class Pages:
    """The pages of a file, and of its log where there is one."""

    def __init__(self, data: bytes, log: bytes, size: int) -> None:
        self.size = size
        self.pages = {number + 1: data[at : at + size] for number, at in enumerate(range(0, len(data), size))}
        self._read_log(log)
        self.overflow: set[int] = set()  # pages that belong to a cell that was decoded

    def _free(self) -> set[int]:
        """Free pages, which still hold old rows; their list starts in the header."""
        free: set[int] = set()
        with suppress(*BROKEN):
            (trunk,) = struct.unpack(">I", self.pages.get(1, b"")[32:36])
            while trunk in self.pages and trunk not in free:
                page = self.pages[trunk]
                following, count = struct.unpack(">II", page[:8])
                free |= {trunk, *struct.unpack(f">{count}I", page[8 : 8 + 4 * count])}
                trunk = following
        return free

    def _read_log(self, data: bytes) -> None:
        """Take pages of committed transactions; a frame is valid if its salt is the header's."""
        frame, pending = 24 + self.size, {}
        for at in range(32, len(data) - frame + 1, frame):
            number, committed = struct.unpack(">II", data[at : at + 8])
            if data[at + 8 : at + 16] != data[16:24]:
                break
            pending[number] = data[at + 24 : at + frame]
            if committed:
                self.pages.update(pending)
                pending = {}

    def rows(self) -> Iterator[tuple[int | None, list[Any]]]:
        """The cells of every page: those that it lists or, if the list is damaged, those that a search finds."""
        free, suspects = self._free(), []
        for number, page in self.pages.items():
            listed = self._listed(page, 100 if number == 1 else 0)
            if listed is None:
                suspects.append(number)
                continue
            cells, more = listed
            yield from cells
            if more:
                suspects.append(number)
        # First pages in use whose type says that they hold rows, in case there are too many to search.
        suspects = [number for number in suspects if number not in self.overflow]
        suspects.sort(key=lambda number: (number in free, self.pages[number][:1] not in (b"\x0d", b"\x0a")))
        for number in suspects[:MOST_SEARCHED]:
            page = self.pages[number]
            for kind in (TABLE_LEAF, KEY_LEAF):  # a node's cell is a leaf's behind a number
                for at in range(108 if number == 1 else 8, len(page)):
                    with suppress(*BROKEN):
                        yield self._cell(page, kind, at)

    def _listed(self, page: bytes, begin: int) -> tuple[list[tuple[int | None, list[Any]]], bool] | None:
        """The cells that a page lists, and whether the list may have been longer; None if one does not decode."""
        if len(page) < begin + 12 or page[begin] not in (TABLE_LEAF, KEY_LEAF, KEY_NODE):
            return None
        kind, count = page[begin], struct.unpack(">H", page[begin + 3 : begin + 5])[0]
        first = begin + (12 if kind == KEY_NODE else 8)
        try:
            places = struct.unpack(f">{count}H", page[first : first + 2 * count])
            skip = 0
            if kind == KEY_NODE:  # each cell starts with the number of a child page
                skip = 4
                below = [struct.unpack(">I", page[at : at + 4])[0] for at in places]
                if not set(below) <= self.pages.keys():
                    return None
            cells = [self._cell(page, kind, at + skip) for at in places]
        except BROKEN:
            return None
        end = first + 2 * count
        return cells, any(page[end : end + 2])

    @no_type_check
    def _cell(self, page: bytes, kind: int, at: int) -> tuple[int | None, list[Any]]:
        length, at = _varint(page, at)
        row = None
        if kind == TABLE_LEAF:
            row, at = _varint(page, at)
        return row, _record(self._payload(page, kind, length, at))

    @no_type_check
    def _payload(self, page: bytes, kind: int, length: int, at: int) -> bytes:
        """A record's bytes, from the page and its overflow pages."""
        usable = self.size
        most = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return page[at : at + length]
        least = (usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (usable - 4)
        here = here if here <= most else least
        if length > self.size * len(self.pages):
            raise ValueError
        parts, left, chain = [page[at : at + here]], length - here, set[int]()
        (following,) = struct.unpack(">I", page[at + here : at + here + 4])
        while left > 0:
            if following not in self.pages:
                raise ValueError
            chain.add(following)
            more = self.pages[following]
            parts.append(more[4 : 4 + min(left, usable - 4)])
            left -= usable - 4
            (following,) = struct.unpack(">I", more[:4])
        self.overflow |= chain
        return b"".join(parts)


@no_type_check
def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint of one to nine bytes, and the offset after it."""
    value = 0
    for k in range(9):
        byte = data[at + k]
        if k == 8:
            return _signed((value << 8) | byte), at + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at + k + 1
    raise ValueError


@no_type_check
def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


@no_type_check
def _record(payload: bytes) -> list[Any]:
    """The values of a record; its header lists their serial types."""
    end, at = _varint(payload, 0)
    if end > len(payload):
        raise ValueError
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        value, size = _value(payload, at, kind)
        values.append(value)
        at += size
    if at != len(payload):
        raise ValueError
    return values


@no_type_check
def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == 0:
        return None, 0
    if kind in (8, 9):
        return kind - 8, 0
    size = _INTEGERS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else -1)
    part = payload[at : at + size]
    if size < 0 or len(part) < size:
        raise ValueError
    if kind in _INTEGERS:
        return int.from_bytes(part, "big", signed=True), size
    if kind == 7:
        return struct.unpack(">d", part)[0], size
    # Text is marked as `rows.as_checked` marks it; blobs stay as they are.
    return (b"t" + part if kind % 2 else part), size
