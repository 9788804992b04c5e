"""The command line, a thin layer: arguments become a spec, and a spec becomes a call."""

import io
import logging
import os
import re
import signal
import sys
import warnings
from itertools import pairwise

import cyclopts

from mnemoscope.spec import SpecError
from mnemoscope.spec.validators import nearest
from mnemoscope.studies.sources import PAPERS
from mnemoscope.ui.cli.output import complain

# A command is imported when it is called, so that those without a simulator start fast. Its docstring, which is its
# help, begins with the same line.
COMMANDS = {
    "run": "Simulate one setting over several seeds.",
    "predict": "Predict one setting's accuracy from theory, without simulating it.",
    "critical": "Find where accuracy along one axis crosses a target, with an interval.",
    "phase": "Measure a phase diagram over two axes, with theory's contour on it.",
    "fit": "Fit scaling exponents to critical points over several axes, beside theory's.",
    "capacity": "Find the largest size of a task that a model learns, with an interval over seeds.",
    "check": "Check an object of your own: what Mnemoscope expects of it, and what is wrong.",
    "memory": "Find how many items an associative memory holds, with an interval over seeds.",
    "facts": "Train paper B's transformer to recall facts, until it reaches the target.",
    "dynamics": "Follow paper B's gradient flow through its stages, hallucination among them.",
    "reproduce": "Run the claims of the papers and judge each by a rule written beforehand.",
    "report": "Write what `reproduce` found as one HTML file that needs no network.",
    "plan": "Say what d, m and N a job needs, or how much a budget can recall.",
    "explore": "Open the explorer in a browser: a phase diagram with sliders, and a planner.",
    "embeddings": "Inspect an embedding matrix of your own, and measure the recall it allows.",
    "laws": "Show the scaling laws, and a map of which one binds.",
    "bound": "Bound what the first gradient reveals: seen exactly, through noise, or in a few bits.",
    "validate": "Compare theory with simulation, on settings drawn before any was run.",
    "store": "List, export, verify, repair and prune stored trials.",
    "bench": "Time the three steps against automatic differentiation on this machine.",
}

# What people want, in the order of the help, and the commands for it.
PURPOSES = {
    "Simulate": ("run", "facts", "dynamics"),
    "Predict": ("predict", "laws", "bound", "plan"),
    "Measure": ("critical", "phase", "fit", "memory", "capacity", "embeddings"),
    "Judge": ("validate", "reproduce", "report"),
    "Look": ("explore",),
    "Manage": ("store", "check", "bench"),
}

# Built-in models, which `--model` names without a colon, and the module that has commands for them.
MODELS = {"transformer": ("run", "capacity")}

# Options of every command that show more of the package's log.
VERBOSE = {"-v": logging.INFO, "--verbose": logging.INFO, "-vv": logging.DEBUG}
VERBOSE_HELP = "Every command takes -v, which logs what it does on standard error, and -vv, which logs more."
# Help speaks of the first papers: those whose models the commands run.
NAMED = 2


def make_app(called: str, model: str = "") -> cyclopts.App:
    """The application: the command that is called, and one line of help for each of the others.

    With a built-in model, its command takes the place of the one of the same name.
    """
    app = cyclopts.App(
        name="mnemoscope",
        help="An instrument that shows how much a transformer can learn to recall.",
        help_epilogue="\n\n".join([VERBOSE_HELP, *(f"{paper.name}: {paper.citation}" for paper in PAPERS[:NAMED])]),
        version_flags=["--version"],
        suppress_keyboard_interrupt=False,  # `main` handles it, once finished work is stored
    )
    groups: dict[str, cyclopts.Group] = {}
    for order, (purpose, names) in enumerate(PURPOSES.items()):
        groups |= dict.fromkeys(names, cyclopts.Group(purpose, sort_key=order))
    for name, line in COMMANDS.items():
        own = {} if name == called else {"help": line}
        module = model if model and name == called else name
        app.command(f"mnemoscope.ui.cli.{module}:{name}", group=groups[name], name=name, **own)
    return app


def program() -> int:
    """The entry point. Once `main` has returned, an interrupt has nothing left to stop."""
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


def main(words: list[str] | None = None) -> int:
    """Run one command. Exit status: 0 done, 2 the request is wrong, 1 anything else."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # where a terminal cannot show a character
    words = listen(sys.argv[1:] if words is None else words)
    words, model = built_in_model(words)
    app = make_app(words[0] if words else "", model)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"mnemoscope: {message}", file=sys.stderr)
            status = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except SpecError as error:
        return complain(f"{name_of(error.field, app, words)}: {error.message}" if error.field else error.message)
    except cyclopts.CycloptsError as error:
        return complain(describe(error))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader has closed the pipe: discard what is still buffered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status if isinstance(status, int) else 0


def built_in_model(words: list[str]) -> tuple[list[str], str]:
    """The words without `--model NAME` of a built-in model, and its name if the command has one for it."""
    for name, commands in MODELS.items():
        if not words or words[0] not in commands:
            continue
        if f"--model={name}" in words:
            return [word for word in words if word != f"--model={name}"], name
        for at, pair in enumerate(pairwise(words)):
            if pair == ("--model", name):
                return words[:at] + words[at + 2 :], name
    return words, ""


def listen(words: list[str]) -> list[str]:
    """Set the level of the log from -v and -vv; return the other words."""
    loud = [word for word in words if word in VERBOSE]
    level = min((VERBOSE[word] for word in loud), default=logging.WARNING)
    if len(loud) > 1:
        level = logging.DEBUG
    logger = logging.getLogger("mnemoscope")
    logger.setLevel(level)
    logger.handlers = [handler := logging.StreamHandler(sys.stderr)]
    handler.setFormatter(logging.Formatter("mnemoscope: %(message)s"))
    warned: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        """A command may open a store several times; each warning is shown once."""
        if record.levelno < logging.WARNING:
            return True
        text, before = record.getMessage(), len(warned)
        warned.add(text)
        return len(warned) > before

    handler.addFilter(is_new)
    return [word for word in words if word not in VERBOSE]


def name_of(field: str, app: cyclopts.App, words: list[str]) -> str:
    """What a person typed for this field: an option, or an argument by the name that its help gives it."""
    arguments = {
        argument.name.lower(): argument.name
        for argument in app.parse_commands(words)[1][-1].assemble_argument_collection()
        if not argument.name.startswith("-")
    }
    return arguments.get(field, f"--{field.replace('_', '-')}")


def describe(error: cyclopts.CycloptsError) -> str:
    """A parsing error in one line: which option, what was expected, what came."""
    text = " ".join(str(error).split())
    match_ = re.search(r"--[\w-]+", text)
    option = match_[0] if match_ else ""
    hint = re.search(r"Did you mean (.*?)\?", text)
    close = hint[1].replace('"', "'") if hint else ""
    alike = hint and nearest((option or _quoted(text)).lstrip("-"), [close.strip("'").lstrip("-")])
    near = f"; did you mean {close}?" if alike else ""
    match error:
        case cyclopts.UnknownOptionError():
            return f"{option}: expected a known option, got {option!r}{near}"
        case cyclopts.MissingArgumentError():
            return f"{option or (error.argument.name if error.argument else '')}: expected a value, got none"
        case cyclopts.RepeatArgumentError():
            return f"{option}: expected it once, got it several times"
        case cyclopts.UnusedCliTokensError():
            came = text.partition(": ")[2].rstrip(".")
            return f"expected options, which start with --, got {came}"
        case cyclopts.CoercionError():
            reason = error.__cause__.message if isinstance(error.__cause__, SpecError) else str(error.__cause__ or "")
            return f"{option}: {reason or f'expected a value of its kind: {text}'}"
        case cyclopts.UnknownCommandError():
            names = ", ".join(COMMANDS)
            return f"expected a command out of {names}, got {(_quoted(text) or text)!r}{near}"
    return text


def _quoted(text: str) -> str:
    """The word that a parsing error quotes, if it quotes one."""
    word = re.search(r'"(.*?)"', text)
    return word[1] if word else ""
