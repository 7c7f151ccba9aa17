#!/usr/bin/python3
"""initramfs.py MODULES INIT OUT COMMAND…: an initramfs with the program INIT, the modules it needs and what it shall run."""

import gzip
import re
import sys
from pathlib import Path

# The host's files, a disk, and a layer over both; checksums that ext4 asks for by a name that nobody resolves here.
WANTED = ["virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "crc32c_generic", "ext4", "overlay"]


def module_name(path):
    return path.name.split(".ko")[0].replace("-", "_")


def depends(path):
    """What a module's own description says that it needs."""
    found = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
    return [name.replace("-", "_") for name in found.group(1).decode().split(",") if name] if found else []


def in_order(modules):
    """Every wanted module after those that it needs."""
    files = {module_name(path): path for path in modules.rglob("*.ko")}
    order = []

    def add(name):
        if name not in order:
            for needed in depends(files[name]):
                add(needed)
            order.append(name)

    for name in WANTED:
        add(name)
    return [files[name] for name in order]


class Archive:
    """What the kernel unpacks: cpio, the variant "newc"."""

    def __init__(self):
        self.bytes = bytearray()
        self.number = 0

    def add(self, name, mode, content=b""):
        self.number += 1
        name = name.encode() + b"\0"
        fields = [self.number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0]
        self.bytes += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        self.pad()
        self.bytes += content
        self.pad()

    def pad(self):
        self.bytes += bytes(-len(self.bytes) % 4)


def main():
    modules, init, out, *command = sys.argv[1:]
    archive = Archive()
    for folder in ("dev", "proc", "sys", "modules"):
        archive.add(folder, 0o040755)
    archive.add("init", 0o100755, Path(init).read_bytes())
    paths = in_order(Path(modules))
    for path in paths:
        archive.add(f"modules/{path.name}", 0o100644, path.read_bytes())
    archive.add("modules.list", 0o100644, "".join(f"/modules/{path.name}\n" for path in paths).encode())
    archive.add("command", 0o100644, "".join(f"{word}\n" for word in command).encode())
    archive.add("TRAILER!!!", 0)
    Path(out).write_bytes(gzip.compress(bytes(archive.bytes), 1))


if __name__ == "__main__":
    main()
