// SPDX-License-Identifier: BSD-3-Clause
#include "config/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"TiB", UINT64_C(1) << 40},
	{"GiB", UINT64_C(1) << 30},
	{"MiB", UINT64_C(1) << 20},
	{"KiB", UINT64_C(1) << 10},
	{"B", 1},
};

static const struct unit time_units[] = { // in nanoseconds
	{"h", UINT64_C(3600000000000)},
	{"min", UINT64_C(60000000000)},
	{"s", UINT64_C(1000000000)},
	{"ms", UINT64_C(1000000)},
	{"us", UINT64_C(1000)},
	{"ns", 1},
};

// Takes digits of a base; *text moves behind them.
static enum units_status take_digits(const char **text, unsigned base, uint64_t *out)
{
	const char *p = *text;
	uint64_t value = 0;
	if (*p < '0' || *p >= (char)('0' + base))
		return UNITS_NO_NUMBER;
	for (; *p >= '0' && *p < (char)('0' + base); p++) {
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return UNITS_TOO_LARGE;
	}
	*text = p;
	*out = value;
	return UNITS_OK;
}

enum units_status units_parse_number(const char *text, uint64_t *out)
{
	uint64_t value;
	enum units_status status = take_digits(&text, 10, &value);
	if (status != UNITS_OK)
		return status;
	if (*text != '\0')
		return UNITS_NO_NUMBER;
	*out = value;
	return UNITS_OK;
}

enum units_status units_parse_octal(const char *text, uint64_t *out)
{
	uint64_t value;
	if (text[0] == '0' && text[1] == 'o')
		text += 2;
	enum units_status status = take_digits(&text, 8, &value);
	if (status != UNITS_OK)
		return status;
	if (*text != '\0')
		return UNITS_NO_NUMBER;
	*out = value;
	return UNITS_OK;
}

static enum units_status parse_with(
	const char *text, const struct unit *units, size_t count, uint64_t *out)
{
	uint64_t value;
	enum units_status status = take_digits(&text, 10, &value);
	if (status != UNITS_OK)
		return status;
	if (*text == '\0' && value == 0) {
		*out = 0;
		return UNITS_OK;
	}
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].factor, &value))
			return UNITS_TOO_LARGE;
		*out = value;
		return UNITS_OK;
	}
	return UNITS_BAD_UNIT;
}

enum units_status units_parse_size(const char *text, uint64_t *out_bytes)
{
	return parse_with(text, size_units, ARRAY_COUNT(size_units), out_bytes);
}

enum units_status units_parse_time(const char *text, uint64_t step_ns, uint64_t *out)
{
	uint64_t ns;
	enum units_status status = parse_with(text, time_units, ARRAY_COUNT(time_units), &ns);
	if (status != UNITS_OK)
		return status;
	if (ns % step_ns != 0)
		return UNITS_INEXACT;
	*out = ns / step_ns;
	return UNITS_OK;
}

static void print_with(
	uint64_t value, const struct unit *units, size_t count, char *out, size_t capacity)
{
	for (size_t i = 0; i < count; i++) {
		if (value == 0 || value % units[i].factor != 0)
			continue;
		snprintf(out, capacity, "%" PRIu64 "%s", value / units[i].factor, units[i].name);
		return;
	}
	snprintf(out, capacity, "0");
}

void units_print_size(uint64_t bytes, char *out, size_t capacity)
{
	print_with(bytes, size_units, ARRAY_COUNT(size_units), out, capacity);
}

void units_print_time(uint64_t value, uint64_t step_ns, char *out, size_t capacity)
{
	// Minutes and hours are left to readers: 90s says more than a mixture.
	print_with(value * step_ns, time_units + 2, ARRAY_COUNT(time_units) - 2, out, capacity);
}
