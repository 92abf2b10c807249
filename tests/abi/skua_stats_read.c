/* SPDX-License-Identifier: MIT */
#include "abi.h"

int main(void)
{
    skua_runtime *runtime = abi_start();
    CHECK(skua_process_wait(runtime, abi_submit(runtime), SKUA_FOREVER, NULL) == 0);
    skua_stats *total = ABI_FENCED(skua_stats, 1);
    skua_stats *workers = ABI_FENCED(skua_stats, 1);
    CHECK(skua_stats_read(runtime, total, workers, 1) == 1);
    CHECK(total->spawned == 1 && total->finished == 1 && workers->steps == 1);
    CHECK_TAIL(total);
    CHECK_TAIL(workers);

    /* Room for more workers than there are. */
    workers = ABI_FENCED(skua_stats, 2);
    CHECK(skua_stats_read(runtime, NULL, workers, 2) == 1);
    CHECK(workers[0].steps == 1 && abi_is_untouched(&workers[1], sizeof workers[1]));
    abi_stop(runtime);
    return 0;
}
