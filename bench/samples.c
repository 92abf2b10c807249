/* SPDX-License-Identifier: MIT */
/* Samples of how long something took, and their percentiles. */
#include <stdlib.h>

#include "bench.h"

void samples_init(struct samples *samples, uint32_t capacity)
{
    samples->values = calloc(capacity, sizeof *samples->values);
    expect_ok(samples->values != NULL ? 0 : SKUA_E_NO_MEMORY, "samples");
    samples->capacity = capacity;
    atomic_store(&samples->count, 0);
}

uint32_t samples_add(struct samples *samples, uint64_t value)
{
    const uint32_t at = atomic_fetch_add(&samples->count, 1);
    if (at < samples->capacity) {
        samples->values[at] = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
    }
    return at;
}

static int compare_values(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t samples_at(struct samples *samples, uint32_t permille)
{
    const uint32_t added = atomic_load(&samples->count);
    const uint32_t count = added < samples->capacity ? added : samples->capacity;
    qsort(samples->values, count, sizeof *samples->values, compare_values);
    const uint64_t at = (uint64_t)count * permille / 1000;
    return samples->values[at < count || count == 0 ? at : count - 1];
}

void samples_free(struct samples *samples)
{
    free(samples->values);
    samples->values = NULL;
}
