"""Calls of tools while one allocation after the other fails: whichever it is, the answer is an answer."""

import json


class FaultSweep:
    """Beside a ToolCase."""

    stride = 5  # of the allocations that fail: a prime, so that repeated ones are all met

    def fails_softly(self, name, number, args):
        """One allocation of the program fails; gives whether the call did not succeed."""
        env = {**self.env, "COOP_FAULT": f"alloc:{number}"}
        out, err = self.coop("tool", name, json.dumps(args), code=None, env=env)
        self.assertIn(self.code, (0, 1, 2), f"allocation {number} of {name}: {out[-300:]!r} {err[-300:]!r}")
        if not out:
            self.assertRegex(err, rb"^coop(-tool)?: \S.*\n$", f"allocation {number} of {name}")
            return True
        result = json.loads(out)
        if self.code == 2:
            self.assertEqual(result["code"], "internal", f"allocation {number} of {name}: {result}")
        else:
            self.check(name, number, result)
        return self.code != 0

    def check(self, name, number, result):
        """What is told as a success is one."""

    def sweep(self, name, **args):
        """All allocations, until many in a row did no harm."""
        harmless = number = failed = 0
        while harmless < 60:
            number += self.stride
            if self.fails_softly(name, number, args):
                harmless, failed = 0, failed + 1
            else:
                harmless += self.stride
        self.assertGreater(failed, 3, f"{name}: {number}")
