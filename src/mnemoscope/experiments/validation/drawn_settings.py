"""Settings on which theory is compared with simulation, drawn before any of them is run.

Each list comes from a generator with a fixed seed, over the ranges below. Theory may take part in the choice (so that
every regime occurs, or a threshold exists); simulation may not.
"""

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from mnemoscope.spec import Retrieval
from mnemoscope.theory.attention import attention_terms
from mnemoscope.theory.critical import critical_value, first_that
from mnemoscope.theory.matched_filter import matched_filter_accuracy
from mnemoscope.theory.predict import regime_of
from mnemoscope.theory.trained.capacity import critical_items
from mnemoscope.theory.trained.capacity import load as load_of_items
from mnemoscope.theory.trained.predict import inputs_of, load_of

SEED = 20_260


def _log_uniform(draw: np.random.Generator, low: float, high: float) -> int:
    return round(math.exp(draw.uniform(math.log(low), math.log(high))))


def _take(count: int, draws: Iterator[Retrieval], fits: Callable[[Retrieval], bool]) -> list[Retrieval]:
    taken: list[Retrieval] = []
    while len(taken) < count:
        spec = next(draws)
        if fits(spec):
            taken.append(spec)
    return taken


def for_terms(count: int) -> list[Retrieval]:
    """V in 128..2048, d in 16..V/2, L in 8..1024, N in 500..100,000, N L at most 3e7."""

    def drawn() -> Iterator[Retrieval]:
        draw = np.random.default_rng(SEED)
        while True:
            V, L = int(2 ** draw.integers(7, 12)), int(2 ** draw.integers(3, 11))
            yield Retrieval(
                vocab=V, dim=_log_uniform(draw, 16, V / 2), length=L, samples=_log_uniform(draw, 500, 100_000)
            )

    return _take(count, drawn(), lambda spec: spec.samples * spec.length <= 3e7)


# Draws whose regimes are computed before some are taken.
DRAWS = 3000


def for_accuracy(count: int) -> list[Retrieval]:
    """Attention-only settings of both triggers, spread over all regimes.

    V in 128..1024, d in 12..V/2, L in 8..256, N/V in 0.7..150, N L at most 6e6, a quarter of them on the sphere. The
    regimes of DRAWS draws are looked at, with the largest noise of attention beside each, and drawn from in turn.
    """

    def drawn() -> Iterator[Retrieval]:
        draw = np.random.default_rng(SEED + 1)
        while True:
            V = int(2 ** draw.integers(7, 11))
            yield Retrieval(
                vocab=V,
                dim=_log_uniform(draw, 12, V / 2),
                length=int(draw.choice([8, 32, 128, 256])),
                samples=max(200, round(V * math.exp(draw.uniform(math.log(0.7), math.log(150))))),
                trigger="additive" if draw.random() < 0.5 else "keys",
                embedding="sphere" if draw.random() < 0.25 else "gaussian",
            )

    draws = _take(DRAWS, drawn(), lambda spec: spec.samples * spec.length <= 6e6)
    piles: dict[tuple[str, str, str], list[Retrieval]] = {}
    for spec in draws:
        noises = attention_terms(spec).terms
        largest = max(noises, key=lambda name: noises[name])
        piles.setdefault((spec.trigger, regime_of(spec), largest), []).append(spec)
    taken: list[Retrieval] = []
    while len(taken) < min(count, len(draws)):
        taken += [pile.pop() for pile in piles.values() if pile]
    return taken[:count]


# N m d that a trial of `for_mlp` takes at most.
MOST_HIDDEN_WORK = 1.5e9


def for_mlp(count: int, seed: int = SEED + 12) -> list[Retrieval]:
    """Attention-MLP settings: all activations, embeddings and triggers in turn.

    V in 64..384, L in 4..32, N/V in 3..80 and N from 200, m in 64..2048 by powers of two; d in
    16..V/2, or under orthonormal embeddings in V..1.5 V. N m d is at most MOST_HIDDEN_WORK, so that
    a trial takes about a second. The domain of the laws was cut once, after a first draw
    (SEED + 2); these settings were drawn anew after that.
    """
    activations = ("hermite2", "hermite3", "relu", "gelu", "tanh")
    embeddings = ("gaussian", "sphere", "orthonormal")
    draw = np.random.default_rng(seed)
    taken: list[Retrieval] = []
    while len(taken) < count:
        turn = len(taken)
        embedding = embeddings[turn % 3]
        V = int(draw.choice([64, 96, 128, 192, 256, 384]))
        d = _log_uniform(draw, *((V, 1.5 * V) if embedding == "orthonormal" else (16, V / 2)))
        spec = Retrieval.read(
            {
                "vocab": V,
                "dim": d,
                "length": int(2 ** draw.integers(2, 6)),
                "samples": max(200, round(V * math.exp(draw.uniform(math.log(3), math.log(80))))),
                "width": int(2 ** draw.integers(6, 12)),
                "activation": activations[turn % 5],
                "embedding": embedding,
                "trigger": ("keys", "additive")[turn % 2],
            }
        )
        if spec.samples * spec.width * spec.dim <= MOST_HIDDEN_WORK:
            taken.append(spec)
    return taken


def for_critical(count: int) -> list[Retrieval]:
    """(V, d, L) where theory says that some N up to 1e7 / L reaches accuracy 0.5.

    V in 128..512, d in 3 sqrt(V)..V/2, L in 8..128, none twice. N is left at V.
    """

    def fits(spec: Retrieval) -> bool:
        samples = critical_value(spec, "samples", 0.5)
        return samples is not None and samples * spec.length <= 1e7

    return _take(count, _shapes(SEED + 3, [128, 192, 256, 384, 512], (3, 8)), fits)


def for_bound(count: int) -> list[Retrieval]:
    """(V, d, L) with V in 96..256, d in 3 sqrt(V)..V/2, L in 2..32, none twice; N is left at V."""
    return _take(count, _shapes(SEED + 4, [96, 128, 192, 256], (1, 6)), lambda spec: True)


# What theory is asked while these are drawn takes as long as so many predictions.
MATCHED_DRAWS = 500


def for_matched(count: int) -> list[Retrieval]:
    """Settings in which theory has the matched filter name 0.05 to 0.95 of the tokens.

    Three in four have V in 128..2048, V/d in 1..16 and L in 2..V/2, every other of them L from V/16 on. The fourth has
    V in 32..256, V/d in 1/4..16 and L in 1..2V. All are uniform in their logarithms. What is named is uniform from 0.05
    to 0.95, or to the most that N L = 3e7 brings; a draw that stays below 0.05, or is above it at N = V/20, is left
    out. Gaussian and sphere take turns, four settings each.
    """
    draw = np.random.default_rng(SEED + 6)
    taken: list[Retrieval] = []
    while len(taken) < count:
        turn = len(taken)
        if turn % 4 < 3:
            V = _log_uniform(draw, 128, 2048)
            d = _log_uniform(draw, V / 16, V)
            L = _log_uniform(draw, V / 16 if turn % 2 else 2, V / 2)
        else:
            V = _log_uniform(draw, 32, 256)
            d = _log_uniform(draw, V / 16, 4 * V)
            L = _log_uniform(draw, 1, 2 * V)
        law = ("gaussian", "sphere")[turn // 4 % 2]
        shape = Retrieval(vocab=V, dim=d, length=L, samples=V, embedding=law)

        def named(N: int, shape: Retrieval = shape) -> float:
            return matched_filter_accuracy(shape.replace(samples=N))

        few, many = max(1, V // 20), int(3e7) // L
        share = draw.uniform(0.05, max(0.05, min(0.95, named(many))))
        if named(few) < share and share > 0.05:
            N = first_that(lambda N, named=named, share=share: named(N) >= share, few, many, 0.05)
            taken += [shape.replace(samples=N)] if N else []
    return taken


# What a setting chooses, by the law that its interval over seeds comes from.
SPREAD_LAWS: dict[str, dict[str, str]] = {
    "gaussian, keys": {},
    "sphere, keys": {"embedding": "sphere"},
    "orthonormal, keys": {"embedding": "orthonormal"},
    "gaussian, additive": {"trigger": "additive"},
    "sphere, additive": {"embedding": "sphere", "trigger": "additive"},
    "orthonormal, additive": {"embedding": "orthonormal", "trigger": "additive"},
    "gaussian, keys, locked": {"attention": "locked"},
    "gaussian, additive, locked": {"trigger": "additive", "attention": "locked"},
    "gaussian, keys, hermite2": {"activation": "hermite2"},
    "gaussian, keys, hermite3": {"activation": "hermite3"},
    "gaussian, keys, relu": {"activation": "relu"},
    "gaussian, additive, hermite3": {"trigger": "additive", "activation": "hermite3"},
    "orthonormal, keys, hermite3": {"embedding": "orthonormal", "activation": "hermite3"},
}


def for_spread(count: int) -> list[Retrieval]:
    """Settings of every law in turn; theory has no part in the choice.

    V in 64..512, with an MLP in 64..256; d in 16..V, for orthonormal embeddings in V..1.5 V; L in
    4..64, with an MLP in 4..16; N/V in 2..60, for orthonormal keys without an MLP in 0.7..4, and N
    at least 200; m in 128..1024. It is the second draw: what the first one missed was then derived.
    """
    draw = np.random.default_rng(SEED + 8)
    laws = list(SPREAD_LAWS.values())
    taken: list[Retrieval] = []
    for turn in range(count):
        choices = laws[turn % len(laws)]
        hidden, frame = "activation" in choices, choices.get("embedding") == "orthonormal"
        V = int(draw.choice([64, 96, 128, 192, 256] if hidden else [64, 96, 128, 192, 256, 384, 512]))
        d = _log_uniform(draw, V, 1.5 * V) if frame else _log_uniform(draw, 16, V)
        L = int(2 ** draw.integers(2, 5 if hidden else 7))
        few, many = (0.7, 4) if choices == {"embedding": "orthonormal"} else (2, 60)
        N = max(200, round(V * math.exp(draw.uniform(math.log(few), math.log(many)))))
        m = int(2 ** draw.integers(7, 11)) if hidden else 0
        sizes = {"vocab": V, "dim": d, "length": L, "samples": N, "width": m}
        taken.append(Retrieval.read({**sizes, **choices}))
    return taken


def spread_law(spec: Retrieval) -> str:
    """The name in SPREAD_LAWS of the law that a setting of `for_spread` comes from."""
    names = [spec.embedding, spec.trigger]
    names += ["locked"] if spec.attention == "locked" else []
    return ", ".join([*names, *([spec.activation] if spec.width else [])])


def _shapes(seed: int, vocabs: list[int], lengths: tuple[int, int]) -> Iterator[Retrieval]:
    """Shapes to search N for, each once; lengths are powers of two from one exponent to another."""
    draw = np.random.default_rng(seed)
    seen: set[str] = set()
    while True:
        V = int(draw.choice(vocabs))
        shape = Retrieval(
            vocab=V,
            dim=_log_uniform(draw, 3 * math.sqrt(V), V / 2),
            length=int(2 ** draw.integers(*lengths)),
            samples=V,
        )
        if shape.id not in seen:
            seen.add(shape.id)
            yield shape


# Dimensions, hidden units and activations of `for_capacity`: what the solver takes a second for.
CAPACITIES = (
    (8, 0, "relu"),
    (12, 0, "relu"),
    (16, 0, "relu"),
    (20, 0, "relu"),
    (24, 0, "relu"),
    (8, 24, "relu"),
    (8, 40, "tanh"),
    (12, 36, "hermite3"),
    (16, 32, "gelu"),
    (12, 48, "hermite2"),
)


def for_capacity(count: int) -> list[Retrieval]:
    """Each of CAPACITIES on the sphere and with Gaussian embeddings; V is filled in from theory."""
    settings = [
        Retrieval.read(
            {
                "vocab": 2,
                "dim": dim,
                "length": 1,
                "samples": 1,
                "width": width,
                "activation": activation,
                "embedding": embedding,
            }
        )
        for dim, width, activation in CAPACITIES
        for embedding in ("sphere", "gaussian")
    ]
    return settings[:count]


def for_overload(count: int) -> list[Retrieval]:
    """Memories beyond capacity: d in 10..32, bare or with an MLP of m = 2 d, N/N_c in 1.1..5, at most 400 items."""
    draw = np.random.default_rng(SEED + 20)
    taken: list[Retrieval] = []
    while len(taken) < count:
        turn = len(taken)
        width_of = 2 if turn % 4 == 3 else 0
        dim = _log_uniform(draw, 10, 16 if width_of else 32)
        spec = Retrieval.read(
            {
                "vocab": 2,
                "dim": dim,
                "length": 1,
                "samples": 1,
                "width": width_of * dim,
                "embedding": ("sphere", "gaussian")[turn % 2],
            }
        )
        # The number of labels at a load: (T3) with as many labels as items.
        load = math.exp(draw.uniform(math.log(1.1), math.log(5)))
        items = first_that(lambda n, spec=spec, load=load: _load(spec, n) >= load, 4, 4000)
        if items is not None and items <= 400:
            taken.append(spec.replace(vocab=items, samples=items))
    return taken


def _load(spec: Retrieval, items: int) -> float:
    return load_of_items(items, items, spec.dim, inputs_of(spec), spec.embedding)


def for_steps(count: int) -> list[Retrieval]:
    """Matrices of d = 16, 24, 32 and 48 at N/N_c from 0.5 to 0.98, trained at rates of 0.01 and 0.1."""
    settings = []
    for share, dim, rate in product((0.98, 0.5, 0.8, 0.9, 0.65, 0.95), (32, 16, 48, 24), (0.1, 0.01)):
        items = round(share * critical_items(dim, dim, "sphere"))
        settings.append(
            Retrieval.read(
                {
                    "vocab": items,
                    "dim": dim,
                    "length": 1,
                    "samples": items,
                    "embedding": "sphere",
                    "then": "adamw",
                    "lr": rate,
                    "steps": 2**17,
                }
            )
        )
    return settings[:count]


# Steps after which a training counts as it is, settled or not.
MOST_STEPS = 30_000


def for_trained(count: int) -> list[Retrieval]:
    """Attention-only settings trained until they settle: V in 64..220, L in 4..48, N/V in 1.5..25, both laws in turn.

    d is drawn through the load N/N_c, from 0.3 to 0.9, and for every sixth setting from 0.9 to 3; from 12 up. The
    domain was chosen after a first draw, which these settings share nothing with.
    """
    draw = np.random.default_rng(SEED + 22)
    taken: list[Retrieval] = []
    while len(taken) < count:
        turn = len(taken)
        V, L = _log_uniform(draw, 64, 220), _log_uniform(draw, 4, 48)
        N = round(V * math.exp(draw.uniform(math.log(1.5), math.log(25))))
        ends = (0.9, 3.0) if turn % 6 == 5 else (0.3, 0.9)
        load = math.exp(draw.uniform(math.log(ends[0]), math.log(ends[1])))
        spec = Retrieval.read(
            {
                "vocab": V,
                "dim": 12,
                "length": L,
                "samples": N,
                "embedding": ("gaussian", "sphere")[turn % 2],
                "then": "adamw",
                "steps": MOST_STEPS,
                "stop": "settled",
            }
        )
        dim = first_that(lambda d, spec=spec, load=load: load_of(spec.replace(dim=d)) <= load, 12, 400)
        if dim is not None and load_of(spec.replace(dim=12)) > load:
            taken.append(spec.replace(dim=dim))
    return taken
