/* SPDX-License-Identifier: MIT */
#include "exits.h"

struct exits *exits_new(void)
{
    struct exits *exits = test_alloc(sizeof *exits);
    tally_init(&exits->noted);
    return exits;
}

void exits_note(void *arg, skua_exit *exit)
{
    struct exits *exits = arg;
    const struct actor *actor = actor_of_type(exit->type);
    const unsigned index = atomic_fetch_add(&exits->count, 1);
    if (index < EXITS_MAX) {
        exits->list[index].exit = *exit;
        exits->list[index].closes = actor != NULL ? actor->closes : 0;
    }
    (void)atomic_fetch_add(&exits->failures, exit->error != 0);
    if (exits->take_results) {
        (void)skua_payload_take(&exit->result); /* it is in the list now */
    }
    tally_add(&exits->noted, 1);
}

void exits_await(struct exits *exits, uint64_t count)
{
    tally_wait(&exits->noted, count);
}

void assert_exited(struct exits *exits, const struct actor *actor, int error)
{
    unsigned found = 0;
    assert_in_range(exits->count, 1, EXITS_MAX);
    for (unsigned i = 0; i < exits->count; i++) {
        const skua_exit *exit = &exits->list[i].exit;
        if (exit->type == &actor->type) {
            found++;
            assert_true(skua_pid_equal(exit->pid, actor->pid));
            assert_int_equal(exit->error, error);
            assert_int_equal(exits->list[i].closes, 1);
            assert_true(error == 0 || exit->result.storage == SKUA_PAYLOAD_EMPTY);
        }
    }
    assert_int_equal(found, 1);
}
