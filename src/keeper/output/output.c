#include "keeper/output/output.h"

#include "keeper/output/digest.h"
#include "keeper/output/ring.h"
#include "keeper/output/spool.h"

void coop_output_init(struct coop_output *output, struct coop_keeper *keeper,
		      const struct coop_output_owner *owner, size_t max_events)
{
	output->keeper = keeper;
	output->owner = owner;
	output->index.limit = max_events;
	coop_stdin_init(&output->input);
	for (int i = 0; i < 2; i++)
		output->streams[i] = (struct coop_outlet){.output = output, .fd = -1};
}

struct coop_outlet *coop_output_stream(struct coop_output *output, unsigned number)
{
	for (int i = 0; i < output->count; i++) {
		if (output->streams[i].number == number)
			return &output->streams[i];
	}
	return NULL;
}

bool coop_output_ended(const struct coop_output *output)
{
	for (int i = 0; i < output->count; i++) {
		if (!output->streams[i].eof)
			return false;
	}
	return true;
}

void coop_output_index_rest(struct coop_output *output)
{
	for (int i = 0; i < output->count; i++)
		coop_stream_index_rest(&output->streams[i]);
}

void coop_output_settle(struct coop_output *output)
{
	output->stage = COOP_OUTPUT_SETTLED;
	for (int i = 0; i < output->count; i++) {
		struct coop_outlet *stream = &output->streams[i];
		/* A child that had to wait for room may have left bytes in the pipe: they are read
		 * when there is room. */
		stream->told_end = stream->paused ? UINT64_MAX : stream->ring.end;
	}
	output->exit_cursor = output->index.next;
	coop_digest_settle(output);
}

void coop_output_close(struct coop_output *output)
{
	for (int i = 0; i < output->count; i++)
		coop_stream_close(&output->streams[i]);
}

/* Positions and counters stay, as a receipt tells them. */
void coop_output_give_up(struct coop_output *output)
{
	output->stage = COOP_OUTPUT_GIVEN_UP;
	coop_stdin_close(output);
	coop_output_close(output);
	coop_index_clear(&output->index);
	coop_spool_free(output);
}

void coop_output_resume(struct coop_output *output)
{
	for (int i = 0; i < output->count; i++)
		coop_stream_resume(&output->streams[i]);
}

void coop_output_clear(struct coop_output *output)
{
	coop_index_clear(&output->index);
	for (int i = 0; i < 2; i++)
		coop_ring_clear(&output->streams[i].ring);
	coop_spool_free(output);
	coop_digest_free(output->digest);
}
