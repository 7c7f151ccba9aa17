#include "records/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define KEY_SIZE 32u
#define BLOCK_SIZE 64u /* of SHA-256 */

/* SHA-256 that has taken in the key, as HMAC's inner and outer hash begin: each hash starts from
 * copies of these, which saves two of its blocks and, above all, setting up a MAC. They are only
 * read after coop_secret_open. */
struct coop_secret {
	EVP_MD *md;
	EVP_MD_CTX *inner, *outer;
};

static void free_ctx(EVP_MD_CTX *const *ctx)
{
	EVP_MD_CTX_free(*ctx);
}

static EVP_MD_CTX *keyed(const EVP_MD *md, const uint8_t key[KEY_SIZE], uint8_t pad)
{
	uint8_t block[BLOCK_SIZE];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	for (size_t i = 0; i < BLOCK_SIZE; i++)
		block[i] = (uint8_t)((i < KEY_SIZE ? key[i] : 0) ^ pad);
	if (ctx &&
	    (!EVP_DigestInit_ex(ctx, md, NULL) || !EVP_DigestUpdate(ctx, block, BLOCK_SIZE))) {
		EVP_MD_CTX_free(ctx);
		ctx = NULL;
	}
	OPENSSL_cleanse(block, sizeof block);
	return ctx;
}

/* 0 or -ENOMEM. */
static int prepare(const uint8_t key[KEY_SIZE], struct coop_secret **ret)
{
	struct coop_secret *secret = coop_mem_zalloc(sizeof *secret);

	if (!secret)
		return -ENOMEM;
	secret->md = EVP_MD_fetch(NULL, "SHA2-256", NULL);
	if (secret->md) {
		secret->inner = keyed(secret->md, key, 0x36);
		secret->outer = keyed(secret->md, key, 0x5c);
	}
	if (!secret->inner || !secret->outer) {
		coop_secret_free(secret);
		return -ENOMEM;
	}
	*ret = secret;
	return 0;
}

static int fill_random(void *bytes, size_t size)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = getrandom((char *)bytes + got, size - got, 0);
		if (n > 0)
			got += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int failed(const char *dir, const char *what, int number, struct coop_err *err)
{
	(void)coop_err_set(err, COOP_UNAVAILABLE, "the key %s/key %s: %s", dir, what,
			   strerror(number));
	coop_err_detail(err, "errno", coop_err_errno_name(number));
	return -number;
}

static int refuse(const char *dir, const char *why, struct coop_err *err)
{
	(void)coop_err_set(err, COOP_UNAVAILABLE, "the key %s/key %s", dir, why);
	return -EPERM;
}

/* 0; -ENOENT without an error filled: there is none. */
static int read_key(const char *dir, int dir_fd, uint8_t ret_key[KEY_SIZE], struct coop_err *err)
{
	struct stat st;
	uint8_t bytes[KEY_SIZE];
	/* Not to wait for a writer, should a FIFO stand there. */
	COOP_AUTO_FD int fd = openat(dir_fd, "key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 && errno == ELOOP)
		return refuse(dir, "is a link; it must be a file", err);
	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(dir, "cannot be read", errno, err);
	if (!S_ISREG(st.st_mode))
		return refuse(dir, "is not a file", err);
	if (st.st_uid != geteuid())
		return refuse(dir, "belongs to another user", err);
	if (st.st_mode & 077)
		return refuse(dir,
			      "may be read by others, who may know it now: chmod 600 it, or remove "
			      "it, which makes all tokens invalid",
			      err);
	ssize_t n = st.st_size == KEY_SIZE ? read(fd, bytes, sizeof bytes) : 0;
	if (n < 0)
		return failed(dir, "cannot be read", errno, err);
	if (n != KEY_SIZE)
		return refuse(dir,
			      "does not have 32 bytes: put it back from a copy, or remove it, "
			      "which makes all tokens invalid",
			      err);
	memcpy(ret_key, bytes, KEY_SIZE);
	OPENSSL_cleanse(bytes, sizeof bytes);
	return 0;
}

/* Gives the new file its name unless something has that name. 0 or -errno. */
static int name_key(int dir_fd, const char *from)
{
	if (renameat2(dir_fd, from, dir_fd, "key", RENAME_NOREPLACE) == 0)
		return 0;
	/* File systems that cannot do this can link. */
	if ((errno != EINVAL && errno != ENOSYS) || linkat(dir_fd, from, dir_fd, "key", 0) < 0)
		return -errno;
	(void)unlinkat(dir_fd, from, 0);
	return 0;
}

static int write_key(int dir_fd, const char *name, const uint8_t key[KEY_SIZE])
{
	COOP_AUTO_FD int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, 0600) < 0)
		return -errno;
	ssize_t n = write(fd, key, KEY_SIZE);
	if (n < 0)
		return -errno;
	if (n != KEY_SIZE)
		return -ENOSPC;
	return fsync(fd) < 0 ? -errno : 0;
}

/* 0; -EEXIST: somebody else has made one meanwhile; other -errno. The file appears whole or not at
 * all. */
static int make_key(int dir_fd, uint8_t ret_key[KEY_SIZE])
{
	char name[40] = ".key-";
	int r = coop_secret_random(8, name + strlen(name));

	if (r == 0)
		r = fill_random(ret_key, KEY_SIZE);
	if (r < 0)
		return r;
	r = write_key(dir_fd, name, ret_key);
	if (r == 0)
		r = name_key(dir_fd, name);
	if (r == 0 && fsync(dir_fd) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, name, 0);
	return r;
}

static int load(const char *dir, uint8_t ret_key[KEY_SIZE], struct coop_err *err)
{
	COOP_AUTO_FD int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir_fd < 0)
		return failed(dir, "cannot be read", errno, err);
	int r = read_key(dir, dir_fd, ret_key, err);
	if (r != -ENOENT)
		return r;
	r = make_key(dir_fd, ret_key);
	if (r == -EEXIST)
		r = read_key(dir, dir_fd, ret_key, err);
	else if (r < 0)
		return failed(dir, "cannot be made", -r, err);
	return r == -ENOENT ? failed(dir, "went away", ENOENT, err) : r;
}

int coop_secret_open(const char *dir, struct coop_secret **ret, struct coop_err *err)
{
	uint8_t key[KEY_SIZE];
	int r = dir ? load(dir, key, err) : fill_random(key, sizeof key);

	if (r < 0 && !dir)
		(void)coop_err_set(err, COOP_UNAVAILABLE, "no random bytes for a key: %s",
				   strerror(-r));
	if (r == 0) {
		r = prepare(key, ret);
		if (r < 0)
			(void)coop_err_no_memory(err);
	}
	OPENSSL_cleanse(key, sizeof key);
	return r;
}

void coop_secret_free(struct coop_secret *secret)
{
	if (!secret)
		return;
	/* Freeing wipes what the contexts took in. */
	EVP_MD_CTX_free(secret->inner);
	EVP_MD_CTX_free(secret->outer);
	EVP_MD_free(secret->md);
	free(secret);
}

int coop_secret_hash(const struct coop_secret *secret, const char *purpose, const void *data,
		     size_t size, uint8_t ret[COOP_HASH_SIZE])
{
	__attribute__((cleanup(free_ctx))) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t hash[COOP_HASH_SIZE];

	if (!ctx || !EVP_MD_CTX_copy_ex(ctx, secret->inner) ||
	    !EVP_DigestUpdate(ctx, purpose, strlen(purpose) + 1) ||
	    !EVP_DigestUpdate(ctx, data, size) || !EVP_DigestFinal_ex(ctx, hash, NULL) ||
	    !EVP_MD_CTX_copy_ex(ctx, secret->outer) || !EVP_DigestUpdate(ctx, hash, sizeof hash) ||
	    !EVP_DigestFinal_ex(ctx, hash, NULL))
		return -ENOMEM;
	memcpy(ret, hash, sizeof hash);
	return 0;
}

int coop_hash(const void *data, size_t size, uint8_t ret[COOP_HASH_SIZE])
{
	uint8_t hash[COOP_HASH_SIZE];

	if (!EVP_Digest(data, size, hash, NULL, EVP_sha256(), NULL))
		return -ENOMEM;
	memcpy(ret, hash, sizeof hash);
	return 0;
}

static void hex(const uint8_t *bytes, size_t size, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		*ret++ = digits[bytes[i] >> 4];
		*ret++ = digits[bytes[i] & 15];
	}
	*ret = 0;
}

void coop_hash_format(const uint8_t hash[COOP_HASH_SIZE], char ret[COOP_HASH_TEXT])
{
	hex(hash, COOP_HASH_SIZE, ret);
}

bool coop_hash_equal(const uint8_t a[COOP_HASH_SIZE], const uint8_t b[COOP_HASH_SIZE])
{
	return CRYPTO_memcmp(a, b, COOP_HASH_SIZE) == 0;
}

int coop_secret_random(size_t size, char *ret)
{
	uint8_t bytes[64];

	for (size_t done = 0; done < size;) {
		size_t piece = size - done < sizeof bytes ? size - done : sizeof bytes;
		int r = fill_random(bytes, piece);
		if (r < 0)
			return r;
		hex(bytes, piece, ret + 2 * done);
		done += piece;
	}
	if (!size)
		*ret = 0;
	OPENSSL_cleanse(bytes, sizeof bytes);
	return 0;
}
