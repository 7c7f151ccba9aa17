"""Run inside bubblewrap or unshare, as nobody in particular: a keeper there, the attacks through it, and what was found as JSON.

nested.py LIST: the list of expected/ to judge by; the words "refused NAME" come first if the default request is refused there.
"""

import json
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib.client import KeeperError  # noqa: E402 (the path comes first)
from lib.confined import ConfinedCase  # noqa: E402
from lib.place import Place  # noqa: E402

ALL = ["files", "network", "identity", "privileges", "seccomp", "kill"]


class Nested(ConfinedCase):
    def runTest(self):
        name = sys.argv[1]
        world = self.world()
        place = Place()
        place.conf.write_text("[sandbox]\nslots = 2\ntmp_bytes = 8M\n")
        env = {"HOME": str(world.home), "KEEPERS_SECRET": world.marker}
        client = self.start_keeper(place=place, env=env).clients[0]
        world.with_keeper(self.keepers[0])
        world.write_params(TMP_FILES_MAX=50)
        world.open_fresh()
        found = {"refused": None, "runs": []}
        try:
            client.call("spawn", argv=["true"], cwd=str(world.workspace), sandbox=world.sandbox())
        except KeeperError as error:
            found["refused"] = {"code": error.code, "details": error.details, "message": error.message}
        for kind in ("pipe", "pty"):
            tolerate = {"tolerate": ALL} if found["refused"] else {}
            record, lines = self.attack(client, world, kind=kind, sandbox=tolerate)
            where = {"user" if os.geteuid() else "root", kind, "host", "none", "few", record["start"]}
            faults = self.judge(name, where, record, lines, world)
            found["runs"].append({"sandbox": record["sandbox"], "start": record["start"], "faults": faults, "lines": len(lines)})
        sys.__stdout__.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    result = unittest.TestResult()
    Nested().run(result)
    for _, text in [*result.errors, *result.failures]:
        print(text, file=sys.stderr)
    sys.exit(0 if result.wasSuccessful() else 1)
