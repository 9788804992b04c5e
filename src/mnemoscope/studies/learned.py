r"""A reviewer's question about paper A: what changes with learned embeddings?

The retrieval task with a mark, in one layer of attention whose matrices are d x d, with embeddings that are random and
frozen, as in the paper, or learned with the rest. Measured is the least d at which training reaches 99 %: with frozen
ones the map from tokens to labels has to fit into a d x d matrix, so that d grows about as sqrt(V); learned ones can be
placed so that labels are told apart in few dimensions. Both are trained alike.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.experiments.estimate.power_law import Exponent, Points, fit_power_law
from mnemoscope.spec import Transformer
from mnemoscope.spec.transformer import Embeddings
from mnemoscope.studies.base import (
    BASES,
    Bench,
    Judgement,
    Numbers,
    Power,
    Size,
    Study,
    Verdict,
    agreed,
    all_agree,
    within,
)
from mnemoscope.studies.narrow import Narrowed, critical_dim
from mnemoscope.studies.panels import draw_estimates, draw_law, finish, log_axes
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_limits import limit_point, pool_limits

VOCABS: dict[Size, tuple[int, ...]] = {"quick": (32, 64, 128), "full": (64, 128, 256, 512, 1024, 2048, 4096)}
STEPS: dict[Size, int] = {"quick": 512, "full": 2048}
BATCH: dict[Size, int] = {"quick": 128, "full": 256}
LENGTH, RATE, SEEDS = 16, 0.01, 3
KINDS: tuple[Embeddings, ...] = ("frozen", "learned")
# Where the searches begin: about sqrt(V), and a few dimensions.
FIRST = {"frozen": lambda V: 1.8 * math.sqrt(V), "learned": lambda V: 3.0}
# In the power's simulation: the scatter of ln d over seeds, where d is rounded to brackets of integers.
SCATTER = 0.1


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's critical d, with frozen and with learned embeddings, for each vocabulary."""
    place = find_device("auto")
    seeds = range(bench.seed, bench.seed + SEEDS)
    numbers: Numbers = {name: [] for name in KINDS}
    with numerics("float32", place):
        for vocab in VOCABS[size]:
            for name in KINDS:
                point = critical_dim(_task(size, vocab, name), FIRST[name](vocab), seeds, place.platform)
                numbers[name].append({**point, "size": vocab})
    return numbers


def _task(size: Size, vocab: int, embeddings: Embeddings) -> Narrowed:
    most = 3 * math.ceil(math.sqrt(vocab)) if embeddings == "frozen" else 16
    spec = Transformer(
        task="retrieval",
        vocab=vocab,
        length=LENGTH,
        layers=1,
        dim=most,
        heads=1,
        mask="none",
        positions="none",
        norm="none",
        residual="mlp",
        embeddings=embeddings,
        lr=RATE,
        batch=BATCH[size],
        max_steps=STEPS[size],
    )
    return Narrowed(spec)


def ratios(all_numbers: Sequence[Numbers], each: str) -> list[tuple[int, list[float]]]:
    """Frozen over learned critical d, seed by seed, for each vocabulary."""
    rows: dict[int, list[float]] = {}
    for numbers in all_numbers:
        for frozen, learned in zip(*(numbers[name] for name in KINDS), strict=True):
            pairs = zip(frozen[each], learned[each], strict=True)
            rows.setdefault(frozen["size"], []).extend(f / s for f, s in pairs if f and s)
    return [(vocab, values) for vocab, values in rows.items() if len(values) > 1]


def growth(rows: Sequence[tuple[int, Sequence[float]]]) -> Exponent | None:
    """The power of V in the ratio, through all seeds; None with fewer than three vocabularies."""
    if len(rows) < 3:
        return None
    x = [vocab for vocab, values in rows for _ in values]
    y = np.log([value for _, values in rows for value in values])
    return fit_power_law(Points(("vocab",), np.array(x, float)[:, None], y, np.full(len(y), 1e-3))).exponents[0]


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the ratio of critical d at the least and the largest V, and by its growth, with all and with half steps."""
    text: list[str] = []
    verdicts: list[Verdict] = []
    for each, what in (("each", ""), ("half", "with half of the steps ")):
        rows = ratios(all_numbers, each)
        power = growth(rows)
        if power is None:
            return Judgement("too few critical d were found", "inconclusive")
        # The smaller d are known to within neighbouring integers.
        known = {p["size"]: p["resolution"] for numbers in all_numbers for p in numbers["learned"]}
        means = {vocab: limit_point(values, known[vocab]) for vocab, values in rows}
        text.append(
            what
            + "frozen over learned d "
            + ", ".join(
                f"{mean['stored']:.1f} [{mean['low']:.1f}, {mean['high']:.1f}] at V = {vocab:,}"
                for vocab, mean in means.items()
            )
            + f", as V^{power.value:.2f} [{power.low:.2f}, {power.high:.2f}]"
        )
        above: list[Verdict] = [within(mean["low"], mean["high"], 1.0, math.inf) for mean in means.values()]
        verdicts.append(all_agree([*above, within(power.low, power.high, 0.0, math.inf)]))
    first = [
        f"{name} d {points[0]['stored']:.1f} to {points[-1]['stored']:.1f}"
        for name in KINDS
        if (points := pool_limits([numbers[name] for numbers in all_numbers], ("size",)))
        and points[0]["stored"]
        and points[-1]["stored"]
    ]
    return Judgement("; ".join((", ".join(first), *text)), agreed(verdicts))


def power(size: Size) -> Power:
    """The power if frozen d grow as sqrt(V) and learned ones as ln V, and if the two are in proportion, or equal."""

    def drawn(frozen: float, learned: Any) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            numbers: Numbers = {name: [] for name in KINDS}
            for vocab in VOCABS[size]:
                for name, law in (("frozen", frozen * vocab**0.5), ("learned", learned(vocab))):
                    each = (law * np.exp(rng.normal(0.0, SCATTER, SEEDS))).tolist()
                    numbers[name].append({**limit_point(each, 0.0, size=vocab), "half": each})
            return numbers

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    return rehearse(
        judge_all,
        drawn(2.0, lambda V: 0.6 * math.log(V)),
        {
            "in proportion": drawn(2.0, lambda V: 0.5 * V**0.5),
            "equal": drawn(2.0, lambda V: 2.0 * V**0.5),
            "learned as V": drawn(2.0, lambda V: 0.06 * V),
        },
        note=f"critical d scatter over seeds by {SCATTER:.0%} about 2 sqrt(V), and 0.6 ln V",
    )


def draw(numbers: Numbers, figure: Any) -> None:
    """Critical d against V, frozen and learned."""
    axes = figure.add_subplot()
    ends: list[float] = []
    for color, name in enumerate(KINDS):
        points = [point for point in numbers[name] if point["stored"]]
        draw_estimates(axes, [p["size"] for p in points], points, "stored", name, f"C{color}", "o-")
        ends += [float(point[key] or point["stored"]) for point in points for key in ("low", "high")]
    known = [point for point in numbers["frozen"] if point["stored"]]
    if known:
        x = np.array([point["size"] for point in known], float)
        draw_law(axes, x, known[0]["stored"] * (x / x[0]) ** 0.5, "as sqrt(V)", ":")
        log_axes(axes, x.tolist(), ends)
    finish(axes, "vocabulary, V", "critical d")


STUDY = Study(
    id="learned",
    revision=1,
    source="review",
    place="what changes with learned embeddings?",
    statement="With learned embeddings retrieval by a mark needs a smaller dimension than with random frozen ones, and "
    "the more so the larger the vocabulary.",
    expected="a ratio above 1 that grows with V, since frozen ones need about sqrt(V)",
    rule="Critical d: the least at which 99 % are right within 2^11 steps (quick: 2^9), and within half of them. Its "
    "ratio, frozen over learned, seed by seed, base seeds' seeds in one; and the power of V in it. Supported if the "
    "95 % intervals of every ratio lie above 1 and that of the power above 0, refuted if one lies below; with all "
    "steps and with half of them alike.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
