#include "doors/cli/terminal/keys.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "doors/cli/cli.h"
#include "doors/cli/terminal/relay.h"
#include "doors/cli/terminal/terminal.h"

/* No shell uses it; those who need it (vim's tags) type it twice. */
#define KEY 0x1d
/* After so long without a second key the choices are shown. */
#define MOMENT_NS (500ull * 1000000)
/* How long somebody who leaves waits for the last keys to be taken. */
#define LEAVING_NS (1000ull * 1000000)

/* A process with a terminal gets every key as it is. Else lines are typed, but the key after Ctrl-]
 * is to be seen without Enter, and where nothing is sent there is nothing to type. */
static void set_mode(struct cli_relay *relay)
{
	const bool single = relay->keys.seen || relay->feeder.mute;
	enum cli_terminal_mode mode = single ? CLI_TERMINAL_KEYS : CLI_TERMINAL_LINES;
	if (relay->pty && !relay->feeder.mute)
		mode = CLI_TERMINAL_RAW;
	cli_terminal_set(&relay->terminal, mode);
}

/* What a key after Ctrl-] means: gives how many bytes to send (into out), or -1 to leave. */
static int second_key(struct cli_relay *relay, char key, char out[2])
{
	if (key == 'd')
		return -1;
	if (key == 'k' && !relay->keys.only_look) {
		cli_relay_kill(relay);
		return 0;
	}
	out[0] = KEY;
	out[1] = key;
	return key == KEY ? 1 : 2;
}

/* The feeder's filter. At most one byte is added: a Ctrl-] that was held back before and turned out
 * to be meant. */
static bool watch(void *user, char *bytes, size_t *size)
{
	struct cli_relay *relay = user;
	struct cli_keys *keys = &relay->keys;
	char sent[CLI_FEEDER_PIECE + 1];
	size_t count = 0;
	bool stay = true;
	for (size_t i = 0; i < *size && stay; i++) {
		char out[2] = {bytes[i]};
		const bool second = keys->seen;
		keys->seen = !second && bytes[i] == KEY;
		int n = second ? second_key(relay, bytes[i], out) : !keys->seen;
		stay = n >= 0;
		for (int k = 0; k < n; k++)
			sent[count++] = out[k];
	}
	if (count)
		memcpy(bytes, sent, count);
	*size = count;
	relay->alarm_at = !stay        ? coop_clock_now() + LEAVING_NS
			  : keys->seen ? coop_clock_now() + MOMENT_NS
				       : 0;
	set_mode(relay);
	return stay;
}

static void on_alarm(struct cli_relay *relay)
{
	if (relay->feeder.left) {
		relay->over = true;
		return;
	}
	cli_relay_note(relay, relay->keys.only_look
				      ? "Ctrl-] d leaves it running"
				      : "Ctrl-]: d leaves it running, k kills it, Ctrl-] sends "
					"one, any other key is sent with it");
}

void cli_keys_start(struct cli_relay *relay, const char *text)
{
	relay->feeder.filter = watch;
	relay->feeder.user = relay;
	relay->on_alarm = on_alarm;
	/* First the mode: whoever has seen the line may type. */
	set_mode(relay);
	cli_say("%s%s", text,
		relay->keys.only_look ? "Ctrl-] d or Ctrl-C leaves it running"
				      : "Ctrl-] d leaves it running, Ctrl-] k kills it");
	cli_relay_to_left();
}
