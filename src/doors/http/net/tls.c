#include "doors/http/net/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define PEM_MAX (1u << 20)

struct coop_tls {
	SSL_CTX *context;
};

struct coop_tls_conn {
	SSL *ssl;
	bool wants_write;
};

/* The whole of a file as a BIO over memory that `ret_bytes` holds. */
static BIO *read_pem(int fd, struct coop_buf *ret_bytes)
{
	for (;;) {
		uint8_t *room = coop_buf_reserve(ret_bytes, 4096);
		ssize_t n = room ? read(fd, room, 4096) : -1;
		if (n < 0 || coop_buf_size(ret_bytes) > PEM_MAX)
			return NULL;
		if (n == 0)
			break;
		coop_buf_commit(ret_bytes, (size_t)n);
	}
	return BIO_new_mem_buf(coop_buf_front(ret_bytes), (int)coop_buf_size(ret_bytes));
}

/* The first certificate is ours, the others lead to somebody whom clients know. */
static bool use_certificates(SSL_CTX *context, BIO *pem)
{
	X509 *own = PEM_read_bio_X509(pem, NULL, NULL, NULL);
	bool good = own && SSL_CTX_use_certificate(context, own) == 1;

	X509_free(own);
	for (X509 *next; good && (next = PEM_read_bio_X509(pem, NULL, NULL, NULL));) {
		if (SSL_CTX_add_extra_chain_cert(context, next) != 1) {
			X509_free(next);
			good = false;
		}
	}
	ERR_clear_error(); /* the end of the file counts as one */
	return good;
}

/* NULL, or why the key is of no use. Whether it is the certificate's is looked at as it is set. */
static const char *use_key(SSL_CTX *context, BIO *pem)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, NULL, NULL);
	bool fits = key && SSL_CTX_use_PrivateKey(context, key) == 1 &&
		    SSL_CTX_check_private_key(context) == 1;
	const char *why = !key    ? "the key is no PEM private key"
			  : !fits ? "the key does not belong to the certificate"
				  : NULL;

	EVP_PKEY_free(key);
	return why;
}

/* TLS 1.3, and of TLS 1.2 what has forward secrecy (ECDHE) and authenticated encryption: what is
 * recorded today must not be read with a key that is stolen tomorrow. An older OpenSSL
 * configuration of the system cannot widen it. Nor are there tickets to take a session up again:
 * those of TLS 1.2 carry its secret, under one key for as long as the gateway runs. */
static bool allow_strong(SSL_CTX *context)
{
	(void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
	       SSL_CTX_set_num_tickets(context, 0) == 1 &&
	       SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

static SSL_CTX *make_context(int certificate, int key, const char **ret_why)
{
	struct coop_buf certificate_bytes = {0}, key_bytes = {0};
	BIO *certificate_pem = read_pem(certificate, &certificate_bytes);
	BIO *key_pem = read_pem(key, &key_bytes);
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	*ret_why = NULL;
	if (!context || !certificate_pem || !key_pem)
		*ret_why = "cannot be read";
	else if (!use_certificates(context, certificate_pem))
		*ret_why = "the certificate is no PEM certificate";
	else
		*ret_why = use_key(context, key_pem);
	if (!*ret_why && !allow_strong(context))
		*ret_why = "TLS 1.2 with forward secrecy cannot be had";
	BIO_free(certificate_pem);
	BIO_free(key_pem);
	if (key_bytes.data)
		OPENSSL_cleanse(key_bytes.data, key_bytes.capacity);
	coop_buf_clear(&certificate_bytes);
	coop_buf_clear(&key_bytes);
	if (*ret_why) {
		SSL_CTX_free(context);
		return NULL;
	}
	return context;
}

struct coop_tls *coop_tls_load(int certificate, int key, char *ret_error, size_t size)
{
	const char *why = "out of memory";
	struct coop_tls *tls = coop_mem_zalloc(sizeof *tls);

	if (tls)
		tls->context = make_context(certificate, key, &why);
	if (!tls || !tls->context) {
		(void)snprintf(ret_error, size, "%s", why);
		free(tls);
		return NULL;
	}
	(void)SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
						     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
						     SSL_MODE_RELEASE_BUFFERS);
	(void)SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
							SSL_OP_IGNORE_UNEXPECTED_EOF);
	(void)SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
	return tls;
}

void coop_tls_unload(struct coop_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	free(tls);
}

struct coop_tls_conn *coop_tls_accept(struct coop_tls *tls, int fd)
{
	struct coop_tls_conn *conn = coop_mem_zalloc(sizeof *conn);

	if (!conn)
		return NULL;
	conn->ssl = SSL_new(tls->context);
	if (!conn->ssl || SSL_set_fd(conn->ssl, fd) != 1) {
		coop_tls_free(conn);
		return NULL;
	}
	SSL_set_accept_state(conn->ssl);
	return conn;
}

void coop_tls_free(struct coop_tls_conn *conn)
{
	if (!conn)
		return;
	SSL_free(conn->ssl);
	free(conn);
}

/* What a failed call means. */
static int outcome(struct coop_tls_conn *conn, int result)
{
	int error = SSL_get_error(conn->ssl, result);

	ERR_clear_error();
	conn->wants_write = error == SSL_ERROR_WANT_WRITE;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	return error == SSL_ERROR_ZERO_RETURN ? 0 : -EPROTO;
}

int coop_tls_handshake(struct coop_tls_conn *conn)
{
	conn->wants_write = false;
	int r = SSL_do_handshake(conn->ssl);
	if (r == 1)
		return 0;
	r = outcome(conn, r);
	return r == 0 ? -EPROTO : r;
}

ssize_t coop_tls_read(struct coop_tls_conn *conn, void *buffer, size_t size)
{
	conn->wants_write = false;
	int r = SSL_read(conn->ssl, buffer, size > INT_MAX ? INT_MAX : (int)size);

	return r > 0 ? r : outcome(conn, r);
}

ssize_t coop_tls_write(struct coop_tls_conn *conn, const void *data, size_t size)
{
	conn->wants_write = false;
	int r = SSL_write(conn->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
	if (r > 0)
		return r;
	r = outcome(conn, r);
	return r == 0 ? -EPIPE : r;
}

bool coop_tls_wants_write(const struct coop_tls_conn *conn)
{
	return conn->wants_write;
}

void coop_tls_end(struct coop_tls_conn *conn)
{
	(void)SSL_shutdown(conn->ssl);
	ERR_clear_error();
}
