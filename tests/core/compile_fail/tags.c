// SPDX-License-Identifier: BSD-3-Clause
// Must compile as it is, and must not with -DWRONG: that an owner cannot be used is never taken for a
// release of its authority, nor the other way round (A4).
#include "spot/activation.h"

void compile_fail_coordinator(struct authority_released what);
void compile_fail_adapter(struct owner_availability_changed what);
void compile_fail_report(struct authority_released gone, struct owner_availability_changed lame);
void compile_fail_report(struct authority_released gone, struct owner_availability_changed lame)
{
#ifdef WRONG
	compile_fail_coordinator(lame);
#else
	compile_fail_coordinator(gone);
#endif
	compile_fail_adapter(lame);
}
