"""`mnemoscope reproduce`: run the papers' claims and judge each."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.padding import Padding

from mnemoscope.engine.files import check_folder
from mnemoscope.experiments.tools import Progress
from mnemoscope.experiments.workers.cluster import check_cluster
from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import whole
from mnemoscope.store.schema import default_path
from mnemoscope.studies.base import BASES, Power, Size, Study
from mnemoscope.studies.catalogue import STUDIES, load_all
from mnemoscope.studies.claims import Claim
from mnemoscope.studies.ledger import Ledger, run_studies
from mnemoscope.studies.parallel import minutes_of, of_pieces, on_gpu, pieces_left, run_parallel, usual_number
from mnemoscope.studies.power import ENOUGH
from mnemoscope.studies.reproduction import bench_with
from mnemoscope.studies.sources import PAPERS
from mnemoscope.ui.cli.asking import ask_first, say
from mnemoscope.ui.cli.options import DEFAULT_WORK, Json, WorkOptions, count, flag, option
from mnemoscope.ui.cli.output import deliver, echo, table
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
    power: Annotated[bool, flag("compute the statistical power of each rule; run nothing")] = False,
    bases: Annotated[
        int | None, count(1, 100, "base seeds, judged together or each alone [default: 1 quick, 3 full]")
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="a file for the figure of one study (.png, .svg or .pdf), or a folder")
    ] = None,
    ledger: Annotated[Path | None, Parameter(help="file that keeps the results [default: beside the store]")] = None,
    jobs: Annotated[
        int | None,
        option(
            whole(1, 64),
            "studies to run in parallel [default: 2 on a CPU, up to 10 on a GPU]",
            name=("--jobs", "--at-once"),
        ),
    ] = None,
    work: WorkOptions = DEFAULT_WORK,
    json: Json = False,
) -> int:
    """Run the claims of the papers and judge each by a rule written beforehand.

    Results are kept: stop at any time and continue later. A refuted claim is a result: the exit status is 0 whatever
    the verdicts are. Example:

    `mnemoscope reproduce b-fig5 --quick --out stages.svg`
    """
    studies = load_all(ids)
    if quick and full:
        raise SpecError("full", "expected one of --quick and --full, got both")
    size: Size = "full" if full else "quick"
    if list_ and power:
        raise SpecError("power", "expected one of --list and --power, got both")
    if list_:
        catalogue = {"claims": [about(study) for study in studies], "papers": {p.name: p.citation for p in PAPERS}}
        return deliver(catalogue, json, lambda _: show_catalogue(studies))
    if power:
        powers = compute_power(studies, size)
        claims = [{"id": name, "power": power and power.as_dict()} for name, power in powers.items()]
        return deliver({"size": size, "enough": ENOUGH, "claims": claims}, json, lambda _: show_power(powers, size))
    several = BASES[size] if bases is None else bases
    files = figure_files(studies, out)
    far = work.cluster is not None
    if far and jobs is not None:
        raise SpecError("jobs", "expected it without --cluster, got both")
    check_cluster(work.cluster)
    book = Ledger(ledger)
    book.check_place()
    gpu = not far and on_gpu(work.device)
    pieces = pieces_left(studies, size, several, book, side_by_side=gpu)
    many = 1 if far else min(len(pieces), jobs or usual_number(gpu))
    platform = "gpu" if gpu or work.device == "gpu" else "cpu"
    check_store(work.store)
    ask_first(of_pieces(pieces, many, platform), platform, work.yes, far=far)
    book.check_place()
    if many > 1 or any(len(base_seeds) > 1 for _, _, base_seeds in pieces):
        say(f"{len(pieces)} to run, {many} in parallel; each is kept when it is done")
        with Watch("studies", sum(minutes_of(piece, platform) for piece in pieces)) as watch:
            done = run_parallel(pieces, many, work.device, work.store or default_path(), book.path, watch)
            for number, (piece, seconds) in enumerate(done, 1):
                name, _, base_seeds = piece
                seeds = "base seed" + "s" * (len(base_seeds) > 1) + " " + ", ".join(map(str, base_seeds))
                say(f"{number} of {len(pieces)} done: {name}, {seeds}, {seconds:.0f} s")
                watch.advance(minutes_of(piece, platform))
        book.read()
        claims = book.claims_for(studies, size, several)
    else:
        with open_tools(work) as tools:

            def watch_study(study: Study) -> Progress:
                return lambda tally, what: tools.progress(tally, f"{study.id}: {what}")

            claims = run_studies(studies, size, several, book, bench_with(tools, watch_study))
    for claim in claims:
        if claim.study.id in files:
            draw_study(claim.study.draw, claim.entries[0].numbers, files[claim.study.id])
    paths = {name: str(path) for name, path in files.items()}
    result = {"claims": [{**claim.as_dict(), "path": paths.get(claim.study.id)} for claim in claims]}
    return deliver(result, json, lambda _: show(claims, files))


def figure_files(studies: list[Study], out: Path | None) -> dict[str, Path]:
    """The figure file of each study: `out` itself, or an .svg in that folder."""
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
        "package": STUDIES[study.id].package or None,
    }


def show_catalogue(studies: list[Study]) -> None:
    """The catalogue for people."""
    for study in studies:
        cost = "quick {0.quick:g} min, full {0.full:g} min".format(STUDIES[study.id])
        theirs = f", by {STUDIES[study.id].package}" if STUDIES[study.id].package else ""
        echo(f"[bold]{study.id}[/bold]  {study.origin}{theirs}  ({cost})", Padding(study.statement, (0, 0, 0, 4)))
    echo("", *(f"{paper.name}: {paper.citation}" for paper in PAPERS))
    echo("\nMinutes: quick, one base seed on two CPU cores; full, three on one H200.")


def show(claims: list[Claim], files: dict[str, Path]) -> None:
    """Each claim with what was measured, the verdicts in one table, and the figures' files."""
    rows = []
    for claim in claims:
        study, pooled, judgements = claim.study, claim.pooled, claim.judgements
        echo(f"[bold]{study.id}[/bold]  {study.origin}")
        lines = [("claim", study.statement), ("expected", study.expected)]
        if pooled is not None and len(judgements) > 1:
            lines.append(("pooled", pooled.measured))
        lines += [("measured", judgement.measured) for judgement in judgements]
        for name, text in lines:
            echo(Padding(f"{name:<10}{text}", (0, 0, 0, 4)))
        verdicts = ", ".join(judgement.verdict for judgement in judgements)
        verdict = f"[{STYLE[claim.verdict]}]{claim.verdict}[/]"
        rows.append((study.id, verdict, verdicts if pooled is None else f"{verdicts} (pooled)"))
    columns = ("study", "verdict", "base seeds")
    echo(table(columns, rows, left=columns, no_wrap=True), *(f"drawn: {path}" for path in files.values()))


def compute_power(studies: list[Study], size: Size) -> dict[str, Power | None]:
    """How often each rule would support its claim if the claim were right, or a rival, before any run."""
    powers: dict[str, Power | None] = {}
    for study in studies:
        if study.power is not None:
            say(f"{study.id}: simulating its measurements")
        powers[study.id] = None if study.power is None else study.power(size)
    return powers


def show_power(powers: dict[str, Power | None], size: Size) -> None:
    """The power of each rule as a table, with its notes."""
    rows, notes = [], []
    for name, power in powers.items():
        if power is None:
            rows.append((name, "none computed", "", ""))
            continue
        share, worst = max(((share, rival) for rival, share in power.rivals.items()), default=(0, ""))
        style = "green" if power.supported >= ENOUGH else "yellow"
        supported = f"[{style}]{power.supported:.2f}[/]"
        rows.append((name, supported, f"{share:.2f} ({worst})" if worst else "", f"{power.draws}"))
        notes.append(Padding(f"[bold]{name}[/bold]  {power.note}", (0, 0, 0, 2)))
    columns = ("study", "power", "largest share of a rival", "draws")
    echo(table(columns, rows, left=columns, no_wrap=True), *notes)
    echo(f"\nPower at the {size} size: the share of draws that the rule calls supported if the claim is right.")
