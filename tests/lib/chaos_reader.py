"""Processes that print known bytes, and readers of them that reconnect as SDKs do, whatever happens to their connections.

Each stream is a row of records of sixteen bytes that say where they stand, so that every piece of a stream shows its own place: what
is missing is known to the byte, and where.
"""

import base64
import random
import time

from .place import patience
from .raw_http import CLOSE, TEXT, Gone, Raw, text_frame

START = "/runtime/v1/process"
RECORD = 16
STREAMS = ("stdout", "stderr")
# As the SDKs wait between attempts that fail; they give up after the last one.
DELAYS = (0, 0.25, 0.5, 1, 2, 2, 2, 2, 2, 2, 2, 2)

PRINTER = """
import os, random, sys, time
seed, pieces, most, pause = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
choice = random.Random(seed)
sent = [0, 0]
for _ in range(pieces):
    stream, size = choice.randrange(2), choice.randrange(1, most)
    first = sent[stream] // 16
    text = "".join("%s%05d%09d\\n" % ("oe"[stream], seed, i) for i in range(first, (sent[stream] + size) // 16 + 1)).encode()
    data = text[sent[stream] - first * 16:][:size]
    sent[stream] += size
    while data:
        data = data[os.write(1 + stream, data):]
    time.sleep(choice.random() * pause)
"""


def stream_bytes(stream, seed, first, last):
    """What a printer's stream has at [first, last)."""
    letter = "oe"[STREAMS.index(stream)]
    begin = first // RECORD
    text = "".join(f"{letter}{seed:05d}{i:09d}\n" for i in range(begin, last // RECORD + 1)).encode()
    return text[first - begin * RECORD:last - begin * RECORD]


def totals(seed, pieces, most):
    """How many bytes a printer prints on each stream: the same choices, made again."""
    choice = random.Random(seed)
    sent = {"stdout": 0, "stderr": 0}
    for _ in range(pieces):
        stream, size = choice.randrange(2), choice.randrange(1, most)
        sent[STREAMS[stream]] += size
        choice.random()
    return sent


def place_of(stream, seed, data):
    """Where in its stream a piece stands; None where it is too short to show."""
    mark = f"{'oe'[STREAMS.index(stream)]}{seed:05d}".encode()
    at = data.find(mark)
    if at < 0 or at + RECORD > len(data):
        return None
    return int(data[at + 6:at + 15]) * RECORD - at


class Lost(AssertionError):
    """Something is missing, doubled or wrong."""


class Reader:
    """Follows one process to its end. `cuts`: how often it drops its own connection on the way; `nap`: how long it sleeps now and then."""

    def __init__(self, case, name, seed, cuts=0, nap=0.0, receive_buffer=None):
        self.case, self.name, self.seed = case, name, seed
        self.cuts, self.nap, self.receive_buffer = cuts, nap, receive_buffer
        self.random = random.Random(f"{name} {seed}")
        self.next = 0
        self.pieces = {stream: [b""] for stream in STREAMS}  # a new one behind each gap
        self.gaps = []
        self.exit = None
        self.reconnects = 0
        self.error = None

    def run(self, begin):
        """In a thread of its own. `begin` is what the process is started with, or None if somebody else starts it."""
        try:
            self.follow(begin)
        except BaseException as error:
            self.error = error

    def follow(self, begin):
        attempts = 0
        while self.exit is None:
            if attempts:
                time.sleep(patience(DELAYS[attempts - 1]))
            got = self.attempt(begin)
            begin = None if got else begin
            attempts = 0 if got else attempts + 1
            self.reconnects += 1
            if attempts > len(DELAYS):
                raise Lost(f"{self.name}: given up after {attempts} attempts")

    def attempt(self, begin):
        """One connection; whether it got as far as `started`."""
        started = False
        try:
            with Raw(self.case.address, receive_buffer=self.receive_buffer) as connection:
                # Whether an earlier attempt has started it is not known: its name tells.
                if begin and self.known():
                    begin = None
                target = START if begin else f"{START}/{self.name}/connect?since={self.next}"
                connection.send(self.case.upgrade(target))
                connection.upgraded()
                if begin:
                    connection.send(text_frame(begin))
                event = connection.event("started", "error")
                if event["type"] == "error":
                    raise Lost(f"{self.name}: {event}")
                if event["pid"].startswith("refused-"):
                    # Another reader of the same process was faster.
                    event = connection.event("exit")
                    if event["code"] != "process_exists":
                        raise Lost(f"{self.name}: {event}")
                    return False
                started = True
                self.listen(connection)
        except (Gone, ConnectionError, TimeoutError):
            pass
        return started

    def known(self):
        return self.case.ask("GET", f"{START}/{self.name}", self.case.auth).status == 200

    def listen(self, connection):
        while self.exit is None:
            found = connection.frame()
            if found.opcode == CLOSE:
                if found.code not in (1012, 1013):
                    raise Lost(f"{self.name}: closed with {found.code} {found.payload[2:]!r} before exit")
                return
            if found.opcode == TEXT:
                self.take(found.json)
            if self.nap and self.random.random() < 0.05:
                time.sleep(self.nap)
            if self.cuts and self.random.random() < 0.02:
                self.cuts -= 1
                if self.random.random() < 0.5:
                    connection.reset()
                return

    def take(self, event):
        kind = event["type"]
        if kind == "gap":
            if event["from_cursor"] != self.next or event["to_cursor"] <= self.next:
                raise Lost(f"{self.name}: {self.next} was next, there is {event}")
            self.gaps.append(event)
            self.next = event["to_cursor"]
            for stream in STREAMS:
                self.pieces[stream].append(b"")
        elif kind in STREAMS or kind == "exit":
            if event["cursor"] != self.next:
                raise Lost(f"{self.name}: {self.next} was next, there is {event!r:.200}")
            self.next += 1
            if kind == "exit":
                self.exit = event
            else:
                self.pieces[kind][-1] += base64.b64decode(event["data"])
        else:
            raise Lost(f"{self.name}: {event!r:.200}")

    def check(self, expected):
        """All bytes are there, in order, or the gaps account for exactly those that are not."""
        if self.error is not None:
            raise Lost(f"{self.name}: {self.error!r}") from self.error
        if self.exit is None or self.exit["exit_code"] != 0:
            raise Lost(f"{self.name}: ended with {self.exit}")
        missing = sum(self.missing(stream, expected[stream]) for stream in STREAMS)
        told = sum(gap["bytes"] or 0 for gap in self.gaps)
        # Of one that came back to a number in the middle of what is gone nobody knows the bytes, only the numbers.
        unknown = any(gap["bytes"] is None for gap in self.gaps)
        if missing != told and not (unknown and missing > told):
            raise Lost(f"{self.name}: {missing} bytes are missing, gaps tell of {told}: {self.gaps}")

    def missing(self, stream, total):
        """Bytes of a stream that have not come. Each piece must be just what stands at its place, behind the one before it."""
        at = lost = 0
        for i, data in enumerate(self.pieces[stream]):
            if not data:
                continue
            place = at if i == 0 else place_of(stream, self.seed, data)
            if place is None and i == len(self.pieces[stream]) - 1:
                place = total - len(data)
            elif place is None:
                # Too short to show where it stands: the first place that has such bytes is as good as any, for what is behind it.
                place = at + stream_bytes(stream, self.seed, at, total).find(data)
            if place < at or data != stream_bytes(stream, self.seed, place, place + len(data)):
                raise Lost(f"{self.name}: {stream} is wrong at {place} (behind {at}): {data[:80]!r}")
            lost += place - at
            at = place + len(data)
        if at > total:
            raise Lost(f"{self.name}: {stream} has {at} bytes of {total}")
        return lost + total - at

