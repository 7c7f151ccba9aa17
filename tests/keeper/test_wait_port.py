"""Waiting until a process listens on a port: its own tree's socket, in its own network, and nobody else's (B-044)."""

import os
import socket
import unittest

from lib import procs
from lib.agents import AgentCase

# Listens where it is told once a line comes, says so, and goes on until the next line.
SERVER = r"""
import socket, sys
family, address, port = sys.argv[1:4]
if "wait" in sys.argv:
    sys.stdin.readline()
server = socket.socket(getattr(socket, family))
if family == "AF_INET6":
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((address, int(port)))
if "idle" not in sys.argv:
    server.listen()
print("ready", server.getsockname()[1], flush=True)
sys.stdin.readline()
"""


class PortCase(AgentCase):
    def serve(self, *words, family="AF_INET", address="127.0.0.1", port=0, before=(), client=None, ready=True, **args):
        """A server that listens: its record, and its port."""
        argv = [*before, "python3", "-c", SERVER, family, address, str(port), *words]
        record = (client or self.client).call("spawn", argv=argv, stdin="pipe", **(self.granted() | args))["process"]
        if not ready:
            return record, port
        line = self.line(client or self.client, record["id"])
        return record, int(line.split()[1])

    def look(self, record, port, client=None, **args):
        args.setdefault("timeout_ms", 0)
        return (client or self.client).call("wait_port", id=record["id"], port=port, **args)

    def assert_listens(self, answer, address="127.0.0.1", pid=None):
        self.assertEqual((answer["listening"], answer["timed_out"], answer["address"]), (True, False, address), answer)
        if pid:
            self.assertEqual(answer["pid"], pid)

    def assert_not(self, answer, timed_out=True):
        fields = [answer[name] for name in ("listening", "timed_out", "address", "pid")]
        self.assertEqual(fields, [False, timed_out, None, None], answer)

    def go(self, record):
        self.client.reply("write_stdin", {"id": record["id"]}, b"\n")


class PortTest(PortCase):
    """In a network of the session's own."""

    def free_port(self):
        """One that nobody has, also where the network is the host's."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def test_b044_port_that_is_there_already(self):
        record, port = self.serve()
        answer = self.look(record, port)
        self.assert_listens(answer, pid=record["pid"])
        self.assertEqual((answer["process"]["id"], answer["process"]["state"]), (record["id"], "running"))
        self.assertEqual(sorted(answer), ["address", "listening", "pid", "process", "timed_out"])

    def test_b044_port_that_comes_later(self):
        record, port = self.serve("wait", port=self.free_port(), ready=False)
        self.assert_not(self.look(record, port))
        self.assert_not(self.look(record, port, timeout_ms=150))
        waits = [self.client.submit("wait_port", {"id": record["id"], "port": port}) for _ in range(3)]
        other = self.client.submit("wait_port", {"id": record["id"], "port": port ^ 1, "timeout_ms": 300})
        self.go(record)
        for wait in waits:
            self.assert_listens(self.client.finish(wait).result)
        self.assert_not(self.client.finish(other).result)

    def test_b044_port_of_ipv6(self):
        for address in ("::1", "::"):
            record, port = self.serve(family="AF_INET6", address=address)
            self.assert_listens(self.look(record, port), address, record["pid"])

    def test_b044_port_on_every_address(self):
        record, port = self.serve(address="0.0.0.0")
        self.assert_listens(self.look(record, port), "0.0.0.0")

    def test_b044_port_of_a_descendant(self):
        """One that has left the session and its parent, too."""
        for script in ('"$@"; true', 'exec 3<&0; (setsid "$@" <&3 &); exec sleep 300'):
            record, port = self.serve(before=["sh", "-c", script, "sh"])
            answer = self.look(record, port)
            self.assert_listens(answer)
            self.assertNotEqual(answer["pid"], record["pid"])
            self.assertIn("127.0.0.1", procs.cmdline(answer["pid"]))

    def test_b044_port_of_another_record(self):
        """In the same network: the server's port is not everybody's."""
        server, port = self.serve()
        other, own = self.serve()
        self.assert_not(self.look(other, port))
        self.assert_not(self.look(server, own))
        self.assert_listens(self.look(server, port))
        self.assert_not(self.look(other, port, timeout_ms=250))

    def test_b044_port_that_is_bound_and_does_not_listen(self):
        record, port = self.serve("idle")
        self.assert_not(self.look(record, port, timeout_ms=150))

    def test_b044_port_of_a_connection(self):
        """A client's own end of a connection, and a server's accepted one, listen to nothing."""
        script = (
            "import socket,sys; s=socket.create_server(('127.0.0.1',0)); c=socket.create_connection(s.getsockname());"
            "a=s.accept()[0]; p=s.getsockname()[1]; s.close(); print(p, c.getsockname()[1], flush=True); sys.stdin.readline()"
        )
        record = self.spawn("python3", "-c", script, stdin="pipe")
        for port in self.line(self.client, record["id"]).split():
            self.assert_not(self.look(record, int(port)))

    def test_b044_port_when_the_process_ends(self):
        record, port = self.serve("wait", port=self.free_port(), ready=False)
        wait = self.client.submit("wait_port", {"id": record["id"], "port": port})
        self.client.call("kill", id=record["id"])
        answer = self.client.finish(wait).result
        self.assert_not(answer, timed_out=False)
        self.assertEqual(answer["process"]["state"], "signaled")
        self.assert_not(self.look(record, port, timeout_ms=None), timed_out=False)

    def test_b044_port_that_closes_again(self):
        record, port = self.serve()
        self.assert_listens(self.look(record, port))
        self.go(record)
        self.ended(record["id"])
        self.assert_not(self.look(record, port), timed_out=False)

    def test_b044_port_of_what_an_ended_one_left(self):
        """The leader is gone; what it left still listens, and is its tree."""
        script = 'mkfifo f; "$@" </dev/zero >f & read -r line <f; echo "$line"; exit 0'
        record, port = self.serve(before=["sh", "-c", script, "sh"], on_exit="keep", cwd=str(self.work))
        self.assertEqual(self.ended(record["id"])["exit"]["code"], 0)
        answer = self.look(record, port)
        self.assert_listens(answer)
        self.assertEqual((answer["process"]["state"], answer["process"]["descendants"]), ("exited", 1))
        self.client.call("kill", id=record["id"])
        self.assert_not(self.look(record, port), timed_out=False)

    def test_b044_port_and_who_may_ask(self):
        who = self.family()
        record, port = self.serve(client=who["a"])
        self.assert_listens(self.look(record, port, client=who["a"]))
        self.assert_listens(self.look(record, port))
        answers = {}
        for name in ("x", "b", "alice"):
            for target in (record["id"], "psh-1-999999"):
                error = self.refusal(who[name], "wait_port", id=target, port=port)
                answers[name, target] = (error.code, error.message, error.details)
        self.assert_same(answers)
        self.assertEqual({code for code, _, _ in answers.values()}, {"no_such_process"})

    def test_b044_port_cancelled_and_dropped(self):
        """Neither a cancelled wait nor a connection that goes leaves something behind."""
        record, port = self.serve("wait", port=self.free_port(), ready=False)
        wait = self.client.submit("wait_port", {"id": record["id"], "port": port})
        self.client.cancel(wait)
        with self.refused("cancelled"):
            self.client.finish(wait)
        with self.connect() as other:
            for _ in range(20):
                other.submit("wait_port", {"id": record["id"], "port": port})
            other.call("info")
        self.go(record)
        self.assert_listens(self.look(record, port, timeout_ms=None))

    def test_b044_port_with_many_who_wait(self):
        """More than one turn can look at; all are answered."""
        record, port = self.serve("wait", port=self.free_port(), ready=False)
        clients = [self.connect() for _ in range(4)]
        waits = [(client, client.submit("wait_port", {"id": record["id"], "port": port})) for client in clients for _ in range(100)]
        self.go(record)
        for client, wait in waits:
            self.assert_listens(client.finish(wait).result)

    def test_b044_port_behind_many_descriptors(self):
        """More than one look follows: the next goes on where it ended."""
        script = (
            "import os,socket,sys\n"
            "for _ in range(900): os.dup(0)\n"
            "for _ in range(20):\n"
            "    if not os.fork(): os.read(0, 1); os._exit(0)\n"
            "if os.fork(): os.wait(); os._exit(0)\n"
            "s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1], flush=True); sys.stdin.readline()"
        )
        record = self.spawn("python3", "-c", script, stdin="pipe")
        port = int(self.line(self.client, record["id"]))
        self.assert_listens(self.look(record, port, timeout_ms=None))

    def test_b044_port_bad_arguments(self):
        record = self.sh("exec sleep 300")
        for args, field in (({}, "port"), ({"port": 0}, "port"), ({"port": 65536}, "port"), ({"port": "80"}, "port"),
                            ({"port": 80, "timeout_ms": -1}, "timeout_ms"), ({"port": 80, "host": "x"}, "host")):
            details = self.assert_refused(self.client, "invalid_input", "wait_port", id=record["id"], **args)
            self.assertEqual(details["field"], field)

    def test_b044_port_of_the_host(self):
        """The test's own server is nobody's, also where the network is the host's."""
        record = self.sh("exec sleep 300")
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.assert_not(self.look(record, server.getsockname()[1], timeout_ms=150))


class HostNetworkTest(PortTest):
    """Without namespaces, in the host's network: what tells records apart there is who has the socket."""

    profile = "full"

    @unittest.skipUnless(os.geteuid() == 0, "makes a network")
    def test_b044_port_in_a_network_that_it_made_itself(self):
        """Nobody else could connect to it."""
        up = 'exec 3<&0; unshare -n sh -c \'ip link set lo up 2>/dev/null; exec "$@" <&3\' sh "$@"'
        record, port = self.serve(before=["sh", "-c", up, "sh"], address="0.0.0.0")
        self.assert_not(self.look(record, port, timeout_ms=150))


class OtherNetworksTest(PortCase):
    def test_b044_port_in_two_sessions(self):
        """The same port twice: each session has its own network."""
        sessions = [self.client.call("session_new")["session"]["id"] for _ in range(2)]
        first, port = self.serve(session=sessions[0])
        second, _ = self.serve("wait", port=port, session=sessions[1], ready=False)
        self.assert_not(self.look(second, port, timeout_ms=150))
        self.go(second)
        self.assert_listens(self.look(second, port, timeout_ms=None), pid=second["pid"])
        self.assert_listens(self.look(first, port), pid=first["pid"])

    def test_b044_port_without_a_network(self):
        """A network of the command's own: loopback is not up, and one can listen there all the same."""
        record, port = self.serve(address="0.0.0.0", **self.granted(network="none"))
        self.assert_listens(self.look(record, port), "0.0.0.0", record["pid"])

    def test_b044_port_in_the_hosts_network_with_a_sandbox(self):
        record, port = self.serve(**self.granted(network="host"))
        self.assert_listens(self.look(record, port), pid=record["pid"])
        own, _ = self.serve("wait", port=port, ready=False)
        self.assert_not(self.look(own, port, timeout_ms=150))
        self.go(own)
        self.assert_listens(self.look(own, port, timeout_ms=None), pid=own["pid"])


if __name__ == "__main__":
    unittest.main()
