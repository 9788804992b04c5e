"""Which trials to run."""
