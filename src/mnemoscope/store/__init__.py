"""What was computed, kept: one SQLite file, append-only, keyed by spec, seed and numerics."""
