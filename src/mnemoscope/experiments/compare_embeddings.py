"""Recall with a user's matrix of embeddings, compared with random embeddings of its shape.

Four variants run on the same sequences: the matrix as it is, centred, whitened, and random embeddings. Centring
removes the mean bias, whitening all anisotropy: what each gains is the cost of that part of the geometry.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from mnemoscope.experiments.drawable import Drawable
from mnemoscope.experiments.estimate.estimate import Estimate
from mnemoscope.experiments.estimate.geometry import Geometry, look_at
from mnemoscope.experiments.estimate.intervals import mean_interval
from mnemoscope.experiments.signatures import spells_out
from mnemoscope.experiments.tabular import Tabular
from mnemoscope.experiments.tools import GivenTools, Tools, open_tools
from mnemoscope.models.matrices import Matrices, keep, read_matrices
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.summary import Summary, brief, number
from mnemoscope.theory.critical import critical_value

WAYS = {"as it is": {}, "centred": {"centre": True}, "whitened": {"whiten": True}}
# The default vocabulary (less if the file has fewer rows) and length, and the accuracy that N is chosen for.
USUAL_VOCAB, USUAL_LENGTH, AIM = 512, 16, 0.8


@dataclass(frozen=True)
class Variant:
    """One variant: its geometry, its setting, and the accuracy it reached."""

    name: str
    geometry: Geometry | None
    spec: Retrieval
    accuracy: Estimate
    attention: Estimate

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "name": self.name,
            "embedding": self.spec.embedding,
            "geometry": None if self.geometry is None else self.geometry.as_dict(),
            "accuracy": self.accuracy.ends("mean"),
            "attention_accuracy": self.attention.ends("mean"),
        }


@dataclass(frozen=True, repr=False)
class Comparison(Drawable, Tabular):
    """A matrix as it is, centred and whitened, beside random embeddings of its shape."""

    figure: ClassVar[str] = "spectrum"
    axes: ClassVar[tuple[str, ...]] = ("name",)
    random: Retrieval
    variants: tuple[Variant, ...]

    def records(self) -> list[dict[str, Any]]:
        """A row for each variant."""
        rows = []
        for variant in self.variants:
            attention = {f"attention_{name}": value for name, value in variant.attention.ends("mean").items()}
            shape = {} if variant.geometry is None else variant.geometry.as_dict()
            known = {name: value for name, value in shape.items() if isinstance(value, int | float)}
            rows.append({"name": variant.name, **variant.accuracy.ends("accuracy"), **attention, **known})
        return rows

    def summary(self) -> Summary:
        """The recall that each variant allows."""
        rows = tuple((variant.name, str(variant.accuracy), str(variant.attention)) for variant in self.variants)
        numbers = {variant.name: number(variant.accuracy.value) for variant in self.variants}
        return Summary(brief(self.random), numbers, ("embeddings", "accuracy", "attention"), rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        setting = {name: getattr(self.random, name) for name in ("vocab", "dim", "length", "samples")}
        return {"setting": setting, "ways": [variant.as_dict() for variant in self.variants]}


@spells_out(open_tools)
def compare_embeddings(
    source: Any,
    *,
    vocab: int | None = None,
    dim: int | None = None,
    length: int = USUAL_LENGTH,
    samples: int | None = None,
    seeds: int | Sequence[int] = 4,
    **given: Unpack[GivenTools],
) -> Comparison:
    """Recall with a matrix of embeddings, an array or a file, beside random embeddings of its shape.

    `vocab` rows are drawn at random by each seed (up to 512 by default); `dim` is needed where the matrix has more
    columns than rows. Without `samples`, N is the least at which theory predicts 0.8 for random embeddings.
    """
    forms, random = prepare_ways(source, dim=dim, vocab=vocab, length=length, samples=samples)
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    with open_tools(**given) as opened:
        return Comparison(random, tuple(compare_ways(forms, random, seeds=numbers, tools=opened)))


def prepare_ways(
    source: Any,
    *,
    dim: int | None = None,
    vocab: int | None = None,
    length: int = USUAL_LENGTH,
    samples: int | None = None,
) -> tuple[dict[str, Matrices], Retrieval]:
    """Every form of the matrix, and the setting with random embeddings of its shape.

    Without `samples`, N is the least at which random embeddings reach AIM by theory.
    """
    forms = {name: read_matrices(source, dim=dim, **how) for name, how in WAYS.items()}
    rows, columns = forms["as it is"].Z.shape
    tokens = min(rows, USUAL_VOCAB) if vocab is None else vocab
    if tokens > rows:
        raise SpecError("vocab", f"expected at most {rows:,}, the rows of the file, got {tokens:,}")
    sizes = {"vocab": tokens, "dim": columns, "length": length, "samples": samples or 1}
    random = Retrieval.read(sizes)
    if samples is None:
        needed = critical_value(random, "samples", AIM)
        if needed is None:
            raise SpecError(
                "samples", f"expected a number, since random embeddings do not reach {AIM:g} at any N here, got none"
            )
        random = random.replace(samples=needed)
    return forms, random


def compare_ways(forms: dict[str, Matrices], random: Retrieval, *, seeds: Sequence[int], tools: Tools) -> list[Variant]:
    """The geometry and the recall of every variant."""
    specs = {name: random.replace(embedding=keep(matrices)) for name, matrices in forms.items()}
    specs["random"] = random
    jobs = [(spec, seed) for spec in specs.values() for seed in seeds]
    trials = tools.run(jobs)
    variants = []
    for name, spec in specs.items():
        good = [trial for (owner, _), trial in trials.items() if owner == spec and trial.status == "ok"]
        intervals = [
            mean_interval([v for v in values if v is not None], float(spec.test_samples))
            for values in ([trial.accuracy for trial in good], [trial.attention_accuracy for trial in good])
        ]
        geometry = look_at(forms[name].Z) if name in forms else None
        variants.append(Variant(name, geometry, spec, intervals[0], intervals[1]))
    return variants
