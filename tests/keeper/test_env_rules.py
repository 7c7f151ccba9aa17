"""What the operator lets doors pass on, and what restricted agents may not set (B-087, B-088)."""

import json
import threading

from lib.client import HEADER, JSON, KeeperError
from lib.records import SECRET, RecordsCase, dumps

WIDE = """
[environment]
inherit = GOFLAGS
inherit = CI_*
inherit = MY_*
inherit = LD_*
deny = CI_INTERNAL_*
deny = MY_PRIVATE
"""
ENDINGS = ("_API_KEY", "_TOKEN", "_SECRET", "_KEY", "_PASSWORD")
INJECTING = (
    "LD_PRELOAD LD_LIBRARY_PATH LD_X DYLD_INSERT_LIBRARIES BASH_ENV ENV GCONV_PATH NODE_OPTIONS PERL5OPT PYTHONHOME "
    "PYTHONPATH RUBYOPT ZDOTDIR"
).split()


class EnvCase(RecordsCase):
    def env_of(self, client=None, **args):
        """The environment that a command really gets."""
        client = client or self.client
        process = client.call("spawn", argv=["/usr/bin/env", "-0"], **args)["process"]["id"]
        client.call("wait", id=process)
        text = client.reply("read", {"id": process, "max": 1 << 20}).bytes().decode()
        return dict(line.split("=", 1) for line in text.split("\0") if line)


class InheritTest(EnvCase):
    conf = WIDE

    def test_b087_hello_names_what_may_be_sent(self):
        """The hello tells doors the names; without configuration there are none."""
        self.assertEqual(self.client.hello["inherit"], ["GOFLAGS", "CI_*", "MY_*", "LD_*"])
        self.write_conf("")
        self.client.call("reload")
        self.assertEqual(self.connect().hello["inherit"], [])

    def test_b087_widened_names_pass_secrets_do_not(self):
        """Widened names arrive; those that end as secrets do, that are denied, and LD_* are left out without an error."""
        good = {"GOFLAGS": "-mod=mod", "CI_JOB": "7", "MY_KEYBOARD": "de", "MY_TOKENS": "x", "MY_SECRETARY": "y"}
        bad = {f"MY{ending}": SECRET for ending in ENDINGS} | {f"CI_X{ending}": SECRET for ending in ENDINGS}
        bad |= {"CI_INTERNAL_X": SECRET, "MY_PRIVATE": SECRET, "LD_PRELOAD": SECRET, "LD_LIBRARY_PATH": SECRET}
        env = self.env_of(base_env={**good, **bad, "LANG": "C.UTF-8"})
        self.assertEqual({name: env.get(name) for name in good}, good)
        self.assertEqual({name for name in bad if name in env}, set())
        self.assertEqual(env["LANG"], "C.UTF-8")
        self.assertIn("PATH", env)
        self.assertIn("HOME", env)

    def test_b087_given_values_stay(self):
        """What env itself gives is the caller's word: secrets and denied names arrive, over what is inherited."""
        given = {"MY_API_KEY": "k", "X_TOKEN": "t", "MY_PRIVATE": "p", "CI_JOB": "8", "PATH": "/usr/bin:/bin", "HOME": "/tmp"}
        env = self.env_of(env=given, base_env={"CI_JOB": "7", "MY_API_KEY": SECRET})
        self.assertEqual({name: env[name] for name in given}, given)
        self.assertNotIn(SECRET, dumps(env))

    def test_b087_other_names_are_refused(self):
        """A name that the hello does not have is refused as before, and its value is not told."""
        for name in ("OTHER", "GOFLAGS2", "XCI_", "CI", "ci_job", "COOP_TOKEN"):
            with self.subTest(name=name), self.refused("invalid_input", words=name) as caught:
                self.spawn("true", base_env={name: SECRET})
            self.assertNotIn(SECRET, str(caught.exception))

    def test_b087_many_doors_at_once(self):
        """Four agents at once with different values: each command has its own door's."""
        agents = [self.agent(f"main/a{i}") for i in range(4)]
        seen = [set() for _ in agents]

        def drive(number):
            for _ in range(10):
                env = self.env_of(agents[number], base_env={"CI_WHO": str(number), "CI_X_TOKEN": SECRET})
                seen[number].add((env.get("CI_WHO"), env.get("CI_X_TOKEN")))

        threads = [threading.Thread(target=drive, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, [{(str(number), None)} for number in range(4)])

    def test_b087_reload_narrows(self):
        """After a reload the old names are refused."""
        self.env_of(base_env={"GOFLAGS": "x"})
        self.write_conf("[environment]\ninherit = CI_*\n")
        self.client.call("reload")
        self.env_of(base_env={"CI_A": "x"})
        with self.refused("invalid_input"):
            self.env_of(base_env={"GOFLAGS": "x"})


class NamesTest(EnvCase):
    def test_b088_bad_names_and_values(self):
        """A name of another form, a NUL, too many and too long are invalid_input that names the place; nothing starts."""
        many = {f"N{i}": "x" for i in range(257)}
        for env in ({"1A": "x"}, {"": "x"}, {"A-B": "x"}, {"A B": "x"}, {"A=B": "x"}, {"Ä": "x"}, {"A\n": "x"},
                    {"A": "x\0y"}, {"A": "x" * 65537}, many, {"A": 7}, {"A": None}, ["A=1"]):
            for field in ("env", "base_env"):
                with self.subTest(env=dumps(env)[:30], field=field), self.assertRaises(KeeperError) as caught:
                    self.client.call("spawn", argv=["true"], **{field: env})
                self.assertIn(caught.exception.code, ("invalid_input", "too_large") if "x" * 65537 in dumps(env) else ("invalid_input",))
                self.assertTrue(caught.exception.details["field"].startswith(field))
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])

    def test_b088_bounds_are_taken(self):
        """256 names and 64 KiB are not too many."""
        env = self.env_of(env={**{f"N{i}": "x" for i in range(255)}, "LONG": "y" * 65536})
        self.assertEqual((len(env["LONG"]), env["N254"]), (65536, "x"))

    def test_b088_duplicate(self):
        """The same name twice, or a NUL in one, is no JSON that is taken: the connection ends with the reason, and nothing starts."""
        for env in (b'{"A": "1", "A": "2"}', b'{"A\\u0000": "1"}'):
            client = self.connect()
            payload = b'{"id": 1, "op": "spawn", "args": {"argv": ["true"], "env": ' + env + b"}}"
            client.send_raw(HEADER.pack(len(payload), JSON, 0, 0) + payload)
            self.assertEqual(client.until_closed()["code"], "invalid_input")
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])

    def test_b088_ld_is_never_inherited(self):
        """LD_* is no name that a door may send, and none of the keeper's own reaches a command."""
        with self.refused("invalid_input"):
            self.spawn("true", base_env={"LD_PRELOAD": "x"})
        self.assertEqual([name for name in self.env_of() if name.startswith("LD_")], [])

    def test_b088_restricted(self):
        """A restricted agent may not set what makes a program run other code; the field is named, nothing starts."""
        agent = self.agent("main/tight", restricted=True)
        kid = self.agent("kid", by=agent)
        for client in (agent, kid):
            for name in INJECTING:
                for mode in ("patch", "replace"):
                    with self.subTest(name=name, mode=mode), self.assertRaises(KeeperError) as caught:
                        client.call("spawn", argv=["/bin/true"], env={name: SECRET}, env_mode=mode)
                    self.assertEqual((caught.exception.code, caught.exception.details["field"]), ("capability_denied", f"env.{name}"))
                    self.assertNotIn(SECRET, str(caught.exception))
            self.assertEqual(client.call("list", include_finished=True)["processes"], [])
            self.assertEqual(self.env_of(client, env={"ENVIRONMENT": "x", "MY_ENV": "y"})["MY_ENV"], "y")

    def test_b088_others_may(self):
        """An agent that is not restricted sets them as it likes."""
        agent = self.agent("main/free")
        env = self.env_of(agent, env={"PYTHONPATH": "/x", "ENV": "/y"})
        self.assertEqual((env["PYTHONPATH"], env["ENV"]), ("/x", "/y"))

    def test_b088_restriction_cannot_be_shed(self):
        """Below a restricted agent everybody is; no setting takes it away, and it holds from when it is set."""
        agent = self.agent("main/tight", restricted=True)
        kid = self.agent("kid", by=agent)
        for restricted in (False, None):
            try:
                agent.call("agent_set", agent="kid", restricted=restricted)
            except KeeperError as error:
                self.assertEqual((error.code, error.details["field"]), ("invalid_input", "restricted"))
            self.assertTrue(agent.call("agent_show", agent="kid")["agent"]["effective"]["restricted"])
        free = self.agent("main/free")
        self.client.call("agent_set", agent="main/free", restricted=True)
        for client in (kid, free):
            with self.refused("capability_denied"):
                client.call("spawn", argv=["true"], env={"LD_PRELOAD": "x"})
        self.client.call("agent_set", agent="main/free", restricted=None)
        self.assertEqual(self.env_of(free, env={"ENV": "x"})["ENV"], "x")

    def test_b088_values_are_nowhere(self):
        """What was refused shows its value neither in the log nor in the audit."""
        agent = self.agent("main/tight", restricted=True)
        with self.refused("capability_denied"):
            agent.call("spawn", argv=["true"], env={"LD_PRELOAD": SECRET})
        for data in self.state_files().values():
            self.assertNotIn(SECRET.encode(), data)
        self.assertNotIn(SECRET, self.place.log_tail() + json.dumps(self.audit_lines()))
