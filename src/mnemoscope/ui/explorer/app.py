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

from mnemoscope.engine.record import finite, versions
from mnemoscope.spec import SpecError, read_option
from mnemoscope.spec.token_laws import UNIFORM
from mnemoscope.spec.validators import Device, one_of, whole
from mnemoscope.ui.explorer import diagram, fragments, pages, planner
from mnemoscope.ui.explorer.guard import Guard
from mnemoscope.ui.explorer.live import PRESETS, Live
from mnemoscope.ui.explorer.measured import measured_points
from mnemoscope.ui.explorer.measurements import Measurements, make_order
from mnemoscope.ui.explorer.state import State, read_state
from mnemoscope.ui.pages.render import render

KINDS = {".js": "text/javascript", ".css": "text/css"}


class Explorer:
    """One server: its token, its store, its measurements."""

    def __init__(self, store: Path, device: Device = "auto") -> None:
        self.token = secrets.token_urlsafe(24)
        self.store = store
        self.measurements = Measurements(store, device)
        self.live = Live(device)
        self.assets = _read_assets()
        # Work of a tenth of a second or more runs beside the event loop in one thread: each of several threads would
        # keep the memory of its largest arrays.
        self.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="theory")

    def app(self, host: str, port: int) -> Guard:
        """The pages, behind their guard."""
        routes = [
            Route("/", self.home),
            Route("/plan", self.plan_page),
            Route("/plan/answer", self.plan_answer),
            Route("/train", self.train_page),
            Route("/train.json", self.training),
            Route("/train/start", self.start_training, methods=["POST"]),
            Route("/train/stop", self.stop_training, methods=["POST"]),
            Route("/assets/{name}", self.asset),
            Route("/map.json", self.map),
            Route("/prediction", self.prediction),
            Route("/measured.json", self.measured),
            Route("/jobs", self.jobs),
            Route("/measure", self.measure, methods=["POST"]),
            Route("/cancel/{number}", self.cancel, methods=["POST"]),
            Route("/map.csv", self.table),
            Route("/map.sh", self.script),
            Route("/explorer.json", self.data),
        ]
        handlers: dict[Any, Any] = {SpecError: _refuse, ClientDisconnect: _leave}
        return Guard(Starlette(routes=routes, exception_handlers=handlers), host, port, self.token)

    async def home(self, request: Request) -> Response:
        """The explorer. A wrong address gets the first visit's page with a line that says what is wrong."""
        complaint = ""
        try:
            state = read_state(request.query_params)
        except SpecError as error:
            state, complaint = read_state({}), str(error)
        return HTMLResponse(pages.explorer(state, complaint, self.token))

    async def asset(self, request: Request) -> Response:
        """A file that pages load, from a fixed list."""
        asset = self.assets.get(request.path_params["name"])
        if asset is None:
            return PlainTextResponse("no such file\n", 404)
        text, kind, tag = asset
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(text, media_type=kind, headers=headers)

    async def map(self, request: Request) -> Response:
        """The diagram. While it moves, it is computed in the event loop: a thread would take longer.

        With frequencies of tokens it takes longer anyway.
        """
        state = read_state(request.query_params)
        moving = request.query_params.get("moving") == "1"
        if moving and state.tokens == UNIFORM:
            diagram_json = diagram.as_json(state, moving=True)
        else:
            diagram_json = await self._in_thread(diagram.as_json, state, moving=moving)
        return Response(diagram_json, media_type="application/json")

    async def _in_thread(self, work: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.worker, partial(work, *args, **options))

    async def prediction(self, request: Request) -> Response:
        """What theory predicts for the setting."""
        return HTMLResponse(await self._in_thread(fragments.prediction, read_state(request.query_params)))

    async def measured(self, request: Request) -> Response:
        """Stored measurements on the setting's curve."""
        return _json({"points": await run_in_threadpool(self._points, read_state(request.query_params))})

    def _points(self, state: State) -> list[dict[str, Any]]:
        try:
            return measured_points(state.measured_spec, self.store)
        except SpecError:  # the setting is impossible, as the page says elsewhere
            return []

    async def jobs(self, request: Request) -> Response:
        """The measurements; a page that knows the list gets only their progress."""
        known = request.query_params.get("known") == self.measurements.version
        return self._jobs(known=known, headers={"HX-Reswap": "none"} if known else {})

    def _jobs(self, *, complaint: str = "", known: bool = False, headers: dict[str, str] | None = None) -> Response:
        text = fragments.measurement_list(self.measurements, complaint=complaint, known=known)
        return HTMLResponse(text, headers=headers)

    async def measure(self, request: Request) -> Response:
        """Order a measurement; an error appears above the list."""
        form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        try:
            seeds = read_option("seeds", whole(1, pages.MOST_SEEDS), form.get("seeds", "8"))
            what = read_option("what", one_of("point", "curve"), form.get("what", "point"))
            self.measurements.add(*make_order(read_state(form), what, seeds))
        except SpecError as error:
            return self._jobs(complaint=str(error))
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
        return _file("map.csv", await self._in_thread(diagram.as_table, state), "text/csv")

    async def script(self, request: Request) -> Response:
        """The command that draws the same diagram."""
        state = read_state(request.query_params)
        return _file("map.sh", f"#!/bin/sh\n{state.command}\n", "text/x-shellscript")

    async def data(self, request: Request) -> Response:
        """Everything on the page, with versions and commands."""
        state = read_state(request.query_params)
        everything = {
            "state": {**state.values, "target": state.target, "x": state.x, "training": state.training},
            "versions": versions(),
            "command": state.command,
            "link": f"/?{state.query}",
            "predicted": json.loads(await self._in_thread(diagram.as_json, state, moving=False)),
            "measured": await run_in_threadpool(self._points, state),
        }
        return _file("explorer.json", json.dumps(everything, allow_nan=False), "application/json")

    async def plan_page(self, request: Request) -> Response:
        """The planner's page, which asks for its answer itself."""
        return HTMLResponse(planner.page(dict(request.query_params), self.token))

    async def train_page(self, request: Request) -> Response:
        """The page of a training, which asks for its state itself."""
        return HTMLResponse(render("explorer/templates/train.html", presets=list(PRESETS), token=self.token))

    async def training(self, request: Request) -> Response:
        """The training under way, or the last one."""
        return _json(finite(self.live.state()))

    async def start_training(self, request: Request) -> Response:
        """Begin a training, in place of the one under way."""
        form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        seed = read_option("seed", whole(0, 10**6), form.get("seed", "0"))
        await run_in_threadpool(self.live.start, form.get("preset", ""), seed)
        return _json({"stage": "running"})

    async def stop_training(self, request: Request) -> Response:
        """End the training under way."""
        await run_in_threadpool(self.live.stop)
        return _json({"stage": "stopped"})

    async def plan_answer(self, request: Request) -> Response:
        """What a job needs, or what a budget buys."""
        return HTMLResponse(await self._in_thread(planner.answer, dict(request.query_params), self.store))


def _read_assets() -> dict[str, tuple[bytes, str, str]]:
    """The files that pages load: text, kind, and a tag that changes with the text."""
    own = resources.files("mnemoscope.ui.explorer") / "assets"
    texts = {file.name: file.read_bytes() for file in own.iterdir() if file.is_file()}
    texts["plotly.min.js"] = (resources.files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return {
        name: (text, KINDS[Path(name).suffix], f'"{hashlib.sha256(text).hexdigest()[:16]}"')
        for name, text in texts.items()
        if Path(name).suffix in KINDS
    }


def _refuse(request: Request, error: Exception) -> Response:
    return _json({"message": str(error)}, 400)


def _leave(request: Request, error: Exception) -> Response:
    """A client that disconnects during a request is not an error."""
    return Response(status_code=400)


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


def _file(name: str, text: str, kind: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)
