"""The scratch copy of the tree, and builds of it."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path


def git(top, *words):
    return subprocess.run(["git", "-C", top, *words], check=True, capture_output=True).stdout


def tracked(top):
    names = git(top, "ls-files", "-z", "-co", "--exclude-standard").decode().split("\0")
    return sorted(name for name in names if name and (Path(top) / name).is_file())


def key(top):
    """The commit; with a digest of what differs from it, if anything does."""
    commit = git(top, "rev-parse", "--short=12", "HEAD").decode().strip()
    changes = git(top, "diff", "HEAD") + git(top, "ls-files", "-o", "--exclude-standard")
    return commit + (f"+{hashlib.sha256(changes).hexdigest()[:8]}" if changes else "")


def sync(top, copy):
    """Makes the copy like the tree. Files that are alike stay untouched, so that little is compiled again."""
    wanted = tracked(top)
    for name in wanted:
        source, target = Path(top) / name, Path(copy) / name
        data = source.read_bytes()
        if not target.is_file() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        target.chmod(source.stat().st_mode & 0o777)
    keep = set(wanted)
    for parent, folders, names in os.walk(copy):
        folders[:] = [folder for folder in folders if folder != "__pycache__"]
        for name in names:
            path = Path(parent) / name
            if str(path.relative_to(copy)) not in keep:
                path.unlink()


def build(copy, folder, options=()):
    """Configures once, compiles and stages; raises with the compiler's words."""
    env = {**os.environ, "CC": os.environ.get("CC") or ("ccache gcc" if shutil.which("ccache") else "gcc")}
    argv = [Path(copy) / "scripts" / "build", folder, *options]
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise RuntimeError(done.stdout.decode(errors="replace")[-4000:])


def test_files(top):
    """All test files of the suite: the unit programs first, by their sources."""
    tests = Path(top) / "tests"
    found = sorted(f"unit/{path.stem}" for path in (tests / "unit").glob("test_*.c"))
    for folder in ("keeper", "escape", "doors"):
        found += sorted(str(path.relative_to(tests)) for path in (tests / folder).glob("test_*.py"))
    return found
