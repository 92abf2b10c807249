/* SPDX-License-Identifier: MIT */
/* What a worker blocks on when it has nothing to do. The scheduler decides who sleeps and who is
 * woken (concurrent/parking.h); the driver only carries it out. */
#ifndef SKUA_SCHED_IDLE_DRIVER_H
#define SKUA_SCHED_IDLE_DRIVER_H

#include <stdint.h>

#include "concurrent/parking.h"

struct idle_driver {
    /* Blocks the calling worker until `wake` was called for it, before or during the call. */
    void (*wait)(struct idle_driver *driver, uint32_t worker);
    /* Ends the wait of a worker that the caller has claimed. Any thread; once per wait. */
    void (*wake)(struct idle_driver *driver, uint32_t worker);
};

/* The driver that has nothing else to wait for: one futex per worker. */
struct futex_driver {
    struct idle_driver driver;
    struct park_token tokens[PARKING_WORKERS_MAX];
};

void futex_driver_init(struct futex_driver *driver);

#endif
