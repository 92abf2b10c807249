/* SPDX-License-Identifier: MIT */
#include "relation_book.h"

#include "board.h"
#include "ledger.h"
#include "supervision.h"

#define OPEN_MAX 200 /* of one tag */

static struct relations books[1 + LEDGER_PROCESSES_MAX];

struct relations *relations_of(uint32_t number)
{
    return &books[number];
}

void relations_begin(uint32_t number)
{
    if (number != 0) {
        books[number] = (struct relations){.number = number};
    }
}

/* ---- yields ---- */

static uint8_t *open_of(struct relations *relations, uint64_t tag)
{
    EXPECT(tag >= RELATION_TAG_FIRST && tag < RELATION_TAG_END);
    return &relations->open[tag - RELATION_TAG_FIRST];
}

bool relations_have_room(const struct relations *relations, uint64_t tag)
{
    return relations->open[tag - RELATION_TAG_FIRST] < OPEN_MAX;
}

void relations_note_yield(struct relations *relations, uint64_t tag, bool accepted)
{
    uint8_t *open = open_of(relations, tag);
    *open = (uint8_t)(*open + accepted);
}

/* ---- completions ---- */

static bool is_nothing(const skua_payload *payload)
{
    return payload->storage == SKUA_PAYLOAD_EMPTY;
}

static bool is_number(const skua_payload *payload)
{
    return payload->storage == SKUA_PAYLOAD_INLINE && skua_payload_size(payload) == 8;
}

#define ENDS_EARLY (ANSWER(TIMEOUT) | ANSWER(CANCELLED) | ANSWER(NO_MEMORY))
#define NOBODY     (ANSWER(NO_PROCESS) | ANSWER(FOREIGN_PID))

/* Replies of scripts have 0 or an error of the program's; a supervisor that is asked for anything
 * but a report replies with SKUA_E_INVALID, and with SKUA_E_PAYLOAD_SIZE if that is too large. */
static void check_call(const skua_event *event)
{
    (void)ledger_answer(event->error,
                        ANSWER_OK | ANSWER_OF_USER | ENDS_EARLY | NOBODY | ANSWER(NOT_CALLABLE) |
                            ANSWER(MAILBOX_FULL) | ANSWER(PEER_ENDED) | ANSWER(INVALID) |
                            ANSWER(PAYLOAD_SIZE),
                        "the completion of a call");
    supervision_read_report(&event->payload);
    if (event->error == SKUA_E_PEER_ENDED) {
        EXPECT(is_number(&event->payload));
    } else if (event->error != 0 && event->error > SKUA_E_USER) {
        EXPECT(is_nothing(&event->payload));
    }
}

/* It has the PID of who has ended; or nothing has ended. */
static void check_monitor(const skua_event *event)
{
    if (is_nothing(&event->payload)) {
        (void)ledger_answer(event->error, ENDS_EARLY | NOBODY, "the completion of a monitor");
    } else {
        EXPECT(is_number(&event->payload));
    }
}

static void check_join(const skua_event *event)
{
    if (event->error != 0) {
        check_monitor(event);
    }
}

static void check_await(const skua_event *event)
{
    (void)ledger_answer(event->error, ANSWER_OK | ENDS_EARLY | ANSWER(NAME_LIMIT),
                        "the completion of a wait for a name");
    EXPECT(event->error == 0 ? is_number(&event->payload) : is_nothing(&event->payload));
}

/* Errors of groups are beyond what ANSWER has bits for. */
static void check_watch(const skua_event *event)
{
    EXPECT(event->error == SKUA_E_CANCELLED || event->error == SKUA_E_NO_MEMORY ||
           event->error == SKUA_E_GROUP_LIMIT);
}

static void check_publish(const skua_event *event)
{
    EXPECT(event->error == 0 || event->error == SKUA_E_CANCELLED);
    EXPECT(event->error == 0 || skua_published_get(&event->payload).accepted == 0);
}

void relations_note_news(const skua_event *event)
{
    size_t count;
    EXPECT(event->error == 0 && skua_pid_is_none(event->from));
    EXPECT(event->tag >= RELATION_TAG_FIRST + YIELD_WATCH * RELATION_TAGS_EACH &&
           event->tag < RELATION_TAG_FIRST + YIELD_PUBLISH * RELATION_TAGS_EACH);
    const skua_pid *pids = skua_group_get_members(&event->payload, &count);
    EXPECT((pids != NULL) == (count > 0));
    EXPECT(event->payload.type == SKUA_GROUP_SNAPSHOT ||
           !skua_pid_is_none(skua_payload_to_pid(&event->payload)));
}

static void check_send(const skua_event *event)
{
    (void)ledger_answer(event->error, ANSWER_OK | ENDS_EARLY | NOBODY | ANSWER(MAILBOX_FULL),
                        "the completion of a send");
    EXPECT(is_nothing(&event->payload));
}

void relations_note_completion(struct relations *relations, const skua_event *event)
{
    static void (*const checks[RELATION_YIELDS])(const skua_event *) = {
        [YIELD_CALL] = check_call,   [YIELD_MONITOR] = check_monitor,
        [YIELD_JOIN] = check_join,   [YIELD_AWAIT] = check_await,
        [YIELD_WATCH] = check_watch, [YIELD_PUBLISH] = check_publish,
        [YIELD_SEND] = check_send,
    };
    uint8_t *open = open_of(relations, event->tag);
    EXPECT(*open > 0);
    --*open;
    if (!board_has_forged_completion()) {
        checks[(event->tag - RELATION_TAG_FIRST) / RELATION_TAGS_EACH](event);
    }
}

/* ---- requests ---- */

static struct relation_request *find_request(const struct relations *relations,
                                             skua_request request)
{
    for (uint32_t i = 0; i < relations->request_count; i++) {
        if (relations->requests[i].request.bits == request.bits) {
            return &relations_of(relations->number)->requests[i];
        }
    }
    return NULL;
}

static void forget_request(struct relations *relations, struct relation_request *found)
{
    *found = relations->requests[--relations->request_count];
}

enum request_standing relations_request(const struct relations *relations, skua_request request)
{
    const struct relation_request *found = find_request(relations, request);
    if (found != NULL) {
        return found->is_late ? REQUEST_LATE : REQUEST_OWED;
    }
    return relations->has_more_requests ? REQUEST_UNKNOWN : REQUEST_STRANGE;
}

void relations_note_answer(struct relations *relations, skua_request request, int error)
{
    struct relation_request *found = find_request(relations, request);
    if (found == NULL) {
        return;
    }
    if (error == SKUA_E_LATE) {
        found->is_late = true;
    } else if (error == 0) {
        EXPECT(!found->is_late);
        forget_request(relations, found);
    }
}

/* Room for one more: what was late is not needed any more, if no event can come of it. */
static bool make_room(struct relations *relations)
{
    for (uint32_t i = relations->request_count; i-- > 0;) {
        if (relations->requests[i].is_late && (relations->asks & RELATIONS_ABANDONS) == 0) {
            forget_request(relations, &relations->requests[i]);
        }
    }
    return relations->request_count < RELATIONS_KEPT;
}

void relations_note_call(struct relations *relations, const skua_event *event)
{
    EXPECT((relations->asks & RELATIONS_CALLS) != 0);
    EXPECT(event->error == 0 && event->request.bits != 0 && !skua_pid_is_none(event->from));
    EXPECT(find_request(relations, event->request) == NULL);
    if (!make_room(relations)) {
        relations->has_more_requests = true;
        return;
    }
    relations->requests[relations->request_count++] =
        (struct relation_request){.request = event->request};
}

void relations_note_abandon(struct relations *relations, const skua_event *event)
{
    EXPECT((relations->asks & RELATIONS_CALLS) != 0);
    EXPECT((relations->asks & RELATIONS_ABANDONS) != 0);
    EXPECT(event->error == 0 && is_nothing(&event->payload) && !skua_pid_is_none(event->from));
    struct relation_request *found = find_request(relations, event->request);
    EXPECT(found != NULL || relations->has_more_requests);
    if (found != NULL) {
        forget_request(relations, found);
    }
}

/* ---- links ---- */

static void forget_link(struct relations *relations, uint32_t index)
{
    relations->links[index] = relations->links[--relations->link_count];
}

void relations_note_link(struct relations *relations, const struct relation_link *link)
{
    EXPECT(link->id.bits != 0);
    for (uint32_t i = 0; i < relations->link_count; i++) {
        EXPECT(relations->links[i].id.bits != link->id.bits);
    }
    if (relations->link_count == RELATIONS_KEPT) {
        relations->has_more_links = true;
        return;
    }
    relations->links[relations->link_count++] = *link;
}

/* A link that tells ends with an event, and not before. */
void relations_note_unlink(struct relations *relations, skua_link_id id, int error)
{
    for (uint32_t i = 0; i < relations->link_count; i++) {
        const bool is_to_come = error != 0 && relations->links[i].tells;
        if (relations->links[i].id.bits == id.bits) {
            EXPECT(!is_to_come || (relations->asks & RELATIONS_PICKS) != 0);
            if (!is_to_come) {
                forget_link(relations, i);
            }
            return;
        }
    }
    EXPECT(error == SKUA_E_LATE || relations->has_more_links);
}

void relations_note_exit(struct relations *relations, const skua_event *event)
{
    EXPECT(event->error <= 0 && is_number(&event->payload));
    for (uint32_t i = 0; i < relations->link_count; i++) {
        const struct relation_link *link = &relations->links[i];
        if (link->tells && link->tag == event->tag && skua_pid_equal(link->peer, event->from)) {
            forget_link(relations, i);
            return;
        }
    }
    EXPECT(relations->has_more_links || (relations->has_templates && event->tag == 0));
}
