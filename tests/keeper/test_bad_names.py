"""Names, paths and tokens as nobody should send them: clear refusals, nothing added, and the keeper goes on."""

import os

from lib import procs
from lib.client import HEADER, JSON, Closed, KeeperError
from lib.records import RecordsCase

NAMES = [
    "", " ", ".", "..", "-a", "_a", ".a", "a b", "a\n", "a\tb", "a\0b", "\x1b[31m", "a\x7f", "a\u0085", "\u202emain", "ä", "a" * 65,
    "/", "//", "main/", "main//a", "/main/a", "main/.", "main/..", "main/../main", "main/a\n", "main/" + "a" * 65, "main/a/",
    "main/" + "/".join(["a"] * 300), "main/" + "a/" * 5000, "a" * 100000, "%n%s", "main/a;b", "main/*", "main/a\\b", "main/self ",
]
WRONG = [7, None, True, [], {}, ["main/a"], 1e300]


class NamesTest(RecordsCase):
    def agents(self):
        return [agent["path"] for agent in self.client.call("agent_list")["agents"]]

    def test_bad_agent_names(self):
        """None of them becomes an agent; the field is named, and control characters do not come back raw."""
        for name in NAMES + WRONG:
            with self.subTest(name=str(name)[:30]):
                with self.assertRaises(KeeperError) as caught:
                    self.client.call("agent_add", agent=name)
                error = caught.exception
                self.assertIn(error.code, ("invalid_input", "too_large"))
                self.assertEqual(error.details["field"], "agent")
                self.assertLess(len(error.message), 1000)
                self.assertEqual([c for c in error.message if ord(c) < 32 or 127 <= ord(c) < 160], [])
        self.assertEqual(self.agents(), ["main"])

    def test_bad_names_everywhere_else(self):
        """The same words as an agent's or a principal's name in other operations: refused or nothing found, alike for all."""
        for op, args in (("agent_show", {}), ("agent_set", {"max_running": 1}), ("agent_remove", {}), ("token_new", {}),
                         ("token_list", {}), ("history", {}), ("check", {"argv": ["true"]})):
            for name in NAMES:
                if name == "" and op in ("token_new", "token_list", "history", "check"):
                    continue
                with self.subTest(op=op, name=name[:30]):
                    with self.assertRaises(KeeperError) as caught:
                        self.client.call(op, agent=name, **args)
                    self.assertIn(caught.exception.code, ("invalid_input", "too_large"))
        self.ended(self.spawn("true")["id"])
        for name in NAMES:
            with self.subTest(op="list", name=name[:30]):
                answer = self.client.answer("list", {"agent": name, "include_finished": True})
                if "error" in answer:
                    self.assertIn(answer["error"]["code"], ("invalid_input", "too_large"))
                else:
                    self.assertEqual(answer["result"]["processes"], [])
        self.assertEqual(self.agents(), ["main"])
        self.ended(self.spawn("true")["id"])

    def test_bad_principals(self):
        """A principal's name is no place for them either."""
        for name in ("", "a\n", "a\0b", "\x1b[0m", "x" * 100000, 7, []):
            with self.subTest(name=str(name)[:20]), self.assertRaises(KeeperError) as caught:
                self.client.call("agent_add", agent="main", principal=name)
            self.assertIn(caught.exception.code, ("invalid_input", "too_large", "exists"))

    def test_depth(self):
        """Eight names are the most; the ninth is refused, and so is a path that is far deeper."""
        path = "main"
        for number in range(2, 9):
            path += f"/n{number}"
            self.client.call("agent_add", agent=path)
        for deeper in (f"{path}/n9", path + "/x" * 292):
            with self.subTest(names=deeper.count("/") + 1), self.refused("invalid_input", "agent"):
                self.client.call("agent_add", agent=deeper)
        self.assertEqual(len(self.agents()), 8)

    def test_labels_lose_control_characters(self):
        """Labels of tokens and sessions are text for people: control characters go, the rest stays."""
        token = self.client.call("token_new", agent="main", label="a\n\x1b[31mb")
        label = next(row["label"] for row in self.client.call("token_list")["tokens"] if row["id"] == token["id"])
        self.assertEqual([c for c in label if ord(c) < 32], [])
        session = self.client.call("session_new", label="x\r\ny")["session"]
        self.assertEqual([c for c in session["label"] if ord(c) < 32], [])
        session = self.client.call("session_new", label="a\x7fb\x80c\x9fd\xa0e\xe9f")["session"]
        self.assertEqual(session["label"], "abcd\xa0e\xe9f")


class TokensTest(RecordsCase):
    def bad_login(self, token):
        """A connection that tried, which has no agent then whatever the reason; and the refusal."""
        client = self.connect()
        with self.assertRaises(KeeperError) as caught:
            client.call("login", token=token)
        for op, args in (("spawn", {"argv": ["true"]}), ("list", {}), ("info", {})):
            with self.refused("permission_denied"):
                client.call(op, **args)
        return client, caught.exception

    def test_wrong_tokens(self):
        """Whatever is no token of this keeper is refused in the same words, and the connection has no agent then."""
        good = self.token("main")
        head, secret = good.rsplit("_", 1)
        flipped = head + "_" + secret[:-1] + ("0" if secret[-1] != "0" else "1")
        wrong = ["x", "coop_", "coop_1_", "coop_999_" + secret, good[:-1], good + "0", flipped, good.upper(), " " + good, good + "\n",
                 good + "\0", good + "\0x", "\0", "coop_-1_" + secret, "coop_18446744073709551617_" + secret, "coop_0x1_" + secret]
        messages = set()
        for token in wrong:
            with self.subTest(token=token[:24]):
                client, error = self.bad_login(token)
                self.assertIn(error.code, ("permission_denied", "invalid_input") if "\0" in token else ("permission_denied",))
                self.assertNotIn(secret, error.message)
                if error.code == "permission_denied":
                    messages.add((error.message, str(error.details)))
                client.call("describe")
        self.assertEqual(len(messages), 1, messages)
        self.login(good)
        self.assertNotIn(secret, self.place.log_tail())

    def test_wrong_types(self):
        """A token is a text."""
        for token in (None, 7, [], {}, True, ""):
            with self.subTest(token=token):
                _, error = self.bad_login(token)
                self.assertIn(error.code, ("invalid_input", "permission_denied"))

    def test_huge_tokens(self):
        """7 MiB in a frame is refused; 10 MB is no frame, and ends that connection alone; memory is given back."""
        self.bad_login("x" * (7 << 20))
        client = self.connect()
        payload = b'{"id": 1, "op": "login", "args": {"token": "' + b"x" * 10_000_000 + b'"}}'
        try:
            client.send_raw(HEADER.pack(len(payload), JSON, 0, 0) + payload)
        except (Closed, OSError):
            pass  # it need not read what it has refused
        try:
            reason = client.until_closed()
        except OSError:
            reason = None
        if reason is not None:
            self.assertIn(reason["code"], ("invalid_input", "too_large"))
        self.assertEqual(self.client.call("info")["pid"], self.keeper.pid)
        self.assertLess(self.place.log.stat().st_size, 100_000, "the log does not repeat it")

    def test_many_wrong_logins(self):
        """Two hundred connections that guess cost nothing that lasts."""
        before = procs.fd_count(self.keeper.pid)
        for number in range(200):
            client, error = self.bad_login(f"coop_{number}_{os.urandom(16).hex()}")
            self.assertEqual(error.code, "permission_denied")
            client.close()
            self.keeper.clients.remove(client)
        # Launchers that were still starting may have handed over their own meanwhile, and made sandboxes ahead.
        procs.wait_until(lambda: procs.fd_count(self.keeper.pid) <= before + 50, "all descriptors are back")
