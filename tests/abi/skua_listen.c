/* SPDX-License-Identifier: MIT */
#include "abi.h"

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)events, (void)count;
    skua_socket listener;
    skua_listen_options *options = ABI_FENCED(skua_listen_options, 1);
    memset(options, 0, sizeof *options);
    CHECK_TAIL_REFUSED(options, skua_listen(ctx, "127.0.0.1:0", options, &listener));
    CHECK(skua_listen(ctx, "127.0.0.1:0", options, &listener) == 0);
    return ABI_EXIT - 1;
}

static const skua_process_type server_type = {.name = "server", .step = step};

int main(void)
{
    skua_runtime *runtime = abi_start();
    skua_exit end;
    CHECK(skua_process_run(runtime, &server_type, skua_payload_empty(0), &end) == 0);
    CHECK(end.error == ABI_EXIT - 1);
    abi_stop(runtime);
    return 0;
}
