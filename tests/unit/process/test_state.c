/* SPDX-License-Identifier: MIT */
/* Every transition of the diagram in state.h, from every state: the allowed ones do what they say,
 * the others are refused and change nothing, or abort where only a wrong scheduler could ask. */
#include "process/state.h"

#include "aborts.h"
#include "test.h"

#define GENERATION UINT32_C(0x1345678) /* uses all bytes of its field */
#define LIST       UINT32_C(0x89abcdef)

static const enum process_state all_states[] = {
    STATE_READY, STATE_BLOCKED, STATE_IDLE, STATE_INIT, STATE_COMPLETE, STATE_FREE,
};
#define STATE_COUNT COUNT_OF(all_states)

static const uint32_t all_requests[] = {
    STATE_KILL,
    STATE_CANCEL,
    STATE_WATCHED,
    STATE_KILL | STATE_CANCEL,
    STATE_KILL | STATE_WATCHED,
    STATE_CANCEL | STATE_WATCHED,
    STATE_REQUESTS,
};
#define REQUEST_COUNT COUNT_OF(all_requests)

static const enum process_state waiting_states[] = {STATE_IDLE, STATE_BLOCKED};

#define BACKLOG  UINT32_C(5) /* before the transition under test; most leave it alone */
#define RESERVED UINT32_C(40)
#define WAITING  UINT32_C(3) /* messages; none of a process that rests */

/* The process under test; a word is written out as its parts. */
static struct process process;

static uint64_t word_of(uint32_t list, enum process_state state, uint32_t requests)
{
    return event_list_word(list, state_tag(GENERATION, state) | requests);
}

static void set(uint32_t list, enum process_state state, uint32_t requests)
{
    store_relaxed(&process.word, word_of(list, state, requests));
    store_relaxed(&process.reserved, RESERVED);
    store_relaxed(&process.consumed, RESERVED - (state_is_waiting((uint32_t)state) ? 0 : WAITING));
    process.backlog = BACKLOG;
}

static void assert_word(uint32_t list, enum process_state state, uint32_t requests)
{
    assert_int_equal(load_relaxed(&process.word), word_of(list, state, requests));
}

/* Places in the mailbox that are taken; `reserved` itself is the senders' and stays as it is. */
static void assert_places(uint32_t count)
{
    assert_int_equal(load_relaxed(&process.reserved), RESERVED);
    assert_int_equal(RESERVED - load_relaxed(&process.consumed), count);
}

/* The transition under test has touched neither mailbox nor backlog. */
static void assert_record_untouched(enum process_state before)
{
    assert_places(state_is_waiting((uint32_t)before) ? 0 : WAITING);
    assert_int_equal(process.backlog, BACKLOG);
}

static bool is_live(enum process_state state)
{
    return state == STATE_READY || state == STATE_BLOCKED || state == STATE_IDLE;
}

static bool is_waiting(enum process_state state)
{
    return state == STATE_BLOCKED || state == STATE_IDLE;
}

/* ---- the word ---- */

TEST(tag_keeps_its_parts_apart)
{
    static const uint32_t generations[] = {0, 1, GENERATION, GENERATION_MAX};
    FOR_ROWS (generation, generations) {
        for (size_t i = 0; i < STATE_COUNT; i++) {
            const uint32_t tag = state_tag(*generation, all_states[i]);
            assert_int_equal(tag & STATE_REQUESTS, 0);
            assert_int_equal(state_of(tag | STATE_REQUESTS), all_states[i]);
            assert_int_equal(state_generation(tag | STATE_REQUESTS), *generation);
        }
    }
}

TEST(tag_tells_live_and_waiting_states)
{
    FOR_ROWS (state, all_states) {
        const uint32_t tag = state_tag(GENERATION_MAX, *state) | STATE_REQUESTS;
        assert_int_equal(state_is_live(tag), is_live(*state));
        assert_int_equal(state_is_waiting(tag), is_waiting(*state));
    }
}

/* What a late sender finds in a record whose memory was given back. */
TEST(word_of_zero_is_free_and_admits_nothing)
{
    uint32_t next;
    store_relaxed(&process.word, 0);
    assert_int_equal(state_of(state_peek(&process)), STATE_FREE);
    assert_false(state_is_live(0));
    assert_int_equal(state_push_any(&process, 0, LIST, &next), STATE_CLOSED);
    assert_false(state_wake_any(&process, 0, LIST, &next));
    assert_int_equal(state_request_any(&process, 0, STATE_KILL), STATE_CLOSED);
    assert_int_equal(load_relaxed(&process.word), 0);
}

TEST(peek_sees_the_tag_without_the_list)
{
    set(LIST, STATE_BLOCKED, STATE_WATCHED);
    assert_int_equal(state_peek(&process), state_tag(GENERATION, STATE_BLOCKED) | STATE_WATCHED);
}

/* ---- the gates ---- */

TEST(gate_leaves_the_event_that_wakes_to_its_sender)
{
    FOR_ROWS (state, all_states) {
        const uint32_t before = state_tag(GENERATION, *state) | STATE_WATCHED;
        const bool is_ready = *state == STATE_READY;
        uint32_t tag = before;
        const enum event_list_verdict verdict = state_gate(&tag, GENERATION);
        if (is_waiting(*state)) {
            assert_int_equal(verdict, EVENT_LIST_CALLER);
            assert_int_equal(tag, state_tag(GENERATION, STATE_READY) | STATE_WATCHED);
        } else {
            assert_int_equal(verdict, is_ready ? EVENT_LIST_ADDED : EVENT_LIST_REFUSED);
            assert_int_equal(tag, before);
        }
    }
}

TEST(gate_for_wakers_admits_only_to_a_waiting_process)
{
    FOR_ROWS (state, all_states) {
        uint32_t tag = state_tag(GENERATION, *state);
        assert_int_equal(state_gate_waiting(&tag, GENERATION),
                         is_waiting(*state) ? EVENT_LIST_CALLER : EVENT_LIST_REFUSED);
        tag = state_tag(GENERATION + 1, *state);
        assert_int_equal(state_gate_waiting(&tag, GENERATION), EVENT_LIST_REFUSED);
    }
}

/* ---- for anybody: state_wake_any, state_push_any, state_request_any ---- */

/* Nothing reaches a process of this generation, nor changes the record. */
static void assert_closed(enum process_state state, uint32_t generation)
{
    for (size_t r = 0; r < REQUEST_COUNT; r++) {
        uint32_t next = 99;
        const uint32_t list = is_waiting(state) ? OBJECT_NONE : 7;
        set(list, state, STATE_CANCEL);
        assert_false(state_wake_any(&process, generation, LIST, &next));
        assert_int_equal(next, 99);
        assert_int_equal(state_push_any(&process, generation, LIST, &next), STATE_CLOSED);
        assert_int_equal(state_request_any(&process, generation, all_requests[r]), STATE_CLOSED);
        assert_word(list, state, STATE_CANCEL);
        assert_record_untouched(state);
    }
}

TEST(process_that_is_not_live_is_closed)
{
    FOR_ROWS (state, all_states) {
        if (!is_live(*state)) {
            assert_closed(*state, GENERATION);
        }
    }
}

TEST(another_generation_is_closed_in_every_state)
{
    static const uint32_t others[] = {0, GENERATION - 1, GENERATION + 1, GENERATION_MAX};
    FOR_ROWS (state, all_states) {
        for (size_t g = 0; g < COUNT_OF(others); g++) {
            assert_closed(*state, others[g]);
        }
    }
}

/* The message is in the backlog, not in the list, and counted without a reservation. */
TEST(wake_of_a_waiting_process_puts_the_message_in_its_backlog)
{
    FOR_ROWS (state, waiting_states) {
        uint32_t next = 99;
        set(OBJECT_NONE, *state, STATE_WATCHED);
        process.backlog = OBJECT_NONE;
        assert_true(state_wake_any(&process, GENERATION, LIST, &next));
        assert_word(OBJECT_NONE, STATE_READY, STATE_WATCHED);
        assert_int_equal(process.backlog, LIST);
        assert_int_equal(next, OBJECT_NONE);
        assert_places(1);
    }
}

TEST(wake_of_a_ready_process_is_refused)
{
    uint32_t next = 99;
    set(7, STATE_READY, STATE_CANCEL);
    assert_false(state_wake_any(&process, GENERATION, LIST, &next));
    assert_word(7, STATE_READY, STATE_CANCEL);
    assert_record_untouched(STATE_READY);
    assert_int_equal(next, 99);
}

/* What wakes it is in the backlog; if it is a message, it was counted before. */
TEST(push_to_a_waiting_process_makes_it_ready)
{
    static const uint32_t requests[] = {0, STATE_WATCHED};
    FOR_ROWS (state, waiting_states) {
        for (size_t r = 0; r < COUNT_OF(requests); r++) {
            uint32_t next = 99;
            set(OBJECT_NONE, *state, requests[r]);
            process.backlog = OBJECT_NONE;
            assert_int_equal(state_push_any(&process, GENERATION, LIST, &next), STATE_ENQUEUE);
            assert_word(OBJECT_NONE, STATE_READY, requests[r]);
            assert_int_equal(process.backlog, LIST);
            assert_int_equal(next, OBJECT_NONE);
            assert_places(0);
        }
    }
}

TEST(push_to_a_ready_process_adds_to_its_list)
{
    uint32_t next = 99;
    set(7, STATE_READY, STATE_CANCEL);
    assert_int_equal(state_push_any(&process, GENERATION, LIST, &next), STATE_DONE);
    assert_int_equal(next, 7);
    assert_word(LIST, STATE_READY, STATE_CANCEL);
    assert_record_untouched(STATE_READY);
}

TEST(urgent_push_says_so_in_the_word_if_it_adds_to_the_list)
{
    uint32_t next = 99;
    set(7, STATE_READY, STATE_CANCEL);
    assert_int_equal(state_push_urgent_any(&process, GENERATION, LIST, &next), STATE_DONE);
    assert_int_equal(next, 7);
    assert_word(LIST, STATE_READY, STATE_CANCEL | STATE_URGENT);
    assert_record_untouched(STATE_READY);
    FOR_ROWS (state, waiting_states) {
        set(OBJECT_NONE, *state, STATE_WATCHED);
        assert_int_equal(state_push_urgent_any(&process, GENERATION, LIST, &next), STATE_ENQUEUE);
        assert_word(OBJECT_NONE, STATE_READY, STATE_WATCHED);
        assert_int_equal(process.backlog, LIST);
        assert_int_equal(next, OBJECT_NONE);
        assert_int_equal(state_push_urgent_any(&process, GENERATION + 1, LIST, &next),
                         STATE_CLOSED);
    }
}

static void assert_request(uint32_t request, enum state_duty result)
{
    assert_int_equal(state_request_any(&process, GENERATION, request), result);
}

TEST(request_with_kill_or_cancel_wakes_a_waiting_process)
{
    FOR_ROWS (state, waiting_states) {
        for (size_t r = 0; r < REQUEST_COUNT; r++) {
            if (all_requests[r] != STATE_WATCHED) {
                set(OBJECT_NONE, *state, 0);
                assert_request(all_requests[r], STATE_ENQUEUE);
                assert_word(OBJECT_NONE, STATE_READY, all_requests[r]);
                assert_places(0);
            }
        }
    }
}

TEST(request_of_nothing_wakes_a_waiting_process)
{
    set(OBJECT_NONE, STATE_BLOCKED, STATE_WATCHED);
    assert_request(0, STATE_ENQUEUE);
    assert_word(OBJECT_NONE, STATE_READY, STATE_WATCHED);
    assert_places(0);
}

TEST(request_to_watch_wakes_nobody)
{
    FOR_ROWS (state, all_states) {
        if (is_live(*state)) {
            set(OBJECT_NONE, *state, 0);
            assert_request(STATE_WATCHED, STATE_DONE);
            assert_word(OBJECT_NONE, *state, STATE_WATCHED);
            assert_record_untouched(*state);
        }
    }
}

TEST(request_to_a_ready_process_is_noted_with_earlier_ones)
{
    FOR_ROWS (request, all_requests) {
        set(LIST, STATE_READY, 0);
        assert_request(*request, STATE_DONE);
        assert_word(LIST, STATE_READY, *request);
        assert_record_untouched(STATE_READY);
        for (size_t r = 0; r < REQUEST_COUNT; r++) {
            set(LIST, STATE_READY, all_requests[r]);
            assert_request(*request, STATE_DONE);
            assert_word(LIST, STATE_READY, all_requests[r] | *request);
        }
    }
    set(OBJECT_NONE, STATE_IDLE, STATE_WATCHED);
    assert_request(STATE_KILL, STATE_ENQUEUE);
    assert_word(OBJECT_NONE, STATE_READY, STATE_WATCHED | STATE_KILL);
}

/* ---- for the holder of the token ---- */

TEST(take_brings_list_and_requests_and_keeps_ready)
{
    FOR_ROWS (request, all_requests) {
        set(LIST, STATE_READY, *request);
        assert_int_equal(state_take_owner(&process), word_of(LIST, STATE_READY, *request));
        assert_word(OBJECT_NONE, STATE_READY, 0);
        assert_record_untouched(STATE_READY);
    }
    assert_int_equal(state_take_owner(&process), word_of(OBJECT_NONE, STATE_READY, 0));
    assert_word(OBJECT_NONE, STATE_READY, 0); /* without news nothing changes */
}

TEST(take_requests_leaves_the_list_and_cancel)
{
    FOR_ROWS (request, all_requests) {
        set(LIST, STATE_READY, *request);
        const uint64_t news = state_take_requests_owner(&process);
        assert_int_equal(event_list_first(news), OBJECT_NONE);
        assert_int_equal(event_list_tag(news) & STATE_REQUESTS, *request & ~STATE_CANCEL);
        assert_word(LIST, STATE_READY, *request & (STATE_CANCEL | STATE_URGENT));
    }
    set(LIST, STATE_READY, 0);
    assert_int_equal(state_take_requests_owner(&process), 0);
    assert_word(LIST, STATE_READY, 0);
}

TEST(take_list_leaves_the_requests_but_that_it_is_urgent)
{
    FOR_ROWS (request, all_requests) {
        set(LIST, STATE_READY, *request);
        assert_int_equal(state_take_list_owner(&process), LIST);
        assert_word(OBJECT_NONE, STATE_READY, *request & ~STATE_URGENT);
        assert_record_untouched(STATE_READY);
    }
}

TEST(put_back_fills_an_empty_list_only)
{
    set(OBJECT_NONE, STATE_READY, STATE_CANCEL);
    assert_int_equal(state_put_back_owner(&process, LIST), OBJECT_NONE);
    assert_word(LIST, STATE_READY, STATE_CANCEL);
    assert_int_equal(state_put_back_owner(&process, 7), LIST);
    assert_word(LIST, STATE_READY, STATE_CANCEL);
}

TEST(rest_without_news_waits)
{
    FOR_ROWS (target, waiting_states) {
        set(OBJECT_NONE, STATE_READY, 0);
        assert_false(state_has_news_owner(&process));
        assert_true(state_rest_owner(&process, *target));
        assert_word(OBJECT_NONE, *target, 0);
        assert_places(WAITING);
        assert_int_equal(process.backlog, BACKLOG);
    }
}

static void assert_no_rest(enum process_state target, uint32_t list, uint32_t requests)
{
    set(list, STATE_READY, requests);
    assert_true(state_has_news_owner(&process));
    assert_false(state_rest_owner(&process, target));
    assert_word(list, STATE_READY, requests);
    assert_record_untouched(STATE_READY);
}

/* INV-5 */
TEST(rest_with_an_event_or_a_request_is_refused)
{
    FOR_ROWS (target, waiting_states) {
        assert_no_rest(*target, LIST, 0);
        for (size_t r = 0; r < REQUEST_COUNT; r++) {
            assert_no_rest(*target, OBJECT_NONE, all_requests[r]);
        }
    }
}

/* ---- from Ready to Complete, Free, Init and Ready again ---- */

TEST(finish_takes_list_and_requests_and_closes)
{
    uint32_t next;
    set(LIST, STATE_READY, STATE_WATCHED);
    assert_int_equal(state_finish_owner(&process), word_of(LIST, STATE_READY, STATE_WATCHED));
    assert_word(OBJECT_NONE, STATE_COMPLETE, 0);
    assert_record_untouched(STATE_READY);
    assert_false(state_wake_any(&process, GENERATION, LIST, &next));
    assert_int_equal(state_push_any(&process, GENERATION, LIST, &next), STATE_CLOSED);
    assert_request(STATE_WATCHED, STATE_CLOSED);
}

TEST(prepare_returns_the_generation_and_admits_nothing_yet)
{
    uint32_t next;
    set(OBJECT_NONE, STATE_FREE, 0);
    assert_int_equal(state_prepare_owner(&process), GENERATION);
    assert_word(OBJECT_NONE, STATE_INIT, 0);
    assert_int_equal(state_push_any(&process, GENERATION, LIST, &next), STATE_CLOSED);
    state_publish_owner(&process, GENERATION);
    assert_word(OBJECT_NONE, STATE_READY, 0);
}

static const enum process_state ended_states[] = {STATE_COMPLETE, STATE_INIT};

TEST(free_begins_the_next_generation)
{
    static const uint32_t generations[] = {GENERATION, GENERATION_MAX - 1};
    FOR_ROWS (state, ended_states) {
        for (size_t g = 0; g < COUNT_OF(generations); g++) {
            const uint32_t next = generations[g] + 1;
            store_relaxed(&process.word,
                          event_list_word(OBJECT_NONE, state_tag(generations[g], *state)));
            assert_true(state_free_owner(&process));
            assert_int_equal(load_relaxed(&process.word),
                             event_list_word(OBJECT_NONE, state_tag(next, STATE_FREE)));
            assert_int_equal(state_prepare_owner(&process), next);
        }
    }
}

static void do_take(void *arg)
{
    (void)arg;
    (void)!state_take_owner(&process);
}

static void do_finish(void *arg)
{
    (void)arg;
    (void)!state_finish_owner(&process);
}

static void do_prepare(void *arg)
{
    (void)arg;
    (void)state_prepare_owner(&process);
}

static void do_free(void *arg)
{
    (void)arg;
    (void)!state_free_owner(&process);
}

TEST(free_of_the_last_generation_retires_the_slot)
{
    FOR_ROWS (state, ended_states) {
        uint32_t next;
        store_relaxed(&process.word,
                      event_list_word(OBJECT_NONE, state_tag(GENERATION_MAX, *state)));
        assert_false(state_free_owner(&process));
        /* Neither the last process nor a first one, again, can be reached. */
        assert_int_equal(state_push_any(&process, GENERATION_MAX, LIST, &next), STATE_CLOSED);
        assert_int_equal(state_push_any(&process, 0, LIST, &next), STATE_CLOSED);
        assert_int_equal(state_push_any(&process, 1, LIST, &next), STATE_CLOSED);
        assert_int_equal(state_request_any(&process, GENERATION_MAX, STATE_KILL), STATE_CLOSED);
        assert_true(aborts(do_prepare, NULL));
    }
}

TEST(transition_from_a_wrong_state_aborts)
{
    static const struct {
        void (*transition)(void *arg);
        enum process_state allowed;
        enum process_state also_allowed;
    } rows[] = {
        {do_take, STATE_READY, STATE_READY},
        {do_finish, STATE_READY, STATE_READY},
        {do_prepare, STATE_FREE, STATE_FREE},
        {do_free, STATE_COMPLETE, STATE_INIT},
    };
    FOR_ROWS (row, rows) {
        for (size_t i = 0; i < STATE_COUNT; i++) {
            if (all_states[i] != row->allowed && all_states[i] != row->also_allowed) {
                set(OBJECT_NONE, all_states[i], 0);
                assert_true(aborts(row->transition, NULL));
            }
        }
    }
}

/* ---- all together ---- */

TEST(life_from_free_to_free_passes_every_state)
{
    uint32_t next;
    set(OBJECT_NONE, STATE_FREE, 0);
    store_relaxed(&process.consumed, RESERVED);
    process.backlog = OBJECT_NONE;
    const uint32_t generation = state_prepare_owner(&process);
    state_publish_owner(&process, generation);
    assert_false(state_has_news_owner(&process));
    assert_true(state_rest_owner(&process, STATE_IDLE));
    assert_places(0);
    assert_true(state_wake_any(&process, generation, 1, &next));
    assert_places(1);
    assert_int_equal(process.backlog, 1);
    process.backlog = OBJECT_NONE;
    mailbox_consume_owner(&process, 1);
    assert_int_equal(state_push_any(&process, generation, 2, &next), STATE_DONE);
    assert_false(state_rest_owner(&process, STATE_BLOCKED));
    assert_int_equal(event_list_first(state_take_owner(&process)), 2);
    assert_true(state_rest_owner(&process, STATE_BLOCKED));
    assert_int_equal(state_push_any(&process, generation, 3, &next), STATE_ENQUEUE);
    assert_int_equal(process.backlog, 3);
    process.backlog = OBJECT_NONE;
    assert_true(state_rest_owner(&process, STATE_BLOCKED));
    assert_int_equal(state_request_any(&process, generation, STATE_KILL), STATE_ENQUEUE);
    assert_int_equal(event_list_tag(state_take_owner(&process)) & STATE_REQUESTS, STATE_KILL);
    assert_places(0);
    assert_int_equal(event_list_first(state_finish_owner(&process)), OBJECT_NONE);
    assert_true(state_free_owner(&process));
    assert_int_equal(state_request_any(&process, generation, STATE_KILL), STATE_CLOSED);
    assert_int_equal(state_prepare_owner(&process), generation + 1);
    state_publish_owner(&process, generation + 1);
    assert_int_equal(state_push_any(&process, generation, 4, &next), STATE_CLOSED);
    assert_int_equal(state_push_any(&process, generation + 1, 4, &next), STATE_DONE);
}
