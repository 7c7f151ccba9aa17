"""The end of the keeper itself (B-123), and of private and idle keepers."""

import os
import signal
import socket
import subprocess
import time

from lib import procs
from lib.client import Client, Closed, KeeperError
from lib.keeper import KeeperCase
from lib.place import KEEPER, Place, patience

POLITE = "trap 'echo bye; exit 6' TERM; echo ready; while :; do sleep 0.05; done"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


class ShutdownTest(KeeperCase):
    def test_b123_orderly_stop(self):
        """New spawns are refused, everything is stopped with grace, causes and end events are told, nothing is left."""
        polite, stubborn = self.sh(POLITE), self.sh(STUBBORN)
        daemon = self.sh("setsid sh -c 'trap \"\" TERM HUP; echo $$; sleep 300; sleep 300' & sleep 300")
        child = self.outside(daemon["id"], self.wait_output(daemon["id"], b"\n"))
        spooled = self.sh("echo x; sleep 300", overflow="spool")
        for process in (polite, stubborn):
            self.wait_output(process["id"], b"ready")
        waiter = self.connect()
        waits = {p["id"]: waiter.submit("wait", {"id": p["id"]}) for p in (polite, stubborn, daemon)}
        follow = waiter.submit("follow", {"id": polite["id"]})
        self.assertEqual(waiter.item(follow)["event"], "attached")
        stopper = self.connect()
        stop = stopper.submit("shutdown", {"grace_ms": 1500})
        follower = waiter.finish(follow)
        self.assertEqual(follower.bytes(), b"ready\nbye\n")
        # The polite one has ended by the TERM, the stubborn one still has its grace: the keeper is stopping.
        try:
            with self.refused("unavailable"):
                self.client.call("spawn", argv=["true"])
        except Closed:
            self.fail("the keeper left before the grace was over")
        records = {process: waiter.finish(request).result["process"] for process, request in waits.items()}
        self.assertEqual(records[polite["id"]]["exit"]["code"], 6)
        self.assertEqual(records[stubborn["id"]]["exit"]["signal"], 9)
        self.assertEqual({record["end_cause"] for record in records.values()}, {"shutdown"})
        answer = stopper.finish(stop).result
        self.assertEqual((answer["ended"], answer["survivors"]), (4, 0))
        self.expect_end(self.keeper, [0])
        self.assert_gone([p["pid"] for p in (polite, stubborn, daemon, spooled)] + [child])
        self.assert_no_files()

    def assert_no_files(self):
        place = self.keeper.place
        self.assertFalse(place.socket.exists())
        spool = place.state / "spool"
        self.assertEqual(list(spool.rglob("*")) if spool.exists() else [], [])

    def test_b123_sigterm_is_an_orderly_stop(self):
        """SIGTERM to the guard, and to the keeper itself, ends everything in order."""
        for whom in ("guard", "keeper"):
            with self.subTest(whom=whom):
                keeper = self.start_keeper()
                client = keeper.clients[0]
                process = client.call("spawn", argv=["sleep", "300"])["process"]
                waiter = keeper.connect()
                request = waiter.submit("wait", {"id": process["id"]})
                waiter.call("info")
                os.kill(keeper.process.pid if whom == "guard" else keeper.pid, signal.SIGTERM)
                self.assertEqual(waiter.finish(request).result["process"]["end_cause"], "shutdown")
                self.expect_end(keeper, [0])
                self.assert_gone([process["pid"]])
                self.assertFalse(keeper.place.socket.exists())

    def test_b123_guard_killed(self):
        """If the guard is killed the keeper stops in order: nothing it owned is left."""
        process = self.sh("setsid sleep 300 & echo up; sleep 300")
        self.wait_output(process["id"], b"up")
        tree = [process["pid"], *procs.descendants(process["pid"])]
        guard = self.client.call("info")["guard_pid"]
        self.assertEqual(guard, self.keeper.process.pid)
        os.kill(guard, signal.SIGKILL)
        self.expect_end(self.keeper)
        procs.wait_until(lambda: not any(map(procs.alive, [*tree, self.keeper.pid])), "all is gone")

    def test_b123_two_who_shut_down(self):
        """Two requests at once: the second hears that it is under way; the keeper leaves once."""
        clients = [self.client, self.connect()]
        self.client.submit("shutdown", {})
        for client in clients:
            try:
                request = client.last_id or client.submit("shutdown", {})
                self.assertEqual(client.finish(request).result["survivors"], 0)
            except Closed:
                pass
            except KeeperError as error:
                self.assertEqual(error.code, "unavailable")
        self.expect_end(self.keeper, [0])

    def test_b123_second_keeper_is_refused(self):
        """Another keeper on the same socket does not start, and the first one is not disturbed."""
        process = self.spawn("sleep", "300")["id"]
        second = subprocess.run([str(KEEPER), "--foreground"], env=self.keeper.place.env(), capture_output=True,
                                timeout=patience(30), check=False)
        self.assertNotEqual(second.returncode, 0)
        self.assertEqual(len(second.stderr.strip().split(b"\n")), 1, second.stderr)
        self.assertEqual(self.status(process)["state"], "running")


class PrivateTest(KeeperCase):
    def test_b123_private_keeper_leaves_with_its_owner(self):
        """A keeper on a socketpair ends all it owns when the other end closes, and listens nowhere."""
        place = self.keeper.place
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        env = place.env({"COOP_SOCKET": str(place.dir / "none.sock"), "COOP_STATE": str(place.dir / "none")})
        process = subprocess.Popen([str(KEEPER), "--private", str(theirs.fileno())], env=env, stdin=subprocess.DEVNULL,
                                   pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        client = Client(ours)
        spawned = client.call("spawn", argv=["sh", "-c", "setsid sleep 300 & echo $!; sleep 300"])["process"]
        self.assertTrue(client.call("info")["private"])
        tree = [spawned["pid"]]
        procs.wait_until(lambda: len(procs.descendants(spawned["pid"])) == 2, "the tree stands")
        tree += procs.descendants(spawned["pid"])
        self.assertFalse((place.dir / "none.sock").exists())
        client.close()
        self.assertEqual(process.wait(patience(30)), 0)
        self.assert_gone(tree)
        self.assertFalse((place.dir / "none").exists(), "a private keeper keeps no records")


class DaemonTest(KeeperCase):
    def test_idle_daemon_leaves_when_it_has_nothing_to_keep(self):
        """--daemon returns once the socket listens. With idle_exit_ms the keeper leaves when it has no process, record or
        client, and stays while it has one."""
        place = Place()
        self.addCleanup(place.remove)
        argv = [str(KEEPER), "--daemon", "--set", "idle_exit_ms=300"]
        subprocess.run(argv, env=place.env(), check=True, timeout=patience(30), stdin=subprocess.DEVNULL)
        client = Client(place.socket)
        process = client.call("spawn", argv=["sleep", "300"])["process"]["id"]
        pid = client.hello["pid"]
        client.close()
        time.sleep(1.2)
        self.assertTrue(procs.alive(pid), "it must stay while it keeps a process")
        with Client(place.socket) as client:
            client.call("release", id=process)
        procs.wait_until(lambda: not procs.alive(pid), "an idle keeper leaves")
        procs.wait_until(lambda: not place.socket.exists(), "its socket goes with it")
        self.assertEqual(place.faults(), "")


class PlaceTest(KeeperCase):
    def refused_start(self, env):
        done = subprocess.run([str(KEEPER), "--foreground"], env=env, capture_output=True, text=True, timeout=patience(60))
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr

    def test_file_at_the_socket_is_kept(self):
        """What lies at the socket's path and is no socket is refused by name, and stays as it is."""
        place = Place()
        self.addCleanup(place.remove)
        place.socket.write_text("precious")
        self.assertIn(f"{place.socket} is there and is no socket", self.refused_start(place.env()))
        self.assertEqual(place.socket.read_text(), "precious")

    def test_state_folder_of_another_keeper(self):
        """A second keeper with another socket and the same state folder is refused, while the first one serves."""
        place = Place()
        self.addCleanup(place.remove)
        env = place.env({"COOP_STATE": str(self.keeper.place.state)})
        self.assertIn(f"is used by another keeper (pid {self.keeper.pid}): set COOP_STATE", self.refused_start(env))
        self.assertEqual(self.client.call("list")["processes"], [])
