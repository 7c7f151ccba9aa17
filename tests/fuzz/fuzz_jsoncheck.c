/* What is taken for a JSON object is one for jansson too, and the other way round, numbers that are
 * too large for it aside. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/json/jsoncheck.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	json_error_t fault;

	/* What is checked are C strings; jansson skips such a byte behind a number. */
	if (memchr(input, 0, size))
		return 0;
	json_t *value = json_loadb((const char *)input, size, JSON_ALLOW_NUL, &fault);
	bool checked = coop_jsoncheck_object((const char *)input, size);

	if (value)
		assert(checked == json_is_object(value));
	else if (json_error_code(&fault) != json_error_numeric_overflow &&
		 json_error_code(&fault) != json_error_out_of_memory)
		assert(!checked);
	json_decref(value);
	return 0;
}
