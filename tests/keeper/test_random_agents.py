"""Eight agents of two principals do everything to everybody at random, and a model says who may (B-075 to B-078).

In each round requests of several connections are under way together; each answer must be one that the model allows.
COOP_SEED repeats a run's choices, COOP_AGENT_OPS says how many operations there are, however long they take.
"""

import os
import random
import signal
import sys
import time
from collections import Counter

from lib import procs
from lib.agent_model import ENDED, LIVE, NO_SUCH, NONE, NOT_OWNER, Agent, Process, World
from lib.agents import OTHER, OWN, AgentCase
from lib.client import Data
from lib.group_plans import GroupPlans, Plan, refused
from lib.place import sanitized

ASKED = os.environ.get("COOP_AGENT_OPS")
OPS = int(ASKED or (5000 if sanitized() else 25000))
SECONDS, OPS_MIN = 25, 2000
SEED = int(os.environ.get("COOP_SEED") or random.SystemRandom().randrange(1 << 32))
TREE = ((OWN, "main/a", 14), (OWN, "main/a/x", 6), (OWN, "main/a/x/deep", None), (OWN, "main/b", 6), (OWN, "main/b/y", None),
        (OTHER, "main", 12), (OTHER, "main/a", None))
LIVE_MAX, ROUND_MAX = 45, 24
TAGS, CALLS = ("red", "green", "blue"), ("c1", "c2")
JUNK = ("psh-1-999999", "nonsense", "", "psh-", "psh-zz-1")

WEIGHTS = {"spawn": 22, "look": 22, "by_tag": 6, "touch": 26, "follow": 4, "list": 9, "many": 4, "info": 2, "gc": 3, "session_new": 3,
           "session_end": 4, "session_list": 2, "cancel": 4, "agent_add": 2, "agent_remove": 1, "agent_look": 5, "token": 2,
           "token_revoke": 2, "drop": 1, "history": 3, "ephemeral": 3}
LOOKS = (("status", {}), ("wait", {"timeout_ms": 0}), ("read", {}), ("read", {"stream": "combined"}))
TOUCHES = (("signal", {"signal": "TERM"}), ("signal", {"signal": "KILL", "target": "tree"}), ("signal", {"signal": "CONT"}), ("kill", {}),
           ("stop", {"grace_ms": 5000}), ("write_stdin", {}), ("write_stdin", {}), ("close_stdin", {}), ("release", {}), ("keep", {}),
           ("resize", {"cols": 5, "rows": 5}), ("read", {"drain": True}))


class RandomAgentsTest(GroupPlans, AgentCase):
    settings = {"max_finished": 100000, "max_receipts": 100000, "max_running": 1000, "agent_max_running": 1000,
                "hold_idle_ms": 1}  # gc takes what another connection of the agent has started

    def setUp(self):
        print(f"random agents: COOP_SEED={SEED}", file=sys.stderr, flush=True)
        super().setUp()
        if ASKED:
            signal.alarm(0)  # as long as was asked for
        self.random, self.counts, self.names = random.Random(SEED), Counter(), 0
        self.world, self.clients = World(), {}
        main = Agent(None, OWN, "main")
        main.clients = [(self.connect(), None) for _ in range(2)]
        self.world.agents = [main]
        for principal, path, limit in TREE:
            agent = Agent(self.agent_of(principal, path.rpartition("/")[0]), principal, path, limit)
            self.client.call("agent_add", agent=path, principal=principal, max_running=limit)
            self.world.agents.append(agent)
            for _ in range(2):
                self.log_in(agent, self.keeper.token(path, principal))
        self.world.settle()
        self.fixed = set(self.world.agents)
        # What is not there has one answer, and it is the same for everybody.
        asked = (*LOOKS, *TOUCHES, ("follow", {}))
        self.unknown = {(op, *args): self.client.answer(op, {**args, "id": JUNK[0]}, self.bytes_for(op)) for op, args in asked}

    def failure_notes(self):
        return f"COOP_SEED={SEED} {dict(self.counts)}\n{super().failure_notes()}"

    def agent_of(self, principal, path):
        found = [agent for agent in self.world.agents if (agent.principal, agent.path) == (principal, path)]
        return found[0] if found else None

    def log_in(self, agent, token):
        agent.clients.append((self.connect().login(token["token"]), token["id"]))

    def bytes_for(self, op):
        return b"text\n" if op == "write_stdin" else None

    # The loop.

    def test_b075_b076_b078_everybody_does_everything(self):
        """Thousands of operations: every answer is one that the model allows, and at the end everybody sees what the model says."""
        done = rounds = 0
        end = time.monotonic() + SECONDS
        # A machine that has little time for us does less.
        while done < OPS and (ASKED or done < OPS_MIN or time.monotonic() < end):
            done += self.one_round()
            rounds += 1
            if rounds % 20 == 0:
                self.compare_all()
        self.compare_all()
        self.compare_history()
        for process in [p for p in self.world.processes if p.now == LIVE]:
            self.assertTrue(process.owner.clients[0][0].call("release", id=process.id)["released"])
        self.assertEqual(self.client.call("info")["processes"]["live"], 0)
        rights = ("no_such_process", "not_owner", "invalid_input", "registry_full", "quota")
        self.assertEqual([right for right in rights if not self.counts[right]], [], self.counts)

    def one_round(self):
        """Plans, sends everything, takes the answers, changes the model, and then looks whether each answer was right."""
        self.shared, self.alone, self.after = set(), set(), []
        self.looked = []  # processes that somebody may be reading
        self.plans = []
        for _ in range(self.random.randrange(2, ROUND_MAX)):
            agent = self.random.choice(self.world.agents)
            kind = self.random.choices(list(WEIGHTS), WEIGHTS.values())[0]
            if not agent.clients or not self.reserve(shared=[("act", agent)]):
                continue
            plan = getattr(self, f"plan_{kind}")(agent)
            if plan:
                plan.client = plan.client or self.random.choice(agent.clients)[0]
                self.plans.append(plan)
        for plan in self.plans:
            plan.request = plan.client.submit(plan.op, plan.args, plan.data)
        for plan in self.plans:
            plan.answer = self.take(plan)
            self.counts[plan.answer.get("error", {}).get("code", plan.op)] += 1
        for plan in self.plans:
            if plan.change:
                plan.change(plan.answer)
        for plan in self.plans:
            if not plan.judge(plan.answer):
                self.fail(f"the model does not allow\n{plan}\nin the round of\n" + "\n".join(map(str, self.plans)))
        for action in self.after:
            action()
        self.tell_ends()
        self.world.settle()
        return len(self.plans)

    def take(self, plan):
        """The whole answer; a follow of what lives is cancelled once it is attached."""
        text = b""
        while True:
            item = plan.client.item(plan.request)
            if isinstance(item, Data):
                text += item.data
            elif "event" in item:
                plan.client.cancel(plan.request)
            else:
                if "error" in item:
                    return {"error": {"details": {}, **item["error"]}}
                return {"result": item["result"], "text": text}

    def tell_ends(self):
        """Everything that ends in this round has done so when it is over, as the model says."""
        ending = [p for p in self.world.processes if p.was != ENDED and p.now == ENDED]
        for process in ending:
            watcher = next(agent for agent in process.owner.line() if agent.clients and agent.now == LIVE)
            record = watcher.clients[0][0].call("wait", id=process.id)["process"]
            end = (record["exit"]["code"], record["exit"]["signal"], record["end_cause"])
            self.assertEqual(end, process.end, f"{process.id} of {process.owner.path}")

    def compare_all(self):
        """Nothing is under way: everybody sees exactly what the model says."""
        for agent in self.world.agents:
            client = agent.clients[0][0]
            seen = [p for p in self.world.processes if p.now != NONE and agent.covers(p.owner)]
            shown = {record["id"]: record for record in client.call("list", include_finished=True, limit=100000)["processes"]}
            self.assertEqual(sorted(shown), sorted(p.id for p in seen), agent.path)
            for process in seen:
                self.assertTrue(self.record_is(shown[process.id], process, agent), shown[process.id])
            self.assertEqual(self.agents(client), sorted((a.path for a in self.world.below(agent)), key=self.agents(client).index))
            sessions = [session["id"] for session in client.call("session_list")["sessions"]]
            self.assertEqual(sorted(sessions), sorted(s.id for s in self.world.sessions if agent.covers(s.owner)))
            self.assertEqual(client.call("info")["processes"]["live"], sum(1 for p in seen if p.now == LIVE))

    def compare_history(self):
        """What was ever started is told to those who may see it, and to no others, once it has been written."""
        for agent in self.world.agents:
            ever = {known for known, owner in self.world.ever.items() if agent.covers(owner)}
            client = agent.clients[0][0]
            procs.wait_until(lambda: len(self.history(client)) >= len(ever), "all is written", interval=0.2)
            self.assertEqual(self.history(client), ever)

    def history(self, client):
        """All of it, in pages."""
        ids, more = [], True
        while more:
            page = client.call("history", limit=1000, before=ids[-1] if ids else None)
            ids += [row["id"] for row in page["processes"]]
            more = page["more"]
        self.assertEqual(len(ids), len(set(ids)))
        return set(ids)

    def reserve(self, shared=(), alone=()):
        """False if a request of this round needs one of the things for itself."""
        if set(alone) & (self.shared | self.alone) or set(shared) & self.alone:
            return False
        self.shared |= set(shared)
        self.alone |= set(alone)
        return True

    def change_of(self, processes):
        """What a request that changes processes shares: their owners' all, and the meaning of their tags."""
        return [key for p in processes for key in (("own", p.owner), ("tag", p.tag))]

    def some_process(self, agent):
        """Mostly one's own, but anybody's, also one that is not there any more; None is one that never was."""
        own = [p for p in self.world.processes if p.owner is agent]
        pool = own if own and self.random.random() < 0.5 else self.world.processes[-150:]
        return self.random.choice(pool) if pool and self.random.random() < 0.96 else None

    def name_of(self, process):
        return process.id if process else self.random.choice(JUNK)

    # Starting.

    def plan_spawn(self, agent, lease=None):
        if self.world.live(self.world.agents[0], "now") > LIVE_MAX:
            return None
        pick = self.random
        short = pick.random() < 0.3
        sessions = [s for s in self.world.sessions if s.owner is agent]
        session = pick.choice([None, *sessions])
        args = {"argv": ["sh", "-c", "exit 7"] if short else ["cat"], "stdin": "none" if short else "pipe", "lease": lease}
        args |= {"tag": pick.choice([None, *TAGS]), "call_id": pick.choice([None, *CALLS]), "session": session and session.id}
        foreign = [s for s in self.world.sessions if s.owner is not agent]
        if foreign and pick.random() < 0.05 and not short:
            args["session"] = pick.choice(foreign).id
            return Plan(agent, "spawn", args, lambda a: refused(a, "invalid_input", "session") or self.was_full(agent, a))
        keys = [("own", agent), ("tag", args["tag"]), ("session", args["session"]), ("call", agent, args["call_id"])]
        if not self.reserve(keys):
            return None
        plan = Plan(agent, "spawn", args, None)

        def change(answer):
            if "result" in answer:
                process = Process(answer["result"]["process"], agent, session, plan.client)
                if short:
                    process.dies(7, None, "self_exit")
                self.world.processes.append(process)

        def judge(answer):
            if "result" in answer:
                return self.world.may_start(agent) and self.record_is(answer["result"]["process"], self.find(answer), agent)
            return self.was_full(agent, answer)

        plan.judge, plan.change = judge, change
        return plan

    def was_full(self, agent, answer):
        """Whether a refusal names a level that can have been full."""
        tried = [plan.agent for plan in self.plans if plan.op == "spawn"]
        scope = answer.get("error", {}).get("details", {}).get("scope")
        code = {"agent": "registry_full", "ancestor": "quota"}.get(scope)
        return refused(answer, code) and scope in self.world.may_be_full(agent, tried)

    def plan_ephemeral(self, agent):
        return self.plan_spawn(agent, "ephemeral")

    def find(self, answer):
        return next((p for p in self.world.processes if p.id == answer["result"]["process"]["id"]), None)

    # One process.

    def record_is(self, record, process, agent):
        """Whether a record shows the process as it is to this agent."""
        owner = {"principal": process.owner.principal, "agent": process.owner.path}
        name = process.id if record["state"] == "starting" else record["id"]
        shown = (name, record["owner"], record["agent"], record["agent_path"], record["tag"], record["call_id"])
        state = LIVE if record["ended_at"] is None else ENDED
        return shown == (process.id, owner, agent.label(process.owner), process.owner.path, process.tag, process.call_id) and (
            state in process.states() or process.was == NONE) and record["session"] == (process.session and process.session.id)

    def judge_look(self, agent, process, op, args):
        def judge(answer):
            allowed = self.world.looks(agent, process)
            if "error" in answer:
                return NO_SUCH in allowed and answer == self.unknown[(op, *args)]
            if "process" in answer["result"]:
                return allowed & {LIVE, ENDED} and self.record_is(answer["result"]["process"], process, agent)
            return allowed & {LIVE, ENDED} and answer["text"] in process.text

        return judge

    def plan_look(self, agent):
        process = self.some_process(agent)
        self.looked.append(process)
        op, args = self.random.choice(LOOKS)
        return Plan(agent, op, {**args, "id": self.name_of(process)}, self.judge_look(agent, process, op, args))

    def plan_by_tag(self, agent):
        """A tag, or the beginning of an id."""
        if self.random.random() < 0.3 and self.world.processes:
            process = self.some_process(agent)
            name = self.name_of(process)
            start = name.rpartition("-")[0] + "-"
            if sum(1 for known in self.world.ever if known.startswith(start)) == 1:
                name = start
            return Plan(agent, "status", {"id": name}, self.judge_look(agent, process, "status", {}))
        tag = self.random.choice(TAGS)
        if not self.reserve(alone=[("tag", tag)]):
            return None
        process = self.world.by_tag(agent, tag)
        if isinstance(process, list):
            ids = {p.id for p in process}

            def ambiguous(answer):
                return refused(answer, "invalid_input", "id") and set(answer["error"]["details"]["candidates"]) <= ids

            return Plan(agent, "status", {"id": tag}, ambiguous)
        return Plan(agent, "status", {"id": tag}, self.judge_look(agent, process, "status", {}))

    def plan_follow(self, agent):
        process = self.some_process(agent)
        self.looked.append(process)
        look = self.judge_look(agent, process, "follow", {})

        def judge(answer):
            if "error" in answer and answer["error"]["code"] == "cancelled":
                return self.world.looks(agent, process) & {LIVE, ENDED}
            return look(answer)

        return Plan(agent, "follow", {"id": self.name_of(process)}, judge)

    def plan_touch(self, agent):
        process = self.some_process(agent)
        op, args = self.random.choice(TOUCHES)
        own = process is not None and process.owner is agent
        if own and not self.reserve(self.change_of([process]), [("process", process)]):
            return None
        data = self.bytes_for(op)

        def judge(answer):
            allowed = {process.was} if own else self.world.touches(agent, process)
            if own and process.was == NONE:
                allowed = {NO_SUCH}
            if answer in [self.unknown[(op, *args)], {**self.unknown[(op, *args)], "text": b""}]:
                return NO_SUCH in allowed
            if "error" in answer and answer["error"]["code"] == NOT_OWNER:
                return NOT_OWNER in allowed
            return own and self.own_touch_is_right(op, process.was, answer)

        def change(answer):
            if own and process.was != NONE:
                self.carry_out(op, args, process, data)

        return Plan(agent, op, {**args, "id": self.name_of(process)}, judge, change, data)

    def carry_out(self, op, args, process, data):
        """What an owner's request does to a `cat` that waits for input, or to what has ended."""
        if op == "release":
            process.now = NONE
        elif process.was == LIVE:
            if op == "write_stdin":
                process.text += data
            elif op == "close_stdin":
                process.dies(0, None, "self_exit")
            elif op == "keep":
                process.lease = "awaited" if process.lease == "ephemeral" else process.lease
            elif op in ("kill", "stop") or args.get("signal") in ("TERM", "KILL"):
                number = 9 if op == "kill" or args.get("signal") == "KILL" else 15
                process.dies(None, number, "killed_by_request")

    def own_touch_is_right(self, op, state, answer):
        if op == "resize":
            return refused(answer, "invalid_input")
        if op == "write_stdin" and state == ENDED:
            return refused(answer, "closed")
        if op == "keep" and state == ENDED:
            return True
        told = {"signal": "sent", "kill": "success", "stop": "success", "write_stdin": "success", "close_stdin": "was_open",
                "release": "released"}.get(op)
        if "error" in answer or told is None:
            return "error" not in answer
        return answer["result"][told] == (op in ("kill", "stop", "release") or state == LIVE)
