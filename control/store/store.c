// SPDX-License-Identifier: BSD-3-Clause
#include "store/store.h"

const char *store_outcome_name(enum store_outcome outcome)
{
	switch (outcome) {
	case STORE_DONE:
		return "done";
	case STORE_CONFLICT:
		return "conflict";
	case STORE_UNREACHABLE:
		return "unreachable";
	case STORE_UNKNOWN:
		return "unknown";
	case STORE_FULL:
		return "full";
	case STORE_DAMAGED:
		return "damaged";
	case STORE_EXHAUSTED:
		return "exhausted";
	}
	return "invalid";
}

struct store_version store_version_of(struct store_op_id id)
{
	uint64_t value;
	memcpy(&value, id.bytes, sizeof(value));
	value &= GENERATION_MAX;
	return (struct store_version){value == 0 ? 1 : value}; // 0 is "none"
}
