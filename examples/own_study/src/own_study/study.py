"""A claim of one's own: embeddings of signs recall as well as embeddings on the sphere."""

import jax.numpy as jnp

import mnemoscope as mn
from mnemoscope.studies.base import Judgement, Study, within
from mnemoscope.studies.seed_means import difference, run_settings, show


def rademacher(words, rows, dim):
    return jnp.sign(mn.normal(words, rows, dim)) / jnp.sqrt(dim)


def measure(size, bench):
    sizes = {"vocab": 64, "dim": 48, "length": 8, "samples": 1000}
    specs = [mn.Retrieval(**sizes, embedding=law) for law in (rademacher, "sphere")]
    signs, sphere = run_settings(bench, specs, seeds=16 if size == "quick" else 64)
    return {"gap": difference(signs, sphere)}


def judge(numbers):
    gap = numbers["gap"]
    return Judgement(f"accuracy differs by {show(gap)}", within(gap["low"], gap["high"], -0.05, 0.05))


STUDY = Study(
    id="own-rademacher",
    revision=1,
    source="own",
    statement="Embeddings of signs recall as well as embeddings on the sphere.",
    expected="accuracies that differ by less than 0.05",
    rule="Supported if the 95 % interval of the difference lies within 0.05 of 0, refuted if it lies outside.",
    measure=measure,
    judge=judge,
    draw=lambda numbers, figure: figure.add_subplot().bar(["gap"], [numbers["gap"]["mean"]]),
)
