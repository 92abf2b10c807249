/* SPDX-License-Identifier: MIT */
/* Acts of actors that have or count against quotas, and how much of one is in use. */
#ifndef SKUA_TESTS_QUOTAS_H
#define SKUA_TESTS_QUOTAS_H

#include <skua/supervisor.h>

#include "actor.h"

/* Sets a quota for what the actor starts from now on. */
struct act grants(skua_quota quota);

/* An actor that has done so, and rests. */
struct actor *grantor_start(skua_quota quota);

/* Allocates so many bytes that the actor owns, to *pointer; frees them. */
struct act owns(void **pointer, size_t size);
struct act disowns(void **pointer);

/* How much is in use of the quota that a process has set. */
skua_quota quota_used(skua_pid pid);
void assert_used(skua_pid pid, uint32_t processes, uint32_t messages, size_t bytes);

#endif
