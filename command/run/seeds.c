/* SPDX-License-Identifier: MIT */
/* `skua run --sim --seeds`: one run after the other, until one fails. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/format.h"
#include "command/run/run.h"
#include "command/support.h"

#define PROGRESS_NS (100 * SKUA_MILLISECOND)

/* ---- what is printed ---- */

static bool shows_progress; /* there is a line to be erased first */

void seeds_erase_progress(void)
{
    if (shows_progress) {
        fputs("\r\033[K", stderr);
        shows_progress = false;
    }
}

/* Not for runs that take no time: a terminal is slower. */
static void show_progress(const struct run_options *options, uint64_t *next_ns)
{
    const uint64_t now = clock_ns();
    if (now >= *next_ns && isatty(STDERR_FILENO)) {
        seeds_erase_progress();
        fprintf(stderr, "seed %" PRIu64 " of %" PRIu64 "..%" PRIu64, options->seed,
                options->first_seed, options->last_seed);
        shows_progress = true;
        *next_ns = now + PROGRESS_NS;
    }
}

/* An argument as a shell takes it. */
static void print_argument(const char *text)
{
    const bool is_plain = text[0] != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                               "0123456789_-./=:,%+@")] == '\0';
    if (is_plain) {
        fprintf(stderr, " %s", text);
        return;
    }
    fputs(" '", stderr);
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stderr);
        } else {
            fputc(*text, stderr);
        }
    }
    fputc('\'', stderr);
}

/* The command line again, with one seed in place of many. */
static void print_command(const struct run_options *options)
{
    bool is_option = true; /* and not an argument of the module */
    fprintf(stderr, "skua run --sim --seed %" PRIu64, options->seed);
    for (char **word = options->command_line; *word != NULL; word++) {
        is_option = is_option && strcmp(*word, "--") != 0;
        if (is_option && is_valued(*word, "--seeds")) {
            word += strchr(*word, '=') == NULL;
        } else if (!is_option || strcmp(*word, "--sim") != 0) {
            print_argument(*word);
        }
    }
}

void seeds_tell_failure(const struct run_options *options, const char *reason)
{
    seeds_erase_progress();
    fprintf(stderr, "skua " RUN ": seed %" PRIu64 " failed: %s; repeat with: ", options->seed,
            reason);
    print_command(options);
    fputc('\n', stderr);
}

/* ---- all seeds ---- */

int seeds_run(const skua_module *module, const struct run_options *options)
{
    struct run_options one = *options;
    struct run_totals totals = {.virtual_ns = 0};
    uint64_t next_ns = clock_ns() + PROGRESS_NS;
    int status = 0;
    for (one.seed = options->first_seed;; one.seed++) {
        show_progress(&one, &next_ns);
        status = session_run(module, &one, &totals);
        if (status == 0) {
            status = session_take_interrupt();
        }
        if (status != 0 || one.seed == options->last_seed) {
            break;
        }
    }
    seeds_erase_progress();
    if (status == 0) {
        printf("%" PRIu64 " seed%s passed: %s of virtual time, %" PRIu64
               " steps, hash of the last %016" PRIx64 "\n",
               one.seed - options->first_seed + 1, one.seed == options->first_seed ? "" : "s",
               format_time(totals.virtual_ns).text, totals.steps, totals.hash);
    }
    return status;
}
