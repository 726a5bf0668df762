// SPDX-License-Identifier: BSD-3-Clause
// A shared object that is no module.
int silent_answer(void);

int silent_answer(void)
{
	return 42;
}
