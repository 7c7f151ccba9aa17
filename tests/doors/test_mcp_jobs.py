"""Whole jobs over MCP as a model does them: what it sees on the way, and what that costs it in bytes.

A job's cost is the text of all results of its calls, which is what goes into a model's context; that of the list of tools is counted
elsewhere."""

import re
import signal

from lib import procs
from lib.mcp import LATEST_LEGACY
from lib.mcp_case import StdioCase

KIB = 1 << 10


class Job:
    """The calls of one job, by one client; what they cost is added up."""

    def __init__(self, case, peer):
        self.case, self.peer = case, peer
        self.calls = self.cost = 0

    def __call__(self, tool, **arguments):
        """A call that must succeed."""
        return self.take(self.case.ok(tool, self.peer, **arguments))

    def any(self, tool, **arguments):
        return self.take(self.case.any(tool, self.peer, **arguments))

    def take(self, result):
        self.calls += 1
        self.cost += result.cost
        return result


class JobsCase(StdioCase):
    def job(self, version=None):
        return Job(self, self.connect(version))

    def assert_cheap(self, job, calls, size):
        self.assertLessEqual(job.calls, calls)
        self.assertLessEqual(job.cost, size)


class ServerJobTest(JobsCase):
    SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("you asked for " + self.path + chr(10)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, form, *args):
        print("request", self.path, flush=True)
print("starting", flush=True)
server = http.server.HTTPServer(("127.0.0.1", 8123), Handler)
print("serving on 8123", flush=True)
server.serve_forever()
"""

    def test_a_dev_server_in_the_background(self):
        """Start it, wait until its port is ready, fetch from it, read only new lines of its log, stop it."""
        (self.work / "server.py").write_text(self.SERVER)
        fetch = ["-c", "import urllib.request, sys; print(urllib.request.urlopen('http://127.0.0.1:8123/' + sys.argv[1]).read().decode(), end='')"]
        for version in (None, LATEST_LEGACY):
            job = self.job(version)
            server = job("run_command", command="/usr/bin/python3", args=["server.py"], wait=False, why="the dev server")
            self.assertEqual(server["status"], "running")
            self.assertIn("wait_any", server["hint"])
            ready = job("wait_any", conditions=[{"pid": server["id"], "port": 8123}, {"pid": server["id"], "exit": True}], timeout_ms=45000)
            self.assertEqual((ready["index"], ready["condition"], ready["timed_out"]), (0, "port", False))
            log = job("read_process_output", pid=server["id"], reader="me")
            self.assertEqual(log["content"], "starting\nserving on 8123\n")
            page = job("run_command", command="/usr/bin/python3", args=[*fetch, "hello"])
            self.assertEqual(page["stdout"], "you asked for /hello\n")
            log = job("read_process_output", pid=server["id"], reader="me")
            self.assertEqual(log["content"], "request /hello\n")
            job("run_command", command="/usr/bin/python3", args=[*fetch, "again"])
            self.assertEqual(job("read_process_output", pid=server["id"], reader="me")["content"], "request /again\n")
            self.assertEqual(job("read_process_output", pid=server["id"], reader="me")["content"], "")
            end = job("stop_process", pid=server["id"])
            self.assertEqual((end["end_cause"], end["survivors"] in (0, [])), ("killed_by_request", True))
            self.assertEqual(job("list_processes")["processes"], [])
            self.assert_cheap(job, 10, 4 * KIB)

    def test_a_server_that_fails_to_start_is_seen_at_once(self):
        """The wait for its port ends with the process, and the reason is one read away."""
        job = self.job()
        server = job("run_command", command="sh", args=["-c", "echo 'port is taken' >&2; exit 3"], wait=False)
        ready = job("wait_any", conditions=[{"pid": server["id"], "port": 8124}, {"pid": server["id"], "exit": True}], timeout_ms=45000)
        self.assertEqual((ready["index"], ready["condition"]), (1, "exit"))
        self.assertEqual(job("read_process_output", pid=server["id"], stream="stderr")["content"], "port is taken\n")
        self.assert_cheap(job, 3, KIB)

    def test_anothers_port_is_not_mine(self):
        """A port that another process of the same network has is not this one's readiness."""
        (self.work / "server.py").write_text(self.SERVER)
        job = self.job()
        first = job("run_command", command="/usr/bin/python3", args=["server.py"], wait=False)
        job("wait_any", conditions=[{"pid": first["id"], "port": 8123}], timeout_ms=45000)
        other = job("run_command", command="sleep", args=["300"], wait=False)
        result = job.any("wait_any", conditions=[{"pid": other["id"], "port": 8123}], timeout_ms=500)
        self.assertEqual(result["timed_out"], True)


class SuiteJobTest(JobsCase):
    SUITE = r"""
i=0
while [ $i -lt 20000 ]; do
    if [ $i -eq 9876 ]; then
        printf 'test_%05d_of_the_suite ... FAILED\n    assert compute(17) == 42\n    AssertionError: 41 is not 42 (calc.py:118)\n' $i
    else
        printf 'test_%05d_of_the_suite ... ok\n' $i
    fi
    i=$((i+1))
done
echo '19999 passed, 1 failed'
exit 1
"""

    def test_one_failure_in_20_000_lines(self):
        """It is found, with its reason and place, for less than 16 KiB in all."""
        (self.work / "suite.sh").write_text(self.SUITE)
        for version in (None, LATEST_LEGACY):
            job = self.job(version)
            result = job.any("run_command", command="sh", args=["suite.sh"], max_bytes=4000, timeout_secs=60)
            self.assertTrue(result.is_error)
            self.assertEqual(result["exit_code"], 1)
            self.assertIn("19999 passed, 1 failed", result["stdout"])
            self.assertTrue(result["stdout_truncated"])
            self.assertNotIn("AssertionError", result["stdout"])
            self.assertGreater(result["stdout_bytes"], 500000)
            found = job("read_process_output", pid=result["id"], grep="FAILED")
            self.assertIn("test_09876_of_the_suite ... FAILED", found["content"])
            self.assertIn("AssertionError: 41 is not 42 (calc.py:118)", found["content"])
            self.assertLess(len(re.findall("ok$", found["content"], re.MULTILINE)), 20)
            self.assert_cheap(job, 2, 16 * KIB)

    def test_without_a_budget_it_is_still_found_cheaply_by_its_offset(self):
        """A wait for the word gives where it is; a short read there shows it."""
        (self.work / "suite.sh").write_text(self.SUITE)
        job = self.job()
        process = job("run_command", command="sh", args=["suite.sh"], wait=False)
        job.any("wait_for_process", pid=process["id"], timeout_ms=45000)
        found = job("wait_any", conditions=[{"pid": process["id"], "output": "FAILED"}])
        page = job("read_process_output", pid=process["id"], offset=max(0, found["next_offset"] - 40), length=400)
        self.assertIn("AssertionError: 41 is not 42", page["content"])
        self.assert_cheap(job, 4, 3 * KIB)

    def test_the_default_result_is_within_its_limit(self):
        (self.work / "suite.sh").write_text(self.SUITE)
        job = self.job()
        job.any("run_command", command="sh", args=["suite.sh"], timeout_secs=60)
        self.assert_cheap(job, 1, 53 * KIB)


class InstallerJobTest(JobsCase):
    INSTALLER = """
printf 'Welcome to the installer\\n'
printf 'Continue? [y/n] '
read -r answer
[ "$answer" = y ] || { echo aborted; exit 2; }
i=0
while [ $i -le 100 ]; do printf '\\rInstalling %d%%' $i; i=$((i+5)); done
printf '\\n'
printf 'Password for admin: '
stty -echo
read -r password
stty echo
printf '\\n'
if [ "$password" = "correct horse" ]; then echo 'Access granted'; else echo 'Access denied'; exit 3; fi
echo 'Installed.'
"""

    def wait_for(self, job, process, **wanted):
        """Looks until process_stats has these values: the kernel tells, no event does."""
        def look():
            stats = self.ok("process_stats", job.peer, pid=process)
            return wanted.items() <= stats.value.items() and stats

        return job.take(procs.wait_until(look, f"{wanted}", interval=0.05))

    def test_an_installer_with_a_password(self):
        """Questions are seen as such, the password as one that is not shown; it goes in as a secret and is seen nowhere."""
        (self.work / "install.sh").write_text(self.INSTALLER)
        secret = "correct horse"
        for version in (None, LATEST_LEGACY):
            job = self.job(version)
            job.peer.raw = []
            shell = job("open_shell")["session_id"]
            job("shell_write", session_id=shell, input="sh install.sh\n")
            job("shell_expect", session_id=shell, pattern=r"\[y/n\] ")
            stats = self.wait_for(job, shell, blocked_on_stdin=True)
            self.assertIs(stats["echo_off"], False)
            job("shell_write", session_id=shell, input="y\n")
            asked = job("shell_expect", session_id=shell, pattern=r"Password for (\w+): $")
            self.assertEqual(asked["captures"][1], "admin")
            self.assertNotIn("Installing 50%", asked["output"])
            self.wait_for(job, shell, blocked_on_stdin=True, echo_off=True)
            job("write_stdin", pid=shell, input=secret + "\n", secret=True)
            answer = job("shell_expect", session_id=shell, pattern="Access (granted|denied)")
            self.assertEqual(answer["captures"][1], "granted")
            job("shell_expect", session_id=shell, pattern="Installed")
            closed = job("close_shell", session_id=shell)
            self.assertTrue(closed["closed"])
            self.assertFalse(any(secret.encode() in line for line in job.peer.raw))
            self.assert_cheap(job, 12, 6 * KIB)
        self.assertNotIn(secret.encode(), self.logs())

    def test_the_same_in_one_batch(self):
        """What is known beforehand goes in one call."""
        (self.work / "install.sh").write_text(self.INSTALLER)
        job = self.job()
        shell = job("open_shell")["session_id"]
        steps = [{"type": "send", "input": "sh install.sh\n"}, {"type": "expect", "pattern": r"\[y/n\] "}, {"type": "send", "input": "y\n"},
                 {"type": "expect_cases",
                  "cases": [{"pattern": "Password for", "tag": "ok", "label": "password"}, {"pattern": "aborted", "tag": "fail"}]}]
        result = job("shell_batch", session_id=shell, steps=steps)
        self.assertEqual((result["completed"], result["steps"][3]["label"]), (4, "password"))
        self.wait_for(job, shell, echo_off=True)
        job("write_stdin", pid=shell, input="wrong\n", secret=True)
        self.assertEqual(job("shell_expect", session_id=shell, pattern="Access (granted|denied)")["captures"][1], "denied")
        self.assert_cheap(job, 5, 4 * KIB)

    def test_a_pipe_that_waits_for_input(self):
        """Also without a terminal: a program that reads is seen to wait, and is helped on."""
        job = self.job()
        process = job("run_command", command="sh", args=["-c", "read name; echo hello $name"], wait=False, open_stdin=True)["id"]
        self.wait_for(job, process, blocked_on_stdin=True)
        job("write_stdin", pid=process, input="you\n")
        self.assertEqual(job("wait_for_process", pid=process)["exit_code"], 0)
        self.assertEqual(job("read_process_output", pid=process)["content"], "hello you\n")
        self.assert_cheap(job, 5, 3 * KIB)


class ScreenJobTest(JobsCase):
    def settle(self, job, shell, word):
        """The screen once it shows something; the program's output is waited for, not looked for again and again."""
        def look():
            screen = self.ok("read_screen", job.peer, pid=shell)
            return any(word in line for line in screen["lines"]) and screen

        return job.take(procs.wait_until(look, f"{word!r} on the screen", interval=0.05))

    def test_less(self):
        """Pages, a search, the end: the screen is what a person would see, and costs no more than a screen."""
        (self.work / "text").write_text("".join(f"line number {number}\n" for number in range(1, 1001)))
        job = self.job()
        shell = job("open_shell", cols=60, rows=20)["session_id"]
        job("shell_write", session_id=shell, input="PS1='$ '; LESS= less text\n")
        screen = self.settle(job, shell, "line number 19")
        self.assertEqual((screen["cols"], screen["rows"]), (60, 20))
        self.assertEqual(screen["lines"][0], "line number 1")
        self.assertEqual(screen["lines"][18], "line number 19")
        job("shell_write", session_id=shell, input=" ")
        self.assertEqual(self.settle(job, shell, "line number 38")["lines"][0], "line number 20")
        job("shell_write", session_id=shell, input="/number 777\n")
        self.assertEqual(self.settle(job, shell, "line number 777")["lines"][0], "line number 777")
        job("shell_write", session_id=shell, input="G")
        self.assertIn("(END)", "\n".join(self.settle(job, shell, "line number 1000")["lines"]))
        job("shell_write", session_id=shell, input="q")
        screen = self.settle(job, shell, "$")
        job("shell_write", session_id=shell, input="echo back''again\n")
        self.settle(job, shell, "backagain")
        job("close_shell", session_id=shell)
        self.assert_cheap(job, 15, 8 * KIB)

    def test_vim(self):
        """A file is written with it: text typed, seen with the cursor at its place, saved."""
        job = self.job()
        shell = job("open_shell", cols=70, rows=16)["session_id"]
        job("shell_write", session_id=shell, input="PS1='$ '; vim -u NONE -N -i NONE -n note.txt\n")
        self.settle(job, shell, "[New")
        job("shell_write", session_id=shell, input="ifirst line\nsecond line")
        screen = self.settle(job, shell, "second line")
        self.assertEqual(screen["lines"][:2], ["first line", "second line"])
        self.assertEqual((screen["cursor_row"], screen["cursor_col"]), (1, 11))
        job("shell_write", session_id=shell, input="\x1b:wq\n")
        job("shell_expect", session_id=shell, pattern=r"\$ $")
        self.assertEqual((self.work / "note.txt").read_text(), "first line\nsecond line\n")
        self.assertFalse(any("first line" in line for line in self.settle(job, shell, "$")["lines"]))
        job("close_shell", session_id=shell)
        self.assert_cheap(job, 9, 4 * KIB)

    def test_read_screen_of_a_pipe_says_what_to_do(self):
        job = self.job()
        process = job("run_command", command="sleep", args=["300"], wait=False)["id"]
        result = job.any("read_screen", pid=process)
        self.assertEqual(result["code"], "invalid_input")
        self.assertIn("read_process_output", result["message"] + result["advice"])


class RestartJobTest(JobsCase):
    def test_the_clients_restart_in_the_middle(self):
        """A server that is killed, and one that leaves: the next finds everything by list, goes on reading where it was, and ends the job."""
        for way in ("leave", "kill"):
            job = self.job()
            build = job("run_command", command="sh", args=["-c", f"echo step 1; until [ -e go-{way} ]; do sleep 0.05; done; echo step 2"], wait=False,
                        why=f"the build ({way})")["id"]
            shell = job("open_shell")["session_id"]
            job("shell_write", session_id=shell, input="word=kept; echo o''ne\n")
            job("shell_expect", session_id=shell, pattern="one")
            job("wait_any", conditions=[{"pid": build, "output": "step 1"}])
            self.assertEqual(job("read_process_output", pid=build, reader="log")["content"], "step 1\n")
            if way == "kill":
                job.peer.process.send_signal(signal.SIGKILL)
                job.peer.process.wait()
            else:
                self.assertEqual(job.peer.leave(), 0)
            job = self.job(LATEST_LEGACY)
            rows = {row["id"]: row for row in job("list_processes", include_finished=True)["processes"]}
            self.assertEqual(rows[build]["why"], f"the build ({way})")
            self.assertEqual((rows[build]["state"], rows[shell]["state"]), ("running", "running"))
            (self.work / f"go-{way}").touch()
            self.assertEqual(job("wait_for_process", pid=build)["exit_code"], 0)
            self.assertEqual(job("read_process_output", pid=build, reader="log")["content"], "step 2\n")
            job("shell_write", session_id=shell, input="echo $word $word\n")
            job("shell_expect", session_id=shell, pattern="kept kept")
            job("close_shell", session_id=shell)
            job("release_process", pid=build)
            self.assertEqual(job("list_processes", include_finished=True)["processes"], [])
            self.assert_cheap(job, 8, 5 * KIB)


class CrowdJobTest(JobsCase):
    def test_30_commands_at_once(self):
        """All calls are made before the first answer is read; each answer is its own command's."""
        for version in (None, LATEST_LEGACY):
            job = self.job(version)
            scripts = [f"sleep 0.{n % 10}; echo number {n}; exit {n % 3}" for n in range(30)]
            pendings = [job.peer.submit_tool("run_command", {"command": "sh", "args": ["-c", script]}) for script in scripts]
            for n, pending in enumerate(pendings):
                result = job.take(self.check_result(job.peer, pending.result()))
                self.assertEqual((result["stdout"], result["exit_code"], result.is_error), (f"number {n}\n", n % 3, n % 3 != 0))
            self.assert_cheap(job, 30, 30 * 400)

    def test_30_in_the_background_and_one_wait(self):
        """The first that ends is told, and then the next."""
        job = self.job()
        ids = [job("run_command", command="sh", args=["-c", f"until [ -e go{n} ]; do sleep 0.1; done"], wait=False)["id"] for n in range(30)]
        left = list(ids)
        for n in (17, 3, 29):
            (self.work / f"go{n}").touch()
            found = job("wait_any", conditions=[{"pid": process, "exit": True} for process in left], timeout_ms=45000)
            self.assertEqual(found["id"], ids[n])
            left.remove(ids[n])
        self.assertEqual(len(job("list_processes")["processes"]), 27)
        for process in left:
            job("stop_process", pid=process, grace_ms=0)
        self.assertEqual(job("list_processes")["processes"], [])
