"""Ids of processes over /runtime/v1: given or made, encoded in every way that clients do."""

import re
from urllib.parse import quote

from lib.gateway import GatewayCase
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import OldRust, Rust

PROCESS = "/runtime/v1/process"


class SlashTest(SdkCase):
    def test_r036_slash_in_an_id(self):
        """Start, list, status, attach, output, kill."""

        def check(sandbox):
            name = f"a/{type(sandbox).__name__}"
            handle = sandbox.commands.run("echo hi; exec sleep 300", background=True, process_id=name)
            self.assertEqual(handle.pid, name)
            self.assertIn(name, [item["pid"] for item in sandbox.commands.list()])
            self.assertEqual(sandbox.commands.process(name)["status"], "running")
            other = sandbox.commands.connect(name)
            self.assertEqual(other.pid, name)
            self.attach(quote(name, safe="")).until(b"hi\n").drop()
            self.assertIs(sandbox.commands.kill(name), True)
            self.assertEqual(sandbox.commands.read_output(name)["events"][0][2], b"hi\n")
            self.assertEqual(sandbox.commands.process(name)["exit_code"], -9)
            other.disconnect()

        self.each(check)

    def test_r036_rust_client_too(self):
        client = Rust(self.gateway.url, self.gateway.token)
        self.addCleanup(client.close)
        for name in ("r/b", "r+b", "r:b@c", "r.b_c-d"):
            handle = client.start("sleep", ["300"], id=name)
            self.assertEqual(client.process(name)["pid"], name)
            client.connect(name).disconnect()
            self.assertEqual(client.kill(name)["status"], "killed")
            self.assertEqual(handle.wait()[0], -9)

    def test_old_client_reaches_ids_that_coop_made(self):
        """It encodes nothing, so there must be nothing to encode."""
        client = OldRust(self.gateway.url, self.gateway.token)
        self.addCleanup(client.close)
        handle = client.start("sleep", ["300"])
        self.assertRegex(handle.pid, r"^[A-Za-z0-9._:@-]+$")
        self.assertIn(handle.pid, client.list())
        self.assertEqual(client.kill(handle.pid)["status"], "killed")
        handle.wait()


class IdTest(GatewayCase):
    def start_error(self, **start):
        socket = self.socket()
        socket.send(type="start", cmd="true", **start)
        end = socket.expect_refused()
        socket.expect_end()
        return end, socket.pid

    def test_r035_live_id_is_refused(self):
        first = self.start("sleep", "300", id="twice")
        end, pid = self.start_error(id="twice")
        self.assertEqual((end["exit_code"], end["code"]), (126, "process_exists"))
        self.assertIn("twice", end["error"])
        # To kill what was refused hits nobody, and there is no record of it.
        self.assert_refused(self.request("DELETE", f"{PROCESS}/{pid}?signal=KILL"), 404, "process_not_found")
        self.assertNotIn(pid, [record["id"] for record in self.get(f"{PROCESS}?all=true")["processes"]])
        self.assertEqual(self.status("twice")["os_pid"], first.record["os_pid"])
        self.assertEqual(self.status("twice")["status"], "running")
        self.kill("twice")
        first.until_exit()

    def test_ended_id_may_be_used_again(self):
        """The name is then that of the newer one."""
        for text in ("one", "two"):
            socket = self.sh(f"echo {text}", id="again")
            socket.until_exit()
            replay = self.attach("again")
            replay.until_exit()
            self.assertEqual(replay.output(), f"{text}\n".encode())

    def test_r037_bad_ids_are_refused(self):
        for value in ("with space", ".", "..", "x" * 129, "", "ümlaut", "tab\t", "a%2fb", "a?b", "a#b", "nul\0"):
            with self.subTest(value=value[:20]):
                end, _ = self.start_error(id=value)
                self.assertEqual((end["exit_code"], end["code"]), (126, "invalid_argument"))

    def test_r037_longest_id_and_all_letters_are_accepted(self):
        for value in ("x" * 128, "Az09._:@/+-", "...", "/", "+"):
            with self.subTest(value=value[:20]):
                socket = self.sh("exit 4", id=value)
                self.assertEqual(socket.pid, value)
                socket.until_exit()
                self.assertEqual(self.status(quote(value, safe=""))["exit_code"], 4)

    def test_ids_of_the_keeper_cannot_be_given(self):
        """They would name two things."""
        made = self.sh("true").pid
        end, _ = self.start_error(id=re.sub(r"\d+$", "999999", made))
        self.assertEqual(end["code"], "invalid_argument")

    def test_plus_is_a_plus(self):
        """In a path, whoever encodes it or not."""
        self.sh("exit 4", id="a+b").until_exit()
        for form in ("a+b", "a%2Bb", "a%2bb"):
            self.assertEqual(self.status(form)["exit_code"], 4)
        self.assert_refused(self.request("GET", f"{PROCESS}/a%20b"), 404, "process_not_found")

    def test_split_before_decoding(self):
        """%2F belongs to the id, a slash does not."""
        self.sh("exit 4", id="p/q").until_exit()
        self.assertEqual(self.status("p%2Fq")["exit_code"], 4)
        self.assert_refused(self.request("GET", f"{PROCESS}/p/q"), 404)
        self.assert_refused(self.request("GET", f"{PROCESS}/p%252Fq"), 404, "process_not_found")

    def test_id_that_looks_like_a_route(self):
        self.sh("exit 4", id="x/output").until_exit()
        self.assertEqual(self.status("x%2Foutput")["exit_code"], 4)
        self.assert_refused(self.request("GET", f"{PROCESS}/x/output"), 404, "process_not_found")

    def test_gateways_own_names_are_nobodys(self):
        for segment in ("%23files", "%23x"):
            self.assert_refused(self.request("GET", f"{PROCESS}/{segment}"), 404, "process_not_found")
        error, _ = self.start_error(id="#files")
        self.assertEqual(error["code"], "invalid_argument")

    def test_kernel_pid_addresses_nothing(self):
        socket = self.start("sleep", "300")
        self.assert_refused(self.request("GET", f"{PROCESS}/{socket.record['os_pid']}"), 404, "process_not_found")
        self.kill(socket.pid)

    def test_broken_escapes_are_400(self):
        for segment in ("%", "%4", "%zz", "%00", "%ff"):
            with self.subTest(segment=segment):
                response = self.request("GET", f"{PROCESS}/{segment}")
                self.assertIn(response.status, (400, 404))
                self.assertTrue(response.error)
