// SPDX-License-Identifier: BSD-3-Clause
#include "api/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

enum { TEXT_FIRST_BYTES = 16 * 1024 };

static bool make_room(struct text *t, size_t more)
{
	if (t->failed || t->size + more <= t->capacity)
		return !t->failed;
	size_t capacity = t->capacity == 0 ? TEXT_FIRST_BYTES : t->capacity * 2;
	while (capacity < t->size + more)
		capacity *= 2;
	char *data = mem_resize(t->data, capacity);
	t->failed = data == NULL;
	if (t->failed)
		return false;
	t->data = data;
	t->capacity = capacity;
	return true;
}

void text_add(struct text *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int need = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (need < 0 || !make_room(t, (size_t)need + 1))
		return;
	va_start(args, format);
	vsnprintf(t->data + t->size, t->capacity - t->size, format, args);
	va_end(args);
	t->size += (size_t)need;
}

void text_fini(struct text *t)
{
	mem_free(t->data);
	*t = (struct text){0};
}
