/* SPDX-License-Identifier: MIT */
/* Tasks that use stacks again and again. The argument `plant` lets one write where it must not. */
#include <skua/skua.h>
#include <stdlib.h>
#include <string.h>

static int child_main(void *self, skua_context *ctx)
{
    volatile char buffer[2000];
    (void)self;
    memset((char *)buffer, 1, sizeof buffer);
    const int error = skua_task_sleep(ctx, SKUA_MILLISECOND);
    return error == 0 && buffer[1999] != 1 ? SKUA_E_USER : error;
}

static int root_init(void *self, skua_context *ctx, skua_payload *input, size_t count)
{
    bool *plants = self;
    (void)ctx;
    *plants = count > 0 && strcmp(skua_payload_data(&input[0]), "plant") == 0;
    return 0;
}

static int root_main(void *self, skua_context *ctx)
{
    static const skua_process_type child = {.name = "child", .main = child_main};
    const bool *plants = self;
    int error = 0;
    for (int i = 0; i < 20 && error == 0; i++) {
        skua_pid pid;
        error = skua_spawn(ctx, &child, skua_nothing(), &pid);
        if (error == 0 && i % 4 == 0) {
            error = skua_task_monitor(ctx, pid, SKUA_FOREVER, NULL);
            error = error == SKUA_E_NO_PROCESS ? 0 : error;
        }
    }
    volatile size_t size = 10; /* or compilers see it, too */
    volatile char *block = malloc(size);
    if (block != NULL && *plants) {
        block[size] = 1;
    }
    free((void *)block);
    return error;
}

static const skua_process_type root_type = {
    .name = "root", .state_size = sizeof(bool), .init = root_init, .main = root_main};

SKUA_MODULE(.name = "planted", .root = &root_type);
