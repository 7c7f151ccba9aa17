"""GET /openapi.json: a valid document, which tells of every route that there is and of no other."""

import copy
import re
import subprocess
import unittest

from lib import openapi
from lib.gateway import GatewayCase
from lib.place import BUILD

NOT_SERVED = {"login", "ceiling", "follow", "follow_events"}


def shape(path):
    return re.sub(r"\{[^}]*\}", "{}", path)


class OpenApi(GatewayCase):
    options = ("--control-plane",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        response = cls.shared.request("GET", "/openapi.json")
        assert response.status == 200, response.body
        cls.document = response.json()

    def routes(self):
        """(method, pattern) of the gateway's own table; those with any method are refusals."""
        listed = subprocess.run([BUILD / "bin" / "coop-gateway", "--routes"], capture_output=True, text=True, check=True).stdout
        rows = [line.split()[:2] for line in listed.splitlines()]
        return {(method, shape(pattern)) for method, pattern in rows if method != "*"}

    def documented(self):
        return {
            (method.upper(), shape(path))
            for path, item in self.document["paths"].items()
            for method in item
            if method in openapi.METHODS
        }

    def test_it_is_valid(self):
        self.assertEqual(openapi.faults(self.document), [])

    def test_the_check_finds_faults(self):
        """One planted at a time."""

        def plant(change):
            document = copy.deepcopy(self.document)
            change(document)
            return openapi.faults(document)

        paths = "/runtime/v1/process/{id}"
        for change in (
            lambda d: d["components"]["schemas"].pop("Process"),
            lambda d: d["paths"][paths].pop("parameters"),
            lambda d: d["paths"][paths]["get"].update(operationId="stopProcess"),
            lambda d: d["paths"][paths]["get"].pop("responses"),
            lambda d: d["paths"]["/v1/ops/info"]["post"]["requestBody"]["content"]["application/json"]["schema"].update(type="text"),
            lambda d: d["components"]["schemas"]["Process"]["required"].append("nothing"),
            lambda d: d["paths"].update({"/runtime/v1/process/{other}": {}}),
            lambda d: d["components"]["schemas"]["Output"].update(maximal=3),
            lambda d: d.update(openapi="3.0.1"),
        ):
            self.assertNotEqual(plant(change), [])

    def test_every_route_is_told_and_no_other(self):
        """What is not told is there to say that it is not provided. The operations stand for one row of the table, and are
        compared with the keeper's."""
        documented = {row for row in self.documented() if not row[1].startswith("/v1/ops/")}
        routes = {row for row in self.routes() if not row[1].startswith("/v1/ops/")}
        self.assertEqual(documented - routes, set())
        for method, pattern in sorted(routes - documented):
            with self.subTest(method=method, pattern=pattern):
                self.assert_refused(self.request(method, pattern.replace("{}", "x")), 501, "not_implemented")

    def test_every_operation_of_the_keeper_is_told(self):
        described = self.request("POST", "/v1/ops/describe", {}).json()["operations"]
        names = {row["name"] for row in described} - NOT_SERVED
        told = {path.rpartition("/")[2] for path in self.document["paths"] if path.startswith("/v1/ops/")}
        self.assertEqual(told, names)
        takes = {row["name"] for row in described if row["data"]}
        for name in names:
            operation = self.document["paths"][f"/v1/ops/{name}"]["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self.assertEqual("data_base64" in schema["properties"], name in takes, name)

    def schema_of(self, method, path, status):
        responses = self.document["paths"][path][method]["responses"]
        return responses[status]["content"]["application/json"]["schema"]

    def assert_matches(self, schema, value):
        self.assertEqual(openapi.Described(self.document).faults(schema, value), [])

    def test_answers_are_as_it_says(self):
        process = self.request("POST", "/v1/ops/spawn", {"argv": ["/bin/echo", "x"], "cwd": str(self.work)}).json()
        self.assert_matches(self.schema_of("post", "/v1/ops/spawn", "200"), process)
        found = process["process"]["id"]
        for name, args in (
            ("wait", {"id": found, "output_bytes": 10}),
            ("read", {"id": found, "stream": "combined"}),
            ("list", {"include_finished": True}),
            ("info", {}),
            ("doctor", {}),
            ("metrics", {}),
            ("history", {}),
            ("agent_list", {}),
            ("token_list", {}),
            ("session_list", {}),
            ("list_shells", {}),
        ):
            with self.subTest(name=name):
                answer = self.request("POST", f"/v1/ops/{name}", args).json()
                self.assert_matches(self.schema_of("post", f"/v1/ops/{name}", "200"), answer)
        self.assert_matches(self.schema_of("get", "/healthz", "200"), self.get("/healthz"))

    def test_runtime_answers_are_as_it_says(self):
        socket = self.sh("echo out; echo err >&2; exit 3")
        done = self.status(socket.pid)
        self.assert_matches({"$ref": "#/components/schemas/Process"}, done)
        for path in ("/runtime/v1/process", "/runtime/v1/process?all=true"):
            self.assert_matches(self.schema_of("get", "/runtime/v1/process", "200"), self.get(path))
        output = self.get(f"/runtime/v1/process/{socket.pid}/output")
        self.assert_matches(self.schema_of("get", "/runtime/v1/process/{id}/output", "200"), output)

    def test_refusals_are_as_it_says(self):
        schema = {"$ref": "#/components/schemas/Error"}
        for method, path, token, status in (
            ("GET", "/nothing", None, 404),
            ("GET", "/runtime/v1/process/nothing", None, 404),
            ("POST", "/v1/ops/nothing", None, 404),
            ("POST", "/v1/ops/status", None, 400),
            ("GET", "/openapi.json", False, 401),
        ):
            response = self.request(method, path, token=token)
            self.assertEqual(response.status, status, response.body)
            self.assert_matches(schema, response.json())


if __name__ == "__main__":
    unittest.main()
