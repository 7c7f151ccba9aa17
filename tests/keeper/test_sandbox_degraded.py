"""A host without the calls that mount by descriptor: files are Landlock's and told as partial, all else holds as ever (B-106, B-107)."""

import os

from lib import procs
from lib.both_keepers import USER, BothKeepersCase
from lib.confined import NEW_MOUNT_CALLS

LOOK = "for n in user pid net ipc uts cgroup mnt; do readlink /proc/self/ns/$n; done; echo $$"


class NoMountsTest(BothKeepersCase):
    user = USER
    lacks = tuple(f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS)
    conf = "[sandbox]\nslots = 4\n"

    def tolerant(self, **sandbox):
        return {"workspace": str(self.ws), "tolerate": ["files"], **sandbox}

    def test_b106_refused_by_the_name_of_files(self):
        error = self.refusal(sandbox={"workspace": str(self.ws)})
        self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "files"), error)
        self.assertEqual((error.details["tolerable"], "--tolerate files" in error.message), (True, True), error)

    def test_b107_only_files_are_partial(self):
        """To tolerate that is enough, and every other namespace is there."""
        for network in ("loopback", "none", "host"):
            for _ in range(3):  # as if slots were at work
                record, out, _ = self.inside(LOOK, self.tolerant(network=network))
                states = {name: held["state"] for name, held in record["sandbox"]["protections"].items()}
                weaker = {name: state for name, state in states.items() if state != "enforced"}
                self.assertEqual(weaker, {"files": "partial"} | ({"network": "none"} if network == "host" else {}), record["sandbox"])
                *inside, pid = out.split()
                here = [os.readlink(f"/proc/self/ns/{name}") for name in ("user", "pid", "net", "ipc", "uts", "cgroup", "mnt")]
                same = [name for name, one in zip(("user", "pid", "net", "ipc", "uts", "cgroup", "mnt"), inside, strict=True) if one in here]
                self.assertEqual(same, ["net", "mnt"] if network == "host" else ["mnt"])
                self.assertLess(int(pid), 10)

    def test_b107_doctor_says_the_same(self):
        told = self.client.call("doctor")["protections"]
        record, _, _ = self.inside("true", self.tolerant(), limits={"max_pids": 30})
        for name, held in record["sandbox"]["protections"].items():
            self.assertEqual(told[name]["state"], held["state"], name)
            if name != "identity":  # of root's keeper it could be better
                self.assertEqual(bool(told[name]["fix"]), held["state"] != "enforced", told[name])
        self.assertEqual(record["sandbox"]["protections"]["max_pids"]["mechanism"], "rlimit, user namespace")

    def test_b110_loopback_is_the_sessions(self):
        serve = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); s.accept()"
        reach = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print('reached')"
        args = {"cwd": str(self.ws), "sandbox": self.tolerant()}
        server = self.client.call("spawn", argv=["/usr/bin/python3", "-c", serve], **args)["process"]["id"]
        port = self.wait_output(server, b"\n").decode().strip()
        other = self.client.call("session_new")["session"]["id"]
        for session, wanted in ((other, b""), (None, b"reached\n")):
            argv = ["/usr/bin/python3", "-c", reach, port]
            process = self.client.call("spawn", argv=argv, **args, **({"session": session} if session else {}))["process"]["id"]
            self.client.call("wait", id=process)
            self.assertEqual(self.output(process), wanted)

    def test_b111_kill_takes_all(self):
        """The PID namespace is for that, also where it has no /proc of its own."""
        script = "setsid sh -c 'trap \"\" TERM; sleep 300 & sleep 300' & setsid sleep 300 & echo up; wait"
        process = self.client.call("spawn", argv=["sh", "-c", script], cwd=str(self.ws), sandbox=self.tolerant())["process"]["id"]
        self.wait_output(process, b"up\n")
        self.client.call("kill", id=process)
        left = [line for line in map(procs.cmdline, procs.descendants(self.keeper.pid)) if "sleep" in line]
        self.assertEqual(left, [])

    def test_b111_the_keepers_socket(self):
        """It can be found, so the keeper looks who comes."""
        hello = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(100))"
        argv = ["/usr/bin/python3", "-c", hello, str(self.keeper.place.socket)]
        for network in ("none", "loopback", "host"):
            process = self.client.call("spawn", argv=argv, cwd=str(self.ws), sandbox=self.tolerant(network=network))["process"]["id"]
            self.client.call("wait", id=process)
            self.assertIn(self.output(process), (b"b''\n", b""))
        self.keeper.connect().call("info")

    def test_b108_files(self):
        out = self.folder("out")
        record, text, _ = self.inside(f"echo x >in; echo x >{out}/x; ls {out}", self.tolerant())
        self.assertEqual((text, (self.ws / "in").exists(), os.listdir(out)), ("", True, []))
        self.assertIn("landlock", record["sandbox"]["protections"]["files"]["mechanism"])

    def test_b106_b109_denied_paths(self):
        """What is denied to be read cannot be. What is denied to be written is refused with files, or the record says that it is not held."""
        for name in ("frozen", "secret"):
            (self.ws / name).write_text("as it was\n")
            self.give(self.ws / name)
            (self.ws / name).chmod(0o666)
        denied = {"deny_write": [str(self.ws / "frozen")], "deny_read": [str(self.ws / "secret")]}
        error = self.refusal(sandbox={"workspace": str(self.ws), **denied})
        self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "files"), error)
        self.assertIn("deny_write", error.details["reason"])
        record, text, _ = self.inside("cat secret", self.tolerant(**denied))
        held = record["sandbox"]["protections"]["files"]
        self.assertEqual((text, held["state"]), ("", "partial"))
        self.assertIn("deny_write does not hold", held["reason"])
        self.assertIn("protected paths", held["reason"])
        record, _, _ = self.inside("true", self.tolerant())
        self.assertNotIn("deny_write", record["sandbox"]["protections"]["files"]["reason"])

    def test_s100_hard_links(self):
        """Other names of what is denied, and of credentials, are not to be read either."""
        secret, key = self.base / "secret", self.home / ".ssh" / "id"
        key.parent.mkdir()
        for path in (secret, key):
            path.write_text("hidden\n")
            path.chmod(0o644)
            self.give(path)
        self.give(key.parent)
        below = self.folder("ws/below")
        os.link(secret, below / "twin")
        os.link(key, below / "key")
        (below / "other").write_text("seen\n")
        sandbox = self.tolerant(deny_read=[str(secret)])
        record, text, _ = self.inside(f"cat {secret} below/twin below/other; echo x >>below/twin", sandbox)
        self.assertEqual((text, secret.read_text()), ("seen\n", "hidden\n"))
        if self.user:  # whose home it is
            self.assertEqual(self.says("cat below/key below/other", sandbox), "seen")
        self.assertIn("landlock only: protected paths", record["sandbox"]["protections"]["files"]["reason"])


class NoMountsOfRootTest(NoMountsTest):
    """Its commands are somebody else, who may write where the folder lets him."""

    user = None

    def setUp(self):
        super().setUp()
        self.ws.chmod(0o777)
