/* What a request says of its sandbox: what it may do, how much it may use, which files it gets. */
#include "interface/bounds.h"
#include "interface/choices.h"
#include "interface/field_rows.h"
#include "interface/fields.h"
#include "interface/protection.h"

#define PATHS(list, text, ...) STRINGS(list, COOP_SANDBOX_PATHS_MAX, text, __VA_ARGS__)
#define NAMES(list, text) STRINGS(list, COOP_PROTECT_COUNT, text, .form = "NAME")

const struct coop_field coop_sandbox_fields[] = {
	STRING("profile", COOP_PROFILE_NAME_MAX,
	       "read-only, workspace-write, full, or one of the operator's; also baseline, "
	       "restricted, privileged",
	       .form = "PROFILE"),
	STRING("workspace", COOP_PATH_SIZE - 1, "absolute path of the folder that is writable",
	       .form = "FOLDER"),
	PATHS("allow_write", "more writable paths", .option = "write", .form = "FOLDER",
	      .unit = COOP_UNIT_PLACE),
	PATHS("allow_read", "paths to be seen with root minimal", .option = "read",
	      .unit = COOP_UNIT_PLACE),
	PATHS("deny_write", "paths that stay read-only; wins over what is writable",
	      .unit = COOP_UNIT_PATH),
	PATHS("deny_read", "paths and patterns that are as absent; wins over all",
	      .unit = COOP_UNIT_PATH),
	PATHS("protect", "more paths that stay read-only in every writable folder", .form = "PATH"),
	ENUM("network", coop_choices_network, "what it reaches; allowlist cannot be had yet",
	     .option = "net"),
	PATHS("allowed_domains", "cannot be had yet"),
	PATHS("denied_domains", "cannot be had yet"),
	ENUM("home", coop_choices_home, "how the home folder is seen"),
	ENUM("root", coop_choices_root, "what of the host's files is seen"),
	ENUM("names", coop_choices_names,
	     "the paths are without links; resolved: not all were typed so"),
	NAMES("require", "protections without which nothing starts"),
	NAMES("tolerate", "protections that may be missing"),
	END,
};

const struct coop_field coop_limits_fields[] = {
	BYTES("memory_bytes", 1 << 20, 1LL << 50, "memory of the process with all below it",
	      .option = "mem"),
	NUMBER("cpu_quota", 1, 4096 * 1000,
	       "share of the processors, in cores: 0.5 is half of one; 0.001 to 4096",
	       .unit = COOP_UNIT_CORES, .option = "cpus"),
	INT("max_pids", 1, 1 << 22, "processes and threads at a time", .option = "pids"),
	INT("max_cpu_secs", 1, 1000000000, "processor time of one process",
	    .unit = COOP_UNIT_SECONDS, .option = "cpu-time"),
	INT("max_open_files", 4, 1 << 20, "open files of one process", .option = "files"),
	BYTES("max_file_bytes", 1, 1LL << 50, "size of a file that is written", .option = "fsize"),
	BYTES("tmp_bytes", 4096, 1LL << 50, "size of the private /tmp", .option = "tmp-size"),
	END,
};

const struct coop_field coop_injection_fields[] = {
	ENUM("placement", coop_choices_placement,
	     "env: a variable holds the file's path; path: it lies there", .required = true),
	STRING("name", COOP_NAME_BYTES_MAX, "of the variable (placement env)"),
	STRING("path", COOP_PATH_SIZE - 1,
	       "absolute (placement path); needs a view of the process's own"),
	STRING("content", 0, "the bytes, as text"),
	STRING("content_base64", 0, "or as base64"),
	BYTES("content_bytes", 0, COOP_INJECTION_BYTES_MAX,
	      "or so many of the request's bytes: the first ones that no file before it has"),
	END,
};
