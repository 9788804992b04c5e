"""The command line: thin, from words to a spec to a call."""

import sys

import cyclopts

from mnemoscope.cli.bench import bench
from mnemoscope.cli.output import complain
from mnemoscope.cli.run import run
from mnemoscope.numerics import keep_compiled_programs
from mnemoscope.spec import SpecError

app = cyclopts.App(
    name="mnemoscope",
    help="An instrument that shows how much a transformer can learn to recall.",
    version_flags=["--version"],
)
app.command(run)
app.command(bench)


def main(words: list[str] | None = None) -> int:
    """Run one command. Exit status: 0 done, 2 the request is wrong, 1 anything else."""
    keep_compiled_programs()
    try:
        status = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except SpecError as error:
        return complain(f"--{error.field.replace('_', '-')}: {error.message}")
    except cyclopts.CycloptsError as error:
        return complain(" ".join(str(error).split()))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 1
    return status if isinstance(status, int) else 0
