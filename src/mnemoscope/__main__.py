"""`python -m mnemoscope` is the same as `mnemoscope`."""

import sys

from mnemoscope.ui.cli import program

sys.exit(program())
