"""How processes end over /runtime/v1: kill, signals, grace, timeouts, descendants."""

import os

from lib import procs
from lib.gateway import GatewayCase
from lib.procs import wait_until
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import OldRust, Rust
from lib.sdk_python import ExitError, SdkError

PROCESS = "/runtime/v1/process"
IGNORE_TERM = "trap '' TERM; echo up; while :; do sleep 0.05; done"


class KillTest(SdkCase):
    def test_r022_kill_returns_true_and_wait_gives_minus_9(self):
        def check(sandbox):
            handle = sandbox.commands.run("exec sleep 300", background=True)
            self.assertIs(sandbox.commands.kill(handle.pid), True)
            with self.assertRaises(ExitError) as caught:
                handle.wait()
            self.assertEqual(caught.exception.exit_code, -9)
            self.assertIn("SIGKILL", caught.exception.error)
            self.assertEqual(caught.exception.stderr, "coop: killed by SIGKILL: asked for by main (kill)\n")
            self.assertEqual(sandbox.commands.process(handle.pid)["status"], "killed")

        self.each(check)

    def test_r022_rust_clients_too(self):
        for kind in (OldRust, Rust):
            client = kind(self.gateway.url, self.gateway.token)
            self.addCleanup(client.close)
            handle = client.start("sleep", ["300"])
            self.assertEqual(client.kill(handle.pid)["status"], "killed")
            code, _, stderr, error = handle.wait()
            self.assertEqual((code, error), (-9, "killed by SIGKILL"))
            self.assertIn(b"coop: killed by SIGKILL", stderr)

    def test_r029_timeout_ends_it(self):
        """The Python client's `run` returns; the TypeScript one may have raised its own a moment before, but its handle ends."""

        def check(sandbox):
            handle = sandbox.commands.run("sleep 300", background=True, timeout=0.3)
            with self.assertRaises(ExitError) as caught:
                handle.wait()
            self.assertEqual(caught.exception.exit_code, 124)
            self.assertIn("timed out after 300 ms", caught.exception.error)
            self.assertEqual(caught.exception.stderr, "coop: timed out after 300 ms\n")
            self.assertEqual(sandbox.commands.process(handle.pid)["status"], "timed_out")
            with self.assertRaises(SdkError) as caught:
                sandbox.commands.run("sleep 300", timeout=0.3)
            self.assertIn(caught.exception.kind, ("CommandExit", "Timeout"))

        self.each(check)


class SignalTest(GatewayCase):
    def named(self, words):
        """Processes of the keeper's with that command line."""
        return [pid for pid in procs.descendants(self.gateway.keeper_pid) if procs.cmdline(pid) == words]

    def ways(self, pid, signal):
        """The two forms of the same thing."""
        yield lambda: self.request("POST", f"{PROCESS}/{pid}/signal", {"signal": signal})
        yield lambda: self.request("DELETE", f"{PROCESS}/{pid}?signal={signal}&kill_group=true")

    def test_r023_post_equals_delete(self):
        found = []
        for number in range(2):
            socket = self.sh("sleep 300 & sleep 300")
            response = list(self.ways(socket.pid, "SIGKILL"))[number]()
            self.assertEqual(response.status, 200, response.body)
            record = response.json()["process"]
            found.append((record["status"], record["exit_code"], socket.until_exit()["error"], self.status(socket.pid)["status"]))
        self.assertEqual(found[0], ("killed", -9, "killed by SIGKILL", "killed"))
        self.assertEqual(found[0], found[1])

    def test_signal_names_in_every_form(self):
        for name in ("SIGTERM", "TERM", "term", "sigterm", "15"):
            socket = self.sh("trap 'echo got; exit 5' TERM; echo up; while :; do sleep 0.02; done")
            socket.until(b"up\n")
            response = self.request("DELETE", f"{PROCESS}/{socket.pid}?signal={name}&kill_group=false")
            self.assertEqual(response.json()["process"]["exit_code"], 5, name)
            socket.until_exit()

    def test_default_signal_is_term(self):
        socket = self.start("sleep", "300")
        self.assertEqual(self.request("DELETE", f"{PROCESS}/{socket.pid}").json()["process"]["exit_code"], -15)
        self.assertEqual(socket.until_exit()["error"], "killed by SIGTERM")

    def test_signal_frame(self):
        socket = self.start("sleep", "300")
        socket.send(type="signal", signal="SIGINT")
        self.assertEqual(socket.until_exit()["exit_code"], -2)

    def test_r024_nobody_of_the_tree_survives(self):
        """setsid, a double fork, a daemon that ignores everything: all are gone when the answer comes."""
        (self.work / "tree.sh").write_text(
            "setsid sleep 305 &\n(setsid sh -c 'trap \"\" TERM HUP; sleep 305; sleep 305' &)\nsh -c 'sleep 305 & sleep 305' &\n"
            "(sleep 305 &)\necho up\nsleep 305\n")
        socket = self.start("sh", "tree.sh")
        socket.until(b"up\n")
        sleepers = wait_until(lambda: len(found := self.named("sleep 305")) == 6 and found, "the tree is there")
        tree = {socket.record["os_pid"], *sleepers, *procs.descendants(socket.record["os_pid"])}
        self.assertEqual(self.kill(socket.pid)["status"], "killed")
        self.assertEqual([pid for pid in tree if procs.alive(pid)], [])

    def test_r025_only_the_leader_gets_it(self):
        socket = self.sh("sleep 301 & echo up; wait")
        socket.until(b"up\n")
        child = wait_until(lambda: self.named("sleep 301"), "the child runs")[0]
        response = self.request("DELETE", f"{PROCESS}/{socket.pid}?signal=TERM&kill_group=false")
        self.assertEqual(response.json()["process"]["exit_code"], -15)
        self.assertTrue(procs.alive(child))
        os.kill(child, 9)

    def test_r026_grace_ends_in_kill(self):
        socket = self.sh(IGNORE_TERM)
        socket.until(b"up\n")
        response = self.request("DELETE", f"{PROCESS}/{socket.pid}?signal=TERM&grace_ms=300")
        self.assertEqual(response.json()["process"]["status"], "killed")
        self.assertEqual(socket.until_exit()["exit_code"], -9)

    def test_without_grace_nothing_follows(self):
        """The answer comes after 2 s with the state of then."""
        socket = self.sh(IGNORE_TERM)
        socket.until(b"up\n")
        response = self.request("DELETE", f"{PROCESS}/{socket.pid}?signal=TERM")
        self.assertEqual((response.status, response.json()["process"]["status"]), (200, "running"))
        self.assertEqual(self.kill(socket.pid)["status"], "killed")

    def test_r027_finished_ones_are_answered_not_signalled(self):
        socket = self.sh("exit 3")
        socket.until_exit()
        for way in self.ways(socket.pid, "SIGKILL"):
            record = way().json()["process"]
            self.assertEqual((record["status"], record["exit_code"]), ("failed", 3))

    def test_r027_unknown_ones_are_404(self):
        for way in self.ways("no-such-process", "SIGKILL"):
            self.assert_refused(way(), 404, "process_not_found")

    def test_r028_bad_values_are_400_and_nothing_is_signalled(self):
        socket = self.start("sleep", "300")
        for query in ("signal=FOO", "signal=", "signal=0", "signal=-9", "signal=99", "signal=SIG", "kill_group=maybe", "kill_group=1",
                      "kill_group=", "grace_ms=-1", "grace_ms=x", "grace_ms=1.5"):
            with self.subTest(query=query):
                self.assert_refused(self.request("DELETE", f"{PROCESS}/{socket.pid}?{query}"), 400, "invalid_argument")
        for body in ({"signal": "FOO"}, {"signal": []}, {"signal": 1000}):
            with self.subTest(body=body):
                self.assert_refused(self.request("POST", f"{PROCESS}/{socket.pid}/signal", body), 400, "invalid_argument")
        self.assertEqual(self.status(socket.pid)["status"], "running")
        self.kill(socket.pid)

    def test_kill_of_a_finished_leader_with_a_living_tree(self):
        """The record is final and stays so."""
        socket = self.sh("sleep 302 >/dev/null 2>&1 & echo up")
        socket.until_exit()
        self.assertEqual(self.kill(socket.pid)["status"], "succeeded")


class TimeoutTest(GatewayCase):
    def test_r030_timeout_without_a_client(self):
        socket = self.start("sleep", "300", timeout_ms=300)
        socket.drop()
        record = wait_until(lambda: (found := self.status(socket.pid))["status"] != "running" and found, "it has ended")
        self.assertEqual((record["status"], record["exit_code"]), ("timed_out", 124))

    def test_r031_exit_0_on_term_is_124(self):
        end = self.sh("trap 'exit 0' TERM; while :; do sleep 0.02; done", timeout_ms=500).until_exit()
        self.assertEqual((end["exit_code"], end["status"], end["error"]), (124, "timed_out", "timed out after 500 ms"))

    def test_r031_one_that_ignores_term_is_killed(self):
        end = self.sh(IGNORE_TERM, timeout_ms=300).until_exit()
        self.assertEqual((end["exit_code"], end["status"]), (124, "timed_out"))

    def test_r032_no_limit(self):
        """0, null and nothing: it ends by itself."""
        for fields in ({"timeout_ms": 0}, {"timeout_ms": None}, {}):
            with self.subTest(fields=fields):
                socket = self.sh("sleep 0.5; echo end", **fields)
                self.assertEqual(socket.until_exit()["exit_code"], 0)

    def test_bad_timeouts_are_refused(self):
        for value in (-1, 1.5, "5", True):
            with self.subTest(value=value):
                socket = self.socket()
                socket.send(type="start", cmd="true", timeout_ms=value)
                self.assertEqual(socket.expect_refused()["code"], "invalid_argument")

    def test_r038_descendant_with_the_pipe_does_not_hold_exit_back(self):
        socket = self.sh("sleep 303 & echo x")
        end = socket.until_exit()
        self.assertEqual((end["exit_code"], socket.output()), (0, b"x\n"))
        socket.expect_end(1000)
        for pid in procs.descendants(self.gateway.keeper_pid):
            if procs.cmdline(pid) == "sleep 303":
                os.kill(pid, 9)
