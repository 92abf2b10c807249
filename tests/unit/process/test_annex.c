/* SPDX-License-Identifier: MIT */
/* The annex of a process: where its list of calls is, with and without one. */
#include "process/annex.h"

#include "call_rig.h"

#define FLAGS (PROCESS_CONTINUES | UINT64_C(3) << PROCESS_METHOD_SHIFT | 9 * PROCESS_STEP_ONE)

static struct process process;

static void open_rig(void)
{
    call_rig_open();
    process = (struct process){.calls = OBJECT_NONE};
    process_set_progress_owner(&process, FLAGS);
}

static struct annex *attach(uint32_t node)
{
    memset(&node_at(node)->as, 0xff, sizeof node_at(node)->as); /* as it was used before */
    return annex_attach_owner(&call_rig.events, &process, node);
}

static void link_call(uint32_t node)
{
    node_at(node)->as.call.tag = node;
    (void)call_open_owner(node_at(node), node, (skua_pid){1});
    call_link_owner(&memory.allocator, &call_rig.events, &process, node);
}

TEST(process_without_an_annex_lists_its_calls_in_its_record)
{
    open_rig();
    assert_null(annex_of(&call_rig.events, &process));
    assert_ptr_equal(annex_calls(&call_rig.events, &process), &process.calls);
}

TEST(annex_is_attached_empty_and_found)
{
    open_rig();
    const uint32_t node = take_node();
    struct annex *annex = attach(node);
    assert_ptr_equal(annex, &node_at(node)->as.annex);
    assert_ptr_equal(annex_of(&call_rig.events, &process), annex);
    assert_ptr_equal(annex_calls(&call_rig.events, &process), &annex->calls);
    assert_int_equal(annex->calls, OBJECT_NONE);
    assert_null(annex->tags);
    assert_null(annex->wing);
    assert_null(annex_wing(&call_rig.events, &process));
    assert_int_equal(process_progress(&process), FLAGS | PROCESS_ANNEX); /* all else stays */
}

/* Calls that were open before, and calls that come after. */
TEST(annex_takes_the_calls_along_and_gives_them_back)
{
    open_rig();
    const uint32_t before = take_node();
    const uint32_t after = take_node();
    const uint32_t node = take_node();
    link_call(before);
    struct annex *annex = attach(node);
    assert_int_equal(process.calls, node);
    assert_int_equal(annex->calls, before);
    link_call(after);
    assert_int_equal(annex->calls, after);
    assert_int_equal(node_at(after)->as.call.next, before);
    assert_int_equal(annex_detach_owner(&call_rig.events, &process), node);
    assert_int_equal(process.calls, after);
    assert_null(annex_of(&call_rig.events, &process));
    assert_int_equal(process_progress(&process), FLAGS);
    call_unlink_owner(&call_rig.events, &process, node_at(after), after);
    assert_int_equal(process.calls, before);
}

TEST(call_that_leaves_the_list_of_an_annex_changes_its_first)
{
    open_rig();
    const uint32_t call = take_node();
    struct annex *annex = attach(take_node());
    link_call(call);
    assert_int_equal(annex->calls, call);
    call_unlink_owner(&call_rig.events, &process, node_at(call), call);
    assert_int_equal(annex->calls, OBJECT_NONE);
}

TEST(revoke_empties_the_list_of_an_annex)
{
    open_rig();
    struct annex *annex = attach(take_node());
    for (uint32_t i = 0; i < 5; i++) {
        link_call(take_node());
    }
    uint32_t budget = 5;
    assert_true(call_revoke_owner(&call_rig.events, &call_rig.deadlines, &call_rig.cache, &process,
                                  &budget));
    assert_int_equal(annex->calls, OBJECT_NONE);
    assert_ptr_equal(annex_of(&call_rig.events, &process), annex); /* which stays */
}
