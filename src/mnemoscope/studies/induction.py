r"""Paper K: two layers learn bigrams first, and the induction head later.

The abstract: on tokens from global and from sequence-specific bigrams, a transformer of two layers learns the global
ones fast, and more slowly an induction head for those of the sequence. Measured here on a Markov chain in which a few
triggers have a successor of the sequence's own:

    bigrams     -ln p(next) less its least value, after all other tokens
    induction   -ln p(next) after a trigger that has occurred before, whose least value is 0

and the steps after which each has first fallen to a tenth of what it was before training. A model of one layer, trained
alike, has no induction head.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.engine.device import find_device, numerics
from mnemoscope.models.transformer import Weights
from mnemoscope.spec import Transformer
from mnemoscope.studies.base import BASES, Bench, Judgement, Numbers, Power, Size, Study, all_agree, within
from mnemoscope.studies.panels import finish
from mnemoscope.studies.power import Draw, rehearse
from mnemoscope.studies.seed_means import pool_rows, show, spread
from mnemoscope.tasks.sequences import Which, ask
from mnemoscope.training.answering import World, read_answers, surprise
from mnemoscope.training.transformer import TRANSFORMER

SIZES: dict[Size, dict[str, Any]] = {
    "quick": {"vocab": 16, "length": 32, "dim": 32, "batch": 64, "max_steps": 1024},
    "full": {"vocab": 64, "length": 128, "dim": 128, "batch": 256, "max_steps": 4096},
}
SEEDS: dict[Size, int] = {"quick": 3, "full": 4}
RATE: dict[Size, float] = {"quick": 0.01, "full": 0.003}
# Steps between two looks, sequences of a look, and the share to which a loss has to fall.
EVERY, SEQUENCES, SHARE = 16, 256, 0.1
NAMES = ("bigrams", "induction")
# In the power's simulation: the scatter of ln(ratio) over seeds.
SCATTER = 0.4


def measure(size: Size, bench: Bench) -> Numbers:
    """Both losses by step, for two layers and for one, seed by seed."""
    place = find_device("auto")
    seeds = list(range(bench.seed, bench.seed + SEEDS[size]))
    rows: list[Numbers] = []
    with numerics("float32", place):
        for layers in (2, 1):
            courses = _train(_spec(size, layers), seeds, place.platform)
            steps = {name: [fallen(course[name]) for course in courses] for name in NAMES}
            last = [course["induction"][-1] / course["induction"][0] for course in courses]
            rows.append(
                {"layers": layers, "most": SIZES[size]["max_steps"], "steps": steps, "last": last, "course": courses[0]}
            )
    return {"rows": rows}


def _spec(size: Size, layers: int) -> Transformer:
    return Transformer(
        task="induction", **SIZES[size], layers=layers, heads=1, positions="rotary", lr=RATE[size], stop="steps"
    )


def _train(spec: Transformer, seeds: Sequence[int], platform: str) -> list[dict[str, list[float]]]:
    """Both losses every few steps: on a GPU seed beside seed, on a CPU one after another."""
    if platform == "cpu" and len(seeds) > 1:
        return [course for seed in seeds for course in _train(spec, [seed], platform)]
    program = TRANSFORMER.program(spec, platform)
    world, state = TRANSFORMER.start(program, TRANSFORMER.arguments([(spec, seed) for seed in seeds]))
    lr = jnp.full(len(seeds), spec.lr)
    looks = [_losses(program, world, state.weights)]
    for _ in range(spec.max_steps // EVERY):
        state, _ = TRANSFORMER.advance(program, EVERY, world, state, lr)
        looks.append(_losses(program, world, state.weights))
    numbers = [{name: np.asarray(part) for name, part in look.items()} for look in looks]
    return [{name: [float(look[name][row]) for look in numbers] for name in NAMES} for row in range(len(seeds))]


@partial(jax.jit, static_argnames=("program",))
def _losses(program: Transformer, world: World, weights: Weights) -> dict[str, jax.Array]:
    """`losses` of every training."""
    return jax.vmap(partial(losses, program))(world, weights)


def losses(program: Transformer, world: World, weights: Weights) -> dict[str, jax.Array]:
    """Both losses on sequences of the test stream."""
    which = Which("test", jnp.arange(SEQUENCES, dtype=jnp.uint32))
    asked = ask(program, world.counts, world.tables, world.keys, which)
    loss = surprise(read_answers(program, world, weights, asked).logits, asked.answer)
    # p(w | v) of the chain, from its thresholds.
    assert world.tables.chain is not None
    ends = jnp.ones((program.vocab, 1))
    share = jnp.diff(jnp.concatenate([0 * ends, world.tables.chain / 2.0**32, ends], axis=1), axis=1)
    least = -jnp.log(share[asked.tokens, asked.answer])

    def mean(where: jax.Array, what: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(where, what, 0.0)) / jnp.maximum(jnp.sum(where), 1)

    return {"bigrams": mean(asked.tokens >= program.triggers, loss - least), "induction": mean(asked.counted, loss)}


def fallen(course: Sequence[float]) -> int | None:
    """The steps after which a loss has first fallen to its share; None if it never does."""
    return next((EVERY * at for at, loss in enumerate(course) if loss <= SHARE * course[0]), None)


def judge_all(all_numbers: Sequence[Numbers]) -> Judgement:
    """By how many times as many steps the induction head takes, with two layers, and by what one layer learns."""
    two, one = pool_rows(all_numbers, "steps", "last")
    pairs = list(zip(two["steps"]["bigrams"], two["steps"]["induction"], strict=True))
    never = [spread(row["last"]) for row in (two, one)]
    ends = f"induction's loss ends at {show(never[0])} of its first value with two layers, {show(never[1])} with one"
    both = sum(1 for early, late in pairs if early and late)
    if 2 * both <= len(pairs) or not all(early for early, _ in pairs):
        return Judgement(f"{both} of {len(pairs)} seeds learned both; {ends}", "inconclusive")
    # A seed that has not got there takes more than all steps.
    ratio = spread([math.log((late or two["most"]) / early) for early, late in pairs])
    low, mean, high = (math.exp(ratio[end]) for end in ("low", "mean", "high"))
    early, late = (np.mean([pair[at] or two["most"] for pair in pairs]) for at in (0, 1))
    text = (
        f"bigrams after {early:,.0f} steps, induction after {late:,.0f} ({len(pairs) - both} of {len(pairs)} seeds not "
        f"yet, counted with all), {mean:.1f} [{low:.1f}, {high:.1f}] times as many; {ends}"
    )
    verdicts = (
        within(ratio["low"], ratio["high"], 0.0, math.inf),
        within(never[1]["low"], never[1]["high"], SHARE, math.inf),
    )
    return Judgement(text, all_agree(verdicts))


def power(size: Size) -> Power:
    """The power if induction takes three times as many steps, and if it takes as many, or is first."""

    def drawn(times: float, one_layer: float = 0.4) -> Draw:
        def base(rng: np.random.Generator) -> Numbers:
            count = SEEDS[size]
            late = 100 * times * np.exp(rng.normal(0.0, SCATTER, count))
            rows = []
            for layers, last in ((2, 0.02), (1, one_layer)):
                steps = {"bigrams": [100.0] * count, "induction": late.tolist()}
                ends = (last * np.exp(rng.normal(0.0, 0.1, count))).tolist()
                rows.append({"layers": layers, "most": SIZES[size]["max_steps"], "steps": steps, "last": ends})
            return {"rows": rows}

        return lambda rng: [base(rng) for _ in range(BASES[size])]

    rivals = {"together": drawn(1.0), "induction first": drawn(1 / 3), "one layer as well": drawn(3.0, 0.02)}
    note = f"induction after three times the steps of bigrams, scattered over seeds by {SCATTER:.0%}"
    return rehearse(judge_all, drawn(3.0), rivals, note=note)


def draw(numbers: Numbers, figure: Any) -> None:
    """Both losses by step, with two layers and with one."""
    for axes, row in zip(figure.subplots(1, 2, sharey=True), numbers["rows"], strict=True):
        for name in NAMES:
            loss = np.array(row["course"][name])
            axes.plot(EVERY * np.arange(len(loss)), loss / loss[0], label=name)
        axes.axhline(SHARE, color="black", linewidth=0.6, linestyle=":")
        axes.set_title("two layers" if row["layers"] == 2 else "one layer", fontsize=9)
        finish(axes, "step", "loss over its first value")


STUDY = Study(
    id="induction",
    revision=1,
    source="paper K (abstract)",
    place="global bigrams are learned fast, an induction head for those of the sequence more slowly, with two layers; "
    "the measure is ours, and so is the model of one layer beside it",
    statement="A transformer of two layers learns bigrams first, and an induction head later.",
    expected="several times as many steps for the induction head, and none with one layer",
    rule="Steps after which each loss, less its least value, has first fallen to a tenth of what it was before "
    "training; base seeds' seeds in one. A seed that learns bigrams alone counts with all steps, as long as most learn "
    "both. Supported if the 95 % interval of the mean logarithm of their ratio, "
    "induction over bigrams, lies above 0, and that of the share of induction's loss that one layer ends with does not "
    "reach down to a tenth. Refuted if the first lies below 0, or the second below a tenth.",
    measure=measure,
    judge_all=judge_all,
    draw=draw,
    power=power,
)
