"""Files that a request gives to its process (B-093): by variable and by fixed path, confined and not, gone when it ends."""

import base64
import glob
import hashlib
import os
import random
import stat

from lib import procs
from lib.both_keepers import USER, BothKeepersCase
from lib.confined import NEW_MOUNT_CALLS

RAW = bytes(range(256)) * 3
SECRET = "injected-hunter2-Tr0ub4dor"
MIB = 1 << 20


def by_name(name, content="x"):
    return {"placement": "env", "name": name, "content": content}


def by_path(path, content="x"):
    return {"placement": "path", "path": str(path), "content": content}


def coded(data):
    return {"content": None, "content_base64": base64.b64encode(data).decode()}


def apart(size):
    """A content that comes with the request's bytes."""
    return {"content": None, "content_bytes": size}


def digest(data):
    return hashlib.sha256(data).hexdigest()


class InjectionsTest(BothKeepersCase):
    def inject(self, script, *files, **args):
        record, out, err = self.inside(script, file_injections=list(files), **args)
        self.assertEqual(record["exit"]["code"], 0, (out, err))
        return out

    def private_files(self):
        """What there is of such files on the host's disk."""
        folders = [f"{self.keeper.place.socket}.files", *glob.glob("/run/coop-files-*")]
        return [path for folder in folders for path in glob.glob(f"{folder}/*/*") if "/masks-" not in path]

    def test_b093_by_variable(self):
        """The variable holds the path of a file with exactly these bytes that cannot be written, and that nobody else sees."""
        script = 'wc -c <"$EMPTY"; sha256sum <"$RAW"; cat "$TEXT"; for f in "$EMPTY" "$RAW" "$TEXT"; do ' \
                 '(echo x >"$f") 2>/dev/null && echo written; rm -f "$f" 2>/dev/null && echo removed; done; echo "$TEXT"'  # fmt: skip
        files = [by_name("EMPTY", ""), by_name("RAW") | coded(RAW), by_name("TEXT", "täxt\n")]
        for root in ("host", "minimal"):
            out = self.inject(script, *files, sandbox={"workspace": str(self.ws), "root": root}).splitlines()
            self.assertEqual(out[0], "0")
            self.assertEqual(out[1].split()[0], hashlib.sha256(RAW).hexdigest())
            self.assertEqual(out[2:], ["täxt", out[-1]], (root, out))
            self.assertFalse(os.path.exists(out[-1]), out[-1])
        self.assertEqual(self.private_files(), [])
        procs.wait_until(lambda: os.listdir(self.ws) == [], "placeholders go")

    def test_b093_by_path(self):
        """On a file that is there, beside others in the workspace, in what is private, in the home's layer; the host's stay as they are."""
        kept = self.ws / "kept"
        kept.write_text("kept\n")
        self.give(kept)
        for root in ("host", "minimal"):
            places = [kept, self.ws / "new", "/tmp/deep/er/file", "/run/x", "/etc/hostname"]
            files = [by_path(path, f"given {i}\n") for i, path in enumerate(places)]
            script = "; ".join(f"cat {path}; (echo no >{path}) 2>/dev/null && echo written" for path in places) + "; true"
            out = self.inject(script, *files, sandbox={"workspace": str(self.ws), "root": root})
            self.assertEqual(out.splitlines(), [f"given {i}" for i in range(len(places))], root)
            procs.wait_until(lambda: os.listdir(self.ws) == ["kept"], "the placeholder goes with the process")
        self.assertEqual(kept.read_text(), "kept\n")
        self.assertFalse(os.path.exists("/run/x") or os.path.exists("/tmp/deep"))

    def test_b093_many_and_large(self):
        """128 files; some MiB, which no message holds."""
        files = [by_name(f"F{i}", f"{i}\n") for i in range(127)] + [by_name("LARGE", "0123456789abcdef" * (5 << 16))]
        out = self.inject('cat "$F0" "$F126"; wc -c <"$LARGE"; ls -l "$(dirname "$LARGE")" | grep -c ^-r--r--r--', *files)
        self.assertEqual(out.split(), ["0", "126", str(5 << 20), "128"])
        files = [by_path(f"/tmp/f/{i}", f"{i}\n") for i in range(128)]
        self.assertEqual(self.inject("cat /tmp/f/127; ls /tmp/f | wc -l", *files).split(), ["127", "128"])

    def test_b093_without_a_view(self):
        """Profile full: files by variable on disk, for their user alone, as long as somebody of the process is left; none by path."""
        full = {"profile": "full"}
        args = {"argv": ["sh", "-c", 'ls -l "$A" >&2; cat "$A"; sleep 1000 & echo; echo "$A"'], "cwd": str(self.ws),
                "sandbox": full, "file_injections": [by_name("A", SECRET), by_name("B") | coded(RAW)]}  # fmt: skip
        process = self.client.call("spawn", **args)["process"]["id"]
        self.client.call("wait", id=process)
        secret, path = self.output(process).decode().split()
        self.assertEqual(secret, SECRET)
        self.assertTrue(self.output(process, "stderr").startswith(b"-r--------"))
        self.assertEqual(sorted(os.path.basename(each) for each in self.private_files()), ["A", "B"])
        folder = os.stat(os.path.dirname(path))
        self.assertEqual((folder.st_mode & 0o777, folder.st_uid), (0o700, self.user or os.geteuid()))
        with open(os.path.join(os.path.dirname(path), "B"), "rb") as file:
            self.assertEqual(file.read(), RAW)
        # A confined process sees neither.
        self.assertEqual(self.says(f"cat {path} 2>/dev/null; ls {os.path.dirname(os.path.dirname(path))} 2>/dev/null"), "")
        self.client.call("kill", id=process)
        procs.wait_until(lambda: self.client.call("status", id=process) and self.private_files() == [], "the files go with the tree")
        error = self.refusal(sandbox=full, file_injections=[by_path("/tmp/x")])
        self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "files"))

    def test_b093_full_ends_alone(self):
        """Where nobody is left at the end they are gone as soon as that is told."""
        out = self.inject('cat "$A"', by_name("A", SECRET), sandbox={"profile": "full"})
        self.assertEqual(out, SECRET)
        self.client.call("info")
        self.assertEqual(self.private_files(), [])
        with self.refused("spawn_failed"):
            self.client.call("spawn", argv=["/nowhere"], sandbox={"profile": "full"}, file_injections=[by_name("A")])
        self.client.call("info")
        self.assertEqual(self.private_files(), [])

    def test_b093_after_a_keepers_death(self):
        """What a killed keeper left is removed by the next one."""
        args = {"argv": ["sleep", "1000"], "sandbox": {"profile": "full"}, "file_injections": [by_name("A")]}
        self.client.call("spawn", **args)
        self.assertEqual(len(self.private_files()), 1)
        place = self.keeper.place
        self.keeper.kill()
        self.expect_end(self.keeper)
        self.keeper = self.start_keeper(place=place)
        self.client = self.keeper.clients[0]
        self.assertEqual(self.private_files(), [])

    def idle(self):
        return self.client.call("info")["sandbox"]["slots"]["idle"]

    def test_b093_largest(self):
        """8 MiB by either placement, 16 MiB together, and all of stdin: exact bytes, in a prepared sandbox and in one made at once."""
        data = random.Random(5).randbytes(20 * MIB)
        pieces = [data[: 8 * MIB], data[8 * MIB : 16 * MIB], data[16 * MIB :]]
        files = [by_name("A") | apart(8 * MIB), by_path("/tmp/deep/b") | apart(8 * MIB)]
        script = 'for f in "$A" /tmp/deep/b; do sha256sum <"$f"; done; sha256sum; ls -l "$A" /tmp/deep/b | cut -c 1-10'
        started = set()
        for _ in range(10):
            record, out, err = self.inside(script, file_injections=files, data=data)
            self.assertEqual([line.split()[0] for line in out.splitlines()], [*map(digest, pieces), *["-r--r--r--"] * 2], err)
            started.add(record["start"])
            if started == {"launched", "pooled"}:
                break
            procs.wait_until(self.idle, "a prepared sandbox")
        self.assertEqual(started, {"launched", "pooled"})

    def test_b093_largest_without_a_view(self):
        """The same on disk, by variable."""
        data = random.Random(6).randbytes(16 * MIB)
        files = [by_name("A") | apart(8 * MIB), by_name("EMPTY") | apart(0), by_name("B") | apart(8 * MIB)]
        script = 'sha256sum <"$A"; sha256sum <"$B"; wc -c <"$EMPTY"; readlink /proc/self/fd/0'
        out = self.inject(script, *files, sandbox={"profile": "full"}, data=data)
        self.assertEqual(out.split(), [digest(data[: 8 * MIB]), "-", digest(data[8 * MIB :]), "-", "0", "/dev/null"])

    def test_b093_bytes_of_the_request(self):
        """Those of files come first, in the order of the list, whatever else is in it; only what is left is stdin's."""
        files = [by_name("A") | apart(3), by_name("B", "text"), by_name("C") | coded(b"coded"), by_path("/tmp/d") | apart(4)]
        show = 'cat "$A" "$B" "$C" /tmp/d; readlink /proc/self/fd/0 | cut -c 1-5; cat'
        for data, args, wanted in (
            (b"aaadddd", {}, "/dev/"),
            (b"aaadddd", {"stdin": "none"}, "/dev/"),
            (b"aaadddd", {"stdin": "data"}, "pipe:"),
            (b"aaaddddinput", {}, "pipe:\ninput"),
            (b"aaaddddinput", {"stdin": "data"}, "pipe:\ninput"),
        ):
            with self.subTest(data=data, args=args):
                self.assertEqual(self.inject(show, *files, data=data, **args).strip(), f"aaatextcodeddddd{wanted}")
        # The input may stay open, and a terminal's has nothing of the files either.
        spawned = {"argv": ["sh", "-c", 'read x; cat "$A"; echo "$x"'], "file_injections": [by_name("A") | apart(3)], "data": b"aaa"}
        for more in ({"stdin": "pipe"}, {"kind": "pty"}):
            process = self.client.call("spawn", **spawned, **more)["process"]
            self.assertTrue(process["stdin_open"])
            self.client.call("write_stdin", id=process["id"], data=b"typed\n")
            self.client.call("wait", id=process["id"])
            self.assertIn(b"aaatyped", self.output(process["id"], "pty" if "kind" in more else "stdout"))
        for wanted in ("none", "pipe"):
            error = self.refusal(file_injections=files, data=b"aaaddddx", stdin=wanted)
            self.assertEqual((error.code, error.details["field"]), ("invalid_input", "stdin"))
        self.assertEqual(self.client.call("check", argv=["true"], file_injections=files, data=b"aaadddd")["status"], "allowed")

    def test_b093_too_few_bytes(self):
        """A file whose bytes the request does not bring is named; also if those before it took them."""
        for sizes, data, at in (((1,), None, 0), ((1,), b"", 0), ((3,), b"ab", 0), ((2, 0, 1), b"ab", 2), ((8 * MIB,), b"ab", 0)):
            with self.subTest(sizes=sizes):
                files = [by_name(f"F{i}") | apart(size) for i, size in enumerate(sizes)]
                error = self.refusal(file_injections=files, data=data)
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", f"file_injections[{at}].content_bytes"), error)

    def test_b093_bounds(self):
        """More than 128, and a file or a sum that is too large, are too_large; nothing runs."""
        error = self.refusal(file_injections=[by_name(f"F{i}") for i in range(129)])
        self.assertEqual((error.code, error.details["field"]), ("too_large", "file_injections"))
        whole = apart(8 * MIB)
        data = bytes(20 * MIB + 1)
        for files, size, field in (
            ([by_name("A") | apart(8 * MIB + 1)], 8 * MIB + 1, "file_injections[0]"),
            ([by_path("/tmp/a") | apart(8 * MIB + 1)], 8 * MIB + 1, "file_injections[0]"),
            ([by_name("A") | apart(1 << 62)], 1, "file_injections[0]"),
            ([by_name("A") | whole, by_path("/tmp/b") | whole, by_name("C") | apart(1)], 16 * MIB + 1, "file_injections[2]"),
            ([by_name("A") | whole, by_path("/tmp/b") | whole, by_name("C", "x")], 16 * MIB, "file_injections[2]"),
            # and stdin is no larger for having files before it
            ([by_name("A") | apart(1)], 4 * MIB + 2, "data"),
            ([by_name("A") | whole, by_path("/tmp/b") | whole], 20 * MIB + 1, "data"),
        ):
            with self.subTest(field=field, size=size):
                error = self.refusal(file_injections=files, data=data[:size])
                self.assertEqual((error.code, error.details["field"]), ("too_large", field), error)
        self.assertEqual(self.says("echo fine"), "fine")

    def test_b093_bad_targets(self):
        """Duplicates, dots, quotes, backslash, NUL, control bytes, relative paths, bad names; each names its place."""
        for path in ("relative", "/a/../b", "/a/./b", "/a//b", "/a/", "/", "", '/a"b', "/a'b", "/a`b", "/a\\b", "/a\0b", "/a\nb",
                     "/a\x1bb", "/a\x7fb", "/run/coop/files/A", "/run/coop", "/proc/1/x", "/dev/x", "/sys/x", "/etc", "/no/where"):  # fmt: skip
            with self.subTest(path=path):
                error = self.refusal(file_injections=[by_name("OK"), by_path(path)])
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", "file_injections[1].path"), error)
        for name in ("", "A=B", "1A", "a b", "A\0B", "ä", "A" * 256):
            with self.subTest(name=name):
                error = self.refusal(file_injections=[by_name(name)])
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", "file_injections[0].name"), error)
        for files in ([by_path("/tmp/x")] * 2, [by_path("/tmp/x"), by_path("/tmp/x/y")], [by_path("/tmp/x/y"), by_path("/tmp/x")]):
            self.assertEqual(self.refusal(file_injections=files).details["field"], "file_injections[1].path")
        self.assertEqual(self.refusal(file_injections=[by_name("A")] * 2).details["field"], "file_injections[1].name")
        error = self.refusal(file_injections=[by_name("A")], env={"A": "x"})
        self.assertEqual((error.code, error.details["field"]), ("invalid_input", "file_injections[0].name"))

    def test_b093_bad_members(self):
        """Wrong placement, both or no contents, what is not base64, strange members and types."""
        for file, member in (
            (by_name("A") | {"placement": "disk"}, ".placement"),
            (by_name("A") | {"placement": None}, ".placement"),
            ({"placement": "env", "name": "A"}, ".content"),
            (by_name("A") | {"content_base64": ""}, ".content"),
            (by_name("A") | {"content": 1}, ".content"),
            (by_name("A") | {"content_bytes": 0}, ".content"),
            (by_name("A") | coded(b"") | {"content_bytes": 0}, ".content_base64"),
            *((by_name("A") | apart(size), ".content_bytes") for size in (-1, "1", 1.0, True, [], -(1 << 80))),
            (by_name("A") | {"path": "/x"}, ".path"),
            (by_path("/tmp/x") | {"name": "A"}, ".name"),
            (by_name("A") | {"mode": 0o777}, ".mode"),
            ("A", ""),
            *((by_name("A") | {"content": None, "content_base64": text}, ".content_base64")
              for text in ("A", "AA", "AA=", "A===", "AA==AA==", "A A=", "AB==", "_-==", "QQ==\n")),
        ):  # fmt: skip
            with self.subTest(file=file):
                error = self.refusal(file_injections=[file])
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", f"file_injections[0]{member}"), error)
                self.assertNotIn(SECRET, error.message)
        self.assertEqual(self.refusal(file_injections={}).details["field"], "file_injections")
        self.assertEqual(self.says("echo fine", file_injections=[]), "fine")

    def test_b093_restricted_agents(self):
        """What such an agent may not set as a variable it may not set so either."""
        client = self.keeper.agent("main/r", restricted=True, workspace=[str(self.ws)])
        error = self.refusal(client, file_injections=[by_name("BASH_ENV", "touch ran")])
        self.assertEqual((error.code, error.details["field"]), ("capability_denied", "file_injections[0].name"))
        self.assertEqual(self.says('cat "$A"', sandbox={}, client=client, file_injections=[by_name("A", "x")]), "x")

    def test_b093_audit_has_names_and_hashes(self):
        """Neither records, nor the audit, nor any file of the state folder hold the contents."""
        files = [by_name("A", SECRET), by_path("/tmp/b") | coded(SECRET.encode()), by_name("C", "other")]
        record, _, _ = self.inside("true", file_injections=files)
        self.refusal(file_injections=[*files, by_path("/proc/x", SECRET)])
        self.assertNotIn(SECRET, str(record))
        lines = [line for line in self.client.call("audit_tail", count=100)["lines"] if "file_injections" in line]
        self.assertEqual([len(line["file_injections"]) for line in lines], [3, 4])
        shown = lines[0]["file_injections"]
        self.assertEqual(lines[0]["stdin"], None)
        self.assertEqual([set(file) for file in shown], [{"name", "sha256"}, {"path", "sha256"}, {"name", "sha256"}])
        self.assertEqual([file.get("name") or file["path"] for file in shown], ["A", "/tmp/b", "C"])
        self.assertEqual(shown[0]["sha256"], shown[1]["sha256"])
        self.assertNotEqual(shown[0]["sha256"], shown[2]["sha256"])
        # The same of a content that comes apart; stdin is what is left.
        files = [by_name("A") | apart(len(SECRET)), by_path("/tmp/b", SECRET)]
        for data in (SECRET.encode(), (SECRET + SECRET + "x").encode()):
            self.inside("cat", file_injections=files, data=data)
        self.refusal(file_injections=[*files, by_path("/proc/x", SECRET)], data=SECRET.encode() + b"ab")
        lines = self.client.call("audit_tail", count=100)["lines"]
        lines = [line for line in lines if line["kind"] == "spawn"][-3:]
        for line in lines:
            self.assertEqual([file["sha256"] for file in line["file_injections"][:2]], [shown[0]["sha256"]] * 2)
        self.assertEqual([line["stdin"] and line["stdin"]["size"] for line in lines], [None, len(SECRET) + 1, 2])
        for folder, _, names in os.walk(self.keeper.place.state):
            for name in names:
                if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode):
                    continue
                with open(os.path.join(folder, name), "rb") as file:
                    data = file.read()
                self.assertNotIn(SECRET.encode(), data, name)
                self.assertNotIn(base64.b64encode(SECRET.encode()), data, name)


class InjectionsOfAUserTest(InjectionsTest):
    user = USER


class DegradedTest(BothKeepersCase):
    """On a host where no view can be made."""

    lacks = tuple(f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS)

    def test_b093_without_mounts(self):
        """By variable on disk, read-only and for whoever the process runs as; by path refused."""
        sandbox = {"require": []}
        script = 'cat "$A"; (echo x >>"$A") 2>/dev/null && echo written; stat -c "%a %u" "$A"; id -u; echo "$A"'
        record, out, err = self.inside(script, sandbox, file_injections=[by_name("A", "given\n")])
        self.assertNotEqual(record["sandbox"]["kind"], "namespaces")
        given, owner, uid, path = out.splitlines()
        self.assertEqual((given, owner), ("given", f"400 {uid}"), err)
        self.assertNotEqual(uid, "0")
        self.client.call("info")
        # They go with the first process, a moment after the end.
        procs.wait_until(lambda: not os.path.exists(os.path.dirname(path)), f"{path} to go")
        error = self.refusal(sandbox=sandbox, file_injections=[by_path("/tmp/x")])
        self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "files"))


class DegradedOfAUserTest(DegradedTest):
    user = USER
