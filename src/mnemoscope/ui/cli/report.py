"""`mnemoscope report`: what `reproduce` found, as one page, and as figures for a paper."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from mnemoscope.engine.extras import need
from mnemoscope.engine.files import check_folder, check_place
from mnemoscope.spec import SpecError
from mnemoscope.studies.catalogue import load_all
from mnemoscope.studies.ledger import Ledger
from mnemoscope.ui.cli.options import Json, choice
from mnemoscope.ui.cli.output import deliver, echo
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.study import draw_study
from mnemoscope.ui.pages.exhibits import reading, show_all
from mnemoscope.ui.pages.report import write_page

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
            with reading(claim):
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
