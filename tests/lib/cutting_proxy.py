"""A TCP proxy that cuts connections, each after so many bytes as the test says."""

import contextlib
import selectors
import socket
import threading


class CuttingProxy:
    """Passes bytes both ways. The n-th connection is cut after `cuts[n]` (at least 1) bytes from the server, later ones never.
    `cut_now()` cuts all that are open."""

    def __init__(self, target, cuts=()):
        self.target = target
        self.cuts = list(cuts)
        self.done = 0  # connections that were cut
        self.count = 0
        self.lock = threading.Lock()
        self.open = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        self.cut_now()

    def cut_now(self):
        with self.lock:
            victims = list(self.open)
        for pair in victims:
            self._cut(pair)

    def _cut(self, pair):
        """Both sides see a reset, or an end."""
        with self.lock:
            if pair not in self.open:
                return
            self.open.discard(pair)
        for side in pair:
            with contextlib.suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                side.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            with self.lock:
                most = self.cuts[self.count] if self.count < len(self.cuts) else None
                self.count += 1
                self.open.add((client, server))
            threading.Thread(target=self._pass, args=((client, server), most), daemon=True).start()

    def _pass(self, pair, most):
        client, server = pair
        with contextlib.suppress(OSError), selectors.DefaultSelector() as selector:
            for side in pair:
                selector.register(side, selectors.EVENT_READ)
            self._shuttle(selector, client, server, most)
        self._cut(pair)
        for side in pair:
            side.close()

    def _shuttle(self, selector, client, server, most):
        """Until one side ends, or the bytes are used up."""
        while True:
            for key, _ in selector.select():
                data = key.fileobj.recv(65536)
                if not data:
                    return
                if key.fileobj is client:
                    server.sendall(data)
                    continue
                if most is not None and len(data) >= most:
                    client.sendall(data[:most])
                    self.done += 1
                    return
                most = most and most - len(data)
                client.sendall(data)
