"""The explorer's page as first served; its script requests everything that depends on the setting."""

from mnemoscope.spec import LETTERS, Retrieval
from mnemoscope.ui.explorer.state import CHOICES, MOST_ZIPF, RANGES, State, axes_of
from mnemoscope.ui.pages.render import render

MOST_SEEDS = 32
TITLES = dict(vocab="tokens", dim="dimension", length="sequence length", samples="training samples", width="MLP width")
SIZES = [
    {
        "name": name,
        "letter": LETTERS[name],
        "title": title,
        "description": Retrieval.model_fields[name].description or "",
        "low": RANGES[name][0],
        "high": RANGES[name][1],
        "optional": name == "width",  # 0 is no MLP
    }
    for name, title in TITLES.items()
]


def explorer(state: State, complaint: str, token: str) -> str:
    """The page with the sliders."""
    return render(
        "explorer/templates/explorer.html",
        state=state,
        complaint=complaint,
        token=token,
        sizes=SIZES,
        choices={name: [(value, value) for value in values] for name, values in CHOICES.items()},
        axes=[(name, f"{LETTERS[name]}, {name}") for name in axes_of(state.tokens)],
        most_seeds=MOST_SEEDS,
        most_zipf=MOST_ZIPF,
    )
