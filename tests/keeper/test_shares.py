"""What nobody asks for and everybody has: a bound of processes in a sandbox, shares of memory and processes for agents."""

import os
import re
import signal
from pathlib import Path

from lib.agents import AgentCase
from lib.place import Place
from lib.procs import wait_until

MIB = 1 << 20
EAT = "import sys, time\nx = bytearray(int(sys.argv[1]))\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('full', flush=True)\ntime.sleep(300)"
FORK = """import os, sys, time
made = 0
for _ in range(int(sys.argv[1])):
    try:
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
        made += 1
    except OSError:
        break
print(made, flush=True)
time.sleep(300)"""


class SharesCase(AgentCase):
    sandbox = ""

    def start_keeper(self, settings=None, **options):
        place = options["place"] = options.get("place") or Place()
        if not place.conf.read_text():
            place.conf.write_text(f"[sandbox]\n{self.sandbox}")
        return super().start_keeper(settings, **options)

    def python(self, client, script, *args, **options):
        argv = ["python3", "-c", script, *map(str, args)]
        return client.call("spawn", argv=argv, **options)["process"]

    def shares(self, client):
        """`agent_limits` of a command that the agent's launcher has started: that of main comes a moment after the keeper."""

        def look():
            record = self.finish(client)
            held = record["sandbox"]["agent_limits"]
            return held if not self.has_groups() or all(h and h["state"] == "enforced" for h in held.values()) else None

        return wait_until(look, "the shares are held")

    def has_groups(self):
        cgroup = self.client.call("doctor")["cgroup"]
        return cgroup["memory"]["version"] and cgroup["pids"]["version"]

    def reload(self, text):
        self.keeper.place.conf.write_text(f"[sandbox]\n{text}")
        self.client.call("reload")


class ProcessesTest(SharesCase):
    def test_a_sandbox_has_4096_processes(self):
        """In the record with what holds it, and inside as the kernel tells it."""
        record, out, _ = self.run_sh("ulimit -p 2>/dev/null || bash -c 'ulimit -u'")
        self.assertEqual(record["limits"]["max_pids"], 4096)
        self.assertEqual(record["sandbox"]["protections"]["max_pids"],
                         {"state": "enforced", "mechanism": "rlimit, user namespace", "reason": None})
        self.assertEqual(out.strip(), b"4096")
        self.assertNotIn("max_pids", record["sandbox"]["require"])

    def test_full_has_none(self):
        record = self.client.call("spawn", argv=["true"], sandbox={"profile": "full"})["process"]
        self.assertIsNone(record["limits"]["max_pids"])
        self.assertNotIn("max_pids", record["sandbox"]["protections"])

    def test_more_is_the_users_to_ask_for(self):
        """An agent has at most that, unless main gave it another limit; what an agent gives to one below it is nothing."""
        self.assertEqual(self.spawn("true", limits={"max_pids": 5000})["limits"]["max_pids"], 5000)
        a = self.keeper.agent("main/a")
        self.assertEqual(self.start(a, limits={"max_pids": 4096})["limits"]["max_pids"], 4096)
        details = self.assert_refused(a, "permission_denied", "spawn", argv=["true"], limits={"max_pids": 4097})
        self.assertEqual((details["field"], details["maximum"]), ("limits.max_pids", 4096))
        a.call("agent_add", agent="x", limits={"max_pids": 100000})
        x = self.connect().login(a.call("token_new", agent="x")["token"])
        self.assert_refused(x, "permission_denied", "spawn", argv=["true"], limits={"max_pids": 4097})
        b = self.keeper.agent("main/b", limits={"max_pids": 6000})
        if self.has_groups():
            self.assertEqual(self.finish(b, limits={"max_pids": 5000})["exit"]["code"], 0)

    def test_the_operator_says_otherwise(self):
        a = self.keeper.agent("main/a")
        self.reload("max_pids = 77\n")
        self.assertEqual(self.start(a)["limits"]["max_pids"], 77)
        self.reload("max_pids = none\n")
        self.assertIsNone(self.start(a)["limits"]["max_pids"])
        self.assertEqual(self.start(a, limits={"max_pids": 5000})["limits"]["max_pids"], 5000)
        for text in ("max_pids = 0\n", "max_pids = any\n", "max_pids = none\nmax_pids = none\n", "max_pids = none\nmax_pids = 9\n",
                     "max_pids = 9\nmax_pids = none\n", "agent_memory_bytes = 101%\n", "agent_memory_bytes = 0\n",
                     "agent_memory_bytes = 5X\n", "agent_max_pids = 5K\n", "agent_max_pids = 1%\nagent_max_pids = 2%\n"):
            with self.subTest(text=text), self.assertRaises(Exception) as caught:
                self.reload(text)
            self.assertEqual(caught.exception.code, "invalid_input", text)


# Goes on when it is refused, which a shell does not.
BOMB = """
import os, time
while True:
    try:
        if not os.fork(): time.sleep(300)
    except OSError: time.sleep(0.01)
"""


class ForkBombTest(SharesCase):
    sandbox = "max_pids = 200\n"

    def test_a_fork_bomb_leaves_the_others_working(self):
        """It has as many processes as it may; its neighbour, other agents and the keeper go on; killed, nobody is left."""
        a, b = self.keeper.agent("main/a"), self.keeper.agent("main/b")
        bomb = a.call("spawn", argv=["python3", "-c", BOMB])["process"]
        counted = wait_until(lambda: (n := a.call("status", id=bomb["id"])["process"]["stats"]["pids"]) and n >= 150 and n, "it is full")
        self.assertLessEqual(counted, 201)
        for client in (a, b, self.client):
            self.assertEqual(self.finish(client, "sh -c 'sh -c true' && exit 7")["exit"]["code"], 7)
        self.assertEqual(self.connect().call("info")["pid"], self.keeper.pid)
        receipt = a.call("kill", id=bomb["id"])
        self.assertEqual((receipt["success"], receipt["survivors"]), (True, 0))


class MemoryTest(SharesCase):
    sandbox = "agent_memory_bytes = 96M\nagent_max_pids = 80\n"

    def test_an_agent_has_a_share_of_the_machine(self):
        """All its commands together, those of agents below included; others, and main, have their own."""
        a, b = self.keeper.agent("main/a"), self.keeper.agent("main/b")
        x = self.keeper.agent("main/a/x")
        held = self.shares(a)
        self.assertEqual((held["memory_bytes"]["limit"], held["max_pids"]["limit"]), (96 * MIB, 80))
        if not self.has_groups():
            self.assertEqual({h["state"] for h in held.values()}, {"none"})
            return
        self.assertRegex(held["memory_bytes"]["mechanism"], r"^cgroup v[12]$")
        first = self.python(a, EAT, 50 * MIB)
        self.assertEqual(self.line(a, first["id"]), "full")
        second = self.python(x, EAT, 80 * MIB)
        ended = wait_until(lambda: self.one_that_ended((a, first), (x, second)), "one of them is killed")
        self.assertEqual(ended["exit"]["signal"], signal.SIGKILL, ended)
        self.assertEqual(ended["end_cause"], "oom", ended)
        self.assertEqual((ended["end_evidence"]["limit"], ended["end_evidence"]["value"]), ("agent_memory_bytes", 96 * MIB))
        self.assertIn("memory", "".join(ended["facts"]))
        for client in (b, self.client):
            big = self.python(client, EAT, (80 if client is b else 150) * MIB)
            self.assertEqual(self.line(client, big["id"]), "full")

    def one_that_ended(self, *pairs):
        records = [client.call("status", id=record["id"])["process"] for client, record in pairs]
        return next((record for record in records if record["state"] in ("exited", "signaled")), None)

    def test_an_agents_processes_are_counted_together(self):
        """However many sandboxes they are in, and whatever each of them may have."""
        a, b = self.keeper.agent("main/a"), self.keeper.agent("main/b")
        if self.shares(a)["max_pids"]["state"] == "none":
            return
        made = [int(self.line(a, self.python(a, FORK, 50)["id"])) for _ in range(2)]
        self.assertEqual(made[0], 50)
        self.assertLess(sum(made), 80)
        self.assertEqual(int(self.line(b, self.python(b, FORK, 50)["id"])), 50)

    def test_own_limits_are_within_the_share(self):
        """A command with a group of its own is in that of its agent."""
        a = self.keeper.agent("main/a")
        if self.shares(a)["memory_bytes"]["state"] == "none":
            return
        record = self.python(a, EAT, 200 * MIB, limits={"memory_bytes": 400 * MIB})
        self.assertEqual(a.call("wait", id=record["id"])["process"]["exit"]["signal"], signal.SIGKILL)

    def test_it_can_be_changed_and_taken_away(self):
        """For agents that run something, too; `none` holds nothing, and a share is one of the machine."""
        a = self.keeper.agent("main/a")
        if self.shares(a)["memory_bytes"]["state"] == "none":
            return
        self.reload("agent_memory_bytes = 300M\nagent_max_pids = none\n")
        big = self.python(a, EAT, 150 * MIB)
        self.assertEqual(self.line(a, big["id"]), "full")
        self.assertIsNone(big["sandbox"]["agent_limits"]["max_pids"])
        self.reload("agent_memory_bytes = none\nagent_max_pids = none\nprincipal_memory_bytes = none\nprincipal_max_pids = none\n")
        record = self.finish(a)
        self.assertEqual(record["sandbox"]["agent_limits"], {"memory_bytes": None, "max_pids": None})
        self.reload("agent_memory_bytes = 50%\n")
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertAlmostEqual(self.shares(a)["memory_bytes"]["limit"], total // 2, delta=total // 50)

    def test_groups_of_a_removed_agent_go(self):
        self.shares(self.client)
        before = self.client.call("info")["sandbox"]["cgroups"]
        for name in ("a", "b"):
            agent = self.keeper.agent(f"main/{name}")
            self.shares(agent)
            self.start(agent)
            self.client.call("agent_remove", agent=f"main/{name}")
        wait_until(lambda: self.client.call("info")["sandbox"]["cgroups"] <= before, "their groups are gone")


class RecordTest(SharesCase):
    def test_record_tells_the_same_from_beginning_to_end(self):
        """The first command of all, before any group is made; one in its agent's group, one in its own."""
        first = self.client.call("spawn", argv=["cat"], stdin="pipe")["process"]
        self.assertTrue(all(first["sandbox"]["agent_limits"].values()), first["sandbox"])
        a = self.keeper.agent("main/a")
        self.shares(a)
        for client, options in ((self.client, None), (a, {}), (a, {"limits": {"memory_bytes": 64 * MIB}})):
            process = first if options is None else client.call("spawn", argv=["cat"], stdin="pipe", **options)["process"]
            client.call("close_stdin", id=process["id"])
            ended = client.call("wait", id=process["id"], tidy=True)["process"]
            self.assertEqual(ended["sandbox"]["agent_limits"], process["sandbox"]["agent_limits"])


class LauncherTest(SharesCase):
    def test_starts_are_pooled_and_in_the_agents_group(self):
        """The launcher waits in the group: so do the sandboxes that it prepares."""
        a = self.keeper.agent("main/a")
        if self.shares(a)["memory_bytes"]["state"] == "none":
            return

        def pooled():
            record = self.start(a)
            return record if record["start"] == "pooled" else None

        record = wait_until(pooled, "a prepared sandbox")
        pid = record["pid"]
        groups = Path(f"/proc/{pid}/cgroup").read_text()
        self.assertTrue(re.search(r"coop-[^/]+/a-\d+/a-\d+/rest", groups), groups)

    def test_a_launcher_that_dies_is_replaced_in_its_group(self):
        a = self.keeper.agent("main/a")
        self.shares(a)
        for pid in self.launchers():
            os.kill(pid, signal.SIGKILL)
        self.shares(a)
        self.shares(self.client)

    def test_many_agents(self):
        """More than launchers wait: each command is held all the same, and the others leave."""
        agents = [self.keeper.agent(f"main/n{i}") for i in range(70)]
        for agent in agents:
            held = self.shares(agent)
            self.assertTrue(held["memory_bytes"]["limit"] > MIB)
        wait_until(lambda: len(self.launchers()) <= 70, "some have left")
