"""Where a trained `Transformer` looks: the attention of every head on one sequence, token by token."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.spec import SpecError, Transformer
from mnemoscope.spec.summary import Summary, brief, number
from mnemoscope.spec.validators import Device
from mnemoscope.training.answering import look
from mnemoscope.training.transformer import TRANSFORMER

# Sequences that are asked for; the first of these counts is drawn.
MOST_SEQUENCES = 1024


@dataclass(frozen=True, repr=False)
class AttentionMaps(Drawable, Tabular):
    """The weights of every layer and head on one sequence, from each position at which an answer is read."""

    figure: ClassVar[str] = "attention_maps"
    axes: ClassVar[tuple[str, ...]] = ("layer", "head", "reader", "position")
    spec: Transformer
    seed: int
    accuracy: float | None
    tokens: tuple[str, ...]
    answers: tuple[str, ...]
    named: tuple[str, ...]
    weights: np.ndarray  # layers x heads x readers x positions

    def records(self) -> list[dict[str, Any]]:
        """A row for each weight."""
        return [
            {
                "layer": place[0] + 1,
                "head": place[1] + 1,
                "reader": place[2],
                "position": place[3],
                "weight": float(weight),
            }
            for place, weight in np.ndenumerate(self.weights)
        ]

    def summary(self) -> Summary:
        """Where each head looks most when the last answer is read."""
        rows = [
            (f"{layer + 1}", f"{head + 1}", self.tokens[int(np.argmax(line))], number(float(np.max(line))))
            for layer, heads in enumerate(self.weights[:, :, -1])
            for head, line in enumerate(heads)
        ]
        numbers = {
            "accuracy": number(self.accuracy),
            "sequence": " ".join(self.tokens),
            "answer": f"{self.answers[-1]}, named {self.named[-1]}",
        }
        title = f"{brief(self.spec)}, seed {self.seed}"
        return Summary(title, numbers, ("layer", "head", "looks at", "weight"), tuple(rows))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "spec": self.spec.model_dump(),
            "seed": self.seed,
            "accuracy": self.accuracy,
            "tokens": list(self.tokens),
            "answers": list(self.answers),
            "named": list(self.named),
            "weights": self.weights.tolist(),
        }


def attention_maps(spec: Transformer, seed: int = 0, *, sequence: int = 0, device: Device = "auto") -> AttentionMaps:
    """Train one seed, and show where its heads look on a test sequence; weights are not kept, so it trains again."""
    if not 0 <= sequence < MOST_SEQUENCES:
        raise SpecError("sequence", f"expected a whole number from 0 to {MOST_SEQUENCES - 1}, got {sequence}")
    last: list[Any] = []

    def watch(world: Any, weights: Any, _: Any) -> None:
        last[:] = [world, weights]

    program = TRANSFORMER.program(spec, _platform(device))
    (trial,) = TRANSFORMER.run([(spec, seed)], device, watch=watch)
    world, weights = jax.tree.map(lambda part: part[0], tuple(last))
    return show_maps(spec, program, world, weights, seed=seed, sequence=sequence, accuracy=trial.accuracy)


def show_maps(
    spec: Transformer,
    program: Transformer,
    world: Any,
    weights: Any,
    *,
    seed: int,
    sequence: int = 0,
    accuracy: float | None = None,
) -> AttentionMaps:
    """The maps of one training's weights."""
    looks = look(program, world, weights, sequence + 1)
    tokens, answers, named = (np.asarray(part)[sequence].tolist() for part in looks[:3])
    maps = np.stack([np.asarray(layer, float)[sequence] for layer in looks.weights])
    return AttentionMaps(
        spec,
        seed,
        accuracy,
        tuple(token_name(spec, token) for token in tokens),
        tuple(answer_name(spec, answer) for answer in answers),
        tuple(answer_name(spec, answer) for answer in named),
        maps,
    )


def token_name(spec: Transformer, token: int) -> str:
    """A token for people: s subject, r relation, n noise, k key, v value, g group, * trigger."""
    if spec.task == "facts":
        parts = (("s", spec.subjects), ("r", spec.relations), ("n", spec.noise_tokens))
        for letter, count in parts:
            if token < count:
                return f"{letter}{token}"
            token -= count
        return "end" if token == 0 else f"s{spec.subjects + token - 1}"
    if spec.task == "mqar":
        half = spec.vocab // 2
        return f"k{token}" if token < half else f"v{token - half}"
    if token >= spec.vocab:
        if spec.task == "random-strings":
            return "begin"
        return f"g{token - spec.vocab}" if spec.cue == "query" else "end"
    return f"{token}*" if spec.task == "induction" and token < spec.triggers else str(token)


def answer_name(spec: Transformer, answer: int) -> str:
    """An answer for people; that of a fact with its relation."""
    if spec.task == "facts":
        return f"r{answer // spec.answers}:{answer % spec.answers}"
    return str(answer) if spec.task == "retrieval" else token_name(spec, answer)


def _platform(device: Device) -> str:
    from mnemoscope.engine.device import find_device

    return find_device(device).platform
