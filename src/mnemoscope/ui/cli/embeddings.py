"""`mnemoscope embeddings`: how good a user's embedding matrix is for recall."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnemoscope.experiments.compare_embeddings import Comparison, compare_ways, prepare_ways
from mnemoscope.experiments.forecast import jobs_ahead
from mnemoscope.spec import SpecError
from mnemoscope.ui.cli.options import DeviceName, Json, StoreFile, Work, Yes, count
from mnemoscope.ui.cli.output import deliver, echo, table
from mnemoscope.ui.cli.sweeping import check_store, open_tools
from mnemoscope.ui.figures.canvas import check_form, sizes
from mnemoscope.ui.figures.spectrum import draw_spectrum


def embeddings(
    path: Annotated[str, Parameter(help="a .npy, .npz or .safetensors file; PATH#NAME for one matrix of several")],
    *,
    vocab: Annotated[int | None, count(2, 2**22, "V: rows that each seed draws at random [default: up to 512]")] = None,
    dim: Annotated[
        int | None, count(1, 2**22, "d: length of an embedding; needed if the matrix has more columns than rows")
    ] = None,
    length: Annotated[int, count(1, 2**20, "L: tokens in a sequence")] = 16,
    samples: Annotated[
        int | None, count(1, 2**32 - 1, "N [default: where theory predicts 0.8 for random embeddings]")
    ] = None,
    seeds: Annotated[int, count(1, 10_000, "how many seeds")] = 4,
    seed: Annotated[int, count(0, 2**31 - 1, "the first seed")] = 0,
    out: Annotated[Path | None, Parameter(help="draw the spectra into this .png, .svg or .pdf file")] = None,
    device: DeviceName = "auto",
    store: StoreFile = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Inspect an embedding matrix of your own, and measure the recall it allows.

    Shows overlaps, mean and spectrum next to those of random embeddings of the same shape, then runs the same trials
    with the matrix as it is, centred, whitened, and with random embeddings. Also prints the name that `--embedding`
    takes in other commands. Example:

    `mnemoscope embeddings model.safetensors#embeddings.word_embeddings.weight`
    """
    check_form(out)
    numbers = range(seed, seed + seeds)
    check_store(store)
    with _without_option_name():
        own, random = prepare_ways(path, dim=dim, vocab=vocab, length=length, samples=samples)
    ahead = jobs_ahead([(random, number) for number in numbers for _ in (*own, "random")])
    with open_tools(Work(device, None, store, yes), ahead) as tools:
        comparison = Comparison(random, tuple(compare_ways(own, random, seeds=numbers, tools=tools)))
    deliver(comparison, json, show, out, draw_spectrum)
    return tools.progress.status()


@contextmanager
def _without_option_name() -> Iterator[None]:
    """Drop `--embedding` from errors about the matrix: here the file is an argument."""
    try:
        yield
    except SpecError as error:
        field = "" if error.field == "embedding" else error.field
        raise SpecError(field, error.message) from None


def _short(value: float) -> str:
    """Three digits, and 0 for a rounding error."""
    return "0" if abs(value) < 1e-6 else f"{value:.3g}"


def show(comparison: Comparison) -> None:
    """Geometry and recall for people."""
    variants = comparison.variants
    *own, random = variants
    assert own[0].geometry is not None
    expected = own[0].geometry.expected
    echo(f"[bold]{own[0].geometry.rows:,} rows of {own[0].geometry.dim:,}[/bold]")
    for variant in own:
        echo(f"  --embedding {variant.spec.embedding}  {variant.name}")
    names = {
        "mean's norm": "mean_norm",
        "spread of norms": "norm_spread",
        "usual cosine": "usual_cosine",
        "largest cosine": "largest_cosine",
        "effective dim": "effective_dim",
    }
    rows = [(variant.name, *(_short(getattr(variant.geometry, key)) for key in names.values())) for variant in own]
    rows.append(("random", *(f"{expected[key]:.3g}" if key in expected else "–" for key in names.values())))
    echo(table(("", *names), rows, left=("",), title="Geometry"))
    rows = []
    for variant in variants:
        lost = f"{(random.accuracy.value or 0) - (variant.accuracy.value or 0):+.3f}"
        rows.append((variant.name, str(variant.accuracy), str(variant.attention), "" if variant is random else lost))
    columns = ("", "accuracy", "attention", "lost to random")
    echo(table(columns, rows, left=("",), title=f"Recall at {sizes(random.spec)}"))
