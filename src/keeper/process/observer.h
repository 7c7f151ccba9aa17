/* Who is told what happens to processes: rows of one table, which main/ fills in. The rooms below
 * do not know who watches, and the rows are called in the order of the table. */
#ifndef COOP_KEEPER_OBSERVER_H
#define COOP_KEEPER_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "keeper/core/keeper.h"
#include "keeper/process/kinds.h"

struct coop_outlet;
struct coop_process;

/* Calls that a row leaves NULL are not its business. What they are told holds already. */
struct coop_observer {
	/* Its end is about to be told: whatever is still to be said comes now. */
	void (*on_telling)(struct coop_process *process);
	/* It has entered that phase. */
	void (*on_phase)(struct coop_process *process, enum coop_phase phase);
	/* Something that changes no phase, by the name that subscribers know it by: "stopped" (by a
	 * signal), "continued", "frozen", "thawed". */
	void (*on_event)(struct coop_process *process, const char *event);
	/* Its leader has ended; why is about to be judged. */
	void (*on_reaped)(struct coop_process *process, int wait_status);
	/* A signal ended it that nobody here sent: the row may know why, and say so in the end. */
	void (*on_unexplained)(struct coop_process *process, int signal, uint64_t cpu_ns);
	/* It is about to be stopped or killed: it must be able to act on that. */
	void (*on_killing)(struct coop_process *process);
	/* It waits for a holder from now on, however much it has printed. */
	void (*on_held)(struct coop_process *process);
	/* Asked of one row: whether an ended one still owns living processes. `known`: as far as
	 * is known; else also where that is not certain yet. */
	bool (*owns_others)(struct coop_process *process, bool known);
	/* The kernel has shown that nobody of its tree is left. */
	void (*on_empty)(struct coop_process *process);
	/* There is something new to read: output, a note, an end, the removal of the record. */
	void (*on_news)(struct coop_process *process);
	/* The first byte of that stream has come. */
	void (*on_first_output)(struct coop_process *process, const struct coop_outlet *stream);
	/* Its output may take no more room on disk, and that is to end it. */
	void (*on_output_quota)(struct coop_process *process);
	/* A note on its progress is due. */
	void (*on_progress)(struct coop_process *process);
	/* Nothing of it stands in folders any more. */
	void (*on_tidy)(struct coop_process *process);
	/* The moment has come that this deadline was set to. */
	void (*on_due)(struct coop_process *process, enum coop_deadline which);
	/* Its last reference goes. */
	void (*on_free)(struct coop_process *process);
};

/* Calls that member of each row that has it. */
#define COOP_TELL(process, call, ...)                                                           \
	do {                                                                                    \
		const struct coop_observer *const *row_ = coop_observers_of((process)->keeper); \
		for (; *row_; row_++) {                                                         \
			if ((*row_)->call)                                                      \
				(*row_)->call((process), ##__VA_ARGS__);                        \
		}                                                                               \
	} while (0)

/* Whether an ended one still owns living processes. `known`: as far as is known; else also where
 * that is not certain yet. */
bool coop_observer_owns_others(struct coop_process *process, bool known);

/* There is something new to read. */
void coop_observer_news(struct coop_process *process);

#endif
