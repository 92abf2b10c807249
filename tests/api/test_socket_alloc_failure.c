/* SPDX-License-Identifier: MIT */
/* Sockets without memory: each verb is tried again and again, with the n-th allocation failing,
 * until it needs fewer. It works or says SKUA_E_NO_MEMORY; then it works at the second try, nothing
 * is lost, and nothing leaks. */
#include <stdio.h>

#include "scratch.h"
#include "wire.h"

#define BYTES 100000

/* One attempt without memory. */
struct attempt {
    struct act act;
    bool completes; /* otherwise it is over when its call returns */
    uint64_t n;     /* the allocation that fails */
    int error;
};

struct scene {
    struct wire wire; /* if the verb needs one */
    struct actor *actor;
    struct actor *other;
    skua_socket *made;
    int fd; /* a descriptor of the test's */
    char address[SCRATCH_PATH_SIZE + 8];
};

/* ---- the verbs ---- */

static struct act listen_somewhere(struct scene *scene)
{
    return listens(scene->made, "127.0.0.1:0");
}

static struct act listen_on_a_path(struct scene *scene)
{
    return listens(scene->made, scene->address);
}

static struct act adopt_one(struct scene *scene)
{
    return adopts(scene->made, scene->fd);
}

static struct act connect_once(struct scene *scene)
{
    return connects(1, scene->address);
}

static struct act accept_once(struct scene *scene)
{
    return accepts(1, scene->made);
}

static struct act read_some(struct scene *scene)
{
    return reads_some(1, scene->wire.socket, BYTES);
}

static struct act read_exactly(struct scene *scene)
{
    return reads_exactly(1, scene->wire.socket, BYTES);
}

static struct act read_a_line(struct scene *scene)
{
    return reads_line(1, scene->wire.socket, "\n", BYTES);
}

static struct act wait_for_hangup(struct scene *scene)
{
    return within(SKUA_MILLISECOND, awaits_hangup(1, scene->wire.socket));
}

static struct act write_once(struct scene *scene)
{
    return writes_pattern(1, scene->wire.socket, 0, BYTES);
}

static struct act give_away(struct scene *scene)
{
    return gives(scene->wire.socket, scene->other);
}

static struct act spawn_owner(struct scene *scene)
{
    return spawns_owner(scene->wire.socket, scene->other);
}

static struct act set_idle(struct scene *scene)
{
    return sets(scene->wire.socket, SKUA_SOCKET_IDLE, SKUA_DURATION_MAX);
}

/* ---- what they need ---- */

static void need_peer_that_listens(struct scene *scene)
{
    scene->fd = listener_open();
    (void)snprintf(scene->address, sizeof scene->address, "127.0.0.1:%u", port_of(scene->fd));
}

/* Where nothing is yet: a listen that has failed leaves no file behind, which would refuse the
 * second one. */
static void need_path(struct scene *scene)
{
    char path[SCRATCH_PATH_SIZE];
    scratch_path(path, "listener");
    (void)snprintf(scene->address, sizeof scene->address, "unix:%s", path);
}

static void need_descriptor(struct scene *scene)
{
    scene->fd = pair_open().near;
}

static void need_connection_that_waits(struct scene *scene)
{
    /* What the listener says of idle connections takes memory of each. The first may be lost. */
    actor_perform(scene->actor, ACTS(listens(scene->made, "127.0.0.1:0"),
                                     sets(scene->made, SKUA_SOCKET_IDLE, SKUA_DURATION_MAX)));
    (void)peer_connect(snapshot_of(scene->actor, scene->made).local);
    (void)peer_connect(snapshot_of(scene->actor, scene->made).local);
}

static void need_wire(struct scene *scene)
{
    scene->wire = wire_open(WIRE_TCP);
    scene->actor = scene->wire.actor;
}

static void need_data(struct scene *scene)
{
    need_wire(scene);
    peer_sends_pattern(scene->wire.peer, 0, BYTES);
}

/* Two lines, the second one of which is only half there: it has to be kept. */
static void need_lines(struct scene *scene)
{
    need_wire(scene);
    peer_sends(scene->wire.peer, "a line\n");
    peer_sends_pattern(scene->wire.peer, 0, 20); /* no line feed among them */
}

/* One whose place is far away in the tables. */
static void need_far_receiver(struct scene *scene)
{
    need_wire(scene);
    for (int i = 0; i < 1100; i++) {
        scene->other = actor_start(NO_ACTS);
    }
    actor_await_state(scene->other, SKUA_PROCESS_IDLE);
}

static void need_child(struct scene *scene)
{
    need_wire(scene);
    scene->other = actor_new(NO_ACTS);
}

/* ---- afterwards ---- */

static void assert_adopted(struct scene *scene)
{
    fd_disown(scene->fd);
    actor_perform(scene->actor, ACTS(closes(scene->made)));
}

static void assert_all_is_read(struct scene *scene)
{
    struct actor *actor = scene->actor;
    size_t got = actor->seen[actor->seen_count - 1].size;
    while (got < BYTES) {
        actor_perform(actor, ACTS(reads_some(2, scene->wire.socket, BYTES), awaits(1)));
        const struct seen *seen = &actor->seen[actor->seen_count - 1];
        const struct seen expected = received_pattern(2, got, seen->size);
        assert_true(seen_matches(seen, &expected));
        got += seen->size;
    }
}

static void assert_line_and_rest(struct scene *scene)
{
    const struct seen line = received(1, "a line\n");
    assert_true(seen_matches(&scene->actor->seen[scene->actor->seen_count - 1], &line));
    actor_perform(scene->actor, ACTS(reads_exactly(3, scene->wire.socket, 20),
                                     expects(received_pattern(3, 0, 20))));
}

static void assert_written(struct scene *scene)
{
    assert_peer_gets_pattern(scene->wire.peer, 0, BYTES);
}

static void assert_given(struct scene *scene)
{
    actor_perform(scene->other,
                  ACTS(writes_text(1, scene->wire.socket, "x"), expects(failure(1, 0))));
    assert_peer_gets(scene->wire.peer, "x");
}

static const struct verb {
    const char *name;
    struct act (*make)(struct scene *scene);
    bool completes;
    void (*prepare)(struct scene *scene);
    void (*check)(struct scene *scene);
    int error; /* what it says if there is memory */
} verbs[] = {
    {"listen", listen_somewhere, false, NULL, NULL, 0},
    {"listen on a path", listen_on_a_path, false, need_path, NULL, 0},
    {"adopt", adopt_one, false, need_descriptor, assert_adopted, 0},
    {"connect", connect_once, true, need_peer_that_listens, NULL, 0},
    {"accept", accept_once, true, need_connection_that_waits, NULL, 0},
    {"read", read_some, true, need_data, assert_all_is_read, 0},
    {"read_exactly", read_exactly, true, need_data, assert_all_is_read, 0},
    {"read_until", read_a_line, true, need_lines, assert_line_and_rest, 0},
    {"hangup", wait_for_hangup, true, need_wire, NULL, SKUA_E_TIMEOUT},
    {"write", write_once, true, need_wire, assert_written, 0},
    {"give", give_away, false, need_far_receiver, assert_given, 0},
    {"spawn", spawn_owner, false, need_child, assert_given, 0},
    {"set", set_idle, false, need_wire, NULL, 0},
};

/* ---- the attempt ---- */

static int attempt_it(struct turn *turn, const struct act *act)
{
    struct attempt *attempt = act->arg;
    counting_allocator_fail_once(&world->api->memory, attempt->n);
    attempt->error = attempt->act.perform(turn, &attempt->act);
    if (attempt->error != 0 || !attempt->completes) {
        counting_allocator_fail_never(&world->api->memory);
    }
    return 0;
}

static int await_it(struct turn *turn, const struct act *act)
{
    struct attempt *attempt = act->arg;
    struct actor *actor = turn->actor;
    if (attempt->error != 0 || !attempt->completes) {
        return 0;
    }
    if (actor->read == actor->seen_count) {
        return ACT_WAITS;
    }
    counting_allocator_fail_never(&world->api->memory);
    attempt->error = actor->seen[actor->read++].error;
    return 0;
}

/* Tries the verb once with the n-th allocation failing. Returns whether it needed so many. */
static bool try_without_memory(const struct verb *verb, uint64_t n)
{
    wires_begin_with((skua_runtime_config){.worker_count = 1});
    struct scene scene = {.actor = actor_start(NO_ACTS), .other = NULL, .made = socket_new()};
    scene.other = actor_start(NO_ACTS);
    if (verb->prepare != NULL) {
        verb->prepare(&scene);
    }
    actor_await_state(scene.actor, SKUA_PROCESS_IDLE);
    struct attempt *attempt = test_alloc(sizeof *attempt);
    *attempt = (struct attempt){.act = verb->make(&scene), .completes = verb->completes, .n = n};
    const uint64_t before = counting_allocator_attempts(&world->api->memory);
    actor_perform(scene.actor, ACTS(does(attempt_it, attempt), does(await_it, attempt)));
    const bool needed = counting_allocator_attempts(&world->api->memory) - before >= n;
    if (attempt->error == SKUA_E_NO_MEMORY) {
        attempt->n = UINT32_MAX;
        actor_perform(scene.actor, ACTS(does(attempt_it, attempt), does(await_it, attempt)));
    }
    if (attempt->error != verb->error) {
        fail_msg("%s, allocation %u: %s", verb->name, (unsigned)n, skua_error_name(attempt->error));
    }
    if (verb->check != NULL) {
        verb->check(&scene);
    }
    return needed;
}

TEST(verb_without_memory_says_so_and_loses_nothing)
{
    scratch_open();
    FOR_ROWS (verb, verbs) {
        uint64_t n = 1;
        while (try_without_memory(verb, n)) {
            world_close();
            n++;
            assert_in_range(n, 1, 100);
        }
    }
}
