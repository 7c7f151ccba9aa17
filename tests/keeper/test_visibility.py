"""Who sees and who touches what (B-075, B-076, B-078): several agents of two principals, each on a connection of its own."""

from lib.agents import OTHER, OWN, AgentCase
from lib.procs import alive, wait_until

KIB, MIB = 1 << 10, 1 << 20

# Every operation that takes the id of a process, with arguments that are right and some that are wrong: what is looked at
# first must not tell whether a process is there.
WITH_ID = (
    ("status", {}),
    ("wait", {"timeout_ms": 0}),
    ("wait", {}),
    ("wait", {"output_bytes": 100}),
    ("read", {}),
    ("read", {"stream": "stderr", "cursor": 1 << 40}),
    ("read", {"stream": "pty"}),
    ("read", {"stream": "combined", "tail": 5}),
    ("read", {"drain": True}),
    ("follow", {}),
    ("follow", {"mode": "events", "since": 3}),
    ("follow", {"streams": ["pty"]}),
    ("follow", {"drain": True}),
    ("follow", {"mode": "events", "drain": True}),
    ("close_stdin", {}),
    ("resize", {"cols": 80, "rows": 24}),
    ("resize", {"cols": 0, "rows": 24}),
    ("signal", {"signal": "TERM"}),
    ("signal", {"signal": 0}),
    ("signal", {"signal": "SIGFOO"}),
    ("signal", {"signal": "KILL", "target": "tree"}),
    ("kill", {}),
    ("stop", {"grace_ms": 0}),
    ("stop", {"grace_ms": 30001}),
    ("keep", {}),
    ("keep", {"overflow": "backpressure"}),
    ("release", {}),
    ("release", {"if_running": "refuse"}),
)

# What is malformed, or was never given out. Long ones too: a check of the length must not come in between.
NEVER = ("psh-1-999999", "psh-7fffffff-1", "nonsense", "psh-", "psh", "", "PSH-1-1", "psh-g-1", "psh-1-1 ", "-", "%s", "ä", "1",
         "psh--1", "psh-1--1", "psh-0001-1", "psh-1-18446744073709551617", "self", "main", "*", "psh-" + "1" * 300)

# What changes something; all of it is right, if it were one's own.
TOUCH = (
    ("read", {"drain": True}), ("follow", {"drain": True}), ("write_stdin", {}), ("close_stdin", {}), ("resize", {"cols": 80, "rows": 24}),
    ("signal", {"signal": "TERM"}), ("signal", {"signal": "KILL", "target": "tree"}), ("kill", {}), ("stop", {"grace_ms": 0}),
    ("keep", {}), ("keep", {"overflow": "backpressure"}), ("release", {}), ("release", {"if_running": "refuse"}),
)


class SameAnswerTest(AgentCase):
    def setUp(self):
        super().setUp()
        self.who = self.family()
        released = self.finish(self.who["a"])["id"]
        self.assertTrue(self.who["a"].call("release", id=released)["released"])
        self.hidden = {
            "the parent's": self.start(self.client, "cat", stdin="pipe", tag="up", alias="one")["id"],
            "a sibling's": self.start(self.who["b"], "cat", stdin="pipe", tag="beside", alias="one")["id"],
            "a sibling's ended one": self.finish(self.who["b"], "echo text; exit 3", tag="over")["id"],
            "a sibling's terminal": self.who["b"].call("spawn", argv=["cat"], kind="pty")["process"]["id"],
            "another principal's": self.start(self.who["alice"], "cat", stdin="pipe", tag="far")["id"],
            "another principal's, same path": self.start(self.who["alice/a"], "cat", stdin="pipe", tag="twin")["id"],
            "released": released,
        }
        self.hidden |= {f"the beginning of {what}": process[:-1] for what, process in self.hidden.items()}
        self.hidden |= {f"tag {tag}": tag for tag in ("up", "beside", "over", "far", "twin", "one")}
        self.unseen = self.hidden | {f"never {word[:20]!r}": word for word in NEVER}

    def ask_all(self, op, args, data=None, name="id"):
        """The answers to agent a, by what it asked for."""
        who = self.who["a"]
        return {what: who.answer(op, {**args, name: process}, data) for what, process in self.unseen.items()}

    def test_b075_every_operation_answers_alike(self):
        """For a foreign, a released, a malformed and a never given id every operation has the same code, words and details."""
        for op, args in WITH_ID:
            with self.subTest(op=op, args=args):
                self.assert_same(self.ask_all(op, args))
        self.assert_alive(self.client, self.hidden["the parent's"])
        self.assert_alive(self.who["b"], self.hidden["a sibling's"], self.hidden["a sibling's terminal"])
        self.assert_alive(self.who["alice"], self.hidden["another principal's"])

    def test_b075_the_answer_is_no_such_process(self):
        """And that answer is no_such_process; that of release is `released: false` (B-116)."""
        for process in self.unseen.values():
            self.assertEqual(self.refusal(self.who["a"], "status", id=process).code, "no_such_process")
            self.assertEqual(self.who["a"].call("release", id=process), {"released": False, "kill": None})

    def test_b075_writing_answers_alike(self):
        """With bytes, too many bytes and none: nobody learns who has an open stdin, and nothing arrives there."""
        for size in (0, 1, 100 * KIB, MIB + 1):
            with self.subTest(size=size):
                self.assert_same(self.ask_all("write_stdin", {}, b"x" * size))
        self.assertEqual(self.output(self.hidden["the parent's"]), b"")
        self.assertEqual(self.output(self.hidden["a sibling's"], client=self.who["b"]), b"")

    def test_b075_status_of_many_leaves_out(self):
        """Of many ids those that are not the caller's to see are absent, as if they had never been."""
        mine = self.start(self.who["a"])["id"]
        answer = self.who["a"].call("status", ids=[*self.unseen.values(), mine])
        self.assertEqual([record["id"] for record in answer["processes"]], [mine])

    def test_b075_lists_go_on_alike(self):
        """`after` of a list is an id like others. A history goes on before a number: whose it is, or was, makes no difference."""
        self.start(self.who["a"])
        answers = self.ask_all("list", {}, name="after")
        self.assert_same(answers)
        self.assertEqual(answers["released"]["error"]["code"], "no_such_process")
        wait_until(lambda: self.client.call("info")["records"]["pending"] == 0, "all ends are in the database")
        for what, process in self.hidden.items():
            if process.count("-") == 2 and process[-1].isdigit():
                never = f"psh-7fffffff-{process.rpartition('-')[2]}"
                self.assert_same({name: self.who["a"].answer("history", {"before": name}) for name in (process, never)})

    def test_b075_filters_match_only_what_is_seen(self):
        """Tags, labels, states, sessions and agents of others give the same empty list as words that nobody uses."""
        who = self.who["a"]
        session = self.who["b"].call("session_new")["session"]["id"]
        self.start(self.who["b"], session=session)
        filters = {"tag": ("up", "over", "far", "no-such"), "label": ("up", "cat", "no-such"), "session": (session, "ses-999", "x"),
                   "agent": ("main", "main/b", "b", "main/none", f"{OTHER}/main", ""), "state": ("exited", "running")}
        for name, values in filters.items():
            with self.subTest(name=name):
                self.assert_same({value: who.answer("list", {name: value, "include_finished": True}) for value in values})
        self.assertEqual(who.call("list", include_finished=True), {"processes": [], "more": False})

    def test_b075_session_ids_answer_alike(self):
        """Another agent's session, one that ended and one that never was: the same refusal to end it or to start in it."""
        who = self.who["a"]
        ended = who.call("session_new")["session"]["id"]
        who.call("session_end", id=ended)
        others = [self.client, *(self.who[name] for name in ("b", "alice", "x"))]
        words = [client.call("session_new")["session"]["id"] for client in others]
        words += [ended, "ses-999999", "ses-", "", "x", "default", "ses-1x", "SES-1"]
        self.assert_same({word: who.answer("session_end", {"id": word}) for word in words})
        self.assertEqual(self.refusal(who, "session_end", id=words[0]).details, {"field": "id"})
        words.remove("default")
        self.assert_same({word: who.answer("spawn", {"argv": ["true"], "session": word}) for word in words})
        self.assertEqual(self.refusal(who, "spawn", argv=["true"], session=words[0]).details, {"field": "session"})

    def test_b075_agent_arguments_answer_alike(self):
        """The caller's parent, a sibling, another principal's agent and one that never was: the same words everywhere."""
        who = self.who["x"]
        paths = ("main", "main/a", "main/b", "main/none", "b", "none", "main/a/none", f"{OTHER}/main", "main/a/x/none")
        malformed = ("", "/", "main/", "main//a", "main/a/x/", "..", "main/a/x/../../b", "x" * 65, "a/" * 40, "ä", "a b", "self/")
        calls = {"agent_show": {}, "agent_set": {"max_running": 1}, "agent_remove": {}, "token_new": {}, "token_list": {},
                 "history": {}, "check": {"argv": ["true"]}}
        for op, args in calls.items():
            with self.subTest(op=op):
                self.assert_same({path: who.answer(op, {**args, "agent": path}) for path in paths})
                self.assert_same({path: who.answer(op, {**args, "agent": path}) for path in malformed})
                if op != "history":  # which also knows agents that are not there any more
                    error = self.refusal(who, op, agent="main/b", **args)
                    self.assertEqual((error.code, error.details), ("invalid_input", {"field": "agent"}))

    def test_b075_other_principals_answer_alike(self):
        """Who is not the operator cannot learn which principals there are; nobody's tokens are anybody else's."""
        token = self.keeper.token("main", OTHER)
        for name in ("x", "alice"):
            who = self.who[name]
            for op, args in {"agent_list": {}, "agent_show": {"agent": "main"}, "agent_remove": {"agent": "main"},
                             "agent_add": {"agent": "main"}, "token_new": {"agent": "main"}, "token_list": {}}.items():
                answers = {principal: who.answer(op, {**args, "principal": principal}) for principal in (OTHER, OWN, "nobody")}
                del answers[OTHER if name == "alice" else OWN]  # the caller's own may be named
                with self.subTest(name=name, op=op):
                    self.assert_same(answers)
                    self.assertNotIn("result", answers["nobody"])
        revoked = [self.who["b"].answer("token_revoke", {"id": number}) for number in (token["id"], 999999, 1 << 52)]
        self.assertEqual(revoked, [{"result": {"revoked": False}}] * 3)
        self.assertEqual(self.connect().login(token["token"]).call("info")["you"]["principal"], OTHER)

    def test_b075_names_are_each_agents_own(self):
        """A tag or alias that others use is free: it addresses one's own only, and is no `exists`."""
        mine = self.start(self.who["a"], tag="up", alias="one")["id"]
        self.assertEqual(self.who["a"].call("status", id="up")["process"]["id"], mine)
        for size in range(len(mine) - 1, 5, -1):
            self.assertEqual(self.who["a"].call("status", id=mine[:size])["process"]["id"], mine)
        self.assertEqual(self.client.call("info")["processes"]["live"], 4)
        self.assertEqual(self.who["a"].call("info")["processes"]["live"], 1)

    def test_b075_calls_of_others_are_not_cancelled(self):
        """A call id of another agent, also of one below, cancels nothing; the answer is that of an unknown one."""
        others = [self.client, *(self.who[name] for name in ("b", "x", "alice"))]
        ids = [self.start(client, call_id="call-7")["id"] for client in others]
        answers = {word: self.who["a"].answer("cancel", {"call_ids": [word]}) for word in ("call-7", "call-8", "")}
        self.assert_same(answers)
        self.assertEqual(answers["call-7"], {"result": {"cancelled": [], "survivors": 0}})
        self.assert_alive(self.client, ids[0], ids[1], ids[2])
        self.assert_alive(self.who["alice"], ids[3])


class DescendantsTest(AgentCase):
    def test_b076_own_everything(self):
        """Each agent has every call on its own processes, the operator's connection and a token's alike."""
        for name, client in {"main": self.client, **self.family()}.items():
            with self.subTest(name=name):
                process = self.start(client, "read line; echo got $line; exec cat", stdin="pipe")["id"]
                self.assertTrue(client.reply("write_stdin", {"id": process}, b"it\n").result["success"])
                self.assertEqual(self.line(client, process), "got it")
                self.assertEqual(client.reply("read", {"id": process, "drain": True}).bytes(), b"got it\n")
                self.assertTrue(client.call("signal", id=process, signal="CONT")["sent"])
                self.assertEqual(client.call("keep", id=process)["process"]["id"], process)
                self.assertTrue(client.call("close_stdin", id=process)["was_open"])
                self.assertEqual(client.call("wait", id=process)["exit_code"], 0)
                self.assertTrue(client.call("kill", id=process)["success"])
                self.assertTrue(client.call("stop", id=self.start(client)["id"], grace_ms=0)["success"])
                self.assertTrue(client.call("release", id=process)["released"])
                self.assertEqual(client.call("gc")["released"], 1)

    def test_b076_descendants_are_looked_at(self):
        """Processes of agents below, at any depth, are listed, told of, waited for, read and followed; no others are."""
        who = self.family()
        who["main"] = self.client
        process = {name: self.start(client, f"echo {name}; read x; exit 5", stdin="pipe")["id"] for name, client in who.items()}
        sees = {"main": "main a x b", "a": "a x", "x": "x", "b": "b", "alice": "alice alice/a", "alice/a": "alice/a"}
        for name, client in who.items():
            seen = sees[name].split()
            with self.subTest(name=name):
                self.assertEqual(sorted(self.ids(client)), sorted(process[other] for other in seen))
                self.assertEqual(client.call("info")["processes"]["live"], len(seen))
                for other in seen:
                    self.assertEqual(self.line(client, process[other]), other)
                    self.assertTrue(client.call("wait", id=process[other], timeout_ms=0)["running"])
                for other in set(who) - set(seen):
                    self.assert_refused(client, "no_such_process", "read", id=process[other])
        request = self.client.submit("wait", {"id": process["x"]})
        follow = who["a"].submit("follow", {"id": process["x"]})
        who["x"].call("close_stdin", id=process["x"])
        self.assertEqual(self.client.finish(request).result["exit_code"], 5)
        self.assertEqual(who["a"].finish(follow).bytes(), b"x\n")

    def test_b076_stats_of_descendants(self):
        """They come with status and list, also of what has ended."""
        child = self.keeper.agent("main/child")
        process = self.start(child)["id"]
        wait_until(lambda: self.status(process)["stats"]["memory_bytes"], "it has been executed and measured")
        child.call("kill", id=process)
        self.assertEqual(self.status(process)["end_evidence"]["agent"], "main/child")
        self.assertEqual(self.ids(self.client, include_finished=True, agent="child"), [process])

    def test_b072_looks_from_above_do_not_keep_it_alive(self):
        """Only its owner's calls restart the idle clock: it ends although an agent above asks for it all the time."""
        process = self.start(self.keeper.agent("main/child"), idle_timeout_ms=700)["id"]
        wait_until(lambda: self.status(process)["exit"], "it ends", interval=0.05)
        self.assertEqual(self.status(process)["end_cause"], "idle")

    def test_b078_parent_does_not_touch_a_childs_process(self):
        """Signals, kills, writes and releases from above, at any depth, are not_owner; the process lives on, untouched."""
        who = self.family()
        for owner, above in (("x", who["a"]), ("x", self.client), ("b", self.client), ("alice/a", who["alice"])):
            live = self.start(who[owner], "echo ready; exec cat", stdin="pipe", tag="job")
            self.line(who[owner], live["id"])
            ended = self.finish(who[owner], "exit 4")["id"]
            for op, args in TOUCH:
                with self.subTest(owner=owner, op=op, args=args):
                    data = b"text" if op == "write_stdin" else None
                    asked = {"live": live["id"], "tag": "job", "ended": ended}
                    answers = {what: above.answer(op, {**args, "id": process}, data) for what, process in asked.items()}
                    self.assert_same(answers)
                    self.assertEqual(answers["live"]["error"]["code"], "not_owner")
            self.assertTrue(alive(live["pid"]))
            self.assertEqual(above.call("gc")["released"], 0)
            self.assertEqual(above.call("status", id=ended)["process"]["exit"]["code"], 4)
            self.assertTrue(who[owner].call("status", id=live["id"])["process"]["stdin_open"])
            self.assertEqual(self.output(live["id"], client=above), b"ready\n")
            who[owner].call("kill", id=live["id"])

    def test_b078_ending_the_child_ends_it(self):
        """What the parent may not kill it can end by ending the agent."""
        process = self.start(self.keeper.agent("main/child"))
        self.assert_refused(self.client, "not_owner", "kill", id=process["id"])
        self.assertEqual(self.client.call("agent_remove", agent="child"), {"agents": 1, "ended": 1, "survivors": 0})
        self.assert_gone([process["pid"]])
        self.assertEqual(self.status(process["id"])["end_cause"], "owner_retired")

    def test_b078_tags_above_and_below(self):
        """A tag that the caller and an agent below use means the caller's own, live or ended; without one what is below."""
        who = self.family()
        own, below = self.start(who["a"], tag="job")["id"], self.start(who["x"], tag="job")["id"]
        for other in ("b", "alice"):
            self.start(who[other], tag="job")
        self.assertEqual(who["a"].call("status", id="job")["process"]["id"], own)
        who["a"].call("kill", id=own)
        self.assertEqual(who["a"].call("status", id="job")["process"]["id"], own)
        who["a"].call("release", id=own)
        self.assertEqual(who["a"].call("status", id="job")["process"]["id"], below)
        self.assertEqual(who["x"].call("status", id="job")["process"]["id"], below)
