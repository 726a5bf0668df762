// SPDX-License-Identifier: BSD-3-Clause
#include "api/errors.h"

#include <stddef.h>

const struct api_error_row api_error_rows[API_ERROR_COUNT] = {
#define X(name, code, kind, exit_code, closes, text) {API_ERROR_##name, kind, exit_code, closes, text},
	API_ERRORS(X)
#undef X
};

const struct api_error_row *api_error_find(int code)
{
	for (uint32_t i = 0; i < API_ERROR_COUNT; i++) {
		if ((int)api_error_rows[i].code == code)
			return &api_error_rows[i];
	}
	return NULL;
}
