// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.h"

const char *result_kind_name(uint8_t kind)
{
	switch (kind) {
#define X(name, number, text)                                                                      \
	case RESULT_##name:                                                                        \
		return text;
		RESULT_KINDS(X)
#undef X
	default:
		return NULL;
	}
}

const char *result_reason_name(uint8_t reason)
{
	switch (reason) {
	case REASON_NONE:
		return "None";
#define X(name, number, text)                                                                      \
	case REASON_##name:                                                                        \
		return text;
		RESULT_REASONS(X)
#undef X
	default:
		return NULL;
	}
}

const char *result_accepted_name(uint8_t accepted)
{
	switch (accepted) {
	case ACCEPTED_YES:
		return "yes";
	case ACCEPTED_NO:
		return "no";
	case ACCEPTED_UNKNOWN:
		return "unknown";
	default:
		return NULL;
	}
}
