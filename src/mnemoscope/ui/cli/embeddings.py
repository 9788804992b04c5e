"""`mnemoscope embeddings`: how good a user's own embedding matrix is for recall."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from mnemoscope.experiments.compare_embeddings import Variant, compare_ways, prepare_ways
from mnemoscope.experiments.forecast import jobs_ahead
from mnemoscope.spec import SpecError
from mnemoscope.ui.cli.options import DeviceName, Json, StoreFile, Yes, count
from mnemoscope.ui.cli.output import print_json
from mnemoscope.ui.cli.sweeping import check_store, open_tools
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.spectrum import draw_spectra


def embeddings(
    path: Annotated[str, Parameter(help="a .npy, .npz or .safetensors file; PATH#NAME for one matrix of several")],
    *,
    vocab: Annotated[int | None, count(2, 2**22, "V: rows that a seed takes at random [default: up to 512]")] = None,
    dim: Annotated[
        int | None,
        count(
            1,
            2**22,
            "d: numbers in an embedding; where the matrix has more columns than rows it says on which side tokens "
            "are: its columns, or its rows, in which case it is transposed",
        ),
    ] = None,
    length: Annotated[int, count(1, 2**20, "L: tokens in a sequence")] = 16,
    samples: Annotated[
        int | None, count(1, 2**32 - 1, "N [default: where random embeddings are predicted to name 0.8]")
    ] = None,
    seeds: Annotated[int, count(1, 10_000, "how many seeds")] = 4,
    seed: Annotated[int, count(0, 2**31 - 1, "the first seed")] = 0,
    out: Annotated[Path | None, Parameter(help="draw the spectra into this .png, .svg or .pdf file")] = None,
    device: DeviceName = "auto",
    store: StoreFile = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Look at an embedding matrix of your own, and at the recall that it allows.

    Overlaps, mean and spectrum, beside those of random embeddings of the same shape; then the same
    trials with the matrix as it is, centred, whitened, and with random embeddings. Its name, which
    `--embedding` takes in other commands, is told too. Example:

    `mnemoscope embeddings model.safetensors#embeddings.word_embeddings.weight`
    """
    if out is not None:
        check_form(out)
    numbers = range(seed, seed + seeds)
    check_store(store)
    with _naming_the_file():
        made, random = prepare_ways(path, dim=dim, vocab=vocab, length=length, samples=samples)
    ahead = jobs_ahead([(random, number) for number in numbers for _ in (*made, "random")])
    with open_tools(None, device, store, ahead, agreed=yes) as tools:
        ways = compare_ways(made, random, seeds=numbers, tools=tools)
    if out is not None:
        draw_spectra(ways, out)
    if json:
        names = ("vocab", "dim", "length", "samples")
        print_json(
            {
                "setting": {name: getattr(ways[-1].spec, name) for name in names},
                "ways": [one.as_dict() for one in ways],
                "path": None if out is None else str(out),
            }
        )
    else:
        show(ways)
        if out is not None:
            Console(highlight=False).print(f"drawn: {out}")
    return tools.progress.status()


@contextmanager
def _naming_the_file() -> Iterator[None]:
    """The file is this command's own word, not an option's."""
    try:
        yield
    except SpecError as error:
        field = "" if error.field == "embedding" else error.field
        raise SpecError(field, error.message) from None


def _short(value: float) -> str:
    """Three digits; what is only rounding is 0."""
    return "0" if abs(value) < 1e-6 else f"{value:.3g}"


def show(ways: list[Variant]) -> None:
    """Geometry and recall for people."""
    console = Console(highlight=False)
    own, random = ways[0], ways[-1]
    assert own.geometry is not None
    console.print(f"[bold]{own.geometry.rows:,} rows of {own.geometry.dim:,}[/bold]")
    for one in ways[:-1]:
        console.print(f"  --embedding {one.spec.embedding}  {one.name}")
    table = Table(box=box.SIMPLE, title="Geometry", title_justify="left")
    names = {
        "mean's norm": "mean_norm",
        "spread of norms": "norm_spread",
        "usual cosine": "usual_cosine",
        "largest cosine": "largest_cosine",
        "effective dim": "effective_dim",
    }
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right")
    for one in ways[:-1]:
        told = one.geometry
        table.add_row(one.name, *(_short(getattr(told, key)) for key in names.values()))
    expected = own.geometry.expected
    table.add_row("random", *(f"{expected[key]:.3g}" if key in expected else "–" for key in names.values()))
    console.print(table)
    spec = random.spec
    title = f"Recall at V={spec.vocab:,} d={spec.dim:,} L={spec.length:,} N={spec.samples:,}"
    table = Table(box=box.SIMPLE, title=title, title_justify="left")
    for name in ("", "accuracy", "attention", "lost to random"):
        table.add_column(name, justify="left" if not name else "right")
    for one in ways:
        lost = (random.accuracy.mean or 0) - (one.accuracy.mean or 0)
        table.add_row(one.name, str(one.accuracy), str(one.attention), "" if one is random else f"{lost:+.3f}")
    console.print(table)
