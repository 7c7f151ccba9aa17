"""What outlives the keeper: history, receipts, agents and tokens (B-125, B-001)."""

import threading
import time
from datetime import datetime

from lib import procs
from lib.client import KeeperError
from lib.records import SECRET, RecordsCase, dumps

ROW = (
    "id tag label alias why task call_id owner agent agent_path session argv argv_truncated command mode cwd kind lease pid state "
    "started_at ended_at duration_ms exit end_cause end_evidence bytes events cpu_usage_ns memory_peak_bytes digest stderr_mode released audit_id"
).split()


def number(process):
    return int(process.rsplit("-", 1)[1])


class HistoryTest(RecordsCase):
    def history(self, client=None, **args):
        return (client or self.client).call("history", **args)["processes"]

    def test_rows_have_all_members(self):
        """A row tells what was asked and how it ended; what runs is running; no value of the environment is in it."""
        args = {"why": "for a test", "task": "t1", "call_id": "c1", "tag": "web", "env": {"KEY": SECRET}}
        ended = self.ended(self.sh("echo abc; echo e >&2; exit 3", **args)["id"])
        running = self.spawn("sleep", "300")
        self.settle()
        rows = {row["id"]: row for row in self.history()}
        row = rows[ended["id"]]
        self.assertEqual(set(row), set(ROW))
        same = [name for name in ROW if name not in ("bytes", "released", "duration_ms", "agent", "events", "cpu_usage_ns", "memory_peak_bytes")]
        self.assertEqual({name: row[name] for name in same}, {name: ended[name] for name in same})
        self.assertEqual((row["bytes"], row["released"]), ({"stdout": 4, "stderr": 2}, False))
        live = rows[running["id"]]
        self.assertEqual((live["state"], live["ended_at"], live["exit"], live["end_cause"]), ("running", None, None, None))
        self.assertNotIn(SECRET, dumps(list(rows.values())))

    def test_newest_first_in_pages(self):
        """Newest first; limit and before walk through all of it, each row once."""
        ids = [self.ended(self.spawn("true")["id"])["id"] for _ in range(7)]
        self.settle()
        self.assertEqual([row["id"] for row in self.history()], ids[::-1])
        pages, before = [], {}
        while True:
            answer = self.client.call("history", limit=3, **before)
            pages.append([row["id"] for row in answer["processes"]])
            if not answer["more"]:
                break
            before = {"before": pages[-1][-1]}
        self.assertEqual(pages, [ids[6:3:-1], ids[3:0:-1], ids[:1]])

    def test_since_and_until(self):
        """Bounds are of the start: since takes in, until leaves out."""
        first = self.ended(self.spawn("true")["id"])
        between = procs.wait_until(lambda: (now := int(time.time() * 1000)) > self.milliseconds(first) + 1 and now, "time goes on")
        procs.wait_until(lambda: int(time.time() * 1000) > between, "time goes on")
        second = self.ended(self.spawn("true")["id"])
        self.settle()
        self.assertEqual([row["id"] for row in self.history(since=between)], [second["id"]])
        self.assertEqual([row["id"] for row in self.history(until=between)], [first["id"]])
        self.assertEqual(self.history(since=between, until=between), [])

    @staticmethod
    def milliseconds(record):
        return int(datetime.fromisoformat(record["started_at"].replace("Z", "+00:00")).timestamp() * 1000)

    def test_each_sees_its_own_and_below(self):
        """Four agents at once: history gives each exactly its own and its descendants', also by name of an agent."""
        agents = {"main": self.client, "main/a": self.agent("main/a"), "main/b": self.agent("main/b")}
        agents["main/a/x"] = self.agent("main/a/x")
        owned = {path: [] for path in agents}

        def drive(path):
            for _ in range(8):
                process = agents[path].call("spawn", argv=["true"])["process"]["id"]
                agents[path].call("wait", id=process)
                owned[path].append(process)

        threads = [threading.Thread(target=drive, args=[path]) for path in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.settle()
        sees = {"main": set(agents), "main/a": {"main/a", "main/a/x"}, "main/b": {"main/b"}, "main/a/x": {"main/a/x"}}
        for restarted in (False, True):
            for path, below in sees.items():
                rows = self.history(agents[path])
                expected = {process for name in below for process in owned[name]}
                self.assertEqual({row["id"] for row in rows}, expected, path)
                self.assertEqual({row["agent_path"] for row in rows}, below)
                self.assertEqual({row["agent"] for row in rows if row["agent_path"] == path}, {"self"})
            self.assertEqual({row["id"] for row in self.history(agent="main/a")}, set(owned["main/a"]))
            self.assertEqual(self.foreign(agents["main/b"], "main/a"), self.foreign(agents["main/b"], "main/none"))
            if not restarted:
                tokens = {path: self.token(path) for path in agents if path != "main"}
                self.restart()
                agents = {"main": self.client, **{path: self.login(token) for path, token in tokens.items()}}

    def foreign(self, client, agent):
        """What somebody is told about an agent that it may not see: an answer or a refusal."""
        try:
            return client.call("history", agent=agent)
        except KeeperError as error:
            return error.code, error.message, error.details

    def test_bad_arguments(self):
        """Ranges and types are refused with the field."""
        for field, values in {"limit": (0, 10001, "x"), "since": (-1, "x"), "until": (-1, 2**60), "before": ("", 7)}.items():
            for value in values:
                with self.subTest(field=field, value=value), self.assertRaises(KeeperError) as caught:
                    self.client.call("history", **{field: value})
                self.assertIn(caught.exception.code, ("invalid_input", "no_such_process"))


class RestartTest(RecordsCase):
    def make_all(self):
        """Processes that end in several ways, and some that do not: ids by name."""
        made = {
            "fine": self.sh("echo out; exit 0", tag="fine")["id"],
            "three": self.sh("exit 3")["id"],
            "self": self.sh("kill -USR1 $$")["id"],
            "killed": self.spawn("sleep", "300")["id"],
            "gone": self.spawn("true")["id"],
        }
        self.client.call("kill", id=made["killed"])
        self.before = {name: self.ended(process) for name, process in made.items()}
        self.client.call("release", id=made.pop("gone"))
        made["live"] = self.spawn("sleep", "300", tag="live")["id"]
        made["stopped"] = self.spawn("sleep", "300")["id"]
        self.client.call("signal", id=made["stopped"], signal="STOP")
        self.settle()
        return made

    def check_all(self, made, cause):
        """After a restart: everything that is known is a receipt, as it ended; what lived has the cause; nothing is live."""
        self.assertEqual(self.client.call("list")["processes"], [])
        for name, process in made.items():
            with self.subTest(name=name):
                record = self.status(process)
                self.assertTrue(record["receipt"])
                self.assertIn(record["state"], ("exited", "signaled"))
                self.assertIsNotNone(record["ended_at"])
                if name in ("live", "stopped"):
                    self.assertEqual(record["end_cause"], cause)
                else:
                    before = self.before[name]
                    for field in ("exit", "end_cause", "started_at", "ended_at", "argv", "tag", "owner", "state", "audit_id"):
                        self.assertEqual(record[field], before[field], field)
                self.assertEqual(self.wait(process)["running"], False)
        with self.refused("no_such_process"):
            self.status(self.before["gone"]["id"])
        self.assertEqual(self.status("fine")["id"], made["fine"])
        rows = {row["id"]: row for row in self.client.call("history")["processes"]}
        self.assertLessEqual(set(made.values()), set(rows))
        self.assertTrue(rows[self.before["gone"]["id"]]["released"])
        self.assertEqual([row for row in rows.values() if row["state"] == "running"], [])
        self.assertEqual(rows[made["live"]]["end_cause"], cause)

    def check_ids_grow(self, made):
        new = self.spawn("true")["id"]
        used = [*made.values(), self.before["gone"]["id"]]
        self.assertGreater(number(new), max(map(number, used)))

    def test_b125_after_shutdown(self):
        """Earlier ids answer as they ended, live ones with cause shutdown; nothing is readable or running; ids go on."""
        made = self.make_all()
        self.restart()
        self.check_all(made, "shutdown")
        self.assertEqual(self.output(made["fine"]), b"")
        self.check_ids_grow(made)

    def test_b125_after_sigkill(self):
        """The keeper dies: what lived is lost, with neither code nor signal, and the processes are gone in fact."""
        made = self.make_all()
        pids = [self.status(made[name])["pid"] for name in ("live", "stopped")]
        self.restart(kill=True)
        self.check_all(made, "lost")
        self.assert_gone(pids)
        record = self.status(made["live"])
        self.assertEqual((record["state"], record["exit"]["code"], record["exit"]["signal"]), ("exited", None, None))
        self.assertIsNone(record["end_evidence"]["wait_status"])
        self.check_ids_grow(made)

    def test_b125_again_and_again(self):
        """Five restarts, in order and by SIGKILL: what was once told stays as it was told."""
        made = self.make_all()
        self.restart(kill=True)
        told = {name: self.status(process) for name, process in made.items()}
        for kill in (False, True, True, False):
            self.restart(kill=kill)
            for name, process in made.items():
                now = self.status(process)
                for field in ("state", "exit", "end_cause", "ended_at", "end_evidence", "started_at"):
                    self.assertEqual(now[field], told[name][field], (name, field))
            self.check_ids_grow(made)

    def test_b125_release_of_a_receipt_lasts(self):
        """A receipt that is released after the restart does not come back with the next."""
        made = self.make_all()
        self.restart()
        self.assertTrue(self.client.call("release", id=made["three"])["released"])
        self.settle()
        self.restart(kill=True)
        with self.refused("no_such_process"):
            self.status(made["three"])
        self.client.call("gc")
        self.restart()
        for process in made.values():
            with self.refused("no_such_process"):
                self.status(process)
        self.check_ids_grow(made)

    def test_b125_at_most_max_receipts(self):
        """Of many, the newest answer; the older ones are still in history."""
        self.settings = {"max_receipts": 5}
        ids = [self.ended(self.spawn("true")["id"])["id"] for _ in range(12)]
        self.restart()
        known = self.client.call("status", ids=ids)["processes"]
        self.assertEqual(sorted(record["id"] for record in known), sorted(ids[-5:]))
        self.assertEqual(len(self.client.call("history")["processes"]), 12)

    def test_b125_agents_and_tokens_survive(self):
        """Agents with their settings, ids and tokens are as before; revoked and removed ones stay so; each sees its own."""
        settings = {"max_running": 3, "max_buffer_bytes": 1 << 24, "persistent": True, "restricted": True,
                    "workspace": [str(self.work.resolve())], "policy": {"denied_commands": ["cat"]}}
        agent = self.agent("main/a", **settings)
        other = self.agent("main/b")
        self.agent("main/gone"), self.agent("main", principal="alice")
        mine, his = (client.call("spawn", argv=["true"])["process"]["id"] for client in (agent, other))
        agent.call("wait", id=mine), other.call("wait", id=his)
        good, revoked = self.token("main/a", label="good"), self.client.call("token_new", agent="main/a")
        lost = self.token("main/gone")
        self.client.call("token_revoke", id=revoked["id"])
        self.client.call("agent_remove", agent="main/gone")
        listed, tokens = self.client.call("agent_list")["agents"], self.client.call("token_list")["tokens"]
        alice = self.client.call("agent_list", principal="alice")["agents"]
        self.settle()
        for kill in (True, False):
            self.restart(kill=kill)
            for now, then in zip(self.client.call("agent_list")["agents"], listed, strict=True):
                for field in ("id", "principal", "path", "name", "created_at", "settings", "effective", "tokens"):
                    self.assertEqual(now[field], then[field], (then["path"], field))
            self.assertEqual(self.client.call("token_list")["tokens"], tokens)
            self.assertEqual([a["id"] for a in self.client.call("agent_list", principal="alice")["agents"]], [a["id"] for a in alice])
            back = self.login(good)
            self.assertEqual(back.call("info")["you"]["agent"], "main/a")
            self.assertEqual(back.call("status", id=mine)["process"]["receipt"], True)
            with self.assertRaises(KeeperError) as caught:
                back.call("status", id=his)
            self.assertEqual(caught.exception.code, "no_such_process")
            with self.assertRaises(KeeperError) as caught:
                back.call("spawn", argv=["cat"])
            self.assertEqual(caught.exception.code, "permission_denied")
            for token in (revoked["token"], lost):
                with self.refused("permission_denied"):
                    self.login(token)
        made = self.client.call("agent_add", agent="main/new")["agent"]["id"]
        self.assertGreater(made, max(agent["id"] for agent in listed + alice), "an agent's id is never used again")

    def test_b125_token_is_nowhere_in_the_files(self):
        """A token is stored as a keyed hash: its text is in no file, and its secret part neither."""
        token = self.client.call("token_new", agent="main")["token"]
        self.settle()
        self.shut_down()
        secret = token.rsplit("_", 1)[1]
        for name, data in self.state_files().items():
            for text in (token, secret):
                self.assertNotIn(text.encode(), data, name)
        self.assertNotIn(secret, self.place.log_tail())
