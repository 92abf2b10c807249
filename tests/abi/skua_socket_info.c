/* SPDX-License-Identifier: MIT */
#include "abi.h"

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)events, (void)count;
    skua_socket listener;
    skua_socket_snapshot *snapshot = ABI_FENCED(skua_socket_snapshot, 1);
    CHECK(skua_listen(ctx, "127.0.0.1:0", NULL, &listener) == 0);
    CHECK(skua_socket_info(ctx, listener, snapshot) == 0);
    CHECK(snapshot->socket.bits == listener.bits && snapshot->state == SKUA_SOCKET_LISTENING);
    CHECK(strncmp(snapshot->local, "127.0.0.1:", 10) == 0 && snapshot->peer[0] == '\0');
    CHECK_TAIL(snapshot);
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
