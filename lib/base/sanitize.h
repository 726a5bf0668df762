// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which sanitizer this translation unit is built with, for gcc and clang alike, and the two hints
// that tell the thread sanitizer of an ordering made by a library it cannot see into.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZE_ADDRESS 1
#endif
#if __has_feature(thread_sanitizer)
#define SANITIZE_THREAD 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZE_ADDRESS 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SANITIZE_THREAD 1
#endif
#ifndef SANITIZE_ADDRESS
#define SANITIZE_ADDRESS 0
#endif
#ifndef SANITIZE_THREAD
#define SANITIZE_THREAD 0
#endif

#if SANITIZE_THREAD
void __tsan_acquire(void *address);
void __tsan_release(void *address);
static inline void sanitize_acquire(void *address)
{
	__tsan_acquire(address);
}
static inline void sanitize_release(void *address)
{
	__tsan_release(address);
}
#else
static inline void sanitize_acquire(void *address)
{
	(void)address;
}
static inline void sanitize_release(void *address)
{
	(void)address;
}
#endif
