"""What is proved of the first gradient, against enumeration, and the decoders that must obey it."""

import itertools
import json
import math
from collections import defaultdict
from functools import lru_cache

import numpy as np
import pytest

from mnemoscope import Retrieval, simulate
from mnemoscope.experiments.decoders import decode, rms_entry, see
from mnemoscope.theory.bound import (
    Limit,
    allowed_share,
    collapse,
    counted_nats,
    counted_samples,
    coverage_samples,
    coverage_share,
    first_gradient_samples,
    limits,
    needed_nats,
    noisy_nats,
    noisy_samples,
    safe_surrogate_nats,
    safe_surrogate_samples,
    surrogate_nats,
    surrogate_samples,
    written_nats,
    written_samples,
)
from mnemoscope.ui.cli import main

SPEC = Retrieval(vocab=128, dim=48, length=8, samples=4000)
# (V, L, N) small enough to go through all training sets.
TINY = [(2, 2, 3), (3, 1, 2), (3, 2, 1), (3, 2, 2), (3, 2, 3), (3, 3, 2), (3, 4, 2), (4, 2, 2)]


class Counts:
    """All tables of counts of a setting: chance[p, k] of table k under permutation p."""

    def __init__(self, V: int, L: int, N: int) -> None:
        self.permutations = np.array(list(itertools.permutations(range(V))))
        found = [self._law(permutation, V, L, N) for permutation in self.permutations]
        keys = sorted(set().union(*found))
        self.chance = np.array([[law.get(key, 0.0) for key in keys] for law in found])
        self.tables = np.array(keys).reshape(-1, V, V)

    @staticmethod
    def _law(permutation: np.ndarray, V: int, L: int, N: int) -> dict[tuple[int, ...], float]:
        one: dict[tuple[int, ...], float] = defaultdict(float)
        for tokens in itertools.product(range(V), repeat=L):  # the first is the informative one
            table = np.zeros((V, V), int)
            np.add.at(table, (permutation[tokens[0]], list(tokens)), 1)
            one[tuple(table.ravel().tolist())] += V**-L
        total = {(0,) * V**2: 1.0}
        for _ in range(N):
            longer: dict[tuple[int, ...], float] = defaultdict(float)
            for (a, p), (b, q) in itertools.product(total.items(), one.items()):
                longer[tuple(i + j for i, j in zip(a, b, strict=True))] += p * q
            total = longer
        return total

    def gradients(self, U: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """G of every table, one a row."""
        draws = self.tables[0].sum()
        G = np.einsum("ya,kyv,vb->kab", U - U.mean(axis=0), self.tables, Z) / draws
        return G.reshape(len(G), -1)


counts = lru_cache(maxsize=None)(Counts)


def information(chance: np.ndarray) -> float:
    """I(Pi; K) of chance[p, k], p uniform."""
    both = np.where(chance > 0, chance, 1)
    return float(np.sum(chance * np.log(both / chance.mean(axis=0)))) / len(chance)


def best_share(chance: np.ndarray, permutations: np.ndarray) -> float:
    """The share of labels that the best decoder of K names: each token's most likely label."""
    V = permutations.shape[1]
    likely = [[chance[permutations[:, v] == y].sum(axis=0) for y in range(V)] for v in range(V)]
    return float(np.max(likely, axis=1).sum()) / V / len(permutations)


def embeddings(V: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([V, d, seed])
    U, Z = (random.normal(size=(V, d)) / math.sqrt(d) for _ in range(2))
    return U, Z


def tiny(V: int, L: int, N: int, d: int = 1) -> Retrieval:
    return Retrieval(vocab=V, dim=d, length=L, samples=N)


def test_needed_nats_from_nothing_to_all():
    assert needed_nats(128, 1.0) == pytest.approx(math.lgamma(129))
    assert needed_nats(128, 1 / 128) == 0
    # By the count of names, the larger part below about nine tenths.
    assert needed_nats(128, 0.5) == pytest.approx(64 * math.log(64 / math.e))
    shares = [needed_nats(128, share) for share in (0.1, 0.3, 0.5, 0.9, 0.99, 1.0)]
    assert shares == sorted(shares)


def test_the_share_is_the_need_turned_round():
    for vocab, nats in itertools.product((2, 3, 8, 128, 10**5), (0.0, 0.3, 5.0, 400.0)):
        share = allowed_share(vocab, nats)
        if share < 1:
            assert needed_nats(vocab, share - 2e-9) <= nats <= needed_nats(vocab, share + 2e-9)
        else:
            assert needed_nats(vocab, 1.0) <= nats
    # Who knows nothing names e labels at most by (D2), and really one.
    assert allowed_share(10**5, 0.0) == pytest.approx(math.e / 10**5, rel=1e-3)


@pytest.mark.parametrize("vocab", [2, 3, 4, 5])
def test_the_need_is_below_what_a_revealed_part_tells(vocab: int):
    """Who is told k labels knows ln V!/(V-k)! nats, names k and guesses one of the rest."""
    for k in range(vocab + 1):
        rest = vocab - k
        named = (k + (rest > 0)) / vocab
        known = math.lgamma(vocab + 1) - math.lgamma(rest + 1)
        assert needed_nats(vocab, named) <= known + 1e-12


@pytest.mark.parametrize("sizes", TINY)
def test_counts_tell_no_more_than_is_proved(sizes: tuple[int, int, int]):
    """(D7) against all training sets, and the best decoder of the counts against (D7) and (D3)."""
    everything, spec = counts(*sizes), tiny(*sizes)
    known = information(everything.chance)
    assert known <= counted_nats(spec) + 1e-12
    assert known >= 0.6 * counted_nats(spec)  # and it is not far above
    share = best_share(everything.chance, everything.permutations)
    assert share <= min(allowed_share(spec.vocab, known), coverage_share(spec)) + 1e-9


@pytest.mark.parametrize("sizes", TINY)
def test_gradients_have_the_mean_square_that_noise_is_measured_in(sizes: tuple[int, int, int]):
    """(D9), with the trigger in the keys alone and in the values too."""
    V, L, N = sizes
    everything = counts(*sizes)
    for d, trigger in itertools.product((1, 3), ("keys", "additive")):
        U, Z = embeddings(V, d, 0)
        vector = np.linspace(1, 2, d)
        G = everything.gradients(U, Z)
        if trigger == "additive":
            labels = everything.tables.sum(axis=2) / (N * L)  # n_y / N
            G = G + np.einsum("ya,ky,b->kab", U - U.mean(axis=0), labels, vector / L).reshape(G.shape)
        square = everything.chance.mean(axis=0) @ (G**2).sum(axis=1)
        spec = tiny(V, L, N, d).replace(trigger=trigger)
        assert rms_entry(spec, U, Z, vector) == pytest.approx(math.sqrt(square) / d, rel=1e-9)


@pytest.mark.parametrize("sizes", TINY)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_noise_leaves_no_more_than_is_proved(sizes: tuple[int, int, int], d: int):
    """I(Pi; G + noise) as a mean over draws of Y, for given embeddings, against (D5)."""
    V, L, N = sizes
    everything, spec = counts(*sizes), tiny(V, L, N, d)
    U, Z = embeddings(V, d, 1)
    G, size = everything.gradients(U, Z), rms_entry(spec, U, Z, np.zeros(d))
    random = np.random.default_rng(list(sizes))
    for noise in (0.3, 1.0, 3.0):
        gained = []
        for which, chance in enumerate(everything.chance):
            drawn = random.choice(len(G), size=300, p=chance)
            Y = G[drawn] + noise * size * random.normal(size=(300, d**2))
            away = ((Y[:, None, :] - G[None]) ** 2).sum(axis=2) / (2 * (noise * size) ** 2)
            weight = np.exp(-away + away.min(axis=1, keepdims=True))
            density = weight @ everything.chance.T  # of each permutation, up to a common factor
            gained.append(np.log(density[:, which] / density.mean(axis=1)))
        mean = float(np.mean(gained))
        error = float(np.std(gained)) / math.sqrt(np.size(gained))
        assert mean <= noisy_nats(spec, noise) + 4 * error, noise


@pytest.mark.parametrize("sizes", TINY)
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_bits_hold_no_more_than_is_proved(sizes: tuple[int, int, int], bits: int):
    """Entries cut into 2^b equally likely ranges: what they tell, and their best decoder."""
    everything, spec = counts(*sizes), tiny(*sizes)
    for seed in range(3):
        G = everything.gradients(*embeddings(sizes[0], 1, seed))[:, 0]
        order = np.argsort(G, kind="stable")
        below = np.empty(len(G))
        below[order] = np.cumsum(everything.chance.mean(axis=0)[order]) - 1e-12
        cell = np.minimum((below * 2**bits).astype(int), 2**bits - 1)
        seen = np.zeros((len(everything.chance), 2**bits))
        for at in range(2**bits):
            seen[:, at] = everything.chance[:, cell == at].sum(axis=1)
        seen = seen[:, seen.sum(axis=0) > 0]
        known, most = information(seen), written_nats(spec, bits)
        assert known <= min(most, counted_nats(spec)) + 1e-12
        share = best_share(seen, everything.permutations)
        assert share <= min(allowed_share(spec.vocab, most), coverage_share(spec)) + 1e-9


def test_the_surrogate_is_safe_only_with_its_correction():
    """Normal gradients with the mean and variance of every permutation: (D1) can fall short."""
    short = 0
    for (V, L, N), seed in itertools.product([(3, 2, 1), (3, 3, 2), (4, 2, 2)], range(12)):
        everything, spec = counts(V, L, N), tiny(V, L, N)
        G = everything.gradients(*embeddings(V, 1, seed))[:, 0]
        mean = everything.chance @ G
        spread = np.sqrt(everything.chance @ G**2 - mean**2)
        grid = np.linspace(min(mean - 9 * spread), max(mean + 9 * spread), 20_001)
        away = (grid - mean[:, None]) / spread[:, None]
        chance = np.exp(-(away**2) / 2) / spread[:, None] + 1e-300
        known = information(chance / chance.sum(axis=1, keepdims=True))
        assert known <= safe_surrogate_nats(spec)
        short += known > surrogate_nats(spec)
    assert short > 0


def test_noise_from_nothing_to_everything():
    spec = Retrieval(vocab=64, dim=16, length=4, samples=500)
    levels = [1e-9, 0.01, 0.1, 1.0, 10.0, 1e9]
    nats = [noisy_nats(spec, noise) for noise in levels]
    assert nats == sorted(nats, reverse=True)
    assert nats[-1] < 1e-12
    assert noisy_nats(spec, 1e-150) > 1e4  # no end to it
    # Without noise to speak of only what holds the exact gradient is left; with much, guessing.
    clear, exact = (viewer(spec, f"{kind}_gradient", 1e-9) for kind in ("noisy", "exact"))
    assert (clear.nats, clear.share, clear.samples) == (exact.nats, exact.share, exact.samples)
    assert viewer(spec, "noisy_gradient", 1e9).share <= 1.001 * math.e / 64
    assert viewer(spec, "noisy_gradient", 1e9).samples == math.inf


def viewer(spec: Retrieval, name: str, noise: float) -> Limit:
    return next(limit for limit in limits(spec, 0.5, noise=noise) if limit.name == name)


def test_more_samples_tell_more_and_longer_sequences_less():
    for nats in (counted_nats, surrogate_nats, safe_surrogate_nats, lambda s: noisy_nats(s, 0.5)):
        known = [nats(SPEC.replace(samples=N)) for N in (1, 2, 10, 100, 10**3, 10**4, 10**6)]
        assert known == sorted(known)
        known = [nats(SPEC.replace(length=L)) for L in (1, 2, 3, 8, 64, 10**3, 10**4, 10**6)]
        assert known == sorted(known, reverse=True)
    assert safe_surrogate_nats(SPEC.replace(length=1)) == math.inf


def test_each_bound_is_where_the_two_meet():
    for share, spec in itertools.product((0.5, 0.9), (SPEC, SPEC.replace(length=3000))):
        needed = needed_nats(spec.vocab, share)
        for solve, nats in (
            (surrogate_samples, surrogate_nats),
            (safe_surrogate_samples, safe_surrogate_nats),
            (counted_samples, counted_nats),
            (lambda s, a: noisy_samples(s, 0.5, a), lambda s: noisy_nats(s, 0.5)),
        ):
            least = math.ceil(solve(spec, share))
            assert nats(spec.replace(samples=max(1, least))) >= needed * (1 - 1e-9)
            if least > 1:
                assert nats(spec.replace(samples=least - 1)) < needed
    assert surrogate_samples(SPEC.replace(dim=1), 0.9) == math.inf
    assert noisy_samples(SPEC.replace(dim=1), 1.0, 0.9) == math.inf
    assert noisy_samples(SPEC.replace(length=1), 0.01, 0.9) == 0
    bits = needed_nats(128, 0.5) / (48**2 * math.log(2))
    assert written_samples(SPEC, 1.001 * bits, 0.5) == 0
    assert written_samples(SPEC, 0.999 * bits, 0.5) == math.inf
    seen = SPEC.replace(samples=math.ceil(coverage_samples(SPEC, 0.6)))
    assert coverage_share(seen) == pytest.approx(0.6, abs=1 / 128)


def test_noise_as_large_as_the_gradient_makes_the_multiplicative_law_a_theorem():
    """V << N << L V: N d^2 proportional to L V^2 ln V, and to the noise's variance."""
    far = Retrieval(vocab=2**12, dim=2**11, length=2**12, samples=1)
    base = noisy_samples(far, 1.0, 1.0)
    assert base == pytest.approx(2 * 2**24 * math.lgamma(2**12 + 1) / 2**22, rel=0.02)
    assert noisy_samples(far.replace(length=2**13), 1.0, 1.0) == pytest.approx(2 * base, rel=0.02)
    assert noisy_samples(far.replace(dim=2**10), 1.0, 1.0) == pytest.approx(4 * base, rel=0.1)
    assert noisy_samples(far, 2.0, 1.0) == pytest.approx(4 * base, rel=0.1)


def test_the_surrogate_scales_as_the_multiplicative_law():
    """For N << L V: N d^2 proportional to L V ln V! , whatever the constant."""
    far = Retrieval(vocab=2**12, dim=2**11, length=64, samples=1)
    base = surrogate_samples(far, 1.0)
    assert surrogate_samples(far.replace(length=128), 1.0) == pytest.approx(2 * base)
    assert surrogate_samples(far.replace(dim=2**10), 1.0) == pytest.approx(4 * base, rel=0.05)


def test_long_sequences_hide_even_exact_counts():
    """(D7) for L >> V is N V/(2 L) nats: n more among n L/V, give or take the root of that."""
    spec = Retrieval(vocab=64, dim=8, length=10**6, samples=10**5)
    assert counted_nats(spec) == pytest.approx(64 * 10**5 / (2 * 10**6), rel=0.03)
    assert first_gradient_samples(spec, 0.5) == counted_samples(spec, 0.5)
    assert (first_gradient_samples(spec.replace(length=2), 0.5) or 0) >= coverage_samples(spec, 0.5)
    assert first_gradient_samples(spec.replace(width=8), 0.5) is None
    (only,) = limits(spec.replace(width=8), 0.5, noise=1.0)
    assert only.name == "any_learner"


def test_decoders_obey_what_is_proved():
    """Through noise and in bits, with the bound of what they then see."""
    for samples, noise, bits in ((300, None, None), (4000, 2.0, None), (4000, None, 1)):
        spec = SPEC.replace(samples=samples)
        shares = [decode(see(spec, seed, noise=noise, bits=bits)) for seed in range(6)]
        most = min(limit.share for limit in limits(spec, 0.5, bits=bits, noise=noise) if limit.proved)
        for name in shares[0]:
            values = [trial[name] for trial in shares]
            error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
            assert np.mean(values) <= most + 4 * error, name


def test_decoders_of_normal_counts_stay_below_the_surrogate():
    for samples in (300, 1000, 4000):
        spec = SPEC.replace(samples=samples)
        shares = [decode(see(spec, seed)) for seed in range(6)]
        most = allowed_share(128, surrogate_nats(spec))
        for name in shares[0]:
            values = [trial[name] for trial in shares]
            error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
            assert np.mean(values) <= most + 4 * error, name
    # Where there is enough to see, putting every label once helps.
    assert np.mean([trial["matched_assignment"] for trial in shares]) > np.mean(
        [trial["matched_filter"] for trial in shares]
    )


def test_what_is_seen_through_noise_and_in_bits():
    clear, blurred = see(SPEC, 2), see(SPEC, 2, noise=0.5)
    size = math.sqrt(np.mean((blurred.gradient - clear.gradient) ** 2) / np.mean(clear.gradient**2))
    # 48^2 normal numbers: their mean square is off by sqrt(2)/48, and G's own by as much again.
    assert size == pytest.approx(0.5, rel=4 / 48)
    assert np.array_equal(blurred.gradient, see(SPEC, 2, noise=0.5).gradient)
    for bits in (1, 3):
        written = see(SPEC, 2, bits=bits)
        assert len(np.unique(written.gradient)) <= 2**bits
        assert np.corrcoef(written.gradient.ravel(), clear.gradient.ravel())[0, 1] > 0.7
    assert np.allclose(
        see(SPEC, 2, bits=40).gradient,
        np.clip(clear.gradient, *(3 * rms_entry(SPEC, clear.U, clear.Z, np.zeros(48)) * np.array([-1, 1]))),
        rtol=0,
        atol=1e-9,
    )


def test_the_matched_filter_is_the_map_after_the_first_step():
    first = next(step for step in simulate(SPEC, 3).steps if step.name == "V1")
    assert decode(see(SPEC, 3))["matched_filter"] == pytest.approx(first.map_accuracy, abs=2 / 128)


WORDS = ["--vocab", "64", "--dim", "32", "--length", "4", "--samples", "2000", "--seeds", "3"]


def test_the_command(capsys: pytest.CaptureFixture[str]):
    assert main(["bound", *WORDS, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["information_bound_samples"] > 0
    assert set(told["matched_filter"]) >= {"mean", "low", "high"}
    assert told["collapse"]["x"] == pytest.approx(2000 * 32**2 / (4 * 64**2 * math.log(64)))
    assert collapse(SPEC).formula in told["collapse"]["formula"]
    names = ["any_learner", "exact_gradient", "gaussian_surrogate", "safe_surrogate"]
    assert [limit["name"] for limit in told["bounds"]] == names
    assert main(["bound", *WORDS]) == 0
    shown = capsys.readouterr().out
    assert "Proved bounds on every decoder that" in shown
    assert "Not bounds on a decoder that searches over whole counts" in shown
    assert main(["bound", *WORDS, "--width", "4"]) == 2
    assert "--width: expected 0" in capsys.readouterr().err


def test_the_command_through_noise_and_in_bits(capsys: pytest.CaptureFixture[str]):
    assert main(["bound", *WORDS, "--noise", "0.5", "--bits", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["noise"], told["bits"]) == (0.5, 2)
    by_name = {limit["name"]: limit for limit in told["bounds"]}
    assert by_name["noisy_gradient"]["proved"]
    assert by_name["written_gradient"]["nats"] <= 2 * 32**2 * math.log(2)
    assert told["information_bound_samples"] == by_name["gaussian_surrogate"]["samples"]
    assert main(["bound", *WORDS, "--noise", "0.5", "--bits", "1"]) == 0
    shown = capsys.readouterr().out
    assert "sees it through noise of 0.5 rms" in shown
    assert "sees it in 1 bit an entry" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bits", "0"], "--bits: expected a whole number of at least 1 and at most 64, got '0'"),
        (["--bits", "-2"], "--bits: expected a whole number of at least 1"),
        (["--bits", "1.5"], "--bits: expected a whole number of at least 1"),
        (["--noise", "-1"], "--noise: expected a number from 1e-09 to 1e+09, got '-1'"),
        (["--noise", "nan"], "--noise: expected a number from 1e-09 to 1e+09, got 'nan'"),
        (["--noise", "0"], "--noise: expected a number from 1e-09 to 1e+09, got '0'"),
        (["--noise", "inf"], "--noise: expected a number"),
        (["--noise", "1", "--collapse", "x.svg"], "--noise: expected none with --collapse"),
    ],
)
def test_noise_and_bits_that_cannot_be(words: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    assert main(["bound", *WORDS, *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert said in told.err
