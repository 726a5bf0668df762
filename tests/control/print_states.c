// SPDX-License-Identifier: BSD-3-Clause
#include "state_page.h"

int main(void)
{
	state_page_print(stdout);
	return ferror(stdout) != 0;
}
