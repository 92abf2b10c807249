/* SPDX-License-Identifier: MIT */
#include "abi.h"

enum { PROCESSES = 3, CAPACITY = 4 };

int main(void)
{
    skua_runtime *runtime = abi_start();
    uint64_t submitted = 0;
    for (int i = 0; i < PROCESSES; i++) {
        submitted += abi_submit(runtime).bits;
    }
    skua_process_snapshot *snapshots = ABI_FENCED(skua_process_snapshot, CAPACITY);
    const skua_pid first = {0};
    CHECK(skua_process_list(runtime, first, snapshots, CAPACITY) == PROCESSES);
    uint64_t listed = 0;
    for (int i = 0; i < PROCESSES; i++) {
        listed += snapshots[i].pid.bits;
        CHECK(snapshots[i].state == SKUA_PROCESS_READY && snapshots[i].steps == 0);
        CHECK_TAIL(&snapshots[i]);
    }
    CHECK(listed == submitted);
    CHECK(abi_is_untouched(&snapshots[PROCESSES], sizeof *snapshots));

    /* The last one ends where the caller's memory does. */
    snapshots = ABI_FENCED(skua_process_snapshot, 2);
    CHECK(skua_process_list(runtime, first, snapshots, 2) == 2);
    CHECK(!skua_pid_equal(snapshots[0].pid, snapshots[1].pid));
    CHECK_TAIL(&snapshots[1]);
    abi_stop(runtime);
    return 0;
}
