"""Optional dependencies, and the message when one is missing."""

import importlib.util

from mnemoscope.spec import SpecError

# For every extra in pyproject.toml: what it provides, and the modules it installs.
EXTRAS = {
    "cluster": ("cluster workers", ("distributed", "dask_jobqueue")),
    "figures": ("figures", ("matplotlib",)),
    "pages": ("pages to click in", ("plotly", "jinja2")),
    "tables": ("tables", ("pandas", "pyarrow", "xarray")),
    "web": ("the explorer's parts", ("starlette", "uvicorn", "jinja2", "plotly", "matplotlib")),
}


def has(extra: str) -> bool:
    """Whether all modules of an extra are installed."""
    return all(_installed(name) for name in EXTRAS[extra][1])


def need(extra: str, *modules: str) -> None:
    """Raise an error that says how to install an extra, unless its modules (or those named) are there."""
    words, all_modules = EXTRAS[extra]
    if all(_installed(name) for name in modules or all_modules):
        return
    raise SpecError(
        "",
        f'{words} are needed for this: pip install "mnemoscope[{extra}]", or in a copy of the '
        f'folder pip install -e ".[{extra}]"; with uv, uv run --extra {extra} ...',
    )


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # blocked from import, or half imported
        return False
