"""CUDA kernels for the passes over the samples, compiled at run time and called from inside `jit`."""
