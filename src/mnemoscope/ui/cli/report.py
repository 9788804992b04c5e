"""`mnemoscope report`: what `reproduce` found, as one page, and as figures for a paper."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import check_folder, check_place
from mnemoscope.spec import SpecError
from mnemoscope.studies.catalogue import load_all
from mnemoscope.studies.claims import Claim
from mnemoscope.studies.ledger import Ledger
from mnemoscope.ui.cli.options import Json, choice
from mnemoscope.ui.cli.output import deliver, echo
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.study import both_forms, draw_study
from mnemoscope.ui.pages.report import Exhibit, write_page

Form = Literal["pdf", "svg", "png"]


def report(
    *ids: Annotated[str, Parameter(help="studies to show [default: all that were run]")],
    out: Annotated[Path, Parameter(help="the page, a file ending in .html")] = Path("report.html"),
    figures: Annotated[Path | None, Parameter(help="a folder for the figures only, one file per study")] = None,
    form: Annotated[Form, choice(Form, "the file format of --figures")] = "pdf",
    ledger: Annotated[Path | None, Parameter(help="what `reproduce` kept [default: beside the store]")] = None,
    json: Json = False,
) -> int:
    """Write what `reproduce` found as one HTML file that needs no network.

    Verdicts first, then each claim with its figure, numbers, rule, command, and trials to download. Runs nothing. With
    --figures, writes only the figures. Example:

    `mnemoscope reproduce --quick && mnemoscope report --out claims.html`
    """
    studies = load_all(ids)
    if ledger is not None:
        check_place(ledger, "ledger")
        if not ledger.exists():
            raise SpecError("ledger", f"expected an existing ledger, got {str(ledger)!r}")
    claims = Ledger(ledger).claims(studies)
    if not claims:
        words = "nothing to show: `mnemoscope reproduce` has not run any of these yet"
        return deliver({"path": None, "bytes": 0, "claims": [], "files": []}, json, lambda _: echo(words))
    if figures is not None:
        check_folder(figures, "figures")
        files = {claim.study.id: figures / f"{claim.study.id}.{form}" for claim in claims}
        for path in files.values():
            check_form(path, option="figures")
        for claim in claims:
            with _of_the_study(claim):
                draw_study(claim.study.draw, claim.entries[0].numbers, files[claim.study.id])
        content = {"path": str(figures), "files": [str(path) for path in files.values()]}
        return deliver(content, json, lambda _: echo(f"{len(files)} figures in {figures}"))
    if out.suffix != ".html":
        raise SpecError("out", f"expected a file ending in .html, got {str(out)!r}")
    check_form(out, (".html",))
    need("figures")  # the page holds SVG images too
    exhibits, left_out = show_all(claims)
    size = write_page(exhibits, out, left_out)
    verdicts = [
        {"id": exhibit.claim["id"], "verdict": exhibit.claim["verdict"], "stale": exhibit.stale} for exhibit in exhibits
    ]
    lines = [f"{len(exhibits)} claims in {out} ({size / 1e6:.1f} MB)"]
    lines += [f"{name} is not on it: the study has changed since it was run" for name in left_out]
    content = {"path": str(out), "bytes": size, "left_out": left_out, "claims": verdicts}
    return deliver(content, json, lambda _: echo(*lines))


@contextmanager
def _of_the_study(claim: Claim) -> Iterator[None]:
    """Explain that a study cannot read the numbers of its older version."""
    try:
        yield
    except SpecError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise SpecError(
            "ledger",
            f"expected numbers of {claim.study.id} as it is now, got others: run "
            f"`mnemoscope reproduce {claim.study.id} --{claim.size}` again",
        ) from None


def show_all(claims: Sequence[Claim]) -> tuple[list[Exhibit], list[str]]:
    """The exhibits, and the studies that have changed too much to show their old numbers.

    Raises the first study's error if none can be shown.
    """
    exhibits, left_out = [], {}
    for claim in claims:
        try:
            exhibits.append(show(claim))
        except SpecError as error:
            if not claim.stale:
                raise
            left_out[claim.study.id] = error
    if not exhibits:
        raise next(iter(left_out.values()))
    return exhibits, list(left_out)


def show(claim: Claim) -> Exhibit:
    """A claim with its figure in both forms and the records behind it.

    A result that was judged by an earlier rule is shown with that rule.
    """
    study, earlier = claim.study, claim.earlier
    svg, plotly = None, {}
    try:
        with _of_the_study(claim):
            svg, plotly = both_forms(study.draw, claim.entries[0].numbers, study.id)
    except SpecError:
        if earlier is None:
            raise
    with _of_the_study(claim):
        content = claim.as_dict() if earlier is None else claim.as_earlier(earlier)
    records = {"study": study.id, "entries": [entry.as_dict() for entry in claim.entries]}
    return Exhibit(content, svg, plotly, records, claim.stale)
