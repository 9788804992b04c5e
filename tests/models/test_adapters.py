"""Modules of other libraries as models: one line where a library is absent, and what each makes where it is there."""

import importlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from places import PROJECT

import mnemoscope as mn
from mnemoscope.models.own import Model
from mnemoscope.spec import SpecError
from mnemoscope.tasks.own import Lookup

LIBRARIES = {"from_equinox": ("equinox", "equinox"), "from_nnx": ("flax.nnx", "flax"), "from_torch": ("torch", "torch")}
TASK = Lookup()
SMALL: dict[str, Any] = dict(batch=64, max_steps=512, test_samples=256)


@dataclass(frozen=True)
class Copy:
    """The label is the first token."""

    vocab: int = 6
    labels: int = 6
    length: int = 2

    def sample(self, words: Any, index: Any) -> tuple[Any, Any]:
        tokens = mn.below(words, index, [self.vocab] * self.length)
        return tokens, tokens[0]


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_absent_library_is_one_line(name: str, monkeypatch: pytest.MonkeyPatch):
    module, package = LIBRARIES[name]
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    line = f"model: expected {package} to be installed for this model, got none: pip install {package}"
    with pytest.raises(SpecError, match=line):
        getattr(mn, name)(lambda *_: None)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_command_says_so_too(name: str, tmp_path: Path):
    """Where a user's file asks for the library as it is imported."""
    module, package = LIBRARIES[name]
    (tmp_path / "mine.py").write_text(
        f"import sys\nsys.modules[{module!r}] = None\nimport mnemoscope as mn\nmodel = mn.{name}(lambda *_: None)\n"
    )
    words = ["run", "--model", "mine:model", "--task", "mnemoscope.tasks.own:Lookup", "--store", "none"]
    told = subprocess.run(
        [sys.executable, "-m", "mnemoscope", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.returncode == 2
    assert told.stderr.count("\n") == 1
    assert f"pip install {package}" in told.stderr


def logits_of(model: Model, task: Any, tokens: Any, seed: int = 0) -> tuple[Any, np.ndarray]:
    params = model.init(jax.random.key(seed), task)
    return params, np.asarray(model.logits(params, jnp.asarray(tokens)))


def learns(model: Any) -> mn.Own:
    """A training of half a second that reaches its target."""
    spec = mn.Own(model=model, task=Copy(), lr=0.03, **SMALL)
    trial = mn.simulate(spec, seed=0)
    assert trial.status == "ok", trial.message
    assert (trial.accuracy or 0) >= 0.95
    return spec


def test_a_module_of_equinox_is_called_for_each_sequence_and_trains():
    import equinox as eqx

    class Net(eqx.Module):
        embedding: Any
        out: Any

        def __call__(self, tokens: Any) -> Any:
            return self.out(self.embedding(tokens[0]))

    def make(key: Any, task: Any, dim: int = 8) -> Any:
        first, second = jax.random.split(key)
        return Net(eqx.nn.Embedding(task.vocab, dim, key=first), eqx.nn.Linear(dim, task.labels, key=second))

    make_model = mn.from_equinox(make)
    model = make_model(dim=5)
    tokens = np.array([[0, 1], [3, 2], [5, 5]])
    _, found = logits_of(model, Copy(), tokens)
    module = make(jax.random.key(0), Copy(), 5)
    np.testing.assert_allclose(found, [module(jnp.asarray(row)) for row in tokens], rtol=1e-6)
    spec = learns(make_model)
    assert dict(spec.model_values) == {"dim": 8}
    assert spec.parameters == 6 * 8 + 8 * 6 + 6


def test_a_module_of_nnx_is_called_for_a_batch_and_trains():
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, rngs: Any, task: Any, dim: int) -> None:
            self.embedding = nnx.Embed(task.vocab, dim, rngs=rngs)
            self.out = nnx.Linear(dim, task.labels, rngs=rngs)

        def __call__(self, tokens: Any) -> Any:
            return self.out(self.embedding(tokens)[:, 0])

    def make(rngs: Any, task: Any, dim: int = 8) -> Any:
        return Net(rngs, task, dim)

    make_model = mn.from_nnx(make)
    tokens = np.array([[0, 1], [3, 2], [5, 5]])
    _, found = logits_of(make_model(dim=5), Copy(), tokens)
    module = make(nnx.Rngs(params=jax.random.key(0)), Copy(), 5)
    np.testing.assert_allclose(found, module(jnp.asarray(tokens)), rtol=1e-6)
    spec = learns(make_model)
    assert dict(spec.model_values) == {"dim": 8}
    assert spec.parameters == 6 * 8 + 8 * 6 + 6


def test_a_module_of_torch_has_torchs_logits_and_gradient_and_trains():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self, task: Any, dim: int) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(task.vocab, dim)
            self.out = torch.nn.Linear(dim, task.labels)

        def forward(self, tokens: Any) -> Any:
            return self.out(torch.tanh(self.embedding(tokens)[:, 0]))

    def make(task: Any, dim: int = 8) -> Any:
        return Net(task, dim)

    make_model = mn.from_torch(make)
    model = make_model(dim=5)
    tokens = np.array([[0, 1], [3, 2], [5, 5]])
    params, found = logits_of(model, Copy(), tokens)
    module = make(Copy(), 5)
    module.load_state_dict({name: torch.from_numpy(np.array(part)) for name, part in params.arrays.items()})
    own = module(torch.from_numpy(tokens))
    np.testing.assert_allclose(found, own.detach().numpy(), rtol=1e-5, atol=1e-6)
    # The gradient through the step is PyTorch's own.
    gradient = jax.grad(lambda p: jnp.sum(model.logits(p, jnp.asarray(tokens)) ** 2))(params)
    (own**2).sum().backward()
    for name, part in module.named_parameters():
        np.testing.assert_allclose(gradient.arrays[name], part.grad.numpy(), rtol=1e-4, atol=1e-5)
    spec = learns(make_model)
    assert dict(spec.model_values) == {"dim": 8}
    assert spec.parameters == 6 * 8 + 8 * 6 + 6


@pytest.mark.long
def test_the_built_in_transformer_written_again_holds_as_many_facts(monkeypatch: pytest.MonkeyPatch):
    """By `examples/same_facts.py`, whose figures stand in docs/own.md: each capacity within the other's interval."""
    monkeypatch.syspath_prepend(PROJECT / "examples")
    example = importlib.import_module("same_facts")
    ours, own, _, _ = example.compare()
    assert own.low <= ours.estimate <= own.high
    assert ours.low <= own.estimate <= ours.high
