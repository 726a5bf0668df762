// SPDX-License-Identifier: BSD-3-Clause
#include "store/sqlite/create.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/sqlite/statements.h"

enum { WHY_BYTES = 256 };

// WITHOUT ROWID: rows are found by key only, and lie in the key's own tree. The index serves O6.
static const char schema[] =
	"PRAGMA application_id = 1397772116;" // SQLITE_STORE_APPLICATION
	"PRAGMA user_version = 1;"
	"CREATE TABLE generations (one INTEGER PRIMARY KEY CHECK (one = 1),"
	" last_generation INTEGER NOT NULL) STRICT;"
	"INSERT INTO generations VALUES (1, 0);"
	"CREATE TABLE nodes (node_id TEXT PRIMARY KEY, boot BLOB NOT NULL,"
	" lease_generation INTEGER NOT NULL, beat INTEGER NOT NULL, ttl_ms INTEGER NOT NULL,"
	" fenced INTEGER NOT NULL, host_id TEXT NOT NULL, address TEXT NOT NULL)"
	" STRICT, WITHOUT ROWID;"
	"CREATE TABLE spots (key BLOB PRIMARY KEY, id BLOB NOT NULL, state INTEGER NOT NULL,"
	" kind INTEGER NOT NULL, type_name TEXT NOT NULL, owner_node TEXT NOT NULL,"
	" owner_boot BLOB NOT NULL, owner_lease INTEGER NOT NULL,"
	" object_generation INTEGER NOT NULL, authority_generation INTEGER NOT NULL,"
	" last_operation BLOB NOT NULL, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	"CREATE INDEX spots_owner ON spots (owner_node, owner_boot);";
_Static_assert(SQLITE_STORE_APPLICATION == 1397772116 && SQLITE_STORE_VERSION == 1, "as in the schema");

static enum sqlite_open refuse(char *why, enum sqlite_open verdict, const char *what, const char *cause)
{
	snprintf(why, WHY_BYTES, "%s: %s", what, cause);
	return verdict;
}

static int sync_path(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return -1;
	int rc = fsync(fd);
	int why = errno;
	close(fd);
	errno = why;
	return rc;
}

static bool write_schema(const char *path, char *why)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, schema, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA journal_mode = WAL;", NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		refuse(why, SQLITE_OPEN_UNREACHABLE, "cannot make the store", sqlite3_errmsg(db));
	int closed = sqlite3_close(db); // the last connection folds the log into the file
	return rc == SQLITE_OK && closed == SQLITE_OK;
}

// Losing the race against another creator is no failure: the file is there then.
static bool put_in_place(const char *made, const char *path, char *why)
{
	char directory[PATH_MAX];
	snprintf(directory, sizeof(directory), "%s", path);
	bool renamed = sync_path(made, O_RDONLY) == 0 &&
		       (renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_NOREPLACE) == 0 ||
			       errno == EEXIST);
	if (renamed && sync_path(dirname(directory), O_RDONLY | O_DIRECTORY) == 0)
		return true;
	refuse(why, SQLITE_OPEN_UNREACHABLE, "cannot put the store in place", strerror(errno));
	return false;
}

static bool database_make(const char *path, char *why)
{
	char made[PATH_MAX];
	int n = snprintf(made, sizeof(made), "%s.tmp-%ld", path, (long)getpid());
	if (n < 0 || (size_t)n >= sizeof(made)) {
		refuse(why, SQLITE_OPEN_UNREACHABLE, "cannot make the store", "path too long");
		return false;
	}
	unlink(made); // of a dead process that had our number
	bool good = write_schema(made, why) && put_in_place(made, path, why);
	unlink(made);
	return good;
}

static int read_pragma(sqlite3 *db, const char *sql, int *out)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static enum sqlite_open check_version(sqlite3 *db, const char *path, char *why)
{
	int application = 0, version = 0;
	int rc = read_pragma(db, "PRAGMA application_id", &application);
	if (rc == SQLITE_OK)
		rc = read_pragma(db, "PRAGMA user_version", &version);
	if (rc != SQLITE_OK) {
		bool damaged = outcome_of_code(db, rc) == STORE_DAMAGED;
		return refuse(why, damaged ? SQLITE_OPEN_DAMAGED : SQLITE_OPEN_UNREACHABLE, path,
			sqlite3_errmsg(db));
	}
	if (application != SQLITE_STORE_APPLICATION)
		return refuse(why, SQLITE_OPEN_VERSION, path, "is the database of another program");
	if (version != SQLITE_STORE_VERSION) {
		snprintf(why, WHY_BYTES, "%s: schema version %d, this program knows %d", path, version,
			SQLITE_STORE_VERSION);
		return SQLITE_OPEN_VERSION;
	}
	return SQLITE_OPEN_DONE;
}

enum sqlite_open database_prepare(const char *path, uint32_t wait_ms, char out_why[256])
{
	if (access(path, F_OK) != 0 && errno == ENOENT && !database_make(path, out_why))
		return SQLITE_OPEN_UNREACHABLE;
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
	enum sqlite_open verdict =
		rc == SQLITE_OK ? SQLITE_OPEN_DONE
				: refuse(out_why, SQLITE_OPEN_UNREACHABLE, path, sqlite3_errmsg(db));
	if (verdict == SQLITE_OPEN_DONE) {
		sqlite3_busy_timeout(db, (int)wait_ms);
		verdict = check_version(db, path, out_why);
	}
	sqlite3_close(db);
	return verdict;
}
