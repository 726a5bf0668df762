// SPDX-License-Identifier: BSD-3-Clause
// Planted: two threads add to one word without order. ThreadSanitizer must report it.
#include <pthread.h>
#include <stdio.h>

static unsigned long total;

static void *add(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10000; i++)
		total++;
	return NULL;
}

int main(void)
{
	pthread_t one, two;
	if (pthread_create(&one, NULL, add, NULL) != 0 || pthread_create(&two, NULL, add, NULL) != 0)
		return 0;
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	printf("%lu\n", total);
	return 0;
}
