"""The explorer's addresses, and what answers at each."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from mnemoscope.engine.record import versions
from mnemoscope.experiments.plan import plan_budget, plan_job
from mnemoscope.spec import SpecError, read_option
from mnemoscope.spec.validators import Device, between, one_of, whole
from mnemoscope.store.schema import NOWHERE
from mnemoscope.store.trials import Store
from mnemoscope.ui.explorer import diagram, fragments, pages
from mnemoscope.ui.explorer.guard import Guard
from mnemoscope.ui.explorer.measured import measured_points
from mnemoscope.ui.explorer.measurements import Measurements
from mnemoscope.ui.explorer.state import RANGES, State, read_state
from mnemoscope.ui.explorer.worker import Order

KINDS = {".js": "text/javascript", ".css": "text/css"}
# Numbers of samples on a measured curve, and how far it reaches to both sides of the crossing.
CURVE_POINTS, REACH = 7, 6.0


class Explorer:
    """One server: its token, its store, its measurements."""

    def __init__(self, store: Path, device: Device = "auto") -> None:
        self.token = secrets.token_urlsafe(24)
        self.store = store
        self.measurements = Measurements(store, device)
        self.assets = _read_assets()
        # Work of a tenth of a second and more is done beside the loop, one piece at a time, by one
        # thread: what each of several had needed for its largest arrays would stay allocated.
        self.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="theory")

    def app(self, host: str, port: int) -> Guard:
        """The pages, behind their guard."""
        routes = [
            Route("/", self.home),
            Route("/plan", self.plan_page),
            Route("/plan/answer", self.plan_answer),
            Route("/assets/{name}", self.asset),
            Route("/map.json", self.map),
            Route("/told", self.told),
            Route("/measured.json", self.measured),
            Route("/jobs", self.jobs),
            Route("/measure", self.measure, methods=["POST"]),
            Route("/cancel/{number}", self.cancel, methods=["POST"]),
            Route("/map.csv", self.table),
            Route("/map.sh", self.script),
            Route("/explorer.json", self.data),
        ]
        handlers: dict[Any, Any] = {SpecError: _refuse, ClientDisconnect: _leave}
        pages_alone = Starlette(routes=routes, exception_handlers=handlers)
        return Guard(pages_alone, host, port, self.token)

    async def home(self, request: Request) -> Response:
        """The explorer. A wrong address gets the first visit's page, and is told what is wrong."""
        complaint = ""
        try:
            state = read_state(request.query_params)
        except SpecError as error:
            state, complaint = read_state({}), str(error)
        return HTMLResponse(pages.explorer(state, complaint, self.token))

    async def asset(self, request: Request) -> Response:
        """A file of the page's own, out of a fixed list."""
        found = self.assets.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("no such file\n", 404)
        text, kind, tag = found
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(text, media_type=kind, headers=headers)

    async def map(self, request: Request) -> Response:
        """The diagram. One that moves is made in the loop itself: handing it over takes longer."""
        state = read_state(request.query_params)
        if request.query_params.get("moving") == "1":
            made = diagram.as_json(state, moving=True)
        else:
            made = await self._beside(diagram.as_json, state, moving=False)
        return Response(made, media_type="application/json")

    async def _beside(self, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.worker, partial(work, *given, **named))

    async def told(self, request: Request) -> Response:
        """Theory's word on the setting."""
        state = read_state(request.query_params)
        return HTMLResponse(await self._beside(fragments.told, state))

    async def measured(self, request: Request) -> Response:
        """What the store has of the setting's curve."""
        state = read_state(request.query_params)
        return _json({"points": await run_in_threadpool(self._points, state)})

    def _points(self, state: State) -> list[dict[str, Any]]:
        try:
            spec = state.spec
        except SpecError:  # there is no such setting, as the page says beside it
            return []
        return measured_points(spec, self.store)

    async def jobs(self, request: Request) -> Response:
        """The measurements; to a page that knows which there are, only how far they are."""
        made = self.measurements
        if request.query_params.get("known") == made.version:
            return HTMLResponse(fragments.progress(made), headers={"HX-Reswap": "none"})
        return self._jobs()

    def _jobs(self, trouble: str = "") -> Response:
        return HTMLResponse(fragments.jobs(self.measurements, trouble))

    async def measure(self, request: Request) -> Response:
        """Order a measurement; what is wrong with it is said beside the others."""
        form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        try:
            seeds = read_option("seeds", whole(1, pages.SEEDS_AT_MOST), form.get("seeds", "8"))
            what = read_option("what", one_of("point", "curve"), form.get("what", "point"))
            words, order = make_order(read_state(form), what, seeds)
            self.measurements.add(words, order)
        except SpecError as error:
            return self._jobs(fragments.complaint(error))
        return self._jobs()

    async def cancel(self, request: Request) -> Response:
        """Stop a measurement."""
        number = request.path_params["number"]
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            return PlainTextResponse("no such measurement\n", 404)
        self.measurements.cancel(int(number))
        return self._jobs()

    async def table(self, request: Request) -> Response:
        """The diagram's numbers as a table."""
        state = read_state(request.query_params)
        return _file("map.csv", await self._beside(diagram.as_table, state), "text/csv")

    async def script(self, request: Request) -> Response:
        """The command that makes the same diagram."""
        state = read_state(request.query_params)
        return _file("map.sh", f"#!/bin/sh\n{state.command}\n", "text/x-shellscript")

    async def data(self, request: Request) -> Response:
        """Everything on the page, with versions and commands."""
        state = read_state(request.query_params)
        told = {
            "state": {**state.values, "target": state.target, "x": state.x},
            "versions": versions(),
            "command": state.command,
            "link": f"/?{state.query}",
            "predicted": json.loads(await self._beside(diagram.as_json, state, moving=False)),
            "measured": await run_in_threadpool(self._points, state),
        }
        return _file("explorer.json", json.dumps(told, allow_nan=False), "application/json")

    async def plan_page(self, request: Request) -> Response:
        """The planner's page, which asks for its answer itself."""
        return HTMLResponse(pages.plan_form(dict(request.query_params), self.token))

    async def plan_answer(self, request: Request) -> Response:
        """What a job needs, or what a budget buys."""
        words = dict(request.query_params)
        return HTMLResponse(await self._beside(self._answer, words))

    def _answer(self, words: dict[str, str]) -> str:
        # With commas between thousands or without, as the answer itself has them.
        told_words = {name: words.get(name, "").replace(",", "").strip() for name in PLAN}
        given = {name: word for name, word in told_words.items() if word}
        try:
            told = {name: read_option(name, PLAN[name], value) for name, value in given.items()}
            if "length" not in told:
                raise SpecError("length", "expected a number, got none")
            facts, target = told.pop("facts", None), told.pop("target", 0.95)
            known = None
            if self.store != NOWHERE and self.store.exists():
                known = Store(self.store, writing=False)
            try:
                more = {**told, "target": target, "store": known}
                made = plan_budget(**more) if facts is None else plan_job(facts, **more)
            finally:
                if known is not None:
                    known.close()
        except SpecError as error:
            return fragments.complaint(error)
        options = " ".join(f"--{name} {value}" for name, value in given.items())
        return fragments.answer(made, f"mnemoscope plan {options}")


# What the planner's form may say, and within what bounds.
PLAN: dict[str, Callable[[Any], Any]] = {
    "facts": whole(2, 2**20),
    "length": whole(1, 2**12),
    "target": between(0.001, 0.9999),
    "parameters": between(1, 1e12),
    "tokens": between(1, 1e15),
}


def make_order(state: State, what: str, seeds: int) -> tuple[str, Order]:
    """The setting under the cross, or seven N around where theory crosses the target."""
    spec = state.spec
    words = f"V={spec.vocab:,} d={spec.dim:,} L={spec.length:,}"
    if spec.width:
        words += f" m={spec.width:,} {spec.activation}"
    how_many = f"{seeds} seed" + "s" * (seeds > 1)
    if what == "point":
        return f"{words} N={spec.samples:,}, {how_many}", Order((spec,), seeds)
    made = diagram.draw(state, moving=False)
    middle = diagram.crossing(made.samples, made.accuracy, state.target) or spec.samples
    least, most = RANGES["samples"]
    low, high = max(least, middle / REACH), min(most, middle * REACH)
    many = [round(low * (high / low) ** (k / (CURVE_POINTS - 1))) for k in range(CURVE_POINTS)]
    specs = tuple(spec.replace(samples=one) for one in many)
    return f"{words} N={many[0]:,} to {many[-1]:,}, {how_many} each", Order(specs, seeds)


def _read_assets() -> dict[str, tuple[bytes, str, str]]:
    """The files that pages load: text, kind, and a tag that changes with the text."""
    own = resources.files("mnemoscope.ui.explorer") / "assets"
    found = {one.name: one.read_bytes() for one in own.iterdir() if one.is_file()}
    bundled = resources.files("plotly") / "package_data" / "plotly.min.js"
    found["plotly.min.js"] = bundled.read_bytes()
    return {
        name: (text, KINDS[Path(name).suffix], f'"{hashlib.sha256(text).hexdigest()[:16]}"')
        for name, text in found.items()
        if Path(name).suffix in KINDS
    }


def _refuse(request: Request, error: Exception) -> Response:
    return _json({"message": str(error)}, 400)


def _leave(request: Request, error: Exception) -> Response:
    """Whoever left in the middle of a request hears nothing, and it is no error of ours."""
    return Response(status_code=400)


def _json(told: dict[str, Any], status: int = 200) -> Response:
    text = json.dumps(told, allow_nan=False)
    return Response(text, status, media_type="application/json")


def _file(name: str, text: str, kind: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)
