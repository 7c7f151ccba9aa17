/* Removal and ruin, in every dress that a shell allows; and without a shell. */
#include "policy_rows.h"

static void removal(void **state)
{
	static const struct row rows[] = {
		{"rm -rf /", "!DW"},
		{"rm -r -f /", "!DW"},
		{"rm -fr --no-preserve-root /", "!DW"},
		{"rm --recursive --force /", "!DW"},
		{"rm --recurs /", "!DW"},
		{"rm / -rf", "!DW"},
		{"rm -rf -- /", "!DW"},
		{"rm -rf //", "!DW"},
		{"rm -rf /./", "!DW"},
		{"rm -rf /home/..", "!DW"},
		{"rm -rf ../../..", "!DW"},
		{"rm -rf ../../../../../..", "!DW"},
		{"rm -rf /*", "!DW"},
		{"rm -rf /?*", "!DW"},
		{"rm -rf /etc", "!DW"},
		{"rm -rf /etc/", "!DW"},
		{"rm -rf /etc/*", "!DW"},
		{"rm -rf /e*", "!DW"},
		{"rm -rf /{bin,etc}", "!DW"},
		{"rm -rf /usr /opt/x", "!DW"},
		{"rm -rf ~", "!DW"},
		{"rm -rf ~/", "!DW"},
		{"rm -rf ~/*", "!DW"},
		{"rm -rf $HOME", "!DW"},
		{"rm -rf \"${HOME}\"", "!DW"},
		{"rm -rf \"$HOME\"/.", "!DW"},
		{"rm -rf '$HOME'", "W"},
		{"rm -rf /home/u", "!DW"},
		{"rm -rf ..", "!DW"}, /* that is the home */
		{"rm -rf .", "DW"},
		{"rm -rf ./", "DW"},
		{"rm -rf *", "DW"},
		{"rm -rf ./*", "DW"},
		{"rm -rf .*", "DW"},
		{"rm -f *", "DW"},
		{"rm -rf $PWD", "DW"},
		{"rm -rf $(pwd)", "DW"},
		{"rm -rf `pwd`/*", "DW"},
		{"rm -rf /home/u/proj", "DW"},
		{"rm -rf ../proj", "DW"},
		{"rm -rf /home/u/other", "DW"},
		{"rm -rf ../other/build", "DW"},
		{"rm -f /etc/passwd", "DW"},
		{"rm /etc/passwd", "W"},
		{"rm -rf /tmp", "DW"},
		{"rm -rf /tmp/*", "DW"},
		{"rm -rf /tmp/build.x", "W"},
		{"rm -rf build", "W"},
		{"rm -rf ./build/ dist", "W"},
		{"rm -rf build/*", "W"},
		{"rm -rf /home/u/proj/node_modules", "W"},
		{"rm -f *.o", "W"},
		{"rm -rf \"$DIR\"", "W"},
		{"rm -rf /$X", "DW"},
		{"rm -rf \"${HOME:?}\"", "!DW"},
		{"rm -rf ${X:-/}", "DW"},
		{"rm -rf ${X:-build}", "W"},
		{"rm -rf ${X%/*}", "W"},
		{"rm -rf $'\\057etc'", "!DW"},
		{"rm -rf $'\\x2fetc'", "!DW"},
		{"D=build; rm -rf \"$D\"", "W"},
		{"X=/; rm -rf $X", "!DW"},
		{"X=\"-rf /\"; rm $X", "!DW"},
		{"cd / && rm -rf *", "!DW"},
		{"cd build && rm -rf *", "W"},
		{"cd ..; rm -rf proj", "DW"},
		{"(cd /usr; ls); rm -rf build", "W"},
		{"(cd /usr; rm -rf bin)", "DW"},
		{"find / -delete", "!DW"},
		{"find . -delete", "DW"},
		{"find . -type f -delete", "DW"},
		{"find . -name '*.pyc' -delete", "W"},
		{"find / -name core -delete", "DW"},
		{"find / -exec rm -rf {} +", "!DW"},
		{"find / -type f -delete", "!DW"},
		{"find ~ -xdev -type f -exec rm -f {} +", "!DW"},
		{"find /etc -exec sudo rm -rf {} +", "!DWS"},
		{"find / -maxdepth 1 -exec rm -rf {} +", "!DW"},
		{"find ~ -maxdepth 1 -type f -delete", "DW"},
		{"find / -user nobody -delete", "DW"},
		{"find / | xargs rm -rf", "!DW"},
		{"find build -name x -exec rm -f {} \\;", "W"},
		{"find / -name x | xargs rm -f", "DW"},
		{"echo / | xargs rm -rf", "!DW"},
		{"printf '/\\n' | xargs -0 rm -rf", "!DW"},
		{"printf 'a\\n/etc\\n' | xargs rm -rf", "!DW"},
		{"printf 'a\\netc\\n' | xargs rm -rf", "W"},
		{"echo 'a /etc' | xargs -I{} rm -rf {}", "!DW"},
		{"xargs rm -rf <<< /", "!DW"},
		{"xargs rm -rf <<E\na\n/usr\nE", "!DW"},
		{"echo / | parallel rm -rf", "!DW"},
		{"parallel rm -rf ::: /", "!DW"},
		{"parallel 'rm -rf {}; rm -rf /' ::: a", "!DW"},
		{"parallel ::: 'rm -rf /'", "!DW"},
		{"echo build | xargs rm -rf", "W"},
		{"echo /etc/x | xargs rm -f", "DW"},
		{"ls *.tmp | xargs rm -f", "W"},
		{"chmod -R 777 /", "!DW"},
		{"chmod -R 755 build", "W"},
		{"chown -R u:u /", "!DW"},
		{"chown -R u:u ~", "DW"},
		{"mv / /x", "!DW"},
		{"mv ~ /tmp/x", "DW"},
		{"mv a b", "W"},
		{"rsync -a --delete empty/ /etc/", "DW"},
		{"rsync -a --delete src/ build/", "W"},
		{"rsync -a --delete empty/ /", "!DW"},
		{"rsync -a --del empty/ /", "!DW"},
		{"git clean -fdx", "W"},
		{"echo rm -rf /", ""},
		{"echo 'rm -rf /'", ""},
		{"grep 'rm -rf /' log", ""},
		{"git commit -m 'rm -rf /'", "W"},
		{"# rm -rf /", ""},
		{"ls # rm -rf /", ""},
		{"cat <<'E'\nrm -rf /\nE", ""},
	};

	CHECK(rows, FREE);
}

static void evasions(void **state)
{
	static const struct row rows[] = {
		{"r\"m\" -rf /", "!DW"},
		{"r''m -rf /", "!DW"},
		{"\\rm -rf /", "!DW"},
		{"r\\m -r\\f \\/", "!DW"},
		{"'rm' '-rf' '/'", "!DW"},
		{"$'rm' -rf $'\\x2f'", "!DW"},
		{"$'\\162\\155' -rf /", "!DW"},
		{"{rm,-rf,/}", "!DW"},
		{"rm${IFS}-rf${IFS}/", "!DW"},
		{"rm$IFS-rf /", "!DW"},
		{"X=rm; $X -rf /", "!DW"},
		{"$(echo rm) -rf /", "!DW"},
		{"`which rm` -rf /", "!DW"},
		{"$(command -v rm) -rf /", "!DW"},
		{"/bin/rm -rf /", "!DW"},
		{"/usr/bin/../bin/rm -rf /", "!DW"},
		{"command rm -rf /", "!DW"},
		{"builtin command rm -rf /", "!DW"},
		{"exec rm -rf /", "!DW"},
		{"exec -a x rm -rf /", "!DW"},
		{"env rm -rf /", "!DW"},
		{"env -i PATH=/bin rm -rf /", "!DW"},
		{"env -u X -- rm -rf /", "!DW"},
		{"env -S 'rm -rf /'", "!DW"},
		{"A=1 B=2 rm -rf /", "!DW"},
		{"nice -n 5 rm -rf /", "!DW"},
		{"nohup rm -rf / &", "!DW"},
		{"timeout -k 5 10 rm -rf /", "!DW"},
		{"time -p rm -rf /", "!DW"},
		{"stdbuf -oL rm -rf /", "!DW"},
		{"setsid rm -rf /", "!DW"},
		{"busybox rm -rf /", "!DW"},
		{"sudo rm -rf /", "!DWS"},
		{"sudo -u root -- rm -rf /", "!DWS"},
		{"sudo -E env X=1 nice rm -rf /", "!DWS"},
		{"doas rm -rf /", "!DWS"},
		{"su -c 'rm -rf /'", "!DWS"},
		{"su - root -c 'rm -rf /'", "!DWS"},
		{"sh -c 'rm -rf /'", "!DW"},
		{"bash -lc \"rm -rf /\"", "!DW"},
		{"bash -o pipefail -ec 'rm -rf /'", "!DW"},
		{"sh -c \"sh -c 'rm -rf /'\"", "!DW"},
		{"sh -c 'sh -c \"sh -c \\\"rm -rf /\\\"\"'", "!DW"},
		{"eval rm -rf /", "!DW"},
		{"eval 'rm -rf' \"/\"", "!DW"},
		{"eval \"eval 'rm -rf /'\"", "!DW"},
		{"trap 'rm -rf /' EXIT", "!DW"},
		{"watch -n 1 rm -rf /", "!DW"},
		{"script -c 'rm -rf /' x", "!DW"},
		{"flock /tmp/l rm -rf /", "!DW"},
		{"flock /tmp/l -c 'rm -rf /'", "!DW"},
		{"xargs rm -rf / < x", "!DW"},
		{"prlimit --nofile=10 rm -rf /", "!DW"},
		{"taskset -c 0 rm -rf /", "!DW"},
		{"chrt -f 10 rm -rf /", "!DW"},
		{"ionice -c 2 -n 0 rm -rf /", "!DW"},
		{"unshare -r rm -rf /", "!DW"},
		{"nsenter -t 1 -m rm -rf /", "!DW"},
		{"strace -f -o x rm -rf /", "!DW"},
		{"gdb -ex run --args rm -rf /", "!DW"},
		{"setpriv --reuid 5 rm -rf /", "!DW"},
		{"runuser -u x -- rm -rf /", "!DW"},
		{"runuser x -c 'rm -rf /'", "!DW"},
		{"su root -- -c 'rm -rf /'", "!DWS"},
		{"chroot / rm -rf /", "!DW"},
		{"alias x='rm -rf /'\nx", "!DW"},
		{"alias x=ls y", ""},
		{"r$()m -rf /", "!DW"},
		{"r``m -r$(:)f /", "!DW"},
		{"$() rm -rf /", "!DW"},
		{"true; rm -rf /", "!DW"},
		{"true && rm -rf /", "!DW"},
		{"true || rm -rf /", "!DW"},
		{"true & rm -rf /", "!DW"},
		{"true | rm -rf /", "!DW"},
		{"true\nrm -rf /", "!DW"},
		{"rm \\\n -rf \\\n /", "!DW"},
		{"(rm -rf /)", "!DW"},
		{"((rm -rf /) )", "!DW"},
		{"{ rm -rf /; }", "!DW"},
		{"! rm -rf /", "!DW"},
		{"if true; then rm -rf /; fi", "!DW"},
		{"if rm -rf /; then :; fi", "!DW"},
		{"if false; then :; elif x; then :; else rm -rf /; fi", "!DW"},
		{"while true; do rm -rf /; done", "!DW"},
		{"until rm -rf /; do :; done", "!DW"},
		{"for i in 1 2; do rm -rf /; done", "!DW"},
		{"for d in /; do rm -rf $d; done", "!DW"},
		{"case x in x) rm -rf /;; esac", "!DW"},
		{"case x in (y) ls ;; *) rm -rf / ;; esac", "!DW"},
		{"f() { rm -rf /; }; f", "!DW"},
		{"function f { rm -rf /; }; f", "!DW"},
		{"echo $(rm -rf /)", "!DW"},
		{"echo \"a $(rm -rf /) b\"", "!DW"},
		{"echo `rm -rf /`", "!DW"},
		{"echo \"`rm -rf /`\"", "!DW"},
		{"echo $(echo $(rm -rf /))", "!DW"},
		{"X=$(rm -rf /)", "!DW"},
		{"a=($(rm -rf /))", "!DW"},
		{"echo ${X:-$(rm -rf /)}", "!DW"},
		{"echo $((1 + $(rm -rf /)))", "!DW"},
		{"((x = $(rm -rf /)))", "!DW"},
		{"echo $((rm -rf /) || (b))", "!DW"},
		{"[[ -n $(rm -rf /) ]]", "!DW"},
		{"cat <(rm -rf /)", "!DW"},
		{"ls > >(rm -rf /)", "!DW"},
		{"cat <<E\n$(rm -rf /)\nE", "!DW"},
		{"bash <<E\nrm -rf /\nE", "!DW"},
		{"bash <<'E'\nrm -rf /\nE", "!DW"},
		{"bash -s <<-E\n\trm -rf /\n\tE", "!DW"},
		{"bash <<< 'rm -rf /'", "!DW"},
		{"cat <<E | sh\nrm -rf /\nE", "!DW"},
		{"echo 'rm -rf /' | sh", "!DW"},
		{"echo rm -rf / | sudo bash", "!DWS"},
		{"printf 'rm -rf /\\n' | bash", "!DW"},
		{"cat <<E\ntext\nE\nrm -rf /", "!DW"},
		{"ls 2>&1 >/dev/null; rm -rf /", "!DW"},
		{"coproc rm -rf /", "!DW"},
		{"find . -exec sh -c 'rm -rf /' \\;", "!DW"},
		{"rm -rf / #", "!DW"},
		{"rm -rf \"/\"", "!DW"},
		{"rm -rf /;", "!DW"},
		{"}; rm -rf /", "!DW"},
		{"done; rm -rf /", "!DW"},
		{") rm -rf /", "!DW"},
		{";; rm -rf /", "!DW"},
	};

	CHECK(rows, FREE);
}

static void catastrophes(void **state)
{
	static const struct row rows[] = {
		{"mkfs.ext4 /dev/sda1", "!DW"},
		{"mkfs -t ext4 /dev/nvme0n1", "!DW"},
		{"mkfs.ext4 disk.img", "DW"},
		{"wipefs -a /dev/sdb", "!DW"},
		{"wipefs /dev/sdb", "W"},
		{"fdisk -l /dev/sda", "W"},
		{"dd if=/dev/zero of=/dev/sda bs=1M", "!DW"},
		{"dd if=a of=b", "W"},
		{"dd if=a of=/dev/null", "W"},
		{"cat x > /dev/sda", "!DW"},
		{"cat x >/dev/../dev/sda", "!DW"},
		{"(cat x) > /dev/nvme0n1", "!DW"},
		{"cat x | tee /dev/sda", "!DW"},
		{"cp x /dev/sda", "!DW"},
		{"shred -n 1 /dev/sda", "!DW"},
		{"shred -u secret", "W"},
		{"echo b > /proc/sysrq-trigger", "!DW"},
		{"echo b | sudo tee /proc/sysrq-trigger", "!DWS"},
		{"cat /proc/sysrq-trigger", ""},
		{":(){ :|:& };:", "!"},
		{"bomb() { bomb | bomb & }; bomb", "!"},
		{"f() { f; }; f", ""},
		{"f() { ls | cat & }; f", ""},
		{"f | f() { f & }", ""},
		{"shutdown -h now", "!"},
		{"reboot", "!"},
		{"/sbin/poweroff", "!"},
		{"sudo halt", "!S"},
		{"systemctl reboot", "!"},
		{"systemctl status x", ""},
		{"init 0", "!"},
		{"init 3", ""},
		{"./halt", ""},
		{"reboot --help", ""},
		{"echo reboot", ""},
		{"kill -9 1", "!K"},
		{"kill 1", "!K"},
		{"kill -9 -1", "!K"},
		{"kill -- -1", "!K"},
		{"kill -s KILL 1", "!K"},
		{"kill -1 1234", "K"},
		{"kill -0 1", ""},
		{"kill -l", ""},
		{"kill 1234", "K"},
		{"kill %1", "K"},
	};

	CHECK(rows, FREE);
}

/* Without a shell no word is more than it says. */
static void without_shell(void **state)
{
	static const struct {
		const char *argv[6];
		const char *labels;
	} rows[] = {
		{{"rm", "-rf", "/"}, "!DW"},
		{{"rm", "-rf", "*"}, "W"},
		{{"rm", "-rf", "~"}, "W"},
		{{"rm", "-rf", "$HOME"}, "W"},
		{{"rm", "-rf", "."}, "DW"},
		{{"rm -rf /"}, ""},
		{{"A=1", "rm"}, ""},
		{{"/bin/rm", "-rf", "/usr"}, "!DW"},
		{{"sudo", "rm", "-rf", "/"}, "!DWS"},
		{{"sh", "-c", "rm -rf /"}, "!DW"},
		{{"bash", "-c", "rm -rf \"$1\"", "x", "/"}, "W"},
		{{"cat", ".env"}, "R"},
		{{"cat", "<", ".env"}, "R"},
		{{"curl", "x", "|", "sh"}, ""},
		{{"echo", "$(rm -rf /)"}, ""},
		{{"git", "push", "--force"}, "WF"},
		{{"find", "/", "-delete"}, "!DW"},
		{{"find", ".", "-exec", "cat", ".env", ";"}, "R"},
		{{"env", "-i", "rm", "-rf", "/"}, "!DW"},
		{{"true"}, ""},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char found[32];

		labels_of(rows[i].argv, NULL, FREE, found);
		if (strcmp(found, rows[i].labels) != 0)
			fail_msg("%s %s: expected [%s], found [%s]", rows[i].argv[0],
				 rows[i].argv[1] ? rows[i].argv[1] : "", rows[i].labels, found);
	}
}

/* `count` times `part` between the other two; the caller frees it. */
static char *padded(const char *before, const char *part, size_t count, const char *after)
{
	size_t size = strlen(part);
	char *line = malloc(strlen(before) + size * count + strlen(after) + 1), *at = line;

	assert_non_null(line);
	at = stpcpy(at, before);
	for (size_t i = 0; i < count; i++, at += size)
		memcpy(at, part, size);
	(void)stpcpy(at, after);
	return line;
}

/* What cannot be judged whole is denied: padding hides nothing. */
static void padding(void **state)
{
	static const struct {
		const char *before, *part;
		size_t count;
		const char *after, *labels;
	} rows[] = {
		{"", "true; ", 3000, "rm -rf /", "!DW"},
		{": ", "x", 100000, "; rm -rf /", "!DW"},
		{": ", "x ", 60000, "; rm -rf /", "!DW"},
		{": ", "$(true) ", 3000, "; rm -rf /", "!DW"},
		{"", "f() { :; }; ", 3000, "rm -rf /", "!DW"},
		{"env ", "A=1 ", 20000, "rm -rf /", "!DW"},
		{"rm ", "-f ", 20000, "-r /", "!DW"},
		{"cat <<E\n", "some text\n", 50000, "E\nrm -rf /", "!DW"},
		{"", "true; ", 20000, "rm -rf /", "!"},
		{"", "true; ", 20000, "", "!"},
		{": ", "x", 1100000, "; rm -rf /", "!"},
		{"", "sudo ", 100, "rm -rf /", "!"},
		{"", "$(", 100, "rm -rf /", "!"},
		{"{rm,-rf,/", ",x", 300, "}", "!"},
		/* Large and honest. */
		{"echo ", "x", 130000, "", ""},
		{"gcc -o x ", "a.o ", 30000, "", ""},
		{"git add ", "src/a.c ", 15000, "", "W"},
		{"cat <<'E' > x\n", "$(rm -rf /)\n", 10000, "E\n", "W"},
		{"cat <<E > x\n", "some text of a line\n", 50000, "E\n", "W"},
		{"", "make x && ", 10000, "true", ""},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *line = padded(rows[i].before, rows[i].part, rows[i].count, rows[i].after);
		const char *argv[] = {"/bin/sh", "-c", line, NULL};
		char found[32];

		labels_of(argv, line, FREE, found);
		if (strcmp(found, rows[i].labels) != 0)
			fail_msg("%zu %s%s: expected [%s], found [%s]", i, rows[i].before,
				 rows[i].part, rows[i].labels, found);
		free(line);
	}
}

#define WORDS 131072u

/* `word` so often that the argv has 131072 words, between the other two. */
static void check_argv(const char *const *before, const char *word, const char *const *after,
		       const char *labels)
{
	const char **argv = calloc(WORDS + 1, sizeof *argv);
	size_t count = 0, last = 0;
	char found[32];

	assert_non_null(argv);
	while (before[count]) {
		argv[count] = before[count];
		count++;
	}
	while (after[last])
		last++;
	while (count < WORDS - last)
		argv[count++] = word;
	memcpy(argv + count, after, last * sizeof *argv);
	labels_of(argv, NULL, FREE, found);
	assert_string_equal(found, labels);
	free(argv);
}

static void large_argv(void **state)
{
	static const char *const none[] = {NULL}, *const root[] = {"-r", "/", NULL};
	static const char *const gcc[] = {"gcc", "-o", "x", NULL};
	static const char *const git[] = {"git", "add", NULL}, *const rm[] = {"rm", NULL};
	static const char *const env[] = {"env", NULL}, *const bad[] = {"rm", "-rf", "/", NULL};
	char *text = padded("", "print(1)\n", 11000, ""), found[32];
	const char *python[] = {"python3", "-c", text, NULL};
	const char *print[] = {"printf", "%s", text, NULL};

	check_argv(gcc, "some/a.o", none, "");
	check_argv(git, "src/file.c", none, "W");
	check_argv(rm, "-f", root, "!DW");
	check_argv(env, "A=1", bad, "!DW");
	labels_of(python, NULL, FREE, found);
	assert_string_equal(found, "");
	labels_of(print, NULL, FREE, found);
	assert_string_equal(found, "");
	free(text);
}

static enum coop_action act(const struct coop_policy *policy, const char *line)
{
	const char *argv[] = {"/bin/bash", "-c", line, NULL};
	struct coop_policy_command command = {.argv = argv,
					      .shell_command = line,
					      .display = line,
					      .cwd = WORKSPACE,
					      .home = "/home/u",
					      .path = "/usr/bin:/bin"};
	struct coop_verdict verdict;

	assert_int_equal(coop_policy_decide(&policy, 1, &command, &verdict), 0);
	return verdict.action;
}

/* Ways to run a program that a list denies. */
static void denied_dresses(void **state)
{
	static const char *const lines[] = {
		"for$()bidden",
		"for``bidden x",
		"for$(:)bidden",
		"for${x}bidden",
		"for$@bidden",
		"forb$x",
		"${x}bidden",
		"/opt/$x/forbidden",
		"/opt/for$x",
		"forbidde?",
		"./f*",
		"alias x=forbidden; x",
		"alias a=b x='sudo forbidden y'",
		". ./forbidden",
		"source forbidden",
		"command . /a/forbidden",
		"prlimit forbidden",
		"prlimit --nofile=5 forbidden",
		"taskset 1 forbidden",
		"taskset -c 0,1 forbidden",
		"chrt -f 10 forbidden",
		"chrt -b 0 forbidden",
		"ionice -c3 forbidden",
		"unshare -rn forbidden",
		"nsenter -t 1 -a forbidden",
		"flock x forbidden",
		"flock x -c 'forbidden'",
		"script -qc 'forbidden' x",
		"watch -n 1 forbidden",
		"parallel forbidden ::: a",
		"parallel 'forbidden {}' ::: a",
		"parallel -j 4 'cd x; forbidden' ::: a",
		"strace -f forbidden",
		"gdb --args forbidden x",
		"gdb -batch -ex run --args forbidden",
		"setpriv --reuid=1 forbidden",
		"runuser -u x forbidden",
		"runuser x -c forbidden",
		"chroot /x forbidden",
		"busybox forbidden",
		"doas -u x forbidden",
		"time -p forbidden",
		"tini -- forbidden",
	};
	static const char *const others[] = {
		"$x",         "\"$x\" y", "for${x}bad",   "x$y",    "$(f)/make",  "alias x=make",
		". ./env.sh", "gdb -p 5", "prlimit -p 5", "bidden", "for bidden", "*.sh"};
	struct coop_policy *policy = coop_policy_new();
	struct coop_err err = {0};

	assert_non_null(policy);
	assert_int_equal(coop_policy_set(policy, "denied_commands", "forbidden", "x", &err), 0);

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		if (act(policy, lines[i]) != COOP_ACTION_DENY)
			fail_msg("%s is not denied", lines[i]);
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (act(policy, others[i]) != COOP_ACTION_ALLOW)
			fail_msg("%s is denied", others[i]);
	}
	coop_policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removal),      cmocka_unit_test(evasions),
		cmocka_unit_test(catastrophes), cmocka_unit_test(without_shell),
		cmocka_unit_test(padding),      cmocka_unit_test(denied_dresses),
		cmocka_unit_test(large_argv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
