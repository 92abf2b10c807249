/* SPDX-License-Identifier: MIT */
/* Looking at the trace of a simulated world (world_open_sim). */
#ifndef SKUA_TESTS_SIM_TRACE_H
#define SKUA_TESTS_SIM_TRACE_H

#include "world.h"

/* How many records have this type and (unless it is 0) this `what`. */
size_t sim_count(enum skua_sim_record_type type, uint32_t what);

/* How often this fault has happened; 0: any. */
size_t sim_fault_count(enum skua_sim_fault what);

/* The n-th such record, from 0; there must be one. */
const skua_sim_record *sim_find(enum skua_sim_record_type type, uint32_t what, size_t n);

/* That two records are equal in every field. */
void assert_same_record(const skua_sim_record *a, const skua_sim_record *b);

#endif
