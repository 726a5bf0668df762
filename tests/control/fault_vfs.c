// SPDX-License-Identifier: BSD-3-Clause
#include "fault_vfs.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct fault_file {
	sqlite3_file base;
	sqlite3_file *real;
	const char *name; // SQLite keeps it while the file is open; NULL: a file without one
};

static sqlite3_vfs shim;
static sqlite3_vfs *under;
static atomic_int write_fault, sync_fault;
static _Atomic uint64_t syncs;
static fault_vfs_seen seen; // set while no file is in use

static void tell(sqlite3_file *f, const struct fault_vfs_event *event)
{
	const char *name = ((struct fault_file *)f)->name;
	if (seen != NULL && name != NULL)
		seen(name, event);
}

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct fault_file *)file)->real;
}

#define PASS(file, method, ...) real_of(file)->pMethods->method(real_of(file), ##__VA_ARGS__)

static int shim_close(sqlite3_file *f)
{
	int rc = PASS(f, xClose);
	free(real_of(f));
	return rc;
}
static int shim_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	return PASS(f, xRead, to, n, at);
}
static int shim_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	int fault = atomic_load(&write_fault);
	int rc = fault != 0 ? fault : PASS(f, xWrite, from, n, at);
	if (rc == SQLITE_OK)
		tell(f, &(struct fault_vfs_event){FAULT_VFS_WRITE, at, from, (size_t)n});
	return rc;
}
static int shim_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = PASS(f, xTruncate, size);
	if (rc == SQLITE_OK)
		tell(f, &(struct fault_vfs_event){FAULT_VFS_TRUNCATE, size, NULL, 0});
	return rc;
}
static int shim_sync(sqlite3_file *f, int flags)
{
	int fault = atomic_load(&sync_fault);
	atomic_fetch_add(&syncs, 1);
	int rc = fault != 0 ? fault : PASS(f, xSync, flags);
	if (rc == SQLITE_OK)
		tell(f, &(struct fault_vfs_event){FAULT_VFS_SYNC, 0, NULL, 0});
	return rc;
}
static int shim_size(sqlite3_file *f, sqlite3_int64 *size)
{
	return PASS(f, xFileSize, size);
}
static int shim_lock(sqlite3_file *f, int level)
{
	return PASS(f, xLock, level);
}
static int shim_unlock(sqlite3_file *f, int level)
{
	return PASS(f, xUnlock, level);
}
static int shim_check(sqlite3_file *f, int *out)
{
	return PASS(f, xCheckReservedLock, out);
}
static int shim_control(sqlite3_file *f, int op, void *arg)
{
	return PASS(f, xFileControl, op, arg);
}
static int shim_sector(sqlite3_file *f)
{
	return PASS(f, xSectorSize);
}
static int shim_device(sqlite3_file *f)
{
	return PASS(f, xDeviceCharacteristics);
}
static int shim_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
	return PASS(f, xShmMap, page, size, extend, out);
}
static int shim_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
	return PASS(f, xShmLock, at, n, flags);
}
static void shim_shm_barrier(sqlite3_file *f)
{
	PASS(f, xShmBarrier);
}
static int shim_shm_unmap(sqlite3_file *f, int remove)
{
	return PASS(f, xShmUnmap, remove);
}

static const sqlite3_io_methods methods = {2, shim_close, shim_read, shim_write, shim_truncate,
	shim_sync, shim_size, shim_lock, shim_unlock, shim_check, shim_control, shim_sector,
	shim_device, shim_shm_map, shim_shm_lock, shim_shm_barrier, shim_shm_unmap, NULL, NULL};

static int shim_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags,
	int *out)
{
	(void)vfs;
	struct fault_file *f = (struct fault_file *)file;
	f->base.pMethods = NULL;
	f->name = name;
	f->real = calloc(1, (size_t)under->szOsFile);
	if (f->real == NULL)
		return SQLITE_NOMEM;
	int rc = under->xOpen(under, name, f->real, flags, out);
	if (rc == SQLITE_OK)
		f->base.pMethods = &methods;
	else
		free(f->real);
	return rc;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
	(void)vfs;
	int rc = under->xDelete(under, name, sync_directory);
	if (rc == SQLITE_OK && seen != NULL)
		seen(name, &(struct fault_vfs_event){FAULT_VFS_DELETE, 0, NULL, 0});
	return rc;
}

void fault_vfs_watch(fault_vfs_seen watcher)
{
	seen = watcher;
}

void fault_vfs_install(void)
{
	under = sqlite3_vfs_find(NULL);
	shim = *under;
	shim.zName = "fault";
	shim.szOsFile = sizeof(struct fault_file);
	shim.xOpen = shim_open;
	shim.xDelete = shim_delete;
	sqlite3_vfs_register(&shim, 1);
}

void fault_vfs_fail(int write_code, int sync_code)
{
	atomic_store(&write_fault, write_code);
	atomic_store(&sync_fault, sync_code);
}

uint64_t fault_vfs_syncs(void)
{
	return atomic_load(&syncs);
}
