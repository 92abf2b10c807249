/* SPDX-License-Identifier: MIT */
#include "load.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1000000u

static const char usage[] =
    "usage: net_load WORKLOAD PORT [OPTION]...\n"
    "Plays the clients of a server on 127.0.0.1 once, and prints one JSON object.\n"
    "\n"
    "  echo    clients send a message and wait for its echo, again and again\n"
    "  idle    clients that are connected and silent; then all send a message at once\n"
    "  storm   clients that connect all at once, and send a message\n"
    "  bulk    one client that only sends; the server answers with the number of bytes\n"
    "\n"
    "  --connections N  clients (100; idle and storm: 10000)\n"
    "  --count N        echoes, after a fifth as many to warm up (50000)\n"
    "  --size N         bytes of a message (64)\n"
    "  --bytes N        of a bulk transfer (1 GiB)\n"
    "  --server PID     look at the CPU time and the memory of this process\n"
    "  --seconds N      give up after so long (60)\n"
    "  --help           print this\n";

_Noreturn void fail(const char *what)
{
    fprintf(stderr, "net_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

void expect_right(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "net_load: %s\n", what);
        exit(1);
    }
}

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    expect_right(memory != NULL, "out of memory");
    return memory;
}

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- arguments ---- */

static _Noreturn void refuse(const char *what, const char *text)
{
    fprintf(stderr, "net_load: invalid %s '%s'; see net_load --help\n", what, text);
    exit(2);
}

static uint64_t number(const char *what, const char *text, uint64_t most)
{
    char *end = NULL;
    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value == 0 ||
        value > most) {
        refuse(what, text);
    }
    return value;
}

struct workload {
    const char *name;
    void (*run)(const struct load_options *options, struct load_result *result);
    uint32_t connections; /* unless told otherwise */
};

static const struct workload *find_workload(const char *name)
{
    static const struct workload workloads[] = {{"echo", load_echo, 100},
                                                {"idle", load_idle, 10000},
                                                {"storm", load_storm, 10000},
                                                {"bulk", load_bulk, 1}};
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        if (strcmp(workloads[i].name, name) == 0) {
            return &workloads[i];
        }
    }
    refuse("workload", name);
}

static void read_option(struct load_options *options, int letter, const char *text)
{
    switch (letter) {
    case 'c':
        options->connections = (uint32_t)number("number of connections", text, CONNECTIONS_MAX);
        break;
    case 'n':
        options->count = number("count", text, UINT64_C(1) << 40);
        break;
    case 's':
        options->size = (uint32_t)number("size", text, MESSAGE_MAX);
        break;
    case 'b':
        options->bytes = number("number of bytes", text, UINT64_C(1) << 50);
        break;
    case 'p':
        options->server = (pid_t)number("process", text, INT32_MAX);
        break;
    case 't':
        options->seconds = (uint32_t)number("number of seconds", text, 86400);
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default:
        fputs("see net_load --help\n", stderr);
        exit(2);
    }
}

static const struct workload *read_arguments(int argc, char **argv, struct load_options *options)
{
    static const struct option names[] = {{"connections", required_argument, NULL, 'c'},
                                          {"count", required_argument, NULL, 'n'},
                                          {"size", required_argument, NULL, 's'},
                                          {"bytes", required_argument, NULL, 'b'},
                                          {"server", required_argument, NULL, 'p'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *options = (struct load_options){
        .size = 64, .count = 50000, .bytes = UINT64_C(1) << 30, .seconds = 60};
    for (int letter; (letter = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        read_option(options, letter, optarg);
    }
    if (argc - optind != 2) {
        fputs(usage, stderr);
        exit(2);
    }
    const struct workload *workload = find_workload(argv[optind]);
    options->port = (in_port_t)number("port", argv[optind + 1], UINT16_MAX);
    if (options->connections == 0) {
        options->connections = workload->connections;
    }
    return workload;
}

/* ---- limits ---- */

static void end_late(int signal)
{
    static const char text[] = "net_load: not finished in time\n";
    (void)signal;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(1);
}

/* A descriptor for each client, and no end of waiting for a server that hangs. */
static void set_limits(const struct load_options *options)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        fail("getrlimit");
    }
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
        fail("setrlimit");
    }
    expect_right(files.rlim_cur > (rlim_t)options->connections + 16,
                 "the limit of open files (ulimit -Hn) is too low for so many connections");
    if (signal(SIGALRM, end_late) == SIG_ERR) {
        fail("signal");
    }
    alarm(options->seconds);
}

/* ---- the report ---- */

static int compare_values(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double percentile_us(const struct load_result *result, uint32_t per_mille)
{
    const uint64_t place = (result->latency_count - 1) * per_mille / 1000;
    return (double)result->latencies_ns[place] / 1e3;
}

static void report(const char *name, const struct load_options *options, struct load_result *result)
{
    printf("{\"workload\": \"%s\", \"connections\": %" PRIu32 ", \"answered\": %" PRIu64
           ", \"total\": %" PRIu64 ", \"wall_s\": %.6f, \"cpu_s\": %.6f",
           name, options->connections, result->answered, result->total,
           (double)result->wall_ns / 1e9, (double)result->cpu_ns / 1e9);
    printf(", \"cpu_us\": %.4f", (double)result->cpu_ns / 1e3 / (double)result->answered);
    if (result->latency_count > 0) {
        qsort(result->latencies_ns, result->latency_count, sizeof result->latencies_ns[0],
              compare_values);
        printf(", \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f", percentile_us(result, 500),
               percentile_us(result, 990), percentile_us(result, 1000));
    }
    if (strcmp(name, "idle") == 0) {
        printf(", \"bytes\": %.1f, \"bytes_after\": %.1f", result->bytes, result->bytes_after);
    }
    puts("}");
}

int main(int argc, char **argv)
{
    struct load_options options;
    struct load_result result = {0};
    const struct workload *workload = read_arguments(argc, argv, &options);
    set_limits(&options);
    result.latency_capacity = options.count + options.connections;
    result.latencies_ns = allocate(result.latency_capacity, sizeof result.latencies_ns[0]);
    workload->run(&options, &result);
    report(workload->name, &options, &result);
    free(result.latencies_ns);
    return 0;
}
