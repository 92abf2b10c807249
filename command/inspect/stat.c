/* SPDX-License-Identifier: MIT */
/* `skua stat`: what a running program does, a line per interval. */
#include <skua/types.h>
#include <stdio.h>
#include <string.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/inspect.h"
#include "command/support.h"

enum { LINES_PER_HEADER = 20 };

static int help(void)
{
    fputs("usage: skua stat [-i INTERVAL] [-n COUNT] [-p PROGRAM]\n\n"
          "Prints one line per interval: live processes; per second, processes spawned and "
          "finished,\n"
          "messages, steps, steals, parks, wake-ups and timers; how busy the workers were; queued\n"
          "processes; and steps that ran too long (stalls).\n\n"
          "  -i INTERVAL            time between lines, at least 10ms; default 1s\n"
          "  -n COUNT               stop after this many lines\n" HELP_PROGRAM "\nExamples:\n"
          "  skua stat\n"
          "  skua stat -i 100ms -n 50\n",
          stdout);
    return 0;
}

static void print_header(void)
{
    printf("%7s %8s %9s %7s %7s %8s %7s %7s %8s %6s %7s %6s\n", "live", "spawns/s", "finish/s",
           "msgs/s", "steps/s", "stolen/s", "parks/s", "wakes/s", "timers/s", "busy", "queued",
           "stalls");
    fflush(stdout);
}

static struct formatted rate(const struct sample *before, const struct sample *after,
                             enum counter counter)
{
    return format_count(sample_rate(before, after, counter));
}

static void print_line(const struct sample *before, const struct sample *after)
{
    const uint64_t stalls = after->counter[COUNTER_stalls] - before->counter[COUNTER_stalls];
    printf("%7s %8s %9s %7s %7s %8s %7s %7s %8s %6s %7s %6s\n",
           format_count((double)after->live).text, rate(before, after, COUNTER_spawned).text,
           rate(before, after, COUNTER_finished).text, rate(before, after, COUNTER_messages).text,
           rate(before, after, COUNTER_steps).text, rate(before, after, COUNTER_stolen).text,
           rate(before, after, COUNTER_parks).text, rate(before, after, COUNTER_wakes).text,
           rate(before, after, COUNTER_timers).text,
           format_percent(sample_busy(before, after)).text,
           format_count((double)sample_queued(after)).text, format_count((double)stalls).text);
    fflush(stdout);
}

/* When the interval that begins at `since_ns` ends. One that is over by now, because the command or
 * the program was held up, is made up for by no burst of lines: the next line comes an interval
 * later. */
static uint64_t end_of_interval(uint64_t since_ns, uint64_t interval_ns)
{
    const uint64_t now = clock_ns();
    return since_ns + interval_ns > now ? since_ns + interval_ns : now + interval_ns;
}

/* Reads a sample at the end of each interval; `samples` holds the one before, too. */
static int watch(struct client *client, uint64_t interval_ns, uint64_t count,
                 struct sample samples[2])
{
    enum client_result result = sample_read(client, &samples[0]);
    uint64_t next_ns = clock_ns();
    for (uint64_t lines = 0; result == CLIENT_END && lines < count && !ferror(stdout); lines++) {
        next_ns = end_of_interval(next_ns, interval_ns);
        struct sample *before = &samples[lines % 2];
        struct sample *after = &samples[(lines + 1) % 2];
        if (lines % LINES_PER_HEADER == 0) {
            print_header();
        }
        result = client_wait(client, next_ns) ? sample_read(client, after) : CLIENT_GONE;
        if (result == CLIENT_END) {
            print_line(before, after);
        }
    }
    if (result == CLIENT_GONE) {
        fprintf(stderr, "skua stat: the program has ended\n");
        return 0;
    }
    return result == CLIENT_END ? 0 : client_failure(client, result);
}

int stat_command(int argc, char **argv)
{
    const char *command = "stat";
    const char *program = NULL;
    uint64_t interval_ns = SKUA_SECOND;
    uint64_t count = UINT64_MAX;
    for (int i = 1; i < argc; i++) {
        bool good;
        if (is_help(argv[i])) {
            return help();
        }
        if (strcmp(argv[i], "-i") == 0) {
            good = option_interval(command, argv, &i, &interval_ns);
        } else if (strcmp(argv[i], "-n") == 0) {
            good = option_number(command, argv, &i, 1, UINT32_MAX, &count);
        } else if (is_program(argv[i])) {
            good = option_text(command, argv, &i, &program);
        } else {
            return unknown_argument(command, argv[i]);
        }
        if (!good) {
            return STATUS_USAGE;
        }
    }
    struct client client;
    struct sample samples[2] = {{0}};
    int status = client_open(&client, command, program);
    if (status == 0) {
        status = finish_output(command, watch(&client, interval_ns, count, samples));
        client_close(&client);
    }
    sample_free(&samples[0]);
    sample_free(&samples[1]);
    return status;
}
