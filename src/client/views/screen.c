#include "client/views/screen.h"

#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include "base/mem.h"
#include "base/text/utf8.h"
#include "client/views/decoder.h"

/* libvterm trusts its input and its memory: it writes past its table of numbers, puts whole
 * commands on the stack, and uses what malloc returns without a look. So it is fed only with what
 * is decoded here: characters, a few controls, and sequences that change text or cursor, put
 * together anew with few small numbers. Its memory is had at the start; later requests (for ever
 * more marks on one character) are refused by leaving its call altogether. */

#define COLS_MIN 2u      /* a wide character has room */
#define NUMBERS_MAX 8u   /* of a sequence; libvterm has room for 16 */
#define NUMBER_MAX 9999u /* more than any position */
#define TEXT_PIECE 256u  /* bytes in one call: it has four times as much on its stack, twice */
#define TITLE_MAX 255u
#define SPARE                                                                               \
	16u /* zero bytes behind each block: a list of marks that could not grow ends there \
	     */

/* Stands before each piece of libvterm's memory. */
struct block {
	_Alignas(max_align_t) struct block *next;
	struct block *previous;
};

struct coop_screen {
	VTerm *term;
	VTermScreen *cells;
	struct block blocks; /* head of a ring: all memory of libvterm */
	bool is_made;        /* from now on there is no more memory */
	jmp_buf escape;      /* out of a call to libvterm */
	struct coop_decoder decoder;
	unsigned cols, rows;
	uint64_t work;   /* so far, at most: see COOP_SCREEN_WORK_MAX */
	unsigned filled; /* columns written since a line was counted as full */
	bool is_hidden, is_alternate;
	char title[TITLE_MAX + 1];
};

static void *allocate(size_t size, void *data)
{
	struct coop_screen *screen = data;
	struct block *block = NULL;

	if (!screen->is_made)
		block = coop_mem_zalloc(sizeof *block + size + SPARE);
	if (!block)
		longjmp(screen->escape, 1);
	block->next = screen->blocks.next;
	block->previous = &screen->blocks;
	block->next->previous = block->previous->next = block;
	return block + 1;
}

static void release(void *memory, void *data)
{
	(void)data;
	if (!memory)
		return;
	struct block *block = (struct block *)memory - 1;
	block->next->previous = block->previous;
	block->previous->next = block->next;
	free(block);
}

static int on_property(VTermProp property, VTermValue *value, void *user)
{
	struct coop_screen *screen = user;

	if (property == VTERM_PROP_CURSORVISIBLE)
		screen->is_hidden = !value->boolean;
	else if (property == VTERM_PROP_ALTSCREEN)
		screen->is_alternate = value->boolean;
	return 1;
}

/* Answers of a terminal go nowhere: this is a picture of one. */
static void on_answer(const char *bytes, size_t size, void *user)
{
	(void)bytes;
	(void)size;
	(void)user;
}

static void make(struct coop_screen *screen)
{
	static VTermAllocatorFunctions memory = {.malloc = allocate, .free = release};
	static const VTermScreenCallbacks callbacks = {.settermprop = on_property};

	screen->term =
		vterm_new_with_allocator((int)screen->rows, (int)screen->cols, &memory, screen);
	vterm_set_utf8(screen->term, 1);
	vterm_output_set_callback(screen->term, on_answer, NULL);
	screen->cells = vterm_obtain_screen(screen->term);
	vterm_screen_set_callbacks(screen->cells, &callbacks, screen);
	vterm_screen_set_damage_merge(screen->cells, VTERM_DAMAGE_SCREEN);
	vterm_screen_enable_altscreen(screen->cells, 1);
	vterm_screen_reset(screen->cells, 1);
}

static unsigned clamp(unsigned value, unsigned low, unsigned high)
{
	return value < low ? low : value > high ? high : value;
}

struct coop_screen *coop_screen_new(unsigned cols, unsigned rows)
{
	struct coop_screen *screen = coop_mem_zalloc(sizeof *screen);

	if (!screen)
		return NULL;
	screen->cols = clamp(cols, COLS_MIN, COOP_SCREEN_COLS_MAX);
	screen->rows = clamp(rows, 1, COOP_SCREEN_ROWS_MAX);
	screen->blocks.next = screen->blocks.previous = &screen->blocks;
	coop_decoder_init(&screen->decoder, 0);
	if (setjmp(screen->escape)) {
		coop_screen_free(screen);
		return NULL;
	}
	make(screen);
	screen->is_made = true;
	return screen;
}

/* Not by vterm_free(), which would stumble over a terminal that was only half made. */
void coop_screen_free(struct coop_screen *screen)
{
	if (!screen)
		return;
	while (screen->blocks.next != &screen->blocks)
		release(screen->blocks.next + 1, screen);
	free(screen);
}

static uint64_t all_cells(const struct coop_screen *screen)
{
	return (uint64_t)screen->cols * screen->rows;
}

/* Text costs as much as it may scroll by being wrapped. */
static void count_text(struct coop_screen *screen, size_t columns)
{
	size_t filled = screen->filled + columns;

	screen->work += filled / screen->cols * all_cells(screen) + columns;
	screen->filled = (unsigned)(filled % screen->cols);
}

static int send(struct coop_screen *screen, const char *bytes, size_t size)
{
	if (!coop_screen_is_worn_out(screen) && setjmp(screen->escape) == 0)
		(void)vterm_input_write(screen->term, bytes, size);
	return 0;
}

static int put_text(void *user, const char *bytes, size_t size, uint64_t offset)
{
	(void)offset;
	while (size) {
		size_t piece = size < TEXT_PIECE ? size : TEXT_PIECE;
		count_text(user, piece);
		(void)send(user, bytes, piece);
		bytes += piece;
		size -= piece;
	}
	return 0;
}

/* One at a time: so the width of what is put down at once is at most 2. */
static int put_character(void *user, const char *bytes, size_t size, uint64_t offset, bool valid)
{
	(void)offset;
	(void)valid;
	count_text(user, 2);
	return send(user, bytes, size);
}

static int put_control(void *user, uint8_t byte, uint64_t offset)
{
	struct coop_screen *screen = user;
	char control = (char)byte;

	(void)offset;
	if (byte >= '\n' && byte <= '\f')
		screen->work += all_cells(screen);
	/* Backspace to carriage return, and the two shifts of character sets. */
	return byte >= '\b' && byte <= 0x0f ? send(user, &control, 1) : 0;
}

static int put_escape(struct coop_screen *screen, const char *text, size_t size)
{
	char bytes[3] = {0x1b, text[0], size > 1 ? text[1] : 0};
	bool is_plain = size == 1 && strchr("78DEHMc", text[0]);
	bool is_charset = size == 2 && strchr("()*+", text[0]) && strchr("0AB", text[1]);

	screen->work += is_plain ? all_cells(screen) : 1;
	return is_plain || is_charset ? send(screen, bytes, size + 1) : 0;
}

/* Reads numbers with semicolons between them. How many bytes that took; SIZE_MAX for too many. A
 * missing one is UINT_MAX. */
static size_t read_numbers(const char *text, size_t size, unsigned numbers[NUMBERS_MAX],
			   size_t *ret_count)
{
	size_t count = 1, at;

	numbers[0] = UINT32_MAX;
	for (at = 0; at < size && ((text[at] >= '0' && text[at] <= '9') || text[at] == ';'); at++) {
		if (text[at] == ';') {
			if (count == NUMBERS_MAX)
				return SIZE_MAX;
			numbers[count++] = UINT32_MAX;
			continue;
		}
		unsigned *number = &numbers[count - 1];
		*number = (*number == UINT32_MAX ? 0 : *number) * 10 + (unsigned)(text[at] - '0');
		if (*number > NUMBER_MAX)
			*number = NUMBER_MAX;
	}
	*ret_count = count;
	return at;
}

static char *write_number(char *to, unsigned number)
{
	unsigned divisor = 1;

	while (number / divisor > 9)
		divisor *= 10;
	for (; divisor; divisor /= 10)
		*to++ = (char)('0' + number / divisor % 10);
	return to;
}

static int put_sequence(struct coop_screen *screen, const char *text, size_t size)
{
	/* Colours and questions do not change what is to be read. */
	static const char plain[] = "@ABCDEFGHIJKLMPSTXZ`adefghlrsu";
	unsigned numbers[NUMBERS_MAX];
	char bytes[8 + NUMBERS_MAX * 5], *to = bytes;
	size_t count, at = size > 1 && text[0] == '?';
	bool is_private = at;

	size_t length = read_numbers(text + at, size - at - 1, numbers, &count);
	if (length == SIZE_MAX || at + length + 1 != size ||
	    !strchr(is_private ? "hlJK" : plain, text[size - 1]))
		return 0;
	/* Modes are cheap but for those of the other screen: 47, 1047, 1049. */
	bool is_dear = strchr("hl", text[size - 1]) ? is_private && numbers[0] >= 47
						    : strchr("JLMST", text[size - 1]) != NULL;
	screen->work += is_dear ? all_cells(screen) : screen->cols;
	*to++ = 0x1b;
	*to++ = '[';
	if (is_private)
		*to++ = '?';
	for (size_t i = 0; i < count; i++) {
		if (i)
			*to++ = ';';
		if (numbers[i] != UINT32_MAX)
			to = write_number(to, numbers[i]);
	}
	*to++ = text[size - 1];
	return send(screen, bytes, (size_t)(to - bytes));
}

/* OSC 0 and 2 name the window. What is not text in a title is left out. */
static void set_title(struct coop_screen *screen, const char *text, size_t size)
{
	size_t written = 0;

	if (size < 2 || (text[0] != '0' && text[0] != '2') || text[1] != ';')
		return;
	for (size_t at = 2; at < size;) {
		size_t length = coop_utf8_char((const uint8_t *)text + at, size - at);
		if (length && (unsigned char)text[at] >= 0x20 && text[at] != 0x7f &&
		    written + length <= TITLE_MAX) {
			memcpy(screen->title + written, text + at, length);
			written += length;
		}
		at += length + !length;
	}
	screen->title[written] = 0;
}

static int take_sequence(void *user, enum coop_sequence_kind kind, const char *text, size_t size)
{
	switch (kind) {
	case COOP_SEQUENCE_ESCAPE:
		return put_escape(user, text, size);
	case COOP_SEQUENCE_CONTROL:
		return put_sequence(user, text, size);
	case COOP_SEQUENCE_OSC:
		set_title(user, text, size);
		break;
	case COOP_SEQUENCE_STRING:
		break;
	}
	return 0;
}

void coop_screen_feed(struct coop_screen *screen, const void *bytes, size_t size)
{
	static const struct coop_decoder_events events = {
		.text = put_text,
		.character = put_character,
		.control = put_control,
		.sequence = take_sequence,
	};

	(void)coop_decoder_feed(&screen->decoder, bytes, size, &events, screen);
}

bool coop_screen_is_worn_out(const struct coop_screen *screen)
{
	return screen->work > COOP_SCREEN_WORK_MAX;
}

struct coop_screen_cursor coop_screen_cursor(const struct coop_screen *screen)
{
	VTermPos at;

	vterm_state_get_cursorpos(vterm_obtain_state(screen->term), &at);
	return (struct coop_screen_cursor){
		.col = at.col < 0 ? 0 : clamp((unsigned)at.col, 0, screen->cols - 1),
		.row = at.row < 0 ? 0 : clamp((unsigned)at.row, 0, screen->rows - 1),
		.visible = !screen->is_hidden,
	};
}

bool coop_screen_is_alternate(const struct coop_screen *screen)
{
	return screen->is_alternate;
}

const char *coop_screen_title(const struct coop_screen *screen)
{
	return screen->title;
}

/* At most 4 bytes; 0 for what is no character that can be seen. */
static size_t encode(uint32_t c, char *to)
{
	uint8_t lead = c < 0x80 ? 0 : c < 0x800 ? 0xc0 : c < 0x10000 ? 0xe0 : 0xf0;
	size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return 0;
	for (size_t i = size; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(lead | c);
	return size;
}

static size_t write_cell(const VTermScreenCell *cell, char *to)
{
	size_t written = 0;

	for (size_t i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell->chars[i]; i++)
		written += encode(cell->chars[i], to + written);
	if (!written)
		to[written++] = ' ';
	return written;
}

int coop_screen_line(const struct coop_screen *screen, unsigned row, char **ret)
{
	char *line = coop_mem_alloc((size_t)screen->cols * VTERM_MAX_CHARS_PER_CELL * 4 + 1);
	size_t size = 0, end = 0;

	if (!line)
		return -ENOMEM;
	for (unsigned col = 0; row < screen->rows && col < screen->cols; col++) {
		VTermScreenCell cell = {0};
		VTermPos at = {.row = (int)row, .col = (int)col};
		(void)vterm_screen_get_cell(screen->cells, at, &cell);
		/* The right half of a wide character. */
		if (cell.chars[0] == UINT32_MAX)
			continue;
		size += write_cell(&cell, line + size);
		if (line[size - 1] != ' ')
			end = size;
	}
	line[end] = 0;
	*ret = line;
	return 0;
}
