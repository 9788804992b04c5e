"""What a page's order to measure comes to: the setting under the cross, or a curve through it."""

from mnemoscope.ui.explorer import diagram
from mnemoscope.ui.explorer.state import RANGES, State
from mnemoscope.ui.explorer.worker import Order

# Numbers of samples on a measured curve, and how far it reaches to both sides of the crossing.
CURVE_POINTS, REACH = 7, 6.0


def make_order(state: State, what: str, seeds: int) -> tuple[str, Order]:
    """The order in words, and the order: one setting, or seven N around where theory crosses the target."""
    spec = state.spec
    setting = f"V={spec.vocab:,} d={spec.dim:,} L={spec.length:,}"
    if spec.width:
        setting += f" m={spec.width:,} {spec.activation}"
    how_many = f"{seeds} seed" + "s" * (seeds > 1)
    if what == "point":
        return f"{setting} N={spec.samples:,}, {how_many}", Order((spec,), seeds)
    predicted = diagram.draw(state, moving=False)
    middle = diagram.crossing(predicted.samples, predicted.accuracy, state.target) or spec.samples
    least, most = RANGES["samples"]
    low, high = max(least, middle / REACH), min(most, middle * REACH)
    samples = [round(low * (high / low) ** (k / (CURVE_POINTS - 1))) for k in range(CURVE_POINTS)]
    specs = tuple(spec.replace(samples=count) for count in samples)
    return f"{setting} N={samples[0]:,} to {samples[-1]:,}, {how_many} each", Order(specs, seeds)
