/* SPDX-License-Identifier: MIT */
#include "ledger.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define PAYLOADS_MAX 4096

struct item {
    atomic_uint drops;
    unsigned char bytes[LEDGER_PAYLOAD_MAX]; /* the simulator reads them */
};

static struct {
    atomic_uint payload_count;
    struct item items[PAYLOADS_MAX];
    atomic_uint process_count;
    atomic_uint closes[1 + LEDGER_PROCESSES_MAX]; /* the first: of those without a number */
    atomic_uint refused;                          /* processes without a number */
} books;

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned payload_count(void)
{
    return least(atomic_load(&books.payload_count), PAYLOADS_MAX);
}

static unsigned process_count(void)
{
    return least(atomic_load(&books.process_count), LEDGER_PROCESSES_MAX);
}

void ledger_begin(void)
{
    for (unsigned i = 0; i < payload_count(); i++) {
        atomic_store(&books.items[i].drops, 0);
    }
    for (unsigned i = 0; i <= process_count(); i++) {
        atomic_store(&books.closes[i], 0);
    }
    atomic_store(&books.payload_count, 0);
    atomic_store(&books.process_count, 0);
    atomic_store(&books.refused, 0);
}

void ledger_check(void)
{
    for (unsigned i = 0; i < payload_count(); i++) {
        const unsigned drops = atomic_load(&books.items[i].drops);
        if (drops != 1) {
            ledger_fail("payload %u was dropped %u times", i, drops);
        }
    }
    for (unsigned i = 1; i <= process_count(); i++) {
        const unsigned closes = atomic_load(&books.closes[i]);
        if (closes != 1) {
            ledger_fail("process %u was closed %u times", i, closes);
        }
    }
    EXPECT(atomic_load(&books.closes[0]) == atomic_load(&books.refused));
}

/* ---- payloads ---- */

static void count_drop_of_object(void *data, size_t size)
{
    struct item *item = data;
    (void)size;
    (void)atomic_fetch_add(&item->drops, 1);
}

static void count_drop_of_bytes(void *data, size_t size)
{
    count_drop_of_object((char *)data - offsetof(struct item, bytes), size);
}

skua_payload ledger_payload(bool object, size_t size)
{
    const unsigned number = atomic_fetch_add(&books.payload_count, 1);
    EXPECT(size <= LEDGER_PAYLOAD_MAX);
    if (number >= PAYLOADS_MAX) {
        return skua_payload_empty(number);
    }
    struct item *item = &books.items[number];
    return object ? skua_payload_pointer(number, item, count_drop_of_object)
                  : skua_payload_owned(number, item->bytes, size, count_drop_of_bytes);
}

/* ---- processes ---- */

uint32_t ledger_process_begins(void)
{
    const unsigned number = atomic_fetch_add(&books.process_count, 1) + 1;
    if (number <= LEDGER_PROCESSES_MAX) {
        return number;
    }
    (void)atomic_fetch_add(&books.refused, 1);
    return 0;
}

void ledger_process_ends(uint32_t number)
{
    EXPECT(number <= process_count());
    (void)atomic_fetch_add(&books.closes[number], 1);
}

/* ---- answers ---- */

static uint64_t bit_of(int error)
{
    if (error >= 0) {
        return error == 0 ? ANSWER_OK : 0;
    }
    if (error <= SKUA_E_USER) {
        return ANSWER_OF_USER;
    }
    return error < -5000 && error > -5063 ? UINT64_C(1) << (-5000 - error) : 0;
}

/* Where a limit is documented, the quota of the same thing is as well. */
static int limit_of_quota(int error)
{
    switch (error) {
    case SKUA_E_PROCESS_QUOTA:
        return SKUA_E_PROCESS_LIMIT;
    case SKUA_E_MESSAGE_QUOTA:
        return SKUA_E_MAILBOX_FULL;
    case SKUA_E_MEMORY_QUOTA:
        return SKUA_E_OWN_LIMIT;
    default:
        return error;
    }
}

bool ledger_answer(int error, uint64_t documented, const char *call)
{
    if ((bit_of(limit_of_quota(error)) & documented) == 0) {
        ledger_fail("%d (%s) is no documented answer of %s", error, skua_error_name(error), call);
    }
    return error == 0;
}

void ledger_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "fuzz: ");
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}
