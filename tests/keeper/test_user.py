"""`user` of a spawn and of its record: whom the command runs as, by the name and the number that `id` tells inside."""

import os
import pwd

from lib.both_keepers import USER, BothKeepersCase
from lib.confined import NEW_MOUNT_CALLS

EVERYBODY = ("root", "nobody", "65533", "no-such-user", "", "0x0", " root", "root ", "-1", "00", "4294967296")


class UserTest(BothKeepersCase):
    own = {"profile": "full"}  # as the keeper itself

    def asks(self):
        yield {}
        yield {"sandbox": {"profile": "read-only", "root": "minimal"}}
        yield {"sandbox": self.own}

    def known(self, **args):
        """(name or number, number) that `id` tells."""
        _, out, _ = self.inside("id -un 2>/dev/null; id -u", args.pop("sandbox", None), **{"cwd": "/", **args})
        *name, number = out.split()
        return name[0] if name else number, number

    def test_the_record_says_what_id_says(self):
        for ask in self.asks():
            name, number = self.known(**ask)
            self.assertTrue(name)
            for user in (name, number, None):
                record, out, _ = self.inside("id -u", ask.get("sandbox"), user=user, cwd="/")
                self.assertEqual((record["user"], out.strip()), (name, number), ask)
            listed = self.client.call("list", include_finished=True)["processes"]
            self.assertEqual({row["user"] for row in listed[-1:]}, {name})
        self.assertEqual(record["user"], pwd.getpwuid(0).pw_name if not self.user else str(self.user))

    def test_every_other_is_a_failed_step(self):
        """Also the keeper's own, where commands are somebody else."""
        for ask in self.asks():
            self.client.call("list")
            allowed = {*self.known(**ask)}
            before = len(self.client.call("list", include_finished=True)["processes"])
            for user in (*EVERYBODY, str(os.geteuid()) if ask else "0"):
                if user in allowed:
                    continue
                error = self.refusal(user=user, cwd="/", **ask)
                self.assertEqual((error.code, error.details), ("spawn_failed", {"step": "user", "errno": "EPERM"}), (user, ask))
                self.assertIn(f"as {self.known(**ask)[0]} alone", error.message)
                before += 1
            self.assertEqual(len(self.client.call("list", include_finished=True)["processes"]), before)

    def test_it_leaves_a_record_where_that_is_asked_for(self):
        error = self.refusal(user="no-such-user", record_failure=True, alias="x", cwd="/")
        record = self.client.call("status", id=error.details["id"])["process"]
        self.assertEqual((record["end_cause"], record["exit"]["code"], record["alias"]), ("spawn_failed", 126, "x"))

    def test_arguments_are_looked_at_first(self):
        self.assertEqual(self.refusal(user="no-such-user", cwd="/no/such/folder").details["field"], "cwd")
        self.assertEqual(self.refusal(user=7).details["field"], "user")


class UserOfAUserTest(UserTest):
    user = USER


class UserWithoutMountsTest(BothKeepersCase):
    """Where the view has no list of its own, and the host's has no name, it is the number."""

    user = USER
    lacks = tuple(f"{call}=ENOSYS" for call in NEW_MOUNT_CALLS)

    def test_it_is_the_number(self):
        sandbox = {"tolerate": ["files", "network", "identity", "ipc", "kill"]}
        record, out, _ = self.inside("id -u", sandbox, cwd="/")
        self.assertEqual((record["user"], out.strip()), (str(USER), str(USER)))
