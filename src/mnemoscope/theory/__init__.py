"""Predictions from the spec alone: no simulation, no fitted number.

Theory shares only `spec` with the simulator, so agreement between the two means something.
The derivations are in docs/theory; numbers in brackets, such as (A18), are its equations.
"""

from mnemoscope.theory import embedding_laws as embedding_laws  # registers its laws
