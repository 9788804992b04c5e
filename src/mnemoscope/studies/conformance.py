"""Whether an object of the user's own keeps the rules: what `mnemoscope check` runs.

Each check returns nothing, or one line that says what is wrong.
"""

import importlib.util
import math
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mnemoscope.engine.random import named_key
from mnemoscope.engine.words import Words
from mnemoscope.models.embeddings import is_frame, law_of, pads
from mnemoscope.spec import Own, Retrieval, SpecError
from mnemoscope.spec.identity import Unhashable, digest
from mnemoscope.spec.objects import name_object, place_in
from mnemoscope.spec.own import is_whole
from mnemoscope.spec.validators import one_line
from mnemoscope.studies.base import Study
from mnemoscope.tasks.own import Lookup
from mnemoscope.tasks.token_files import take_probabilities
from mnemoscope.training.any_kind import simulate
from mnemoscope.training.own import OWN, keys_of, prove, samples_of, shape_of

SAMPLES = 32
ROWS, DIM = 8, 24
# How far two ways to the same numbers may be apart, and a norm from 1.
CLOSE, NORM = 1e-3, 2.0


class Check(NamedTuple):
    """One rule, and what is wrong; empty if nothing is."""

    rule: str
    fault: str


@dataclass(frozen=True)
class Conformance:
    """What an object was taken for, and every check of it."""

    place: str
    sort: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not any(check.fault for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        checks = [{"rule": rule, "passed": not fault, "fault": fault} for rule, fault in self.checks]
        return {"object": self.place, "kind": self.sort, "passed": self.passed, "checks": checks}


Rules = Mapping[str, Callable[[], str]]


def check_object(place: str, thing: Any, task: Any = None) -> Conformance:
    """Run the checks for what the object looks like; a model is tried on `task`, or on a small one of ours."""
    sort, rules = _rules(thing, task)
    if task is not None and sort != "model":
        raise SpecError("task", f"expected it for a model alone, got a {sort} to check")
    return Conformance(place, sort, tuple(Check(rule, _asked(ask)) for rule, ask in rules.items()))


def _asked(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except SpecError as error:
        return error.message
    except Exception as error:  # a user's function may raise anything
        return one_line(error)


def _rules(thing: Any, task: Any) -> tuple[str, Rules]:
    """What an object is, by its parts and parameters, and the rules for it."""
    if isinstance(thing, Study):
        return "study", _study_rules(thing)
    if is_whole("task", thing):
        return "task", _task_rules(thing)
    if is_whole("model", thing):
        return "model", _model_rules(thing, task)
    if hasattr(thing, "init") and hasattr(thing, "update"):
        return "optimiser", _optimiser_rules(thing)
    if not callable(thing):
        sorts = "a law, a law of tokens, a task, a model, an optimiser or a study"
        raise SpecError("object", f"expected {sorts}, got a {type(thing).__name__}")
    code = getattr(thing, "__code__", None)
    names = [] if code is None else list(code.co_varnames[: code.co_argcount])
    if names[1:] == ["rows", "dim"] and len(names) == 3:
        return "law", _law_rules(thing)
    if names in (["vocab"], ["V"]):
        return "law of tokens", _token_rules(thing)
    made = thing()  # a class or a function that makes a task or a model with its default sizes
    for sort, rules in (("task", _task_rules), ("model", lambda one: _model_rules(one, task))):
        if is_whole(sort, made):
            return sort, rules(thing)
    raise SpecError(
        "object",
        "expected parameters (words, rows, dim) of a law, (vocab) of a law of tokens, or sizes of what makes a task or "
        f"a model, got ({', '.join(names)})",
    )


def _shared_rules(thing: Any) -> Rules:
    """What holds for all objects."""

    def hashes() -> str:
        try:
            digest(thing)
        except Unhashable as why:
            return f"expected source and values that can be hashed, got {why}: trials are not kept"
        return ""

    def travels() -> str:
        library: Any = pickle
        if importlib.util.find_spec("cloudpickle") is not None:
            library = importlib.import_module("cloudpickle")
        try:
            library.loads(library.dumps(thing))
        except Exception as error:  # an object's own pickling may raise anything
            return f"expected an object that other processes can be sent, got {one_line(error)}"
        return ""

    return {"has an identity": hashes, "travels to workers": travels}


def _law_rules(thing: Any) -> Rules:
    name = name_object("embedding", thing)
    key = jnp.asarray(named_key(0, "check"))

    def draw(rows: int) -> np.ndarray:
        return np.asarray(law_of(name)(Words(key, DIM), rows, DIM))

    def by_index() -> str:
        if is_frame(name) or np.allclose(draw(ROWS)[:4], draw(4), atol=CLOSE):
            return ""
        return "expected row i to be the same however many rows are drawn, got others (mn.frame says that they depend)"

    def norms() -> str:
        mean = float(np.mean(np.sum(draw(ROWS) ** 2, axis=1)))
        return "" if 1 / NORM < mean < NORM else f"expected squared norms of about 1, got {mean:.3g} on average"

    def finite() -> str:
        made = draw(ROWS)
        return (
            "" if np.isfinite(made).all() else f"expected finite numbers, got {int((~np.isfinite(made)).sum())} others"
        )

    def runs() -> str:
        pads(name)
        sizes = {"vocab": ROWS, "dim": DIM, "length": 2, "samples": 64}
        trial = simulate(Retrieval.read({**sizes, "embedding": name}), 0, device="cpu")
        return "" if trial.status == "ok" else f"expected a trial that ends, got {trial.status}: {trial.message}"

    return {
        "a matrix of rows x dim": lambda: "" if draw(ROWS).shape == (ROWS, DIM) else "shape",
        "finite numbers": finite,
        "the same again": lambda: "" if np.array_equal(draw(ROWS), draw(ROWS)) else "expected equal draws, got others",
        "depends on the index alone": by_index,
        "norms of about 1": norms,
        "runs": runs,
        **_shared_rules(thing),
    }


def _token_rules(thing: Any) -> Rules:
    def probabilities() -> str:
        for vocab in (8, 64):
            take_probabilities({"tokens": thing, "vocab": vocab})
        return ""

    return {"probabilities of V tokens": probabilities, **_shared_rules(thing)}


def _task_rules(thing: Any) -> Rules:
    spec = Own.read({"model": Constant(), "task": thing})
    task = spec.build("task")
    place, words = place_in(spec.task), Words(jnp.asarray(named_key(0, "check")))

    def draw(index: Any) -> Any:
        return samples_of(spec, words, jnp.asarray(index, jnp.uint32))

    def sizes() -> str:
        for name in ("vocab", "labels", "length"):
            value = getattr(task, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                return f"expected a whole number of at least 1 as {name}, got {value!r}"
        return ""

    def bounds() -> str:
        samples = draw(range(SAMPLES))
        known = [("tokens", samples.tokens, task.vocab), ("labels", samples.label, task.labels)]
        known += [] if samples.position is None else [("positions", samples.position, task.length)]
        for what, part, bound in known:
            low, high = int(jnp.min(part)), int(jnp.max(part))
            if low < 0 or high >= bound:
                return f"expected {what} from 0 to {bound - 1} from {place}, got {low if low < 0 else high}"
        return ""

    def by_index() -> str:
        together, back = draw(range(SAMPLES)), draw(range(SAMPLES - 1, -1, -1))
        same = all(
            np.array_equal(one, other[::-1]) for one, other in zip(together, back, strict=True) if one is not None
        )
        return "" if same else "expected sample i to depend on words and index alone, got another in another order"

    def varied() -> str:
        samples = draw(range(256))
        alike = len(np.unique(np.asarray(samples.tokens), axis=0)) == 1
        if alike:
            return "expected samples that differ, got the same for every index"
        return "" if task.labels == 1 or len(np.unique(samples.label)) > 1 else "expected several labels, got one"

    return {
        "sizes": sizes,
        "shapes": lambda: draw(range(4)) and "",
        "tokens, labels and positions in range": bounds,
        "depends on the index alone": by_index,
        "samples differ": varied,
        **_shared_rules(thing),
    }


class Constant:
    """A model that a task is tried with."""

    def init(self, key: Any, task: Any) -> Any:
        return jnp.zeros(task.labels)

    def logits(self, params: Any, tokens: Any) -> Any:
        return jnp.broadcast_to(params, (len(tokens), len(params)))


def _model_rules(thing: Any, task: Any) -> Rules:
    spec = Own.read({"model": thing, "task": Lookup() if task is None else task, "batch": SAMPLES})
    model, of = spec.build("model"), spec.build("task")

    def begun() -> Any:
        return OWN.begin(spec, keys_of(0))

    def logits(tokens: Any) -> np.ndarray:
        world, weights = begun()
        return np.asarray(model.logits(shape_of(spec).join(weights, world.others), tokens))

    def tokens() -> Any:
        return samples_of(spec, begun()[0].words, jnp.arange(SAMPLES, dtype=jnp.uint32)).tokens

    def alone() -> str:
        batch, one = logits(tokens()), logits(tokens()[:1])
        same = np.allclose(batch[:1], one, rtol=CLOSE, atol=CLOSE)
        return "" if same else "expected the logits of a sample whatever else is in the batch, got others"

    def loss_and_gradient() -> tuple[float, list[Any]]:
        world, weights = begun()
        loss, gradient = jax.value_and_grad(lambda w: OWN.loss(spec, world, w, jnp.uint32(0)))(weights)
        return float(loss), gradient

    def start() -> str:
        loss, chance = loss_and_gradient()[0], math.log(of.labels)
        near = chance / 2 <= loss <= chance + 1
        return "" if near else f"expected a loss near ln {of.labels} = {chance:.2f} at the start, got {loss:.3g}"

    def reaches() -> str:
        names = [n for n, trained in zip(shape_of(spec).names, shape_of(spec).trained, strict=True) if trained]
        gradient = loss_and_gradient()[1]
        broken = [name for name, part in zip(names, gradient, strict=True) if not bool(jnp.all(jnp.isfinite(part)))]
        if broken:
            return f"expected a finite gradient of every parameter, got another of {', '.join(broken)}"
        missed = [name for name, part in zip(names, gradient, strict=True) if not bool(jnp.any(part != 0))]
        advice = "name what is not to be trained in `frozen`"
        return f"expected a gradient of every parameter, got none of {', '.join(missed)} ({advice})" if missed else ""

    return {
        "parameters from init": lambda: shape_of(spec) and "",
        "finite logits of the right shape": lambda: prove(spec) or "",
        "the same again": lambda: "" if np.array_equal(logits(tokens()), logits(tokens())) else "got other logits",
        "depends on the sample alone": alone,
        "loss near ln labels at the start": start,
        "a gradient reaches every parameter": reaches,
        **_shared_rules(thing),
    }


def _optimiser_rules(thing: Any) -> Rules:
    def steps() -> str:
        weights = {"a": jnp.ones((3, 2)), "b": jnp.ones(2)}
        updates, _ = thing.update(weights, thing.init(weights), weights)
        shapes = jax.tree.map(jnp.shape, updates) == jax.tree.map(jnp.shape, weights)
        finite = all(bool(jnp.all(jnp.isfinite(part))) for part in jax.tree.leaves(updates))
        return "" if shapes and finite else "expected finite updates of the weights' shapes, got others"

    return {"updates of the weights' shapes": steps, **_shared_rules(thing)}


def _study_rules(study: Study) -> Rules:
    def words() -> str:
        missing = [name for name in ("statement", "expected", "rule") if not getattr(study, name).strip()]
        return f"expected a {missing[0]}, got none" if missing else ""

    def own() -> str:
        return "" if study.source == "own" else f"expected the source 'own', got {study.source!r}"

    return {"a statement, an expectation and a rule": words, "is its author's": own}
