"""A running explorer for tests, in this process, on a free port and a store of its own."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import patience
import uvicorn

from mnemoscope.ui.explorer.app import Explorer
from mnemoscope.ui.explorer.measurements import Measurement


class Running:
    """Its address, and requests to it."""

    def __init__(self, explorer: Explorer, port: int) -> None:
        self.explorer, self.port = explorer, port
        self.name = f"127.0.0.1:{port}"
        self.address = f"http://{self.name}/"

    def ask(
        self, path: str, *, method: str = "GET", body: str = "", host: str = "", **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of an answer."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience.SECONDS)
        sent = {"Host": host or self.name, **{k.replace("_", "-"): v for k, v in headers.items()}}
        line.request(method, path, body=body or None, headers=sent)
        answer = line.getresponse()
        text = answer.read().decode()
        told = {name.lower(): value for name, value in answer.getheaders()}
        line.close()
        return answer.status, told, text

    def order(self, **words: object) -> str:
        """Ask for a measurement as the page does; the list that comes back."""
        token = self.explorer.token
        status, _, text = self.ask("/measure", method="POST", body=urlencode(words), X_Mnemoscope_Token=token)
        assert status == 200, text
        return text

    def wait(self, number: int, *stages: str, trials: int = 0) -> Measurement:
        """Until a measurement is in one of these stages, and so many of its trials are done."""

        def there() -> Measurement | None:
            (one,) = (n for n in self.explorer.measurements.newest_first() if n.number == number)
            assert not one.over or one.stage in stages, f"{one.stage}: {one.message}"
            return one if one.stage in stages and one.done >= trials else None

        return patience.wait_until(there, f"measurement {number} comes to one of {stages}")


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    """A server that is stopped at the end."""
    ours = socket.socket()
    ours.bind(("127.0.0.1", 0))
    port = int(ours.getsockname()[1])
    explorer = Explorer(folder / "trials.db", "cpu")
    config = uvicorn.Config(
        explorer.app("127.0.0.1", port), log_level="error", lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [ours]}, daemon=True)
    thread.start()
    patience.wait_until(lambda: server.started, "the server starts")
    try:
        yield Running(explorer, port)
    finally:
        server.should_exit = True
        thread.join(timeout=patience.SECONDS)
        explorer.live.stop()
        explorer.measurements.close()
        ours.close()
