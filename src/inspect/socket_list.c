/* SPDX-License-Identifier: MIT */
#include "inspect/socket_list.h"

#include <inttypes.h>
#include <string.h>

#include "base/monotonic.h"
#include "inspect/budget.h"
#include "inspect/listing.h"
#include "sched/process_info.h"

/* At most this many slots are looked at for one page, so that a narrow filter does not make an
 * answer slow. */
#define LOOKS_MAX 100000

/* ---- words ---- */

static const char *word_of(enum skua_socket_state state)
{
    switch (state) {
    case SKUA_SOCKET_LISTENING:
        return "listening";
    case SKUA_SOCKET_CONNECTING:
        return "connecting";
    case SKUA_SOCKET_OPEN:
        return "open";
    case SKUA_SOCKET_SHUT_DOWN:
        return "shut-down";
    case SKUA_SOCKET_CLOSING:
        return "closing";
    }
    return "?";
}

static bool is_state(const char *word)
{
    for (int state = SKUA_SOCKET_LISTENING; state <= SKUA_SOCKET_CLOSING; state++) {
        if (strcmp(word, word_of((enum skua_socket_state)state)) == 0) {
            return true;
        }
    }
    return false;
}

static bool read_order(const char *word, enum socket_order *order)
{
    static const char *const names[SOCKET_ORDERS] = {"in", "out", "queued", "idle"};
    for (uint32_t i = 0; i < SOCKET_ORDERS; i++) {
        if (strcmp(word, names[i]) == 0) {
            *order = (enum socket_order)i;
            return true;
        }
    }
    return false;
}

/* Which sockets a page has. */
struct filter {
    const char *state; /* null: any */
    uint64_t owner;    /* a PID; 0: any */
    const char *type;  /* of the owner, as text_is_name has it; null: any */
};

static bool read_filter(const struct socket_request *request, struct filter *filter)
{
    char *rest = request->rest;
    if (request->state != NULL && strcmp(request->state, "any") != 0) {
        filter->state = request->state;
    }
    if (filter->state != NULL && !is_state(filter->state)) {
        return false;
    }
    const char *owner = rest != NULL ? strsep(&rest, " ") : NULL;
    filter->type = rest;
    return owner == NULL || text_is_number(owner, 16, &filter->owner);
}

/* ---- lines ---- */

static const char *type_of_owner(struct scheduler *sched, skua_pid owner)
{
    return skua_pid_is_none(owner) ? "-" : process_info_type_name(sched, owner);
}

void socket_list_add_line(struct scheduler *sched, const skua_socket_snapshot *info,
                          struct text *out)
{
    text_add(out, "socket\t%016" PRIx64 "\t%016" PRIx64 "\t", info->socket.bits, info->owner.bits);
    text_add_name(out, type_of_owner(sched, info->owner));
    text_add(out, "\t%s\t", word_of(info->state));
    text_add_clean(out, info->local);
    text_add(out, "\t");
    text_add_clean(out, info->peer);
    text_add(out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", info->bytes_in,
             info->bytes_out, info->queued, info->idle_ns);
}

/* ---- a page in the order of slots ---- */

static bool lets_through(struct scheduler *sched, const struct filter *filter,
                         const skua_socket_snapshot *info)
{
    return (filter->state == NULL || strcmp(filter->state, word_of(info->state)) == 0) &&
           (filter->owner == 0 || filter->owner == info->owner.bits) &&
           (filter->type == NULL || text_is_name(filter->type, type_of_owner(sched, info->owner)));
}

static void add_page(struct scheduler *sched, uint64_t after, uint32_t limit,
                     const struct filter *filter, struct text *out)
{
    struct sockets *sockets = sockets_of_hooks(sched->sockets);
    const uint32_t first = socket_slot(after) + 1;
    skua_socket_snapshot info;
    uint32_t rows = 0;
    uint32_t slot = first;
    for (; slot - first < LOOKS_MAX && rows < limit && !sockets_end_before(sockets, slot); slot++) {
        if (sockets_peek(sockets, slot, &info) && lets_through(sched, filter, &info) &&
            sockets_add_addresses(sockets, &info)) {
            socket_list_add_line(sched, &info, out);
            rows++;
        }
    }
    if (!sockets_end_before(sockets, slot)) {
        text_add(out, "more\t%016" PRIx64 "\n", (uint64_t)(slot - 1) << 32);
    }
}

/* ---- the largest ---- */

static uint64_t value_of(const skua_socket_snapshot *info, enum socket_order order)
{
    switch (order) {
    case SOCKETS_BY_IN:
        return info->bytes_in;
    case SOCKETS_BY_OUT:
        return info->bytes_out;
    case SOCKETS_BY_QUEUED:
        return info->queued;
    case SOCKETS_BY_IDLE:
        return info->idle_ns;
    case SOCKET_ORDERS:
        break;
    }
    return 0;
}

static void offer(struct socket_listing *listing, const skua_socket_snapshot *info)
{
    for (uint32_t order = 0; order < SOCKET_ORDERS; order++) {
        largest_offer(&listing->orders[order], value_of(info, (enum socket_order)order),
                      info->socket.bits);
    }
}

static void look_at_all(struct socket_listing *listing, struct sockets *sockets)
{
    skua_socket_snapshot info;
    for (uint32_t order = 0; order < SOCKET_ORDERS; order++) {
        listing->orders[order].count = 0;
    }
    for (uint32_t slot = 1; !sockets_end_before(sockets, slot); slot++) {
        if (sockets_peek(sockets, slot, &info)) {
            offer(listing, &info);
        }
    }
    for (uint32_t order = 0; order < SOCKET_ORDERS; order++) {
        largest_sort(&listing->orders[order]);
    }
}

static void renew(struct socket_listing *listing, struct sockets *sockets)
{
    const uint64_t now = monotonic_ns();
    if (!listing_is_recent(listing->made, listing->cost, now)) {
        const uint64_t used = budget_thread_ns();
        look_at_all(listing, sockets);
        listing->made = now;
        listing->cost = budget_thread_ns() - used;
    }
}

/* The sockets of an order as they are now, largest first. Returns how many. */
static uint32_t read_rows(struct socket_listing *listing, struct sockets *sockets,
                          enum socket_order order)
{
    const struct largest *largest = &listing->orders[order];
    uint32_t count = 0;
    for (uint32_t i = 0; i < largest->count; i++) {
        const uint64_t key = largest->entries[i].key;
        struct socket_row *row = &listing->rows[count];
        if (sockets_peek(sockets, socket_slot(key), &row->info) && row->info.socket.bits == key) {
            row->entry = (struct largest_entry){value_of(&row->info, order), key};
            count++;
        }
    }
    largest_sort_rows(listing->rows, count, sizeof listing->rows[0]);
    return count;
}

/* Returns the age of the listing. */
static uint64_t add_largest(struct socket_listing *listing, struct scheduler *sched,
                            enum socket_order order, uint32_t limit, struct text *out)
{
    struct sockets *sockets = sockets_of_hooks(sched->sockets);
    renew(listing, sockets);
    const uint32_t count = read_rows(listing, sockets, order);
    for (uint32_t i = 0; i < count && i < limit; i++) {
        if (sockets_add_addresses(sockets, &listing->rows[i].info)) {
            socket_list_add_line(sched, &listing->rows[i].info, out);
        }
    }
    return monotonic_ns() - listing->made;
}

int socket_list_add(struct socket_listing *listing, struct scheduler *sched,
                    const struct socket_request *request, struct text *out)
{
    uint64_t after;
    uint64_t limit;
    uint64_t age = 0;
    enum socket_order order = SOCKETS_BY_IN;
    struct filter filter = {0};
    if (request->limit == NULL || !text_is_number(request->after, 16, &after) ||
        !text_is_number(request->limit, 10, &limit) || limit == 0 || limit > LISTING_MAX) {
        return SKUA_E_INVALID;
    }
    if (strcmp(request->sort, "socket") == 0 && read_filter(request, &filter)) {
        add_page(sched, after, (uint32_t)limit, &filter, out);
    } else if (read_order(request->sort, &order) && after == 0 && request->state == NULL) {
        age = add_largest(listing, sched, order, (uint32_t)limit, out);
    } else {
        return SKUA_E_INVALID;
    }
    const struct sockets_total total = sockets_count(sched->sockets);
    text_add(out, "seen\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n", total.open, age,
             total.lingering, total.turned_away);
    return 0;
}
