"""Claims as exhibits of the report: figures in both forms, and the records behind them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mnemoscope.engine.extras import need
from mnemoscope.spec import SpecError
from mnemoscope.studies.catalogue import load_all
from mnemoscope.studies.claims import Claim
from mnemoscope.studies.ledger import Ledger
from mnemoscope.ui.figures.canvas import check_form
from mnemoscope.ui.figures.study import both_forms
from mnemoscope.ui.pages.report import Exhibit, write_page


def report(out: Path | str = "report.html", *ids: str, ledger: Path | str | None = None) -> Path:
    """Write what `reproduce` found, of all claims by default, as one HTML file that needs no network."""
    out = Path(out)
    check_form(out, (".html",))
    need("figures")  # the page holds SVG images too
    claims = Ledger(None if ledger is None else Path(ledger)).claims(load_all(ids))
    if not claims:
        raise SpecError("ids", "expected claims that `reproduce` has run, got none")
    exhibits, left_out = show_all(claims)
    write_page(exhibits, out, left_out)
    return out


@contextmanager
def reading(claim: Claim) -> Iterator[None]:
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
        with reading(claim):
            svg, plotly = both_forms(study.draw, claim.entries[0].numbers, study.id)
    except SpecError:
        if earlier is None:
            raise
    with reading(claim):
        content = claim.as_dict() if earlier is None else claim.as_earlier(earlier)
    records = {"study": study.id, "entries": [entry.as_dict() for entry in claim.entries]}
    return Exhibit(content, svg, plotly, records, claim.stale)
