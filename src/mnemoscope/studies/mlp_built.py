r"""Paper P: MLPs with constructed weights store as many facts a parameter as trained ones, up to a constant.

A fact is a key e_i and a value u_i, both on the sphere of R^d, and the memory of m ReLU units answers
argmax_j u_j^T V^T relu(F e_i), which is a `Memory` with a width. The paper's construction is an encoder and a decoder.
Ours, in its spirit and not its text:

    decoder   B random with orthonormal columns, d x k; values become B^T u_j                                   (B1)
    codes     c_i in R^k with c_i^T B^T (u_i - u_j) > 0 for all j, by the perceptron, for 99 % of the facts        (B2)
    encoder   m/2 random gates g with random directions v in R^k, and a_g by least squares from
              c_i = sum_g v_g 1[g^T e_i > 0] a_g^T e_i: N k equations in d m/2 unknowns                         (B3)
    in ReLU   relu((g + s a)^T x) - relu((g - s a)^T x) = 2 s 1[g^T x > 0] a^T x for s small enough             (B4)

So m units of d weights in and d out hold about N = m d/(2 k) facts, 1/(4 k) for each of the 2 m d parameters. The
least k says how well the values can be decoded after a projection; it and the next two are tried. The capacity is the
most facts of which 99 % are right, for the construction as for training.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.engine.random import named_key
from mnemoscope.spec import Memory
from mnemoscope.studies.base import Bench, Judgement, Numbers, Power, Size, Study, within
from mnemoscope.studies.panels import draw_law, draw_limits, finish_limits
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.scaling_fit import fit_growth
from mnemoscope.studies.seed_limits import (
    limit_point,
    measure_limits,
    pool_limits,
    pool_steps,
    say_steps,
    simulate_limits,
)

# (d, m).
SHAPES: dict[Size, tuple[tuple[int, int], ...]] = {
    "quick": ((6, 24), (8, 32), (12, 36), (16, 48)),
    "full": ((8, 32), (12, 48), (16, 64), (24, 72), (24, 96), (32, 96), (32, 128)),
}
SEEDS: dict[Size, int] = {"quick": 3, "full": 3}
RESOLUTION: dict[Size, float] = {"quick": 0.08, "full": 0.04}
STEPS: dict[Size, int] = {"quick": 2**10, "full": 2**12}
RIGHT = 0.99
# Steps of the perceptron, and how small (B4) makes a against its gate.
TRIES, SMALL = 400, 1e-6
# How many k are tried, with how many equations for an unknown at most, and what is added to a Gram matrix.
MORE, FULL, TINY = 3, 1.5, 1e-10
# How far the power of size in facts built over facts trained may be from 0.
REACH = 0.15
SCATTER, SHAPE_SCATTER = 0.05, 0.03
LAWS = ("built", "trained")


def build(E: np.ndarray, U: np.ndarray, width: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray] | None:
    """F and V of (B1) to (B4) for these keys and values; None where no k makes them right."""
    N, d = E.shape
    whole = np.linalg.qr(rng.standard_normal((d, d)))[0]  # (B1): any k of its columns
    tried = 0
    for k in range(2, d + 1):
        if N * k > FULL * width * d / 2 or tried == MORE:  # a larger k leaves still less room
            return None
        codes, decoded = find_codes(U @ whole[:, :k])
        if decoded >= RIGHT:
            tried += 1
            made = encode(E, codes, whole[:, :k], width // 2, rng)
            if share_right(E, U, *made) >= RIGHT:
                return made
    return None


def find_codes(values: np.ndarray) -> tuple[np.ndarray, float]:
    """(B2): a code for every value, and the share of values that their codes name."""
    codes = values / np.linalg.norm(values, axis=1, keepdims=True)
    own = np.arange(len(values))
    for _ in range(TRIES):
        named = np.argmax(codes @ values.T, axis=1)
        wrong = named != own
        if not wrong.any():
            break
        codes[wrong] += (values - values[named])[wrong]
    right = float(np.mean(np.argmax(codes @ values.T, axis=1) == own))
    return codes / np.linalg.norm(codes, axis=1, keepdims=True), right


def encode(
    E: np.ndarray, codes: np.ndarray, decoder: np.ndarray, gates: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(B3) and (B4): the hidden units, and where each of them points."""
    (N, d), k = E.shape, codes.shape[1]
    half, v = rng.standard_normal((-(-gates // 2), d)), rng.standard_normal((gates, k))
    g = np.concatenate([half, -half])[:gates]  # every key opens one gate of each pair
    on = (E @ g.T > 0).astype(float)
    # Row (i, c) of the equations has v_gc 1[g^T e_i > 0] e_i for every gate.
    rows = np.einsum("ig,gc,id->icgd", on, v, E).reshape(N * k, gates * d)
    a = _solve(rows, codes.reshape(-1)).reshape(gates, d)
    s = SMALL / max(1.0, float(np.abs(a).max()))
    out = v @ decoder.T / (2 * s)
    return np.concatenate([g + s * a, g - s * a]), np.concatenate([out, -out])


def _solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The least x with A x = b, or the x that comes nearest, by whichever Gram matrix is smaller."""
    wide = A.shape[0] <= A.shape[1]
    gram = A @ A.T if wide else A.T @ A
    gram += TINY * np.trace(gram) / len(gram) * np.eye(len(gram))
    return A.T @ np.linalg.solve(gram, b) if wide else np.linalg.solve(gram, A.T @ b)


def share_right(E: np.ndarray, U: np.ndarray, F: np.ndarray, V: np.ndarray) -> float:
    """The share of facts that the memory names."""
    said = np.maximum(E @ F.T, 0.0) @ V @ U.T
    return float(np.mean(np.argmax(said, axis=1) == np.arange(len(E))))


def built_limit(dim: int, width: int, seed: int) -> float:
    """The most facts of which the construction names 99 %, to within one."""

    def holds(count: int) -> bool:
        rng = np.random.default_rng(named_key(seed, "built-mlp", dim=dim, width=width, items=count))
        E, U = (_sphere(rng, count, dim) for _ in range(2))
        made = build(E, U, width, rng)
        return made is not None

    good, bad = 2, math.ceil(FULL * width * dim / 4) + 1  # k = 2 refuses more
    while bad > good + 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return float(good)


def _sphere(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    draw = rng.standard_normal((rows, dim))
    return draw / np.linalg.norm(draw, axis=1, keepdims=True)


def measure(size: Size, bench: Bench) -> Numbers:
    """Every seed's number of facts in each shape, built and trained."""
    seeds = range(bench.seed, bench.seed + SEEDS[size])
    built = []
    for dim, width in SHAPES[size]:
        each = [built_limit(dim, width, seed) for seed in seeds]
        built.append(limit_point(each, 0.0, dim=dim, width=width, size=dim * width))
    memories = [Memory(items=2, dim=dim, width=width, method="trained") for dim, width in SHAPES[size]]
    return {"built": built, "trained": measure_limits(bench, memories, STEPS[size], SEEDS[size], RESOLUTION[size])}


def compare(all_numbers: Sequence[Numbers]) -> list[Numbers]:
    """Facts built over facts trained in each shape that had enough steps, with 95 % intervals."""
    built = pool_limits([numbers["built"] for numbers in all_numbers], ("dim", "width"))
    trained, _ = pool_steps(all_numbers, "trained")
    by_shape = {(point["dim"], point["width"]): point for point in built}
    rows = []
    for point in trained:
        own = by_shape[point["dim"], point["width"]]
        if not (own["stored"] and own["low"] and point["stored"] and point["low"]):
            continue
        # Both intervals are of logarithms, and independent.
        reach = math.hypot(*(math.log(each["high"] / each["low"]) / 2 for each in (own, point)))
        ratio = own["stored"] / point["stored"]
        ends = {"low": ratio * math.exp(-reach), "high": ratio * math.exp(reach)}
        place = {name: point[name] for name in ("dim", "width", "size")}
        rows.append({**place, "stored": ratio, **ends, "built": own["stored"], "trained": point["stored"]})
    return rows


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By the power of size in facts built over facts trained: 0 if both grow alike."""
    rows = compare(all_numbers)
    fit = fit_growth(rows)
    if fit is None:
        return Judgement("too few limits were found", "inconclusive")
    each = ", ".join(
        f"{row['built'] / (2 * row['size']):.3f} and {row['trained'] / (2 * row['size']):.3f} at d = {row['dim']}, "
        f"m = {row['width']}"
        for row in rows
    )
    counted, cut = pool_steps(all_numbers, "trained")
    text = (
        f"facts a parameter built and trained {each}; built over trained {min(r['stored'] for r in rows):.2f} to "
        f"{max(r['stored'] for r in rows):.2f}, as size^{fit['power']:.3f} [{fit['low']:.3f}, {fit['high']:.3f}]; "
        f"{say_steps(counted, cut)}"
    )
    return Judgement(text, within(fit["low"], fit["high"], -REACH, REACH))


def power(size: Size) -> Power:
    """The power if built memories hold a third of what trained ones do at every size, and if the share changes."""
    places = [{"dim": d, "width": m, "size": d * m} for d, m in SHAPES[size]]
    trained = [0.5 * place["size"] for place in places]

    def drawn(power: float) -> Draw:
        built = [
            0.3 * N * (place["size"] / places[0]["size"]) ** power for N, place in zip(trained, places, strict=True)
        ]
        return simulate_limits(size, places, {"built": built, "trained": trained}, SEEDS[size], SCATTER, SHAPE_SCATTER)

    rivals = {"built as size^0.5": drawn(-0.5), "built as size^1.5": drawn(0.5)}
    note = f"seeds scatter by {SCATTER:.0%} and shapes by {SHAPE_SCATTER:.0%}"
    return rehearse(judge_all, drawn(0.0), rivals, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Facts against m d, built and trained."""
    axes = figure.add_subplot()
    counted, cut = pool_steps([numbers], "trained")
    points = sorted([*counted, *cut], key=lambda point: point["size"])
    built = pool_limits([numbers["built"]], ("dim", "width"))
    draw_limits(axes, points, "trained", "C0")
    draw_limits(axes, built, "built, (B1) to (B4)", "C1")
    sizes = [float(point["size"]) for point in built]
    draw_law(axes, sizes, [built[0]["stored"] * size / sizes[0] for size in sizes], "in proportion", "--")
    finish_limits(axes, [*points, *built], "m d, weights of a layer", "facts stored, N")


STUDY = Study(
    id="mlp-built",
    revision=1,
    source="paper P (abstract)",
    place="the abstract: a simple encoder-decoder mechanism empirically matches the facts-per-parameter asymptotics of "
    "MLPs trained by gradient descent; the construction here, (B1) to (B4), is ours",
    statement="An MLP built from an encoder and a decoder stores as many facts a parameter as a trained one, up to a "
    "constant that does not depend on its size.",
    expected="built over trained the same at every size",
    rule="The power of m d in facts built over facts trained, both the most of which 99 % are right, limits of all "
    "base seeds' seeds in one; a shape where a doubling of the steps raises the trained limit by more than 5 %, with "
    "its 95 % interval, is left out. Supported if the 95 % interval lies within -0.15 to 0.15, refuted if it lies "
    "outside.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
