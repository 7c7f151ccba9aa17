"""Agents and tokens: who a connection acts as, what an agent may be, and what ends with it (B-077, B-079)."""

import re

from lib import procs
from lib.agents import OTHER, OWN, AgentCase
from lib.client import Closed, KeeperError

TOKEN = re.compile(r"^coop_[0-9]+_[A-Za-z0-9_-]{20,}$")
HIDDEN_INFO = "socket state_dir launcher connections subscribers memory fds wakeups records audit configuration".split()


class IdentityTest(AgentCase):
    def test_b077_the_agent_comes_from_authentication(self):
        """The user's socket is main and the operator; a token makes another; no argument and no variable does."""
        self.assertEqual(self.client.call("info")["you"], {"principal": OWN, "agent": "main", "operator": True})
        self.client.call("agent_add", agent="main/tester")
        token = self.keeper.token("tester", label="for a test")
        self.assertRegex(token["token"], TOKEN)
        self.assertEqual((token["agent"], token["expires_at"]), ("main/tester", None))
        tester = self.connect()
        answer = tester.call("login", token=token["token"])
        self.assertEqual(answer, {"principal": OWN, "agent": "main/tester", "operator": False})
        self.assertEqual(tester.call("info")["you"], answer)
        for name in ("agent", "owner", "principal", "agent_path", "token"):
            for client in (self.client, tester):
                self.assertEqual(self.assert_refused(client, "invalid_input", "spawn", argv=["true"], **{name: "main"}), {"field": name})
        env = {"COOP_AGENT": "main", "COOP_TOKEN": token["token"], "COOP_PRINCIPAL": "root"}
        record = self.start(tester, "exit 0", env=env)
        self.assertEqual(record["owner"], {"principal": OWN, "agent": "main/tester"})
        self.assertEqual(self.start(self.client, "exit 0", env=env)["owner"]["agent"], "main")

    def test_b077_labels_and_paths(self):
        """A list says `self` or the owner's label; labels repeat, paths do not."""
        self.keeper.agent("main/a"), self.keeper.agent("main/b")
        twins = [self.keeper.agent("main/a/x"), self.keeper.agent("main/b/x")]
        own = self.start(self.client)["id"]
        first, second = (self.start(twin)["id"] for twin in twins)
        shown = {record["id"]: (record["agent"], record["agent_path"]) for record in self.client.call("list")["processes"]}
        self.assertEqual(shown, {own: ("self", "main"), first: ("x", "main/a/x"), second: ("x", "main/b/x")})
        self.assertEqual(self.ids(self.client, agent="self"), [own])
        self.assertEqual(self.ids(self.client, agent="a/x"), [first])
        self.assertEqual(self.ids(self.client, agent="main/b/x"), [second])
        self.assertEqual(set(self.ids(self.client, agent="x")) - {first, second}, set())
        record = twins[0].call("status", id=first)["process"]
        self.assertEqual((record["agent"], record["agent_path"]), ("self", "main/a/x"))
        self.assertEqual(record["owner"], {"principal": OWN, "agent": "main/a/x"})

    def test_b077_a_connection_logs_in_once_and_first(self):
        """Before it has started anything, and never twice; the refusal leaves it who it was."""
        self.client.call("agent_add", agent="main/tester")
        token = self.keeper.token("tester")["token"]
        tester = self.connect().login(token)
        self.assert_refused(tester, "invalid_input", "login", token=token)
        self.assertEqual(tester.call("info")["you"]["agent"], "main/tester")
        late = self.connect()
        self.start(late)
        self.assert_refused(late, "invalid_input", "login", token=token)
        self.assertEqual(late.call("info")["you"]["agent"], "main")
        looked = self.connect()
        looked.call("list")
        self.assertEqual(looked.login(token).call("info")["you"]["agent"], "main/tester")

    def test_b077_a_wrong_token_gives_no_agent(self):
        """Unknown, changed, revoked, malformed, huge: one refusal, and afterwards only login and describe."""
        self.client.call("agent_add", agent="main/tester")
        good, gone = self.keeper.token("tester"), self.keeper.token("tester")
        self.assertTrue(self.client.call("token_revoke", id=gone["id"])["revoked"])
        self.assertFalse(self.client.call("token_revoke", id=gone["id"])["revoked"])
        text = good["token"]
        last = "A" if text[-1] != "A" else "B"
        wrong = {"revoked": gone["token"], "changed": text[:-1] + last, "cut": text[:-1], "longer": text + "A", "spaced": text + " ",
                 "other number": text.replace(f"_{good['id']}_", "_999999_"), "another's number": text.replace(
                     f"_{good['id']}_", f"_{gone['id']}_"), "empty": "", "word": "coop", "no secret": f"coop_{good['id']}_",
                 "controls": "coop_1_\x01\n\x7f", "upper": text.upper(), "not ASCII": "coop_1_ä"}
        client = self.connect()
        self.assert_same({what: client.answer("login", {"token": token}) for what, token in wrong.items()})
        self.assert_refused(client, "permission_denied", "login", token=wrong["changed"])
        for op, args in (("info", {}), ("list", {}), ("spawn", {"argv": ["true"]}), ("shutdown", {}), ("agent_list", {}), ("gc", {}),
                         ("spawn", {"argv": ["true"], "lease": "persistent"}), ("status", {"id": "psh-1-1"}), ("list_shells", {})):
            self.assert_refused(client, "permission_denied", op, **args)
        self.assertTrue(client.call("describe")["operations"])
        self.assertEqual(client.login(text).call("info")["you"]["agent"], "main/tester")

    def test_b077_tokens_of_all_numbers(self):
        """The tenth token is as good as the first, whatever digits its number has; with another number it is none."""
        self.client.call("agent_add", agent="main/tester")
        tokens = [self.keeper.token("tester")["token"] for _ in range(21)]
        for token in tokens:
            self.assertEqual(self.connect().call("login", token=token)["agent"], "main/tester")
        name, number, secret = tokens[-1].split("_", 2)
        for wrong in ("0", f"0{number}", f"{number}0", "", f" {number}", f"+{number}", "99999999999999999999"):
            with self.subTest(wrong=wrong):
                self.assert_refused(self.connect(), "permission_denied", "login", token=f"{name}_{wrong}_{secret}")

    def test_a_token_of_ten_megabytes(self):
        """More than a frame may hold, which is little for somebody whose login failed, ends that connection; as much as one may hold is
        refused. Nothing else happens."""
        client = self.connect()
        for size in (1000, 60_000):
            self.assertIn(self.refusal(client, "login", token="coop_1_" + "x" * size).code, ("permission_denied", "too_large"))
            self.assert_refused(client, "permission_denied", "info")
        for large, size in ((client, 7 << 20), (self.connect(), 10_000_000)):
            try:
                large.submit("login", {"token": "coop_1_" + "x" * size})
            except Closed:
                pass
            large.until_closed()
        self.assertEqual(self.client.call("info")["you"]["agent"], "main")

    def test_token_is_shown_once_and_kept_nowhere(self):
        """Lists name it by number; neither state folder nor log holds the secret."""
        self.client.call("agent_add", agent="main/tester")
        token = self.keeper.token("main/tester", label="one\ntwo", expires_in_ms=3_600_000)
        tester = self.connect().login(token["token"])
        listed = self.client.call("token_list", agent="tester")["tokens"]
        self.assertEqual([(item["id"], item["agent"], item["label"]) for item in listed], [(token["id"], "main/tester", "onetwo")])
        self.assertEqual((set(listed[0]), listed[0]["expires_at"]),
                         ({"id", "agent", "label", "created_at", "expires_at"}, token["expires_at"]))
        self.assertEqual(tester.call("token_list")["tokens"], listed)
        self.assertEqual(self.client.call("agent_show", agent="tester")["agent"]["tokens"], 1)
        self.finish(tester)
        self.client.call("shutdown", grace_ms=0)
        self.expect_end(self.keeper, [0])
        secret = token["token"].split("_", 2)[2].encode()
        for path in [self.keeper.place.log, *self.keeper.place.state.rglob("*")]:
            if path.is_file():
                self.assertNotIn(secret, path.read_bytes(), path)

    def test_token_ends_with_its_time(self):
        """An expired token ends its connections and is refused like an unknown one; what was started lives on."""
        self.client.call("agent_add", agent="main/tester")
        token = self.keeper.token("tester", expires_in_ms=1500)["token"]
        client = self.connect().login(token)
        process = self.start(client)["id"]
        client.until_closed()
        unknown = self.connect().answer("login", {"token": "coop_999_x"})
        self.assertEqual(self.connect().answer("login", {"token": token}), unknown)
        self.assert_alive(self.client, process)

    def test_expired_tokens_make_room(self):
        """They are listed no more, count for nothing, and are not there after a restart either."""
        keeper = self.start_keeper({"max_tokens": 2})
        client = keeper.clients[0]
        for _ in range(2):
            client.call("token_new", expires_in_ms=1)
        procs.wait_until(lambda: client.call("token_list")["tokens"] == [], "they expire")
        kept = [client.call("token_new")["id"] for _ in range(2)]
        self.assertEqual([token["id"] for token in client.call("token_list")["tokens"]], kept)
        self.assertEqual(self.refusal(client, "token_new").code, "quota")

    def test_some_room_is_the_operators(self):
        """An agent cannot use up what the operator needs to add agents and tokens."""
        keeper = self.start_keeper({"max_agents": 8, "max_tokens": 8})
        agent = keeper.agent("main/a")
        for number in range(20):
            for op, args in (("token_new", {}), ("agent_add", {"agent": f"x{number}"})):
                agent.answer(op, args)
        self.assertEqual(self.refusal(agent, "token_new").code, "quota")
        self.assertEqual(self.refusal(agent, "agent_add", agent="more").code, "quota")
        keeper.clients[0].call("token_new")
        keeper.clients[0].call("agent_add", agent="b")

    def test_revoking_ends_its_connections_only(self):
        """Those that logged in with that token end, with what was ephemeral on them; others of the same agent stay."""
        self.client.call("agent_add", agent="main/tester")
        token = self.keeper.token("tester")
        first, other = self.connect().login(token["token"]), self.keeper.login("main/tester")
        waiting = first.submit("wait", {"id": self.start(first)["id"]})
        kept, short = self.start(first)["id"], self.start(first, lease="ephemeral")["id"]
        self.assertTrue(other.call("token_revoke", id=token["id"])["revoked"])
        first.until_closed()
        self.assertNotIn("result", [*first.inbox[waiting], {}][0])
        self.assertEqual(other.call("wait", id=short)["process"]["end_cause"], "session_end")
        self.assert_alive(other, kept)

    def test_agents_make_tokens_for_themselves_and_below(self):
        """Not for those above or beside; a token of one's own agent gives no more than the agent."""
        who = self.family()
        self.assertEqual(self.connect().login(who["a"].call("token_new")["token"]).call("info")["you"]["agent"], "main/a")
        below = self.connect().login(who["a"].call("token_new", agent="x")["token"])
        self.assertEqual(below.call("info")["you"], {"principal": OWN, "agent": "main/a/x", "operator": False})
        hers = self.connect().login(who["alice"].call("token_new", agent="main/a")["token"])
        self.assertEqual(hers.call("info")["you"], {"principal": OTHER, "agent": "main/a", "operator": False})
        numbers = {item["id"] for item in self.client.call("token_list")["tokens"]}
        self.assertTrue({item["id"] for item in who["a"].call("token_list")["tokens"]} < numbers)
        self.assertEqual(len(self.client.call("token_list", principal=OTHER)["tokens"]), 3)

    def test_operations_of_the_operator(self):
        """Others may not shut down, reload or read the audit, and see nothing of the host in info."""
        who = self.family()
        for client in (who["a"], who["alice"]):
            for op in ("shutdown", "reload", "audit_tail", "audit_verify"):
                self.assert_refused(client, "permission_denied", op)
            info = client.call("info")
            self.assertEqual({name: info[name] for name in HIDDEN_INFO}, dict.fromkeys(HIDDEN_INFO))
            self.assertEqual(info["processes"]["strays"], 0)
        info = self.client.call("info")
        self.assertEqual([name for name in HIDDEN_INFO if info[name] is None and name != "configuration"], [])


class TreeTest(AgentCase):
    def test_names_paths_and_parents(self):
        """Names are plain, paths at most 8 deep, parents come first, and nothing is there twice."""
        for bad in ("", "/", "main/", "/a", "main//a", "main/a b", "main/a\n", "main/ä", "main/.a", "main/-a", "main/_a", "main/" + "a" * 65,
                    "main/..", "main/a:b", "main/a*", "none/a", "main/none/a", "/".join(["main", *"abcdefgh"])):
            with self.subTest(bad=bad):
                self.assertEqual(self.assert_refused(self.client, "invalid_input", "agent_add", agent=bad), {"field": "agent"})
        path = "main"
        for name in ("a" * 64, "B.c_d-9", "0", "d", "e", "f", "g"):
            path += "/" + name
            made = self.client.call("agent_add", agent=path)["agent"]
            self.assertEqual((made["path"], made["name"], made["principal"]), (path, name, OWN))
        self.assertEqual(self.assert_refused(self.client, "invalid_input", "agent_add", agent=path + "/h"), {"field": "agent"})
        for there in ("main", path):
            self.assertEqual(self.assert_refused(self.client, "exists", "agent_add", agent=there)["field"], "agent")
        paths = self.agents(self.client)
        self.assertEqual((len(paths), paths[0], paths[-1]), (8, "main", path))
        self.assertEqual(self.agents(self.keeper.login("main/" + "a" * 64)), paths[1:])

    def test_settings_only_narrow(self):
        """A child can have as much as its parent and no more; what the parent loses the child loses."""
        place = self.keeper.place.dir
        for name in ("in", "in/deep", "out"):
            (place / name).mkdir()
        wide = {"max_running": 10, "max_buffer_bytes": 1 << 20, "restricted": True, "workspace": [str(place / "in")]}
        made = self.client.call("agent_add", agent="main/a", **wide)["agent"]
        self.assertEqual({name: made["settings"][name] for name in wide}, wide)
        self.assertEqual({name: made["effective"][name] for name in wide}, wide)
        self.assertIsInstance(made["id"], int)
        too_wide = {"max_running": 11, "max_buffer_bytes": (1 << 20) + 1, "persistent": True, "restricted": False,
                    "workspace": [str(place / "in"), str(place / "out")]}
        who = self.keeper.login("main/a")
        for client in (self.client, who):
            for name, value in too_wide.items():
                error = self.assert_refused(client, "invalid_input", "agent_add", agent="main/a/x", **{name: value})
                self.assertTrue(error["field"].startswith(name), error)
        narrow = {"max_running": 3, "max_buffer_bytes": 4096, "workspace": [str(place / "in/deep")]}
        child = who.call("agent_add", agent="x", **narrow)["agent"]
        self.assertEqual({name: child["effective"][name] for name in narrow}, narrow)
        self.assertTrue(child["effective"]["restricted"])
        for name, value in too_wide.items():
            self.assert_refused(who, "invalid_input", "agent_set", agent="x", **{name: value})
        self.client.call("agent_set", agent="main/a", max_running=2)
        self.assertEqual(who.call("agent_show", agent="x")["agent"]["effective"]["max_running"], 2)
        reset = who.call("agent_set", agent="x", max_running=None, workspace=None)["agent"]
        self.assertEqual((reset["settings"]["max_running"], reset["settings"]["workspace"]), (None, None))
        self.assertEqual((reset["effective"]["max_running"], reset["effective"]["workspace"]), (2, wide["workspace"]))
        self.assertEqual(reset["settings"]["max_buffer_bytes"], 4096, "what was not given stays")

    def test_nobody_changes_or_removes_itself(self):
        """Settings come from above: an agent cannot set or remove itself, nor anything above or beside it."""
        who = self.family()
        for client, path in ((who["a"], "main/a"), (who["alice"], "main"), (self.client, "main")):
            for op, args in (("agent_set", {"max_running": 100}), ("agent_set", {"persistent": True}), ("agent_remove", {})):
                error = self.refusal(client, op, agent=path, **args)
                self.assertIn(error.code, ("invalid_input", "permission_denied"), error)
        changed = self.client.call("agent_set", agent="main", principal=OTHER, max_running=7, persistent=True)["agent"]
        self.assertEqual((changed["principal"], changed["effective"]["max_running"], changed["effective"]["persistent"]), (OTHER, 7, True))
        self.assertEqual(self.agents(self.client), ["main", "main/a", "main/a/x", "main/b"])
        self.assertEqual(self.agents(self.client, principal=OTHER), ["main", "main/a"])
        self.assertEqual(self.agents(who["alice"]), ["main", "main/a"])

    def test_bad_settings_are_refused(self):
        """With their names; nothing is made or changed."""
        bad = {"max_running": (-1, "x", 1.5), "max_buffer_bytes": (-1, []), "max_finished": (0, -1), "persistent": (1, "yes"),
               "restricted": ("no",), "workspace": ("/tmp", ["tmp"], [7], ["/nonexistent/dir"], ["/etc/passwd"]), "policy": ("x", {"x": 1})}
        for name, values in bad.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    field = self.assert_refused(self.client, "invalid_input", "agent_add", agent="main/a", **{name: value})["field"]
                    self.assertTrue(field.startswith(name), field)
        self.assertEqual(self.agents(self.client), ["main"])

    def test_agents_and_tokens_are_bounded(self):
        """As many as the operator said, then a refusal with the bound; room again after one has gone."""
        keeper = self.start_keeper({"max_agents": 4, "max_tokens": 2})
        client = keeper.clients[0]
        made = 0
        error = None
        while error is None and made < 10:
            try:
                client.call("agent_add", agent=f"main/n{made}")
                made += 1
            except KeeperError as refusal:
                error = refusal
        self.assertIn(error.code, ("quota", "registry_full"))
        self.assertEqual(error.details["limit"], 4)
        self.assertIn(made, (3, 4))
        client.call("agent_remove", agent="n0")
        client.call("agent_add", agent="main/again")
        tokens = [client.call("token_new")["id"] for _ in range(2)]
        self.assertIn(self.refusal(client, "token_new").code, ("quota", "registry_full"))
        client.call("token_revoke", id=tokens[0])
        client.call("token_new")


class RemovalTest(AgentCase):
    slots = 0

    TREE = "setsid sh -c 'sleep 300 & sleep 300' & (setsid sh -c '(sleep 300 &) ; sleep 300' &) ; echo ready; exec sleep 300"

    def sleepers(self):
        return {pid for pid in procs.descendants(self.keeper.process.pid) if procs.cmdline(pid) == "sleep 300"}

    def trees(self, names, who):
        """Starts a tree with double forks and sessions of its own for each: (its pids, its id) by name."""
        found = {}
        for name in names:
            before = self.sleepers()
            process = self.start(who[name], self.TREE)["id"]
            # The leader and two of each of the others, which have lost their parents.
            pids = procs.wait_until(lambda seen=before: len(more := self.sleepers() - seen) == 5 and more, "the tree grows")
            self.line(who[name], process)
            found[name] = (pids, process)
        return found

    def test_b079_an_agents_end_ends_its_trees(self):
        """Its own and its descendants' trees, double-forked and in sessions of their own, and no others."""
        who = {"main": self.client, **self.family()}
        trees = self.trees(who, who)
        session = who["a"].call("session_new")["session"]["id"]
        ended = self.finish(who["a"], "echo text; exit 6", session=session)["id"]
        answer = self.client.call("agent_remove", agent="main/a")
        self.assertEqual(answer, {"agents": 2, "ended": 2, "survivors": 0})
        for name in ("a", "x"):
            self.assertEqual([procs.cmdline(pid) for pid in trees[name][0] if procs.alive(pid)], [])
            record = self.status(trees[name][1])
            self.assertEqual((record["end_cause"], record["exit"]["signal"], record["descendants"]), ("owner_retired", 9, 0))
            self.assertEqual((record["end_evidence"]["agent"], record["end_evidence"]["request"]), ("main", "agent_remove"))
            self.assertIn("at", record["end_evidence"])
            self.assertEqual(self.output(trees[name][1]), b"ready\n")
            self.assertEqual(who[name].until_closed()["message"], "the agent has been removed")
        self.assertEqual((self.status(ended)["exit"]["code"], self.output(ended)), (6, b"text\n"))
        for name in ("main", "b", "alice", "alice/a"):
            self.assert_alive(who[name], trees[name][1])
            self.assertEqual([pid for pid in trees[name][0] if not procs.alive(pid)], [], name)
        self.assertEqual(self.agents(self.client), ["main", "main/b"])
        self.assertEqual(self.client.call("session_list")["sessions"], [])

    def test_b079_a_principals_end(self):
        """The operator removes another principal's main: all of it ends, nobody else's; the name is free again."""
        who = {"main": self.client, **self.family()}
        trees = self.trees(("a", "alice", "alice/a"), who)
        answer = self.client.call("agent_remove", agent="main", principal=OTHER)
        self.assertEqual(answer, {"agents": 2, "ended": 2, "survivors": 0})
        self.assert_gone(trees["alice"][0] | trees["alice/a"][0])
        for name in ("alice", "alice/a"):
            who[name].until_closed()
        self.assert_alive(who["a"], trees["a"][1])
        again = self.keeper.agent("main", OTHER)
        self.assertEqual(self.ids(again, include_finished=True), [])
        self.assert_refused(again, "no_such_process", "status", id=trees["alice"][1])

    def test_b079_a_new_agent_of_the_same_name_is_another(self):
        """It has none of the old one's records and tokens; those above still have the records."""
        self.client.call("agent_add", agent="main/a")
        token = self.keeper.token("main/a")["token"]
        old = self.connect().login(token)
        process = self.start(old, tag="job")["id"]
        self.client.call("agent_remove", agent="a")
        new = self.keeper.agent("main/a")
        self.assertEqual(self.ids(new, include_finished=True), [])
        self.assert_refused(new, "no_such_process", "status", id=process)
        self.assert_refused(new, "no_such_process", "status", id="job")
        self.assert_refused(self.connect(), "permission_denied", "login", token=token)
        self.assertEqual(self.status("job")["id"], process)
        self.assertEqual(self.ids(self.client, include_finished=True), [process])
        self.assertEqual(self.start(new, tag="job")["agent_path"], "main/a")

    def test_b079_grace(self):
        """With a grace its processes are asked first; they end as owner_retired all the same."""
        who = self.keeper.agent("main/a")
        polite = self.start(who, "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done")["id"]
        stubborn = self.start(who, "trap '' TERM; echo ready; while :; do sleep 0.05; done")["id"]
        for process in (polite, stubborn):
            self.line(who, process)
        self.assertEqual(self.client.call("agent_remove", agent="a", grace_ms=600)["ended"], 2)
        self.assertEqual((self.status(polite)["exit"]["code"], self.status(polite)["end_cause"]), (9, "owner_retired"))
        self.assertEqual((self.status(stubborn)["exit"]["signal"], self.status(stubborn)["end_cause"]), (9, "owner_retired"))

    def test_b079_while_it_starts_more(self):
        """Spawns of several connections are under way when the agent is removed: none is left, each was refused or ended."""
        clients = [self.keeper.agent("main/a"), *(self.keeper.login("main/a") for _ in range(3))]
        mine = self.start(self.client)["pid"]
        for client in clients:
            client.submit_all([("spawn", {"argv": ["sh", "-c", "setsid sleep 300 & sleep 300"]})] * 15)
        answer = self.client.call("agent_remove", agent="a")
        self.assertEqual((answer["agents"], answer["survivors"]), (1, 0))
        for client in clients:
            client.until_closed()
        self.assertEqual(self.ids(self.client, agent="main/a"), [])
        for record in self.client.call("list", include_finished=True)["processes"]:
            self.assertIn(record["end_cause"], (None, "owner_retired"))
        allowed = {self.keeper.pid, *self.launchers(), mine, procs.stat(mine)[1]}
        procs.wait_until(lambda: set(procs.descendants(self.keeper.process.pid)) <= allowed, "nothing of it is left")
        self.assertEqual(len(self.ids(self.client)), 1)
