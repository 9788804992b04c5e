"""A law or an activation of one's own: one decorated function, and specs accept its name."""

from collections.abc import Iterator

import jax.numpy as jnp
import pytest
from jaxtyping import Array

from mnemoscope import Memory, Retrieval, SpecError, simulate
from mnemoscope.engine.words import Words, normal
from mnemoscope.models import activations, embeddings
from mnemoscope.spec import names

SPEC = Retrieval(vocab=16, dim=8, length=2, samples=100, width=8, test_samples=64)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(embeddings, "_LAWS", dict(embeddings._LAWS))
    monkeypatch.setattr(activations, "_ACTIVATIONS", dict(activations._ACTIVATIONS))
    laws, phis = list(names.LAWS), list(names.ACTIVATIONS)

    @embeddings.law
    def signs(words: Words, rows: int, dim: Array | int) -> Array:
        return jnp.sign(normal(words, rows, dim)) / jnp.sqrt(dim)

    @activations.activation
    def cube(a: Array) -> Array:
        return a**3

    yield
    names.LAWS[:], names.ACTIVATIONS[:] = laws, phis


@pytest.mark.usefixtures("registered")
def test_what_is_registered_is_accepted_and_runs():
    spec = SPEC.replace(embedding="signs", activation="cube")
    assert simulate(spec, 0, device="cpu").status == "ok"
    assert Memory.read({"items": 4, "dim": 8, "embedding": "signs"}).embedding == "signs"
    with pytest.raises(SpecError, match="hermite3, cube, got 'cubes'; did you mean 'cube'"):
        SPEC.replace(activation="cubes")


def test_what_is_not_registered_is_refused():
    with pytest.raises(SpecError, match="expected one of gaussian, sphere, orthonormal, got 'signs'"):
        SPEC.replace(embedding="signs")


def test_every_name_has_a_function():
    assert set(embeddings._LAWS) == set(names.LAWS)
    assert set(activations._ACTIVATIONS) == set(names.ACTIVATIONS)


def test_a_name_that_is_taken_is_refused():
    def gaussian(words: Words, rows: int, dim: int) -> Array:
        return normal(words, rows, dim)

    with pytest.raises(SpecError, match=r"^embedding: expected a name that is not taken, got 'gaussian'$"):
        embeddings.law(gaussian)
