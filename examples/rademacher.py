"""An embedding law of one's own: every coordinate is 1/sqrt(d) or -1/sqrt(d)."""

import jax.numpy as jnp

import mnemoscope as mn


def rademacher(words, rows, dim):
    return jnp.sign(mn.normal(words, rows, dim)) / jnp.sqrt(dim)


# Its directions are uniform enough for theory, which knows no more of it than this.
rademacher.moments = mn.Moments(unit_norm=True)

if __name__ == "__main__":
    spec = mn.Retrieval(vocab=64, dim=48, length=8, samples=2000, embedding=rademacher)
    for law in (rademacher, "sphere"):
        run = mn.run(spec.replace(embedding=law), seeds=4)
        print(f"{getattr(law, '__name__', law):12} accuracy {run.interval()}, by {run.spec.path}")
    print(f"{'theory':12} accuracy {mn.predict(spec).accuracy:.3f}: {mn.predict(spec).notes[0]}")
