#include "keeper/ops/resources.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "keeper/core/keeper.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"

static int open_fds(void)
{
	DIR *fds = opendir("/proc/self/fd");
	int count = 0;

	while (fds && readdir(fds))
		count++;
	if (fds)
		(void)closedir(fds);
	return count - 3; /* ".", ".." and the one for looking */
}

/* Memory that is really there, not what rings may grow to. */
uint64_t coop_resources_buffers(const struct coop_keeper *keeper)
{
	uint64_t sum = 0;

	COOP_LIST_EACH(coop_registry_all(keeper), link)
	{
		const struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.all);
		for (int i = 0; i < process->output.count; i++)
			sum += process->output.streams[i].ring.capacity;
		sum += process->output.index.capacity * sizeof *process->output.index.events;
	}
	return sum;
}

uint64_t coop_resources_rss(void)
{
	unsigned long long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (statm && fscanf(statm, "%*u %llu", &pages) != 1)
		pages = 0;
	if (statm)
		(void)fclose(statm);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void coop_resources_write_fds(struct coop_jsonw *w, const char *name)
{
	struct rlimit limit = {0};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	coop_jsonw_begin(w, name);
	coop_jsonw_int(w, "open", open_fds());
	coop_jsonw_uint(w, "limit", limit.rlim_cur);
	coop_jsonw_end(w);
}
