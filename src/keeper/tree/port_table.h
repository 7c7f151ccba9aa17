/* The TCP sockets of a network that listen on a port, whoever has them. */
#ifndef COOP_KEEPER_PORT_TABLE_H
#define COOP_KEEPER_PORT_TABLE_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* On one port, each with another address or a share of one; what is beyond is not told. */
#define COOP_PORT_TABLE_MAX 256u

struct coop_port_row {
	uint64_t inode; /* as in the name of a descriptor: socket:[inode] */
	char address[INET6_ADDRSTRLEN];
};

struct coop_port_table {
	struct coop_port_row rows[COOP_PORT_TABLE_MAX];
	size_t count;
};

/* Those in the network of process `pid`; 0: in the keeper's own. 0, or -ENOTSUP: the kernel does
 * not tell. A process that is gone has none. */
int coop_port_table_read(pid_t pid, uint16_t port, struct coop_port_table *ret);

#endif
