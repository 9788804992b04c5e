"""The tasks of a `Transformer`, as far as a setting knows them: which sizes each has, and what these come to.

    facts           a subject and a relation among noise; name the answer that this pair has been given
    retrieval       one token of a sequence is asked for, by a mark or by a query; name its label
    mqar            pairs of a key and a value, then some of the keys; name the value of each
    induction       a Markov chain in which a few tokens have a successor of the sequence's own; name it
    random-strings  strings of uniform tokens, to be learned by heart

Where samples come from is in `tasks.sequences`. Here is only arithmetic, so that a setting is checked without JAX.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

from mnemoscope.spec.base import SpecError
from mnemoscope.spec.token_laws import UNIFORM

TaskName = Literal["facts", "retrieval", "mqar", "induction", "random-strings"]
# The fields of a setting that each task has; another task's are refused.
FIELDS: dict[str, tuple[str, ...]] = {
    "facts": (
        *("subjects", "relations", "answers", "noise", "length", "query", "overlap"),
        *("frequencies", "new_subjects", "first_steps"),
    ),
    "retrieval": ("vocab", "length", "cue", "groups"),
    "mqar": ("vocab", "pairs", "queries"),
    "induction": ("vocab", "length", "triggers"),
    "random-strings": ("vocab", "length", "strings"),
}
# What grows when a task gets more to recall: the count that `capacity --along facts` varies.
GROWS = {"facts": "subjects", "retrieval": "vocab", "mqar": "pairs", "induction": "vocab", "random-strings": "strings"}
# The most facts with frequencies of their own, which take a table.
MOST_IN_TABLE = 2**22


@dataclass(frozen=True)
class TaskSizes:
    """What the model sees of a task.

    Tokens of the vocabulary, answers to choose from, positions of a sequence, and the positions `first` to `last` (from
    0, both counted) at which an answer is read.
    """

    tokens: int
    outputs: int
    positions: int
    first: int
    last: int
    # Whether answer a is the token a, so that its embedding may serve for both.
    answers_are_tokens: bool
    # Facts or strings that are finitely many and have been drawn once; 0 for a task that is new in every sequence.
    items: int = 0
    # What one of them is worth: the bits of an answer that nothing else tells.
    bits_each: float = 0.0

    @property
    def reads(self) -> int:
        """How many answers are read from a sequence."""
        return self.last - self.first + 1


def sizes_of(spec: Any) -> TaskSizes:
    """The sizes of a setting's task."""
    return _SIZES[spec.task](spec)


def _facts(spec: Any) -> TaskSizes:
    S, R, D = spec.subjects + spec.new_subjects, spec.relations, spec.answers
    tokens = S + R + spec.noise_tokens + 1
    T = spec.length
    # An answer is uniform over the D of its relation: log2 D bits.
    # A second batch is trained, but what is stored is asked of the first.
    return TaskSizes(tokens, R * D, T, T - 1, T - 1, False, spec.subjects * R, math.log2(D))


def _retrieval(spec: Any) -> TaskSizes:
    V, T = spec.vocab, spec.length + 1
    queries = spec.groups if spec.cue == "query" else 1
    # The label of a token is uniform over all of them (nearly: labels are a permutation).
    return TaskSizes(V + queries, V, T, T - 1, T - 1, True, V, math.log2(V))


def _mqar(spec: Any) -> TaskSizes:
    T = 2 * spec.pairs + spec.queries
    return TaskSizes(spec.vocab, spec.vocab, T, 2 * spec.pairs, T - 1, True)


def _induction(spec: Any) -> TaskSizes:
    return TaskSizes(spec.vocab, spec.vocab, spec.length, 0, spec.length - 1, True)


def _strings(spec: Any) -> TaskSizes:
    V, T = spec.vocab, spec.length
    # A string of T uniform tokens has T log2 V bits. The token that begins a sequence is one more.
    return TaskSizes(V + 1, V, T, 0, T - 1, True, spec.strings, T * math.log2(V))


_SIZES = {"facts": _facts, "retrieval": _retrieval, "mqar": _mqar, "induction": _induction, "random-strings": _strings}


def check_task(spec: Any) -> None:
    """Refuse sizes that make no task, and those of another task."""
    mine = FIELDS[spec.task]
    for fields in FIELDS.values():
        for name in fields:
            value = getattr(spec, name)
            if name not in mine and value != type(spec).model_fields[name].default:
                of = " or ".join(task for task, known in FIELDS.items() if name in known)
                raise SpecError(name, f"expected it with the task {of}, got it with {spec.task}")
    _CHECKS.get(spec.task, lambda spec: None)(spec)


def _check_facts(spec: Any) -> None:
    if spec.length < 3:
        raise SpecError("length", f"expected at least 3 with the task facts, got {spec.length}")
    if spec.answers > spec.subjects:
        limit = f"at most subjects = {spec.subjects}, since a relation has no more facts than that"
        raise SpecError("answers", f"expected {limit}, got {spec.answers}")
    if spec.overlap and spec.query == "end":
        why = "0 with the query end: among several relations nothing would say which one is asked for"
        raise SpecError("overlap", f"expected {why}, got {spec.overlap:g}")
    if spec.frequencies != UNIFORM and spec.subjects * spec.relations > MOST_IN_TABLE:
        limit = f"uniform with more than {MOST_IN_TABLE:,} facts, since others take a table of them"
        raise SpecError("frequencies", f"expected {limit}, got {spec.frequencies!r}")
    if spec.frequencies != UNIFORM and spec.new_subjects:
        raise SpecError("frequencies", f"expected uniform with new_subjects, got {spec.frequencies!r}")
    if bool(spec.new_subjects) != bool(spec.first_steps):
        given, missing = ("new_subjects", "first_steps") if spec.new_subjects else ("first_steps", "new_subjects")
        raise SpecError(missing, f"expected at least 1 with {given} = {getattr(spec, given)}, got 0")
    if spec.first_steps >= spec.max_steps:
        raise SpecError("first_steps", f"expected fewer than max_steps = {spec.max_steps:,}, got {spec.first_steps:,}")


def _check_retrieval(spec: Any) -> None:
    if spec.cue == "mark":
        if spec.groups != type(spec).model_fields["groups"].default:
            raise SpecError("groups", f"expected it with the cue query, got {spec.groups} with the cue mark")
    elif spec.vocab % spec.groups or spec.groups < 2:
        raise SpecError("groups", f"expected a divisor of vocab = {spec.vocab} from 2 on, got {spec.groups}")


def _check_mqar(spec: Any) -> None:
    if spec.vocab % 2:
        raise SpecError("vocab", f"expected an even number, half keys and half values, got {spec.vocab}")
    if spec.pairs > spec.vocab // 2:
        raise SpecError(
            "pairs", f"expected at most the {spec.vocab // 2} keys of vocab = {spec.vocab}, got {spec.pairs}"
        )
    if spec.queries > spec.pairs:
        raise SpecError("queries", f"expected at most pairs = {spec.pairs}, got {spec.queries}")


def _check_induction(spec: Any) -> None:
    if spec.vocab < 2:
        raise SpecError("vocab", f"expected at least 2 with the task induction, got {spec.vocab}")
    if spec.triggers > spec.vocab:
        raise SpecError("triggers", f"expected at most vocab = {spec.vocab}, got {spec.triggers}")


_CHECKS = {"facts": _check_facts, "retrieval": _check_retrieval, "mqar": _check_mqar, "induction": _check_induction}
