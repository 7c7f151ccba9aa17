"""coop run without a terminal: exit codes, streams, stdin, signals."""

import base64
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import time

from lib import procs
from lib.cli import CliCase
from lib.place import COOP, patience

ID = re.compile(r"^psh-[0-9a-f]+-[0-9]+$")
MIB = 1 << 20


class ExitCodeTest(CliCase):
    def test_b012_exit_code_is_the_commands(self):
        """true, false, exit 42."""
        self.coop("run", "true", code=0)
        self.coop("run", "--", "false", code=1)
        self.coop("run", "--", "sh", "-c", "exit 42", code=42)

    def test_b013_signal_is_128_plus_n(self):
        """A command that dies by a signal gives 128 + its number."""
        for number in (1, 2, 6, 9, 11, 15, int(signal.SIGRTMIN) + 3):
            with self.subTest(signal=number):
                self.coop("run", "--", "sh", "-c", f"kill -{number} $$", code=128 + number)

    def test_b069_timeout_is_124(self):
        """--timeout ends the command; output so far is there."""
        out, _ = self.coop("run", "--timeout", "400ms", "--", "sh", "-c", "echo early; sleep 30", code=124)
        self.assertEqual(out, b"early\n")

    def test_b009_not_found_is_127_cannot_execute_is_126(self):
        """127 for a missing program, 126 for one that cannot be executed, each with one line that names it."""
        self.assertIn("no-such-program-anywhere", self.refusal("run", "no-such-program-anywhere", code=127))
        self.assertIn("/nonexistent/x", self.refusal("run", "--", "/nonexistent/x", code=127))
        plain = self.place.work / "plain"
        plain.write_text("x")
        self.refusal("run", "--", str(plain), code=126)
        self.refusal("run", "--", "/tmp", code=126)

    def test_own_failure_is_125(self):
        """What coop itself cannot do is 125, one line."""
        self.refusal("run", code=125)
        self.refusal("run", "--no-such-option", "true", code=125)
        self.refusal("run", "--timeout", "soon", "true", code=125)
        self.refusal("run", "--overflow", "sideways", "true", code=125)
        self.refusal("run", "--env", "1BAD=x", "true", code=125)
        bad = dict(self.env, COOP_SOCKET="/nonexistent-folder/that/cannot/be/" + "x" * 200)
        self.refusal("run", "true", code=125, env=bad)

    def test_b090_missing_cwd_is_named(self):
        """--cwd must be a folder; relative ones start where the user is."""
        text = self.refusal("run", "--cwd", "/no/such/folder", "true", code=125)
        self.assertIn("/no/such/folder", text)
        inner = self.place.work / "inner"
        inner.mkdir()
        for folder in (str(inner), "inner", "../workspace/inner"):
            self.assertEqual(self.out("run", "--cwd", folder, "--", "/bin/pwd", "-P").decode().strip(), os.path.realpath(inner))


class StreamTest(CliCase):
    def test_b022_streams_come_out_where_they_belong(self):
        """stdout to stdout, stderr to stderr; nothing of coop's own between."""
        out, err = self.coop("run", "--", "sh", "-c", "echo o; echo e >&2")
        self.assertEqual((out, err), (b"o\n", b"e\n"))

    def test_b023_merge(self):
        """--merge: everything on stdout in write order."""
        out, err = self.coop("run", "--merge", "--", "sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done")
        self.assertEqual((out, err), (b"o1\ne1\no2\ne2\no3\ne3\n", b""))

    def test_b030_bytes_are_exact(self):
        """4 MiB of random bytes through stdin and stdout keep their SHA-256."""
        data = random.Random(9).randbytes(4 * MIB)
        out = self.out("run", "cat", data=data)
        self.assertEqual(hashlib.sha256(out).digest(), hashlib.sha256(data).digest())
        every = bytes(range(256)) * 10
        self.assertEqual(self.out("run", "--", "sh", "-c", "cat >&2", data=every), b"")
        self.assertEqual(self.coop("run", "--", "sh", "-c", "cat >&2", data=every)[1], every)

    def test_b027_large_output_to_a_slow_reader_is_whole(self):
        """32 MiB to a reader that pauses: not a byte is lost."""
        size = 32 * MIB
        process = self.start("run", "--", "sh", "-c", f"yes 0123456789abcde | head -c {size}")
        digest, count = hashlib.sha256(), 0
        while piece := process.stdout.read(4 * MIB):
            digest.update(piece)
            count += len(piece)
            time.sleep(0.01)
        self.assertEqual(process.wait(), 0)
        self.assertEqual(count, size)
        self.assertEqual(digest.digest(), hashlib.sha256(b"0123456789abcde\n" * (size // 16)).digest())

    def test_output_comes_while_it_runs(self):
        """The first line is there before the command ends."""
        process = self.start("run", "--", "sh", "-c", "echo first; read x; echo second", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"first\n")
        process.stdin.write(b"\n")
        process.stdin.close()
        self.assertEqual(process.stdout.read(), b"second\n")
        self.assertEqual(process.wait(), 0)

    def test_closed_output_ends_the_command(self):
        """`coop run yes | head -1` ends."""
        done = subprocess.run(["sh", "-c", f"'{COOP}' run yes | head -n 1"], env=self.env, capture_output=True,
                              timeout=patience(30), check=False)
        self.assertEqual(done.stdout, b"y\n")
        listed = self.json("ps")
        self.assertEqual(listed if isinstance(listed, list) else listed["processes"], [])


class InputTest(CliCase):
    def test_b054_no_stdin_is_end_of_file(self):
        """With an empty stdin cat ends; a command never gets the keeper's."""
        self.assertEqual(self.out("run", "cat"), b"")

    def test_b055_stdin_is_forwarded_and_closed(self):
        """What is piped into coop run reaches the command, then its end."""
        self.assertEqual(self.out("run", "--", "sh", "-c", "cat; echo end", data=b"a\0b\n"), b"a\0b\nend\n")

    def test_b058_stdin_of_a_background_command(self):
        """coop stdin writes to a process started with -d -i; --close ends its input; later writes fail clearly."""
        process = self.out("run", "-d", "-i", "cat").decode().strip()
        self.coop("stdin", process, data=b"one ")
        self.coop("stdin", process, "--close", data=b"two")
        self.coop("wait", process)
        self.assertEqual(self.out("logs", process), b"one two")
        self.refusal("stdin", process, code=1, data=b"more")

    def test_command_that_does_not_read(self):
        """Input that nobody reads does not keep coop run from ending."""
        self.assertEqual(self.out("run", "--", "sh", "-c", "exec 0<&-; echo done", data=bytes(2 * MIB)), b"done\n")
        process = self.start("run", "--", "sh", "-c", "echo done", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.read(), b"done\n")
        self.assertEqual(process.wait(patience(20)), 0)


class SignalTest(CliCase):
    def running(self, script, *options):
        process = self.start("run", *options, "--", "sh", "-c", script)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def test_signals_reach_the_command(self):
        """TERM, HUP, INT, USR1 to coop run arrive at the command."""
        for name in ("TERM", "HUP", "INT", "USR1"):
            with self.subTest(signal=name):
                process = self.running(f"trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done")
                process.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(process.stdout.read(), f"got {name}\n".encode())
                self.assertEqual(process.wait(patience(20)), 7)

    def test_unhandled_signal_is_the_exit_code(self):
        """A command that dies of the forwarded signal gives 128 + n."""
        process = self.running("echo ready; exec sleep 300")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(patience(20)), 128 + 15)

    def test_interrupt_twice_kills(self):
        """A command that ignores the first interrupt is killed by the second."""
        process = self.running("trap '' INT TERM; echo ready; while :; do sleep 0.05; done")
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(patience(20)), 128 + 9)

    def test_killed_door_ends_its_foreground_command(self):
        """kill -9 of coop run: the connection is gone, and with it the command that lived for it."""
        process = self.start("run", "--tag", "it", "--", "sh", "-c", "echo $$; exec sleep 300")
        pid = self.outside("it", process.stdout.readline())
        process.kill()
        process.wait()
        procs.wait_until(lambda: not procs.alive(pid), "the command ends with its door")


class DetachedTest(CliCase):
    def test_b001_detached_prints_the_id_only(self):
        """-d prints one line, the id, and the command goes on; its output is kept."""
        out, err = self.coop("run", "-d", "--tag", "bg", "--", "sh", "-c", "echo kept; exit 3")
        self.assertRegex(out.decode().rstrip("\n"), ID)
        self.assertEqual((out.count(b"\n"), err), (1, b""))
        process = out.decode().strip()
        self.coop("wait", process, code=3)
        self.assertEqual(self.out("logs", process), b"kept\n")

    def test_detached_failure_prints_no_id(self):
        """A program that is not there: nothing on stdout, 127."""
        self.refusal("run", "-d", "no-such-program-anywhere", code=127)

    def test_b021_rest_is_told_with_the_id(self):
        """A command that leaves a process behind: the result says so and names the id; with --on-exit kill none is left."""
        process = self.detached("sh", "-c", "sleep 300 & exit 0")
        _, err = self.coop("wait", process)
        self.assertIn(process, err.decode())
        self.assertIn("kill", err.decode())
        self.coop("kill", process)
        clean = self.detached("sh", "-c", "sleep 300 & exit 0", options=["--on-exit", "kill"])
        _, err = self.coop("wait", clean)
        self.assertEqual(err, b"")

    def test_b085_environment_of_the_door(self):
        """coop run sends its PATH, HOME and the like; nothing else of its environment arrives."""
        env = dict(self.env, SECRET_TOKEN="hush", LANG="C.UTF-8", HOME=str(self.place.dir), TERM="vt220")
        text = self.out("run", "env", env=env).decode()
        got = dict(line.split("=", 1) for line in text.splitlines())
        self.assertNotIn("SECRET_TOKEN", got)
        self.assertNotIn("COOP_SOCKET", got)
        self.assertEqual((got["LANG"], got["HOME"], got["PATH"]), ("C.UTF-8", str(self.place.dir), env["PATH"]))

    def test_b086_environment_options(self):
        """--env adds, --env-mode replace starts empty."""
        text = self.out("run", "--env", "A=1=2", "--env", "B=", "--", "sh", "-c", 'echo "$A|$B|${PATH:+path}"')
        self.assertEqual(text, b"1=2||path\n")
        for options, names in (((), {"A"}), (("--profile", "full"), {"A", "COOP_PROCESS"})):
            text = self.out("run", *options, "--env-mode", "replace", "--env", "A=1", "--", "/usr/bin/env").decode()
            self.assertEqual({line.split("=")[0] for line in text.splitlines()}, names)

    def test_b094_shell_string(self):
        """--shell runs one string with a shell."""
        self.assertEqual(self.out("run", "--shell", "--", "echo a | tr a b; exit 0"), b"b\n")

    def test_b028_ring_and_overflow_options(self):
        """--ring and --overflow are seen in the record."""
        process = self.detached("sleep", "300", options=["--ring", "64K", "--overflow", "backpressure", "--why", "because"])
        record = self.json("status", process)
        record = record.get("process", record)
        self.assertEqual(record["streams"]["stdout"]["ring_bytes"], 65536)
        self.assertEqual(record["streams"]["stdout"]["overflow"], "backpressure")
        self.assertEqual(record["why"], "because")

    def test_b070_limits_options(self):
        """--timeout, --idle-timeout, --lifetime are seen in the record in milliseconds."""
        options = ["--timeout", "30s", "--idle-timeout", "2m", "--lifetime", "1h"]
        record = self.json("status", self.detached("sleep", "300", options=options))
        limits = record.get("process", record)["limits"]
        self.assertEqual((limits["timeout_ms"], limits["idle_timeout_ms"], limits["max_lifetime_ms"]),
                         (30000, 120000, 3600000))


class JsonRunTest(CliCase):
    def test_run_json_lines(self):
        """run --json: started, output, exit, each a line of JSON."""
        lines = self.json_lines("run", "--", "sh", "-c", "echo o; echo e >&2; exit 3", code=3)
        self.assertEqual(lines[0]["type"], "started")
        self.assertEqual(lines[-1]["type"], "exit")
        self.assertEqual(lines[-1]["exit_code"], 3)
        texts = {line["stream"]: line["text"] for line in lines if line["type"] == "output"}
        self.assertEqual(texts, {"stdout": "o\n", "stderr": "e\n"})

    def test_b031_text_is_never_cut_inside_a_character(self):
        """A character whose halves come apart is held back and given whole; offsets count original bytes."""
        script = "printf 'a\\303'; sleep 0.3; printf '\\251b\\n'; printf 'c\\377d\\n'"
        lines = self.json_lines("run", "--", "sh", "-c", script)
        output = [line for line in lines if line["type"] == "output"]
        position, whole = 0, b""
        for line in output:
            self.assertEqual(line["offset"], position, line)
            if "text" in line:
                self.assertNotIn("\ufffd", line["text"] if line.get("utf8_valid", True) else "")
                raw = line["text"].encode()
            else:
                raw = base64.b64decode(line["base64"])
            position += len(raw)
            whole += raw
        self.assertEqual(whole, b"a\xc3\xa9b\nc\xffd\n")
        texts = "".join(line.get("text", "") for line in output)
        self.assertIn("é", texts)

    def test_refused_run_json(self):
        """A refusal is JSON too, with the stable code."""
        out, err = self.coop("run", "--json", "--", "/nonexistent/x", code=127)
        error = json.loads(out)["error"]
        self.assertEqual((error["code"], error["details"]["errno"]), ("spawn_failed", "ENOENT"))
        self.assertEqual(err.count(b"\n"), 1)

    def test_detached_json_is_the_record(self):
        """run -d --json gives the record."""
        record = self.json("run", "-d", "--", "sleep", "300")
        record = record.get("process", record)
        self.assertRegex(record["id"], ID)
        self.assertEqual(record["argv"], ["sleep", "300"])
