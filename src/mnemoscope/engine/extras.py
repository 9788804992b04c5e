"""Parts that are installed only where they are asked for, and what to say where one is missing."""

import importlib.util

from mnemoscope.spec import SpecError

# For every extra in pyproject.toml: what it brings, and the modules that it is for.
EXTRAS = {
    "cluster": ("cluster workers", ("distributed", "dask_jobqueue")),
    "figures": ("figures", ("matplotlib",)),
    "pages": ("pages to click in", ("plotly", "jinja2")),
    "tables": ("tables", ("pandas", "pyarrow", "xarray")),
    "web": ("the explorer's parts", ("starlette", "uvicorn", "jinja2", "plotly", "matplotlib")),
}


def need(extra: str, *modules: str) -> None:
    """Refuse, with the words that install it, what needs an extra that is not there.

    All of its modules are looked for, or those that are named.
    """
    words, usual = EXTRAS[extra]
    if all(_there(name) for name in modules or usual):
        return
    raise SpecError(
        "",
        f'{words} are needed for this: pip install "mnemoscope[{extra}]" (in a copy of the '
        f"folder: uv run --extra {extra} ...)",
    )


def _there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # kept from being imported, or half imported
        return False
