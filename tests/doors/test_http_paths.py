"""A request's target reaches the routes as it was sent: it is split before it is decoded, and nothing is folded."""

from lib.raw_http_case import START, RawCase


class PathTest(RawCase):
    def setUp(self):
        super().setUp()
        self.sockets = []
        for name in ("a/b", "a+b", "x"):
            connection, pid = self.begin("sleep", "300", id=name)
            self.addCleanup(self.end_process, name.replace("/", "%2F"))
            self.assertEqual(pid, name)
            self.sockets.append(connection)

    def found(self, target):
        answer = self.ask("GET", target, self.auth)
        return answer.status, answer.json.get("error") or answer.json["process"]["id"]

    def test_an_encoded_slash_is_part_of_an_id(self):
        self.assertEqual(self.found(f"{START}/a%2Fb"), (200, "a/b"))

    def test_targets_are_not_folded_and_not_decoded_twice(self):
        """Each of them would be another one where a library decodes or normalises first."""
        for target, expected in {
            f"{START}/a/b": (404, "not_found"),
            f"{START}/a%2fb": (200, "a/b"),
            f"{START}/a+b": (200, "a+b"),
            f"{START}/a%2Bb": (200, "a+b"),
            f"{START}/a%20b": (404, "process_not_found"),
            f"{START}/%61%2Bb": (200, "a+b"),
            f"{START}/a%252Fb": (404, "process_not_found"),
            f"{START}//x": (404, "not_found"),
            f"{START}/../process/x": (404, "not_found"),
            f"{START}/./x": (404, "not_found"),
            f"/{START}/x": (404, "not_found"),
            f"{START}/x/": (404, "not_found"),
            f"{START}/x;v=1": (404, "process_not_found"),
        }.items():
            with self.subTest(target):
                self.assertEqual(self.found(target), expected)

    def test_broken_escapes_are_refused(self):
        for target in ("/%00", "/%zz", "/%", "/%4", "/%4z", "/%z4", "/%C3%28", "/x%00", "/%ff"):
            with self.subTest(target):
                self.assertEqual(self.found(START + target)[0], 400)

    def test_an_absolute_target_is_the_same_as_its_path(self):
        self.assertEqual(self.found(f"http://127.0.0.1:{self.gateway.port}{START}/a%2Fb"), (200, "a/b"))

    def test_an_absolute_target_to_somebody_else_is_not_served(self):
        """The authority of the target counts instead of Host; nobody gets around the check of names with it."""
        answer = self.ask("GET", f"http://evil.example{START}/x", self.auth)
        self.assertIn(answer.status, (400, 403))

    def test_a_query_is_split_before_it_is_decoded(self):
        self.assertEqual(self.ask("GET", f"{START}/x/output?since=0%26limit_bytes=1", self.auth).status, 400)
        self.assertEqual(self.ask("GET", f"{START}/x/output?since=0&limit_bytes=1", self.auth).status, 200)

    def test_numbers_and_booleans_of_a_query_are_decoded(self):
        """As texts are: whoever escapes more than he must means the same."""
        for query in ("since=%30", "s%69nce=0&limit_bytes=%31%30", "limit_bytes=1%30&mode=t%61il", "mode=head_tail&head_bytes=%32&tail_bytes=2"):
            self.assertEqual(self.ask("GET", f"{START}/x/output?{query}", self.auth).status, 200, query)
        self.assertEqual(self.ask("GET", f"{START}?all=%74rue", self.auth).status, 200)
        for query in ("since=%2D1", "since=%30%20", "since=+1", "since=%3", "since=%zz", "since=%00", "since=%C3%A9", "since=%31%2e5",
                      "since=" + "%30" * 21, "since=%"):
            self.assertEqual(self.ask("GET", f"{START}/x/output?{query}", self.auth).status, 400, query)
        for value in ("%54rue", "tru%65%20", "", "%31", "true%00", "t"):
            self.assertEqual(self.ask("GET", f"{START}?all={value}", self.auth).status, 400, value)

    def test_a_plus_in_a_query_is_a_space(self):
        put = self.ask("PUT", "/runtime/v1/files?path=one+two", self.auth, body=b"content")
        self.assertEqual(put.status, 200, put)
        self.assertEqual(put.json["file"]["name"], "one two")
        self.assertEqual(self.ask("GET", "/runtime/v1/files?path=one%20two", self.auth).body, b"content")

    def test_a_question_mark_that_is_encoded_is_part_of_the_path(self):
        self.assertEqual(self.found(f"{START}/x%3Fall=true"), (404, "process_not_found"))

    def test_targets_that_are_none_are_refused(self):
        for target in (b"*", b"healthz", b"", b"/health\xc3\xa9", b"/health\x7f", b"/health\x01z", b"http://", b"//"):
            with self.subTest(target):
                answer = self.only_answer(self.head("GET", target, self.auth, "Connection: close"))
                self.assertIn(answer.status, (400, 404))
