"""Stored trials: one append-only SQLite file, keyed by spec, seed and numerics version."""
