/* SPDX-License-Identifier: MIT */
/* The load generator of `make bench-net`: one thread with an epoll loop that plays many clients on
 * loopback, checks every answer, and looks at the CPU time and the memory of the server meanwhile.
 * It knows nothing of Skua. */
#ifndef NET_LOAD_H
#define NET_LOAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MESSAGE_MAX ((size_t)4096)

/* What a run is asked to do. */
struct load_options {
    in_port_t port;
    pid_t server;         /* whose CPU time and memory to look at; 0: nobody's */
    uint32_t connections; /* clients */
    uint32_t size;        /* bytes of a message */
    uint64_t count;       /* echoes, not counting those before the clock starts */
    uint64_t bytes;       /* of a bulk transfer */
    uint32_t seconds;     /* the most that a run may take */
};

/* What a run has to say; zero: it does not. */
struct load_result {
    uint64_t answered; /* while the clock ran: echoes, or bytes that the server counted */
    uint64_t total;    /* echoes, with those before and after */
    uint64_t wall_ns;
    uint64_t cpu_ns;           /* of the server while the clock ran */
    double bytes;              /* of the server's memory, for one connection that is idle */
    double bytes_after;        /* likewise, after all have been busy at once */
    uint64_t *latencies_ns;    /* of each echo, in no order */
    uint64_t latency_count;    /* how many */
    uint64_t latency_capacity; /* room for so many; more are not kept */
};

/* The workloads. They end the program with a message if something fails. */
void load_echo(const struct load_options *options, struct load_result *result);
void load_idle(const struct load_options *options, struct load_result *result);
void load_storm(const struct load_options *options, struct load_result *result);
void load_bulk(const struct load_options *options, struct load_result *result);

/* Ends the program with a message; `what` has failed, and errno says why. */
_Noreturn void fail(const char *what);

/* Ends the program if a check does. */
void expect_right(bool right, const char *what);

void *allocate(size_t count, size_t size);

uint64_t now_ns(void);

/* ---- the server ---- */

/* User and system time so far, of all threads. 0 if there is no server to look at. */
uint64_t server_cpu_ns(pid_t server);

/* Resident memory, what it shares with others counted by its share, once that has stopped changing
 * for a moment: freeing may go on behind the server's back. 0 if there is no server to look at. */
uint64_t server_memory_bytes(pid_t server);

#endif
