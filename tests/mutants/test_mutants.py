"""The tool behind `make mutants`: what it takes for code, what it changes there, and how it counts and ends what it ran."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from lib import procs
from lib.place import BUILD
from mutants import coverage, ctokens, jobs, operators, report, runner, trial
from mutants.runner import Run, Runner

HEAD = "#include <errno.h>\n#define BOUND \\\n\t(1 < 2)\n"


def changes(body, kind="int", operator=None):
    """{operator: texts of the first line that is another one} of all changes of a function's body."""
    source = f"{HEAD}\nstatic {kind} f(int a, int b)\n{{\n{body}\n}}\n"
    found = {}
    for place in operators.Reader("src/keeper/x.c", source).read():
        other = place.apply(source)
        assert other.count("\n") == source.count("\n"), place
        lines = zip(source.splitlines(), other.splitlines())
        found.setdefault(place.operator, []).append(next(new.strip() for old, new in lines if old != new))
    return found.get(operator, []) if operator else found


class TokenTest(unittest.TestCase):
    def test_comments_texts_and_directives_are_no_code(self):
        source = '/* a < b */ // c\n#if 1 < 2 /* x\n y */\nint f(void)\n{\n\tputs("a \\" < b");\n\treturn \'<\';\n}\n'
        words = [token.text for token in ctokens.tokens(source)]
        self.assertEqual(words, ["int", "f", "(", "void", ")", "{", "puts", "(", '"a \\" < b"', ")", ";", "return", "'<'", ";", "}"])

    def test_lines_and_starts(self):
        source = "int a;\n\n/* x\n */ int\tb;\n"
        found = ctokens.tokens(source)
        self.assertEqual([(token.text, token.line) for token in found if token.kind == "name"], [("int", 1), ("a", 1), ("int", 4), ("b", 4)])
        self.assertTrue(all(source[token.start : token.end] == token.text for token in found))

    def test_long_signs_are_one_token(self):
        words = [token.text for token in ctokens.tokens("a <<= b->c >= d++ + 0x1fu && 1.5e-3 ...")]
        self.assertEqual(words, ["a", "<<=", "b", "->", "c", ">=", "d", "++", "+", "0x1fu", "&&", "1.5e-3", "..."])

    def test_what_does_not_close_is_refused(self):
        for source in ("int f(void) {", "a)", "(]"):
            with self.subTest(source=source), self.assertRaises(ctokens.Unreadable):
                ctokens.partners(ctokens.tokens(source))

    def test_functions_and_no_tables(self):
        source = "static const int t[] = {1, 2};\nstruct s {\n\tint a;\n};\nstatic char *g(int x)\n{\n\treturn 0;\n}\nssize_t h(void)\n{\n}\n"
        found = ctokens.tokens(source)
        functions = ctokens.functions(found, ctokens.partners(found))
        self.assertEqual([(one.name, one.returns_number()) for one in functions], [("g", False), ("h", True)])

    def test_all_sources_are_read(self):
        top = Path(__file__).resolve().parents[2]
        found = operators.places(top, operators.PROMISES)
        self.assertEqual(len({place.name for place in found}), len(found))
        self.assertEqual({operators.area_of(place.file) for place in found}, set(operators.PROMISES))


class OperatorTest(unittest.TestCase):
    def test_comparison(self):
        self.assertEqual(changes("\treturn a < b;", operator="comparison"), ["return a <= b;"])
        self.assertEqual(changes("\treturn a == b;", operator="comparison"), ["return a != b;"])

    def test_logic_and_truth(self):
        self.assertEqual(changes("\treturn a && b || true;", operator="logic"), ["return a || b || true;", "return a && b && true;"])
        self.assertEqual(changes("\tx(true);", operator="truth"), ["x(false);"])

    def test_negation(self):
        self.assertEqual(changes("\tif (a)\n\t\tx(1);\n\twhile (b && a)\n\t\ty();", operator="negation"), ["if (!(a))", "while (!(b && a))"])
        self.assertEqual(changes("\twhile (true)\n\t\tx(1);", operator="negation"), [])

    def test_constants_move_by_one(self):
        for text in changes("\tx(41, 7u);", operator="constant"):
            self.assertIn(text, ("x(40, 7u);", "x(42, 7u);", "x(41, 6u);", "x(41, 8u);"))
        self.assertEqual(changes("\tchar t[64];\n\tstruct s c = {0};\n\tx(0x10, 1.5, '1');", operator="constant"), [])

    def test_sums_have_two_sides(self):
        self.assertEqual(changes("\tx(a + b, -a, (int)-a, a[1] - b);", operator="sum"), ["x(a - b, -a, (int)-a, a[1] - b);", "x(a + b, -a, (int)-a, a[1] + b);"])
        self.assertEqual(changes("\ta += b;", operator="sum"), ["a -= b;"])

    def test_returned_errors(self):
        self.assertEqual(changes("\treturn 0;", operator="return"), ["return -5;"])
        self.assertEqual(changes("\treturn -EINVAL;", operator="return"), ["return 0;"])
        self.assertEqual(changes("\treturn coop_err_set(e, 1);", operator="return"), ["return (void)coop_err_set(e, 1), 0;"])
        self.assertEqual(changes("\treturn 0;", kind="bool", operator="return"), [])

    def test_calls_and_assignments_are_left_out(self):
        self.assertEqual(changes("\tx(a);", operator="call"), ["(void)0;"])
        self.assertEqual(changes("\t(void)x(a,\n\t\tb);", operator="call"), ["(void)0;"])
        self.assertEqual(changes("\tk->on(a);", operator="call"), ["(void)0;"])
        self.assertEqual(changes("\tk->a[b] = 1;", operator="assignment"), ["(void)0;"])
        self.assertEqual(changes("\tint c = x(a);", operator="call"), [])
        self.assertEqual(changes("\tfor (a = 1; a < b; a++)\n\t\tx(a);", operator="assignment"), [])

    def test_quiet_calls_stay(self):
        for call in ("coop_log(1, a < 2);", "free(a);", "coop_x_free(a + 1);", "assert(a == 1);", "static const int t[] = {1, 2};"):
            with self.subTest(call=call):
                self.assertEqual(changes(f"\t{call}"), {})

    def test_flags(self):
        self.assertEqual(changes("\tx(O_A | O_B | O_C);", operator="flag"), ["x(O_A  | O_C);", "x( O_B | O_C);", "x(O_A | O_B );"])

    def test_jumps(self):
        self.assertEqual(changes("\tif (a)\n\t\treturn b;\n\treturn 1;", operator="jump"), ["(void)0;"])
        self.assertEqual(changes("\twhile (a)\n\t\tcontinue;", operator="jump"), ["(void)0;"])


class WorkersTest(unittest.TestCase):
    def test_each_task_is_done_once_and_no_more_are_asked_for(self):
        asked, answers = [], []

        def tasks():
            for task in range(100):
                if len(answers) >= 10:
                    return
                asked.append(task)
                yield task

        with jobs.Workers(3, lambda worker: lambda task: (worker, task * 2)) as workers:
            for task, (worker, answer) in workers.do(tasks()):
                self.assertIn(worker, range(3))
                self.assertEqual(answer, task * 2)
                answers.append(task)
        self.assertEqual(sorted(answers), asked)
        self.assertLess(len(asked), 14)

    def test_a_worker_that_breaks_is_told(self):
        for prepare in (lambda worker: 1 // 0, lambda worker: lambda task: 1 // 0):
            with self.subTest(prepare=prepare), jobs.Workers(2, prepare) as workers, self.assertRaisesRegex(RuntimeError, "ZeroDivisionError"):
                list(workers.do([1, 2, 3]))

    def test_workers_end_with_the_block_and_their_last_words_are_heard(self):
        with tempfile.TemporaryDirectory() as folder:

            def work(task):
                try:
                    Path(folder, f"at-{task}").touch()
                    time.sleep(60)
                finally:
                    Path(folder, f"put-back-{task}").touch()

            before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
            try:
                with jobs.Workers(2, lambda worker: work) as workers:
                    for pipe in workers.pipes:
                        pipe.send(workers.pipes.index(pipe))
                    procs.wait_until(lambda: len(os.listdir(folder)) == 2, "both work")
            finally:
                signal.signal(signal.SIGTERM, before)
            self.assertEqual(sorted(os.listdir(folder)), ["at-0", "at-1", "put-back-0", "put-back-1"])


    def test_one_that_is_ended_while_it_begins(self):
        """What a handler raises while Python is busy with the fork is ignored: such a worker stayed, and so did the tool."""
        script = (
            "import os, signal, sys; from mutants.jobs import Workers;"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(130));"
            "os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM));"
            "workers = Workers(1, lambda worker: print).processes;"
            "workers[0].join(20);"
            "os._exit(workers[0].exitcode or 1)"
        )
        where = Path(__file__).resolve().parents[1]
        done = subprocess.run([sys.executable, "-c", script], cwd=where, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 130, done.stderr)


class PlanTest(unittest.TestCase):
    def planner(self, source, known, budget):
        """For a tree with the tests of this one, whose only source is src/a.c."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "src").mkdir()
        (folder / "src" / "a.c").write_text(source)
        (folder / "tests").symlink_to(Path(__file__).resolve().parents[1])
        return trial.Planner(folder, known, budget)

    def test_all_is_every_test_that_runs_the_line(self):
        names = [f"keeper/test_wait.py::T.test_{number}" for number in range(5)]
        known = coverage.Map(names, {"src/a.c": {"10": [0, 1, 3]}}, dict.fromkeys(names, 50))
        planner = trial.Planner(Path(__file__).resolve().parents[2], known, 90)
        place = operators.Place("src/a.c", 12, 0, 1, "", "call")
        self.assertEqual([names for file, names, _ in planner.plan(place) if names], [names[:1]])
        self.assertEqual([names for file, names, _ in planner.all(place) if names], [[names[0], names[1], names[3]]])
        self.assertEqual([names for file, names, _ in planner.all(place, [names[0]]) if names], [[names[1], names[3]]])

    def test_one_that_takes_long_comes_last(self):
        names = [f"keeper/test_wait.py::T.test_{number}" for number in range(4)]
        known = coverage.Map(names, {"src/a.c": {"10": [0, 1, 2, 3]}}, dict(zip(names, (80, 5, 6, 7))))
        planner = trial.Planner(Path(__file__).resolve().parents[2], known, 90)
        place = operators.Place("src/a.c", 12, 0, 1, "", "call")
        self.assertEqual([names for file, names, _ in planner.plan(place) if names], [names[1:]])
        self.assertEqual([sorted(names) for file, names, _ in planner.all(place) if names], [names])

    def test_those_that_run_the_very_block_come_first(self):
        """However long they take, and whatever the others are called: a rare line is often run by one of many."""
        names = ["keeper/test_a.py::T.test_a", "keeper/test_wait.py::T.test_idle"]
        known = coverage.Map(names, {"src/a.c": {"1": [1], "2": [0]}}, {names[0]: 80, names[1]: 5})
        planner = self.planner("if (idle &&\n    wait)\n", known, 90)
        for budget, wanted in ((90, names), (60, names[:1])):
            rows = planner.plan(operators.Place("src/a.c", 2, 0, 1, "", "negation"), budget)
            self.assertEqual([name for file, ran, _ in rows for name in ran], wanted)

    def test_names_with_the_words_of_the_lines_come_first(self):
        names = [f"keeper/test_wait.py::T.test_{name}" for name in ("a", "an_idle_keeper_leaves", "b", "keeper_lives")]
        known = coverage.Map(names, {"src/a.c": {"1": [0, 1, 2, 3]}}, dict.fromkeys(names, 5))
        planner = self.planner("bool idle = keeper->idle;\nif (idle)\n\treturn;\n", known, 12)
        [first] = [names for file, names, _ in planner.plan(operators.Place("src/a.c", 2, 0, 1, "", "negation")) if names]
        self.assertEqual(first, [names[1], names[0]])

    def test_missing_memory_is_for_those_that_take_it_away(self):
        names = ["keeper/test_wait.py::T.test_a", "keeper/test_sparse_memory.py::T.test_b"]
        known = coverage.Map(names, {"src/a.c": {"1": [0, 1]}}, dict.fromkeys(names, 50))
        planner = self.planner("return -ENOMEM;\nreturn -EINVAL;\n", known, 90)
        for line, first in ((1, names[1]), (2, names[0])):
            place = operators.Place("src/a.c", line, 0, 1, "", "return")
            self.assertEqual([names for file, names, _ in planner.plan(place) if names], [[first]])


class DrawTest(unittest.TestCase):
    def test_a_seed_draws_the_same_again(self):
        places = list(range(1000))
        self.assertEqual(trial.order(places, 7), trial.order(places, 7))
        self.assertNotEqual(trial.order(places, 7), trial.order(places, 8))
        self.assertEqual(sorted(trial.order(places, 7)), places)

    def test_tests_of_a_line_are_those_of_its_block(self):
        known = coverage.Map(["one", "two"], {"src/a.c": {"10": [0], "20": [1]}}, {"one": 1, "two": 1})
        self.assertEqual([known.tests("src/a.c", line) for line in (9, 10, 19, 20, 99)], [None, ["one"], ["one"], ["two"], ["two"]])
        # A condition that goes on: its first part was run by those of the line before.
        known = coverage.Map(["one", "two"], {"src/a.c": {"10": [0], "11": [1], "rank": [1, 0]}}, {"one": 1, "two": 1})
        self.assertEqual([known.tests("src/a.c", line) for line in (10, 11)], [["one"], ["two", "one"]])
        self.assertEqual([known.inside("src/a.c", line) for line in (9, 10, 11)], [set(), {"one"}, {"two"}])
        self.assertIsNone(known.tests("src/b.c", 10))

    def test_those_come_first_that_run_most_of_a_file(self):
        rows = {"10": {0, 1, 2}, "20": {1}, "30": {1, 2}}
        self.assertEqual(coverage.Map._rank("src/a.c", rows, ["x", "y", "z"], {"x": 1, "y": 9, "z": 2}), [1, 2, 0])

    def test_a_unit_test_is_near_only_to_its_own(self):
        grep = "src/doors/tools/core/grep.c"
        self.assertGreater(coverage.nearness("doors/test_tool_read.py::GrepTest.test_grep", grep), coverage.nearness("unit/test_audit", grep))
        self.assertGreater(coverage.nearness("unit/test_audit", "src/records/audit.c"), coverage.nearness("keeper/test_audit.py::A.test_b", "src/records/audit.c"))
        self.assertEqual(coverage.nearness("unit/test_audit", grep), 0)


def row(fate, **more):
    return {"file": "src/policy/x.c", "line": 3, "was": "if (a <\tb)", "is": "if (a <= b)", "operator": "comparison", "fate": fate, **more}


class ReportTest(unittest.TestCase):
    def reviewed(self, text):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            return report.read_reviewed(file.name)

    def test_reviewed_ones_do_not_count_but_stay_named(self):
        reviewed = self.reviewed("# why\nsrc/policy/x.c\tif (a < b)\tcomparison\tboth are the same there\n")
        rows = [row("survived"), row("noticed")]
        self.assertTrue(report.passed(rows, reviewed))
        self.assertFalse(report.passed(rows, {}))
        self.assertIn("both are the same there", "\n".join(report.survivors(rows, reviewed)))

    def test_what_any_test_noticed_is_noticed(self):
        rows = [row("survived", all="noticed by doors/test_a.py::T.test_a"), row("survived", all="survived")]
        self.assertEqual([report.settle(one, {}) for one in rows], ["noticed", "survived"])

    def test_a_reason_is_wanted(self):
        with self.assertRaises(ValueError):
            self.reviewed("src/policy/x.c\tif (a < b)\tcomparison\t\n")

    def test_eighty_five_of_a_hundred(self):
        self.assertTrue(report.passed([row("noticed")] * 80 + [row("timeout")] * 5 + [row("survived")] * 15 + [row("equivalent")] * 50, {}))
        self.assertFalse(report.passed([row("noticed")] * 84 + [row("survived")] * 16, {}))

    def test_table_and_survivors(self):
        rows = [row("survived", ran=["unit/test_x"]), row("timeout")]
        text = "\n".join(report.table(rows, {}, {"policy": 30, "keeper": 70}))
        self.assertRegex(text, r"(?m)^policy +30 +30\.0% +0 +1 +1 +0 +0 +0 +50\.0%$")
        self.assertIn("src/policy/x.c:3: comparison survived", "\n".join(report.survivors(rows, {})))


class Bench(trial.Bench):
    """Without builds: what the runs say is given."""

    def __init__(self, outcomes, fit=True):
        self.outcomes, self.fit = iter(outcomes), {"t": fit}
        self.runner = self

    def run(self, _file, _names, _seconds):
        return next(self.outcomes)


class JudgeTest(unittest.TestCase):
    def judge(self, *outcomes, fit=True):
        return Bench(outcomes, fit).judge([("a.py", [], 1), ("b.py", [], 1)])

    def test_noticed_if_it_fails_twice(self):
        found = self.judge(Run(), Run(failed=["t"]), Run(failed=["t"]))
        self.assertEqual((found["fate"], found["by"], found["ran"]), ("noticed", "t", ["a.py", "b.py"]))

    def test_a_flake_notices_nothing(self):
        found = self.judge(Run(failed=["t"]), Run(), Run())
        self.assertEqual((found["fate"], found["unsteady"]), ("survived", ["t"]))

    def test_a_test_that_always_fails_notices_nothing(self):
        self.assertEqual(self.judge(Run(failed=["t"]), Run(), fit=False)["fate"], "survived")

    def test_hanging_is_told_apart(self):
        self.assertEqual(self.judge(Run(ended_for="time"))["fate"], "timeout")
        self.assertEqual(self.judge(Run(failed=["t"], overdue=True))["fate"], "timeout")


class RunnerTest(unittest.TestCase):
    """Real programs that hang, fork and fail, in the place of unit tests."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.units = Path(self.folder.name) / "tests" / "unit"
        self.units.mkdir(parents=True)

    def run_unit(self, script, seconds=30):
        path = self.units / "test_x"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return Runner(self.folder.name, self.folder.name).run("unit/test_x", [], seconds)

    def test_what_it_says(self):
        self.assertEqual(self.run_unit("echo 'ok 1 - a'").failed, [])
        self.assertEqual(self.run_unit("echo 'ok 1 - a'; echo 'not ok 2 - b'; exit 1").failed, ["unit/test_x::b"])
        self.assertEqual(self.run_unit("echo 'ok 1 - a'; kill -SEGV $$").failed, ["unit/test_x (whole program)"])
        self.assertEqual(self.run_unit("exit 0").failed, ["unit/test_x (whole program)"])

    def test_the_next_test_waits_until_this_one_has_been_looked_at(self):
        """What ran meanwhile would be taken for this one's."""
        tests, note = Path(self.folder.name) / "tests", Path(self.folder.name) / "note"
        shutil.copytree(Path(__file__).resolve().parents[1] / "lib", tests / "lib")
        (tests / "keeper").mkdir()
        lines = ["import unittest", "class T(unittest.TestCase):"]
        lines += [f"    def test_{name}(self):\n        print({name!r}, file=open({str(note)!r}, 'a'))" for name in "abc"]
        (tests / "keeper" / "test_x.py").write_text("\n".join(lines) + "\n")
        seen = []

        def look(item):
            time.sleep(0.2)
            seen.append((item["test"], note.read_text().split()[-1]))

        run = Runner(self.folder.name, BUILD).run("keeper/test_x.py", [], 30, look)
        self.assertEqual((run.failed, run.status), ([], 0), run.text)
        self.assertEqual(seen, [(f"keeper/test_x.py::T.test_{name}", name) for name in "abc"])

    def test_what_it_leaves_behind_is_ended(self):
        note = Path(self.folder.name) / "pid"
        run = self.run_unit(f"setsid sh -c 'echo $$ >{note}; exec sleep 1000' &\nuntil [ -s {note} ]; do :; done\nexec sleep 1000", seconds=1)
        self.assertEqual(run.ended_for, "time")
        self.assertFalse(procs.alive(int(note.read_text())))

    def test_scratch_files_are_counted_however_deep(self):
        """Deeper than Python recurses, and than a path can name."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "large").write_bytes(bytes(1 << 20))
            fd = os.open(folder, os.O_RDONLY)
            for _ in range(2500):
                os.mkdir("d", dir_fd=fd)
                below = os.open("d", os.O_RDONLY, dir_fd=fd)
                os.close(fd)
                fd = below
            os.close(fd)
            self.assertGreaterEqual(runner.disk_kb(folder), 1024)
            runner.remove(folder)
            self.assertFalse(os.path.exists(folder))
            os.mkdir(folder)

    def test_scratch_files_go(self):
        note = Path(self.folder.name) / "where"
        self.run_unit(f"echo $TMPDIR >{note}; mkdir $TMPDIR/a; : >$TMPDIR/a/b; chmod 0 $TMPDIR/a; echo 'ok 1 - a'")
        self.assertFalse(os.path.exists(note.read_text().strip()))


if __name__ == "__main__":
    unittest.main()
