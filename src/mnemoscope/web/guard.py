"""What stands between the network and the pages.

- The Host header must name this server: a foreign name that was made to point here is refused, so
  a page elsewhere cannot read ours through it.
- What changes something needs the token that our own pages carry, and must not come from another
  origin.
- Requests are small, and answers tell the browser to fetch nothing from elsewhere.
"""

import contextlib
import hmac
import ipaddress
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-mnemoscope-token"
MOST_BYTES, MOST_QUERY = 4096, 2048
HEADERS = {
    # Plotly and htmx set styles; scripts come from this server's files alone.
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_names(host: str, port: int) -> frozenset[str]:
    """The Host headers under which this server may be called."""
    names = {"localhost", "127.0.0.1", "[::1]"}
    if host in ("0.0.0.0", "::"):  # every address of this machine
        own = socket.gethostname()
        names |= {own, socket.getfqdn()}
        with contextlib.suppress(OSError):
            names |= {str(found[4][0]) for found in socket.getaddrinfo(own, None)}
    else:
        names.add(host)
    names = {f"[{name}]" if ":" in name and name[0] != "[" else name for name in names}
    ends = [f":{port}", ""] if port == 80 else [f":{port}"]
    return frozenset(f"{name.lower()}{end}" for name in names for end in ends)


class Guard:
    """Checks every request before the pages see it."""

    def __init__(self, app: ASGIApp, names: frozenset[str], token: str) -> None:
        self.app, self.names, self.token = app, names, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer what is wrong with it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        if refusal is not None:
            status, words = refusal
            await PlainTextResponse(words + "\n", status)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, send_with_headers)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """A status and a line for a request that is not answered, or nothing."""
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self.names:
            return 421, "expected a request to this server's own name"
        if len(scope["query_string"]) > MOST_QUERY:
            return 414, f"expected at most {MOST_QUERY} characters after the question mark"
        if scope["method"] in ("GET", "HEAD"):
            return None
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() not in self.names:
            return 403, "expected a request from this server's own page"
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "expected a request from this server's own page"
        if not hmac.compare_digest(headers.get(TOKEN_HEADER, "").encode(), self.token.encode()):
            return 403, "expected this page's token: load the page again"
        length = headers.get("content-length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            return 413, f"expected a request of known length, at most {MOST_BYTES} bytes"
        return None
