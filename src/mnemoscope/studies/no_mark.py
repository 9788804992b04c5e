r"""A reviewer's question about paper A: what if no mark says which token is asked for?

The retrieval task in one layer of attention, asked in two ways: by a mark on the token, as in the paper, or by the
query alone, which names the token's group. Then attention has to know the group of every token and compare it with the
query. The same model takes the same number of steps on both, with frozen and with learned embeddings, and the best of
several rates counts.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.engine.record import Trial
from mnemoscope.spec import Transformer
from mnemoscope.spec.transformer import Embeddings
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study, Verdict, all_agree, within
from mnemoscope.studies.panels import finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_means import pool_rows, run_settings, show, spread

# V, L, the batch and the steps; d for either kind of embeddings is enough with a mark.
SIZES: dict[Size, dict[str, Any]] = {
    "quick": {"vocab": 64, "length": 8, "batch": 128, "max_steps": 1024},
    "full": {"vocab": 512, "length": 32, "batch": 512, "max_steps": 8192},
}
DIMS: dict[Size, dict[Embeddings, int]] = {
    "quick": {"frozen": 32, "learned": 16},
    "full": {"frozen": 96, "learned": 32},
}
GROUPS: dict[Size, tuple[int, ...]] = {"quick": (4, 16), "full": (4, 16, 64)}
RATES: dict[Size, tuple[float, ...]] = {"quick": (0.01, 0.003), "full": (0.01, 0.003, 0.001)}
SEEDS: dict[Size, int] = {"quick": 3, "full": 4}
# A gap below this is none.
NONE = 0.01
# In the power's simulation: gaps with frozen and learned embeddings, and their scatter over seeds.
GAPS, SCATTER = (0.3, 0.1), 0.05


def measure(size: Size, bench: Bench) -> Numbers:
    """The accuracy and the attention of every seed, with a mark (no groups) and without, at its better rate."""
    places: list[tuple[Embeddings, int]] = [(name, groups) for name in DIMS[size] for groups in (0, *GROUPS[size])]
    specs = [_spec(size, name, groups).replace(lr=rate) for name, groups in places for rate in RATES[size]]
    trials = run_settings(bench, specs, SEEDS[size])
    rows: list[Numbers] = []
    for at, (name, groups) in enumerate(places):
        count = len(RATES[size])
        best = [max(tried, key=_accuracy) for tried in zip(*trials[at * count : (at + 1) * count], strict=True)]
        rows.append(
            {
                "embeddings": name,
                "groups": groups,
                "accuracy": [_accuracy(trial) for trial in best],
                "attention": [trial.metrics["attention_best"] for trial in best],
            }
        )
    return {"rows": rows}


def _accuracy(trial: Trial) -> float:
    return trial.accuracy or 0.0


def _spec(size: Size, embeddings: Embeddings, groups: int) -> Transformer:
    asked: dict[str, Any] = {"cue": "query", "groups": groups} if groups else {"cue": "mark"}
    return Transformer(
        task="retrieval",
        **SIZES[size],
        **asked,
        dim=DIMS[size][embeddings],
        embeddings=embeddings,
        layers=1,
        heads=1,
        mask="none",
        positions="none",
        norm="none",
        residual="mlp",
        stop="steps",
    )


def gaps(rows: Sequence[Numbers]) -> dict[str, list[float]]:
    """For either kind of embeddings each seed's accuracy with a mark less that without, averaged over the groups."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if not row["groups"]:
            others = [r["accuracy"] for r in rows if r["embeddings"] == row["embeddings"] and r["groups"]]
            found[row["embeddings"]] = (np.array(row["accuracy"]) - np.mean(others, axis=0)).tolist()
    return found


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the mean gap with either kind of embeddings."""
    rows = pool_rows(all_numbers, "accuracy", "attention")
    parts: list[str] = []
    verdicts: list[Verdict] = []
    for name, each in gaps(rows).items():
        gap = spread(each)
        own = ", ".join(
            f"{np.mean(row['accuracy']):.3f} {_asked(row['groups'])} (attention {np.mean(row['attention']):.2f})"
            for row in rows
            if row["embeddings"] == name
        )
        parts.append(f"{name}: {own}; {show(gap)} less without a mark")
        verdicts.append("refuted" if gap["high"] < NONE else within(gap["low"], gap["high"], 0.0, 1.0))
    return Judgement("; ".join(parts), all_agree(verdicts))


def _asked(groups: int) -> str:
    return f"by {groups} groups" if groups else "by the mark"


def power(size: Size) -> Power:
    """The power if both kinds of embeddings lose accuracy, and if learned ones, or both, lose none."""

    def drawn(frozen: float, learned: float) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            rows = []
            for name, gap in (("frozen", frozen), ("learned", learned)):
                for groups in (0, *GROUPS[size]):
                    # A seed differs from the next by less where nothing is lost.
                    scatter = SCATTER if groups and gap else 0.002
                    each = 1.0 - (gap if groups else 0.0) - abs(rng.normal(0.0, scatter, SEEDS[size]))
                    rows.append(
                        {
                            "embeddings": name,
                            "groups": groups,
                            "accuracy": each.tolist(),
                            "attention": [1.0] * SEEDS[size],
                        }
                    )
            return {"rows": rows}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    return rehearse(
        judge_all,
        drawn(*GAPS),
        {"none with learned embeddings": drawn(GAPS[0], 0.0), "none": drawn(0.0, 0.0)},
        note=f"gaps of {GAPS[0]:g} with frozen and {GAPS[1]:g} with learned embeddings, scattered by {SCATTER:g}",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """Accuracy and attention with the mark, and by the number of groups without."""
    for axes, key in zip(figure.subplots(1, 2, sharey=True), ("accuracy", "attention"), strict=True):
        groups = sorted({row["groups"] for row in numbers["rows"]})
        for color, name in enumerate(("frozen", "learned")):
            rows = {row["groups"]: row[key] for row in numbers["rows"] if row["embeddings"] == name}
            for at, count in enumerate(groups):
                axes.plot([at] * len(rows[count]), rows[count], "o", color=f"C{color}", markersize=3, alpha=0.6)
            axes.plot(range(len(groups)), [np.mean(rows[count]) for count in groups], f"C{color}-", label=name)
        axes.set_xticks(range(len(groups)), ["mark", *[f"{count} groups" for count in groups[1:]]])
        finish(axes, "what says which token is asked for", key)


STUDY = Study(
    id="no-mark",
    revision=1,
    source="review",
    place="what if there is no trigger mark, and attention has to choose by content?",
    statement="Without a mark, when attention has to choose by content, the same training ends with less recall than "
    "with a mark, with frozen and with learned embeddings.",
    expected="a loss of accuracy with either kind of embeddings",
    rule="Accuracy with a mark less that without, averaged over the numbers of groups, at the better of two rates "
    "(full: the best of three), seed by seed, base seeds' seeds in one. Supported if its 95 % interval lies above 0 "
    f"with frozen and with learned embeddings; refuted if with one of them it lies below {NONE:g}.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
