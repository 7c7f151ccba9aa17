#include "keeper/process/observer.h"

#include "keeper/process/process.h"

bool coop_observer_owns_others(struct coop_process *process, bool known)
{
	const struct coop_observer *const *row = coop_observers_of(process->keeper);

	while (*row && !(*row)->owns_others)
		row++;
	return *row && (*row)->owns_others(process, known);
}

void coop_observer_news(struct coop_process *process)
{
	COOP_TELL(process, on_news);
}
