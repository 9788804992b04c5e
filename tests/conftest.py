"""Shapes and types in signatures are checked while testing, and only then."""

import os
import tempfile

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# Commands keep what they compile in the user's cache folder, and trials in the data folder: not in
# those of whoever runs tests.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="mnemoscope-tests-")
os.environ["XDG_DATA_HOME"] = os.environ["XDG_CACHE_HOME"]

# The first example of a property may have to compile: how long it takes says nothing.
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")

# Before anything imports the package, so that every annotated function is checked.
install_import_hook("mnemoscope", "type_checks.check")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first: begun last, it would keep one worker busy while the other waits."""
    items.sort(key=lambda item: item.path.name != "test_three_step.py")
