/* SPDX-License-Identifier: MIT */
/* `skua run`: what it prints about a program that ends. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/format.h"
#include "command/run/run.h"
#include "command/support.h"

/* ---- results ---- */

/* The length of the text in these bytes without the zeros at their end; 0 if they are no text. */
static size_t text_length(const char *bytes, size_t size)
{
    while (size > 0 && bytes[size - 1] == 0) {
        size--;
    }
    for (size_t at = 0; at < size;) {
        const bool is_blank = bytes[at] == '\n' || bytes[at] == '\t';
        const size_t length = is_blank ? 1 : character_size(bytes + at, size - at);
        if (length == 0) {
            return 0;
        }
        at += length;
    }
    return size;
}

/* Most numbers below 2^48 would also be short texts. A text that fills its 8 bytes, but for the
 * zero, is hardly ever a number. */
static bool is_number(const skua_payload *result, size_t length)
{
    return result->storage == SKUA_PAYLOAD_INLINE && result->inline_size == sizeof(uint64_t) &&
           length < sizeof(uint64_t) - 1;
}

static void print_bytes(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        printf("%02x", (unsigned char)bytes[i]);
    }
    printf("\n");
}

void report_result(const skua_payload *result)
{
    const char *bytes = skua_payload_data(result);
    const size_t size = skua_payload_size(result);
    if (size == 0) { /* a bare pointer has none, too */
        return;
    }
    const size_t length = text_length(bytes, size);
    if (is_number(result, length)) {
        printf("%" PRIu64 "\n", skua_payload_to_u64(result));
    } else if (length > 0) {
        printf("%.*s%s", (int)length, bytes, bytes[length - 1] == '\n' ? "" : "\n");
    } else {
        print_bytes(bytes, size);
    }
}

/* ---- errors ---- */

int report_format_error(int error, char *text, size_t size)
{
    if (error > SKUA_E_USER && strcmp(skua_error_name(error), "SKUA_E_?") != 0) {
        (void)snprintf(text, size, "%s: %s", skua_error_name(error), skua_error_text(error));
        return STATUS_FAILURE;
    }
    (void)snprintf(text, size, "error %d", error);
    const int64_t status = (int64_t)SKUA_E_USER - error;
    return status >= 3 && status <= 125 ? (int)status : STATUS_FAILURE;
}

/* ---- statistics ---- */

#define COLUMNS 8 /* workers side by side */

static void print_workers(const skua_stats *total, const skua_stats *workers, int first, int end)
{
    fprintf(stderr, "%-16s", "");
    if (first == 0) {
        fprintf(stderr, " %14s", "total");
    }
    for (int i = first; i < end; i++) {
        fprintf(stderr, " %7s %4d", "worker", i);
    }
#define PRINT_ROW(name)                                                                            \
    fprintf(stderr, "\n%-16s", #name);                                                             \
    if (first == 0) {                                                                              \
        fprintf(stderr, " %14" PRIu64, total->name);                                               \
    }                                                                                              \
    for (int i = first; i < end; i++) {                                                            \
        fprintf(stderr, " %12" PRIu64, workers[i].name);                                           \
    }
    SKUA_STATS_MAP(PRINT_ROW)
#undef PRINT_ROW
    fprintf(stderr, "\n");
}

void report_stats(skua_runtime *runtime)
{
    skua_stats total;
    skua_stats workers[SKUA_WORKERS_MAX + SKUA_SPARES_MAX];
    const int count = skua_stats_read(runtime, &total, workers, sizeof workers / sizeof workers[0]);
    for (int first = 0; first < count; first += COLUMNS) {
        print_workers(&total, workers, first, first + COLUMNS < count ? first + COLUMNS : count);
    }
}

/* ---- survivors ---- */

#define NAMED_MAX 10
#define PATH_SIZE 256

/* The supervisors of a process tell more than its type, of which there may be many. */
static void print_survivor(skua_runtime *runtime, const skua_process_snapshot *info)
{
    char path[PATH_SIZE];
    const bool has_path = skua_process_path(runtime, info->pid, path, sizeof path) == 0;
    fprintf(stderr, "  %016" PRIx64 " %-16s %-8s %" PRIu32 " message%s%s%s\n", info->pid.bits,
            info->type_name, skua_process_state_name(info->state), info->mailbox_length,
            info->mailbox_length == 1 ? "" : "s", has_path && path[0] != '\0' ? "  " : "",
            has_path ? path : "");
}

void report_survivors(skua_runtime *runtime, const char *what)
{
    skua_stats total = {0};
    skua_process_snapshot infos[NAMED_MAX];
    const int count = skua_process_list(runtime, (skua_pid){0}, infos, NAMED_MAX);
    (void)skua_stats_read(runtime, &total, NULL, 0);
    (void)failure(RUN, "%s; still alive:%s", what,
                  count > 0 ? "" : " a function on a blocking pool");
    for (int i = 0; i < count; i++) {
        print_survivor(runtime, &infos[i]);
    }
    if (total.live > NAMED_MAX) {
        fprintf(stderr, "  and %" PRIu64 " more\n", total.live - NAMED_MAX);
    }
}
