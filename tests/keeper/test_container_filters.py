"""Hosts whose own system call filter knows no clone3, as containers have them: new ones say that there is none, old ones refuse it."""

import subprocess

from lib.confined import without
from lib.keeper import KeeperCase
from lib.place import COOP, patience


class ContainerFiltersTest(KeeperCase):
    def test_no_clone3(self):
        """Commands are started all the same, confined or not, from launchers and from those that wait ready."""
        for rules in (["clone3=ENOSYS"], ["clone3=ENOSYS", "unshare=EPERM"]):
            keeper = self.start_keeper(wrap=without(*rules))
            client = keeper.clients[0]
            tolerated = ["files", "network", "identity", "kill", "ipc"] if len(rules) > 1 else []
            for sandbox in ({"profile": "full"}, {"profile": "read-only", "tolerate": tolerated}):
                for _ in range(3):
                    process = client.call("spawn", argv=["sh", "-c", "echo $$; exit 3"], cwd="/", sandbox=sandbox)["process"]
                    answer = client.reply("wait", {"id": process["id"], "output_bytes": 100})
                    self.assertEqual(answer.result["exit_code"], 3, answer.result)
                    self.assertRegex(answer.bytes(), rb"^\d+\n$")

    def test_doctor_tells(self):
        """That commands can be started, or that they cannot and why."""
        for error, code, line in (("ENOSYS", "ok", "clone, pidfd_send_signal"), ("EPERM", "fail", "clone3: Operation not permitted")):
            argv = [*without(f"clone3={error}"), COOP, "doctor"]
            done = subprocess.run(argv, env=self.keeper.place.env(), timeout=patience(30), capture_output=True, text=True, check=False)
            self.assertRegex(done.stdout, rf"(?m)^{code} +clone3 +{line}")

    def test_clone3_refused(self):
        """Where that leaves the keeper without threads it says so at its start, in one line, instead of breaking later."""
        keeper = self.start_keeper(wrap=without("clone3=EPERM"), ready=False)
        code = self.expect_end(keeper)
        self.assertEqual((code, keeper.place.log_tail().count("\n")), (1, 1), keeper.place.log_tail())
        self.assertIn("coop-keeper: no threads can be made here: clone3 is refused (EPERM)", keeper.place.log_tail())
