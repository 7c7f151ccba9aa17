"""The audit: one line per attempt and per end, without values, and a chain that shows every change (B-130, B-131)."""

import hashlib
import threading
import unittest

from lib import procs
from lib.client import KeeperError
from lib.records import ROOT, SECRET, RecordsCase, fill, seen_by, small_disk

SPAWN = {"seq", "at", "kind", "decision", "principal", "agent", "argv", "cwd", "profile", "env", "stdin", "prev", "hash"}
END = {"seq", "at", "kind", "spawn", "exit", "end_cause", "prev", "hash"}


def attempt(client, data=None, **args):
    """Tries to start something: the id, or the code of the refusal."""
    try:
        return client.reply("spawn", args, data).result["process"]["id"]
    except KeeperError as error:
        return error.code


class LinesTest(RecordsCase):
    def new_lines(self, seen):
        """The line of the attempt since `seen` lines, which must be one."""
        lines = self.audit_lines("spawn")[seen:]
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def test_b130_allowed_and_its_end(self):
        """A process has one line for its start, before all else, and one for its end that names it; the record has its number."""
        folder = str(self.work.resolve())
        record = self.ended(self.sh("exit 3", cwd=folder)["id"])
        (spawn,), (end,) = self.audit_lines("spawn"), self.audit_lines("end")
        self.assertLessEqual(SPAWN, set(spawn))
        self.assertLessEqual(END, set(end))
        self.assertEqual((spawn["decision"], spawn["agent"], spawn["cwd"]), ("allowed", "main", folder))
        self.assertEqual((spawn["argv"], spawn["principal"]), (["sh", "-c", "exit 3"], record["owner"]["principal"]))
        self.assertEqual(record["audit_id"], f"aud-{spawn['seq']}")
        self.assertEqual((end["spawn"], end["exit"]["code"], end["end_cause"]), (spawn["seq"], 3, "self_exit"))
        self.assertGreater(end["seq"], spawn["seq"])
        shell = self.client.call("spawn", mode="shell", command="echo $HOME")["process"]
        self.ended(shell["id"])
        self.assertEqual(self.audit_lines("spawn")[1]["command"], "echo $HOME")

    def test_b130_every_refusal_is_one_line(self):
        """Refusals of every kind leave one line each: denied by policy, quota and right, failed for all else, with the code."""
        root = self.place.dir / "root"
        root.mkdir()
        settings = {"policy": {"denied_commands": ["cat"]}, "restricted": True, "workspace": [str(root)]}
        agent, full = self.agent("main/a", **settings), self.agent("main/full", max_running=0)
        cases = [
            (agent, {"argv": ["cat"]}, "denied", "permission_denied"),
            (full, {"argv": ["true"]}, "denied", "registry_full"),
            (agent, {"argv": ["true"], "sandbox": {"workspace": "/var"}}, "denied", "boundary_escape"),
            (agent, {"argv": ["true"], "env": {"LD_PRELOAD": "x"}}, "denied", "capability_denied"),
            (agent, {"argv": ["true"], "lease": "persistent"}, "denied", "persist_unsupported"),
            (self.client, {"argv": ["true"], "cwd": "/nonexistent"}, "failed", "invalid_input"),
            (self.client, {"argv": []}, "failed", "invalid_input"),
            (self.client, {"argv": 7}, "failed", "invalid_input"),
            (self.client, {}, "failed", "invalid_input"),
            (self.client, {"argv": ["true"], "nonsense": 1}, "failed", "invalid_input"),
            (self.client, {"argv": ["true"], "session": "ses-999"}, "failed", "invalid_input"),
            (self.client, {"argv": ["true"], "env": {"1": "x"}}, "failed", "invalid_input"),
        ]
        for client, args, decision, code in cases:
            with self.subTest(args=args):
                seen = len(self.audit_lines("spawn"))
                self.assertEqual(attempt(client, **args), code)
                line = self.new_lines(seen)
                self.assertEqual((line["decision"], line["code"]), (decision, code))
                self.assertEqual(line["agent"], {agent: "main/a", full: "main/full"}.get(client, "main"))
        self.assertEqual(self.audit_lines("end"), [], "what never began has no end")

    def test_b130_strange_words_stay_in_their_place(self):
        """Control characters, quotes and other members in names and words: one whole line each, as what they are."""
        words = ["a\nb", "a\x01", '"', 'x": {}, "decision": "allowed", "y', "\\", "\x7f", "\u2028", "Ä", "", "n" * 70000]
        for word in words:
            for args in ({"argv": ["true"], "env": {word: "v"}}, {"argv": [word], "cwd": "/nonexistent"},
                         {"argv": ["true"], "env_mode": word}, {"argv": ["true"], word or "x": 1}, {"argv": ["true"], "cwd": word or "/x"}):
                with self.subTest(args=str(args)[:60]):
                    seen = len(self.audit_lines("spawn"))
                    self.assertIn(attempt(self.client, **args), ("invalid_input", "too_large"))
                    self.assertEqual(self.new_lines(seen)["decision"], "failed")
        audit = self.client.call("info")["audit"]
        self.assertEqual((audit["state"], audit["lost"]), ("ok", 0))
        self.assertTrue(self.client.call("audit_verify")["good"])
        self.assertEqual({line["kind"] for line in self.audit_lines()}, {"spawn"})

    def test_b130_cannot_be_executed(self):
        """It was allowed and tried: one allowed line, and an end that says spawn_failed; also when a record is asked for."""
        for number, args in enumerate(({}, {"record_failure": True}), 1):
            self.assertEqual(attempt(self.client, argv=["/nonexistent/program"], **args), "spawn_failed")
            spawn, end = self.audit_lines("spawn"), self.audit_lines("end")
            self.assertEqual((len(spawn), len(end)), (number, number))
            self.assertEqual(spawn[-1]["decision"], "allowed")
            self.assertEqual((end[-1]["end_cause"], end[-1]["spawn"]), ("spawn_failed", spawn[-1]["seq"]))

    def test_b130_looking_leaves_no_line(self):
        """check and all other operations are no attempts."""
        self.client.call("check", argv=["true"])
        self.client.call("list"), self.client.call("history")
        self.assertEqual(self.audit_lines("spawn"), [])

    def test_b130_many_agents_at_once(self):
        """Four agents at the same time, with successes and refusals: for each as many lines as attempts, and a whole chain."""
        agents = {f"main/a{i}": self.agent(f"main/a{i}", policy={"denied_commands": ["cat"]}) for i in range(4)}
        wanted = ["allowed", "denied", "failed"] * 10

        def drive(client):
            for _ in range(10):
                client.call("wait", id=attempt(client, argv=["true"]))
                attempt(client, argv=["cat"])
                attempt(client, argv=["true"], cwd="nonexistent")

        threads = [threading.Thread(target=drive, args=[client]) for client in agents.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = self.audit_lines()
        for path in agents:
            mine = [line for line in lines if line["kind"] == "spawn" and line["agent"] == path]
            self.assertEqual([line["decision"] for line in mine], wanted)
        allowed = [line["seq"] for line in lines if line.get("decision") == "allowed"]
        ends = [line["spawn"] for line in lines if line["kind"] == "end"]
        self.assertEqual(sorted(ends), sorted(allowed), "every start has one end")
        self.assertTrue(self.client.call("audit_verify")["good"])
        self.assertEqual([line["seq"] for line in lines], list(range(lines[0]["seq"], lines[0]["seq"] + len(lines))))

    def test_b130_ends_after_shutdown_and_death(self):
        """A shutdown writes the ends of what it stopped; the chain goes on over restarts of both kinds."""
        self.spawn("sleep", "300")
        self.restart()
        self.assertEqual(self.audit_lines("end")[-1]["end_cause"], "shutdown")
        last = self.audit_lines()[-1]["seq"]
        self.spawn("sleep", "300")
        self.settle()
        self.restart(kill=True)
        self.ended(self.spawn("true")["id"])
        lines = self.audit_lines()
        self.assertGreater(lines[-1]["seq"], last)
        self.assertTrue(self.client.call("audit_verify")["good"])
        self.assertEqual(len([line for line in lines if line["kind"] == "spawn"]), 3)
        # What was lost has an end too, told by the keeper that found it.
        self.assertEqual(len([line for line in lines if line["kind"] == "end"]), 3)
        self.assertIn("lost", [line["end_cause"] for line in lines if line["kind"] == "end"])

    def test_b130_only_the_operator(self):
        """No other agent may read or verify it."""
        agent = self.agent("main/a")
        for op in ("audit_tail", "audit_verify"):
            with self.subTest(op=op), self.refused("permission_denied"):
                agent.call(op)
        for count in (0, 10001, -1, "x"):
            with self.subTest(count=count), self.refused("invalid_input", "count"):
                self.client.call("audit_tail", count=count)


class SecretsTest(RecordsCase):
    def test_b131_nothing_usable_in_the_file(self):
        """Planted secrets, stdin, output and ids are nowhere in it; of values there are a mark and a keyed hash."""
        planted = {"env": "env-Zq81", "stdin": "stdin-Zq82", "output": "Zq83", "denied": "denied-Zq84", "bad": "bad-Zq85"}
        env = {"KEY": planted["env"], "LONG_NAME": SECRET}
        # The words of the command are shown; what it prints is made only when it runs.
        argv = ["sh", "-c", "cat; printf 'Z%s83' q"]
        record = self.ended(self.spawn(*argv, env=env, data=planted["stdin"].encode())["id"])
        self.assertIn(b"Zq83", self.output(record["id"]))
        agent = self.agent("main/a", policy={"denied_commands": ["cat"]})
        attempt(agent, data=planted["denied"].encode(), argv=["cat"], env={"KEY": planted["denied"]})
        attempt(agent, argv=["true"], env={"KEY": planted["bad"], "1": planted["bad"]})
        attempt(agent, argv=["true"], env={"KEY": planted["bad"] + "\0"})
        attempt(agent, argv=["true"], env=planted["bad"])
        self.ended(self.spawn("true", call_id="call-Zq86", tag="t")["id"])
        data = self.audit_path().read_bytes()
        for name, text in planted.items():
            self.assertNotIn(text.encode(), data, name)
        for text in (SECRET.encode(), b"psh-", record["id"].encode(), b'"pid"', b'"id"', b"process_group"):
            self.assertNotIn(text, data)

    def test_b131_keyed_hashes(self):
        """Equal values have equal hashes, others not, over spawns, agents and restarts; without the key they cannot be tried."""
        agent = self.agent("main/a")
        for client in (self.client, agent):
            client.call("wait", id=attempt(client, argv=["cat"], env={"A": SECRET, "B": SECRET + "2"}, data=b"words"))
        self.restart()
        self.ended(self.spawn("cat", env={"A": SECRET}, data=b"words")["id"])
        self.ended(self.spawn("cat", data=b"other")["id"])
        self.ended(self.spawn("true")["id"])
        lines = self.audit_lines("spawn")
        values = [line["env"]["A"] for line in lines[:3]]
        self.assertEqual(values, [values[0]] * 3)
        self.assertEqual((values[0]["present"], values[0]["redacted"]), (True, True))
        self.assertNotEqual(lines[0]["env"]["B"]["value_sha256"], values[0]["value_sha256"])
        stdin = [line["stdin"] for line in lines]
        self.assertEqual((stdin[0], stdin[0]["size"]), (stdin[1], 5))
        self.assertEqual(stdin[0], stdin[2])
        self.assertNotEqual(stdin[3]["sha256"], stdin[0]["sha256"])
        self.assertIsNone(stdin[4])
        self.assertNotEqual(values[0]["value_sha256"], hashlib.sha256(SECRET.encode()).hexdigest())
        self.assertNotEqual(stdin[0]["sha256"], hashlib.sha256(b"words").hexdigest())
        for text in (values[0]["value_sha256"], stdin[0]["sha256"]):
            self.assertRegex(text, "^[0-9a-f]{64}$")

    def test_b131_files_are_private(self):
        """Nobody else may read the audit or the key."""
        self.spawn("true")
        for name in ("audit.log", "key", "records.db"):
            self.assertEqual((self.place.state / name).stat().st_mode & 0o077, 0, name)


@unittest.skipUnless(ROOT, "needs root to mount a small disk in a mount namespace of its own")
class UnwritableTest(RecordsCase):
    conf = "[records]\nenabled = no\n"

    def test_b130_unwritable_refuses_and_recovers(self):
        """A spawn whose line cannot be written is unavailable and starts nothing; what runs goes on; with room again it works."""
        self.shut_down()
        old = self.place.dir / "old-state"
        self.place.state.rename(old)
        self.place.state.mkdir(mode=0o700)
        keeper = self.keeper = self.start_keeper(self.settings, wrap=small_disk(self.place.state, "1m"))
        client = self.client = keeper.clients[0]
        full = f"{seen_by(keeper, self.place.state)}/full"
        canary = self.sh("read x; exit 5", stdin="pipe")["id"]
        program, mark = self.marker("tool")
        fill(full)
        # The file's last page may take some more lines; each attempt uses it up.
        answers = []
        procs.wait_until(lambda: answers.append(attempt(client, argv=["true", "x" * 3000])) or answers[-1] == "unavailable", "no room")
        self.assertEqual(attempt(client, argv=[str(program), "x" * 3000], **self.granted()), "unavailable")
        self.assertFalse(mark.exists())
        audit = client.call("info")["audit"]
        self.assertEqual(audit["state"], "failing")
        self.assertTrue(audit["error"])
        self.assertEqual(self.status(canary)["state"], "running")
        client.reply("write_stdin", {"id": canary}, b"\n")
        self.assertEqual(self.ended(canary)["exit"]["code"], 5)
        open(full, "wb").close()
        # The first one that is refused has it tried again.
        procs.wait_until(lambda: attempt(client, argv=[str(program)], **self.granted()).startswith("psh-"), "room again")
        procs.wait_until(mark.exists, "it runs")
        self.assertEqual(client.call("info")["audit"]["state"], "ok")
        self.assertTrue(client.call("audit_verify")["good"])
        lines = self.audit_lines("spawn")
        started = len([answer for answer in answers if answer.startswith("psh-")])
        allowed = [line for line in lines if line["decision"] == "allowed"]
        self.assertEqual(len(allowed), started + 2, "no line without a start, no start without a line")
