"""Trials whose numbers are kept, so that moving code about can be told from changing it."""
