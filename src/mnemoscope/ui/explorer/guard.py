"""Checks on every request before it reaches the pages.

- The Host header must name this server. A foreign name that resolves to this machine is refused, so
  no other site can read our pages through it (DNS rebinding).
- A request that changes something needs the token that our own pages carry, and must not come from
  another origin. Another site may link to a page, but may request nothing that is computed.
- Requests are small, and a content security policy keeps the browser from loading anything else.
"""

import hmac
import ipaddress
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-mnemoscope-token"
MOST_BYTES, MOST_QUERY = 4096, 2048
# Hosts that stand for every address of this machine.
EVERYWHERE = ("0.0.0.0", "::")
# What other sites may link to: no page needs a computation.
PAGES = ("/", "/plan", "/train")
HEADERS = {
    # Plotly and htmx set styles; scripts come only from this server's files.
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
    names |= {socket.gethostname(), socket.getfqdn()} if host in EVERYWHERE else {host}
    names = {f"[{name}]" if ":" in name and name[0] != "[" else name for name in names}
    ends = [f":{port}", ""] if port == 80 else [f":{port}"]
    return frozenset(f"{name.lower()}{end}" for name in names for end in ends)


class Guard:
    """Checks every request before the pages see it."""

    def __init__(self, app: ASGIApp, host: str, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.names, self.everywhere = own_names(host, port), host in EVERYWHERE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why it is refused."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self.refusal(scope)
        if refusal is not None:
            status, words = refusal
            await PlainTextResponse(words + "\n", status)(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)

    def own_address(self, scope: Scope) -> frozenset[str]:
        """The address that was called, if the server listens on all addresses of this machine.

        It is a number, not a name, so it cannot be used for rebinding.
        """
        if not self.everywhere or not scope.get("server"):
            return frozenset()
        host, port = scope["server"]
        return frozenset({f"[{host}]:{port}" if ":" in host else f"{host}:{port}"})

    def is_own(self, origin: str) -> bool:
        """Whether an origin is this server; a malformed one is not."""
        try:
            return urlsplit(origin).netloc.lower() in self.names
        except ValueError:
            return False

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """A status and a line if the request is refused, else None."""
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self.names | self.own_address(scope):
            return 421, "expected a request to this server's own name"
        if len(scope["query_string"]) > MOST_QUERY:
            return 414, f"expected at most {MOST_QUERY} characters after the question mark"
        site = headers.get("sec-fetch-site", "same-origin")
        if scope["method"] in ("GET", "HEAD"):
            # Another site may link to a page, but its images and scripts may not request work.
            page = scope["path"] in PAGES and headers.get("sec-fetch-mode") == "navigate"
            if site in ("same-origin", "none") or page:
                return None
            return 403, "expected a request from this server's own page"
        origin = headers.get("origin")
        if site != "same-origin" or (origin is not None and not self.is_own(origin)):
            return 403, "expected a request from this server's own page"
        if not hmac.compare_digest(headers.get(TOKEN_HEADER, "").encode(), self.token.encode()):
            return 403, "expected this page's token: load the page again"
        length = headers.get("content-length", "")
        if not length.isdigit() or int(length) > MOST_BYTES:
            return 413, f"expected a request of known length, at most {MOST_BYTES} bytes"
        return None
