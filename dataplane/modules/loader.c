// SPDX-License-Identifier: BSD-3-Clause
#include "modules/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum module_verdict open_checked(const char *path, int *out_fd, char *out_why);
static enum module_verdict link_fd(
	int fd, const char *path, const struct spotlane_module **out_module, char *out_why);

PRINTF_LIKE(3, 4)
static enum module_verdict refuse(
	char *out_why, enum module_verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out_why, MODULE_WHY_BYTES, format, args);
	va_end(args);
	return verdict;
}

enum module_verdict module_load(const char *path, const struct spotlane_module **out_module,
	char out_why[MODULE_WHY_BYTES])
{
	const struct spotlane_module *module = NULL;
	enum module_verdict verdict;
	int fd = -1;

	verdict = open_checked(path, &fd, out_why);
	if (verdict != MODULE_LOADED)
		return verdict;
	verdict = link_fd(fd, path, &module, out_why);
	// The descriptor of a loaded module stays open: the dynamic linker recognises objects by
	// the name they were opened with, and a reused number would make it hand out the earlier
	// module.
	if (verdict != MODULE_LOADED)
		return verdict;
	verdict = module_table_check(module, path, out_why);
	if (verdict == MODULE_LOADED)
		*out_module = module;
	return verdict;
}

const char *module_verdict_name(enum module_verdict verdict)
{
	switch (verdict) {
	case MODULE_LOADED:
		return "loaded";
	case MODULE_NOT_FOUND:
		return "not-found";
	case MODULE_UNSAFE:
		return "unsafe-file";
	case MODULE_NOT_LOADABLE:
		return "not-loadable";
	case MODULE_NO_SYMBOL:
		return "no-symbol";
	case MODULE_WRONG_ABI:
		return "wrong-abi";
	case MODULE_BAD_TABLE:
		return "bad-table";
	}
	return "?";
}

// ---- the file ----

// Whether somebody other than root or this user could replace or change what has this mode and
// owner.
static bool others_may_write(const struct stat *st)
{
	if (st->st_mode & S_IWOTH)
		return true;
	return (st->st_mode & S_IWGRP) && st->st_gid != 0 && st->st_gid != getegid();
}

static enum module_verdict check_directories(const char *path, char *out_why)
{
	char real[PATH_MAX];

	if (realpath(path, real) == NULL)
		return refuse(out_why, MODULE_NOT_FOUND, "%s: %s", path, strerror(errno));
	for (char *slash = strrchr(real, '/'); slash != NULL; slash = strrchr(real, '/')) {
		struct stat st;

		slash[slash == real ? 1 : 0] = '\0';
		if (stat(real, &st) != 0)
			return refuse(out_why, MODULE_NOT_FOUND, "%s: %s", real, strerror(errno));
		if (others_may_write(&st) && !(st.st_mode & S_ISVTX))
			return refuse(out_why, MODULE_UNSAFE,
				"%s: others may write the folder %s (chmod go-w it, or move the module)",
				path, real);
		if (slash == real)
			break;
	}
	return MODULE_LOADED;
}

static enum module_verdict check_file(int fd, const char *path, char *out_why)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return refuse(out_why, MODULE_NOT_FOUND, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(out_why, MODULE_UNSAFE, "%s: not a regular file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return refuse(out_why, MODULE_UNSAFE,
			"%s: belongs to user %u; a module must belong to root or to the node's user (%u)",
			path, st.st_uid, geteuid());
	if (others_may_write(&st))
		return refuse(
			out_why, MODULE_UNSAFE, "%s: others may write it (chmod go-w it)", path);
	return MODULE_LOADED;
}

static enum module_verdict open_checked(const char *path, int *out_fd, char *out_why)
{
	enum module_verdict verdict;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == ELOOP)
		return refuse(out_why, MODULE_UNSAFE,
			"%s: is a symbolic link (name the file that it points to)", path);
	if (fd < 0)
		return refuse(out_why, MODULE_NOT_FOUND, "%s: %s", path, strerror(errno));
	verdict = check_file(fd, path, out_why);
	if (verdict == MODULE_LOADED)
		verdict = check_directories(path, out_why);
	if (verdict != MODULE_LOADED) {
		close(fd);
		return verdict;
	}
	*out_fd = fd;
	return MODULE_LOADED;
}

static enum module_verdict link_fd(
	int fd, const char *path, const struct spotlane_module **out_module, char *out_why)
{
	const struct spotlane_module *module;
	char name[64];
	void *object;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (object == NULL) {
		close(fd);
		return refuse(out_why, MODULE_NOT_LOADABLE, "%s: %s", path, dlerror());
	}
	module = dlsym(object, SPOTLANE_MODULE_SYMBOL);
	if (module == NULL)
		return refuse(out_why, MODULE_NO_SYMBOL, "%s: does not export %s", path,
			SPOTLANE_MODULE_SYMBOL);
	*out_module = module;
	return MODULE_LOADED;
}

// ---- the table ----

static bool name_is_valid(const char *name)
{
	size_t n;

	if (name == NULL)
		return false;
	n = strnlen(name, 65);
	return n >= 1 && n <= 64 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

// What the three kinds of type have in common, as facts, so that one function judges all of them.
struct type_facts {
	const char *name;
	uint32_t flags;
	enum spotlane_state_cadence cadence;
	bool construct, dispose, message, answered, capture, restore, state_loaded;
};

#define TYPE_FACTS(t)                                                                              \
	{                                                                                          \
		(t)->name, (t)->flags, (t)->cadence, (t)->construct != NULL, (t)->dispose != NULL, \
			(t)->message != NULL, (t)->answered != NULL, (t)->capture != NULL,         \
			(t)->restore != NULL, (t)->state_loaded != NULL                            \
	}

static const char *type_fault(const struct type_facts *t)
{
	if (!t->construct)
		return "has no construct callback";
	if (!t->dispose)
		return "has no dispose callback";
	if (!t->message)
		return "has no message callback";
	if (t->flags & ~(uint32_t)SPOTLANE_TYPE_NOWAIT)
		return "has a flag that this version does not know";
	if ((t->flags & SPOTLANE_TYPE_NOWAIT) && t->answered)
		return "is declared nowait but has an answered callback";
	if (t->capture != t->restore)
		return "needs both capture and restore, or neither";
	if ((unsigned)t->cadence > SPOTLANE_STATE_CHECKPOINT)
		return "has an unknown state cadence";
	if (t->cadence != SPOTLANE_STATE_NONE && !t->state_loaded)
		return "declares a state but has no state_loaded callback";
	return NULL;
}

struct table_walk {
	const char *file;
	char *out_why;
	const char *names[MODULE_TYPES_MAX];
	uint32_t count;
};

static enum module_verdict check_type(struct table_walk *walk, const struct type_facts *type)
{
	const char *fault;

	if (walk->count == MODULE_TYPES_MAX)
		return refuse(walk->out_why, MODULE_BAD_TABLE, "%s: more than %d Spot types",
			walk->file, MODULE_TYPES_MAX);
	if (!name_is_valid(type->name))
		return refuse(walk->out_why, MODULE_BAD_TABLE,
			"%s: a Spot type's name must be 1 to 64 of a-z, 0-9 and '-'", walk->file);
	for (uint32_t i = 0; i < walk->count; i++)
		if (strcmp(walk->names[i], type->name) == 0)
			return refuse(walk->out_why, MODULE_BAD_TABLE,
				"%s: the Spot type %s is there twice", walk->file, type->name);
	walk->names[walk->count++] = type->name;
	fault = type_fault(type);
	if (fault != NULL)
		return refuse(walk->out_why, MODULE_BAD_TABLE, "%s: the Spot type %s %s",
			walk->file, type->name, fault);
	return MODULE_LOADED;
}

static enum module_verdict check_types(struct table_walk *walk, const struct spotlane_module *m)
{
	enum module_verdict verdict = MODULE_LOADED;

	for (uint32_t i = 0; verdict == MODULE_LOADED && m->instance_types && m->instance_types[i];
		i++) {
		struct type_facts facts = TYPE_FACTS(m->instance_types[i]);
		verdict = check_type(walk, &facts);
	}
	for (uint32_t i = 0; verdict == MODULE_LOADED && m->user_types && m->user_types[i]; i++) {
		struct type_facts facts = TYPE_FACTS(m->user_types[i]);
		verdict = check_type(walk, &facts);
	}
	for (uint32_t i = 0; verdict == MODULE_LOADED && m->entry_types && m->entry_types[i]; i++) {
		struct type_facts facts = TYPE_FACTS(m->entry_types[i]);
		verdict = check_type(walk, &facts);
	}
	return verdict;
}

enum module_verdict module_table_check(
	const struct spotlane_module *module, const char *name, char out_why[MODULE_WHY_BYTES])
{
	struct table_walk walk = {.file = name, .out_why = out_why};
	enum module_verdict verdict;

	if (module->abi != SPOTLANE_MODULE_ABI)
		return refuse(out_why, MODULE_WRONG_ABI,
			"%s: built for module interface %u, this node speaks %u (build it again)",
			name, module->abi, SPOTLANE_MODULE_ABI);
	if (module->size != sizeof(*module))
		return refuse(out_why, MODULE_WRONG_ABI,
			"%s: its table has %u bytes, this node's has %zu (build it again)", name,
			module->size, sizeof(*module));
	if (!name_is_valid(module->name))
		return refuse(out_why, MODULE_BAD_TABLE,
			"%s: the module's name must be 1 to 64 of a-z, 0-9 and '-'", name);
	if (module->version == NULL || strnlen(module->version, 65) > 64)
		return refuse(
			out_why, MODULE_BAD_TABLE, "%s: no version of at most 64 bytes", name);
	if (module->attach == NULL)
		return refuse(out_why, MODULE_BAD_TABLE, "%s: no attach callback", name);
	verdict = check_types(&walk, module);
	if (verdict == MODULE_LOADED && walk.count == 0)
		return refuse(out_why, MODULE_BAD_TABLE, "%s: supplies no Spot type", name);
	return verdict;
}
