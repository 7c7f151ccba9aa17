"""Agents bound to workspace roots (B-091), and restricted ones (B-088)."""

import os
import re
import threading

from lib.agents import AgentCase
from lib.procs import wait_until

RESTRICTED = ("LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT LD_ LD_x DYLD_INSERT_LIBRARIES DYLD_ BASH_ENV ENV GCONV_PATH NODE_OPTIONS PERL5OPT "
              "PYTHONHOME PYTHONPATH RUBYOPT ZDOTDIR").split()


class WorkspaceTest(AgentCase):
    def setUp(self):
        super().setUp()
        self.base = self.keeper.place.dir.resolve()
        for name in ("in/sub", "in/deep/er", "out/sub", "in-not", "second"):
            (self.base / name).mkdir(parents=True)
        self.root = self.base / "in"
        (self.root / "away").symlink_to(self.base / "out")
        (self.root / "within").symlink_to("deep/er")
        (self.root / "up").symlink_to("..")
        (self.root / "file").touch()
        self.who = self.keeper.agent("main/a", workspace=[str(self.root)])

    def where(self, client, **args):
        """The directory that a program finds itself in, and the record's."""
        record = self.start(client, "readlink /proc/self/cwd", **args)
        return self.line(client, record["id"]), record["cwd"]

    def test_b091_inside(self):
        """Absent is the first root, relative starts there; links and dots that stay inside are fine; shown resolved."""
        for cwd, ends in ((None, ""), (".", ""), ("sub", "/sub"), (str(self.root), ""), (f"{self.root}/deep/er", "/deep/er"),
                          ("within", "/deep/er"), ("sub/..", ""), ("deep/../sub/.", "/sub"), (f"{self.root}/../in/sub", "/sub")):
            with self.subTest(cwd=cwd):
                self.assertEqual(self.where(self.who, cwd=cwd), (f"{self.root}{ends}",) * 2)

    def test_b091_outside(self):
        """What the command could enter it may begin in; what is not seen in its sandbox is refused, however it is written, as what is not
        there is: nothing is told of it, and nothing is started."""
        mark, told = self.base / "mark", set()
        for cwd in (f"{self.base}/out", "../out", "away", "away/sub", "up/out", "up/in/../out", f"{self.root}/away", f"{self.base}/in-not",
                    "../in-not", "within/../../../out", f"{self.base}/never", "../never", f"{self.base}/out/never"):
            with self.subTest(cwd=cwd):
                for args in ({}, {"kind": "pty"}, {"record_failure": True}):
                    error = self.refusal(self.who, "spawn", argv=["touch", str(mark)], cwd=cwd, **args)
                    self.assertEqual((error.code, error.details["field"]), ("invalid_input", "cwd"), error)
                    told.add((re.sub("^cwd [^ ]* ", "", error.message), *sorted(set(error.details) - {"id"})))
        self.assertEqual(len(told), 1, told)
        for cwd, seen in (("/", "/"), ("/tmp", "/tmp"), ("//tmp", "/tmp"), ("/etc", "/etc"), (str(self.base), str(self.base)), ("..", str(self.base)),
                          ("up", str(self.base)), ("sub/../..", str(self.base))):  # fmt: skip
            self.assertEqual(self.where(self.who, cwd=cwd), (seen,) * 2)
            self.finish(self.who, f"touch {mark}", cwd=cwd)
        self.assertFalse(mark.exists())
        for cwd in ("none", "file", f"{self.root}/none/.."):
            self.assertEqual(self.assert_refused(self.who, "invalid_input", "spawn", argv=["true"], cwd=cwd)["field"], "cwd")
        self.assertEqual(self.where(self.client, cwd=str(self.base / "out"))[0], str(self.base / "out"), "main is not bound")

    def test_b091_several_roots_and_agents_below(self):
        """All roots are allowed, the first is the default; children inherit them, may have fewer, and never more."""
        self.client.call("agent_set", agent="main/a", workspace=[str(self.base / "second"), str(self.root)])
        heir = self.keeper.agent("main/a/heir")
        narrow = self.keeper.agent("main/a/narrow", workspace=[str(self.root / "deep")])
        for client in (self.who, heir):
            self.assertEqual(self.where(client)[0], str(self.base / "second"))
            self.assertEqual(self.where(client, cwd=str(self.root / "sub"))[0], str(self.root / "sub"))
            self.assert_refused(client, "boundary_escape", "spawn", argv=["true"], sandbox={"workspace": str(self.base / "out")})
        self.assertEqual(self.where(narrow, cwd="er")[0], str(self.root / "deep/er"))
        for workspace in (self.root, self.base / "second"):
            self.assert_refused(narrow, "boundary_escape", "spawn", argv=["true"], sandbox={"workspace": str(workspace)})
        for wide in (str(self.base), str(self.base / "out"), str(self.root / "away"), "/", str(self.base / "in-not")):
            details = self.assert_refused(self.who, "invalid_input", "agent_add", agent="x", workspace=[wide])
            self.assertTrue(details["field"].startswith("workspace"), details)
        # What the parent loses the child has lost, too.
        self.client.call("agent_set", agent="main/a", workspace=[str(self.base / "second")])
        self.assert_refused(narrow, "boundary_escape", "spawn", argv=["true"], sandbox={"workspace": str(self.root / "deep")})
        self.assert_refused(heir, "boundary_escape", "spawn", argv=["true"], sandbox={"workspace": str(self.root)})

    def test_b091_the_directory_checked_is_the_one_entered(self):
        """A name that turns from a directory into a link that leads out and back, all the time: a spawn is inside or refused."""
        turning, link, real = self.root / "turning", self.root / "link", self.root / "real"
        real.mkdir()
        link.symlink_to(self.base / "out")
        os.rename(real, turning)
        ending = threading.Event()

        def turn():
            while not ending.is_set():
                os.rename(turning, real)
                os.rename(link, turning)
                os.rename(turning, link)
                os.rename(real, turning)

        thread = threading.Thread(target=turn)
        thread.start()
        entered, answers = [], []
        spawn = {"argv": ["readlink", "/proc/self/cwd"], "cwd": "turning"}

        def try_some():
            requests = [self.who.submit("spawn", spawn) for _ in range(60)]
            answers.extend("result" in self.who.item(request) for request in requests)  # told or refused: both are right
            return len(set(answers)) == 2

        try:
            wait_until(try_some, "some are told and some refused")
        finally:
            ending.set()
            thread.join()
        for record in self.who.call("list", include_finished=True)["processes"]:
            self.who.call("wait", id=record["id"])
            entered.append(self.output(record["id"], client=self.who).decode().strip())
        self.assertTrue(entered)
        self.assertEqual([path for path in entered if not path.startswith(f"{self.root}/")], [])

    def test_b091_root_that_is_a_link(self):
        """A root may be named by a link; the program is in the directory itself."""
        (self.base / "alias").symlink_to(self.root)
        who = self.keeper.agent("main/b", workspace=[str(self.base / "alias")])
        self.assertEqual(self.where(who)[0], str(self.root))
        self.assertEqual(self.where(who, cwd=str(self.base / "alias/sub"))[0], str(self.root / "sub"))
        self.assert_refused(who, "boundary_escape", "spawn", argv=["true"], sandbox={"workspace": str(self.base / "out")})


class RestrictedTest(AgentCase):
    def test_b088_restricted_agents_do_not_set_loader_variables(self):
        """Each such name is capability_denied with its field, in every mode; nothing is started."""
        who = self.keeper.agent("main/a", restricted=True)
        mark = self.keeper.place.dir / "mark"
        for name in RESTRICTED:
            for args in ({}, {"env_mode": "replace"}, {"env_mode": "merge"}, {"kind": "pty"}):
                with self.subTest(name=name, args=args):
                    env = {"FINE": "1", name: "secret-value", "PATH": os.environ["PATH"]}
                    error = self.refusal(who, "spawn", argv=["touch", str(mark)], env=env, **args)
                    self.assertEqual((error.code, error.details), ("capability_denied", {"field": f"env.{name}"}))
                    self.assertNotIn("secret-value", f"{error.message} {error.details}")
        self.assert_refused(who, "capability_denied", "spawn", mode="shell", command=f"touch {mark}", env={"BASH_ENV": "x"})
        self.assertFalse(mark.exists())

    def test_b088_other_names_and_agents(self):
        """Names that only look alike are free, removing is free, and an agent that is not restricted sets what it likes."""
        who = self.keeper.agent("main/a", restricted=True)
        free = {"ld_preload": "1", "XLD_PRELOAD": "1", "ENVX": "1", "MY_ENV": "1", "PYTHONPATH2": "1", "NODE_OPTION": "1", "LDX": "1"}
        record = self.start(who, "exit 0", env=free, env_remove=["LD_PRELOAD", "ENV"])
        self.assertLessEqual(set(free), set(record["env_names"]))
        other = self.keeper.agent("main/b")
        for client in (self.client, other):
            names = set(self.start(client, "exit 0", env=dict.fromkeys(RESTRICTED[2:], ""))["env_names"])
            self.assertLessEqual(set(RESTRICTED[2:]), names)

    def test_b088_restriction_is_inherited(self):
        """By all below; nobody below can shake it off, the one above can."""
        who = self.keeper.agent("main/a", restricted=True)
        below = self.keeper.agent("main/a/x")
        self.assert_refused(below, "capability_denied", "spawn", argv=["true"], env={"ENV": "x"})
        self.assert_refused(who, "invalid_input", "agent_set", agent="x", restricted=False)
        self.assert_refused(who, "invalid_input", "agent_add", agent="y", restricted=False)
        self.client.call("agent_set", agent="main/a", restricted=False)
        self.assertEqual(self.finish(below, env={"ENV": "x"})["exit"]["code"], 0)
