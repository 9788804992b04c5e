"""The three steps in plain PyTorch under `torch.compile`: the second rival, on machines that have PyTorch.

Written as a careful user would: the model as it reads, W z_EOS first, gradients by `torch.func.grad`, samples by
`torch.randint`. As eta -> 0 the logits are small, so the loss is linear in them: mean_i sum_y (1/V - 1{y = y_i}) logit.
PyTorch is no dependency of this package, and nothing here is imported unless it is found.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mnemoscope.spec import Retrieval

ACTIVATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "relu": lambda torch, a: torch.relu(a),
    "gelu": lambda torch, a: torch.nn.functional.gelu(a),
    "tanh": lambda torch, a: torch.tanh(a),
    "linear": lambda torch, a: a,
    "hermite2": lambda torch, a: (a * a - 1) / np.sqrt(2.0),
    "hermite3": lambda torch, a: (a * a - 3) * a / np.sqrt(6.0),
}


class TorchRival:
    """Both uses of one compiled function: on given samples, for its results, and on its own, for time."""

    def __init__(self, spec: Retrieval, frozen: dict[str, np.ndarray | None], platform: str) -> None:
        import torch  # pyright: ignore[reportMissingImports]

        self.torch, self.spec = torch, spec
        self.device = "cpu" if platform == "cpu" else "cuda"
        self.frozen: dict[str, Any] = {
            name: None if part is None else self._tensor(part) for name, part in frozen.items()
        }
        self.steps = torch.compile(partial(three_steps, torch, spec), dynamic=False)

    def on(self, tokens: np.ndarray, position: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, ...]:
        """V1, alpha and V2 on these samples."""
        learned = self.steps(self.frozen, *(self._tensor(part.astype(np.int64)) for part in (tokens, position, label)))
        return tuple(part.cpu().numpy() for part in learned)

    def run(self) -> tuple[Any, Any, Any]:
        """Draw the samples and take the steps; on a GPU the result may still be under way."""
        spec, torch = self.spec, self.torch
        tokens = torch.randint(spec.vocab, (spec.samples, spec.length), device=self.device)
        position = torch.randint(spec.length, (spec.samples,), device=self.device)
        label = self.frozen["permutation"][tokens.gather(1, position[:, None])[:, 0]]
        return self.steps(self.frozen, tokens, position, label)

    def wait(self, _: Any) -> None:
        """Wait for all that is under way."""
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def peak_bytes(self) -> int | None:
        """The most device memory in use so far; None on a CPU, where PyTorch does not count it."""
        return self.torch.cuda.max_memory_allocated() if self.device == "cuda" else None

    def _tensor(self, part: np.ndarray) -> Any:
        return self.torch.from_numpy(np.array(part)).to(self.device)


def three_steps(
    torch: Any, spec: Retrieval, frozen: dict[str, Any], tokens: Any, position: Any, label: Any
) -> tuple[Any, Any, Any]:
    """V1, alpha and V2, in the scales of `ThreeSteps`."""
    Z, U, query, W_in = frozen["Z"], frozen["U"], frozen["query"], frozen["W_in"]
    at_position = torch.arange(spec.length, device=Z.device)[None, :] == position[:, None]
    values = Z[tokens]
    keys = values + at_position[:, :, None] * frozen["trigger"]
    if spec.trigger == "additive":
        values = keys

    def logits(Vmat: Any, W: Any, hard: bool) -> Any:
        scores = keys @ (W @ query)
        if hard:
            pooled = values[torch.arange(spec.samples, device=Z.device), scores.argmax(1)]
        else:
            pooled = (torch.softmax(scores, 1)[:, None, :] @ values)[:, 0]
        if W_in is not None:
            pooled = ACTIVATIONS[spec.activation](torch, pooled @ W_in.T)
        return pooled @ Vmat.T @ U.T

    def loss(Vmat: Any, W: Any, hard: bool = False) -> Any:
        return torch.nn.functional.cross_entropy(logits(Vmat, W, hard), label)

    def linear_loss(Vmat: Any, W: Any) -> Any:
        scores = logits(Vmat, W, False)
        return (scores.mean(1) - scores.gather(1, label[:, None])[:, 0]).mean()

    V0 = torch.zeros((spec.dim, spec.width or spec.dim), device=Z.device)
    W0 = torch.zeros((spec.dim, spec.dim), device=Z.device)
    eta, gamma = (1.0 if rate == "limit" else rate for rate in (spec.eta, spec.gamma))
    V1 = -eta * torch.func.grad(loss)(V0, W0)
    step_W = -torch.func.grad(linear_loss if spec.eta == "limit" else loss, argnums=1)(V1, W0)
    alpha = step_W @ query / (query @ query)
    if spec.gamma == "limit":
        V2 = -torch.func.grad(loss)(V0 if spec.eta == "limit" else V1, step_W, True)
    else:
        V2 = V1 - gamma * torch.func.grad(loss)(V1, gamma * step_W)
    return V1, alpha, V2
