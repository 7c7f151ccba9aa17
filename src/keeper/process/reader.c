#include "keeper/process/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "interface/bounds.h"
#include "keeper/owner/agent.h"
#include "keeper/process/process.h"

struct reader {
	struct coop_link in_process;
	int64_t agent; /* its number: that is never another's, and nobody has to be held */
	uint64_t position;
	unsigned stream;
	char name[COOP_READER_NAME_MAX + 1];
};

void coop_readers_init(struct coop_readers *readers)
{
	coop_list_init(&readers->all);
}

/* The list is in the order of use: the first was not used for the longest time. */
static void forget_first(struct coop_readers *readers)
{
	struct reader *reader = COOP_LIST_ITEM(readers->all.next, struct reader, in_process);

	coop_list_remove(&reader->in_process);
	readers->count--;
	free(reader);
}

void coop_readers_clear(struct coop_readers *readers)
{
	while (readers->count)
		forget_first(readers);
}

/* Whoever asks uses it. */
static struct reader *find(struct coop_readers *readers, const struct coop_agent *agent,
			   const char *name, unsigned stream)
{
	COOP_LIST_EACH(&readers->all, link)
	{
		struct reader *reader = COOP_LIST_ITEM(link, struct reader, in_process);
		if (reader->agent != agent->id || reader->stream != stream ||
		    strcmp(reader->name, name) != 0)
			continue;
		coop_list_remove(link);
		coop_list_add(&readers->all, link);
		return reader;
	}
	return NULL;
}

/* One that is not known begins at the start, so that nobody has to make a reader before the first
 * read. */
uint64_t coop_reader_position(struct coop_process *process, const struct coop_agent *agent,
			      const char *name, unsigned stream)
{
	const struct reader *reader = find(&process->audience.named, agent, name, stream);

	return reader ? reader->position : 0;
}

int coop_reader_move(struct coop_process *process, const struct coop_agent *agent, const char *name,
		     unsigned stream, uint64_t position)
{
	struct coop_readers *readers = &process->audience.named;
	struct reader *reader = find(readers, agent, name, stream);

	if (!reader) {
		reader = coop_mem_zalloc(sizeof *reader);
		if (!reader)
			return -ENOMEM;
		if (readers->count == COOP_READERS_MAX)
			forget_first(readers);
		reader->agent = agent->id;
		reader->stream = stream;
		(void)snprintf(reader->name, sizeof reader->name, "%s", name);
		coop_list_add(&readers->all, &reader->in_process);
		readers->count++;
	}
	reader->position = position;
	return 0;
}
