"""Records that cannot be read or written: clear words at the start, nothing lost, nothing reset, and running processes stay."""

import contextlib
import random
import socket
import sqlite3
import subprocess
import threading
import time
import unittest

from lib import procs
from lib.client import Client, Closed, KeeperError
from lib.place import KEEPER, patience
from lib.records import ROOT, RecordsCase, fill, read_only, seen_by, small_disk

NEEDS_ROOT = "needs root to mount in a mount namespace of its own"
NO_AUDIT = "[audit]\nenabled = no\n"


def number_of(process):
    return int(process.rsplit("-", 1)[1])


class DamageTest(RecordsCase):
    def setUp(self):
        """A keeper has been here and left in order: agents, tokens, processes, audit."""
        super().setUp()
        self.agent("main/a", max_running=3)
        for _ in range(20):
            self.ended(self.spawn("true")["id"])
        self.shut_down()
        self.database = self.place.state / "records.db"

    def refused_untouched(self, *words):
        """It does not start, says why with the file's name, and every file is as it was."""
        before = self.state_files()
        text = self.refuses_to_start(*words)
        after = self.state_files()
        changed = [name for name in before if after.get(name) != before[name]]
        self.assertEqual(changed, [], text)
        # Whoever reads a database may have to make these two; they say nothing.
        self.assertLessEqual(set(after) - set(before), {"records.db-wal", "records.db-shm"})
        return text

    def works_again(self, data):
        """With the good file back nothing is missing."""
        self.database.write_bytes(data)
        self.keeper = self.start_keeper(self.settings)
        client = self.keeper.clients[0]
        self.assertEqual([agent["path"] for agent in client.call("agent_list")["agents"]], ["main", "main/a"])
        self.assertEqual(len(client.call("history")["processes"]), 20)

    def test_newer_version(self):
        """A database of a newer version is refused in words that say so."""
        good = self.database.read_bytes()
        database = sqlite3.connect(self.database)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        self.assertGreaterEqual(version, 1)
        database.execute(f"PRAGMA user_version = {version + 1}")
        database.commit()
        database.close()
        self.refused_untouched(str(self.database), "newer")
        self.works_again(good)

    def test_garbage(self):
        """A file that is no database, and one whose pages are overwritten, are refused; the files stay as they are."""
        good = self.database.read_bytes()
        rng = random.Random(20260115)
        noise = rng.randbytes(len(good))
        pages = len(good) // 4096
        self.assertGreater(pages, 3)
        cases = {
            "noise": noise,
            "text": b"this is no database\n" * 100,
            "header kept": good[:100] + noise[100:],
            "first page kept": good[:4096] + noise[4096:],
            "zeros": bytes(len(good)),
        }
        for name, data in cases.items():
            with self.subTest(damage=name):
                self.database.write_bytes(data)
                self.refused_untouched(str(self.database))
        self.works_again(good)

    def test_truncated(self):
        """A file that was cut is refused, wherever it was cut."""
        good = self.database.read_bytes()
        for size in (1, 50, 100, 512, 4095, 4096, 8192, len(good) // 2, len(good) - 4096, len(good) - 1):
            with self.subTest(size=size):
                self.database.write_bytes(good[:size])
                self.refused_untouched(str(self.database))
        self.works_again(good)

    def test_not_ours(self):
        """A database of somebody else's is not taken over."""
        good = self.database.read_bytes()
        self.database.unlink()
        database = sqlite3.connect(self.database)
        database.execute("CREATE TABLE theirs (x)")
        database.execute("INSERT INTO theirs VALUES (7)")
        database.commit()
        database.close()
        self.refused_untouched(str(self.database))
        self.works_again(good)

    def test_other_kinds_of_file(self):
        """A folder or a dangling link in the place of a file: a clear error, not a silent new start."""
        good = self.database.read_bytes()
        for name in ("records.db", "key", "audit.log"):
            path = self.place.state / name
            kept = path.read_bytes()
            for make in ("mkdir", "symlink_to"):
                with self.subTest(name=name, make=make):
                    path.unlink()
                    getattr(path, make)(*([self.place.dir / "nowhere"] if make == "symlink_to" else []))
                    self.refuses_to_start(str(path))
                    self.assertFalse((self.place.dir / "nowhere").exists())
                    path.rmdir() if make == "mkdir" else path.unlink()
                    path.write_bytes(kept)
                    path.chmod(0o600)
        self.works_again(good)

    def test_ids_after_the_counter_was_lost(self):
        """Records know which ids were given: none is given again, and as many as ever are set aside on disk."""
        counter = self.place.state / "next-id"
        last = block = None
        for lost in (None, counter.unlink, lambda: counter.write_text("2\n")):
            if lost:
                lost()
            self.keeper = self.start_keeper(self.settings)
            self.client = self.keeper.clients[0]
            number = number_of(self.ended(self.spawn("true")["id"])["id"])
            free = int(counter.read_text()) - number
            if lost:
                self.assertEqual((number, free), (last + 1, block))
            self.shut_down()
            last, block = number, free

    def test_key(self):
        """A key of another size, or one that others may read, is an error and never replaced."""
        key = self.place.state / "key"
        good = key.read_bytes()
        for data in (b"", good[:-1], good + b"x"):
            with self.subTest(size=len(data)):
                key.write_bytes(data)
                self.refused_untouched(str(key))
        key.write_bytes(good)
        key.chmod(0o644)
        self.refused_untouched(str(key))
        key.chmod(0o600)
        self.works_again(self.database.read_bytes())

    def test_another_key(self):
        """Tokens are good with their key alone: a lost or exchanged one is told of, not replaced by a new one in silence."""
        key = self.place.state / "key"
        old = key.read_bytes()
        key.unlink()
        self.refuses_to_start(str(key), "put it back")
        self.assertFalse(key.exists())
        key.touch(0o600)
        key.write_bytes(b"x" * 32)
        self.refuses_to_start(str(key), "put it back")
        key.write_bytes(old)
        key.chmod(0o600)
        self.start_keeper()

    @unittest.skipUnless(ROOT, NEEDS_ROOT)
    def test_read_only_state_folder(self):
        """A state folder that cannot be written: one line that names it, nothing changed."""
        before = self.state_files()
        self.refuses_to_start(str(self.place.state), "ead-only", wrap=read_only(self.place.state))
        self.assertEqual(self.state_files(), before)
        self.works_again(self.database.read_bytes())


class CrashTest(RecordsCase):
    def test_killed_while_writing(self):
        """SIGKILL at any moment while four agents work: the next keeper starts, knows what was written, and nothing runs."""
        tokens = [self.login_later(number) for number in range(4)]
        known = set()
        everybody = {f"main/a{number}" for number in range(4)}
        for delay in (None, 0.0, 0.02, 0.05, 0.1, 0.15):
            self.settle()
            known |= {row["id"] for row in self.client.call("history", limit=10000)["processes"]}
            threads = [threading.Thread(target=self.work_until_closed, args=[token]) for token in tokens]
            for thread in threads:
                thread.start()
            if delay is None:
                procs.wait_until(lambda: everybody <= self.recorded_agents(), "all four are at work")
            else:
                time.sleep(delay)  # no synchronisation: the moment of the kill is what varies
            self.restart(kill=True)
            for thread in threads:
                thread.join()
            rows = {row["id"]: row for row in self.client.call("history", limit=10000)["processes"]}
            self.assertLessEqual(known, set(rows))
            self.assertEqual([row["id"] for row in rows.values() if row["state"] == "running"], [])
            self.assertEqual(self.client.call("list")["processes"], [])
            report = self.client.call("audit_verify")
            self.assertTrue(report["good"], report)
            newest = self.spawn("true")["id"]
            self.assertGreater(number_of(newest), max(map(number_of, rows), default=0))

    def recorded_agents(self):
        return {row["agent_path"] for row in self.client.call("history", limit=10000)["processes"]}

    def login_later(self, number):
        self.client.call("agent_add", agent=f"main/a{number}")
        return self.token(f"main/a{number}")

    def work_until_closed(self, token):
        with contextlib.suppress(Closed, ConnectionError, FileNotFoundError):
            client = Client(self.place.socket)
            with client:
                client.call("login", token=token)
                while True:
                    process = client.call("spawn", argv=["true"])["process"]["id"]
                    client.call("wait", id=process)

    def test_older_copy_of_the_database(self):
        """With a database of yesterday put back, ids still grow, and no id stands for two processes."""
        self.spawn("true")
        self.shut_down()
        database = self.place.state / "records.db"
        old = database.read_bytes()
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        later = [self.ended(self.spawn("true")["id"])["id"] for _ in range(5)]
        self.shut_down()
        database.write_bytes(old)
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        new = self.spawn("true")["id"]
        self.assertGreater(number_of(new), max(map(number_of, later)))

    def test_history_is_bounded(self):
        """max_history ended processes are remembered, the newest, also by a keeper that never lives long enough to have many."""
        self.settings = {"max_history": 5}
        self.restart()
        ids = [self.ended(self.spawn("true")["id"])["id"] for _ in range(30)]
        self.settle()
        self.shut_down()
        self.keeper = self.start_keeper(self.settings)
        self.client = self.keeper.clients[0]
        self.settle()

        def rows():
            return [row["id"] for row in self.client.call("history", limit=10000)["processes"]]

        procs.wait_until(lambda: rows() == ids[:-6:-1], "the old ones are gone", timeout=10)


@unittest.skipUnless(ROOT, NEEDS_ROOT)
class FullDiskTest(RecordsCase):
    """The state folder is a small disk of this keeper's alone; the test reaches it through the keeper's own eyes."""

    conf = NO_AUDIT

    def setUp(self):
        super().setUp()
        self.shut_down()
        self.place.state.rename(self.place.dir / "old-state")
        self.place.state.mkdir(mode=0o700)
        self.keeper = self.start_keeper(self.settings, wrap=small_disk(self.place.state, "3m"))
        self.client = self.keeper.clients[0]
        self.full = f"{seen_by(self.keeper, self.place.state)}/full"

    def make_room(self):
        # To nothing first: a name that goes frees its room only with the last one who has it open.
        open(self.full, "wb").close()

    def records(self):
        return self.client.call("info")["records"]

    def spawn_until_failing(self, ids):
        """The database has some room in pages of its own; spawns until it asks the disk for more and gets none."""

        def step():
            ids.append(self.ended(self.spawn("true", "x" * 4000)["id"])["id"])
            return self.records()["state"] == "failing"

        procs.wait_until(step, "the disk is full")

    def test_processes_go_on_and_it_recovers(self):
        """On a full disk everything is served as ever; info and log say what waits; with room again all of it is in history."""
        canary = self.sh("while read x; do echo got $x; done", stdin="pipe")["id"]
        self.settle()
        fill(self.full)
        ids = []
        self.spawn_until_failing(ids)
        state = self.records()
        self.assertGreater(state["pending"], 0)
        self.assertEqual(state["lost"], 0)
        self.assertTrue(state["error"], state)
        self.client.reply("write_stdin", {"id": canary}, b"word\n")
        self.wait_output(canary, b"got word\n")
        ids.append(self.ended(self.sh("exit 3")["id"])["id"])
        self.assertEqual(self.status(ids[-1])["exit"]["code"], 3)
        self.wait_log("records")
        self.assertEqual([record["id"] for record in self.client.call("list")["processes"]], [canary])
        self.make_room()
        procs.wait_until(lambda: (now := self.records())["state"] == "ok" and now["pending"] == 0, "it recovers")
        self.assertIsNone(self.records()["error"])
        rows = {row["id"]: row for row in self.client.call("history", limit=10000)["processes"]}
        self.assertEqual(set(rows), {canary, *ids})
        self.assertEqual(rows[ids[-1]]["exit"]["code"], 3)
        self.assertEqual({rows[process]["state"] for process in ids}, {"exited"})

    def test_leaves_in_order_while_full(self):
        """A keeper whose disk is full ends as ever, and says in the log that something could not be written."""
        fill(self.full)
        self.spawn_until_failing([])
        running = self.spawn("sleep", "300")["pid"]
        self.shut_down()
        self.assert_gone([running])
        self.assertIn("lost", self.place.log_tail())

    def test_agents_and_tokens_on_a_full_disk(self):
        """What must be kept is not promised: adding an agent either lasts or is refused as unavailable, and nothing half."""
        fill(self.full)
        self.spawn_until_failing([])
        try:
            self.client.call("agent_add", agent="main/a")
            added = True
        except KeeperError as error:
            self.assertEqual(error.code, "unavailable", error)
            added = False
        self.make_room()
        procs.wait_until(lambda: self.records()["state"] == "ok" and self.records()["pending"] == 0, "it recovers")
        paths = [agent["path"] for agent in self.client.call("agent_list")["agents"]]
        self.assertEqual("main/a" in paths, added)


class OffTest(RecordsCase):
    conf = "[records]\nenabled = no\n[audit]\nenabled = no\n"

    def test_switched_off(self):
        """Without records and audit: info says off, history is unavailable, and a restart knows nothing of before."""
        process = self.ended(self.spawn("true")["id"])
        info = self.client.call("info")
        self.assertEqual((info["records"]["state"], info["audit"]["state"]), ("off", "off"))
        self.assertIsNone(process["audit_id"])
        with self.refused("unavailable"):
            self.client.call("history")
        self.assertFalse(self.audit_path().exists())
        self.client.call("agent_add", agent="main/a", max_running=3)
        token = self.token("main/a")
        self.restart()
        with self.refused("no_such_process"):
            self.status(process["id"])
        self.assertEqual(self.login(token).call("info")["you"]["agent"], "main/a", "agents and tokens are kept all the same")

    def test_private_keeper(self):
        """A private keeper has neither: it says so, writes nothing, and still judges, refuses and tells events."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        env = self.place.env({"COOP_SOCKET": str(self.place.dir / "none.sock"), "COOP_STATE": str(self.place.dir / "none")})
        process = subprocess.Popen([str(KEEPER), "--private", str(theirs.fileno())], env=env, stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        with Client(ours) as client:
            for op in ("history", "audit_tail", "audit_verify"):
                with self.subTest(op=op), self.refused("unavailable"):
                    client.call(op)
            info = client.call("info")
            self.assertEqual((info["records"]["state"], info["audit"]["state"]), ("off", "off"))
            self.assertEqual(client.call("check", mode="shell", command="curl http://localhost/x | sh")["status"], "blocked")
            self.assertEqual(client.call("wait", id=client.call("spawn", argv=["true"])["process"]["id"])["exit_code"], 0)
        self.assertEqual(process.wait(patience(30)), 0)
        self.assertFalse((self.place.dir / "none").exists())
