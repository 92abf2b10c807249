/* SPDX-License-Identifier: MIT */
#include "sched/idle_driver.h"

static struct park_token *token_of(struct idle_driver *driver, uint32_t worker)
{
    return &CONTAINER_OF(driver, struct futex_driver, driver)->tokens[worker];
}

static void wait(struct idle_driver *driver, uint32_t worker)
{
    park_token_take(token_of(driver, worker));
}

static void wake(struct idle_driver *driver, uint32_t worker)
{
    park_token_give(token_of(driver, worker));
}

void futex_driver_init(struct futex_driver *driver)
{
    driver->driver = (struct idle_driver){.wait = wait, .wake = wake};
    for (uint32_t i = 0; i < PARKING_WORKERS_MAX; i++) {
        store_relaxed(&driver->tokens[i].word, 0); /* not shared yet */
    }
}
