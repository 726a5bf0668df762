// SPDX-License-Identifier: BSD-3-Clause
#include "store/sqlite/rows.h"

static bool read_number(sqlite3_stmt *s, int column, uint64_t max, uint64_t *out)
{
	if (sqlite3_column_type(s, column) != SQLITE_INTEGER)
		return false;
	sqlite3_int64 value = sqlite3_column_int64(s, column);
	*out = (uint64_t)value;
	return value >= 0 && (uint64_t)value <= max;
}

static bool read_blob(sqlite3_stmt *s, int column, void *out, size_t min, size_t max, size_t *out_size)
{
	if (sqlite3_column_type(s, column) != SQLITE_BLOB)
		return false;
	const void *bytes = sqlite3_column_blob(s, column);
	size_t size = (size_t)sqlite3_column_bytes(s, column);
	if (size < min || size > max || (size > 0 && bytes == NULL))
		return false;
	if (size > 0)
		memcpy(out, bytes, size);
	*out_size = size;
	return true;
}

static bool read_text(sqlite3_stmt *s, int column, char *out, size_t capacity)
{
	if (sqlite3_column_type(s, column) != SQLITE_TEXT)
		return false;
	const unsigned char *text = sqlite3_column_text(s, column);
	size_t size = (size_t)sqlite3_column_bytes(s, column);
	if (text == NULL || size >= capacity || memchr(text, 0, size) != NULL)
		return false;
	memcpy(out, text, size);
	out[size] = 0;
	return true;
}

bool spot_row_read(sqlite3_stmt *s, struct store_spot_row *out)
{
	uint8_t key[KEY_BYTES];
	uint64_t state, kind;
	size_t id_bytes, fixed;
	bool good = read_blob(s, 0, key, KEY_BYTES, KEY_BYTES, &fixed) &&
		    read_blob(s, 1, out->id, 1, ID_BYTES_MAX, &id_bytes) &&
		    read_number(s, 2, STORE_SPOT_READY, &state) &&
		    read_number(s, 3, SPOT_KIND_INSTANCE, &kind) &&
		    read_text(s, 4, out->type_name, sizeof(out->type_name)) &&
		    read_text(s, 5, out->owner_node, sizeof(out->owner_node)) &&
		    read_blob(s, 6, out->owner_boot.bytes, 16, 16, &fixed) &&
		    read_number(s, 7, GENERATION_MAX, &out->owner_lease.value) &&
		    read_number(s, 8, GENERATION_MAX, &out->object_generation.value) &&
		    read_number(s, 9, GENERATION_MAX, &out->authority_generation.value) &&
		    read_blob(s, 10, out->last_operation.bytes, 16, 16, &fixed) &&
		    read_number(s, 11, GENERATION_MAX, &out->version.value);
	if (!good || state == 0 || kind == SPOT_KIND_INVALID)
		return false;
	out->exists = true;
	out->key = spot_key_from_bytes(key);
	out->id_bytes = (uint8_t)id_bytes;
	out->state = (enum store_spot_state)state;
	out->kind = (enum spot_kind)kind;
	return id_is_valid(span_of(out->id, id_bytes));
}

bool node_row_read(sqlite3_stmt *s, struct store_node_row *out)
{
	uint64_t fenced;
	size_t fixed;
	bool good = read_text(s, 0, out->node_id, sizeof(out->node_id)) &&
		    read_blob(s, 1, out->boot.bytes, 16, 16, &fixed) &&
		    read_number(s, 2, GENERATION_MAX, &out->lease_generation.value) &&
		    read_number(s, 3, GENERATION_MAX, &out->beat) &&
		    read_number(s, 4, GENERATION_MAX, &out->ttl_ms) && read_number(s, 5, 1, &fenced) &&
		    read_text(s, 6, out->host_id, sizeof(out->host_id)) &&
		    read_text(s, 7, out->address, sizeof(out->address));
	out->fenced = good && fenced == 1;
	out->exists = good;
	return good;
}

static int bind_number(sqlite3_stmt *s, int at, uint64_t value)
{
	return sqlite3_bind_int64(s, at, (sqlite3_int64)value);
}

static int bind_bytes(sqlite3_stmt *s, int at, const void *bytes, size_t size)
{
	return sqlite3_bind_blob(s, at, bytes, (int)size, SQLITE_TRANSIENT);
}

static int bind_text(sqlite3_stmt *s, int at, const char *text)
{
	return sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
}

int key_bind(sqlite3_stmt *s, int at, struct spot_key key)
{
	uint8_t bytes[KEY_BYTES];
	spot_key_bytes(key, bytes);
	return bind_bytes(s, at, bytes, KEY_BYTES);
}

// Binding fails for want of memory only, and with the same code each time: or-ing keeps "not OK".
int spot_row_bind(sqlite3_stmt *s, const struct store_spot_row *row)
{
	int rc = key_bind(s, 1, row->key);
	rc |= bind_bytes(s, 2, row->id, row->id_bytes);
	rc |= bind_number(s, 3, (uint64_t)row->state);
	rc |= bind_number(s, 4, (uint64_t)row->kind);
	rc |= bind_text(s, 5, row->type_name);
	rc |= bind_text(s, 6, row->owner_node);
	rc |= bind_bytes(s, 7, row->owner_boot.bytes, 16);
	rc |= bind_number(s, 8, row->owner_lease.value);
	rc |= bind_number(s, 9, row->object_generation.value);
	rc |= bind_number(s, 10, row->authority_generation.value);
	rc |= bind_bytes(s, 11, row->last_operation.bytes, 16);
	rc |= bind_number(s, 12, row->version.value);
	return rc == SQLITE_OK ? SQLITE_OK : SQLITE_NOMEM;
}

int node_row_bind(sqlite3_stmt *s, const struct store_node_row *row)
{
	int rc = bind_text(s, 1, row->node_id);
	rc |= bind_bytes(s, 2, row->boot.bytes, 16);
	rc |= bind_number(s, 3, row->lease_generation.value);
	rc |= bind_number(s, 4, row->beat);
	rc |= bind_number(s, 5, row->ttl_ms);
	rc |= bind_number(s, 6, row->fenced ? 1 : 0);
	rc |= bind_text(s, 7, row->host_id);
	rc |= bind_text(s, 8, row->address);
	return rc == SQLITE_OK ? SQLITE_OK : SQLITE_NOMEM;
}
