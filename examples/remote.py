#!/usr/bin/env python3
"""Runs a command through `coop serve` and prints what it prints, while it runs.

    remote.py URL TOKEN-FILE PROGRAM [ARGUMENT...]

It speaks the WebSocket of /runtime/v1 with nothing but the standard library, and comes back by itself if the connection is cut: each
piece of output has a number (cursor), and whoever names the one behind the last that he has seen gets the rest, byte for byte.
The command belongs to the keeper: kill this program, and it goes on. Its exit code becomes this program's own.
"""

import base64
import json
import os
import pathlib
import socket
import struct
import sys
import time
import urllib.parse

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class WebSocket:
    """Whole text messages over a plain connection. Messages of the server are never in pieces."""

    def __init__(self, url, path, token):
        address = urllib.parse.urlsplit(url)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket = socket.create_connection((address.hostname, address.port or 80))
        self.reader = self.socket.makefile("rb")
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n"
                            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            f"Sec-WebSocket-Key: {key}\r\n\r\n".encode())
        status = self.reader.readline()
        while self.reader.readline() not in (b"\r\n", b""):
            pass
        if b" 101 " not in status:
            sys.exit(f"{url}{path}: {status.decode().strip() or 'no answer'}")

    def send(self, kind, data):
        mask = os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
        self.socket.sendall(bytes([0x80 | kind]) + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def take(self, size):
        data = self.reader.read(size)
        if len(data) < size:
            raise ConnectionError("the connection was cut")
        return data

    def receive(self):
        """The next message."""
        while True:
            first, size = self.take(2)
            if size > 125:
                size = int.from_bytes(self.take(2 if size == 126 else 8), "big")
            data = self.take(size)
            if first & 15 == TEXT:
                return json.loads(data)
            if first & 15 == PING:
                self.send(PONG, data)
            if first & 15 == CLOSE:
                raise ConnectionError("the server closed")


def follow(web_socket, seen):
    """Prints output until the end; returns the last message, or None if the connection was cut. `seen` remembers where."""
    try:
        while True:
            message = web_socket.receive()
            if message["type"] == "started":
                seen["pid"] = message["pid"]
            elif message["type"] in ("stdout", "stderr"):
                out = sys.stdout if message["type"] == "stdout" else sys.stderr
                out.buffer.write(base64.b64decode(message["data"]))
                out.flush()
                seen["next"] = message["cursor"] + 1
            elif message["type"] in ("exit", "error"):
                return message
    except OSError:
        return None


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    url, program, arguments = sys.argv[1].rstrip("/"), sys.argv[3], sys.argv[4:]
    token = pathlib.Path(sys.argv[2]).read_text(encoding="ascii").strip()
    seen = {"pid": None, "next": 0}
    web_socket = WebSocket(url, "/runtime/v1/process", token)
    web_socket.send(TEXT, json.dumps({"type": "start", "cmd": program, "args": arguments}).encode())
    while not (last := follow(web_socket, seen)):
        if not seen["pid"]:
            sys.exit("the connection was cut before the command started")
        time.sleep(0.1)
        web_socket = WebSocket(url, f"/runtime/v1/process/{seen['pid']}/connect?since={seen['next']}", token)
    if last["type"] == "error":
        sys.exit(f"{last['code']}: {last['message']}")
    if last["error"]:
        print(last["error"], file=sys.stderr)
    sys.exit(last["exit_code"] if last["exit_code"] >= 0 else 128 - last["exit_code"])


if __name__ == "__main__":
    main()
