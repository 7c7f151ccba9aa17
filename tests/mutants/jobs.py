"""Several workers at a time. Each is a process with folders and children of its own, so that it may end all that is below it."""

import contextlib
import multiprocessing
import signal
import traceback
from multiprocessing.connection import wait

from lib import procs

FORK = multiprocessing.get_context("fork")
ENDING = {signal.SIGTERM}


def serve(pipe, prepare, number):
    """A worker: prepare(number) gives the function that does its tasks."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        procs.become_subreaper()
        do = prepare(number)
        while True:
            pipe.send((do(pipe.recv()), ""))
    except (EOFError, KeyboardInterrupt):
        pass
    except Exception:
        pipe.send((None, traceback.format_exc()))


class Workers:
    """Workers end with the block that uses them, and put back what they had changed."""

    def __init__(self, count, prepare):
        self.pipes, self.processes = [], []
        for number in range(count):
            ours, theirs = FORK.Pipe()
            process = FORK.Process(target=serve, args=(theirs, prepare, number), daemon=True)
            # One that is told to end while it has hardly begun must not miss it: what is raised in the hooks of
            # fork is ignored.
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
            try:
                process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()

    def do(self, tasks):
        """Gives each task to the next worker that is free, and yields (task, answer) as they end. A task is asked for
        only when somebody is free, so that the tasks may stop as soon as enough is known."""
        tasks, busy, idle = iter(tasks), {}, list(self.pipes)
        while True:
            while idle and (task := next(tasks, None)) is not None:
                pipe = idle.pop()
                with contextlib.suppress(BrokenPipeError):  # it has ended, and said why
                    pipe.send(task)
                busy[pipe] = task
            if not busy:
                return
            for pipe in wait(list(busy)):
                answer, fault = pipe.recv()
                if fault:
                    raise RuntimeError(f"a worker ended:\n{fault}")
                idle.append(pipe)
                yield busy.pop(pipe), answer
