/* SPDX-License-Identifier: MIT */
/* Which slot a process gets, on a scheduler without threads. */
#include "process/mailbox.h"
#include "sched/worker.h"
#include "scheduler_rig.h"

static const skua_process_type *small(void)
{
    static skua_process_type type;
    type = rig_resting;
    type.mailbox_limit = 1;
    return &type;
}

/* One that has ended, and whose slot is taken next. */
static struct process *former_process(void)
{
    struct process *process = rig_spawn(worker(0), &rig_resting);
    rig_kill(rig_pid(process));
    rig_run_all();
    return process;
}

/* A worker has yet to count what it has sent to the process that was there before. */
TEST(process_with_a_small_mailbox_gets_a_slot_whose_messages_are_counted)
{
    scheduler_rig_open();
    struct process *former = former_process();
    mailbox_consume_owner(former, 3);
    assert_ptr_not_equal(rig_spawn(worker(0), small()), former);
    mailbox_settle_owner(&(struct mailbox_tally){.process = former, .count = 3});
    assert_ptr_equal(rig_spawn(worker(0), small()), former);
}

TEST(process_with_a_large_mailbox_gets_any_slot)
{
    scheduler_rig_open();
    struct process *former = former_process();
    mailbox_consume_owner(former, 3);
    assert_ptr_equal(rig_spawn(worker(0), &rig_resting), former);
    mailbox_settle_owner(&(struct mailbox_tally){.process = former, .count = 3});
}
