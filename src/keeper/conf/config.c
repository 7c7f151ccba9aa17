#include "keeper/conf/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/log.h"
#include "base/mem.h"
#include "interface/err.h"

struct coop_config {
	struct coop_conf now;
	char path[4096];
	const char *const *overrides;
	int64_t loaded_at;
	char error[512];
};

/* The folder that the keeper was started in is not the one that it works in: a name that counts
 * from there is made whole. */
static int make_absolute(char *path, size_t size)
{
	char folder[4096], whole[4096];

	if (!*path || *path == '/')
		return 0;
	if (!getcwd(folder, sizeof folder))
		return -errno;
	int n = snprintf(whole, sizeof whole, "%s/%s", folder, path);
	if (n < 0 || (size_t)n >= sizeof whole || (size_t)n >= size)
		return -ENAMETOOLONG;
	memcpy(path, whole, (size_t)n + 1);
	return 0;
}

static int load(struct coop_config *config, bool named, struct coop_err *err)
{
	int r = named ? coop_conf_path(config->path, sizeof config->path) : 0;

	if (r < 0)
		return coop_err_set(err, COOP_INVALID_INPUT, "the path of coop.conf is too long");
	r = coop_conf_load(config->path, config->overrides, &config->now, err);
	if (r < 0)
		return r;
	r = make_absolute(config->path, sizeof config->path);
	config->loaded_at = coop_clock_wall_ms();
	return r < 0 ? coop_err_set(err, COOP_INVALID_INPUT, "the path of coop.conf: %s",
				    strerror(-r))
		     : 0;
}

struct coop_config *coop_config_open(bool named, const char *const *overrides, struct coop_err *err)
{
	struct coop_config *config = coop_mem_zalloc(sizeof *config);

	if (!config) {
		(void)coop_err_no_memory(err);
		return NULL;
	}
	config->overrides = overrides;
	if (load(config, named, err) < 0) {
		coop_config_free(config);
		return NULL;
	}
	return config;
}

void coop_config_free(struct coop_config *config)
{
	if (config)
		coop_conf_clear(&config->now);
	free(config);
}

static int load_again(const struct coop_config *config, struct coop_conf *ret, struct coop_err *err)
{
	struct coop_conf fresh;
	int r = coop_conf_load(config->path, config->overrides, &fresh, err);

	if (r < 0)
		return r;
	/* Rules that vanish are no rules that were taken back. */
	if (config->now.present && !fresh.present) {
		coop_conf_clear(&fresh);
		return coop_err_field(
			err, COOP_INVALID_INPUT, "configuration",
			"%.300s is not there any more; empty it to take back what it said",
			config->path);
	}
	*ret = fresh;
	return 0;
}

int coop_config_reload(struct coop_config *config, struct coop_err *err)
{
	struct coop_conf fresh = {0};

	if (load_again(config, &fresh, err) < 0) {
		(void)snprintf(config->error, sizeof config->error, "%s", err->message);
		coop_log(COOP_LOG_ERROR, "configuration not loaded, the old one holds error=\"%s\"",
			 err->message);
		return -1;
	}
	coop_conf_clear(&config->now);
	config->now = fresh;
	config->loaded_at = coop_clock_wall_ms();
	*config->error = 0;
	coop_log(COOP_LOG_INFO, "configuration loaded path=%s",
		 fresh.present ? config->path : "none");
	return 0;
}

const struct coop_conf *coop_config_now(const struct coop_config *config)
{
	return &config->now;
}

const char *coop_config_path(const struct coop_config *config)
{
	return config->path;
}

int64_t coop_config_loaded_at(const struct coop_config *config)
{
	return config->loaded_at;
}

const char *coop_config_error(const struct coop_config *config)
{
	return config->error;
}
