"""Who uses the keeper while its processes are killed: each user starts commands whose output is known, and writes down all
that it was told."""

import base64
import os
import random
import subprocess
import threading
import time

from lib.client import Client, Closed, KeeperError
from lib.http_client import Ended
from lib.place import COOP

LOST = (Closed, ConnectionError, FileNotFoundError, BrokenPipeError, Ended)
# What may be answered while something that the command needs has just been killed.
EXCUSED = {"unavailable", "spawn_failed", "sandbox_unavailable", "shutting_down", "cancelled",
           "sandbox_overloaded", "unreachable"}
CHUNK = 997
FAULTS_MAX = 50


class Ledger:
    """What was answered, and what was found wrong with it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.starts = {}  # id: the command's expected output, None for one that does not end by itself
        self.unchecked = []
        self.faults = []
        self.counts = {}

    def started(self, id, expected):
        with self.lock:
            if id in self.starts:
                self.faults.append(f"{id} was given twice")
            self.starts[id] = expected
            self.unchecked.append(id)

    def fault(self, text):
        with self.lock:
            if len(self.faults) < FAULTS_MAX:
                self.faults.append(text)

    def count(self, name):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def take_unchecked(self):
        with self.lock:
            ids, self.unchecked = self.unchecked, []
            return ids


def command(rng, number):
    """(a shell's text, its output, its exit code)."""
    line = f"{os.getpid()}-{number}-{rng.randrange(1 << 30)}"
    lines = rng.choice((1, 1, 3, CHUNK))
    code = rng.randrange(4)
    text = f"i=0; while [ $i -lt {lines} ]; do echo {line}; i=$((i+1)); done; exit {code}"
    return text, f"{line}\n".encode() * lines, code


class User(threading.Thread):
    """Starts, reads and ends until it is told to stop; connects again whenever its connection has gone."""

    def __init__(self, place, ledger, stop, seed):
        super().__init__(daemon=True)
        self.place, self.ledger, self.stop = place, ledger, stop
        self.rng = random.Random(seed)
        self.number = seed << 20
        self.client = None
        self.long = []

    def run(self):
        while not self.stop.is_set():
            try:
                self.step()
            except LOST:
                self.drop()
            except KeeperError as error:
                self.ledger.count(f"refused: {error.code}: {error.message[:60]}")
                if error.code not in EXCUSED:
                    self.ledger.fault(f"refused with {error}")
                self.stop.wait(0.01)
            except Exception as error:  # whatever it is, it is a finding
                self.ledger.fault(f"{type(error).__name__}: {error}")
                self.drop()
        self.drop()

    def drop(self):
        if self.client:
            self.client.close()
        self.client = None
        self.stop.wait(0.01)

    def step(self):
        self.client = self.client or Client(self.place.socket)
        self.number += 1
        kind = self.rng.randrange(8)
        if kind == 0:
            self.start_long()
        elif kind == 1 and self.long:
            self.end_long()
        else:
            self.run_short()

    def args(self):
        args = {"cwd": str(self.place.work)}
        if self.rng.randrange(3) == 0:
            args["sandbox"] = {"profile": "full"}
        if self.rng.randrange(4) == 0:
            args["overflow"] = "spool"
        return args

    def start_long(self):
        answer = self.client.call("spawn", argv=["sh", "-c", "sleep 1000 & exec sleep 1000"], **self.args())
        self.ledger.started(answer["process"]["id"], None)
        self.long.append(answer["process"]["id"])

    def end_long(self):
        self.client.call("kill", id=self.long.pop(0))

    def run_short(self):
        text, expected, code = command(self.rng, self.number)
        id = self.client.call("spawn", argv=["sh", "-c", text], hold=True, **self.args())["process"]["id"]
        self.ledger.started(id, expected)
        record = self.client.call("wait", id=id)["process"]
        self.judge(id, record, self.client.reply("read", {"id": id, "max": 1 << 20}).bytes(), expected, code)

    def judge(self, id, record, got, expected, code):
        exit, cause = record["exit"] or {}, record["end_cause"]
        if cause == "self_exit":
            if (exit.get("code"), got) != (code, expected):
                self.ledger.fault(f"{id} exited with {exit}, {len(got)} bytes: {code}, {len(expected)} were to come")
        elif exit.get("code") not in (None, code):
            self.ledger.fault(f"{id} ended by {cause} with {exit}, which is not its own: {code}")
        elif not expected.startswith(got):
            self.ledger.fault(f"{id} ended by {cause} with bytes that it has not written")
        self.ledger.count(f"ended: {cause}")


class Web(User):
    """The same over HTTP; each request has a connection of its own. `gateway` tells which gateway there is now."""

    def __init__(self, *args, gateway):
        super().__init__(*args)
        self.gateway = gateway

    def op(self, name, **args):
        answer = self.gateway().request("POST", f"/v1/ops/{name}", args)
        if answer.status != 200:
            raise KeeperError({"code": answer.error, "message": answer.json()["message"]})
        return answer.json()

    def step(self):
        self.number += 1
        text, expected, code = command(self.rng, self.number)
        id = self.op("spawn", argv=["sh", "-c", text], **self.args())["process"]["id"]
        self.ledger.started(id, expected)
        answer = self.op("wait", id=id, output_bytes=1 << 20)
        got = base64.b64decode(answer.get("data", {}).get("stdout", ""))
        self.judge(id, answer["process"], got, expected, code)
        self.ledger.count(f"over HTTP: {answer['process']['end_cause']}")


class Shell(User):
    """The same with `coop run`. Which process it had nobody tells; its output and its code must be right."""

    def __init__(self, *args):
        super().__init__(*args)
        self.process = None

    def step(self):
        self.number += 1
        text, expected, code = command(self.rng, self.number)
        argv = [str(COOP), "run", "--", "sh", "-c", text]
        with subprocess.Popen(argv, env=self.place.env(), cwd=self.place.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as self.process:
            got, said = self.process.communicate()
        left = self.process.returncode
        self.ledger.count(f"coop run: {left}")
        if left == code and got != expected or not expected.startswith(got):
            self.ledger.fault(f"coop run left with {left} and {len(got)} bytes: {code}, {len(expected)} were to come")
        # 125: coop itself could not; 137: the command was killed; 143: ended by a keeper without its guard; -9: coop run was.
        if left not in (code, 125, 137, 143, -9):
            self.ledger.fault(f"coop run left with {left}, not {code}, {len(got)} bytes of {len(expected)}: {said.decode(errors='replace')}")
        time.sleep(0.01)

    def drop(self):
        self.stop.wait(0.01)


def stop_all(users, stop):
    stop.set()
    for user in users:
        user.join(120)
    return [user for user in users if user.is_alive()]
