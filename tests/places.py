"""Where tests find files of the project."""

from pathlib import Path

TESTS = Path(__file__).parent
PROJECT = TESTS.parent
DATA = PROJECT / "data"
FILES = TESTS / "files"
