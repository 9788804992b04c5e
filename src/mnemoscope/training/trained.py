"""Kinds that train step by step: a task, a model, an optimiser, and a stopping rule.

A subclass defines what is drawn (`begin`), minimised (`loss`) and measured (`measure`), each for one
training. This class does the rest: it rounds sizes up to programs that many settings share, runs
trainings side by side on a GPU, and stops each at the first check at which accuracy reaches its
target. On a CPU each training runs alone, so its numbers do not depend on what else was requested.

Seeds, learning rates and sizes (up to the program's own) are arguments of the compiled program.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, UInt32

from mnemoscope.engine.device import Place, Precision, find_device, forget_programs, loops_inside, numerics
from mnemoscope.engine.early_stopping import LEAST_ON_GPU, Rows, TrainingPlan, filled, most_rows, train_until_target
from mnemoscope.engine.interrupts import keeping_partial
from mnemoscope.engine.kinds import USUAL_SHARE, Cost, Hear
from mnemoscope.engine.memory_budget import MemoryBudget
from mnemoscope.engine.rates import RATES, Rates, known_platform
from mnemoscope.engine.record import UNROUNDED, Trial
from mnemoscope.spec import Spec, SpecError
from mnemoscope.spec.validators import Device
from mnemoscope.training.adamw import adamw
from mnemoscope.training.optimisers import Rate
from mnemoscope.training.side_by_side import over_rows, take_steps

Job = tuple[Any, int]
# Called after every check with the world, the weights and the measurements; each has a row for a training.
Watch = Callable[[Any, Any, dict[str, np.ndarray]], None]


class State(NamedTuple):
    """The weights, the optimiser's state, and the number of steps taken."""

    weights: Any
    optimiser: Any
    taken: UInt32[Array, "*n"]


class Trained(ABC):
    """A kind of training. Its specs have `method`, `rate`, `most_steps`, `target` and `parameters`."""

    # Steps between two checks of accuracy.
    check: ClassVar[int] = 32
    # Seconds to compile a program, by platform; options for the compiler.
    compile_seconds: ClassVar[Mapping[str, float]]
    compiler_options: ClassVar[dict[str, Any] | None] = None
    # The field that decides how much memory a step needs.
    size_field: ClassVar[str]
    # Whether the accuracy to report is on samples that no check has seen.
    unseen_test: ClassVar[bool]

    # --- what a kind defines ------------------------------------------------------------------

    @abstractmethod
    def program(self, spec: Any, platform: str = "cpu") -> Spec:
        """The setting whose compiled program serves this one, with sizes rounded up."""

    @abstractmethod
    def arguments(self, jobs: Sequence[Job]) -> tuple[Any, ...]:
        """Streams and sizes as arrays with a row for each job: what `begin` takes."""

    @abstractmethod
    def begin(self, program: Any, arguments: Any) -> tuple[Any, Any]:
        """What stays fixed in one training (its world), and the initial weights."""

    @abstractmethod
    def loss(self, program: Any, world: Any, weights: Any, taken: UInt32[Array, ""]) -> Float[Array, ""]:
        """The loss of the step that follows `taken` steps."""

    @abstractmethod
    def measure(self, program: Any, world: Any, weights: Any) -> dict[str, Float[Array, ""]]:
        """`accuracy` of one training, and anything else to record at a check."""

    def construct(self, program: Any, jobs: Sequence[Job]) -> list[dict[str, float]]:
        """The same measurements of constructed weights, for kinds whose method may be another than training."""
        raise SpecError("method", f"expected trained, got {program.method!r}")

    @abstractmethod
    def bytes_needed(self, program: Any) -> int:
        """About how many bytes one training holds during a step."""

    @abstractmethod
    def step_products(self, program: Any) -> int:
        """About how many multiplications a step takes."""

    @abstractmethod
    def step_seconds(self, program: Any, rates: Rates) -> float:
        """Seconds for a step of one training among others, on the reference machine."""

    def optimiser(self, program: Any, lr: Rate, taken: UInt32[Array, ""]) -> optax.GradientTransformation:
        """The optimiser of the step that follows `taken` steps: by default AdamW without weight decay (our choice)."""
        return adamw(lr)

    def rounded(self, program: Any, weights: Any) -> Any | None:
        """The weights as they are stored, if that is with fewer bits than they are trained with."""
        return None

    def unseen(self, world: Any) -> Any:
        """The world with samples that no check has used, for the last measurement."""
        return world

    def at_end(self, program: Any, world: Any, weights: Any) -> dict[str, Float[Array, ""]]:
        """What is measured once, when a training has ended, besides `measure`."""
        return {}

    def precision_of(self, program: Any, asked: Precision) -> Precision:
        """The precision of a training: the one that was asked for, unless the setting has its own."""
        return asked

    def rows_at_once(self, program: Any) -> int:
        """How many trainings to run side by side on a GPU, if they fit in memory."""
        return 64

    def least_rows(self, program: Any) -> int:
        """How many trainings a GPU runs in the time of one."""
        return LEAST_ON_GPU

    # --- what follows: a `Kind` -----------------------------------------------------------------

    def program_id(self, spec: Any, platform: str) -> str:
        """Equal for settings that share a compiled program on that platform."""
        return self.program(spec, platform).canonical()

    def cost(self, spec: Any, platform: str) -> Cost:
        """The cost of a training that takes all its steps, or of a construction."""
        seconds = self.step_seconds(self.program(spec, platform), RATES[known_platform(platform)])
        steps = spec.most_steps if spec.method == "trained" else 0
        compiling = self.compile_seconds[known_platform(platform)]
        share = USUAL_SHARE if steps else 1.0
        return Cost(seconds * (steps or 1), compiling, most_steps=steps, usual_share=share)

    def run(
        self,
        jobs: Sequence[Job],
        device: Device = "auto",
        budget: int | None = None,
        hear: Hear | None = None,
        precision: Precision = "float32",
        watch: Watch | None = None,
    ) -> list[Trial]:
        """Return one trial for each (spec, seed), in order.

        `hear` gets progress reports, and `watch` the weights at every check.
        """
        place = find_device(device)
        groups: dict[Spec, list[int]] = {}
        for number, (spec, _) in enumerate(jobs):
            groups.setdefault(self.program(spec, place.platform), []).append(number)
        records: dict[int, Trial] = {}
        with keeping_partial(records):
            for program, numbers in groups.items():
                forget_programs()
                size = self._batch_size(program, MemoryBudget.of(place, budget), place)
                own = self.precision_of(program, precision)
                for first in range(0, len(numbers), size):
                    part = numbers[first : first + size]
                    batch = [jobs[number] for number in part]
                    with numerics(own, place):
                        if batch[0][0].method == "trained":
                            done = self._train(program, batch, size, place, own, hear, watch)
                        else:
                            done = self._construct(program, batch, place, own)
                    records.update(zip(part, done, strict=True))
        return [records[number] for number in range(len(jobs))]

    def check_fits(self, spec: Any, device: Device = "auto", budget: int | None = None) -> None:
        """Refuse a setting of which not even one training fits in memory, before anything is allocated."""
        place = find_device(device)
        self._batch_size(self.program(spec, place.platform), MemoryBudget.of(place, budget), place)

    def too_large(self, program: Any) -> str:
        """The field to blame where a training does not fit in memory."""
        return self.size_field

    def _batch_size(self, program: Any, memory: MemoryBudget, place: Place) -> int:
        needed = self.bytes_needed(program)
        fits = (memory.planned or 2**30) // needed
        if fits < 1:
            field = self.too_large(program)
            raise SpecError(
                field,
                f"expected a size that fits in the free memory, got "
                f"{getattr(program, field):,} ({needed / 1e9:.1f} GB)",
            )
        return most_rows(fits, self.rows_at_once(program), place)

    def _construct(self, program: Any, jobs: Sequence[Job], place: Place, precision: Precision) -> list[Trial]:
        began = time.perf_counter()
        measured = self.construct(program, jobs)
        seconds = (time.perf_counter() - began) / len(jobs)
        how = {"seconds": seconds, "precision": precision, "device": place.device_kind}
        return [
            Trial(spec, seed, "ok", metrics={**metrics, "parameters": spec.parameters}, **how)
            for (spec, seed), metrics in zip(jobs, measured, strict=True)
        ]

    def _train(
        self,
        program: Any,
        jobs: Sequence[Job],
        most: int,
        place: Place,
        precision: Precision,
        hear: Hear | None,
        watch: Watch | None,
    ) -> list[Trial]:
        """Train one batch in one compiled program."""
        least = self.least_rows(program)
        rows = filled(jobs, place, most, least)
        world, state = self.start(program, self.arguments(rows))
        lr = jnp.asarray([spec.rate for spec, _ in rows], float)
        checked = np.zeros(len(rows))

        def advance(rows: Rows) -> tuple[Rows, dict[str, np.ndarray]]:
            nonlocal checked
            world, state, lr = rows
            state, measured = self.advance(program, self.check, world, state, lr)
            numbers = {name: np.asarray(part) for name, part in measured.items()}
            checked = numbers["accuracy"]
            if watch is not None:
                watch(world, state.weights, numbers)
            return (world, state, lr), numbers

        def final(rows: Rows) -> dict[str, np.ndarray]:
            world, state, _ = rows
            last = self.unseen(world)
            accuracy = checked
            if self.unseen_test:
                accuracy = np.asarray(self.measured(program, last, state.weights)["accuracy"])
            rounded = self._rounded(program, state.weights)
            if rounded is None:
                return {"accuracy": accuracy}
            after = self.measured(program, last, rounded)
            return {**{name: np.asarray(part) for name, part in after.items()}, UNROUNDED: accuracy}

        def at_end(rows: Rows) -> dict[str, np.ndarray]:
            world, state, _ = rows
            ended = self._at_end(program, self.unseen(world), state.weights)
            return {name: np.asarray(part) for name, part in ended.items()}

        compile_seconds = self.compile_seconds[known_platform(place.platform)]
        plan = TrainingPlan(advance, self.check, final, place, precision, most, least, compile_seconds, at_end)
        return train_until_target(jobs, (world, state, lr), plan, hear)

    # --- compiled programs; arguments other than `program` have a row for each training -------------

    @partial(jax.jit, static_argnames=("self", "program"))
    def start(self, program: Any, arguments: tuple[Any, ...]) -> tuple[Any, State]:
        """The world and the initial state of each training."""

        def begin(arguments: tuple[Any, ...]) -> tuple[Any, State]:
            world, weights = self.begin(program, arguments)
            taken = jnp.uint32(0)
            return world, State(weights, self.optimiser(program, 0.0, taken).init(weights), taken)

        return jax.vmap(begin)(arguments)

    def advance(
        self, program: Any, steps: int, world: Any, state: State, lr: Float[Array, "n"]
    ) -> tuple[State, dict[str, Float[Array, "n"]]]:
        """Take `steps` steps of every training; return the last loss and the measurements after it."""
        if loops_inside(state, len(lr) * self.step_products(program)):
            state, loss = self._steps(program, steps, world, state, lr)
        else:
            loss = jnp.zeros_like(lr)
            for _ in range(steps):
                state, loss = self._steps(program, 1, world, state, lr)
        return state, {"loss": loss, **self.measured(program, world, state.weights)}

    @partial(jax.jit, static_argnames=("self", "program"))
    def measured(self, program: Any, world: Any, weights: Any) -> dict[str, Float[Array, "n"]]:
        """`measure` of every training."""
        return over_rows(partial(self.measure, program), world, weights)

    @partial(jax.jit, static_argnames=("self", "program"))
    def _rounded(self, program: Any, weights: Any) -> Any | None:
        """`rounded` of every training."""
        return over_rows(partial(self.rounded, program), weights)

    @partial(jax.jit, static_argnames=("self", "program"))
    def _at_end(self, program: Any, world: Any, weights: Any) -> dict[str, Float[Array, "n"]]:
        """`at_end` of every training."""
        return over_rows(partial(self.at_end, program), world, weights)

    @cached_property
    def _steps(self) -> Callable[..., tuple[State, Float[Array, "n"]]]:
        """The compiled steps of this kind."""

        def run(
            program: Any, steps: int, world: Any, state: State, lr: Float[Array, "n"]
        ) -> tuple[State, Float[Array, "n"]]:
            return take_steps(partial(self.step, program), steps, world, state, lr)

        return jax.jit(
            run, static_argnames=("program", "steps"), donate_argnames="state", compiler_options=self.compiler_options
        )

    def step(self, program: Any, world: Any, state: State, lr: Float[Array, ""]) -> tuple[State, Float[Array, ""]]:
        """One step of one training; the loss is that before it."""
        loss, gradient = jax.value_and_grad(partial(self.loss, program, world))(state.weights, state.taken)
        optimiser = self.optimiser(program, lr, state.taken)
        updates, moments = optimiser.update(gradient, state.optimiser, state.weights)
        weights = optax.apply_updates(state.weights, updates)
        return State(weights, moments, state.taken + jnp.uint32(1)), loss
