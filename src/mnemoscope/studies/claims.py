"""A claim: a study with all its entries at one size, judged whenever it is read.

A study may judge the numbers of all its base seeds together. Otherwise all base seeds must give the same verdict, or
the claim is inconclusive.
"""

from dataclasses import asdict, dataclass
from typing import Any

from mnemoscope.studies.base import Earlier, Judgement, Size, Study, Verdict, agreed
from mnemoscope.studies.entries import Entry, is_current


@dataclass(frozen=True)
class Claim:
    """A study, its entries at one size, and the verdict on them."""

    study: Study
    size: Size
    entries: tuple[Entry, ...]

    @property
    def judgements(self) -> list[Judgement]:
        """One for each base seed."""
        return [self.study.judge(entry.numbers) for entry in self.entries]

    @property
    def pooled(self) -> Judgement | None:
        """The judgement on all base seeds together, if the study has a rule for that."""
        if self.study.judge_all is None:
            return None
        return self.study.judge_all([entry.numbers for entry in self.entries])

    @property
    def verdict(self) -> Verdict:
        """The pooled verdict, or the one that all base seeds agree on."""
        pooled = self.pooled
        return agreed(judgement.verdict for judgement in self.judgements) if pooled is None else pooled.verdict

    @property
    def command(self) -> str:
        """The command that reproduces these entries."""
        return f"mnemoscope reproduce {self.study.id} --{self.size} --bases {len(self.entries)}"

    @property
    def stale(self) -> bool:
        """Whether the study or the numerics have changed since an entry was measured."""
        return not all(is_current(self.study, entry) for entry in self.entries)

    @property
    def earlier(self) -> Earlier | None:
        """The rule that these entries were run for, if another has replaced it since.

        The results of replaced rules are known at full size only.
        """
        history = self.study.history
        return history[0] if history and self.size == "full" and self.stale else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        judgements, pooled = self.judgements, self.pooled
        return {
            **self._about(),
            "measured": (pooled or judgements[0]).measured,
            "verdict": self.verdict,
            "pooled": None if pooled is None else asdict(pooled),
            "rule": self.study.rule,
            "power": self.entries[0].power,
            "bases": [
                {**_provenance(entry), "verdict": judgement.verdict, "measured": judgement.measured}
                for entry, judgement in zip(self.entries, judgements, strict=True)
            ],
        }

    def as_earlier(self, earlier: Earlier) -> dict[str, Any]:
        """Like `as_dict`, with the replaced rule and its result; what single base seeds said is not kept."""
        return {
            **self._about(),
            "statement": earlier.statement or self.study.statement,
            "measured": earlier.measured,
            "verdict": earlier.verdict,
            "pooled": None,
            "rule": earlier.rule,
            "power": None,
            "bases": [_provenance(entry) for entry in self.entries],
            "replaced": {"date": earlier.date, "rule": self.study.rule, "statement": self.study.statement},
        }

    def _about(self) -> dict[str, Any]:
        study = self.study
        return {
            **{name: getattr(study, name) for name in ("id", "source", "place", "statement", "expected")},
            "history": [earlier.as_dict() for earlier in study.history],
            "size": self.size,
            "command": self.command,
        }


def _provenance(entry: Entry) -> dict[str, Any]:
    return {"base": entry.base, "seconds": entry.seconds, "made": entry.made}
