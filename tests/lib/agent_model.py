"""A model of who may see and do what, for tests that compare a keeper with it. It knows no requests and no time, only rights.

Several requests are under way at once, so that each thing has two states in a round: the one it had before (`was`) and the one
it has when all is answered (`now`). Who looks meanwhile may find either.
"""

NONE, LIVE, ENDED = "none", "live", "ended"
NO_SUCH, NOT_OWNER = "no_such_process", "not_owner"


class Thing:
    """What begins, changes and goes."""

    def __init__(self):
        self.was, self.now = NONE, LIVE

    def states(self):
        """All that it may have been meanwhile: what is new and has ended has lived, what lived and is released has ended."""
        between = {(NONE, ENDED): {LIVE}, (LIVE, NONE): {ENDED}}
        return {self.was, self.now} | between.get((self.was, self.now), set())

    def settle(self):
        self.was = self.now


class Agent(Thing):
    def __init__(self, parent, principal, path, limit=None):
        super().__init__()
        self.parent, self.principal, self.path, self.limit = parent, principal, path, limit
        self.clients = []  # (connection, number of its token or None)

    def line(self):
        """It and those above it."""
        agent = self
        while agent:
            yield agent
            agent = agent.parent

    def covers(self, other):
        """Whether the other is this one or below it."""
        return self in other.line()

    def label(self, owner):
        """What this agent calls another in a record."""
        return "self" if owner is self else owner.path.rpartition("/")[2]


class Session(Thing):
    def __init__(self, name, owner):
        super().__init__()
        self.id, self.owner = name, owner


class Process(Thing):
    def __init__(self, record, owner, session=None, connection=None):
        super().__init__()
        self.id, self.owner, self.session, self.connection = record["id"], owner, session, connection
        self.tag, self.call_id, self.lease = record["tag"], record["call_id"], record["lease"]
        self.number = int(self.id.rpartition("-")[2])
        self.text = b""
        self.end = None  # (code, signal, cause) that must be told

    def dies(self, code, number, cause):
        self.now, self.end = ENDED, (code, number, cause)


class World:
    def __init__(self):
        self.agents, self.processes, self.sessions = [], [], []
        self.ever = {}  # the owner of every process that there was

    def settle(self):
        """The round is over. Of what has gone some is kept: people go on asking for it."""
        for thing in (*self.agents, *self.processes, *self.sessions):
            thing.settle()
        self.ever.update((process.id, process.owner) for process in self.processes)
        recent = set(self.processes[-120:])
        self.processes = [process for process in self.processes if process.now != NONE or process in recent]
        self.agents = [agent for agent in self.agents if agent.now == LIVE]
        self.sessions = [session for session in self.sessions if session.now == LIVE]

    # Rights. Each gives all answers that are right in this round.

    def looks(self, agent, process):
        """What a look at a process may find: its states, or that there is no such process."""
        if process is None or not agent.covers(process.owner):
            return {NO_SUCH}
        return {NO_SUCH if state == NONE else state for state in process.states()}

    def touches(self, agent, process):
        """The same for what changes something."""
        found = self.looks(agent, process)
        if process is not None and process.owner is not agent:
            found = {NO_SUCH if state == NO_SUCH else NOT_OWNER for state in found}
        return found

    def lists(self, agent, things, finished, chosen=lambda thing: True):
        """(what a list must have, what it may have)."""
        wanted = {LIVE, ENDED} if finished else {LIVE}
        seen = [thing for thing in things if agent.covers(thing.owner) and chosen(thing)]
        return [t for t in seen if t.states() <= wanted], [t for t in seen if t.states() & wanted]

    def by_tag(self, agent, tag):
        """The process that a tag means to an agent, or a list of several; only for a round that changes none of them. One's own, live
        or ended, come before those of agents below."""
        seen = [p for p in self.processes if p.tag == tag and p.now != NONE and agent.covers(p.owner)]
        seen = [p for p in seen if p.owner is agent] or seen
        live = [p for p in seen if p.now == LIVE]
        if len(live) > 1:
            return live
        return live[0] if live else max(seen, key=lambda p: p.number, default=None)

    def below(self, agent):
        return [other for other in self.agents if agent.covers(other)]

    # Quotas. Ends and starts of one round have no order.

    def live(self, agent, state):
        return sum(1 for p in self.processes if agent.covers(p.owner) and getattr(p, state) == LIVE)

    def may_start(self, agent):
        """Whether there may have been room at every level."""
        return all(above.limit is None or self.least(above) < above.limit for above in agent.line())

    def may_be_full(self, agent, tried):
        """The scopes that may have been full. `tried` has the agent of each spawn of the round."""
        full = set()
        for above in agent.line():
            most = self.live(above, "was") + sum(1 for other in tried if above.covers(other)) - 1
            if above.limit is not None and most >= above.limit:
                full.add("agent" if above is agent else "ancestor")
        return full

    def least(self, agent):
        """The fewest processes that can have lived at one moment of the round."""
        return sum(1 for p in self.processes if agent.covers(p.owner) and p.was == p.now == LIVE)
