"""Predictions from the spec alone: no simulation, no fitted number.

Shares only `spec` with the simulator, so that agreement between the two means something. The
derivations stand in docs/theory; the numbers in brackets in this code are its equations.
"""
