"""Shapes and types in signatures are checked while testing, and only then."""

import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

if TYPE_CHECKING:
    from explorer_server import Running

# Commands keep what they compile in the user's cache folder, and trials in the data folder: not in
# those of whoever runs tests.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="mnemoscope-tests-")
os.environ["XDG_DATA_HOME"] = os.environ["XDG_CACHE_HOME"]

# The first example of a property may have to compile: how long it takes says nothing.
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")

# Before anything imports the package, so that every annotated function is checked.
install_import_hook("mnemoscope", "type_checks.check")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Running"]:
    """An explorer that runs, on a store of its own."""
    from explorer_server import running

    with running(tmp_path_factory.mktemp("explorer")) as made:
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first: begun last, it would keep one worker busy while the other waits."""
    items.sort(key=lambda item: item.path.name != "test_three_step.py")
