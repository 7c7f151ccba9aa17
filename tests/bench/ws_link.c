#include "ws_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { OPCODE = 0x0f, OPCODE_CLOSE = 8, TEXT = 0x81, MASKED = 0x80 };

int link_connect(unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		bench_fail_errno("connect");
	return fd;
}

void link_send(int fd, const void *data, size_t size)
{
	for (const char *at = data; size;) {
		ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			bench_fail_errno("send");
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
}

size_t link_more(struct link_in *in)
{
	if (in->from) {
		memmove(in->bytes, in->bytes + in->from, in->to - in->from);
		in->to -= in->from;
		in->from = 0;
	}
	/* A byte is left for a NUL. */
	if (in->to == sizeof in->bytes - 1)
		bench_fail("an answer is larger than it should be", NULL);
	ssize_t n;
	do
		n = recv(in->fd, in->bytes + in->to, sizeof in->bytes - 1 - in->to, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		bench_fail_errno("recv");
	in->to += (size_t)n;
	return (size_t)n;
}

static void read_head(struct link_in *in)
{
	char *end;

	do {
		if (!link_more(in))
			bench_fail("the server closed instead of answering", NULL);
		in->bytes[in->to] = 0;
		end = strstr(in->bytes, "\r\n\r\n");
	} while (!end);
	*end = 0;
	if (strncmp(in->bytes, "HTTP/1.1 101 ", 13) != 0 || !strstr(in->bytes, WS_ACCEPT))
		bench_fail("no WebSocket", in->bytes);
	in->from = (size_t)(end + 4 - in->bytes);
}

void ws_open(struct link_in *in, unsigned port, const char *target, const char *token)
{
	char text[1024];
	int size = snprintf(text, sizeof text,
			    "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\n"
			    "Connection: Upgrade\r\nSec-WebSocket-Key: " WS_KEY "\r\n"
			    "Sec-WebSocket-Version: 13\r\n%s%s%s\r\n",
			    target, port, token ? "Authorization: Bearer " : "", token ? token : "",
			    token ? "\r\n" : "");

	if (size >= (int)sizeof text)
		bench_fail("the target or the token is too long", NULL);
	in->fd = link_connect(port);
	in->from = in->to = 0;
	link_send(in->fd, text, (size_t)size);
	read_head(in);
}

void ws_send(int fd, const char *text)
{
	static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
	uint8_t frame[8 + 4096];
	size_t size = strlen(text), at = 0;

	if (size > 4096)
		bench_fail("a message is larger than it should be", NULL);
	frame[at++] = TEXT;
	if (size < 126) {
		frame[at++] = (uint8_t)(MASKED | size);
	} else {
		frame[at++] = MASKED | 126;
		frame[at++] = (uint8_t)(size >> 8);
		frame[at++] = (uint8_t)size;
	}
	memcpy(frame + at, mask, sizeof mask);
	at += sizeof mask;
	for (size_t i = 0; i < size; i++)
		frame[at++] = (uint8_t)text[i] ^ mask[i % 4];
	link_send(fd, frame, at);
}

size_t ws_header(const uint8_t *bytes, size_t size, size_t *ret_size)
{
	size_t more = size < 2 ? 0 : bytes[1] == 127 ? 8 : bytes[1] == 126 ? 2 : 0;

	if (size < 2 + more)
		return 0;
	if (bytes[1] & MASKED)
		bench_fail("a server must not mask", NULL);
	*ret_size = more ? 0 : bytes[1];
	for (size_t i = 0; i < more; i++)
		*ret_size = *ret_size << 8 | bytes[2 + i];
	return 2 + more;
}

size_t ws_put_header(uint8_t ret[WS_HEADER_MAX], size_t size)
{
	size_t more = size < 126 ? 0 : size < 65536 ? 2 : 8;

	ret[0] = TEXT;
	ret[1] = (uint8_t)(more == 0 ? size : more == 2 ? 126 : 127);
	for (size_t i = 0; i < more; i++)
		ret[2 + i] = (uint8_t)(size >> 8 * (more - 1 - i));
	return 2 + more;
}

char *ws_receive(struct link_in *in)
{
	size_t header, size = 0;

	for (;;) {
		uint8_t *at = (uint8_t *)in->bytes + in->from;
		header = ws_header(at, in->to - in->from, &size);
		if (header && header + size <= in->to - in->from)
			break;
		if (!link_more(in))
			return NULL;
	}
	char *frame = in->bytes + in->from;
	if (((unsigned char)frame[0] & OPCODE) == OPCODE_CLOSE)
		return NULL;
	/* The text moves to the front over its header, so that its NUL overwrites nothing of the
	 * next frame. */
	memmove(frame, frame + header, size);
	frame[size] = 0;
	in->from += header + size;
	return frame;
}
