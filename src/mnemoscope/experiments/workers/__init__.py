"""Run batches of trials in this process, in other processes, or on a cluster."""
