"""`mnemoscope reproduce`: run the papers' claims and judge each."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from mnemoscope.engine.files import check_folder
from mnemoscope.experiments.sweep import Tally
from mnemoscope.experiments.workers.cluster import check_cluster
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import whole
from mnemoscope.store.schema import default_path
from mnemoscope.studies.base import BASES, Bench, Power, Size, Study
from mnemoscope.studies.catalogue import STUDIES, load_all
from mnemoscope.studies.ledger import Claim, Ledger, run_studies
from mnemoscope.studies.parallel import minutes_of, of_pieces, on_gpu, pieces_left, run_parallel, usual_number
from mnemoscope.studies.power import ENOUGH
from mnemoscope.studies.sources import PAPERS
from mnemoscope.ui.cli.asking import ask_first, say
from mnemoscope.ui.cli.options import ClusterName, DeviceName, Json, StoreFile, Yes, count, flag, option
from mnemoscope.ui.cli.output import print_json
from mnemoscope.ui.cli.progress import Watch
from mnemoscope.ui.cli.sweeping import check_store, open_tools
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.study import draw_study

STYLE = {"supported": "green", "refuted": "red", "inconclusive": "yellow"}


def reproduce(
    *ids: Annotated[str, Parameter(help="studies to run [default: all of them]")],
    list_: Annotated[bool, flag("show the catalogue, and run nothing", name="--list")] = False,
    quick: Annotated[bool, flag("sizes for two CPU cores [default]")] = False,
    full: Annotated[bool, flag("large sizes, for a GPU")] = False,
    power: Annotated[bool, flag("what each rule would say if theory is right; run nothing")] = False,
    bases: Annotated[
        int | None, count(1, 100, "base seeds, judged together or each alone [default: 1 quick, 3 full]")
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="a file for the figure of one study (.png, .svg or .pdf), or a folder")
    ] = None,
    ledger: Annotated[Path | None, Parameter(help="file that keeps what was found [default: beside the store]")] = None,
    jobs: Annotated[
        int | None,
        option(
            whole(1, 64),
            "studies to run in parallel [default: 2 on a CPU, up to 10 on a GPU]",
            name=("--jobs", "--at-once"),
        ),
    ] = None,
    device: DeviceName = "auto",
    cluster: ClusterName = None,
    store: StoreFile = None,
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Run the claims of the papers and judge each by a rule written beforehand.

    What was run is kept: stop at any moment and go on later. A refuted claim is a result, and the
    exit status is 0 whatever the verdicts are. Example:

    `mnemoscope reproduce b-fig5 --quick --out stages.svg`
    """
    studies = load_all(ids)
    if quick and full:
        raise SpecError("full", "expected one of --quick and --full, got both")
    size: Size = "full" if full else "quick"
    if list_ and power:
        raise SpecError("power", "expected one of --list and --power, got both")
    if list_:
        if json:
            print_json({"claims": [about(study) for study in studies], "papers": {p.name: p.citation for p in PAPERS}})
        else:
            show_catalogue(studies)
        return 0
    if power:
        tell_power(studies, size, json=json)
        return 0
    several = BASES[size] if bases is None else bases
    files = figure_files(studies, out)
    if cluster is not None and jobs is not None:
        raise SpecError("jobs", "expected it without --cluster, got both")
    check_cluster(cluster)
    book = Ledger(ledger)
    book.check_place()
    gpu = cluster is None and on_gpu(device)
    pieces = pieces_left(studies, size, several, book, side_by_side=gpu)
    many = 1 if cluster is not None else min(len(pieces), jobs or usual_number(gpu))
    platform = "gpu" if gpu or device == "gpu" else "cpu"
    check_store(store)
    ask_first(of_pieces(pieces, many, platform), platform, yes, far=cluster is not None)
    book.check_place()
    if many > 1 or any(len(some) > 1 for _, _, some in pieces):
        say(f"{len(pieces)} to run, {many} at once, each kept when it is done")
        with Watch("studies", sum(minutes_of(piece, platform) for piece in pieces)) as watch:
            done = run_parallel(pieces, many, device, store or default_path(), book.path)
            for number, (piece, seconds) in enumerate(done, 1):
                name, _, some = piece
                seeds = "base seed" + "s" * (len(some) > 1) + " " + ", ".join(map(str, some))
                say(f"{number} of {len(pieces)} done: {name}, {seeds}, {seconds:.0f} s")
                watch.advance(minutes_of(piece, platform))
        book.read()
        claims = book.claims_for(studies, size, several)
    else:
        with open_tools(cluster, device, store) as tools:

            def bench(study: Study, seed: int) -> Bench:
                def progress(tally: Tally, what: str) -> None:
                    tools.progress(tally, f"{study.id}: {what}")

                return Bench(tools.store, tools.workers, progress, seed)

            claims = run_studies(studies, size, several, book, bench)
    for claim in claims:
        if claim.study.id in files:
            draw_study(claim.study.draw, claim.entries[0].numbers, files[claim.study.id])
    if json:
        paths = {name: str(path) for name, path in files.items()}
        print_json({"claims": [{**claim.as_dict(), "path": paths.get(claim.study.id)} for claim in claims]})
    else:
        show(claims)
        for path in files.values():
            Console(highlight=False).print(f"drawn: {path}")
    return 0


def figure_files(studies: list[Study], out: Path | None) -> dict[str, Path]:
    """Where each study's figure goes: the file itself, or an .svg in the folder."""
    if out is None:
        return {}
    if out.suffix:
        if len(studies) > 1:
            raise SpecError("out", f"expected a folder for several studies, got {str(out)!r}")
        check_form(out)
        return {studies[0].id: out}
    check_folder(out, "out")
    files = {study.id: out / f"{study.id}.svg" for study in studies}
    for path in files.values():
        check_form(path)
    return files


def about(study: Study) -> dict[str, object]:
    """A line of the catalogue."""
    names = ("id", "source", "place", "statement", "expected", "rule")
    minutes = {size: getattr(STUDIES[study.id], size) for size in ("quick", "full")}
    return {
        **{name: getattr(study, name) for name in names},
        "history": [earlier.as_dict() for earlier in study.history],
        "minutes": minutes,
    }


def show_catalogue(studies: list[Study]) -> None:
    """The catalogue for people."""
    console = Console(highlight=False)
    for study in studies:
        cost = "quick {0.quick:g} min, full {0.full:g} min".format(STUDIES[study.id])
        console.print(f"[bold]{study.id}[/bold]  {study.origin}  ({cost})")
        console.print(Padding(study.statement, (0, 0, 0, 4)))
    console.print("\n" + "\n".join(f"{paper.name}: {paper.citation}" for paper in PAPERS))
    console.print("\nMinutes: quick, one base seed on two CPU cores; full, three on one H200.")


def show(claims: list[Claim]) -> None:
    """Each claim with what was measured, then the verdicts in one table."""
    console = Console(highlight=False)
    for claim in claims:
        study = claim.study
        console.print(f"[bold]{study.id}[/bold]  {study.origin}")
        lines = [("claim", study.statement), ("expected", study.expected)]
        pooled, own = claim.pooled, claim.judgements
        if pooled is not None and len(own) > 1:
            lines.append(("pooled", pooled.measured))
        lines += [("measured", judgement.measured) for judgement in own]
        for name, text in lines:
            console.print(Padding(f"{name:<10}{text}", (0, 0, 0, 4)))
    table = Table(box=box.SIMPLE)
    for name in ("study", "verdict", "base seeds"):
        table.add_column(name, no_wrap=True)
    for claim in claims:
        verdict = claim.verdict
        own = ", ".join(judgement.verdict for judgement in claim.judgements)
        if claim.pooled is not None:
            own += " (pooled)"
        table.add_row(claim.study.id, f"[{STYLE[verdict]}]{verdict}[/]", own)
    console.print(table)


def tell_power(studies: list[Study], size: Size, *, json: bool) -> None:
    """What each rule would say if its claim were right, and if a rival were, before any run."""
    found: dict[str, Power | None] = {}
    for study in studies:
        if study.power is not None:
            say(f"{study.id}: drawing what it would measure")
        found[study.id] = None if study.power is None else study.power(size)
    if json:
        print_json(
            {
                "size": size,
                "enough": ENOUGH,
                "claims": [
                    {"id": name, "power": None if power is None else power.as_dict()} for name, power in found.items()
                ],
            }
        )
        return
    table = Table(box=box.SIMPLE)
    for name in ("study", "power", "largest share of a rival", "draws"):
        table.add_column(name, no_wrap=True)
    notes = []
    for name, power in found.items():
        if power is None:
            table.add_row(name, "none computed", "", "")
            continue
        share, worst = max(((share, name) for name, share in power.rivals.items()), default=(0, ""))
        rival = f"{share:.2f} ({worst})" if worst else ""
        style = "green" if power.supported >= ENOUGH else "yellow"
        table.add_row(name, f"[{style}]{power.supported:.2f}[/]", rival, f"{power.draws}")
        notes.append((name, power.note))
    console = Console(highlight=False)
    console.print(table)
    for name, note in notes:
        console.print(Padding(f"[bold]{name}[/bold]  {note}", (0, 0, 0, 2)))
    console.print(
        f"\nPower at the {size} size: the share of draws that the rule calls supported if the claim is right."
    )
