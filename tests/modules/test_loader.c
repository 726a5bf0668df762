// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "modules/loader.h"

// Folders of this build, from the command line.
static const char *bad_dir, *shipped_dir;

static char why[MODULE_WHY_BYTES];

static const char *bad_path(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s.so", bad_dir, name);
	return path;
}

static enum module_verdict load(const char *path)
{
	const struct spotlane_module *module = NULL;
	enum module_verdict verdict = module_load(path, &module, why);

	assert_int_equal(module != NULL, verdict == MODULE_LOADED);
	if (verdict != MODULE_LOADED)
		assert_non_null(strstr(why, path)); // the person learns which file
	return verdict;
}

// Copies a file into a fresh folder below the temporary one; both are ours alone.
static const char *private_copy(const char *from, mode_t mode)
{
	static char path[4096];
	char command[9000];
	char *folder = path;

	snprintf(path, sizeof(path), "%s/loader-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command), "cp %s %s/copy.so", from, folder);
	assert_int_equal(system(command), 0);
	strcat(path, "/copy.so");
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static void remove_copy(const char *path)
{
	char folder[4096];

	unlink(path);
	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = '\0';
	chmod(folder, 0700);
	rmdir(folder);
}

static void x__every_shipped_module_loads(void **state)
{
	static const char *const names[] = {"echo", "counter", "tracker", "slow", "room", "lobby"};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		const struct spotlane_module *module = NULL;
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s/%s.so", shipped_dir, names[i], names[i]);
		assert_int_equal(module_load(path, &module, why), MODULE_LOADED);
		// Each by its own name: the dynamic linker did not hand out an earlier one.
		assert_string_equal(module->name, names[i]);
	}
}

static void x__a_broken_table_is_refused_and_named(void **state)
{
	static const struct {
		const char *file;
		enum module_verdict verdict;
		const char *says;
	} cases[] = {
		{"bad_0", MODULE_LOADED, ""},
		{"bad_1", MODULE_WRONG_ABI, "interface 0"},
		{"bad_2", MODULE_WRONG_ABI, "interface 2"},
		{"bad_3", MODULE_WRONG_ABI, "bytes"},
		{"bad_4", MODULE_BAD_TABLE, "module's name"},
		{"bad_5", MODULE_BAD_TABLE, "construct"},
		{"bad_6", MODULE_BAD_TABLE, "message"},
		{"bad_7", MODULE_BAD_TABLE, "nowait"},
		{"bad_8", MODULE_BAD_TABLE, "flag"},
		{"bad_9", MODULE_BAD_TABLE, "twice"},
		{"bad_10", MODULE_BAD_TABLE, "capture"},
		{"bad_11", MODULE_BAD_TABLE, "state"},
		{"bad_12", MODULE_BAD_TABLE, "no Spot type"},
		{"bad_13", MODULE_BAD_TABLE, "attach"},
		{"bad_14", MODULE_BAD_TABLE, "name"},
		{"bad_15", MODULE_BAD_TABLE, "dispose"},
		{"silent", MODULE_NO_SYMBOL, "spotlane_module_v1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		why[0] = '\0';
		assert_int_equal(load(bad_path(cases[i].file)), cases[i].verdict);
		assert_non_null(strstr(why, cases[i].says));
	}
}

static void x__what_is_no_file_of_ours_is_refused(void **state)
{
	char link[4096];
	const char *copy;

	(void)state;
	assert_int_equal(load("/nonexistent/module.so"), MODULE_NOT_FOUND);
	assert_int_equal(load("/dev/null"), MODULE_UNSAFE);
	assert_int_equal(load("/"), MODULE_UNSAFE);
	copy = private_copy(bad_path("bad_0"), 0755);
	snprintf(link, sizeof(link), "%.4000s.link", copy);
	assert_int_equal(symlink(copy, link), 0);
	assert_int_equal(load(link), MODULE_UNSAFE);
	assert_non_null(strstr(why, "symbolic link"));
	unlink(link);
	assert_int_equal(load(copy), MODULE_LOADED);
	remove_copy(copy);
}

static void x__what_others_may_write_is_refused(void **state)
{
	char folder[4096];
	const char *copy;

	(void)state;
	copy = private_copy(bad_path("bad_0"), 0757);
	assert_int_equal(load(copy), MODULE_UNSAFE);
	assert_non_null(strstr(why, "chmod"));
	remove_copy(copy);

	copy = private_copy(bad_path("bad_0"), 0755);
	snprintf(folder, sizeof(folder), "%s", copy);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(load(copy), MODULE_UNSAFE);
	assert_non_null(strstr(why, "folder"));
	remove_copy(copy);
}

static void x__a_foreign_owner_is_refused(void **state)
{
	const char *copy;

	(void)state;
	if (geteuid() != 0)
		skip();
	copy = private_copy(bad_path("bad_0"), 0755);
	assert_int_equal(chown(copy, 12345, 12345), 0);
	assert_int_equal(load(copy), MODULE_UNSAFE);
	assert_non_null(strstr(why, "belongs to user 12345"));
	remove_copy(copy);
}

static void x__a_file_that_is_no_object_is_refused(void **state)
{
	const char *copy = private_copy("/etc/os-release", 0644);

	(void)state;
	assert_int_equal(load(copy), MODULE_NOT_LOADABLE);
	remove_copy(copy);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x__every_shipped_module_loads),
		cmocka_unit_test(x__a_broken_table_is_refused_and_named),
		cmocka_unit_test(x__what_is_no_file_of_ours_is_refused),
		cmocka_unit_test(x__what_others_may_write_is_refused),
		cmocka_unit_test(x__a_foreign_owner_is_refused),
		cmocka_unit_test(x__a_file_that_is_no_object_is_refused),
	};

	if (argc != 3)
		return 2;
	bad_dir = argv[1];
	shipped_dir = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
