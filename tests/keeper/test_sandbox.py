"""The sandbox as callers see it: profiles and their names (B-105), what is required (B-106), the report (B-107), files (B-108, B-109),
the network (B-110), the keeper itself (B-111), privileges (B-112), injected files (B-093)."""

import base64
import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path

from lib import procs
from lib.client import Closed, KeeperError
from lib.records import RecordsCase

SEVEN = {"files", "network", "identity", "ipc", "privileges", "seccomp", "kill"}
MIB = 1 << 20


class SandboxCase(RecordsCase):
    def setUp(self):
        super().setUp()
        self.base = Path(tempfile.mkdtemp(prefix="coop-s-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)
        self.base.chmod(0o755)
        self.ws, self.out = self.base / "ws", self.base / "out"
        for folder in (self.ws, self.out):
            folder.mkdir()
        self.out.chmod(0o777)

    def inside(self, script, sandbox=None, **args):
        """Runs a script in the workspace: (record, stdout as text)."""
        sandbox = {"workspace": str(self.ws), **(sandbox or {})}
        client = args.pop("client", self.client)
        args = {"argv": ["sh", "-c", script], "cwd": str(self.ws), "sandbox": sandbox} | args
        record = client.call("spawn", **args)["process"]
        record = client.call("wait", id=record["id"])["process"]
        return record, self.output(record["id"], client=client).decode()

    def says(self, script, sandbox=None, **args):
        return self.inside(script, sandbox, **args)[1].strip()

    def wait_clean(self):
        """Placeholders go a moment after the end, with the first process of the sandbox."""
        procs.wait_until(lambda: self.client.call("info")["sandbox"]["ghosts"] == 0, "the placeholders to go")

    def refusal(self, client=None, **args):
        args = {"argv": ["touch", str(self.ws / "ran")], "cwd": str(self.ws)} | args
        with self.assertRaises(KeeperError) as caught:
            (client or self.client).call("spawn", **args)
        self.assertFalse((self.ws / "ran").exists(), "something ran")
        return caught.exception


class ProfileTest(SandboxCase):
    conf = """
[profile build]
base = workspace-write
network = host
protect_only = kept
memory_bytes = 4G
[profile bare]
base = full
new_privileges = yes
"""

    def test_b105_default_is_workspace_write(self):
        """A request that says nothing is confined; without a workspace nothing on disk can be written."""
        record, text = self.inside("echo x >made && echo fine", {})
        sandbox = record["sandbox"]
        self.assertEqual((sandbox["profile"], sandbox["network"], sandbox["home"], sandbox["root"]),
                         ("workspace-write", "loopback", sandbox["home"], "host"))  # fmt: skip
        self.assertEqual((text, sandbox["workspace"], sandbox["enforced"]), ("fine\n", str(self.ws), True))
        record = self.client.call("spawn", argv=["sh", "-c", f"echo x >{self.ws}/again; echo y >/tmp/y && cat /tmp/y"], cwd="/")
        process = record["process"]["id"]
        self.client.call("wait", id=process)
        self.assertEqual((self.output(process), (self.ws / "again").exists()), (b"y\n", False))
        self.assertIsNone(record["process"]["sandbox"]["workspace"])

    def test_b105_read_only(self):
        record, text = self.inside(f"cat {self.base}/ws/../ws/x; echo a >y || echo no; echo t >/tmp/t && cat /tmp/t",
                                   {"profile": "read-only"})  # fmt: skip
        self.assertEqual(text, "no\nt\n")
        self.assertEqual(record["sandbox"]["profile"], "read-only")
        self.assertEqual(os.listdir(self.ws), [])

    def test_b105_full(self):
        """Neither namespaces nor file rules, the keeper's own identity; still no_new_privs, and the tree is killed."""
        script = f"id -u; echo x >{self.out}/x && echo written; grep NoNewPrivs /proc/self/status; readlink /proc/self/ns/mnt"
        record, text = self.inside(script, {"profile": "full"})
        uid, written, privs, mounts = text.splitlines()
        self.assertEqual((int(uid), written, privs.split()[1]), (os.geteuid(), "written", "1"))
        self.assertEqual(mounts, os.readlink("/proc/self/ns/mnt"))
        self.assertEqual((record["sandbox"]["kind"], record["sandbox"]["enforced"], record["sandbox"]["network"]),
                         ("none", False, "host"))  # fmt: skip

    def test_b105_names_of_others(self):
        """`sandbox_profile` unrestricted, worktree, os_hardened; presets; each as its counterpart. Unknown ones are refused."""
        for name, profile, required in (("unrestricted", "full", set()), ("worktree", "workspace-write", set()),
                                        ("os_hardened", "workspace-write", SEVEN)):  # fmt: skip
            record = self.client.call("spawn", argv=["true"], cwd="/", sandbox_profile=name)["process"]
            self.assertIn(record["sandbox"]["profile"], (profile, name))
            self.assertEqual(record["sandbox"]["kind"], "none" if profile == "full" else "namespaces", name)
            self.assertEqual(set(record["sandbox"]["require"]), required, name)
        for name, profile in (("baseline", "workspace-write"), ("restricted", "read-only")):
            record, _ = self.inside("true", {"profile": name})
            self.assertIn(record["sandbox"]["profile"], (profile, name))
        for args in ({"sandbox_profile": "none"}, {"sandbox_profile": ""}, {"sandbox": {"profile": "strict"}},
                     {"sandbox_profile": "worktree", "sandbox": {"profile": "full"}}):  # fmt: skip
            self.assertEqual(self.refusal(**args).code, "invalid_input", args)

    def test_b105_own_profiles(self):
        """The operator's: what they say lies under what the request says."""
        (self.ws / "kept").mkdir()
        record, text = self.inside("echo x >.bashrc && echo a; echo x >kept/x || echo b", {"profile": "build"})
        self.assertEqual(text, "a\nb\n")
        self.assertEqual(record["sandbox"]["network"], "host")
        record, _ = self.inside("true", {"profile": "build", "network": "none"})
        self.assertEqual(record["sandbox"]["network"], "none")

    def test_b105_strictest_holds(self):
        """Operator, parent, agent, request: an agent's ceiling holds for it and all below, by default and when asked for more."""
        ws = str(self.ws)
        parent = self.keeper.agent("main/p", workspace=[ws], sandbox={"profile": "read-only"})
        child = self.keeper.agent("main/p/c")
        for client in (parent, child):
            record, text = self.inside("echo x >x || echo no", {}, client=client)
            self.assertEqual((record["sandbox"]["profile"], text), ("read-only", "no\n"))
            error = self.refusal(client, sandbox={"profile": "workspace-write"})
            self.assertEqual(error.code, "permission_denied", error)
        with self.assertRaises(KeeperError):
            parent.call("agent_add", agent="main/p/d", sandbox={"profile": "workspace-write"})

    def test_b112_presets_and_grants(self):
        """`privileged` needs the operator's grant; no_new_privs holds in every profile unless he says otherwise by name."""
        self.assertEqual(self.refusal(sandbox={"profile": "privileged"}).code, "permission_denied")
        look = "grep NoNewPrivs /proc/self/status"
        for profile, wanted in (("read-only", 1), ("workspace-write", 1), ("full", 1), ("bare", 0)):
            self.assertEqual(self.says(look, {"profile": profile}).split()[1], str(wanted), profile)

    def test_b106_full_holds_no_protection_wholly(self):
        """Who requires one of it is refused by its name, and not given the part that there is."""
        for name in ("kill", "privileges"):
            error = self.refusal(sandbox={"profile": "full", "require": [name]})
            self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", name), error)

    def test_b112_privileges_of_a_confined_process(self):
        text = self.says("grep -E '^(Cap|Seccomp:|NoNew)' /proc/self/status")
        for line in text.splitlines():
            name, value = line.split(":")
            wanted = {"Seccomp": 2, "NoNewPrivs": 1}.get(name, 0)
            self.assertEqual(int(value, 16), wanted, line)


class GrantedTest(SandboxCase):
    conf = "[sandbox]\nprivileged = yes\n"

    def test_b112_privileged_where_granted(self):
        record, _ = self.inside("true", {"profile": "privileged"})
        self.assertEqual((record["sandbox"]["kind"], record["sandbox"]["network"]), ("none", "host"))


class CeilingTest(SandboxCase):
    conf = """
[sandbox]
at_most_network = loopback
at_most_root = minimal
at_most_home = read-only
at_most_max_pids = 40
at_most_tmp_bytes = 2M
always_require = ipc
root = host
max_pids = 100
tolerate = network
[profile build]
network = host
[profile small]
max_pids = 20
tolerate = ipc
"""

    def both(self):
        """The user's own connection, and that of an agent."""
        return (self.client, self.keeper.agent("main/a", workspace=[str(self.ws)]))

    def test_b105_operators_ceilings_refuse(self):
        """Who asks for more than the operator lets anybody have is refused by name, the user himself too."""
        for client in self.both():
            for sandbox, limits, field in (
                ({"network": "host"}, {}, "sandbox.network"),
                ({"root": "host"}, {}, "sandbox.root"),
                ({"home": "cow"}, {}, "sandbox.home"),
                ({"profile": "full"}, {}, "sandbox.profile"),
                ({"profile": "build"}, {}, "sandbox.profile"),
                ({}, {"max_pids": 41}, "limits.max_pids"),
                ({}, {"tmp_bytes": 3 * MIB}, "limits.tmp_bytes"),
            ):
                error = self.refusal(client, sandbox={"workspace": str(self.ws), **sandbox}, limits=limits)
                self.assertEqual((error.code, error.details["field"]), ("permission_denied", field), error)

    def test_b105_operators_ceilings_hold(self):
        """Who does not say gets what the operator lets, whatever the defaults and the profile are; less can be asked for."""
        look = "ulimit -p; df -k /tmp | tail -1; ls -d /srv /var/tmp 2>&1 | wc -l"
        for client in self.both():
            record, text = self.inside(look, client=client)
            lines = text.split()
            self.assertEqual((lines[0], lines[2]), ("40", "2048"), text)
            sandbox = record["sandbox"]
            self.assertEqual([sandbox[name] for name in ("network", "root")], ["loopback", "minimal"])
            self.assertIn(sandbox["home"], ("read-only", "hidden"))
            self.assertLessEqual({"ipc", "max_pids", "tmp_bytes"}, set(sandbox["require"]))
            record, text = self.inside("ulimit -p", {"profile": "small"}, client=client)
            self.assertEqual((text, record["limits"]["max_pids"]), ("20\n", 20))
            self.assertIn("ipc", record["sandbox"]["require"])
            record, text = self.inside("ulimit -p", {"home": "hidden"}, client=client, limits={"max_pids": 30})
            self.assertEqual((text, record["sandbox"]["home"]), ("30\n", "hidden"))

    def test_b105_nobody_tolerates_it_away(self):
        for sandbox in ({"tolerate": ["ipc"]}, {"require": []}, {"require": [], "tolerate": ["ipc", "tmp_bytes"]}):
            record, _ = self.inside("true", sandbox)
            self.assertLessEqual({"ipc", "tmp_bytes"}, set(record["sandbox"]["require"]), sandbox)

    def test_b105_operators_ceilings_shown(self):
        shown = self.client.call("doctor")["at_most"]
        wanted = {
            "profile": "workspace-write",
            "network": "loopback",
            "home": "read-only",
            "root": "minimal",
            "limits": {"max_pids": 40, "tmp_bytes": 2 * MIB},
            "always_require": ["ipc"],
        }
        self.assertEqual(shown, wanted)


class UnheldCeilingTest(SandboxCase):
    conf = "[sandbox]\nat_most_tmp_bytes = 2M\n"

    def test_b113_a_ceiling_that_cannot_be_held_refuses(self):
        """`full` has no /tmp of its own that could be small; to tolerate that is not up to the request."""
        for tolerate in ([], ["tmp_bytes"]):
            error = self.refusal(sandbox={"profile": "full", "tolerate": tolerate})
            self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "tmp_bytes"), error)
            self.assertEqual((error.details["tolerable"], "--tolerate" in error.message), (False, False), error)

    def test_b113_unless_the_operator_tolerates_it(self):
        self.write_conf(self.conf + "tolerate = tmp_bytes\n")
        self.client.call("reload")
        record, _ = self.inside("true", {"profile": "full"})
        self.assertEqual(record["sandbox"]["protections"]["tmp_bytes"]["state"], "none")


class ReportTest(SandboxCase):
    shares = False  # a share that comes up between two looks is told by the second

    def test_b107_record(self):
        """Kind, enforced, per protection state, mechanism and reason; what was asked; the same in every look."""
        asked = {"workspace": str(self.ws), "network": "none", "deny_read": ["/etc/hostname"]}
        record = self.client.call("spawn", argv=["sleep", "300"], cwd=str(self.ws), sandbox=asked)["process"]
        sandbox = record["sandbox"]
        self.assertEqual((sandbox["kind"], sandbox["enforced"]), ("namespaces", True))
        self.assertEqual(set(sandbox["protections"]), SEVEN | {"max_pids"})
        for name, held in sandbox["protections"].items():
            self.assertEqual((held["state"], held["reason"]), ("enforced", None), name)
            self.assertTrue(held["mechanism"], name)
        for name, value in asked.items():
            self.assertEqual(sandbox["asked"][name], value)
        self.assertIn(record["start"], ("launched", "pooled"))
        self.assertEqual(self.status(record["id"])["sandbox"], sandbox)
        listed = [r for r in self.client.call("list")["processes"] if r["id"] == record["id"]][0]
        self.assertEqual(listed["sandbox"], sandbox)
        self.client.call("kill", id=record["id"])

    def test_b107_limits_in_the_report(self):
        record, _ = self.inside("true", limits={"max_open_files": 77, "tmp_bytes": 4 * MIB})
        for field in ("max_open_files", "tmp_bytes"):
            self.assertEqual(record["sandbox"]["protections"][field]["state"], "enforced")
        self.assertEqual((record["limits"]["max_open_files"], record["limits"]["memory_bytes"]), (77, None))

    def test_b107_death_by_the_filter(self):
        """SIGSYS by the filter is `sandbox_denied`, told with what else it may have been; words about it are not."""
        script = "import ctypes, mmap\n" \
                 "m = mmap.mmap(-1, 4096, prot=7)\n" \
                 "m.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')\n" \
                 "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\n"  # fmt: skip
        if os.uname().machine == "x86_64":
            args = {"argv": ["python3", "-c", script], "cwd": str(self.ws), "sandbox": {"workspace": str(self.ws)}}
            process = self.client.call("spawn", **args)["process"]["id"]
            record = self.ended(process)
            self.assertEqual((record["end_cause"], record["exit"]["signal"]), ("sandbox_denied", signal.SIGSYS), record)
            self.assertEqual(record["end_evidence"]["signal"], "SIGSYS")
            self.assertTrue(any("SIGSYS" in fact for fact in record["facts"]), record["facts"])
        record, _ = self.inside("echo 'Operation not permitted, killed by sandbox'; exit 1")
        self.assertEqual(record["end_cause"], "self_exit")
        record, _ = self.inside("kill -9 $$")
        self.assertNotEqual(record["end_cause"], "sandbox_denied")

    def test_b107_facts_only_where_it_failed(self):
        """A failed command with no network is told so; a successful one is told nothing."""
        reach = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
        bad, _ = self.inside(f'python3 -c "{reach}"', {"network": "none"})
        self.assertTrue(any("network" in fact for fact in bad["facts"]), bad.get("facts"))
        good, _ = self.inside("exit 0", {"network": "none"})
        self.assertFalse(good.get("facts"))

    def test_b106_required_and_missing(self):
        """An allow-list, domains, names that are no protection: refused, named; nothing runs."""
        for sandbox in ({"network": "allowlist"}, {"allowed_domains": ["example.org"]}, {"denied_domains": ["example.org"]}):
            error = self.refusal(sandbox=sandbox)
            self.assertEqual((error.code, error.details["protection"]), ("sandbox_unavailable", "network"), error)
        for field in ("require", "tolerate"):
            error = self.refusal(sandbox={field: ["everything"]})
            self.assertEqual(error.code, "invalid_input", error)

    def test_b106_check_says_the_same(self):
        """`check` of the same request refuses it the same way and starts nothing."""
        args = {"argv": ["true"], "cwd": "/", "sandbox": {"network": "allowlist"}}
        self.assertEqual(self.client.answer("check", args)["error"]["code"], "sandbox_unavailable")

    def test_doctor(self):
        """Every protection with a state, a mechanism or a reason, and every facility that was tried."""
        answer = self.client.call("doctor")
        self.assertLessEqual(SEVEN, set(answer["protections"]))
        for name, held in answer["protections"].items():
            self.assertIn(held["state"], ("enforced", "partial", "none"))
            self.assertTrue(held["mechanism"] or held["reason"], name)
            if held["state"] != "enforced":
                self.assertTrue(held["fix"], (name, held))
        for name, facility in answer["host"].items():
            self.assertEqual(facility["works"], facility["error"] is None, name)
        self.assertEqual(answer["keeper"], "root" if os.geteuid() == 0 else "user")


class FilesTest(SandboxCase):
    def test_b108_inside_and_outside(self):
        """Writes inside succeed, outside fail with an ordinary errno, by name, link, dots; the process lives on."""
        (self.ws / "link").symlink_to(self.out / "by-link")
        (self.out / "file").write_text("old")
        script = f"""
            echo x >in && mkdir d && echo y >d/f && mv d e && rm e/f && echo inside
            echo x >{self.out}/a || echo name
            echo x >link || echo link
            echo x >../out/b || echo dots
            ln {self.out}/file hard || echo hard
            echo x >>{self.out}/file || echo append
            rm {self.out}/file || echo remove
            echo alive"""
        _, text = self.inside(script)
        self.assertEqual(text.split(), ["inside", "name", "link", "dots", "hard", "append", "remove", "alive"])
        self.assertEqual(os.listdir(self.out), ["file"])
        self.assertEqual((self.out / "file").read_text(), "old")
        self.assertEqual(os.stat(self.ws / "in").st_uid, os.geteuid())

    def test_b108_workspace_below_tmp(self):
        """It is visible and writable under its own name, in a /tmp that is private otherwise."""
        with tempfile.TemporaryDirectory(prefix="coop-s-", dir="/tmp") as folder:
            os.chmod(folder, 0o755)
            Path(folder, "there").write_text("seen\n")
            Path(folder + "-beside").touch()
            self.addCleanup(os.unlink, folder + "-beside")
            self.ws = Path(folder)
            text = self.says(f"cat {folder}/there; echo x >new; ls /tmp; touch /tmp/private && echo fine")
            self.assertEqual(text.split(), ["seen", Path(folder).name, "fine"])
            self.wait_clean()
            self.assertEqual(sorted(os.listdir(folder)), ["new", "there"])
            self.assertFalse(os.path.exists("/tmp/private"))

    def test_b108_allow_write_and_several_roots(self):
        more = self.base / "more"
        more.mkdir()
        text = self.says(f"echo x >{more}/x && echo a; echo x >{self.out}/x || echo b", {"allow_write": [str(more)]})
        self.assertEqual(text.split(), ["a", "b"])
        self.wait_clean()
        self.assertEqual((os.listdir(more), os.listdir(self.out)), (["x"], []))

    def test_b108_ordinary_tools_work(self):
        """A repository is made and committed to, a program compiled and run, a cache written to the home."""
        script = """
            set -e
            git init -q repository && cd repository
            echo a >a && git add a && git -c user.email=a@b -c user.name=n commit -q -m a && git log --oneline >/dev/null
            echo 'int main(void){return 0;}' >t.c
            if command -v cc >/dev/null; then cc -o t t.c && ./t; fi
            python3 -c 'import sqlite3; sqlite3.connect("db").execute("create table t(x)")'
            mkdir -p "$HOME/.cache/tool" && echo x >"$HOME/.cache/tool/x"
            echo fine"""
        record, text = self.inside(script)
        self.assertEqual(text.splitlines()[-1:], ["fine"], (text, self.output(record["id"], "stderr")))

    def test_b109_deny_write_and_deny_read(self):
        """Inside a writable and a readable root, for folders, files and globs; denied wins over allowed."""
        for name in ("frozen/f", "secret/f", "a.hidden"):
            path = self.ws / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("content\n")
        sandbox = {
            "deny_write": [str(self.ws / "frozen")],
            "deny_read": [str(self.ws / "secret"), str(self.ws / "*.hidden")],
            "allow_write": [str(self.ws / "frozen")],
        }
        script = "cat frozen/f; echo x >frozen/f || echo w; cat secret/f a.hidden 2>/dev/null; rm -r frozen || echo r; " \
                 "mv secret s2 || echo m; ls secret"  # fmt: skip
        self.assertEqual(self.says(script, sandbox).split(), ["content", "w", "r", "m"])
        self.assertEqual({(self.ws / name).read_text() for name in ("frozen/f", "secret/f", "a.hidden")}, {"content\n"})

    def test_b109_what_is_not_there_yet(self):
        """Paths that are missing at the start can be made neither inside nor by a rename, and are not there afterwards."""
        sandbox = {"deny_write": [str(self.ws / "later-w")], "deny_read": [str(self.ws / "later-r")], "protect": ["own.conf"]}
        script = """
            for name in later-w later-r own.conf .git/hooks .vscode .mcp.json; do
                mkdir -p $name 2>/dev/null; echo x 2>/dev/null >$name/x && echo made $name/x
                echo x 2>/dev/null >$name && echo made $name
                mkdir -p t/x && mv -T t $name 2>/dev/null && echo moved $name; rm -rf t
            done; echo end"""
        self.assertEqual(self.says(script, sandbox), "end")
        procs.wait_until(lambda: os.listdir(self.ws) in ([], [".git"]), "placeholders are taken away")

    def test_b109_protected_inside_a_writable_root(self):
        for name in (".git/hooks/pre-commit", ".git/config", ".vscode/tasks.json"):
            path = self.ws / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("kept\n")
        script = """
            for f in .git/hooks/pre-commit .git/config .vscode/tasks.json; do echo x 2>/dev/null >$f && echo wrote $f; done
            mv .git g 2>/dev/null && echo moved; rm -rf .git/hooks .vscode 2>/dev/null; echo x >.git/index && echo index"""
        self.assertEqual(self.says(script), "index")
        for name in (".git/hooks/pre-commit", ".git/config", ".vscode/tasks.json"):
            self.assertEqual((self.ws / name).read_text(), "kept\n")

    def test_b109_git_file_that_points_elsewhere(self):
        """Where `.git` is a file, what it names is protected too."""
        real = self.ws / "real.git"
        (real / "hooks").mkdir(parents=True)
        tree = self.ws / "tree"
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: {real}\n")
        text = self.says(f"echo x 2>/dev/null >{real}/hooks/pre-commit && echo wrote; echo end",
                         {"workspace": str(tree), "allow_write": [str(real)]}, cwd=str(tree))  # fmt: skip
        self.assertEqual(text, "end")
        self.assertEqual(os.listdir(real / "hooks"), [])


class ReachTest(SandboxCase):
    def test_b110_none(self):
        """Connecting fails, the process lives, local sockets of its own tree work."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(0.2)
            port = server.getsockname()[1]
            script = (
                "import socket\n"
                f"try: socket.create_connection(('127.0.0.1', {port}), 2); print('reached')\n"
                "except OSError: print('refused')\n"
                "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1).decode())\n"
                "s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()\n"
                "c = socket.socket(socket.AF_UNIX); c.connect('/tmp/s'); print('own')\n"
            )
            for network in ("none", "loopback"):
                text = self.says(f'python3 -c "{script}"', {"network": network})
                self.assertEqual(text.split(), ["refused", "x", "own"], network)
            with self.assertRaises(TimeoutError):
                server.accept()
            self.assertIn("reached", self.says(f'python3 -c "{script}"', {"network": "host"}))

    def test_b111_keeper_is_out_of_reach(self):
        """Neither its socket nor its files can be seen, nor anything outside signalled or traced."""
        place = self.keeper.place
        script = (
            f"ls {place.state} 2>/dev/null; cat {place.state}/audit.log {place.conf} 2>/dev/null; "
            f"python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('{place.socket}')\" 2>/dev/null && echo reached; "
            f"kill -0 {self.keeper.pid} 2>/dev/null && echo signalled; ls /proc | grep -c '^[0-9]'"
        )
        for root in ("host", "minimal"):
            lines = self.says(script, {"root": root}).split()
            self.assertEqual(len(lines), 1, (root, lines))
            self.assertLess(int(lines[0]), 10)


class InjectionTest(SandboxCase):
    def inject(self, script, *injections, **args):
        return self.inside(script, file_injections=list(injections), **args)

    def test_b093_both_placements(self):
        """By variable and by fixed path: the exact bytes, read-only, gone when it ends; nothing on disk."""
        path = self.ws / "given"
        raw = bytes(range(256))
        record, text = self.inject(
            f'cat "$TOKEN_FILE"; echo; od -An -tx1 -v {path} | tr -d " \\n"; echo; echo x 2>/dev/null >{path} || echo ro; '
            'echo x 2>/dev/null >"$TOKEN_FILE" || echo ro; echo $TOKEN_FILE',
            {"placement": "env", "name": "TOKEN_FILE", "content": "s3cret"},
            {"placement": "path", "path": str(path), "content_base64": base64.b64encode(raw).decode()},
        )  # fmt: skip
        lines = text.split()
        self.assertEqual(lines[:4], ["s3cret", raw.hex(), "ro", "ro"], (text, self.output(record["id"], "stderr")))
        self.assertFalse(os.path.exists(lines[4]))
        procs.wait_until(lambda: not path.exists(), "the file goes with the process")

    def test_b093_bounds(self):
        """128 files, 8 MiB each, 16 MiB in all."""
        one = lambda i, content: {"placement": "env", "name": f"F{i}", "content": content}
        _, text = self.inject('cat "$F0" "$F127"', *[one(i, f"{i}\n") for i in range(128)])
        self.assertEqual(text.split(), ["0", "127"])
        with self.assertRaises(KeeperError) as caught:
            self.inject("true", *[one(i, "") for i in range(129)])
        self.assertIn(caught.exception.code, ("too_large", "invalid_input"))
        big = "x" * (8 * MIB)
        for bad in ([one(0, big + "x")], [one(0, big), one(1, big), one(2, "x")]):
            # A request of that size may be too large as a whole; the connection ends with that.
            with self.connect() as other:
                args = {"argv": ["true"], "cwd": "/", "file_injections": bad}
                try:
                    code = other.answer("spawn", args)["error"]["code"]
                except Closed:
                    code = (other.fatal or other.until_closed())["code"]
                self.assertEqual(code, "too_large")

    def test_b093_bad_targets(self):
        """Duplicates, dots, quotes, backslash, NUL, relative paths, bad names: invalid_input; nothing runs."""
        paths = ("relative", "/a/../b", '/a"b', "/a'b", "/a\\b", "/a\0b", "")
        bad = [[{"placement": "path", "path": path, "content": ""}] for path in paths]
        bad += [[{"placement": "env", "name": name, "content": ""}] for name in ("", "A=B", "1A", "a b")]
        bad += [[{"placement": "env", "name": "A", "content": ""}] * 2, [{"placement": "path", "path": "/x/y", "content": ""}] * 2]
        bad += [[{"placement": "disk", "name": "A", "content": ""}], [{"placement": "env", "name": "A"}],
                [{"placement": "env", "name": "A", "content": "", "content_base64": ""}]]  # fmt: skip
        for injections in bad:
            with self.subTest(injections=injections):
                error = self.refusal(file_injections=injections, sandbox={"workspace": str(self.ws)})
                self.assertEqual(error.code, "invalid_input", error)

    def test_b093_content_is_written_nowhere(self):
        """Records, audit and state hold the name and a hash, never the content."""
        secret = "injected-hunter2-Tr0ub4dor"
        record, _ = self.inject("true", {"placement": "env", "name": "TOKEN_FILE", "content": secret})
        self.settle()
        self.assertNotIn(secret, str(record))
        for name, data in self.state_files().items():
            self.assertNotIn(secret.encode(), data, name)
        self.assertIn("TOKEN_FILE", str(self.audit_lines()))

    def test_b093_full_has_no_fixed_paths(self):
        """Without a view of its own files by variable still work; by fixed path they are refused."""
        _, text = self.inject('cat "$A"', {"placement": "env", "name": "A", "content": "x"}, sandbox={"profile": "full"})
        self.assertEqual(text, "x")
        injections = [{"placement": "path", "path": str(self.ws / "p"), "content": ""}]
        error = self.refusal(file_injections=injections, sandbox={"profile": "full"})
        self.assertIn(error.code, ("sandbox_unavailable", "invalid_input"), error)
