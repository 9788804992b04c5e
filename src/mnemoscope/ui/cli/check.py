"""`mnemoscope check`: whether an object of the user's own keeps the rules."""

from typing import Annotated

from cyclopts import Parameter

from mnemoscope.spec.objects import import_object
from mnemoscope.studies.conformance import Conformance, check_object
from mnemoscope.ui.cli.options import Json
from mnemoscope.ui.cli.output import deliver, echo, table


def check(
    place: Annotated[
        str, Parameter(name="OBJECT", help="MODULE:OBJECT: a law, a task, a model, an optimiser or a study")
    ],
    /,
    *,
    task: Annotated[
        str | None,
        Parameter(
            metavar="OBJECT", help="the task that a model is tried on, as MODULE:OBJECT [default: a small one of ours]"
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Check an object of your own: what Mnemoscope expects of it, and what is wrong.

    Sample i must depend on its index alone, shapes must fit, a gradient must reach every parameter, the loss must start
    near ln labels, numbers must be finite, and the object must travel to workers. Exit status 1 if anything is wrong.
    A law and a task draw from words: mn.normal(words, rows, dim), mn.below(words, index, bounds) and
    mn.uniform(words, index, count). docs/own.md has an example of each object.
    Example:

    `mnemoscope check mymodel:model --task mytask:Facts`
    """
    found = check_object(place, import_object("object", place), task)
    deliver(found, json, show)
    return 0 if found.passed else 1


def show(found: Conformance) -> None:
    """The checks as a table, and the faults in lines."""
    echo(f"{found.place}, taken for a {found.sort}", style="bold")
    rows = [(rule, "[red]fault[/red]" if fault else "[green]ok[/green]") for rule, fault in found.checks]
    echo(table(("rule", ""), rows, left=("rule", "")))
    rules_of: dict[str, list[str]] = {}  # one mistake may break several rules
    for rule, fault in found.checks:
        if fault:
            rules_of.setdefault(fault, []).append(rule)
    for fault, rules in rules_of.items():
        echo(f"{'; '.join(rules)}: {fault}", style="red")
