"""What ends with a command, a session or a call, by the command line (B-053, B-121, B-122)."""

from lib import procs
from lib.cli import CliCase


class LeaseTest(CliCase):
    def one(self, **wanted):
        """The record of the one live process with these values, once it is there."""

        def look():
            listed = self.json("ps")
            listed = listed["processes"] if isinstance(listed, dict) else listed
            found = [record for record in listed if wanted.items() <= record.items()]
            return found[0] if len(found) == 1 else None

        return procs.wait_until(look, f"a process with {wanted}", interval=0.05)

    def test_b122_default_leases(self):
        """A foreground run is ephemeral and ends with its coop; -d and a terminal's shell that is detached are awaited and stay."""
        front = self.start("run", "--tag", "front", "--", "sleep", "300")
        detached = self.detached("sleep", "300", options=["--tag", "back"])
        shell = self.detached("cat", options=["-t", "--tag", "shell"])
        self.assertEqual(self.one(tag="front", state="running")["lease"], "ephemeral")
        for tag in ("back", "shell"):
            self.assertEqual(self.one(tag=tag)["lease"], "awaited")
        pid = self.one(tag="front", state="running")["pid"]
        front.kill()
        procs.wait_until(lambda: not procs.alive(pid), "it ends with its coop")
        for process in (detached, shell):
            self.assertEqual(self.json("status", process)["state"], "running")

    def test_b122_chosen_leases(self):
        """--lease chooses: an awaited foreground run outlives its coop; persistent has its limits."""
        front = self.start("run", "--lease", "awaited", "--tag", "front", "--", "sleep", "300")
        record = self.one(tag="front", state="running")
        front.kill()
        front.wait()
        self.assertTrue(procs.alive(record["pid"]))
        self.assertEqual(self.json("status", "front")["lease"], "awaited")
        kept = self.json("status", self.detached("sleep", "300", options=["--lease", "persistent"]))
        self.assertEqual(kept["lease"], "persistent")
        self.assertGreater(kept["limits"]["max_lifetime_ms"], 0)

    def test_b121_a_sessions_end_spares_persistent_ones(self):
        """session end ends what is awaited in it, and says so; persistent ones and all others stay."""
        session = self.out("session", "new").decode().strip()
        awaited, kept = (
            self.detached("sleep", "300", options=["--session", session, "--lease", lease]) for lease in ("awaited", "persistent")
        )
        other = self.detached("sleep", "300")
        self.coop("session", "end", session)
        self.assertEqual(self.json("status", awaited)["end_cause"], "session_end")
        for process in (kept, other):
            self.assertEqual(self.json("status", process)["state"], "running")
        self.refusal("run", "-d", "--session", session, "--", "true", code=125)

    def test_b053_cancel(self):
        """cancel ends what was started with the call id, and nothing else; that there is nothing is no failure."""
        first = [self.detached("sleep", "300", options=["--call-id", "c1"]) for _ in range(2)]
        other, plain = self.detached("sleep", "300", options=["--call-id", "c2"]), self.detached("sleep", "300")
        text = self.out("cancel", "c1", "unknown").decode()
        for process in first:
            self.assertIn(process, text)
            self.assertEqual(self.json("status", process)["end_cause"], "cancelled")
        for process in (other, plain):
            self.assertEqual(self.json("status", process)["state"], "running")
        self.coop("cancel", "c1")
        self.assertEqual(self.json("cancel", "c2")["cancelled"], [other])
