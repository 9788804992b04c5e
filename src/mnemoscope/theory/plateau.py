r"""How long paper B's gradient flow stays on the plateau where only the relation is known.

All weights start at size a. While they are small, a token's attention score w and its values V grow
together: dV/dt = w g and dw/dt = g . V, where g is the token's row of the loss's gradient. Both grow
as exp(|g| t), so the token is learned at about t = ln(1/a) / |g|. With one sequence for every fact
and uniform predictions,

    a relation:  seen in 1/R of the sequences; its D answers each 1/D - 1/(R D) too low, the
                 others 1/(R D) too high:          |g|^2 = (1 - 1/R) / (R^2 D)                (T1)

and, once relations are known, so that an answer of the right relation has probability 1/D,

    a subject:   seen in 1/S of the sequences, with each relation in 1/(S R); one answer
                 1 - 1/D too low, D - 1 others 1/D too high:   |g|^2 = (1 - 1/D) / (S^2 R)    (T2)

The loss stays at ln(R D) until (T1), and then at ln D until (T2). For S much larger than sqrt(R D)
the plateau's length grows as S sqrt(R). This is ours; the paper shows that there is a plateau.
"""

import math


def relation_time(relations: int, answers: int, start: float) -> float:
    """When relations are learned, in steps times step size (T1)."""
    return relations * math.sqrt(answers / (1 - 1 / relations)) * math.log(1 / start)


def subject_time(subjects: int, relations: int, answers: int, start: float) -> float:
    """When subjects are learned, in steps times step size (T2)."""
    return subjects * math.sqrt(relations / (1 - 1 / answers)) * math.log(1 / start)


def plateau_length(subjects: int, relations: int, answers: int, start: float) -> float:
    """The time between the two; 0 where subjects are learned first."""
    return max(0.0, subject_time(subjects, relations, answers, start) - relation_time(relations, answers, start))
