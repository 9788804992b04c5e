"""`python -m mnemoscope` is the same as `mnemoscope`."""

import sys

from mnemoscope.cli import program

sys.exit(program())
