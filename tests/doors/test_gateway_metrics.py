"""GET /metrics in Prometheus' text format, and GET /healthz."""

import math
import os
import re
import signal
import unittest

from lib.gateway import GatewayCase
from lib.procs import wait_until

SAMPLE = re.compile(r"^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
NAME = re.compile(r"^coop_[a-z0-9_]+$")
TYPES = ("counter", "gauge", "histogram")
SUFFIXES = ("_bucket", "_sum", "_count")


class Exposition:
    """Takes the text apart as strictly as the format says."""

    def __init__(self, text):
        assert text.endswith("\n"), "the last line must end"
        self.types, self.helps, self.samples = {}, {}, {}
        current = None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                _, _, current, help_text = line.split(" ", 3)
                assert current not in self.helps and help_text, line
                self.helps[current] = help_text
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name == current and kind in TYPES and name not in self.types, line
                self.types[name] = kind
            else:
                self._add(current, line)
        for name, kind in self.types.items():
            self._check(name, kind)

    def _add(self, current, line):
        found = SAMPLE.match(line)
        assert found, line
        name, text, value = found.groups()
        allowed = {current + suffix for suffix in SUFFIXES} if self.types[current] == "histogram" else {current}
        assert name in allowed, f"{line}: among the samples of {current}"
        labels = LABEL.findall(text or "")
        assert "".join(f'{k}="{v}",' for k, v in labels).rstrip(",") == (text or ""), line
        key = (name, tuple(labels))
        assert key not in self.samples, f"twice: {line}"
        self.samples[key] = float(value)

    def _check(self, name, kind):
        assert NAME.match(name), name
        if kind == "counter":
            assert name.endswith("_total"), name
            assert all(value >= 0 for (own, _), value in self.samples.items() if own == name)
        else:
            assert not name.endswith("_total"), name
        if kind == "histogram":
            self._check_histogram(name)

    def _check_histogram(self, name):
        buckets = [(float(dict(labels)["le"]), value) for (own, labels), value in self.samples.items() if own == f"{name}_bucket"]
        assert [le for le, _ in buckets] == sorted({le for le, _ in buckets}), buckets
        counts = [value for _, value in buckets]
        assert counts == sorted(counts), buckets
        assert buckets[-1] == (math.inf, self[f"{name}_count"]), buckets
        assert self[f"{name}_sum"] >= 0

    def __getitem__(self, name):
        return self.samples[(name, ())]

    def of(self, name, **labels):
        return self.samples.get((name, tuple(labels.items())), 0)


class Metrics(GatewayCase):
    def metrics(self):
        response = self.request("GET", "/metrics")
        self.assertEqual(response.status, 200, response.body)
        self.assertEqual(response.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        return Exposition(response.body.decode("utf-8"))

    def op(self, name, **args):
        response = self.request("POST", f"/v1/ops/{name}", args)
        self.assertEqual(response.status, 200, response.body)
        return response.json()

    def spawn(self, *argv, **args):
        return self.op("spawn", argv=list(argv), cwd=str(self.work), **args)["process"]["id"]

    def test_the_text_is_well_formed_and_all_is_there(self):
        found = self.metrics()
        for name in (
            "coop_keeper_start_time_seconds",
            "coop_process_starts_total",
            "coop_process_start_failures_total",
            "coop_spawn_duration_seconds_count",
            "coop_exit_report_duration_seconds_count",
            "coop_output_captured_bytes_total",
            "coop_output_dropped_bytes_total",
            "coop_output_sent_bytes_total",
            "coop_keeper_subscribers",
            "coop_keeper_gaps_total",
            "coop_keeper_refused_connections_total",
            "coop_keeper_cut_connections_total",
            "coop_keeper_resident_memory_bytes",
            "coop_keeper_open_fds",
            "coop_gateway_requests_total",
            "coop_gateway_connections",
            "coop_gateway_subscribers",
            "coop_gateway_gaps_total",
            "coop_gateway_restarts_total",
            "coop_gateway_max_resident_memory_bytes",
            "coop_gateway_open_fds",
            "coop_gateway_cpu_seconds_total",
            "coop_gateway_crowded_out_total",
            "coop_gateway_feeds",
            "coop_gateway_heap_bytes",
            "coop_gateway_max_fds",
            "coop_gateway_output_bytes_total",
            "coop_gateway_sent_bytes_total",
            "coop_gateway_upgrades_total",
            "coop_gateway_websockets",
            "coop_keeper_buffer_bytes",
            "coop_keeper_connections",
            "coop_keeper_max_fds",
            "coop_keeper_waiting_connections",
        ):
            self.assertGreaterEqual(found[name], 0)
        self.assertEqual(found["coop_keeper_up"], 1)
        self.assertGreater(found["coop_keeper_start_time_seconds"], 1.7e9)
        self.assertGreater(found["coop_keeper_resident_memory_bytes"], 1 << 20)
        self.assertGreater(found["coop_gateway_max_resident_memory_bytes"], 1 << 20)
        self.assertGreater(found["coop_gateway_open_fds"], 4)

    def test_a_run_is_counted(self):
        before = self.metrics()
        done = self.spawn("/bin/echo", "hello")
        self.op("wait", id=done)
        killed = self.spawn("/bin/sleep", "300")
        running = self.metrics()
        self.assertEqual(running.of("coop_processes", state="running"), before.of("coop_processes", state="running") + 1)
        self.op("kill", id=killed)
        after = self.metrics()
        for name, more in (
            ("coop_process_starts_total", 2),
            ("coop_spawn_duration_seconds_count", 2),
            ("coop_exit_report_duration_seconds_count", 2),
            ("coop_output_captured_bytes_total", 6),
        ):
            self.assertEqual(after[name], before[name] + more, name)
        for cause in ("self_exit", "killed_by_request"):
            name = "coop_process_ends_total"
            self.assertEqual(after.of(name, cause=cause), before.of(name, cause=cause) + 1)
        self.assertGreater(after["coop_gateway_requests_total"], before["coop_gateway_requests_total"])

    def test_a_failed_start_is_counted(self):
        before = self.metrics()
        response = self.request("POST", "/v1/ops/spawn", {"argv": ["/no/such/program"], "cwd": str(self.work)})
        self.assertEqual(response.status, 500)
        name = "coop_process_start_failures_total"
        self.assertEqual(self.metrics()[name], before[name] + 1)

    def test_protections_are_told_as_the_doctor_does(self):
        found = self.metrics()
        for name, row in self.op("doctor")["protections"].items():
            for state in ("enforced", "partial", "none"):
                value = found.samples.get(("coop_sandbox_protection", (("protection", name), ("state", state))))
                self.assertEqual(value, row["state"] == state, (name, state))

    def test_wrong_tokens_are_counted(self):
        before = self.metrics()["coop_gateway_auth_failures_total"]
        self.request("GET", "/healthz", token="coop_1_wrong")  # an open route does not look
        self.assert_refused(self.request("GET", "/metrics", token="coop_1_wrong"), 401)
        self.assertEqual(self.metrics()["coop_gateway_auth_failures_total"], before + 1)

    def test_it_is_for_main_alone(self):
        token = self.gateway.agent_token("main/curious")
        self.assert_refused(self.request("GET", "/metrics", token=token), 403, "forbidden")
        self.assert_refused(self.request("GET", "/metrics", token=False), 401, "unauthorized")


class Health(GatewayCase):
    own = True

    def health(self):
        response = self.request("GET", "/healthz", token=False)
        return response.status, response.json()

    def test_it_is_open_and_tells_nothing_else(self):
        self.assertEqual(self.health(), (200, {"status": "ok"}))
        response = self.request("POST", "/healthz", {}, token=False)
        self.assertIn(response.status, (401, 405))

    def test_a_keeper_that_is_gone_is_told(self):
        """Once somebody has asked for it: health itself asks nothing. Serve starts another, and all is well again."""
        self.assertEqual(self.request("POST", "/v1/ops/info", {}).status, 200)
        os.kill(self.gateway.keeper_pid, signal.SIGKILL)
        states = set()

        def served_again():
            status = self.request("POST", "/v1/ops/info", {}).status
            states.add(status)
            self.assertIn(self.health(), ((200, {"status": "ok"}), (503, {"status": "keeper_unreachable"})))
            return status == 200

        wait_until(served_again, "another keeper serves")
        self.assertEqual(self.health(), (200, {"status": "ok"}))
        self.assertLessEqual(states, {200, 401, 503})


if __name__ == "__main__":
    unittest.main()
