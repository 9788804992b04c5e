"""Rounded weights: the levels of (Q1), the scale that moves them least, and what stays zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemoscope.models.quantisation import ENDS, quantise, round_matrix, round_weights

W = np.random.default_rng(2).normal(size=(24, 24))


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_levels_are_few_symmetric_and_evenly_spaced(bits: int):
    with jax.enable_x64(True):
        levels = np.unique(np.asarray(round_matrix(jnp.asarray(W), bits)))
    assert len(levels) <= 2**bits
    np.testing.assert_allclose(levels, -levels[::-1], rtol=1e-12)
    gaps = np.diff(levels)
    np.testing.assert_allclose(gaps / gaps.min(), np.round(gaps / gaps.min()), rtol=1e-9)


def test_the_scale_is_the_one_that_moves_weights_least():
    with jax.enable_x64(True):
        scale = np.sqrt(np.mean(W**2))
        errors = [
            np.sum((np.asarray(quantise(jnp.asarray(W), 3, jnp.asarray(end * scale))) - W) ** 2)
            for end in (*ENDS, 1 / scale * np.abs(W).max())
        ]
        chosen = np.sum((np.asarray(round_matrix(jnp.asarray(W), 3)) - W) ** 2)
    assert chosen == pytest.approx(min(errors))
    assert max(errors) > 1.5 * min(errors)


def test_more_bits_move_weights_less():
    moved = [float(jnp.abs(round_matrix(jnp.asarray(W), bits) - W).max()) for bits in (2, 6, 10, 16)]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] < 1e-3


def test_zeros_are_padding_and_matrices_of_a_stack_have_scales_of_their_own():
    padded = np.pad(W, ((0, 3), (0, 0)))
    rounded = np.asarray(round_matrix(jnp.asarray(padded), 2))
    assert (rounded[24:] == 0).all()
    np.testing.assert_allclose(rounded[:24], np.asarray(round_matrix(jnp.asarray(W), 2)), rtol=1e-5)
    stack = round_weights({"heads": jnp.asarray(np.stack([W, 100 * W])), "none": jnp.zeros((3, 3))}, 4)
    np.testing.assert_allclose(stack["heads"][1], 100 * stack["heads"][0], rtol=1e-4)
    assert (np.asarray(stack["none"]) == 0).all()
