"""How well two columns agree: predicted and observed, with the observed one's standard error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mnemoscope.spec import Retrieval

# The mark of a setting that is outside its law's validated domain.
OUTSIDE = ", outside the domain"


@dataclass(frozen=True)
class Compared:
    """One quantity of one setting: what theory says, what seeds gave, and their standard error."""

    spec: Retrieval
    name: str
    predicted: float
    observed: float
    error: float
    note: str = ""


@dataclass(frozen=True)
class Agreement:
    """Figures by name, and for some of them what was aimed at and whether it was reached."""

    figures: dict[str, float]
    aims: dict[str, tuple[str, bool]]


def judge(kind: str, pairs: Sequence[Compared]) -> Agreement:
    """The figures of one comparison; `kind` is a part of `validate`."""
    makers = {
        "terms": _of_terms,
        "critical": _of_critical,
        "bound": _of_bound,
        "matched": _of_matched,
        "spread": _of_spread,
        "mlp": _of_mlp,
    }
    return makers[kind](pairs) if kind in makers else _of_accuracy(pairs)


def amplitude_off(pair: Compared) -> tuple[float, float]:
    """By how much a term is off, relative, as an amplitude, and the standard error of that.

    Noises are compared as variances; half of a variance's relative miss is its amplitude's.
    """
    half = 1.0 if pair.name == "signal" else 0.5
    return (
        half * (pair.predicted / pair.observed - 1) if pair.observed else np.inf,
        half * abs(pair.error / pair.observed) if pair.observed else np.inf,
    )


def _of_terms(pairs: Sequence[Compared]) -> Agreement:
    figures, aims = {}, {}
    for name in dict.fromkeys(pair.name for pair in pairs):
        miss = [amplitude_off(pair) for pair in pairs if pair.name == name]
        within = [abs(off) <= max(0.05, 2 * error) for off, error in miss]
        figures[f"{name}: median miss"] = float(np.median([abs(off) for off, _ in miss]))
        figures[f"{name}: worst beyond 2 s.e."] = max(0.0, max(abs(off) - 2 * error for off, error in miss))
        share = float(np.mean(within))
        figures[f"{name}: share within"] = share
        aims[f"{name}: share within"] = ("5 % or 2 s.e., in all settings", share == 1.0)
    return Agreement(figures, aims)


def _of_accuracy(pairs: Sequence[Compared]) -> Agreement:
    off = np.array([abs(pair.predicted - pair.observed) for pair in pairs])
    figures = {"settings": float(len(off)), "mean error": float(off.mean()), "worst error": float(off.max())}
    middle = [o for o, pair in zip(off, pairs, strict=True) if 0.1 <= pair.observed <= 0.9]
    if middle:
        figures["mean error, observed 0.1 to 0.9"] = float(np.mean(middle))
    for note in sorted({pair.note for pair in pairs}):
        errors = [o for o, pair in zip(off, pairs, strict=True) if pair.note == note]
        figures[f"mean error in {note} ({len(errors)})"] = float(np.mean(errors))
    return Agreement(figures, _at_most(figures, {"mean error": 0.03, "worst error": 0.08}))


def _at_most(figures: dict[str, float], limits: dict[str, float]) -> dict[str, tuple[str, bool]]:
    return {name: (f"at most {limit:g}", figures[name] <= limit) for name, limit in limits.items()}


def _of_mlp(pairs: Sequence[Compared]) -> Agreement:
    """Of settings in the domain, and how many are; then of each activation, embedding, trigger."""
    inside = [pair for pair in pairs if not pair.note.endswith(OUTSIDE)]
    share = len(inside) / len(pairs)
    figures = {"settings": float(len(pairs)), "share in the domain": share}
    aims = {"share in the domain": ("at least 0.7", share >= 0.7)}
    if inside:
        off = np.array([abs(pair.predicted - pair.observed) for pair in inside])
        figures |= {"mean error": float(off.mean()), "worst error": float(off.max())}
        figures["mean standard error"] = float(np.mean([pair.error for pair in inside]))
        aims |= _at_most(figures, {"mean error": 0.03, "worst error": 0.1})
        for name in ("activation", "embedding", "trigger"):
            for value in sorted({getattr(pair.spec, name) for pair in inside}):
                errors = [o for o, pair in zip(off, inside, strict=True) if getattr(pair.spec, name) == value]
                figures[f"mean error of {value} ({len(errors)})"] = float(np.mean(errors))
    outside = [abs(p.predicted - p.observed) for p in pairs if p.note.endswith(OUTSIDE)]
    if outside:
        figures[f"mean error outside ({len(outside)})"] = float(np.mean(outside))
        figures[f"worst error outside ({len(outside)})"] = max(outside)
    return Agreement(figures, aims)


def _of_matched(pairs: Sequence[Compared]) -> Agreement:
    figures = _of_accuracy(pairs).figures
    figures["largest standard error"] = max(pair.error for pair in pairs)
    return Agreement(
        figures, _at_most(figures, {"mean error": 0.02, "worst error": 0.08, "largest standard error": 0.01})
    )


def _of_spread(pairs: Sequence[Compared]) -> Agreement:
    """Coverage in all, and of each law with its standard error over settings.

    A law has few settings, which share the error of their mean: the bounds for one are wider.
    """
    inside = [pair for pair in pairs if not pair.note.endswith(OUTSIDE)]
    figures, aims = {"settings": float(len(pairs))}, {}
    for group, settings in (("coverage, all settings", pairs), ("coverage where valid", inside)):
        if settings:
            share = float(np.mean([pair.observed for pair in settings]))
            name = f"{group} ({len(settings)})"
            figures[name], aims[name] = share, ("0.90 to 0.98", 0.90 <= share <= 0.98)
    for law in dict.fromkeys(sorted(pair.note for pair in pairs)):
        shares = [pair.observed for pair in pairs if pair.note == law]
        name = f"{law} ({len(shares)})"
        figures[name] = float(np.mean(shares))
        if len(shares) > 1:
            figures[f"{law}: standard error"] = float(np.std(shares, ddof=1) / len(shares) ** 0.5)
        if not law.endswith(OUTSIDE):
            aims[name] = ("at least 0.85", figures[name] >= 0.85)
    return Agreement(figures, aims)


def _of_critical(pairs: Sequence[Compared]) -> Agreement:
    ratio = np.array([pair.predicted / pair.observed for pair in pairs])
    over = np.array([pair.observed / float(pair.note) for pair in pairs])
    median, least, largest = float(np.median(ratio)), float(ratio.min()), float(ratio.max())
    figures = {
        "settings": float(len(ratio)),
        "predicted / observed: median": median,
        "predicted / observed: least": least,
        "predicted / observed: largest": largest,
        "observed / what any learner needs: least": float(over.min()),
        "observed / what any learner needs: median": float(np.median(over)),
    }
    aims = {
        "predicted / observed: median": ("0.9 to 1.1", 0.9 <= median <= 1.1),
        "predicted / observed: least": ("at least 0.75", least >= 0.75),
        "predicted / observed: largest": ("at most 1.33", largest <= 1.33),
        "observed / what any learner needs: least": ("at least 1", float(over.min()) >= 1),
    }
    return Agreement(figures, aims)


def _of_bound(pairs: Sequence[Compared]) -> Agreement:
    figures, aims = {}, {}
    for name in dict.fromkeys(pair.name for pair in pairs):
        # Where the bound is 0 it says nothing, and where the target is never reached, it holds.
        own = [pair for pair in pairs if pair.name == name]
        ratio = [p.observed / p.predicted for p in own if p.predicted > 0 and p.observed > 0]
        figures[f"{name}: settings"] = float(len(own))
        figures[f"{name}: never reach it"] = float(sum(math.isnan(p.observed) for p in own))
        figures[f"{name}: observed / bound, least"] = float(np.min(ratio))
        figures[f"{name}: observed / bound, median"] = float(np.median(ratio))
        figures[f"{name}: observed / bound, largest"] = float(np.max(ratio))
        aims[f"{name}: observed / bound, least"] = ("at least 1", float(np.min(ratio)) >= 1)
    return Agreement(figures, aims)
