"""The imitated Python client's files: see sdk_python.py."""

import base64
import gzip
from urllib.parse import urlencode

from .sdk_python_http import SdkError


class Files:
    def __init__(self, http):
        self.http = http

    def write(self, path, data, compress=False):
        raw = data.encode() if isinstance(data, str) else data
        params = {"path": path, "gzip": "true" if compress else None}
        return self.http.send_json("PUT", "/runtime/v1/files", params=params, data=gzip.compress(raw) if compress else raw,
                                   resource="file")["file"]

    def write_files(self, files):
        wanted = [{"path": path, "data_base64": base64.b64encode(data).decode()} for path, data in files]
        return self.http.send_json("POST", "/runtime/v1/files/write_files", json_body={"files": wanted}, resource="file")["files"]

    def read(self, path):
        return self.http.request("GET", "/runtime/v1/files", params={"path": path}, resource="file").body

    def info(self, path):
        return self.http.get_json("/runtime/v1/files/stat", params={"path": path}, resource="file")["file"]

    def exists(self, path):
        try:
            self.info(path)
        except SdkError as error:
            if error.kind != "FileNotFound":
                raise
            return False
        return True

    def list(self, path):
        return self.http.get_json("/runtime/v1/directories", params={"path": path}, resource="directory")["entries"]

    def make_dir(self, path):
        self.http.send_json("POST", "/runtime/v1/directories", params={"path": path}, resource="directory")

    def rename(self, old, new):
        body = {"from_path": old, "to_path": new}
        return self.http.send_json("POST", "/runtime/v1/files/move", json_body=body, resource="file")["file"]

    def remove(self, path):
        self.http.send_json("DELETE", "/runtime/v1/files", params={"path": path}, resource="file")

    def watch(self, path, recursive=False):
        query = urlencode({"path": path, "recursive": str(recursive).lower(), "include_entry": "false",
                           "allow_network_mounts": "false"})
        return Watch(self.http.websocket(f"/runtime/v1/files/watch?{query}"))


class Watch:
    """Reads only, and never comes back."""

    KINDS = {"create": "create", "delete": "remove", "remove": "remove", "rename": "rename"}

    def __init__(self, ws):
        self.ws = ws
        self.events = []

    def until(self, wanted):
        """Reads until all of some (kind, name) have come, in whatever order."""
        while not wanted <= set(self.events):
            frame = self.ws.message()
            if frame["type"] == "error":
                raise SdkError("Sandbox", frame["message"])
            for event in frame.get("events", ()) if frame["type"] == "events" else ():
                self.events.append((self.KINDS.get(event["type"], "write"), event["path"].rstrip("/").split("/")[-1]))

    def stop(self):
        self.ws.send_close()
        self.ws.drop()
