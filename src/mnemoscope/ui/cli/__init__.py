"""The command line: thin, from words to a spec to a call."""

import io
import logging
import os
import re
import signal
import sys
import warnings
from typing import Any

import cyclopts

from mnemoscope.spec import SpecError
from mnemoscope.ui.cli.output import complain

# Commands are loaded when called for, so that what needs no simulator does not wait for it. Each
# one's own help is its docstring, which begins with this line.
COMMANDS = {
    "run": "Simulate one setting over several seeds.",
    "predict": "Predict one setting's accuracy from theory, without simulating it.",
    "critical": "Find where accuracy along one axis crosses a target, with an interval.",
    "phase": "Measure a phase diagram over two axes, with theory's contour on it.",
    "fit": "Fit scaling exponents to critical points over several axes, beside theory's.",
    "memory": "Find how many items an associative memory holds, with an interval over seeds.",
    "facts": "Train paper B's transformer to recall facts, until it reaches the target.",
    "dynamics": "Follow paper B's gradient flow through its stages, hallucination among them.",
    "reproduce": "Run the claims of the papers and judge each by a rule written beforehand.",
    "report": "Show what `reproduce` found: one HTML file that needs no network.",
    "plan": "Say what d, m and N a job needs, or how much a budget can recall.",
    "explore": "Open the explorer: a phase diagram under sliders, and a planner, in a browser.",
    "embeddings": "Look at an embedding matrix of your own, and at the recall that it allows.",
    "laws": "Show the scaling laws, and the map of which one binds.",
    "bound": "Bound what the first gradient tells: seen exactly, through noise, or in a few bits.",
    "validate": "Hold theory against simulation, on settings drawn before any was run.",
    "store": "Look at what was kept, take it elsewhere, check it, mend it, clear it out.",
    "bench": "Time the three steps against jitted automatic differentiation on this machine.",
}

# Words that every command takes, for more of what the package has to say.
VERBOSE = {"-v": logging.INFO, "--verbose": logging.INFO, "-vv": logging.DEBUG}


def make_app(called: str) -> cyclopts.App:
    """The application, with the command that is called and a line for each of the others."""
    app = cyclopts.App(
        name="mnemoscope",
        help="An instrument that shows how much a transformer can learn to recall.",
        help_epilogue="With every command: -v says more of what is done, -vv still more, on standard error.",
        version_flags=["--version"],
        suppress_keyboard_interrupt=False,  # `main` answers it, after what was finished is kept
    )
    for name, line in COMMANDS.items():
        more = {} if name == called else {"help": line}
        app.command(f"mnemoscope.ui.cli.{name}:{name}", **more)
    return app


def program() -> int:
    """What is called `mnemoscope`. After its last word an interrupt has nothing left to stop."""
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


def main(words: list[str] | None = None) -> int:
    """Run one command. Exit status: 0 done, 2 the request is wrong, 1 anything else."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without our letters still gets ours
    words = listen(sys.argv[1:] if words is None else words)
    app = make_app(words[0] if words else "")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say_in_one_line
            status = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except SpecError as error:
        option = f"--{error.field.replace('_', '-')}: " if error.field else ""
        return complain(option + error.message)
    except cyclopts.CycloptsError as error:
        return complain(in_our_words(error))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever read our output has seen enough. What is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status if isinstance(status, int) else 0


def listen(words: list[str]) -> list[str]:
    """Show what the package logs, as much as -v and -vv ask for; the words without them."""
    loud = [word for word in words if word in VERBOSE]
    level = min((VERBOSE[word] for word in loud), default=logging.WARNING)
    if len(loud) > 1:
        level = logging.DEBUG
    logger = logging.getLogger("mnemoscope")
    logger.setLevel(level)
    logger.handlers = [handler := logging.StreamHandler(sys.stderr)]
    handler.setFormatter(logging.Formatter("mnemoscope: %(message)s"))
    return [word for word in words if word not in VERBOSE]


def _say_in_one_line(message: Warning | str, *where: Any) -> None:
    """Warnings go beside the output, each a line without the place in our code it comes from."""
    print(f"mnemoscope: {message}", file=sys.stderr)


def in_our_words(error: cyclopts.CycloptsError) -> str:
    """What is wrong with the words themselves: which option, what was expected, what came."""
    text = " ".join(str(error).split())
    found = re.search(r"--[\w-]+", text)
    option = found[0] if found else ""
    hint = re.search(r"Did you mean (.*?)\?", text)
    near = f"; did you mean {hint[1]}?" if hint else ""
    match error:
        case cyclopts.UnknownOptionError():
            return f"{option}: expected a known option, got {option!r}{near}"
        case cyclopts.MissingArgumentError():
            return f"{option}: expected a value, got none"
        case cyclopts.RepeatArgumentError():
            return f"{option}: expected it once, got it several times"
        case cyclopts.UnusedCliTokensError():
            came = text.partition(": ")[2].rstrip(".")
            return f"expected options, which start with --, got {came}"
        case cyclopts.CoercionError():
            reason = error.__cause__.message if isinstance(error.__cause__, SpecError) else str(error.__cause__ or "")
            return f"{option}: {reason or f'expected a value of its kind: {text}'}"
        case cyclopts.UnknownCommandError():
            word = re.search(r'"(.*?)"', text)
            names = ", ".join(COMMANDS)
            return f"expected a command out of {names}, got {word[1] if word else text!r}{near}"
    return text
