"""How well predicted and observed values agree, given the standard errors of the observed ones."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mnemoscope.spec import Retrieval

# The mark of a setting that is outside its law's validated domain.
OUTSIDE = ", outside the domain"


@dataclass(frozen=True)
class Compared:
    """One quantity of one setting: theory's value, the mean over seeds, and its standard error."""

    spec: Retrieval
    name: str
    predicted: float
    observed: float
    error: float
    note: str = ""


@dataclass(frozen=True)
class Agreement:
    """Figures by name; some have an aim, and whether it was reached."""

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
        "capacity": _of_capacity,
        "overload": _of_overload,
        "steps": _of_steps,
        "trained": _of_trained,
        "frequencies": _of_frequencies,
    }
    return makers[kind](pairs) if kind in makers else _of_accuracy(pairs)


def amplitude_off(pair: Compared) -> tuple[float, float]:
    """The relative error of a term's amplitude, and its standard error.

    Noise terms are variances: half of a variance's relative error is that of its amplitude.
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


def _errors(pairs: Sequence[Compared]) -> np.ndarray:
    return np.array([abs(pair.predicted - pair.observed) for pair in pairs])


def _error_figures(pairs: Sequence[Compared]) -> dict[str, float]:
    errors = _errors(pairs)
    return {"mean error": float(errors.mean()), "worst error": float(errors.max())}


def _error_by_group(words: str, group: Callable[[Compared], str], pairs: Sequence[Compared]) -> dict[str, float]:
    """The mean error of each group of pairs, with the group's size in its name."""
    groups: dict[str, list[Compared]] = {}
    for pair in sorted(pairs, key=group):
        groups.setdefault(group(pair), []).append(pair)
    return {f"{words} {name} ({len(own)})": float(_errors(own).mean()) for name, own in groups.items()}


def _of_accuracy(pairs: Sequence[Compared]) -> Agreement:
    figures = {"settings": float(len(pairs)), **_error_figures(pairs)}
    middle = [pair for pair in pairs if 0.1 <= pair.observed <= 0.9]
    if middle:
        figures["mean error, observed 0.1 to 0.9"] = float(_errors(middle).mean())
    figures |= _error_by_group("mean error in", lambda pair: pair.note, pairs)
    return Agreement(figures, _at_most(figures, {"mean error": 0.03, "worst error": 0.08}))


def _at_most(figures: dict[str, float], limits: dict[str, float]) -> dict[str, tuple[str, bool]]:
    return {name: (f"at most {limit:g}", figures[name] <= limit) for name, limit in limits.items()}


def _of_mlp(pairs: Sequence[Compared]) -> Agreement:
    """Settings in the domain, and how many are; then each activation, embedding and trigger."""
    inside = [pair for pair in pairs if not pair.note.endswith(OUTSIDE)]
    outside = [pair for pair in pairs if pair.note.endswith(OUTSIDE)]
    share = len(inside) / len(pairs)
    figures = {"settings": float(len(pairs)), "share in the domain": share}
    aims = {"share in the domain": ("at least 0.7", share >= 0.7)}
    if inside:
        figures |= _error_figures(inside)
        figures["mean standard error"] = float(np.mean([pair.error for pair in inside]))
        aims |= _at_most(figures, {"mean error": 0.03, "worst error": 0.1})
        for name in ("activation", "embedding", "trigger"):
            figures |= _error_by_group("mean error of", lambda pair, name=name: getattr(pair.spec, name), inside)
    if outside:
        figures |= {f"{name} outside ({len(outside)})": value for name, value in _error_figures(outside).items()}
    return Agreement(figures, aims)


def _of_matched(pairs: Sequence[Compared]) -> Agreement:
    figures = _of_accuracy(pairs).figures
    figures["largest standard error"] = max(pair.error for pair in pairs)
    return Agreement(
        figures, _at_most(figures, {"mean error": 0.02, "worst error": 0.08, "largest standard error": 0.01})
    )


def _of_spread(pairs: Sequence[Compared]) -> Agreement:
    """Coverage in all, and of each law with its standard error over settings.

    A law has few settings, which share the error of their mean, so its aim is wider.
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


def _summary(words: str, values: Sequence[float], names: str) -> dict[str, float]:
    """Some of the least, the median and the largest of these values, by name."""
    functions = {"least": np.min, "median": np.median, "largest": np.max}
    return {f"{words}{name}": float(functions[name](values)) for name in names.split()}


def _of_critical(pairs: Sequence[Compared]) -> Agreement:
    ratio = [pair.predicted / pair.observed for pair in pairs]
    over = [pair.observed / float(pair.note) for pair in pairs]
    figures = {"settings": float(len(ratio)), **_summary("predicted / observed: ", ratio, "median least largest")}
    figures |= _summary("observed / what any learner needs: ", over, "least median")
    limits = {
        "predicted / observed: median": ("0.9 to 1.1", 0.9, 1.1),
        "predicted / observed: least": ("at least 0.75", 0.75, math.inf),
        "predicted / observed: largest": ("at most 1.33", -math.inf, 1.33),
        "observed / what any learner needs: least": ("at least 1", 1, math.inf),
    }
    return Agreement(figures, {name: (aim, a <= figures[name] <= b) for name, (aim, a, b) in limits.items()})


def _of_capacity(pairs: Sequence[Compared]) -> Agreement:
    miss = np.array([abs(pair.predicted / pair.observed - 1) for pair in pairs])
    figures = {
        "settings": float(len(pairs)),
        "mean relative miss": float(miss.mean()),
        "worst relative miss": float(miss.max()),
        "largest relative standard error": max(pair.error / pair.observed for pair in pairs),
    }
    return Agreement(figures, _at_most(figures, {"worst relative miss": 0.05}))


def _of_overload(pairs: Sequence[Compared]) -> Agreement:
    figures = {"settings": float(len(pairs)), **_error_figures(pairs)}
    figures["mean standard error"] = float(np.mean([pair.error for pair in pairs]))
    return Agreement(figures, _at_most(figures, {"mean error": 0.03}))


def _of_steps(pairs: Sequence[Compared]) -> Agreement:
    ratio = np.array([pair.observed / pair.predicted for pair in pairs])
    least, largest = float(ratio.min()), float(ratio.max())
    figures = {
        "settings": float(len(pairs)),
        "observed / predicted: least": least,
        "observed / predicted: median": float(np.median(ratio)),
        "observed / predicted: largest": largest,
    }
    aims = {
        "observed / predicted: least": ("at least 0.667", least >= 1 / 1.5),
        "observed / predicted: largest": ("at most 1.5", largest <= 1.5),
    }
    return Agreement(figures, aims)


def _of_trained(pairs: Sequence[Compared]) -> Agreement:
    """Settings in the domain; those outside are figures without an aim."""
    inside = [pair for pair in pairs if not pair.note.endswith(OUTSIDE)]
    outside = [pair for pair in pairs if pair.note.endswith(OUTSIDE)]
    figures, aims = {"settings": float(len(pairs)), "settings in the domain": float(len(inside))}, {}
    if inside:
        figures |= _error_figures(inside)
        figures["mean standard error"] = float(np.nanmean([pair.error for pair in inside]))
        aims = _at_most(figures, {"mean error": 0.03, "worst error": 0.1})
        figures |= _error_by_group("mean error,", lambda pair: pair.note, inside)
        figures |= _error_by_group("mean error of", lambda pair: pair.spec.embedding, inside)
    if outside:
        figures |= {f"{name} outside ({len(outside)})": value for name, value in _error_figures(outside).items()}
        figures |= _error_by_group("mean error,", lambda pair: pair.note, outside)
    return Agreement(figures, aims)


def _of_frequencies(pairs: Sequence[Compared]) -> Agreement:
    """By sequence, by fact, by band and of attention, in the domain; settings outside are figures without an aim."""
    figures: dict[str, float] = {"settings": float(len({pair.spec for pair in pairs}))}
    limits: dict[str, float] = {}
    inside = [pair for pair in pairs if not pair.note.endswith(OUTSIDE)]
    for where, rows in (("", inside), (", outside the domain", [pair for pair in pairs if pair not in inside])):
        if where and rows:
            figures["settings outside the domain"] = float(len({pair.spec for pair in rows}))
        for name in ("by sequence", "by fact", "attention", "band"):
            own = [pair for pair in rows if pair.name.startswith(name)]
            if not own:
                continue
            figures |= {f"{words} {name}{where}": value for words, value in _error_figures(own).items()}
            figures[f"mean standard error {name}{where}"] = float(np.mean([pair.error for pair in own]))
            if name != "attention" and not where:
                limits[f"mean error {name}"] = 0.05 if name == "band" else 0.03
                limits |= {} if name == "band" else {f"worst error {name}": 0.1}
    aims = _at_most(figures, limits)
    covered = [pair.observed for pair in inside if pair.name == "interval"]
    if covered:
        figures["coverage of the interval"] = float(np.mean(covered))
        aims["coverage of the interval"] = ("0.90 to 0.98", 0.90 <= figures["coverage of the interval"] <= 0.98)
        if len(covered) > 1:
            figures["standard error of the coverage"] = float(np.std(covered, ddof=1) / len(covered) ** 0.5)
    by_sequence = [pair for pair in inside if pair.name == "by sequence"]
    figures |= _error_by_group("mean error by sequence,", lambda pair: pair.note, by_sequence)
    figures |= _error_by_group("mean error by sequence,", lambda pair: pair.spec.embedding, by_sequence)
    return Agreement(figures, aims)


def _of_bound(pairs: Sequence[Compared]) -> Agreement:
    figures, aims = {}, {}
    for name in dict.fromkeys(pair.name for pair in pairs):
        # A bound of 0 says nothing, and the bound holds where the target is never reached.
        own = [pair for pair in pairs if pair.name == name]
        ratio = [p.observed / p.predicted for p in own if p.predicted > 0 and p.observed > 0]
        figures[f"{name}: settings"] = float(len(own))
        figures[f"{name}: never reach it"] = float(sum(math.isnan(p.observed) for p in own))
        figures |= _summary(f"{name}: observed / bound, ", ratio, "least median largest")
        aims[f"{name}: observed / bound, least"] = ("at least 1", float(np.min(ratio)) >= 1)
    return Agreement(figures, aims)
