"""The same `Transformer` on facts in plain PyTorch under `torch.compile`, trained in a process of its own.

    python -m mnemoscope.ui.bench.torch_transformer < request.json

Written as a careful user would: modules, fused attention, AdamW, fresh sequences by `torch.randint`, all in float32.
The request names the sizes and how many steps to time; the answer is one JSON object. PyTorch is no dependency of this
package, and nothing here is imported unless it is found.
"""

import json
import statistics
import sys
import time
from typing import Any

# Steps before any is timed: compilation, and the choice of kernels.
WARM = 20


def main() -> None:
    """Answer one request on standard input."""
    request: dict[str, Any] = json.load(sys.stdin)
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() and request["platform"] != "cpu" else "cpu"
    spec = request["spec"]
    model = make_model(torch, spec).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=spec["lr"], weight_decay=0.0, fused=device == "cuda")
    draw = Sequences(torch, spec, device)

    def loss_of(tokens: Any, answer: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(tokens), answer)

    compiled = torch.compile(loss_of, dynamic=False)
    drawn = torch.compile(draw.draw, dynamic=False)

    def step() -> Any:
        optimiser.zero_grad(set_to_none=True)
        loss = compiled(*drawn())
        loss.backward()
        optimiser.step()
        return loss.detach()

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    began = time.perf_counter()
    first = float(step())
    wait()
    first_seconds = time.perf_counter() - began
    for _ in range(WARM):
        step()
    wait()
    times, last = [], first
    for _ in range(request["repeats"]):
        began = time.perf_counter()
        for _ in range(request["steps"] - 1):
            step()
        last = float(step())  # waits for the device
        times.append((time.perf_counter() - began) / request["steps"])
    # Went it the same way? A loss at the end, and accuracy on fresh sequences.
    with torch.no_grad():
        tokens, answer = draw.draw()
        accuracy = float((model(tokens).argmax(-1) == answer).float().mean())
    told = {"seconds": statistics.median(times), "first_seconds": first_seconds, "first_loss": first, "loss": last}
    print(json.dumps({**told, "accuracy": accuracy, "torch": torch.__version__, "device": device}))


class Sequences:
    """Fresh sequences of facts: subject and relation at random places among noise, then the end token."""

    def __init__(self, torch: Any, spec: dict[str, Any], device: str) -> None:
        self.torch, self.device = torch, device
        self.S, self.R, self.D = spec["subjects"], spec["relations"], spec["answers"]
        self.noise = spec["noise"] or self.S + self.R
        self.T, self.B = spec["length"], spec["batch"]
        own = torch.randint(self.D, (self.S, self.R), device=device)
        self.answers = own + self.D * torch.arange(self.R, device=device)

    def draw(self) -> tuple[Any, Any]:
        """A batch, and its answers."""
        torch, B, T = self.torch, self.B, self.T
        subject = torch.randint(self.S, (B,), device=self.device)
        relation = torch.randint(self.R, (B,), device=self.device)
        tokens = torch.randint(self.noise, (B, T), device=self.device) + self.S + self.R
        here = torch.randint(T - 1, (B,), device=self.device)
        there = (here + 1 + torch.randint(T - 2, (B,), device=self.device)) % (T - 1)
        tokens[:, T - 1] = self.S + self.R + self.noise
        tokens = tokens.scatter(1, here[:, None], subject[:, None])
        tokens = tokens.scatter(1, there[:, None], self.S + relation[:, None])
        return tokens, self.answers[subject, relation]


def make_model(torch: Any, spec: dict[str, Any]) -> Any:
    """Pre-norm layers with causal attention and learned positions; the answer is read at the last position."""
    nn = torch.nn
    d, H, m, L = spec["dim"], spec["heads"], spec["width"], spec["layers"]
    S, R = spec["subjects"], spec["relations"]
    tokens = S + R + (spec["noise"] or S + R) + 1

    class Layer(nn.Module):
        """Attention and, where the width is above 0, an MLP."""

        def __init__(self) -> None:
            super().__init__()
            self.before = nn.LayerNorm(d)
            self.qkv = nn.Linear(d, 3 * d, bias=False)
            self.out = nn.Linear(d, d, bias=False)
            self.between = nn.LayerNorm(d)
            self.up = nn.Linear(d, m) if m else None
            self.down = nn.Linear(m, d, bias=False) if m else None

        def forward(self, x: Any) -> Any:
            """One layer."""
            B, T, _ = x.shape
            parts = self.qkv(self.before(x)).view(B, T, 3, H, d // H).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(B, T, d))
            if self.up is not None and self.down is not None:
                x = x + self.down(nn.functional.gelu(self.up(self.between(x))))
            return x

    class Model(nn.Module):
        """Embeddings, layers, and logits of all answers."""

        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(tokens, d)
            self.places = nn.Parameter(torch.randn(spec["length"], d) / d**0.5)
            self.layers = nn.ModuleList([Layer() for _ in range(L)])
            self.last = nn.LayerNorm(d)
            self.answers = nn.Linear(d, R * spec["answers"], bias=False)
            nn.init.normal_(self.tokens.weight, std=d**-0.5)
            nn.init.normal_(self.answers.weight, std=d**-0.5)

        def forward(self, sequence: Any) -> Any:
            """The logits at the last position."""
            x = self.tokens(sequence) + self.places
            for layer in self.layers:
                x = layer(x)
            return self.answers(self.last(x[:, -1]))

    return Model()


if __name__ == "__main__":
    main()
