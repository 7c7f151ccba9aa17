"""64 MiB through the code of the imitated clients of /runtime/v1, exact (R-064)."""

import os
import threading
import unittest

from lib.flood import FLOOD, MIB, SIZE, digest, expected, flood
from lib.sdk_case import SdkCase
from lib.sdk_old_rust import OldRust, Rust


class SdkTest(SdkCase):
    """The imitated clients, which know nothing of gaps."""

    def exact(self, result, *names, size=SIZE):
        self.assertEqual((result["exit_code"], result["error"]), (0, None))
        for name in names:
            data = result[name].encode()
            self.assertEqual((name, len(data), digest(data)), (name, size, expected(size)))

    def test_r064_run_returns_all(self):
        self.each(lambda sandbox: self.exact(sandbox.commands.run(FLOOD, timeout=None), "stdout"))

    def test_r064_run_returns_both_streams(self):
        half = SIZE // 2
        command = f"{flood(half)} | tee /dev/stderr"
        self.each(lambda sandbox: self.exact(sandbox.commands.run(command, timeout=None), "stdout", "stderr", size=half))

    def test_r064_slow_callback_gets_all(self):
        """What the callback has not taken waits in the client, which reads on meanwhile."""
        pause, pieces = threading.Event(), []

        def callback(text):
            pieces.append(text)
            if len(pieces) < 300:
                pause.wait(0.005)

        def check(sandbox):
            pieces.clear()
            handle = sandbox.commands.run(FLOOD, background=True, timeout=None)
            self.exact(handle.wait(on_stdout=callback), "stdout")
            self.assertEqual(digest("".join(pieces).encode()), expected())

        self.each(check)

    def test_large_input_in_one_message(self):
        """None of them cuts what it is given into pieces."""
        data = os.urandom(SIZE)
        client = Rust(self.gateway.url, self.gateway.token)
        self.addCleanup(client.close)
        handle = client.start("sha256sum", [], stdin=True, timeout_ms=None)
        handle.send_stdin(data)
        handle.close_stdin()
        self.assertEqual(handle.wait()[1].split()[0].decode(), digest(data))
        part = data[: 24 * MIB]

        def check(sandbox):
            handle = sandbox.commands.run("sha256sum", background=True, stdin=True, timeout=None)
            handle.send_stdin(part)
            handle.close_stdin()
            self.assertEqual(handle.wait()["stdout"].split()[0], digest(part))

        self.each(check)

    def test_r064_rust_clients_too(self):
        for client in (OldRust(self.gateway.url, self.gateway.token), Rust(self.gateway.url, self.gateway.token)):
            with self.subTest(client=type(client).__name__):
                self.addCleanup(client.close)
                code, out, _, error = client.start("sh", ["-c", FLOOD], timeout_ms=None).wait()
                self.assertEqual((code, len(out), digest(out), error), (0, SIZE, expected(), None))


if __name__ == "__main__":
    unittest.main()
