"""What the tokens of an agent have of the gateway is counted together, however many of them it makes: others and the owner go on."""

import json
import resource
from unittest import mock

from lib import procs
from lib.keeper import plain_limits
from lib.place import sanitized
from lib.raw_http_case import MIB, SANITIZER_ROOM, RawCase

FILES = 400  # that the gateway may have open


def few_files():
    """In the child that becomes `coop serve`."""
    plain_limits()
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


def bearer(token):
    return f"Authorization: Bearer {token}"


class SharesTest(RawCase):
    own = True

    def setUp(self):
        with mock.patch("lib.gateway.plain_limits", few_files):
            super().setUp()

    def ops(self, token, name, **args):
        answer = self.ask("POST", f"/v1/ops/{name}", bearer(token), body=json.dumps(args).encode())
        self.assertEqual(answer.status, 200, answer.body)
        return json.loads(answer.body)

    def tokens(self, path):
        """Of an agent, which makes some more for itself and for one below."""
        first = self.gateway.agent_token(path)
        self.ops(first, "agent_add", agent=f"{path}/below")
        more = [self.ops(first, "token_new", agent=agent)["token"] for agent in (path, path, f"{path}/below", f"{path}/below")]
        return [first, *more]

    def take_all(self, token):
        """Connections that stay, until one is refused: (how many, the refusal)."""
        for count in range(2 * FILES):
            connection = self.raw()
            connection.send(self.head("GET", "/runtime/v1/process", bearer(token)))
            answer = connection.answer()
            if answer.status != 200:
                connection.close()
                return count, answer.status
        return count, None

    def test_connections_of_an_agent_and_all_below_it(self):
        tokens, other = self.tokens("main/a"), self.gateway.agent_token("main/b")
        taken = [self.take_all(token) for token in tokens]
        self.assertEqual({status for _, status in taken}, {429}, taken)
        self.assertLessEqual(sum(count for count, _ in taken), FILES * 0.9 * 3 / 4)
        # Another one has a share of its own, and the owner what they have left.
        self.assertGreater(self.take_all(other)[0], 10)
        for _ in range(5):
            self.assert_served()
        self.assertGreater(self.take_all(self.gateway.token)[0], 10)
        # All is taken now. What the clients close comes back when the gateway has seen it.
        self.close_raw()
        procs.wait_until(lambda: self.ask("GET", "/healthz").status == 200, "the gateway has seen that they are gone")

    def test_unfinished_bodies_of_an_agent_and_all_below_it(self):
        tokens, before = self.tokens("main/a"), self.rss()
        body = b'{"data_base64":"' + b"A" * (30 * MIB)
        held = [self.raw() for _ in tokens]
        for connection, token in zip(held, tokens, strict=True):
            connection.send(self.head("POST", "/v1/ops/list", bearer(token), f"Content-Length: {35 * MIB}") + body)
        answer = held[-1].answer()
        self.assertEqual((answer.status, answer.error), (429, "quota_exceeded"))
        self.assert_bounded(before, 300 * MIB)
        self.assert_served()

    def test_unread_answers_of_an_agent_and_all_below_it(self):
        """Nobody reads what was asked for: the gateway keeps so much of it and no more, and others get theirs."""
        tokens, other = self.tokens("main/a"), self.gateway.agent_token("main/b")
        whole = 4 * MIB
        process = self.ops(tokens[0], "spawn", argv=["head", "-c", str(whole), "/dev/zero"], limits={}, ring_bytes=2 * whole)["process"]["id"]
        self.ops(tokens[0], "wait", id=process)
        before, asked = self.rss("VmHWM"), []
        body = json.dumps({"id": process, "max": whole}).encode()
        for number in range(120):
            connection = self.raw(receive_buffer=4096)
            connection.send(self.head("POST", "/v1/ops/read", bearer(tokens[number % 3]), f"Content-Length: {len(body)}") + body)
            asked.append(connection)
        # Small answers come all the same.
        self.assertEqual([record["id"] for record in self.ops(tokens[1], "list", include_finished=True)["processes"]], [process])
        other_one = self.ops(tokens[2], "spawn", argv=["sleep", "300"])["process"]["id"]
        self.assertEqual(self.ops(tokens[2], "kill", id=other_one)["survivors"], 0)
        answers = [connection.answer() for connection in asked]
        self.assertLess(self.rss("VmHWM") - before, 400 * MIB + (SANITIZER_ROOM if sanitized() else 0))
        good = [answer for answer in answers if answer.status == 200]
        self.assertTrue(all(len(json.loads(answer.body)["data"]["stdout"]) == (whole + 2) // 3 * 4 for answer in good))
        self.assertGreater(len(good), 5)
        refused = {(answer.status, answer.error) for answer in answers if answer.status != 200}
        self.assertEqual(refused, {(429, "quota_exceeded")})
        # Meanwhile, and afterwards.
        self.assertEqual(self.ops(other, "list")["processes"], [])
        self.assertEqual(self.ops(tokens[0], "read", id=process, max=whole)["bytes"], whole)
