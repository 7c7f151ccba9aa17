"""`metrics`: what happened since the keeper started, for the user's own main alone."""

from lib.agents import AgentCase

STATES = {"starting", "running", "stopped", "stopping", "exited", "signaled"}


class MetricsTest(AgentCase):
    def metrics(self, client=None):
        return (client or self.client).call("metrics")

    def check_histogram(self, histogram, count):
        """Buckets grow in both columns; all that was not longer than the last is in it."""
        limits = [bucket[0] for bucket in histogram["buckets"]]
        counts = [bucket[1] for bucket in histogram["buckets"]]
        self.assertEqual(limits, sorted(set(limits)))
        self.assertEqual(counts, sorted(counts))
        self.assertEqual((histogram["count"], counts[-1]), (count, count))
        self.assertEqual(histogram["sum"] > 0, count > 0)

    def test_a_fresh_keeper_has_counted_nothing(self):
        metrics = self.metrics()
        self.assertEqual((metrics["starts"], metrics["start_failures"], metrics["gaps"]), (0, 0, 0))
        self.assertEqual(metrics["bytes"], {"captured": 0, "dropped": 0, "sent": 0})
        self.assertEqual(metrics["processes"], dict.fromkeys(STATES, 0))
        self.assertEqual(set(metrics["ends"].values()), {0})
        self.check_histogram(metrics["spawn_seconds"], 0)
        info = self.client.call("info")
        self.assertEqual((metrics["started_at"], metrics["connections"]), (info["started_at"], info["connections"]))
        self.assertEqual((metrics["fds"]["limit"], set(metrics["memory"])), (info["fds"]["limit"], {"rss_bytes", "buffer_bytes"}))

    def test_starts_and_ends_are_counted_by_cause(self):
        self.finish(self.client), self.finish(self.client, "exit 3")
        process = self.start(self.client)["id"]
        self.assertEqual(self.metrics()["processes"]["running"], 1)
        self.client.call("kill", id=process)
        with self.refused("spawn_failed"):
            self.spawn("/no/such/program")
        with self.refused("invalid_input"):
            self.spawn("true", cwd="/no/such/folder")
        metrics = self.metrics()
        self.assertEqual((metrics["starts"], metrics["start_failures"]), (3, 2))
        self.assertEqual({cause: n for cause, n in metrics["ends"].items() if n and cause != "spawn_failed"},
                         {"self_exit": 2, "killed_by_request": 1})
        self.assertEqual(metrics["processes"] | {"exited": 0, "signaled": 0}, dict.fromkeys(STATES, 0))
        self.check_histogram(metrics["spawn_seconds"], 3)
        self.check_histogram(metrics["exit_seconds"], 3)

    def test_bytes_are_counted(self):
        """Those that came, those that were lost, those that clients were sent; and gaps."""
        process = self.sh("head -c 20000 /dev/zero; head -c 5000 /dev/zero >&2", ring_bytes=4096)["id"]
        self.ended(process)
        self.assertEqual(self.metrics()["bytes"], {"captured": 25000, "dropped": 25000 - 2 * 4096, "sent": 0})
        self.assertEqual(len(self.output(process)), 4096)
        self.assertEqual(self.metrics()["bytes"]["sent"], 4096)
        self.client.reply("follow", {"id": process})
        metrics = self.metrics()
        self.assertEqual((metrics["bytes"]["sent"], metrics["gaps"]), (4096 + 2 * 4096, 2))

    def test_subscribers_are_those_of_now(self):
        process = self.start(self.client)["id"]
        request = self.client.submit("follow", {"id": process})
        events = self.client.submit("follow_events", {})
        self.assertEqual(self.metrics()["subscribers"], 2)
        for number in (request, events):
            self.client.cancel(number)
        self.assertEqual(self.metrics()["subscribers"], 0)

    def test_protections_are_the_doctors(self):
        doctor = self.client.call("doctor")["protections"]
        self.assertEqual(self.metrics()["protections"], {name: held["state"] for name, held in doctor.items()})

    def test_it_is_for_the_users_own_main(self):
        """Also by a token; for nobody else."""
        self.assertEqual(self.metrics(self.keeper.login("main"))["starts"], 0)
        for client in self.family().values():
            self.assert_refused(client, "permission_denied", "metrics")
