"""`reproduce`: run claims in this process, judge each, and show what came out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Unpack

from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import GivenTools, Progress, open_tools
from mnemoscope.spec import SpecError
from mnemoscope.spec.summary import Shown, Summary
from mnemoscope.studies.base import BASES, Bench, Size, Study
from mnemoscope.studies.catalogue import load_all
from mnemoscope.studies.claims import Claim
from mnemoscope.studies.ledger import Ledger, run_studies
from mnemoscope.ui.figures.study import draw_study, make_figure


@dataclass(frozen=True, repr=False)
class Reproduction(Shown, Tabular):
    """Claims with their measurements and verdicts."""

    axes: ClassVar[tuple[str, ...]] = ("id",)
    claims: tuple[Claim, ...]

    def records(self) -> list[dict[str, Any]]:
        """A row for each claim."""
        names = ("id", "source", "statement", "expected", "measured", "verdict", "command")
        return [{name: claim[name] for name in names} for claim in self.as_dict()["claims"]]

    def summary(self) -> Summary:
        """The verdicts, and what was measured."""
        rows = tuple((row["id"], row["source"], row["verdict"], row["measured"]) for row in self.records())
        verdicts = [claim.verdict for claim in self.claims]
        numbers = {name: f"{verdicts.count(name)}" for name in dict.fromkeys(verdicts)}
        return Summary("claims", numbers, ("study", "source", "verdict", "measured"), rows)

    def plot(self, path: str | Path | None = None, *, study: str | None = None) -> Any:
        """The figure of a study, the first by default: in a file, or as a Matplotlib figure."""
        known = {claim.study.id: claim for claim in self.claims}
        if study is not None and study not in known:
            raise SpecError("study", f"expected one of {', '.join(known)}, got {study!r}")
        claim = self.claims[0] if study is None else known[study]
        draw, numbers = claim.study.draw, claim.entries[0].numbers
        return make_figure(draw, numbers) if path is None else draw_study(draw, numbers, Path(path))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"claims": [claim.as_dict() for claim in self.claims]}


def bench_with(tools: Any, watch: Callable[[Study], Progress | None]) -> Callable[[Study, int], Bench]:
    """What gives each study its bench: a store, workers, its progress and its first seed."""
    return lambda study, seed: Bench(tools.store, tools.workers, watch(study), seed)


@spells_out(open_tools)
def reproduce(
    *ids: str,
    size: Size = "quick",
    bases: int | None = None,
    ledger: Path | str | None = None,
    **given: Unpack[GivenTools],
) -> Reproduction:
    """Run claims, all of them by default, one after the other, and judge each by the rule written beforehand.

    Results are kept in the ledger, by default beside the store, and what it has is not run again. `bases` is the number
    of base seeds, by default 1 at size `quick` and 3 at size `full`.
    """
    studies: Sequence[Study] = load_all(ids)
    with open_tools(**given) as tools:
        several = BASES[size] if bases is None else bases
        book = Ledger(None if ledger is None else Path(ledger))
        return Reproduction(
            tuple(run_studies(studies, size, several, book, bench_with(tools, lambda _: tools.progress)))
        )
