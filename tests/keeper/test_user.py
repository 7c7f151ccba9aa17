"""`user` of a spawn: the keeper's own means nothing, every other fails as a step of the start."""

import os
import pwd

from lib.keeper import KeeperCase


class UserTest(KeeperCase):
    def test_the_keepers_own_user_means_nothing(self):
        for user in (str(os.geteuid()), pwd.getpwuid(os.geteuid()).pw_name, None):
            record, out, _ = self.run_sh("id -u", user=user)
            plain, same, _ = self.run_sh("id -u")
            self.assertEqual((record["exit"], out), (plain["exit"], same))

    def test_every_other_is_a_failed_step(self):
        other = "nobody" if os.geteuid() != 65534 else "root"
        for user in (other, "65533", "no-such-user", "", "0x0", " root", "root ", "-1", "00", "4294967296"):
            with self.refused("spawn_failed", words="user") as caught:
                self.spawn("true", user=user)
            self.assertEqual(caught.exception.details, {"step": "user", "errno": "EPERM"}, user)
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])

    def test_it_leaves_a_record_where_that_is_asked_for(self):
        with self.refused("spawn_failed") as caught:
            self.spawn("true", user="no-such-user", record_failure=True, alias="x")
        record = self.status(caught.exception.details["id"])
        self.assertEqual((record["end_cause"], record["exit"]["code"], record["alias"]), ("spawn_failed", 126, "x"))

    def test_arguments_are_looked_at_first(self):
        with self.refused("invalid_input", "cwd"):
            self.spawn("true", user="no-such-user", cwd="/no/such/folder")
        with self.refused("invalid_input", "user"):
            self.spawn("true", user=7)
