/* SPDX-License-Identifier: MIT */
/* Compiled with the library's own headers. */
#include "abi.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void abi_check(bool is_right, const char *condition, const char *file, int line)
{
    if (!is_right) {
        fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
        exit(1);
    }
}

static void say_what_happened(int number)
{
    static const char text[] = "memory behind a caller's struct was touched\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
        _exit(2);
    }
    _exit(1);
}

void *abi_fenced(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t room = (size + page - 1) / page * page;
    const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    char *pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, anonymous, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + room, page, PROT_NONE) == 0);
    CHECK(signal(SIGSEGV, say_what_happened) != SIG_ERR);
    memset(pages, ABI_FILL, room);
    return pages + room - size;
}

bool abi_is_untouched(const void *object, size_t size)
{
    const unsigned char *bytes = object;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != ABI_FILL) {
            return false;
        }
    }
    return true;
}

bool abi_is_zero(const uint64_t *words, int count)
{
    for (int i = 0; i < count; i++) {
        if (words[i] != 0) {
            return false;
        }
    }
    return true;
}

static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    return ABI_EXIT;
}

const skua_process_type abi_type = {.name = "ends", .step = step};

skua_runtime *abi_start(void)
{
    const skua_sim_config sim = {.step_ns = 0};
    const skua_runtime_config config = {.sim = &sim};
    skua_runtime *runtime;
    CHECK(skua_runtime_create(&runtime, &config) == 0);
    CHECK(skua_runtime_start(runtime) == 0);
    return runtime;
}

void abi_stop(skua_runtime *runtime)
{
    CHECK(skua_runtime_stop(runtime, SKUA_SECOND) == 0);
    CHECK(skua_runtime_destroy(runtime) == 0);
}

skua_pid abi_submit(skua_runtime *runtime)
{
    skua_pid pid;
    CHECK(skua_process_submit(runtime, &abi_type, skua_payload_empty(0), &pid) == 0);
    return pid;
}
