"""Certificates of a test's own, and connections over TLS that are no better than they have to be."""

import socket
import ssl
import subprocess

from .place import patience

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def certificate(folder, kind=EC):
    """(certificate, key) for localhost, as files in a folder."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-keyout", key, "-out", cert, "-subj", "/CN=localhost",
                    "-days", "2", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)  # fmt: skip
    return cert, key


def secured(address, cert, version=None):
    """A socket with the handshake behind it; `version` is the only one that is offered."""
    context = ssl.create_default_context(cafile=str(cert))
    if version:
        context.minimum_version = context.maximum_version = version
    plain = socket.create_connection(address, timeout=patience(30))
    return context.wrap_socket(plain, server_hostname="localhost")


def client_hello():
    """The first bytes of a client that means it."""
    written = ssl.MemoryBIO()
    with_nobody = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), written, server_hostname="localhost")
    try:
        with_nobody.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return written.read()
