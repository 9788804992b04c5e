"""What several tests of chaos hold their results against."""

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from chaos.test_kills import Place, Quiet


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> "Quiet":
    """A run of a command that nothing disturbs, once for all tests, and what it told."""
    from chaos.test_kills import Place

    @cache
    def run(name: str) -> "tuple[Place, Any]":
        place = Place(tmp_path_factory.mktemp("undisturbed") / name, name)
        return place, place.finish()

    return run
