"""The requests of the random test that are about many processes, sessions, agents and tokens. See test_random_agents.py."""

import time

from .agent_model import ENDED, LIVE, NONE, Agent, Session

AGENTS_MAX = 14


class Plan:
    """One request of a round: what is asked, what its answer changes in the model, and whether the answer is right."""

    def __init__(self, agent, op, args, judge, change=None, data=None, client=None):
        self.agent, self.op, self.args, self.judge, self.change, self.data = agent, op, args, judge, change, data
        self.client, self.request, self.answer = client, None, None

    def __str__(self):
        return f"{self.agent.principal} {self.agent.path}: {self.op} {self.args} -> {str(self.answer)[:500]}"


def refused(answer, code, field=None):
    error = answer.get("error", {})
    return error.get("code") == code and (field is None or error["details"].get("field") == field)


def number_of(name):
    """What an id is known by while it has no pid yet."""
    return int(name.rpartition("-")[2])


def between(shown, bounds):
    """Whether what is shown has all that must be there, each once, and nothing that must not."""
    must, may = map(set, bounds)
    return len(shown) == len(set(shown)) and must <= set(shown) <= may


class GroupPlans:
    """Mixed into the test, which has the world, the random choices and the bookkeeping of a round."""

    # Lists.

    def plan_list(self, agent):
        pick, finished = self.random, self.random.random() < 0.5
        args, chosen = {"include_finished": finished, "brief": pick.random() < 0.5, "limit": 100000}, lambda p: True
        way = pick.randrange(5)
        if way == 0:
            # One's own, one below, or one that is none of one's business.
            path = pick.choice(self.world.agents).path
            other = self.agent_of(agent.principal, path)
            args["agent"] = "self" if other is agent else path

            def chosen(p):
                return p.owner is other

            if not self.reserve([("agent", other)]):
                return None
        elif way == 1 and self.world.sessions:
            session = pick.choice(self.world.sessions)
            args["session"] = session.id

            def chosen(p):
                return p.session is session

            if not self.reserve([("session", session.id)]):
                return None
        elif way == 2:
            args["tag"] = pick.choice(("red", "green", "nobody"))

            def chosen(p):
                return p.tag == args["tag"]

        def judge(answer):
            records = answer["result"]["processes"]
            numbers = [number_of(record["id"]) for record in records]
            bounds = self.world.lists(agent, self.world.processes, finished, chosen)
            found = {p.number: p for p in bounds[1]}
            return numbers == sorted(numbers) and between([found.get(n) for n in numbers], bounds) and all(
                self.record_is(record, found[number_of(record["id"])], agent) for record in records)

        return Plan(agent, "list", args, judge)

    def plan_many(self, agent):
        asked = {p for p in (self.some_process(agent) for _ in range(8)) if p}

        def judge(answer):
            bounds = self.world.lists(agent, asked, True)
            found = {p.id: p for p in bounds[1]}
            return between([found.get(record["id"]) for record in answer["result"]["processes"]], bounds)

        return Plan(agent, "status", {"ids": [*(p.id for p in asked), "psh-1-999999", ""]}, judge)

    def plan_info(self, agent):
        client, token = self.random.choice(agent.clients)

        def judge(answer):
            must, may = self.world.lists(agent, self.world.processes, False)
            you = {"principal": agent.principal, "agent": agent.path, "operator": token is None}
            # A short process that began and ended in this round may have been seen.
            short = sum(1 for p in self.world.processes if p.was == NONE and agent.covers(p.owner))
            return answer["result"]["you"] == you and len(must) <= answer["result"]["processes"]["live"] <= len(may) + short

        return Plan(agent, "info", {}, judge, client=client)

    def plan_history(self, agent):
        def judge(answer):
            owners = self.world.ever | {p.id: p.owner for p in self.world.processes}
            rows = [(owners.get(row["id"]), row["agent_path"]) for row in answer["result"]["processes"]]
            return all(owner and agent.covers(owner) and owner.path == path for owner, path in rows)

        return Plan(agent, "history", {"limit": 50}, judge)

    def plan_gc(self, agent):
        own = [p for p in self.world.processes if p.owner is agent and p.now == ENDED]
        if not self.reserve(alone=[("own", agent)]) or not self.reserve(self.tags_of(own), [("process", p) for p in own]):
            return None

        kept = []
        # What another connection has started is that one's for a millisecond after the end (hold_idle_ms).
        time.sleep(0.005)

        def change(answer):
            """What somebody was just reading stays."""
            if answer["result"]["released"] != len(own):
                client = agent.clients[0][0]
                kept.extend(p for p in own if "result" in client.answer("status", {"id": p.id}))
            for process in own:
                process.now = ENDED if process in kept else NONE

        def judge(answer):
            return answer["result"]["released"] + len(kept) == len(own) and all(p in self.looked for p in kept)

        return Plan(agent, "gc", {}, judge, change)

    def tags_of(self, processes):
        return [("tag", p.tag) for p in processes]

    # Sessions and calls.

    def plan_session_new(self, agent):
        if len(self.world.sessions) > 20:
            return None

        def change(answer):
            self.world.sessions.append(Session(answer["result"]["session"]["id"], agent))

        return Plan(agent, "session_new", {"label": "s"}, lambda answer: answer["result"]["session"]["agent_path"] == agent.path, change)

    def plan_session_end(self, agent):
        if not self.world.sessions:
            return None
        session = self.random.choice(self.world.sessions)
        args = {"id": session.id, "grace_ms": 5000}
        if session.owner is not agent:
            return Plan(agent, "session_end", args, lambda answer: refused(answer, "invalid_input", "id"))
        members = [p for p in self.world.processes if p.session is session and p.now == LIVE]
        if not self.end_together(agent, members, ("session", session.id)):
            return None

        def change(_):
            session.now = NONE
            for process in members:
                process.dies(None, 15, "session_end")

        return Plan(agent, "session_end", args, lambda answer: answer["result"] == {"ended": len(members), "survivors": 0}, change)

    def end_together(self, owner, processes, *alone):
        return self.reserve([("own", owner), *self.tags_of(processes)], [*alone, *(("process", p) for p in processes)])

    def plan_session_list(self, agent):
        def judge(answer):
            bounds = self.world.lists(agent, self.world.sessions, False)
            found = {session.id: session for session in bounds[1]}
            return between([found.get(item["id"]) for item in answer["result"]["sessions"]], bounds)

        return Plan(agent, "session_list", {}, judge)

    def plan_cancel(self, agent):
        call = self.random.choice(("c1", "c2", "nobody's"))
        own = [p for p in self.world.processes if p.owner is agent and p.call_id == call and p.now == LIVE]
        if not self.end_together(agent, own, ("call", agent, call)):
            return None

        def change(_):
            for process in own:
                process.dies(None, 2, "cancelled")

        ids = sorted(p.id for p in own)
        return Plan(agent, "cancel", {"call_ids": [call]}, lambda answer: sorted(answer["result"]["cancelled"]) == ids, change)

    # Agents and tokens.

    def plan_agent_look(self, agent):
        """The tree as the agent sees it, or one agent, which must be below it."""
        if self.random.random() < 0.4:
            def judge(answer):
                seen = {a.path: a for a in self.world.below(agent)}
                shown = [item["path"] for item in answer["result"]["agents"]]
                must = {path for path, a in seen.items() if a.states() == {LIVE}}
                return len(shown) == len(set(shown)) and must <= set(shown) <= set(seen)

            return Plan(agent, "agent_list", {}, judge)
        path = self.random.choice(self.world.agents).path
        other = self.agent_of(agent.principal, path)
        if not self.reserve([("agent", other)]):
            return None

        def judge_one(answer):
            if other is None or not agent.covers(other):
                return refused(answer, "invalid_input", "agent")
            return answer["result"]["agent"]["path"] == path

        return Plan(agent, "agent_show", {"agent": path}, judge_one)

    def plan_agent_add(self, agent):
        above = self.random.choice(self.world.agents).path
        parent = self.agent_of(agent.principal, above)
        self.names += 1
        path = f"{above}/t{self.names}"
        if parent is None or not agent.covers(parent):
            return Plan(agent, "agent_add", {"agent": path}, lambda answer: refused(answer, "invalid_input", "agent"))
        if len(self.world.agents) >= AGENTS_MAX or path.count("/") > 6 or not self.reserve([("agent", parent)]):
            return None
        made = Agent(parent, parent.principal, path)

        def change(_):
            self.world.agents.append(made)
            self.after.append(lambda: self.log_in(made, agent.clients[0][0].call("token_new", agent=path)))

        return Plan(agent, "agent_add", {"agent": path}, lambda answer: answer["result"]["agent"]["path"] == path, change)

    def plan_agent_remove(self, agent):
        pool = [a for a in self.world.agents if a not in self.fixed and agent.covers(a) and a is not agent]
        if not pool:
            return None
        gone = self.world.below(self.random.choice(pool))
        dying = [p for p in self.world.processes if p.owner in gone and p.now == LIVE]
        alone = [key for a in gone for key in (("act", a), ("own", a), ("agent", a))]
        alone += [("session", s.id) for s in self.world.sessions if s.owner in gone]
        if not self.reserve(self.tags_of(dying), [*alone, *(("process", p) for p in dying)]):
            return None

        def change(_):
            for process in dying:
                process.dies(None, 9, "owner_retired")
            for other in gone:
                other.now = NONE
                for client, _ in other.clients:
                    client.until_closed()
                other.clients = []
            for session in self.world.sessions:
                if session.owner in gone:
                    session.now = NONE

        told = {"agents": len(gone), "ended": len(dying), "survivors": 0}
        return Plan(agent, "agent_remove", {"agent": gone[0].path}, lambda answer: answer["result"] == told, change)

    def plan_token(self, agent):
        """A new token for oneself or one below, and one more connection with it."""
        other = self.random.choice(self.world.below(agent))
        if len(other.clients) > 3 or not self.reserve([("agent", other)]):
            return None

        def change(answer):
            self.after.append(lambda: self.log_in(other, answer["result"]))

        return Plan(agent, "token_new", {"agent": other.path}, lambda answer: answer["result"]["agent"] == other.path, change)

    def plan_token_revoke(self, agent):
        """Of oneself or one below it ends a connection, and the operator's ends anybody's; of others nothing happens."""
        asking, asking_token = self.random.choice(agent.clients)
        other = self.random.choice(self.world.agents)
        tokens = [(client, number) for client, number in other.clients if number is not None]
        if len(tokens) < 2:
            return None
        client, number = self.random.choice(tokens)
        mine = agent.covers(other) or asking_token is None
        if mine and (other is agent or not self.lose(other, client)):
            return None
        if mine:
            self.after.append(client.until_closed)
        return Plan(agent, "token_revoke", {"id": number}, lambda answer: answer["result"]["revoked"] == mine, client=asking)

    def plan_drop(self, agent):
        """A connection goes, without a word."""
        tokens = [client for client, number in agent.clients if number is not None]
        if len(tokens) > 1:
            client = self.random.choice(tokens)
            if self.lose(agent, client):
                client.close()

    def lose(self, agent, client):
        """A connection on which nothing is under way ends in this round, and with it what is ephemeral there."""
        ending = [p for p in self.world.processes if p.connection is client and p.lease == "ephemeral" and p.now == LIVE]
        if client in [plan.client for plan in self.plans] or not self.end_together(agent, ending, ("own", agent)):
            return False
        agent.clients = [(other, number) for other, number in agent.clients if other is not client]
        for process in ending:
            process.dies(None, 15, "session_end")
        return True
