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
    Paper(
        "paper E",
        "Kim, Nichani, Wu, Bietti, Lee",
        "Sharp Capacity Scaling of Spectral Optimizers in Learning Associative Memory",
        "preprint 2026, version 2",
        "2603.26554",
    ),
    Paper(
        "paper F",
        "Li, Wang, Zhong, Lu, Wang",
        "Muon in Associative Memory Learning: Training Dynamics and Scaling Laws",
        "ICML 2026, version 3",
        "2602.05725",
    ),
    Paper(
        "paper G",
        "Wang, Zhang, Li, Du, Du, Pang, Yang, Hong, Tan",
        "Muon Outperforms Adam in Tail-End Associative Memory Learning",
        "preprint 2025, version 2",
        "2509.26030",
    ),
    Paper("paper H", "Cabannes, Dohmatob, Bietti", "Scaling Laws for Associative Memories", "ICLR 2024", "2310.02984"),
    Paper(
        "paper I",
        "Cabannes, Simsek, Bietti",
        "Learning Associative Memories with Gradient Descent",
        "ICML 2024",
        "2402.18724",
    ),
    Paper(
        "paper J",
        "Ravfogel, Yehudai, Bruna, Bietti",
        "Geometric Factual Recall in Transformers",
        "preprint 2026, version 1",
        "2605.12426",
    ),
    Paper(
        "paper K",
        "Bietti, Cabannes, Bouchacourt, Jegou, Bottou",
        "Birth of a Transformer: A Memory Viewpoint",
        "NeurIPS 2023",
        "2306.00802",
    ),
    Paper(
        "paper L",
        "Arora, Eyuboglu, Timalsina, Johnson, Poli, Zou, Rudra, Ré",
        "Zoology: Measuring and Improving Recall in Efficient Language Models",
        "ICLR 2024",
        "2312.04927",
    ),
    Paper(
        "paper M",
        "Zucchet, Bornschein, Chan, Lampinen, Pascanu, De",
        "How do language models learn facts? Dynamics, curricula and hallucinations",
        "preprint 2025, version 1",
        "2503.21676",
    ),
    Paper(
        "paper N",
        "Allen-Zhu, Li",
        "Physics of Language Models: Part 3.3, Knowledge Capacity Scaling Laws",
        "preprint 2024, version 1",
        "2404.05405",
    ),
    Paper(
        "paper O",
        "Morris, Sitawarin, Guo, Kokhlikyan, Suh, Rush, Chaudhuri, Mahloujifar",
        "How much do language models memorize?",
        "preprint 2025",
        "2505.24832",
    ),
    Paper(
        "paper P",
        "Dugan, Garcia, Junkins, Liu, Zinsley, Eyuboglu, Rudra, Ré",
        "Constructing Efficient Fact-Storing MLPs for Transformers",
        "preprint 2025, version 1",
        "2512.00207",
    ),
)
