"""`mnemoscope explore`: theory in a browser, with sliders."""

import errno
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnemoscope.engine.extras import need
from mnemoscope.spec import SpecError, read_option
from mnemoscope.spec.token_laws import UNIFORM, read_tokens
from mnemoscope.spec.validators import Device
from mnemoscope.store.schema import NOWHERE, connect, default_path
from mnemoscope.ui.cli.options import DeviceName, count, flag

USUAL_PORT = 8717


def explore(
    *,
    port: Annotated[int | None, count(0, 65535, f"port to listen on [default: {USUAL_PORT}, or a free one]")] = None,
    host: Annotated[
        str, Parameter(metavar="ADDRESS", help="address to listen on; anything but loopback opens it to other machines")
    ] = "127.0.0.1",
    tokens: Annotated[
        str,
        Parameter(
            metavar="LAW",
            help="how often tokens occur at first: uniform; zipf:EXPONENT; or file:PATH, their probabilities",
        ),
    ] = UNIFORM,
    no_browser: Annotated[bool, flag("print the address and open nothing")] = False,
    device: DeviceName = "auto",
    store: Annotated[Path | None, Parameter(help="the store's file [default: the user's own]")] = None,
) -> int:
    """Open the explorer in a browser: a phase diagram with sliders, and a planner.

    Predictions come from theory, at once. Measurements go to the same store as those of the commands. Ctrl-C stops it.
    Example:

    `mnemoscope explore`
    """
    need("web")
    first = first_visit(tokens)
    place = store or default_path()
    if place == NOWHERE:
        raise SpecError("store", "expected a file, which measurements go to, got 'none'")
    connect(place, writing=True).close()  # a store that cannot be written is refused now
    if device == "gpu":
        _look_for_gpu()
    serve(host, port, place, device, browser=not no_browser, first=first)
    return 0


def first_visit(tokens: str) -> str:
    """The query of the page that is opened, empty for the usual one."""
    from mnemoscope.tasks.token_files import take_frequencies
    from mnemoscope.ui.explorer.state import MOST_ZIPF, count_tokens

    if tokens.startswith("file:"):
        law = take_frequencies(tokens, None, "tokens")
        count_tokens(law, "tokens")
        return f"?law={law}"
    law = read_option("tokens", read_tokens, tokens)
    if law == UNIFORM:
        return ""
    exponent = float(law.removeprefix("zipf:"))
    if exponent > MOST_ZIPF:
        raise SpecError("tokens", f"expected an exponent of at most {MOST_ZIPF:g} here, got {exponent:g}")
    return f"?zipf={exponent:g}"


def _look_for_gpu() -> None:
    """Refuse a missing GPU. A subprocess looks for it: this process would take it from the worker."""
    script = (
        "from mnemoscope.engine.device import find_device\n"
        "from mnemoscope.spec import SpecError\n"
        "try: find_device('gpu')\n"
        "except SpecError as error: print(error.message)"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if process.stdout:
        raise SpecError("device", process.stdout.strip())
    if process.returncode:
        why = "".join(process.stderr.strip().splitlines()[-1:])
        raise SpecError("device", f"expected a GPU that JAX can use, got none: {why}")


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port, at the usual one or any that is free."""
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError):  # unknown, or not a valid name
        raise SpecError("host", f"expected an address of this machine, got {host!r}") from None
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, USUAL_PORT if port is None else port))
        listener.listen(256)  # early requests wait until the first page is ready
    except OSError as error:
        listener.close()
        if port is None and error.errno == errno.EADDRINUSE:
            return listen(host, 0)
        option = "host" if error.errno == errno.EADDRNOTAVAIL else "port"
        place = f"{host}:{port or USUAL_PORT}"
        raise SpecError(option, f"expected a free place to listen on, got {place} ({error.strerror})") from None
    return listener


def serve(host: str, port: int | None, store: Path, device: Device, *, browser: bool, first: str = "") -> None:
    """Answer requests until it is stopped."""
    import uvicorn

    from mnemoscope.ui.explorer.app import Explorer
    from mnemoscope.ui.explorer.diagram import warm_up
    from mnemoscope.ui.explorer.guard import EVERYWHERE, is_loopback

    listener_socket = listen(host, port)
    at = int(listener_socket.getsockname()[1])
    explorer = Explorer(store, device)
    config = uvicorn.Config(
        explorer.app(host, at),
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=16384,
    )
    name = socket.gethostname() if host in EVERYWHERE else host
    address = f"http://[{name}]:{at}/" if ":" in name else f"http://{name}:{at}/"
    if not is_loopback(host):
        print(
            f"mnemoscope: warning: {host} can be reached from other machines, whose users may then measure and read "
            "on this one; use --host 127.0.0.1 to prevent that",
            file=sys.stderr,
        )
    warm_up()
    address += first
    print(f"Mnemoscope is at {address}\nCtrl-C stops it. Measurements go to {store}", flush=True)
    if browser:
        threading.Timer(0.3, webbrowser.open, [address]).start()
    # Turn SIGTERM into an exit, so that the worker is closed too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        uvicorn.Server(config).run(sockets=[listener_socket])
    finally:
        explorer.live.stop()
        left = explorer.measurements.close()
        if left:
            print(f"{left} measurement{'s' * (left > 1)} not finished; finished trials are kept", file=sys.stderr)
