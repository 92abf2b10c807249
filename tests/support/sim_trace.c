/* SPDX-License-Identifier: MIT */
#include "sim_trace.h"

static bool fits(const skua_sim_record *record, enum skua_sim_record_type type, uint32_t what)
{
    return record->type == type && (what == 0 || record->what == what);
}

size_t sim_count(enum skua_sim_record_type type, uint32_t what)
{
    size_t count = 0;
    for (size_t i = 0; i < world->sim.trace.count; i++) {
        count += fits(&world->sim.trace.records[i], type, what);
    }
    return count;
}

size_t sim_fault_count(enum skua_sim_fault what)
{
    return sim_count(SKUA_SIM_FAULT, what);
}

const skua_sim_record *sim_find(enum skua_sim_record_type type, uint32_t what, size_t n)
{
    for (size_t i = 0; i < world->sim.trace.count; i++) {
        if (fits(&world->sim.trace.records[i], type, what) && n-- == 0) {
            return &world->sim.trace.records[i];
        }
    }
    fail_msg("no such record");
    return NULL;
}

void assert_same_record(const skua_sim_record *a, const skua_sim_record *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->what, b->what);
    assert_int_equal(a->now_ns, b->now_ns);
    assert_int_equal(a->pid.bits, b->pid.bits);
    assert_ptr_equal(a->type_name, b->type_name);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->tag, b->tag);
    assert_int_equal(a->from.bits, b->from.bits);
    assert_int_equal(a->error, b->error);
    assert_int_equal(a->payload_type, b->payload_type);
}
