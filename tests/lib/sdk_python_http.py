"""The imitated Python client's requests and upgrades: see sdk_python.py."""

import json
from urllib.parse import urlencode

from .http_client import Ended, HttpConnection
from .websocket import Refused, WebSocket


class SdkError(Exception):
    """What the client raises. `kind` is the name of its exception, without the ending."""

    def __init__(self, kind, message, status=None):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.status = status


class Misread(AssertionError):
    """The real client would have gone on with wrong values."""


KINDS = {400: "InvalidArgument", 422: "InvalidArgument", 413: "InvalidArgument", 401: "Authentication", 403: "Authentication",
         408: "Timeout", 504: "Timeout", 409: "Conflict", 429: "RateLimit", 503: "SandboxOverloaded", 507: "NotEnoughSpace"}


def error_of(response, resource):
    """The client looks for a text and goes by the status; what a 404 means it knows from the call."""
    body = response.json()
    if not isinstance(body.get("message"), str) or not body["message"]:
        raise Misread(f"no message in {body}")
    kind = KINDS.get(response.status, "Sandbox")
    if response.status == 404:
        kind = {"file": "FileNotFound", "directory": "FileNotFound", "sandbox": "SandboxNotFound"}.get(resource, "NotFound")
    return SdkError(kind, body["message"], response.status)


class Http:
    """One connection for each request, which asks for the end of it."""

    def __init__(self, url, token, close=True, via=None):
        """`via`: an address to connect to instead, that of a proxy which nobody is told of."""
        self.url = url.rstrip("/")
        self.host = self.url.partition("://")[2].partition("/")[0]
        self.prefix = self.url.partition("://")[2][len(self.host):]
        name, _, port = self.host.rpartition(":")
        self.address = via or (name, int(port))
        self.token = token
        self.close = close

    def headers(self):
        own = {"User-Agent": "python-requests/2.32.3", "Accept-Encoding": "gzip, deflate", "Accept": "*/*"}
        own["Connection"] = "close" if self.close else "keep-alive"
        return own | ({"Authorization": f"Bearer {self.token}"} if self.token else {})

    def request(self, method, path, params=None, json_body=None, data=None, resource=None):
        headers = self.headers()
        target = self.prefix + path
        asked = {name: value for name, value in (params or {}).items() if value is not None}
        if asked:
            target += "?" + urlencode(asked)
        if json_body is not None:
            data = json.dumps(json_body).encode()
            headers["Content-Type"] = "application/json"
        if data is None and method not in ("GET", "HEAD"):
            data = b""
        with HttpConnection(self.address, self.host) as connection:
            connection.send_request(method, target, headers, data)
            response = connection.read_response(method)
        if response.status >= 400:
            raise error_of(response, resource)
        return response

    def get_json(self, path, **options):
        """The body of a GET is parsed whatever it is."""
        return json.loads(self.request("GET", path, **options).body)

    def send_json(self, method, path, **options):
        body = self.request(method, path, **options).body
        return json.loads(body) if body else {}

    def websocket(self, path):
        """Upgrades with an Origin that is the target itself."""
        headers = {"Origin": f"http://{self.host}", "Authorization": f"Bearer {self.token}"}
        try:
            return WebSocket(self.address, self.prefix + path, headers, self.host)
        except Refused as error:
            raise SdkError("Handshake", str(error), error.response.status) from error
        except Ended as error:
            raise SdkError("Sandbox", f"websocket upgrade failed: {error}") from error
