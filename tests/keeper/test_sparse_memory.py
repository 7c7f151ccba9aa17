"""Every allocation of a request fails once: it is refused, or answered as it would have been with memory. Nothing in between."""

import re

from lib.client import Closed, KeeperError
from lib.keeper import KeeperCase

# So many allocations succeed, far more than a start and a few requests need. Then one of PERIOD fails: a prime above what the
# longest of these requests takes, so that each time it is another one of it.
FIRST, PERIOD = 6000, 1009
SCRIPT = """
pwd; env | sort; umask; ulimit -a; id -u
cat shown/text hidden/text 2>&1; cat injected "$FILE"; cat
(echo x >kept/text) 2>&1; echo x >%s/made && cat %s/made
ls -a . "$HOME"; cut -d' ' -f5,6 /proc/self/mountinfo | grep -F "${PWD%/*}"
"""
# What differs from one run to the next, and perhaps not among the first: figures, and how far a command has come by the answer.
MEASURED = re.compile(r"_ms$|_at$|\.stats\.|\.pid$|\.events\.|^\.started\.(exit|state|streams)")


def flat(value, path=""):
    """{path of a leaf: it}."""
    if isinstance(value, dict):
        return {key: leaf for name, inner in value.items() for key, leaf in flat(inner, f"{path}.{name}").items()}
    if isinstance(value, list):
        return {key: leaf for i, inner in enumerate(value) for key, leaf in flat(inner, f"{path}[{i}]").items()} or {path: []}
    return {path: value}


class SparseCase(KeeperCase):
    keeper_env = {"COOP_FAULT": f"alloc:{FIRST}:{PERIOD}"}
    slots = 0

    def again(self):
        """The connection that is there, or another one."""
        while True:
            try:
                self.client = self.keeper.connect(timeout=10)
                return
            except (Closed, ConnectionError, KeeperError):
                self.assertIsNone(self.keeper.process.poll(), "the keeper must live")

    def attempt(self, call):
        """What was answered; None where it was refused for want of memory."""
        try:
            return call()
        except KeeperError as error:
            self.assertIn(error.code, ("internal", "spawn_failed", "unavailable"), error)
            if error.code == "spawn_failed":
                self.assertEqual(error.details["errno"], "ENOMEM", error)
        except (Closed, ConnectionError):
            self.again()
        return None

    def sweep(self, call, rounds, important):
        """Answers are as those of the first times, in all in which those were alike."""
        first = [flat(call()) for _ in range(3)]
        alike = [path for path in first[0] if all(path in one and one[path] == first[0][path] for one in first)]
        same = {path for path in alike if not MEASURED.search(path)}
        for name in important:
            self.assertTrue([path for path in same if name in path], f"{name} can be compared: {sorted(first[0])}")
        wanted = {path: first[0][path] for path in same}
        answered = refused = 0
        for _ in range(rounds):
            answer = self.attempt(call)
            if answer is None:
                refused += 1
                continue
            answered += 1
            found = flat(answer)
            other = {path: found.get(path) for path in same if found.get(path) != wanted[path]}
            self.assertEqual(other, {path: wanted[path] for path in other})
        self.assertGreater(answered, rounds // 10)
        self.assertGreater(refused, 10, "the control: memory was missing")

    def insist(self, call):
        """The answer, however often it takes."""
        while (answer := self.attempt(call)) is None:
            pass
        return answer


class SparseTest(SparseCase):
    settings = {"max_finished": 3, "max_receipts": 3}

    def setUp(self):
        super().setUp()
        for name in ("shown", "hidden", "kept"):
            (self.work / name).mkdir()
            (self.work / name / "text").write_text(f"{name}\n")
        self.other = self.keeper.place.dir / "other"
        self.other.mkdir()

    def run_one(self, **args):
        """A start, and what it was: only the start may be refused."""
        process = self.client.reply("spawn", args, b"input\n").result["process"]
        ended = self.insist(lambda: self.client.reply("wait", {"id": process["id"], "output_bytes": 1 << 16, "tidy": True}))
        return {"started": process, "ended": ended.result["process"], "output": ended.bytes().decode().splitlines()}

    def test_a_start_is_as_asked_for_or_refused(self):
        """Folders, variables, limits, injections, directory: a command that runs has all of them."""
        args = {
            "argv": ["sh", "-c", SCRIPT.replace("%s", str(self.other))],
            "env": {"NAME": "value", "OTHER": "another"},
            "sandbox": {
                "profile": "workspace-write",
                "workspace": str(self.work),
                "allow_write": [str(self.other)],
                "deny_read": [str(self.work / "hidden")],
                "deny_write": [str(self.work / "kept")],
            },
            "limits": {"max_open_files": 77, "max_cpu_secs": 100},
            "file_injections": [
                {"placement": "path", "path": str(self.work / "injected"), "content": "injected"},
                {"placement": "env", "name": "FILE", "content": "by name"},
            ],
            "tag": "tag",
            "call_id": "call",
        }
        self.sweep(lambda: self.run_one(**args), 400, ("output", "started.cwd", "ended.sandbox", "ended.limits", "ended.tag"))


class SparseOutputTest(SparseCase):
    def test_output_is_whole(self):
        """Where memory for it is missing it stays in the pipe until there is some, also of a process that has ended meanwhile."""
        lost = []
        for _ in range(100):
            started = [self.attempt(lambda: self.client.call("spawn", argv=["head", "-c", "20000", "/dev/zero"], cwd="/", sandbox={"profile": "full"})) for _ in range(16)]
            for one in filter(None, started):
                record = self.insist(lambda: self.client.call("wait", id=one["process"]["id"]))["process"]
                if record["end_cause"] == "self_exit" and record["streams"]["stdout"]["end"] != 20000:
                    lost.append(record["streams"]["stdout"])
        self.assertEqual(lost, [])

    def test_spooled_output_is_read_to_its_end(self):
        """Who follows a process that has ended gets its output from disk, or is told: nobody waits for what wakes nobody."""
        args = {"argv": ["head", "-c", "150000", "/dev/zero"], "cwd": "/", "overflow": "spool", "ring_bytes": 4096, "sandbox": {"profile": "full"}}
        whole = False
        while not whole:
            process = self.insist(lambda: self.client.call("spawn", **args))["process"]["id"]
            record = self.insist(lambda: self.client.call("wait", id=process))["process"]
            whole = record["end_cause"] == "self_exit" and not record["streams"]["stdout"]["spool"]["truncated"]
        for by in ({}, {"mode": "events"}) * 100:
            reply = self.attempt(lambda: self.client.reply("follow", {"id": process, **by}, timeout=10))
            if reply:
                told = sum(gap["bytes"] if by else gap["to"] - gap["from"] for gap in reply.events if gap["event"] == "gap")
                self.assertEqual(len(reply.bytes()) + told, 150000, (by, reply.events))
