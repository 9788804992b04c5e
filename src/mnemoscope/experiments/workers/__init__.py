"""Where batches of trials run: this process, other processes, a cluster."""
