#include "doors/http/control/sandboxes_options.h"

#include <string.h>

#include "doors/http/runtime/v1/refusal.h"

/* What a value may be. */
enum {
	TEXT = 1,
	FLAG = 2,
	COUNT = 4, /* a number above 0 */
	MANY = 8,  /* an array or an object; empty it asks for nothing */
	ANY = 16,
};

enum fate {
	USED,       /* elsewhere */
	REFUSED,    /* if it asks for something */
	TOLD,       /* whatever it is */
	TOLD_TRUE,  /* only then it is not what coop does anyway */
	TOLD_FALSE, /* likewise */
};

struct option {
	const char *name;
	unsigned kinds;
	enum fate fate;
	const char *warning;
};

#define BY_PROFILE                                                                                \
	"what commands reach of the network is up to the sandbox profile and coop.conf, usually " \
	"their own loopback alone; this does not widen it"

/* Null is as good as absent for all of them. */
static const struct option options[] = {
	{"timeout", ANY, USED, NULL},
	{"metadata", ANY, USED, NULL},
	{"envs", ANY, USED, NULL},
	{"template", TEXT, USED, NULL},
	{"lifecycle", MANY, USED, NULL},
	{"allow_internet_access", FLAG, TOLD, NULL},
	{"allow_package_registry_access", FLAG, TOLD, BY_PROFILE},
	{"allow_public_traffic", FLAG, TOLD_TRUE,
	 "ports of a sandbox are not reached from outside"},
	{"cpu_count", COUNT, TOLD, "sandboxes share the machine's processors; this is no limit"},
	{"memory_mb", COUNT, TOLD, "sandboxes share the machine's memory; this is no limit"},
	{"secure", FLAG, TOLD_FALSE, "a token is needed for every request all the same"},
	{"allow_out", TEXT | MANY, REFUSED, NULL},
	{"auto_pause", FLAG, REFUSED, NULL},
	{"checkpoint_id", ANY, REFUSED, NULL},
	{"deny_out", TEXT | MANY, REFUSED, NULL},
	{"egress_profile", ANY, REFUSED, NULL},
	{"egress_profiles", MANY, REFUSED, NULL},
	{"exposed_ports", MANY, REFUSED, NULL},
	{"mask_request_host", ANY, REFUSED, NULL},
	{"mcp", ANY, REFUSED, NULL},
	{"network_class", ANY, REFUSED, NULL},
	{"rules", MANY, REFUSED, NULL},
	{"snapshot", ANY, REFUSED, NULL},
	{"snapshot_id", ANY, REFUSED, NULL},
	{"team", ANY, REFUSED, NULL},
	{"template_version_id", ANY, REFUSED, NULL},
	{"volume_mounts", MANY, REFUSED, NULL},
	{"volumes", MANY, REFUSED, NULL},
};

static const struct option *find(const char *name)
{
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		if (!strcmp(options[i].name, name))
			return &options[i];
	}
	return NULL;
}

static bool is_many(const json_t *value)
{
	return json_is_array(value) || json_is_object(value);
}

static bool is_of(const json_t *value, unsigned kinds)
{
	return (kinds & ANY) || ((kinds & TEXT) && json_is_string(value)) ||
	       ((kinds & FLAG) && json_is_boolean(value)) ||
	       ((kinds & COUNT) && json_is_number(value) && json_number_value(value) > 0) ||
	       ((kinds & MANY) && is_many(value));
}

static bool refuse_kind(struct coop_http_exchange *exchange, const struct option *option)
{
	const char *what = option->kinds & COUNT   ? "a number above 0"
			   : option->kinds & FLAG  ? "true or false"
			   : option->kinds == MANY ? "an array or an object"
			   : option->kinds & MANY  ? "a text, an array or an object"
						   : "a text";

	coop_http_refuse(exchange, 400, "invalid_argument", "%s must be %s", option->name, what);
	return false;
}

/* The only template is what every sandbox is. */
static bool take_template(struct coop_http_exchange *exchange, const json_t *value)
{
	const char *name = json_string_value(value);

	if (!strcmp(name, "base"))
		return true;
	coop_refuse_unprovided(exchange, "the template \"%.100s\"", name);
	return false;
}

/* A sandbox ends with its time, and never sleeps. */
static bool take_lifecycle(struct coop_http_exchange *exchange, const json_t *value)
{
	const json_t *end = json_object_get(value, "on_timeout"),
		     *again = json_object_get(value, "auto_resume");
	const char *name, *how = json_string_value(end), *wrong = NULL;
	json_t *member;

	json_object_foreach((json_t *)(uintptr_t)value, name, member)
	{
		if (strcmp(name, "on_timeout") != 0 && strcmp(name, "auto_resume") != 0)
			wrong = name;
	}
	if (wrong || !json_is_object(value))
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "lifecycle must be an object with on_timeout and auto_resume");
	else if (end && !json_is_null(end) &&
		 (!how || (strcmp(how, "kill") != 0 && strcmp(how, "pause") != 0)))
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "lifecycle.on_timeout must be kill or pause");
	else if (again && !json_is_null(again) && !json_is_boolean(again))
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "lifecycle.auto_resume must be true or false");
	else if (how && !strcmp(how, "pause"))
		coop_refuse_unprovided(exchange, "lifecycle.on_timeout \"pause\"");
	else if (json_is_true(again))
		coop_refuse_unprovided(exchange, "lifecycle.auto_resume");
	else
		return true;
	return false;
}

/* Who wants no internet has none, also where the operator's profile has: its bound is the
 * agent's. */
static int take_internet(const json_t *value, json_t *args, json_t *warnings)
{
	const char *text = json_is_true(value)
				   ? "allow_internet_access: " BY_PROFILE
				   : "allow_internet_access: commands reach at most their own "
				     "loopback";
	int r = 0;

	if (json_is_false(value))
		r = json_object_set_new(args, "sandbox", json_pack("{s:s}", "network", "loopback"));
	return r < 0 ? r : json_array_append_new(warnings, json_string(text));
}

static bool is_told(const struct option *option, const json_t *value)
{
	return option->fate == TOLD || (option->fate == TOLD_TRUE && json_is_true(value)) ||
	       (option->fate == TOLD_FALSE && json_is_false(value));
}

/* False: it has been refused. */
static bool take(struct coop_http_exchange *exchange, const struct option *option,
		 const json_t *value, json_t *args, json_t *warnings)
{
	int r = 0;

	if (!is_of(value, option->kinds))
		return refuse_kind(exchange, option);
	if (!strcmp(option->name, "template"))
		return take_template(exchange, value);
	if (!strcmp(option->name, "lifecycle"))
		return take_lifecycle(exchange, value);
	if (option->fate == REFUSED && !json_is_false(value) &&
	    !(option->kinds != ANY && is_many(value) && !json_object_size(value) &&
	      !json_array_size(value))) {
		coop_refuse_unprovided(exchange, "%s", option->name);
		return false;
	}
	if (!strcmp(option->name, "allow_internet_access"))
		r = take_internet(value, args, warnings);
	else if (is_told(option, value))
		r = json_array_append_new(warnings,
					  json_sprintf("%s: %s", option->name, option->warning));
	if (r < 0)
		coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
	return r == 0;
}

bool coop_sandbox_take_options(struct coop_http_exchange *exchange, json_t *args,
			       json_t **ret_warnings)
{
	json_t *warnings = json_array(), *value;
	const char *name;

	json_object_foreach(exchange->json, name, value)
	{
		const struct option *option = find(name);
		if (json_is_null(value))
			continue;
		if (!option)
			coop_http_refuse(exchange, 400, "invalid_argument",
					 "%.100s is no option of a sandbox", name);
		if (!option || !take(exchange, option, value, args, warnings)) {
			json_decref(warnings);
			return false;
		}
	}
	*ret_warnings = warnings;
	return true;
}
