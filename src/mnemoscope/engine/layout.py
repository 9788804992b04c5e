"""How a trial uses memory: the form of its tables, and the size of its chunks.

A layout changes speed, memory and the order of sums, and so the last digits, but nothing else. It is
chosen to fit a budget in bytes.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from mnemoscope.engine.device import Precision
from mnemoscope.spec import Retrieval

Platform = Literal["cpu", "gpu"]

# Tables by pair of tokens are indexed with 32 bits.
MOST_DENSE_VOCAB = 46_340

# Tokens in a chunk where a token costs a few scalars. On a CPU: enough to hide a loop's overhead,
# and few enough for the caches. On a GPU: enough to fill it.
TOKENS_PER_CHUNK: dict[Platform, int] = {"cpu": 2**17, "gpu": 2**23}
# Bytes of the largest array of a chunk where every sample has vectors. On a CPU so few that a chunk's hidden units stay
# in its caches: twice as many take half as long again.
BYTES_PER_CHUNK: dict[Platform, int] = {"cpu": 2**23, "gpu": 2**28}
# The most samples in a chunk: what the last chunk may waste on dead rows.
SAMPLES_PER_CHUNK: dict[Platform, int] = {"cpu": 2**12, "gpu": 2**16}
# The most fresh sequences for the accuracy after the first step: attention is still uniform, every sequence costs a
# product with the whole vocabulary, and the answer is close to chance.
UNIFORM_SAMPLES = 256
# Bytes of the logits of a block of tokens, where every token is answered.
BYTES_PER_BLOCK: dict[Platform, int] = {"cpu": 2**26, "gpu": 2**30}
# Scalars handled between two progress reports, and so the delay of Ctrl-C. Work of up to this size
# is one compiled call.
WORK_PER_SEGMENT: dict[Platform, int] = {"cpu": 2**28, "gpu": 2**33}
# Samples that GPU kernels sort by label at a time: the first number where that is all of them, else the second. With an
# MLP each of them has a vector in memory.
ORDERED, ORDERED_MLP = (2**17, 2**20), (2**15, 2**17)
# One array of a chunk may take 1/CHUNK_SHARE of a budget: a few of them are alive at once.
CHUNK_SHARE = 16


class Layout(NamedTuple):
    """Everything about a compiled program that does not affect what it computes."""

    platform: Platform
    # V x V tables of counts and look-ups, or V x d matrices whose products are those tables.
    tables: Literal["dense", "factored"]
    # Samples in a chunk where each token is a look-up in a table.
    by_token: int
    # Samples in a chunk where each has its values (L x d), hidden units and logits.
    by_sample: int
    # Tokens in a block where each has logits over all labels.
    rows: int
    # Scalars in a segment.
    segment: int
    # Samples that are put in the order of their labels at a time, and the most such batches in a segment: a power of
    # two.
    ordered: int = ORDERED[0]
    orders: int = 1


def choose_layout(
    spec: Retrieval, precision: Precision = "float32", platform: Platform = "cpu", budget: int | None = None
) -> Layout:
    """The fastest layout that fits in `budget` bytes; without a budget, in a reasonable size.

    Dense tables are faster wherever they fit. The layout may still exceed the budget with factored
    tables and small chunks; the caller then refuses it.
    """
    size = _bytes_of(precision)
    share = 2**62 if budget is None else budget // CHUNK_SHARE
    tokens = min(TOKENS_PER_CHUNK[platform], share // 4)
    chunk = min(BYTES_PER_CHUNK[platform], share)
    block = min(BYTES_PER_BLOCK[platform], share)
    widest = size * max(spec.length * spec.dim, spec.width, spec.vocab)
    most = SAMPLES_PER_CHUNK[platform]
    by_token = int(np.clip(tokens // spec.length, 1, most))
    few, many = ORDERED_MLP if spec.width else ORDERED
    longest = min(spec.samples, max(by_token, WORK_PER_SEGMENT[platform] // spec.length))
    ordered = few if longest <= few else many
    dense = Layout(
        platform=platform,
        tables="dense",
        by_token=by_token,
        by_sample=int(np.clip(chunk // widest, 1, most)),
        rows=int(np.clip(block // (size * spec.vocab), 1, spec.vocab)),
        segment=WORK_PER_SEGMENT[platform],
        ordered=ordered,
        orders=1 if platform == "cpu" else 2 ** math.ceil(math.log2(-(-longest // ordered))),
    )
    fits = budget is None or sum(needed_bytes(spec, dense, precision).values()) <= budget
    if fits and spec.vocab <= MOST_DENSE_VOCAB:
        return dense
    return dense._replace(tables="factored")


def needed_bytes(spec: Retrieval, layout: Layout, precision: Precision = "float32") -> dict[str, int]:
    """The bytes of a trial's large arrays, by purpose."""
    size = _bytes_of(precision)
    hidden = spec.width or spec.dim
    # The values, hidden units and logits of a chunk, or its tokens; below, with temporaries.
    by_table = spec.width == 0 and spec.eta == "limit" and spec.then == "none" and layout.tables == "dense"
    # Where training goes by tables, only the accuracy under uniform attention needs vectors.
    with_vectors = min(layout.by_sample, UNIFORM_SAMPLES) if by_table else layout.by_sample
    vectors = with_vectors * (spec.length * spec.dim + spec.width + spec.vocab) * size
    tokens = 4 * layout.by_token * spec.length
    needed = {
        "embeddings": 2 * spec.vocab * spec.dim * size,
        "value matrices": 4 * spec.dim * hidden * size,
        "one chunk": 3 * max(vectors, tokens),
        "logits of a block of tokens": 2 * layout.rows * spec.vocab * size,
    }
    if layout.tables == "dense":
        # Counts, and up to three more tables of the same shape.
        needed["tables by pair of tokens"] = spec.vocab**2 * (4 + 3 * size)
    else:
        # Sums by label, the rows of U V1, and temporaries.
        needed["sums by label"] = 5 * spec.vocab * spec.dim * size
    if spec.width:
        needed["hidden units"] = (5 * spec.vocab + spec.dim) * spec.width * size
    if spec.then == "adamw":
        needed["moments"] = 4 * spec.dim * (hidden + spec.dim) * size
    return needed


def _bytes_of(precision: Precision) -> int:
    return 8 if precision == "float64" else 4
