"""Settings of a transformer: what they come to, and what is refused before anything is drawn."""

import pytest

from mnemoscope.spec import SpecError, Transformer

REFUSED = [
    ({"heads": 3}, "heads: expected a divisor of dim = 64, or a head_dim, got 3"),
    ({"length": 64, "context": 32}, "length: expected a sequence of at most context = 32 positions, got 64"),
    ({"task": "mqar", "context": 16}, "pairs: expected a sequence of at most context = 16 positions, got 20"),
    ({"max_steps": 0}, "max_steps: expected a whole number of at least 1"),
    ({"layers": 0}, "layers: expected a whole number of at least 1"),
    ({"task": "fact"}, "task: expected one of facts, retrieval, .*did you mean 'facts'"),
    ({"task": "mqar", "subjects": 4}, "subjects: expected it with the task facts, got it with mqar"),
    ({"task": "facts", "pairs": 4}, "pairs: expected it with the task mqar, got it with facts"),
    ({"embeddings": "tied"}, "embeddings: expected frozen or learned, since answers of facts are no tokens"),
    ({"positions": "rotary", "head_dim": 3}, "head_dim: expected an even number with rotary positions, got 3"),
    ({"task": "induction", "mask": "none"}, "mask: expected causal, since induction asks for the token"),
    ({"mlp": "fixed"}, r"mlp: expected trained without an MLP \(width = 0\), got 'fixed'"),
    ({"answers": 32}, "answers: expected at most subjects = 16"),
    ({"overlap": 0.5}, "overlap: expected 0 with the query end"),
    ({"new_subjects": 4}, "first_steps: expected at least 1 with new_subjects = 4, got 0"),
    ({"first_steps": 4}, "new_subjects: expected at least 1 with first_steps = 4, got 0"),
    ({"new_subjects": 4, "first_steps": 4096}, "first_steps: expected fewer than max_steps"),
    ({"new_subjects": 4, "first_steps": 8, "frequencies": "zipf:1"}, "frequencies: expected uniform with new_subjects"),
    ({"length": 2}, "length: expected at least 3 with the task facts, got 2"),
    ({"task": "retrieval", "cue": "query", "groups": 7}, "groups: expected a divisor of vocab = 64"),
    ({"task": "retrieval", "groups": 4}, "groups: expected it with the cue query"),
    ({"task": "mqar", "vocab": 9}, "vocab: expected an even number"),
    ({"task": "mqar", "pairs": 64}, "pairs: expected at most the 32 keys of vocab = 64, got 64"),
    ({"task": "mqar", "queries": 9}, "queries: expected at most pairs = 8, got 9"),
    ({"task": "induction", "triggers": 65}, "triggers: expected at most vocab = 64, got 65"),
    ({"max_steps": 2**20, "batch": 2**13}, r"max_steps: expected at most 2\^32 sequences in all"),
]


@pytest.mark.parametrize(("values", "says"), REFUSED)
def test_what_makes_no_model_is_refused(values, says):
    with pytest.raises(SpecError, match=f"^{says}"):
        Transformer(**values)


def test_a_setting_knows_its_sizes():
    facts = Transformer(subjects=8, relations=4, answers=4, length=12)
    assert facts.sizes.tokens == 8 + 4 + 12 + 1
    assert (facts.sizes.outputs, facts.sizes.reads, facts.facts, facts.entropy) == (16, 1, 32, 64.0)
    mqar = Transformer(task="mqar", pairs=5, queries=3)
    assert (mqar.sizes.positions, mqar.sizes.first, mqar.sizes.reads, mqar.facts) == (13, 10, 3, 0)
    strings = Transformer(task="random-strings", strings=10, vocab=16, length=6)
    assert (strings.entropy, strings.sizes.tokens, strings.sizes.reads) == (10 * 6 * 4.0, 17, 6)


def test_places_on_axes_are_the_nearest_that_exist():
    spec = Transformer(relations=8, answers=4, heads=4, dim=64)
    assert spec.vary(facts=100).subjects == 13
    assert spec.vary(facts=1).subjects == 4  # as many as there are answers
    assert spec.vary(dim=65).dim == 68
    assert spec.replace(positions="rotary").vary(dim=65).dim == 72
    assert (spec.vary(heads=3).heads, spec.vary(heads=3).head_size, spec.vary(heads=3).dim) == (3, 16, 64)
    assert spec.vary(steps=7).max_steps == 7
    assert Transformer(task="random-strings").vary(facts=99).strings == 99
    assert spec.rises_along("dim")
    assert spec.rises_along("steps")
    assert not spec.rises_along("facts")
    assert not Transformer(task="mqar").rises_along("pairs")
