"""The command line: thin, from words to a spec to a call."""

import io
import os
import re
import sys

import cyclopts

from mnemoscope.cli.bench import bench
from mnemoscope.cli.bound import bound
from mnemoscope.cli.laws import laws
from mnemoscope.cli.output import complain
from mnemoscope.cli.predict import predict
from mnemoscope.cli.run import run
from mnemoscope.cli.validate import validate
from mnemoscope.numerics import keep_compiled_programs
from mnemoscope.spec import SpecError

app = cyclopts.App(
    name="mnemoscope",
    help="An instrument that shows how much a transformer can learn to recall.",
    version_flags=["--version"],
)
app.command(run)
app.command(predict)
app.command(laws)
app.command(bound)
app.command(validate)
app.command(bench)


def main(words: list[str] | None = None) -> int:
    """Run one command. Exit status: 0 done, 2 the request is wrong, 1 anything else."""
    keep_compiled_programs()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without our letters still gets ours
    try:
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
            return f"{option}: expected a value of its kind: {text}"
        case cyclopts.UnknownCommandError():
            word = re.search(r'"(.*?)"', text)
            names = ", ".join(name for name in app if not name.startswith("-"))
            return f"expected a command out of {names}, got {word[1] if word else text!r}{near}"
    return text
