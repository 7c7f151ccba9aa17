"""A reverse proxy as people put one before a server: it sets headers of its own, and cuts whoever is silent."""

import contextlib
import re
import selectors
import socket
import threading
import time


class ReverseProxy:
    """Listens on loopback. A connection serves one request, the head of which loses the headers that `headers` names and gets these instead
    (a value of None: it is only taken away). A connection over which the server sends nothing for `idle` seconds is cut, as nginx does after
    proxy_read_timeout. `target` may be set later than the proxy is made."""

    def __init__(self, target=None, headers=None, idle=None):
        self.target = target
        self.headers = headers or {}
        self.idle = idle
        self.cut = 0  # connections that were silent for too long
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.host = f"127.0.0.1:{self.address[1]}"
        self.url = f"http://{self.host}"
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()
        self.open = set()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for side in list(self.open):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _head(self, client):
        """The request's head with our headers, and what came behind it."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = client.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, rest = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = dict(self.headers)
        if not re.search(rb"\r\nUpgrade:", head, re.IGNORECASE):
            headers["Connection"] = "close"  # so that no second request comes, with the client's own headers
        for name, value in headers.items():
            lines = lines[:1] + [line for line in lines[1:] if not re.match(rb"%s:" % re.escape(name.encode()), line, re.IGNORECASE)]
            if value is not None:
                lines.append(f"{name}: {value}".encode())
        return b"\r\n".join(lines) + b"\r\n\r\n" + rest

    def _serve(self, client):
        with client, contextlib.suppress(OSError), socket.create_connection(self.target) as server:
            self.open |= {client, server}
            try:
                server.sendall(self._head(client))
                self._pass(client, server)
            finally:
                self.open -= {client, server}

    def _pass(self, client, server):
        selector = selectors.DefaultSelector()
        selector.register(client, selectors.EVENT_READ, server)
        selector.register(server, selectors.EVENT_READ, client)
        heard = time.monotonic()
        with selector:
            while True:
                left = None if self.idle is None else self.idle - (time.monotonic() - heard)
                events = selector.select(left) if left is None or left > 0 else []
                if not events:
                    self.cut += 1
                    return
                for key, _ in events:
                    data = key.fileobj.recv(65536)
                    if not data:
                        return
                    if key.fileobj is server:
                        heard = time.monotonic()
                    key.data.sendall(data)
