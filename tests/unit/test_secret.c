/* The key and the hashes: known answers, and a key file that is made once and never replaced. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/mem.h"
#include "folder.h"
#include "records/secret.h"

static struct coop_secret *open_key(void)
{
	struct coop_secret *secret = NULL;
	struct coop_err err = {0};

	if (coop_secret_open(folder, &secret, &err) < 0)
		fail_msg("%s", err.message);
	return secret;
}

/* The error, which names the file. */
static void assert_refused(int number, const char *word)
{
	struct coop_secret *secret = NULL;
	struct coop_err err = {0};

	assert_int_equal(coop_secret_open(folder, &secret, &err), -number);
	assert_null(secret);
	assert_int_equal(err.code, COOP_UNAVAILABLE);
	assert_non_null(strstr(err.message, folder_path("key")));
	if (!strstr(err.message, word))
		fail_msg("\"%s\" does not say \"%s\"", err.message, word);
}

static void known_answers(void **state)
{
	uint8_t key[32], hash[COOP_HASH_SIZE];
	char text[COOP_HASH_TEXT];

	assert_int_equal(coop_hash("abc", 3, hash), 0);
	coop_hash_format(hash, text);
	assert_string_equal(text,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(coop_hash("", 0, hash), 0);
	coop_hash_format(hash, text);
	assert_string_equal(text,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

	/* HMAC-SHA256 with the key 00 01 … 1f over "token\0abc", computed with another program. */
	for (size_t i = 0; i < sizeof key; i++)
		key[i] = (uint8_t)i;
	folder_write("key", key, sizeof key, 0600);
	struct coop_secret *secret = open_key();
	assert_int_equal(coop_secret_hash(secret, "token", "abc", 3, hash), 0);
	coop_hash_format(hash, text);
	assert_string_equal(text,
			    "5d825ded678582ec38153ed7d9745d386bff8623e8239420a2c79e699cc0a1ba");
	coop_secret_free(secret);
}

static void purposes_differ(void **state)
{
	struct coop_secret *secret = NULL;
	struct coop_err err;
	uint8_t a[COOP_HASH_SIZE], b[COOP_HASH_SIZE];

	assert_int_equal(coop_secret_open(NULL, &secret, &err), 0);
	assert_int_equal(coop_secret_hash(secret, "token", "value", 5, a), 0);
	assert_int_equal(coop_secret_hash(secret, "token", "value", 5, b), 0);
	assert_true(coop_hash_equal(a, b));
	assert_int_equal(coop_secret_hash(secret, "env", "value", 5, b), 0);
	assert_false(coop_hash_equal(a, b));
	/* Where the purpose ends is part of it. */
	assert_int_equal(coop_secret_hash(secret, "tok", "envalue", 7, b), 0);
	assert_false(coop_hash_equal(a, b));
	for (size_t i = 0; i < COOP_HASH_SIZE; i++) {
		memcpy(b, a, sizeof b);
		b[i] ^= 1;
		assert_false(coop_hash_equal(a, b));
	}
	coop_secret_free(secret);
	coop_secret_free(NULL);
}

static void made_once(void **state)
{
	uint8_t a[COOP_HASH_SIZE], b[COOP_HASH_SIZE];
	struct stat st;
	mode_t mask = umask(0);
	struct coop_secret *secret = open_key();

	(void)umask(mask);
	assert_int_equal(stat(folder_path("key"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 32);
	assert_int_equal(coop_secret_hash(secret, "x", "y", 1, a), 0);
	coop_secret_free(secret);

	secret = open_key();
	assert_int_equal(coop_secret_hash(secret, "x", "y", 1, b), 0);
	assert_true(coop_hash_equal(a, b));
	coop_secret_free(secret);

	/* Another folder has another key; nothing else is left lying about. */
	assert_int_equal(rename(folder_path("key"), folder_path("old")), 0);
	secret = open_key();
	assert_int_equal(coop_secret_hash(secret, "x", "y", 1, b), 0);
	assert_false(coop_hash_equal(a, b));
	coop_secret_free(secret);
	assert_int_equal(unlink(folder_path("old")), 0);
	assert_int_equal(unlink(folder_path("key")), 0);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
}

static void strange_umask(void **state)
{
	struct stat st;
	mode_t mask = umask(0777);
	struct coop_secret *secret = open_key();

	(void)umask(mask);
	assert_int_equal(stat(folder_path("key"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	coop_secret_free(secret);
}

static void wrong_size(void **state)
{
	static const size_t sizes[] = {0, 1, 31, 33, 4096};
	char bytes[4096] = {0};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t size;
		folder_write("key", bytes, sizes[i], 0600);
		assert_refused(EPERM, "32 bytes");
		free(folder_read("key", &size));
		assert_int_equal(size, sizes[i]);
	}
}

static void others_may_read(void **state)
{
	static const mode_t modes[] = {0640, 0604, 0660, 0666, 0620};
	char bytes[32] = {0};

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		folder_write("key", bytes, sizeof bytes, modes[i]);
		assert_refused(EPERM, "others");
	}
}

static void not_a_file(void **state)
{
	char bytes[32] = {0};

	folder_write("other", bytes, sizeof bytes, 0600);
	assert_int_equal(symlink("other", folder_path("key")), 0);
	assert_refused(EPERM, "link");
	assert_int_equal(unlink(folder_path("key")), 0);
	/* Also one that leads nowhere is not followed. */
	assert_int_equal(symlink("nowhere", folder_path("key")), 0);
	assert_refused(EPERM, "link");
	assert_false(folder_has("nowhere"));
	assert_int_equal(unlink(folder_path("key")), 0);
	assert_int_equal(mkfifo(folder_path("key"), 0600), 0);
	assert_refused(EPERM, "not a file");
	assert_int_equal(unlink(folder_path("key")), 0);
	assert_int_equal(mkdir(folder_path("key"), 0700), 0);
	assert_refused(EPERM, "not a file");
}

/* Half a key must not stay. */
static void full_disk(void **state)
{
	struct rlimit old, small;

	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){.rlim_cur = 16, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_refused(ENOSPC, "cannot be made");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(rmdir(folder), 0); /* it is empty */
	assert_int_equal(mkdir(folder, 0700), 0);
}

static int try_read_only(void)
{
	struct coop_secret *secret = NULL;
	struct coop_err err = {0};

	if (chmod(folder, 0500) < 0)
		return 1;
	if (coop_secret_open(folder, &secret, &err) != -EACCES || secret)
		return 2;
	if (!strstr(err.message, "/key") || !strstr(err.details, "EACCES"))
		return 3;
	return 0;
}

static void read_only_folder(void **state)
{
	folder_as_user(try_read_only);
	assert_false(folder_has("key"));
}

static void no_folder(void **state)
{
	struct coop_secret *secret = NULL;
	struct coop_err err = {0};

	assert_int_equal(coop_secret_open("/nonexistent/coop", &secret, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nonexistent/coop/key"));
}

static void random_bytes(void **state)
{
	char a[401], b[401], none = 'x';

	assert_int_equal(coop_secret_random(200, a), 0);
	assert_int_equal(coop_secret_random(200, b), 0);
	assert_int_equal(strlen(a), 400);
	assert_int_equal(strspn(a, "0123456789abcdef"), 400);
	assert_string_not_equal(a, b);
	assert_int_equal(coop_secret_random(0, &none), 0);
	assert_int_equal(none, 0);
}

static void no_memory(void **state)
{
	struct coop_secret *secret = NULL;
	struct coop_err err = {0};

	(void)setenv("COOP_FAULT", "alloc:1", 1);
	coop_mem_init();
	assert_int_equal(coop_secret_open(folder, &secret, &err), -ENOMEM);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_null(secret);
	coop_secret_free(open_key());
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(known_answers),    IN_FOLDER(purposes_differ), IN_FOLDER(made_once),
		IN_FOLDER(strange_umask),    IN_FOLDER(wrong_size),      IN_FOLDER(others_may_read),
		IN_FOLDER(not_a_file),       IN_FOLDER(no_folder),       IN_FOLDER(random_bytes),
		IN_FOLDER(read_only_folder), IN_FOLDER(no_memory),       IN_FOLDER(full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
