"""With a token over HTTP nothing can be read by naming it that the token's agent may not see: neither what is the keeper's own, nor the
kernel's, nor another sandbox's (S-117, S-123)."""

import os

from lib.gateway import GatewayCase

SECRET = "secret-of-the-host"
KERNELS = ("/proc", "/proc/1", "/sys", "/dev", "/dev/shm", "/run")


class ReadsTest(GatewayCase):
    options = ("--control-plane",)

    def op(self, name, token, **args):
        return self.request("POST", f"/v1/ops/{name}", args, token=token)

    def create(self):
        response = self.request("POST", "/v1/sandboxes", {})
        self.assertEqual(response.status, 201, response.body)
        return response.json()["session"]["token"]

    def hostile(self):
        place, data = self.gateway.place, self.gateway.place.dir / "data"
        secret = place.state / "planted"
        if not secret.exists():
            secret.write_text(SECRET)
            (place.dir / "planted").write_text(SECRET)
        (link := place.work / "link").exists() or link.symlink_to(place.state)
        folders = [path for path in data.iterdir()] if data.exists() else []
        return [str(path) for path in (
            place.state, secret, self.gateway.ready["token_file"], place.socket, place.dir, "/tmp", "/", link, link / "planted", data, *folders,
            *(path / "work" for path in folders), *(path / "tmp" for path in folders), *KERNELS, f"/usr/..{place.state}", "/root", os.path.expanduser("~"))]  # fmt: skip

    def asks(self, path):
        yield {"argv": ["grep", "-rs", SECRET, str(self.gateway.place.dir)], "sandbox": {"root": "minimal", "allow_read": [path]}}
        yield {"argv": ["true"], "sandbox": {"root": "minimal", "profile": "read-only", "allow_read": ["/usr", path]}}

    def test_s123_every_kind_of_agent(self):
        """Each is refused by that name; nothing is started."""
        one, two = self.create(), self.create()
        with_workspace, without = self.gateway.agent_token("main/with"), self.gateway.agent_token("main/without", workspace=None)
        kept = set(os.listdir(self.gateway.place.dir / "data"))
        self.assertEqual(len(kept), 2)
        for token in (one, two, with_workspace, without):
            before = self.op("list", token, include_finished=True).json()["processes"]
            me = self.op("info", token).json()["you"]["agent"]
            own = self.gateway.keeper().call("agent_show", agent=me)["agent"].get("folder")
            for path in self.hostile():
                if path == own:
                    continue
                for args in self.asks(path):
                    with self.subTest(path=path, agent=me):
                        response = self.op("spawn", token, **args)
                        self.assertIn(response.status, (400, 403), response.body)
                        self.assertIn("sandbox.allow_read", response.json()["details"]["field"])
            self.assertEqual(self.op("list", token, include_finished=True).json()["processes"], before)

    def test_s117_main(self):
        """The owner's own token: the keeper's and the kernel's own are not to be named."""
        place = self.gateway.place
        for path in (place.state, place.state / "gateway.token", *KERNELS, place.work / "to-proc"):
            if str(path).endswith("to-proc"):
                path.symlink_to("/proc")
            response = self.op("spawn", None, argv=["true"], cwd="/", sandbox={"root": "minimal", "allow_read": [str(path)]})
            self.assertIn((response.status, response.json()["error"]), ((400, "invalid_input"), (403, "boundary_escape")), response.body)
            self.assertIn("allow_read[0]", response.body.decode())

    def test_s123_an_agent_gives_nothing_that_it_has_not(self):
        token = self.gateway.agent_token("main/giver", workspace=None)
        for path in (self.gateway.place.state, "/root", "/proc", self.gateway.place.work):
            response = self.op("agent_add", token, agent="main/giver/x", sandbox={"allow_read": [str(path)]})
            self.assertEqual(response.status, 403, response.body)
