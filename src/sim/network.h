/* SPDX-License-Identifier: MIT */
/* The simulated network: byte streams between hosts, as a transport of sockets (net/transport.h).
 *
 * Two endpoints make a stream. It is made when one connects; the other endpoint then stands for the
 * connection on its way to a listener and in the listener's queue, until it is accepted. What comes
 * to an endpoint comes in order: its *opening* (to the one that connects: the answer; to the other:
 * the request), then segments of bytes, then an end or a reset. At most one item on the agenda
 * lets the next of these arrive. If the path between the hosts is cut or clogged when that is due,
 * it is put off until the path is open, or, if nobody knows when that will be, left to
 * paths_heal; so all that is behind it waits as well, and nothing is reordered.
 *
 * What a reader has read is acknowledged, which takes as long as bytes do, and makes room in the
 * writer's window. There are no packets, nothing is lost or sent again.
 *
 * An endpoint whose number was closed lives until that of the other is closed, too: what arrives
 * there is answered with a reset. Everything later is on the agenda, in places that are reserved
 * when an endpoint is made: so only what opens or writes can run out of memory.
 *
 *   network.c      endpoints, the agenda, the transport's functions, accounts
 *   stream.c       what comes to an endpoint, reading, writing, ends
 *   inflow.c       the bytes that come to an endpoint
 *   connections.c  listening, connecting, accepting
 *   bindings.c     addresses
 *   paths.c        hosts and what is between them: latency, clogs, partitions
 *   hosts.c        which host a process is on */
#ifndef SKUA_SIM_NETWORK_H
#define SKUA_SIM_NETWORK_H

#include <skua/sim.h>

#include "net/sockets.h"
#include "net/transport.h"
#include "sim/hosts.h"

struct sim;

/* Why an endpoint is on the agenda. */
enum matter {
    MATTER_ARRIVAL,         /* the next thing that comes to it is due */
    MATTER_ACKNOWLEDGEMENT, /* of what it has written */
    MATTER_REPORT,          /* its user should hear how it is */
    MATTER_TIMER,           /* connecting, or dead: has taken too long; unaccepted: may be
                               accepted now */
    MATTER_COUNT,
    MATTER_ALARM = MATTER_COUNT, /* of no endpoint: sockets_alarm */
};

struct segment {
    struct segment *next;
    uint64_t when; /* it arrives */
    size_t size;
    size_t taken; /* bytes that were read */
    unsigned char bytes[];
};

/* How the output of a side ends. */
enum stream_ending { ENDING_NONE, ENDING_END, ENDING_RESET };

/* What is on its way to an endpoint, or has arrived and is not read yet. */
struct inflow {
    bool has_opening;
    uint64_t opening_when;
    int opening_error;     /* an errno: that of the answer */
    struct segment *first; /* not read to its end */
    struct segment *last;
    struct segment *in_flight; /* the first that has not arrived; null: all have */
    size_t arrived;            /* bytes that can be read */
    enum stream_ending ending; /* behind all segments; not arrived yet */
    uint64_t ending_when;
    bool is_at_end; /* the end has arrived */
    uint64_t read;  /* bytes so far */
    uint64_t dropped;
};

struct endpoint {
    uint32_t number; /* the transport's; `what` of its items on the agenda */
    uint32_t host;
    bool is_listener;
    bool is_held;    /* sockets know the number */
    bool is_watched; /* by this key: */
    uint64_t key;
    struct address local;
    struct address remote;
    bool has_item[MATTER_COUNT]; /* on the agenda */
    struct endpoint *next;       /* network.listeners; or the next in a listener's queue */
    /* Of a stream: */
    struct endpoint *peer;
    uint64_t stream; /* the number that traces have, the same for both */
    bool is_client;  /* it has connected to the other */
    bool is_connecting;
    bool is_closed;        /* the number was closed, or it will never be accepted */
    bool is_shut;          /* no more is written */
    bool is_dead;          /* a silent drop: nothing arrives at either side */
    uint64_t keepalive_ns; /* after which it notices that; 0: never */
    bool waits;            /* a write found no room */
    int error;             /* an errno: it has failed */
    uint64_t began;        /* to connect */
    struct inflow in;
    uint64_t written;        /* bytes so far */
    uint64_t unread;         /* of these, not acknowledged */
    uint64_t acknowledged;   /* by what is on its way */
    uint64_t acknowledgable; /* read by the peer since */
    uint32_t listener;       /* unaccepted: the number it will be accepted by, and its serial */
    uint64_t listener_serial;
    /* Of a listener: */
    uint64_t serial;
    bool reuseport;
    uint32_t backlog;
    uint32_t queued; /* connections, also those that can only be accepted later */
    struct endpoint *first;
    struct endpoint *last;
};

/* From one host to another. */
struct path {
    uint64_t latency_ns; /* 0: as the faults say */
    uint64_t clogged_until;
    uint64_t cut_until; /* UINT64_MAX: until it is healed */
    uint64_t spared_until;
};

struct host {
    bool exists;
    uint16_t next_port; /* that connects use */
};

/* What has happened so far. */
struct network_accounts {
    uint64_t opened;  /* numbers that were given out ... */
    uint64_t closed;  /* ... and closed */
    uint64_t written; /* bytes, of all streams ... */
    uint64_t read;
    uint64_t dropped; /* by resets, silent drops and closing */
    uint64_t held;    /* on their way, or not read yet */
};

struct network {
    struct transport transport;
    struct sim *sim;
    struct sockets *sockets; /* null: nobody listens to reports */
    void (*report)(struct sockets *sockets, struct worker *worker, uint64_t key, uint32_t flags);
    void (*alarm)(struct sockets *sockets, struct worker *worker, uint64_t now);
    struct endpoint **endpoints; /* by number; null: free */
    uint32_t count;              /* of numbers that were ever used */
    uint32_t capacity;
    uint32_t used_below;        /* no number below is free */
    struct endpoint *listeners; /* a list */
    struct path *paths;         /* [from * side + to] */
    struct host *hosts;
    uint32_t side; /* numbers of hosts are below */
    uint64_t streams;
    uint64_t listens;
    bool has_alarm;    /* a place on the agenda is reserved for it */
    bool alarm_is_set; /* it is on the agenda */
    uint64_t alarm_when;
    struct network_accounts gone; /* of streams that are not there any more; opened and closed: of
                                     all */
    struct process_hosts process_hosts;
};

/* network.c. */
void network_init(struct network *network, struct sim *sim);

/* These sockets are made of it. */
void network_attach(struct network *network, struct sockets *sockets);

/* All numbers must have been closed. */
void network_deinit(struct network *network);

/* An item of the agenda is due. */
void network_act(struct network *network, uint32_t what, uint32_t matter);

/* The agenda is emptied, and this item was taken from it. */
void network_forget(struct network *network, uint32_t what, uint32_t matter);

/* Reads the accounts. Asserts that they are right: no byte of any stream was made up, or is
 * missing without a reset, a silent drop or a close. */
struct network_accounts network_audit(const struct network *network);

/* Creates an endpoint on a host; null if there is no memory. */
NODISCARD struct endpoint *network_add(struct network *network, uint32_t host);
void network_remove(struct network *network, struct endpoint *endpoint);

/* The user of the transport gets its number. */
int network_give_out(struct network *network, struct endpoint *endpoint);

/* Puts an endpoint on the agenda, unless it already is, or takes it off. */
void network_plan(struct network *network, struct endpoint *endpoint, enum matter matter,
                  uint64_t when);
void network_unplan(struct network *network, struct endpoint *endpoint, enum matter matter);

/* Tells the user of an endpoint; which may close it. */
void network_report(struct network *network, const struct endpoint *endpoint, uint32_t flags);

/* Draws whether a fault happens now, on the way from a host to another. If so, it is recorded. */
NODISCARD bool network_goes_wrong(struct network *network, uint32_t per_million,
                                  enum skua_sim_fault fault, uint32_t from, uint32_t to,
                                  uint64_t stream);

/* Records what happens, and adds it to the hash. */
void network_record(struct network *network, const skua_sim_record *record);

/* The faults and values that hold now. */
const skua_sim_network *network_faults(const struct network *network);

/* paths.c: a host has a process from now on. Returns 0 or SKUA_E_NO_MEMORY. */
NODISCARD int paths_add_host(struct network *network, uint32_t host);
NODISCARD bool paths_has_host(const struct network *network, uint32_t host);

/* A port of a host for a connection that names none. */
NODISCARD uint16_t paths_next_port(struct network *network, uint32_t host);

/* When what is sent now arrives, if nothing is in its way. */
NODISCARD uint64_t paths_arrival(struct network *network, uint32_t from, uint32_t to);

/* When what is due now can arrive; 0: now. UINT64_MAX: once it is healed. */
NODISCARD uint64_t paths_open_at(const struct network *network, uint32_t from, uint32_t to);

/* Draws whether this path gets clogged or cut. */
void paths_trouble(struct network *network, const struct endpoint *from);

/* As skua_sim_partition, skua_sim_heal and skua_sim_latency_set. */
NODISCARD int paths_cut(struct network *network, uint32_t a, uint32_t b, bool both_ways);
void paths_heal(struct network *network, uint32_t a, uint32_t b);
NODISCARD int paths_set_latency(struct network *network, uint32_t a, uint32_t b,
                                uint64_t latency_ns);

/* bindings.c: finds the host that an address leads to from a host, and replaces 0.0.0.0 and [::] by
 * loopback. Returns its number or a negative errno. */
NODISCARD int bindings_resolve(const struct network *network, uint32_t host,
                               struct address *address);

/* Whether a listener takes connections to this address of its host. */
NODISCARD bool bindings_cover(const struct address *bound, const struct address *address);

/* Checks an address to listen on, and gives it a port if it has none. Returns 0 or a negative
 * errno. */
NODISCARD int bindings_claim(struct network *network, uint32_t host, struct address *address,
                             bool reuseport);

/* The same for the own side of a connection to that address; `wanted` may be null. */
NODISCARD int bindings_choose(struct network *network, uint32_t host, const struct address *address,
                              const struct address *wanted, struct address *source);

/* connections.c: the functions of the transport. */
int connections_listen(struct network *network, uint32_t host, const struct address *address,
                       const skua_listen_options *options);
int connections_connect(struct network *network, uint32_t host, const struct address *address,
                        const struct address *source);
int connections_accept(struct network *network, struct endpoint *listener);
bool connections_turn_away(struct network *network, struct endpoint *listener);
void connections_stop_listening(struct network *network, struct endpoint *listener);

/* The request of an unaccepted endpoint has arrived. False if it has to come again, later. */
NODISCARD bool connections_knock(struct network *network, struct endpoint *endpoint);

/* An unaccepted endpoint that has waited may be accepted now. */
void connections_admit(struct network *network, struct endpoint *endpoint);

/* inflow.c: a segment of the first `size` bytes of these pieces; null if there is no memory. */
NODISCARD struct segment *inflow_new_segment(struct network *network, const struct iovec *pieces,
                                             size_t size);
void inflow_free_segment(struct network *network, struct segment *segment);
void inflow_append(struct inflow *in, struct segment *segment);

/* Reads bytes that have arrived, of which there are so many. */
void inflow_take(struct network *network, struct inflow *in, unsigned char *data, size_t size);

/* Drops what has arrived and was not read, or what has not arrived. */
void inflow_drop_arrived(struct network *network, struct inflow *in);
void inflow_drop_in_flight(struct network *network, struct inflow *in);

/* How many bytes there are, arrived or not. */
NODISCARD uint64_t inflow_held(const struct inflow *in);

/* stream.c: the functions of the transport. */
ssize_t stream_read(struct network *network, struct endpoint *endpoint, void *data, size_t size);
ssize_t stream_write(struct network *network, struct endpoint *endpoint, const struct iovec *pieces,
                     int count);
int stream_shutdown(struct network *network, struct endpoint *endpoint);
void stream_close(struct network *network, struct endpoint *endpoint, bool reset);

/* What is true of it, as a transport reports it. */
NODISCARD uint32_t stream_state(const struct network *network, const struct endpoint *endpoint);

/* An item of the agenda is due. */
void stream_arrive(struct network *network, struct endpoint *endpoint);
void stream_acknowledge(struct network *network, struct endpoint *endpoint);
void stream_give_up(struct network *network, struct endpoint *endpoint);

/* As SKUA_SOCKET_KEEPALIVE. */
void stream_keep_alive(struct network *network, struct endpoint *endpoint, uint64_t idle_ns);

/* Sends the request, or the answer, to an endpoint, which gets it no earlier than that. */
void stream_send_opening(struct network *network, struct endpoint *to, uint64_t earliest,
                         int error);

/* The paths to an endpoint and from it may be open again. */
void stream_resume(struct network *network, struct endpoint *endpoint);

/* Frees what both sides have closed. */
void stream_free(struct network *network, struct endpoint *endpoint);

#endif
