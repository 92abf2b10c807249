/* SPDX-License-Identifier: MIT */
/* relations/watchers.h and link.h, sched/monitors.c, links.c and farewell.c: processes that watch
 * each other or are linked, against their ends, cancels, timeouts and unlinks, in all orders in
 * which these cross.
 *
 * INV-14: a monitor has one completion: how its process ended, or why it does not say.
 * INV-20: each node is given back exactly once, and then nobody who knew it touches it.
 * INV-28: a process whose end others watch tells each of them once, and nobody who has taken that
 *         back.
 * INV-29: a link joins two ends until one of its parties unlinks; after that no signal of it is
 *         heard, and one link is never mistaken for another. */
#include <skua/watch.h>

#include "cast.h"
#include "process/annex.h"
#include "sched/monitors.h"

#define TIMEOUT    (RIG_BEGINNING / 2)
#define MADE_MAX   2 /* links of one part */
#define YIELDS_MAX 3 /* monitors of one part */

enum { ANN, BOB, CID };

/* Ann and Cid deal with Bob, and Bob with Ann. LINK tells the maker of the other's end; with
 * LINK_BOTH the parties end together. The others act on what was made first. */
enum { MONITOR = ACTS, MONITOR_TIMED, JOIN, UNMONITOR, LINK, LINK_BOTH, UNLINK };

struct made_link {
    skua_link_id id;
    bool tells;
    bool is_unlinked;
    uint32_t exits; /* that its maker got */
};

/* What a part has to remember; only its own thread touches it. */
struct memory {
    struct made_link links[MADE_MAX];
    uint32_t link_count;
    uint32_t unlinked;
    uint32_t monitors;
    bool is_taken_back; /* the first of them */
    bool is_timed;
    uint32_t ends[YIELDS_MAX];
    int errors[YIELDS_MAX];
};

static struct memory memories[PARTS_MAX];

static uint32_t peer_of(uint32_t who)
{
    return who == BOB ? ANN : BOB;
}

/* ---- what the parts do ---- */

static int watch(skua_context *ctx, uint32_t who, uint32_t act)
{
    const skua_pid pid = parts[peer_of(who)].pid;
    const uint64_t tag = memories[who].monitors++;
    memories[who].is_timed = memories[who].is_timed || act == MONITOR_TIMED;
    if (act == JOIN) {
        return skua_yield_join(ctx, tag, pid, SKUA_FOREVER);
    }
    return skua_yield_monitor(ctx, tag, pid, act == MONITOR_TIMED ? TIMEOUT : SKUA_FOREVER);
}

static void link_peer(skua_context *ctx, uint32_t who, bool tells)
{
    struct memory *memory = &memories[who];
    struct made_link *link = &memory->links[memory->link_count];
    const uint32_t flags = tells ? SKUA_LINK_ONLY_ME | SKUA_LINK_TELL : SKUA_LINK_BOTH;
    const int error = skua_link(ctx, parts[peer_of(who)].pid, flags, memory->link_count, &link->id);
    explore_note("links: %s", skua_error_name(error));
    EXPLORE_CHECK(error == 0 || error == SKUA_E_NO_PROCESS, "the rig has memory");
    if (error == 0) {
        link->tells = tells;
        memory->link_count++;
    } else {
        *link = (struct made_link){0};
    }
}

static void unlink_first(skua_context *ctx, uint32_t who)
{
    struct memory *memory = &memories[who];
    if (memory->unlinked == memory->link_count) {
        return; /* there was nobody to link to */
    }
    struct made_link *link = &memory->links[memory->unlinked++];
    const int error = skua_unlink(ctx, link->id);
    explore_note("unlinks: %s", skua_error_name(error));
    EXPLORE_CHECK(error == 0 || (error == SKUA_E_LATE && link->exits != 0),
                  "INV-29: a link can be taken back until its end is heard of");
    link->is_unlinked = true;
}

static int perform(skua_context *ctx, uint32_t who, uint32_t act)
{
    switch (act) {
    case MONITOR:
    case MONITOR_TIMED:
    case JOIN:
        return watch(ctx, who, act);
    case UNMONITOR:
        memories[who].is_taken_back = true;
        return skua_yield_cancel(ctx, 0);
    case LINK:
    case LINK_BOTH:
        link_peer(ctx, who, act == LINK);
        return 0;
    default:
        EXPLORE_CHECK(act == UNLINK, "it is an act");
        unlink_first(ctx, who);
        return 0;
    }
}

/* ---- what the parts get ---- */

static void get_exit(uint32_t who, const skua_event *event)
{
    struct memory *memory = &memories[who];
    explore_note("hears of an exit: %s", skua_error_name(event->error));
    EXPLORE_CHECK(event->tag < memory->link_count, "INV-29: of a link that it made");
    struct made_link *link = &memory->links[event->tag];
    EXPLORE_CHECK(link->tells, "INV-29: of a link that tells");
    EXPLORE_CHECK(!link->is_unlinked, "INV-29: not of one that it has taken back");
    EXPLORE_CHECK(++link->exits == 1, "INV-29: once");
    EXPLORE_CHECK(skua_pid_equal(event->from, parts[peer_of(who)].pid), "INV-29: of its peer");
}

static void get_down(uint32_t who, const skua_event *event)
{
    struct memory *memory = &memories[who];
    explore_note("monitor %u ends: %s", (unsigned)event->tag, skua_error_name(event->error));
    EXPLORE_CHECK(event->tag < memory->monitors, "INV-14: of a monitor that it has");
    EXPLORE_CHECK(++memory->ends[event->tag] == 1, "INV-14: one completion to a monitor");
    memory->errors[event->tag] = event->error;
}

static bool get_event(skua_context *ctx, uint32_t who, skua_event *event)
{
    (void)ctx;
    if (event->type == SKUA_EVENT_EXIT) {
        get_exit(who, event);
    } else if (event->type == SKUA_EVENT_COMPLETION) {
        get_down(who, event);
    } else {
        EXPLORE_CHECK(event->type == SKUA_EVENT_START, "nothing else comes");
        return true;
    }
    return false;
}

static void take_leave(skua_context *ctx, uint32_t who)
{
    (void)ctx;
    (void)who;
}

/* ---- the beginning ---- */

static const skua_process_type plain = {PART_TYPE("plain")};

static void prepare(void)
{
    monitors_attach(&rig);
    memset(memories, 0, sizeof memories);
}

/* Bob has begun and is about to fail; Ann comes now. */
#define NOW "1"
SCENE(monitor_now, NOW, {&plain, {MONITOR}}, {&plain, {PAUSE, FAIL}})
SCENE(join_now, NOW, {&plain, {JOIN}}, {&plain, {PAUSE, END}})
SCENE(link_now, NOW, {&plain, {LINK}}, {&plain, {PAUSE, FAIL}})
SCENE(link_thrice_now, NOW, {&plain, {LINK, UNLINK, LINK}}, {&plain, {PAUSE, FAIL}})

/* What Ann has sent is on its way. */
#define SENT "10"
SCENE(sent_cancelled, SENT, {&plain, {MONITOR, PAUSE, UNMONITOR}}, {&plain, {PAUSE, FAIL}})
SCENE(sent_timed, SENT, {&plain, {MONITOR_TIMED}}, {&plain, {PAUSE, FAIL}})
SCENE(sent_ending, SENT, {&plain, {MONITOR, PAUSE, END}}, {&plain, {PAUSE, FAIL}})
SCENE(link_sent_ending, SENT, {&plain, {LINK_BOTH, PAUSE, FAIL}}, {&plain, {PAUSE, FAIL}})
SCENE(link_sent_unlinked, SENT, {&plain, {LINK, PAUSE, UNLINK}}, {&plain, {PAUSE, FAIL}})

/* It has arrived. */
#define FILED "101"
SCENE(filed_cancelled, FILED, {&plain, {MONITOR, PAUSE, UNMONITOR}}, {&plain, {PAUSE, PAUSE, FAIL}})
SCENE(filed_ending, FILED, {&plain, {MONITOR, PAUSE, END}}, {&plain, {PAUSE, PAUSE, FAIL}})
SCENE(filed_timed, FILED, {&plain, {MONITOR_TIMED}}, {&plain, {PAUSE, PAUSE, FAIL}})
SCENE(link_filed_ending, FILED, {&plain, {LINK_BOTH, PAUSE, FAIL}}, {&plain, {PAUSE, PAUSE, FAIL}})
SCENE(link_filed_unlinked, FILED, {&plain, {LINK, PAUSE, UNLINK}}, {&plain, {PAUSE, PAUSE, FAIL}})
SCENE(link_filed_again, FILED, {&plain, {LINK, PAUSE, UNLINK, LINK}},
      {&plain, {PAUSE, PAUSE, FAIL}})
SCENE(link_filed_survived, FILED, {&plain, {LINK_BOTH, PAUSE, UNLINK, FAIL}},
      {&plain, {PAUSE, PAUSE}})
SCENE(link_filed_orderly, FILED, {&plain, {LINK_BOTH, PAUSE, FAIL}}, {&plain, {PAUSE, PAUSE, END}})

/* Each has linked the other. */
SCENE(two_links_unlinked, "0101", {&plain, {PAUSE, LINK, PAUSE, UNLINK}},
      {&plain, {PAUSE, LINK, PAUSE, UNLINK}})
SCENE(two_links_ending, "0101", {&plain, {PAUSE, LINK, PAUSE, UNLINK}},
      {&plain, {PAUSE, LINK, PAUSE, FAIL}})

/* More signals than are taken in one turn (SIGNALS_MAX), and more notices than are given at once
 * (NOTICES_MANY). */
SCENE(sent_three, SENT, {&plain, {MONITOR, MONITOR, LINK, PAUSE, UNMONITOR, UNLINK}},
      {&plain, {PAUSE}})

/* With a third. */
SCENE(two_watchers, "1021", {&plain, {MONITOR, PAUSE, UNMONITOR, MONITOR}},
      {&plain, {PAUSE, PAUSE, FAIL}}, {&plain, {MONITOR, PAUSE, END}})
SCENE(watchers_stay, SENT, {&plain, {MONITOR}}, {&plain, {PAUSE, PAUSE, FAIL}}, {&plain, {MONITOR}})
SCENE(told_in_slices, "10211", {&plain, {MONITOR, LINK, PAUSE, UNMONITOR, UNLINK}},
      {&plain, {PAUSE, PAUSE, PAUSE, FAIL}}, {&plain, {MONITOR}})
SCENE(chain, "1021", {&plain, {LINK_BOTH, PAUSE, FAIL}}, {&plain, {STOP}},
      {&plain, {LINK_BOTH, PAUSE, UNLINK}})
SCENE(all_of_it, "", {&plain, {MONITOR, LINK, PAUSE, UNLINK, UNMONITOR, PAUSE, LINK}},
      {&plain, {LINK, PAUSE, PAUSE, UNLINK, PAUSE, FAIL}},
      {&plain, {LINK_BOTH, MONITOR_TIMED, PAUSE, UNLINK, PAUSE, JOIN}})

/* ---- the end ---- */

static void check_monitors(uint32_t who)
{
    const struct memory *memory = &memories[who];
    const struct part *peer = &parts[peer_of(who)];
    for (uint32_t i = 0; i < memory->monitors; i++) {
        const bool is_taken_back = i == 0 && memory->is_taken_back;
        if (memory->ends[i] == 0) {
            EXPLORE_CHECK(peer->ended == 0 && !is_taken_back, "INV-28: who watches is told");
            continue;
        }
        switch (memory->errors[i]) {
        case SKUA_E_CANCELLED:
            EXPLORE_CHECK(is_taken_back, "INV-14: only what was taken back says so");
            break;
        case SKUA_E_TIMEOUT:
            EXPLORE_CHECK(memory->is_timed, "INV-14: only what has a timeout times out");
            break;
        case SKUA_E_NO_PROCESS:
            EXPLORE_CHECK(peer->ended != 0, "INV-28: only who has ended is not there");
            break;
        default:
            EXPLORE_CHECK(peer->ended != 0 && memory->errors[i] == peer->error,
                          "INV-28: how it ended is told");
        }
    }
}

static bool is_linked(uint32_t who)
{
    for (uint32_t i = 0; i < memories[who].link_count; i++) {
        const struct made_link *link = &memories[who].links[i];
        if (!link->tells && !link->is_unlinked) {
            return true;
        }
    }
    return false;
}

static void check_links(uint32_t who)
{
    const struct part *peer = &parts[peer_of(who)];
    for (uint32_t i = 0; i < memories[who].link_count && is_live(who); i++) {
        const struct made_link *link = &memories[who].links[i];
        EXPLORE_CHECK(!link->tells || link->is_unlinked || link->exits == peer->ended,
                      "INV-29: who is linked hears of the end");
    }
    if (is_linked(who)) {
        EXPLORE_CHECK(is_live(who) || parts[who].error == 0 || peer->ended != 0,
                      "INV-29: who is linked ends, too");
        EXPLORE_CHECK(is_live(peer_of(who)) || peer->error == 0 || !is_live(who),
                      "INV-29: who is linked ends, too");
    }
}

/* Both parties of a link that lasts have a half of it, and nobody has one of another. */
static void check_halves(uint32_t who)
{
    const struct annex *annex = annex_of(&rig.events, parts[who].process);
    uint32_t half = annex != NULL ? annex->links : OBJECT_NONE;
    uint32_t count = 0;
    uint32_t expected = 0;
    for (; half != OBJECT_NONE; half = event_at(&rig.events, half)->as.half.next) {
        count++;
    }
    for (uint32_t i = 0; i < part_count; i++) {
        const bool is_party = (i == who || peer_of(i) == who) && is_live(i) && is_live(peer_of(i));
        for (uint32_t k = 0; is_party && k < memories[i].link_count; k++) {
            expected += !memories[i].links[k].is_unlinked;
        }
    }
    EXPLORE_CHECK(count == expected, "INV-29: who has unlinked, or whose peer has, has no half");
}

/* Nobody ends because of one that it is not linked to. */
static void check_cause(uint32_t who)
{
    const skua_pid cause = parts[who].cause;
    const bool is_own =
        is_live(who) || parts[who].error == 0 || skua_pid_equal(cause, parts[who].pid);
    EXPLORE_CHECK(is_own || is_linked(who) || is_linked(peer_of(who)) || is_linked(CID),
                  "INV-29: who has unlinked does not end with the other");
}

static void check(void)
{
    for (uint32_t i = 0; i < part_count; i++) {
        if (is_live(i)) {
            check_monitors(i);
            check_halves(i);
        }
        check_links(i);
        check_cause(i);
    }
    cast_end();
}

/* The monitor was pushed while Bob lived. */
static void check_sent(void)
{
    check();
    EXPLORE_CHECK(memories[ANN].errors[0] != SKUA_E_NO_PROCESS, "INV-28: its true end is told");
}

static void check_survived(void)
{
    EXPLORE_CHECK(is_live(BOB), "INV-29: who is not linked any more lives on");
    check();
}

#define ANN_RUNS PART("ann", ANN)
#define BOB_RUNS PART("bob", BOB)
#define CID_RUNS PART("cid", CID)

static const struct explore_model models[] = {
    WEAK("monitor_vs_exit", monitor_now, check, ANN_RUNS, BOB_RUNS),
    WEAK("join_vs_exit", join_now, check, ANN_RUNS, BOB_RUNS),
    WEAK("monitor_vs_kill", monitor_now, check, ANN_RUNS, BOB_RUNS, KILLS(BOB)),
    WEAK("monitor_cancel_vs_down", sent_cancelled, check_sent, ANN_RUNS, BOB_RUNS),
    WEAK("filed_cancel_vs_down", filed_cancelled, check_sent, ANN_RUNS, BOB_RUNS),
    WEAK("timeout_vs_down", sent_timed, check_sent, ANN_RUNS, BOB_RUNS, FIRES),
    WEAK("filed_timeout_vs_down", filed_timed, check_sent, ANN_RUNS, BOB_RUNS, FIRES),
    WEAK("watcher_exit_vs_target_exit", sent_ending, check, ANN_RUNS, BOB_RUNS),
    WEAK("filed_watcher_exit_vs_target_exit", filed_ending, check, ANN_RUNS, BOB_RUNS),
    WEAK("two_watchers", two_watchers, check, ANN_RUNS, BOB_RUNS, CID_RUNS),
    WEAK("watchers_stay", watchers_stay, check, ANN_RUNS, BOB_RUNS, CID_RUNS),
    WEAK("told_in_slices", told_in_slices, check_sent, ANN_RUNS, BOB_RUNS, CID_RUNS),
    BOUNDED("sent_three_killed", 3, sent_three, check_sent, ANN_RUNS, BOB_RUNS, KILLS(BOB)),
    WEAK("three_signals", sent_three, check, ANN_RUNS, BOB_RUNS),
    WEAK("link_vs_exit", link_now, check, ANN_RUNS, BOB_RUNS),
    WEAK("link_both_exit", link_filed_ending, check, ANN_RUNS, BOB_RUNS),
    WEAK("link_sent_both_exit", link_sent_ending, check, ANN_RUNS, BOB_RUNS),
    WEAK("link_orderly_exit", link_filed_orderly, check, ANN_RUNS, BOB_RUNS),
    WEAK("unlink_vs_exit", link_filed_unlinked, check, ANN_RUNS, BOB_RUNS),
    WEAK("unlink_sent_vs_exit", link_sent_unlinked, check, ANN_RUNS, BOB_RUNS),
    WEAK("unlink_survives", link_filed_survived, check_survived, ANN_RUNS, BOB_RUNS),
    WEAK("two_links_unlinked", two_links_unlinked, check, ANN_RUNS, BOB_RUNS),
    WEAK("two_links_vs_exit", two_links_ending, check, ANN_RUNS, BOB_RUNS),
    WEAK("link_unlink_link", link_filed_again, check, ANN_RUNS, BOB_RUNS),
    WEAK("link_unlink_link_at_once", link_thrice_now, check, ANN_RUNS, BOB_RUNS),
    WEAK("chain", chain, check, ANN_RUNS, BOB_RUNS, CID_RUNS),
    RANDOM("many", all_of_it, check, ANN_RUNS, BOB_RUNS, CID_RUNS, FIRES),
    RANDOM("many_kills", all_of_it, check, ANN_RUNS, BOB_RUNS, CID_RUNS, FIRES, KILLS(BOB)),
};

EXPLORE_MAIN(models)
