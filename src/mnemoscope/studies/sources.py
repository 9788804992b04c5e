"""The papers that claims come from, cited in full."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper, and the short name under which studies cite it."""

    name: str
    authors: str
    title: str
    venue: str
    arxiv: str

    @property
    def citation(self) -> str:
        """Authors, title, venue with its year, and arXiv number, in one line."""
        return f'{self.authors}: "{self.title}", {self.venue}, arXiv {self.arxiv}'


PAPERS = (
    Paper(
        "paper A",
        "Vural, Bietti, Soltanolkotabi, Wu",
        "Learning to Recall with Transformers Beyond Orthogonal Embeddings",
        "ICLR 2026",
        "2603.15923",
    ),
    Paper(
        "paper B",
        "Nichani, Lee, Bietti",
        "Understanding Factual Recall in Transformers via Associative Memories",
        "ICLR 2025",
        "2412.06538",
    ),
    Paper(
        "paper C",
        "Barnfield, Kim, Nichani, Lee, Lu",
        "Sharp Capacity Thresholds in Linear Associative Memory: From Winner-Take-All to Listwise Retrieval",
        "preprint 2026, version 1",
        "2605.05189",
    ),
    Paper(
        "paper D",
        "Giorlandino, Goldt, Maillard",
        "Factual recall in linear associative memories: sharp asymptotics and mechanistic insights",
        "preprint 2026, version 1",
        "2605.10795",
    ),
)
