"""Text that clients give is stored, and read back as if an enemy had written it: names of maps are data, what is stored twice or is not
of our making is refused, and one agent that cannot be read does not keep the keeper from starting."""

import json
import os
import sqlite3
import subprocess

from lib.agents import AgentCase
from lib.place import COOP, Place
from lib.procs import wait_until

# What ends a name, or begins something else, wherever the name of a member is written.
HOSTILE = ['"', '\\', 'a"b', 'x","y":"z', 'x":"y","metadata":{},"expires_at":1,"z', '\n', '\x01', "\x7f", "\u00e4\u20ac\U0001f600",
           "', 1); DROP TABLE agents; --", "%s%n", "../../x", "a b", "{}", "[", "\\u0022", "\\"]


class StoredCase(AgentCase):
    """A keeper that can be started again on the same state."""

    def setUp(self):
        super().setUp()
        self.begin(Place())

    def begin(self, place, **options):
        self.data = place.dir / "data"
        self.keeper = self.start_keeper(place=place, env={"COOP_DATA": str(self.data)}, **options)
        self.client = self.keeper.clients[0]
        return self.keeper

    def end(self):
        self.client.call("shutdown", grace_ms=0)
        self.keeper.wait_gone()
        self.keeper.ended = True

    def again(self):
        self.end()
        place = Place()
        place.state, place.socket, place.dir = self.keeper.place.state, self.keeper.place.socket, self.keeper.place.dir
        return self.begin(place)

    def show(self, path="main/a", client=None):
        return (client or self.client).call("agent_show", agent=path)["agent"]

    def paths(self):
        return [agent["path"] for agent in self.client.call("agent_list")["agents"]]

    def change(self, statement, *values):
        """Of the database, while no keeper has it."""
        with sqlite3.connect(self.keeper.place.state / "records.db") as database:
            self.assertGreater(database.execute(statement, values).rowcount, 0)
        database.close()


class NamesTest(StoredCase):
    def test_any_name_comes_back_as_it_was(self):
        """In the answer, in lists, after a restart, and in the answers of agents below."""
        metadata = {name: f"value of {name!r}" for name in HOSTILE}
        self.client.call("agent_add", agent="main/a", metadata=metadata)
        for _ in range(2):
            self.assertEqual(self.show()["metadata"], metadata)
            self.assertEqual([a["metadata"] for a in self.client.call("agent_list")["agents"]], [{}, metadata])
            self.again()

    def test_a_name_does_not_become_a_setting(self):
        """Neither the folder that goes with the agent, nor limits, nor the end of its time: whatever order they are stored in."""
        victim = self.keeper.place.dir / "victim"
        (victim / "work").mkdir(parents=True)
        (victim / "work" / "precious").touch()
        attacks = [
            f'x":"","folder":{{"in":"{victim}","mark":"{"0" * 32}"}},"y',
            f'x":""}},"folder":{{"in":"{victim}","mark":"{"0" * 32}"}},"metadata":{{"y',
            'x":""},"max_running":null,"metadata":{"y', 'x":""},"workspace":null,"metadata":{"y', 'x":""},"sandbox":null,"metadata":{"y',
            'x":""},"expires_at":1,"metadata":{"y', 'x":""},"env":{"LD_PRELOAD":"/x"},"metadata":{"y',
        ]
        for n, name in enumerate(attacks):
            self.client.call("agent_add", agent=f"main/a{n}", max_running=3, workspace=[str(self.keeper.place.work)],
                             sandbox={"profile": "read-only"}, metadata={name: "v"})
        before = [self.show(f"main/a{n}") for n in range(len(attacks))]
        self.again()
        for n, agent in enumerate(before):
            self.assertEqual(self.show(f"main/a{n}"), agent)
        for n in range(len(attacks)):
            self.client.call("agent_remove", agent=f"main/a{n}")
        self.assertTrue((victim / "work" / "precious").exists())

    def test_variables_with_odd_names_are_refused(self):
        for name in ('A"B', "A=B", "A\nB", ""):
            self.assertEqual(self.refusal(self.client, "agent_add", agent="main/a", env={name: "x"}).code, "invalid_input", name)
        self.assertEqual(self.paths(), ["main"])


class StoredTest(StoredCase):
    def stored(self, path):
        with sqlite3.connect(self.keeper.place.state / "records.db") as database:
            row = database.execute("SELECT settings FROM agents WHERE path = ?", [path]).fetchone()
        database.close()
        return row[0]

    def left_out(self):
        return {row["path"]: row["reason"] for row in self.client.call("info")["left_out"]}

    def test_an_agent_that_cannot_be_read_is_left_out_and_told(self):
        """With its tokens and all below it; the rest is there. What it has on disk stays until somebody removes it."""
        damages = {
            "no JSON": "{", "no object": "[]", "a member twice": '{"max_running":1,"max_running":5}',
            "a member within twice": '{"metadata":{"a":"1","a":"2"}}', "a type": '{"max_running":"many"}', "a range": '{"max_running":-7}',
            "an unknown one": '{"max_runing":5}', "a variable": '{"env":{"A=B":"x"}}', "metadata": '{"metadata":{"a":5}}',
            "a root": '{"workspace":["relative"]}', "a policy": '{"policy":5}', "a sandbox": '{"sandbox":{"profile":"none"}}',
            "a folder elsewhere": '{"folder":{"in":"/etc","mark":"%s"}}' % ("0" * 32),
            "a folder that is none": '{"folder":5}', "an end": '{"expires_at":"soon"}',
        }
        self.client.call("agent_add", agent="main/good")
        good = self.client.call("token_new", agent="main/good")["token"]
        tokens = {}
        for n, what in enumerate(damages):
            self.client.call("agent_add", agent=f"main/a{n}", folder=True)
            self.client.call("agent_add", agent=f"main/a{n}/below")
            tokens[what] = self.client.call("token_new", agent=f"main/a{n}/below")["token"]
        self.end()
        for n, text in enumerate(damages.values()):
            self.change("UPDATE agents SET settings = ? WHERE path = ?", text, f"main/a{n}")
        folders = sorted(os.listdir(self.data))
        self.again_after_end()
        self.assertEqual(self.paths(), ["main", "main/good"])
        told = self.left_out()
        for n, what in enumerate(damages):
            self.assertIn(f"main/a{n}", told, what)
            self.assertIn("above it", told[f"main/a{n}/below"], what)
            self.assertEqual(self.refusal(self.keeper.connect(), "login", token=tokens[what]).code, "permission_denied", what)
            self.assertEqual(self.refusal(self.client, "agent_add", agent=f"main/a{n}").code, "exists", what)
        self.keeper.connect().call("login", token=good)
        self.assertEqual(sorted(os.listdir(self.data)), folders)
        log = self.wait_log("main/a0")
        removed = self.client.call("agent_remove", agent="main/a0")
        self.assertEqual((removed["agents"], removed["ended"]), (2, 0))
        self.assertNotIn("main/a0", self.left_out())
        self.assertNotIn("main/a0/below", self.left_out())
        self.client.call("agent_add", agent="main/a0")
        self.again()
        self.assertEqual(self.paths(), ["main", "main/good", "main/a0"])
        wait_until(lambda: len(os.listdir(self.data)) == len(folders) - 1, "the folder of the removed one goes")

    def again_after_end(self):
        place = Place()
        place.state, place.socket, place.dir = self.keeper.place.state, self.keeper.place.socket, self.keeper.place.dir
        return self.begin(place)

    def test_who_is_left_out_is_the_operators_to_know(self):
        agent = self.keeper.agent("main/b")
        self.assertIsNone(agent.call("info")["left_out"])
        self.assertEqual(self.left_out(), {})

    def test_doctor_tells(self):
        self.client.call("agent_add", agent="main/a")
        self.end()
        self.change("UPDATE agents SET settings = '{' WHERE path = 'main/a'")
        self.again_after_end()
        env = {**os.environ, **self.keeper.place.env({"COOP_DATA": str(self.data)})}
        checks = json.loads(subprocess.run([COOP, "doctor", "--json"], env=env, stdout=subprocess.PIPE, check=False).stdout)["checks"]
        row = next(check for check in checks if check["name"] == "agents")
        self.assertEqual(row["status"], "warn")
        self.assertIn("main/a", row["detail"])
        self.assertIn("coop agent rm", row["advice"])

    def test_a_name_or_place_that_no_agent_could_have(self):
        for n in range(4):
            self.client.call("agent_add", agent=f"main/a{n}")
        self.end()
        self.change("UPDATE agents SET name = '../x' WHERE path = 'main/a0'")
        self.change("UPDATE agents SET name = 'other' WHERE path = 'main/a1'")
        self.change("UPDATE agents SET principal = 'x\"y' WHERE path = 'main/a2'")
        self.again_after_end()
        self.assertEqual(self.paths(), ["main", "main/a3"])
        self.assertEqual(set(self.left_out()), {"main/a0", "main/a1", "main/a2"})

    def test_a_mark_of_ours_in_another_place(self):
        """A mark is known to the agent itself: it proves nothing about a folder that is not in the data folder."""
        victim = self.keeper.place.dir / "victim"
        folder = self.client.call("agent_add", agent="main/a", folder=True)["agent"]["folder"]
        name = os.path.basename(os.path.dirname(folder))
        (victim / name / "work").mkdir(parents=True)
        self.end()
        settings = json.loads(self.stored("main/a"))
        self.change("UPDATE agents SET settings = ? WHERE path = 'main/a'", json.dumps({"folder": {**settings["folder"], "in": str(victim)}}))
        self.again_after_end()
        self.assertIn("main/a", self.left_out())
        self.client.call("agent_remove", agent="main/a")
        self.again()
        self.assertTrue((victim / name / "work").is_dir())

    def test_a_token_that_cannot_be_read_is_left_out(self):
        token = self.client.call("token_new", agent="main")["token"]
        self.client.call("token_new", agent="main")
        self.end()
        self.change("UPDATE tokens SET hash = x'00' WHERE id = 2")
        self.again_after_end()
        self.keeper.connect().call("login", token=token)
        self.assertEqual([row["id"] for row in self.client.call("token_list")["tokens"]], [1])

    def test_records_that_cannot_be_read(self):
        """History shows what is left of such a row, and the rest whole; none becomes a receipt."""
        ids = [self.finish(self.client)["id"] for _ in range(6)]
        self.end()
        damages = ["{", '{"label":"x","label":"y"}', "[]", '{}', '{"argv":5,"label":"","command":"","cwd":"/"}']
        for process, text in zip(ids, damages):
            self.change("UPDATE processes SET about = ? WHERE id = ?", text, process)
        self.change("UPDATE processes SET id = ? WHERE id = ?", 'psh-1-1","x":"', ids[3])
        self.again_after_end()
        rows = self.client.call("history")["processes"]
        self.assertEqual(len(rows), 6)
        self.assertEqual([row.get("damaged", False) for row in reversed(rows)], [True, True, True, False, False, False])
        self.assertEqual(rows[0]["id"], ids[5])
        self.assertEqual(self.status(ids[5])["state"], "exited")
        for process in ids[:5]:
            self.assertEqual(self.refusal(self.client, "status", id=process).code, "no_such_process", process)
