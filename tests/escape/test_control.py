"""That the tests can fail: in a weak sandbox most attacks go through. And that the attack program refuses where nothing holds it."""

import subprocess
import unittest

from lib import procs
from lib.confined import ROOT, USER, lines_of
from lib.expected import Expected
from lib.place import patience
from lib.world import ATTACK, World

AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if ROOT else []


def weak_sandbox(world):
    """A user's namespaces of its own, a private /tmp, and nothing more: files, network and memory are the host's."""
    words = ["bwrap", "--unshare-user", "--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/", "--bind", world.base]
    words += [world.base, "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--chdir", world.workspace]
    return [*AS_USER, *map(str, words)]


class ControlTest(unittest.TestCase):
    def setUp(self):
        procs.become_subreaper()
        self.world = World(owner=USER if ROOT else None)
        self.addCleanup(self.world.close)
        self.world.open_fresh()
        listener = self.world.base / "v.sock"
        self.world.write_params(KEEPER_SOCKET=listener, KEEPER_STATE=self.world.base, KEEPER_PROGRAM=ATTACK)
        self.world.write_params(TMP_BYTES_MAX=1 << 20, TMP_FILES_MAX=100)

    def run_words(self, words, **options):
        return subprocess.run(words, capture_output=True, timeout=patience(60), check=False, **options)

    def test_most_attacks_go_through_where_little_holds(self):
        """Each attack of the list succeeds in a weak sandbox, with a victim of its own inside."""
        # The host's processes are out of sight there, so that the victim is one inside, with a pid that is known only then.
        script = (
            '(trap "" USR1; VICTIMS_SECRET=$1 exec sleep 100) & sed -i "s/^HOST_PID=.*/HOST_PID=$!/" params; ./attack all --params params; kill $!'
        )
        done = self.run_words([*weak_sandbox(self.world), "sh", "-c", script, "sh", self.world.marker])
        lines = {line["case"]: line for line in lines_of(done.stdout)}
        self.assertGreater(len(lines), 100, done)
        expected = Expected("control")
        faults = [fault for case in expected.cases if (fault := expected.judge(lines[first(lines, case)]))]
        self.assertEqual(faults, [], "\n".join(faults))
        self.assertLessEqual({"abstract", "unix-run", "tcp", "changed:out/made-by-attack"}, self.world.effects())

    def test_refuses_where_nothing_holds_it(self):
        """As a user with no sandbox, and as root: exit 2, nothing is tried."""
        words = self.world.argv("all")
        for wrap in (AS_USER, []) if ROOT else ([],):
            done = self.run_words([*wrap, *words], cwd="/")
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(b"not contained", done.stderr)
            self.assertEqual(done.stdout, b"")
        self.assertEqual(self.world.effects(), set())

    def test_refuses_without_parameters(self):
        done = self.run_words([str(ATTACK), "S-029"])
        self.assertEqual((done.returncode, done.stdout), (2, b""))


def first(lines, case):
    """The case itself, or else its first variant."""
    return case if case in lines else min(name for name in lines if name.startswith(case + "."))
