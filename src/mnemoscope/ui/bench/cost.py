"""Forecasts of how long the measurements of `bench` take."""

from mnemoscope.experiments.cost import autodiff_seconds, compile_seconds, scaled, training_seconds
from mnemoscope.experiments.forecast import Forecast, counted, of_jobs
from mnemoscope.spec import Retrieval
from mnemoscope.ui.bench import transformer
from mnemoscope.ui.bench.diagram import DIAGRAMS, diagram_jobs
from mnemoscope.ui.bench.facts import RATES, SEEDS, SETTING
from mnemoscope.ui.bench.growth import AXES
from mnemoscope.ui.bench.profile import REPEATS
from mnemoscope.ui.bench.sweeps import SIZES, sweep_jobs
from mnemoscope.ui.bench.transformer import small

# To start a process and draw its samples.
START_SECONDS = 4.0
# The stages of a profile, each compiled alone.
STAGES = 8


def of_case(spec: Retrieval, repeats: int, platform: str, *, with_autodiff: bool = True) -> Forecast:
    """Both sides of a case, or ours alone."""
    start = START_SECONDS + compile_seconds(spec, platform)
    seconds = start + (repeats + 1) * training_seconds(spec, platform)
    if with_autodiff:
        seconds += start + (min(3, repeats) + 1) * autodiff_seconds(spec, platform)
    seconds = scaled(seconds, platform)
    return Forecast(seconds, seconds, "a case")


def of_growth(base: Retrieval, doublings: int, repeats: int, platform: str) -> Forecast:
    """Ours along every axis."""
    seconds = [
        of_case(base.replace(**{axis: getattr(base, axis) * 2**k}), repeats, platform, with_autodiff=False).usual
        for axis in AXES
        for k in range(doublings + 1)
    ]
    return Forecast(sum(seconds), sum(seconds), f"{counted(len(seconds), 'size')} along its axes")


def of_diagram(platform: str) -> Forecast:
    """The standing diagram, twice."""
    forecast = of_jobs(diagram_jobs(**DIAGRAMS["cpu" if platform == "cpu" else "gpu"]), platform)
    return Forecast(2 * forecast.usual, 2 * forecast.most, f"{forecast.what}, twice")


def of_sweeps(platform: str) -> Forecast:
    """The sweeps, each twice and once one by one."""
    forecast = of_jobs([job for size in SIZES for job in sweep_jobs(*size, platform)], platform)
    return Forecast(3 * forecast.usual, 3 * forecast.most, f"{forecast.what}, three times")


def of_trainings(platform: str) -> Forecast:
    """Trainings side by side and the longest alone, both twice."""
    jobs = [(SETTING.replace(lr=rate), seed) for rate in RATES for seed in range(SEEDS)]
    forecast = of_jobs([*jobs, jobs[0]], platform)
    return Forecast(2 * forecast.usual, 2 * forecast.most, f"{forecast.what}, twice")


def of_transformer(platform: str, *, quick: bool) -> Forecast:
    """The same for a small transformer."""
    spec = small(transformer.SETTING) if quick else transformer.SETTING
    jobs = [(spec.replace(lr=rate), seed) for rate in transformer.RATES for seed in range(transformer.SEEDS)]
    forecast = of_jobs([*jobs, jobs[0]], platform)
    return Forecast(2 * forecast.usual, 2 * forecast.most, f"{forecast.what}, twice")


def of_stages(spec: Retrieval, platform: str) -> Forecast:
    """Every stage of the steps alone."""
    seconds = (REPEATS + 1) * 2 * training_seconds(spec, platform)
    seconds = scaled(seconds + STAGES * compile_seconds(spec, platform) / 3, platform)
    return Forecast(seconds, seconds, counted(STAGES, "stage"))
