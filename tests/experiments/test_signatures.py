"""Every public function shows all its options, with their defaults."""

import inspect

import pytest

import mnemoscope as mn
from mnemoscope.experiments.estimate.search import search_crossing

FUNCTIONS = [name for name in mn.__all__ if inspect.isfunction(getattr(mn, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_option_is_hidden(name: str):
    parts = inspect.signature(getattr(mn, name)).parameters.values()
    assert not [part.name for part in parts if part.kind is part.VAR_KEYWORD]


def test_options_that_are_passed_on_keep_their_defaults():
    critical = inspect.signature(mn.critical).parameters
    assert critical["tolerance"].default == inspect.signature(search_crossing).parameters["tolerance"].default
    assert "ranges" not in critical  # which it gives itself
    assert {"store", "workers", "progress"} <= {*critical}
    assert inspect.signature(mn.capacity).parameters["seeds"].default == 4


def test_progress_is_given_shown_or_left_out():
    from mnemoscope.experiments.tools import open_tools, shown_progress, watch_steps
    from mnemoscope.ui.cli.progress import Watch

    heard = []
    with watch_steps("steps", 3, heard.append) as report:
        report(1)
    assert heard == [1]
    with shown_progress(False) as progress:
        assert progress is None
    with shown_progress(None) as progress:  # nobody looks on
        assert progress is None
    with shown_progress(True) as progress:
        assert isinstance(progress, Watch)
    with mn.Store("none") as store, open_tools(store=store, progress=False) as tools:
        assert tools.progress is None
