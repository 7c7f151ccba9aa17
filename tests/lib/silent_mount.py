"""A file system that can be made silent: FUSE, served by this program, which then starts another one beside it.

`silent_mount.py CONTROL VALID POINT... -- PROGRAM...` mounts one at each POINT (in the mount namespace that it is run in), serves
it from a child process and executes PROGRAM. Who connects to the socket CONTROL says by bytes what becomes of it: `s` it answers
nothing more, `a` it answers again, and what has waited first; at the end of the connection it goes, and the kernel fails all that
still waits. Each byte is sent back once it holds. Names and attributes are good for VALID seconds.

In each there are a folder `work`, where folders and special files can be made, and a socket `sock`. They are of a user other than root: such a file system cannot be shown with
other owners than it has.
"""

import ctypes
import os
import select
import socket
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, SETATTR, MKNOD, MKDIR, UNLINK, RMDIR, STATFS = 1, 2, 3, 4, 8, 9, 10, 11, 17
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 26, 27, 28, 29, 36, 42
UNANSWERED = (FORGET, INTERRUPT, BATCH_FORGET)
ENOENT, EEXIST, ENOSYS = 2, 17, 38
HEADER = struct.Struct("<IIQQIIII")
ROOT = 1
OWNER = 12345


class Node:
    def __init__(self, number, mode, owner):
        self.number, self.mode, self.owner, self.names = number, mode, owner, {}

    def attributes(self):
        return struct.pack("<6Q3I7I", self.number, 0, 0, 0, 0, 0, 0, 0, 0, self.mode, 2, self.owner, self.owner, 0, 4096, 0)


class Mount:
    def __init__(self, point, valid):
        self.valid = valid
        self.nodes = {}
        root = self.make(stat.S_IFDIR | 0o755)
        root.names = {b"work": self.make(stat.S_IFDIR | 0o755), b"sock": self.make(stat.S_IFSOCK | 0o777)}
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"silent", os.fsencode(point), b"fuse", 0, options) != 0:
            raise OSError(ctypes.get_errno(), f"mount {point}")

    def make(self, mode, owner=OWNER):
        number = ROOT + len(self.nodes)
        self.nodes[number] = Node(number, mode, owner)
        return self.nodes[number]

    def serve(self):
        """Answers what comes next."""
        try:
            request = os.read(self.fd, 1 << 17)
        except OSError:
            return  # it was interrupted before it could be read
        _, opcode, unique, node, self.user, *_ = HEADER.unpack_from(request)
        if opcode in UNANSWERED:
            return
        error, body = self.answer(opcode, self.nodes.get(node), request[HEADER.size :])
        try:
            os.write(self.fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)
        except OSError:
            pass  # nobody waits for it any more

    def entry(self, node):
        head = struct.pack("<QQQQII", node.number, 0, self.valid, self.valid, 0, 0)
        return 0, head + node.attributes()

    def new(self, folder, name, mode):
        if name in folder.names:
            return EEXIST, b""
        folder.names[name] = self.make(mode, self.user)
        return self.entry(folder.names[name])

    def answer(self, opcode, node, body):
        if opcode == INIT:
            return 0, struct.pack("<IIIIHHIIHHI7I", 7, 31, 1 << 16, 0, 16, 12, 1 << 16, 1, 0, 0, 0, *[0] * 7)
        if opcode == LOOKUP:
            found = node.names.get(body.rstrip(b"\0"))
            return self.entry(found) if found else (ENOENT, b"")
        if opcode == MKNOD:
            return self.new(node, body[16:].rstrip(b"\0"), struct.unpack_from("<I", body)[0])
        if opcode == MKDIR:
            return self.new(node, body[8:].rstrip(b"\0"), stat.S_IFDIR | struct.unpack_from("<I", body)[0])
        if opcode in (UNLINK, RMDIR):
            return (0 if node.names.pop(body.rstrip(b"\0"), None) else ENOENT), b""
        if opcode in (GETATTR, SETATTR):
            return 0, struct.pack("<QII", self.valid, 0, 0) + node.attributes()
        if opcode == OPENDIR:
            return 0, struct.pack("<QII", 0, 0, 0)
        if opcode in (READDIR, RELEASEDIR):
            return 0, b""
        if opcode == STATFS:
            return 0, struct.pack("<5Q4I6I", *[0] * 5, 4096, 255, 4096, 0, *[0] * 6)
        return ENOSYS, b""


def serve(mounts, control):
    """Until the end of the connection."""
    answering = True
    while True:
        watched = [control, *(mount.fd for mount in mounts if answering)]
        ready = select.select(watched, [], [])[0]
        if control in ready:
            word = control.recv(1)
            if not word:
                return
            answering = word == b"a"
            # What has come is answered first.
            control.send(word)
            continue
        for mount in mounts:
            if mount.fd in ready:
                mount.serve()


def main():
    control, valid, *rest = sys.argv[1:]
    split = rest.index("--")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(control)
        listener.listen()
        mounts = [Mount(point, int(valid)) for point in rest[:split]]
        child = os.fork()
        if child == 0:
            # Not a child of what is executed: that one ends what it finds below itself.
            if os.fork() == 0:
                os.setsid()
                serve(mounts, listener.accept()[0])
            os._exit(0)
        os.waitpid(child, 0)
    program = rest[split + 1 :]
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
