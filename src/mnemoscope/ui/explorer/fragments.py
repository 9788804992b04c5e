"""Parts of the explorer's page that change: the prediction, and the list of measurements."""

from functools import lru_cache

from mnemoscope.experiments.plan import MEANINGS
from mnemoscope.spec import Retrieval, SpecError
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.theory.bound import coverage_samples, first_gradient_samples
from mnemoscope.theory.predict import Prediction, predict
from mnemoscope.ui.explorer.diagram import formula
from mnemoscope.ui.explorer.measurements import Measurements
from mnemoscope.ui.explorer.state import State
from mnemoscope.ui.pages.render import render


# A page asks again about the same setting whenever only its map has changed.
@lru_cache(maxsize=64)
def _predict(spec: Retrieval, trained: bool) -> Prediction:
    return predict(spec, trained=trained)


def prediction(state: State) -> str:
    """`predict`'s numbers for the setting at the cross, the bounds, and the command for the map."""
    template = "explorer/templates/prediction.html"
    try:
        spec, uniform = state.spec, state.tokens == UNIFORM
        predicted = _predict(spec, state.trained)
        if predicted.accuracy is None:
            return render(template, state=state, complaint="; ".join(predicted.notes))
        return render(
            template,
            state=state,
            complaint="",
            prediction=predicted,
            meaning=MEANINGS[predicted.regime],
            law=formula(state, predicted.regime, spec.width),
            # Both bounds are for uniform tokens.
            coverage=coverage_samples(spec, state.target) if uniform else None,
            gradient=first_gradient_samples(spec, state.target) if uniform and not state.trained else None,
        )
    except SpecError as error:
        return render(template, state=state, complaint=str(error))


def measurement_list(measurements: Measurements, *, complaint: str = "", known: bool = False) -> str:
    """Measurements, the latest first, below the error of a refused order.

    The list polls while a measurement runs or waits. A page that has the list (`known`) gets only the progress.
    """
    return render(
        "explorer/templates/measurements.html",
        measurements=measurements.newest_first(),
        version=measurements.version,
        trials=measurements.finished,
        complaint=complaint,
        known=known,
    )
