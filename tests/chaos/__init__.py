"""What strangers and accidents do: wrong words on the command line, malformed files, odd requests
to the explorer, damaged stores, kills, full disks and clocks that jump.

    uv run pytest tests/chaos                            the short form, which CI runs too
    uv run pytest tests/chaos --chaos-full -n 0 -s       all of it: an hour, and tallies to read

Seeds are fixed, so that a form is the same every time. What a defect was found by is in both forms.
"""
