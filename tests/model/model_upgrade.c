/* SPDX-License-Identifier: MIT */
/* sched/upgrade.c and retype.c: a process changes its type while others look at it; and a type is
 * replaced while a process of it is started, while one changes to it, while another replaces one,
 * or while somebody looks at what was replaced.
 *
 * INV-40: whoever reads the type of a process finds one that is valid, and that it can see, also if
 *         it was loaded a moment ago.
 * INV-41: a process that is started, or changes, while its type is replaced changes to the newest,
 *         or is asked to; what was replaced is found, by both who replace at the same time and by
 *         all others. */
#include <string.h>

#include "explore.h"
#include "rig.h"
#include "sched/context.h"
#include "sched/retype.h"
#include "sched/spawn.h"
#include "sched/upgrade.h"
#include "sched/worker.h"

static struct process *process;
static skua_pid pid;
static skua_process_type loaded; /* written by the thread that loads it, like a module */
static uint32_t generation;

/* Nobody runs it. */
static int step(void *self, skua_context *ctx, skua_event *events, size_t count)
{
    (void)self, (void)ctx, (void)events, (void)count;
    EXPLORE_CHECK(false, "no step is run");
    return 0;
}

static int migrate(uint32_t old_version, const void *old_state, void *new_state, skua_context *ctx)
{
    (void)old_state;
    (void)new_state;
    (void)ctx;
    return old_version < 3 ? 0 : SKUA_E_VERSION;
}

static const skua_process_type old_type = {.name = "old", .step = step, .version = 1};

static const skua_process_type new_type = {
    .name = "new", .step = step, .migrate = migrate, .version = 2};

static const skua_process_type newer_type = {
    .name = "newer", .step = step, .migrate = migrate, .version = 3};

static const skua_process_type newest_type = {
    .name = "newest", .step = step, .migrate = migrate, .version = 4};

/* ---- who looks ---- */

/* The worker of the process has loaded a type, and changes to it. */
static void run_owner(const void *arg)
{
    struct worker *worker = &rig.workers[0];
    (void)arg;
    loaded = new_type;
    explore_note("has loaded the type");
    EXPLORE_CHECK(retype_process(worker, process, &loaded) == 0, "it can change");
}

static void run_reader(const void *arg)
{
    (void)arg;
    const skua_process_type *type = process_type_any(process);
    explore_note("reads the type");
    EXPLORE_CHECK(type == &old_type || type == &loaded, "INV-40: it is one of the two");
    EXPLORE_CHECK(type->version == (type == &old_type ? 1u : 2u) && type->name != NULL,
                  "INV-40: and can be seen");
}

static void setup_changing(void)
{
    rig_reset(1);
    struct worker *worker = &rig.workers[0];
    memset(&loaded, 0, sizeof loaded);
    process = rig_spawn(&worker->caches.processes, &old_type, &pid);
    context_set_process(worker, process, pid);
}

static void finish_changing(void)
{
    EXPLORE_CHECK(process_type(process) == &loaded, "it has changed");
}

/* ---- who starts ---- */

/* As step_run does before the first step. */
static void begin(struct worker *worker, struct process *found)
{
    if (found != NULL) {
        EXPLORE_CHECK(found == process, "there is no other");
        explore_note("begins it");
        (void)!spawn_before_step(worker, process, pid);
    }
}

/* The end of a spawn, whose beginning knew of no upgrade. The process waits in the next slot, or,
 * as that is taken, in the deque. */
static void run_spawner(const void *is_taken)
{
    struct worker *worker = &rig.workers[0];
    worker->blocks = is_taken != NULL; /* that has the same effect */
    state_publish_owner(process, generation);
    submit_spawned(&rig, worker, process);
    explore_note("has published it");
    begin(worker, find_work(worker));
}

/* The same from outside; a worker finds it. */
static void run_submitter(const void *arg)
{
    (void)arg;
    state_publish_owner(process, generation);
    submit_outside(&rig, process);
}

static void run_finder_of_work(const void *arg)
{
    (void)arg;
    begin(&rig.workers[0], find_work(&rig.workers[0]));
}

/* Who may be faster, at the end of a search. */
static void run_thief(const void *arg)
{
    struct worker *worker = &rig.workers[1];
    (void)arg;
    steal_begin(worker);
    begin(worker, steal(worker, true));
}

/* What is replaced by what, and on which worker. */
struct replacement {
    uint32_t worker;
    const skua_process_type *from;
    const skua_process_type *to;
};

static const struct replacement old_by_new = {2, &old_type, &new_type};
static const struct replacement old_by_newer = {0, &old_type, &newer_type};
static const struct replacement new_by_newer = {0, &new_type, &newer_type};
static const struct replacement new_by_newer_elsewhere = {1, &new_type, &newer_type};

static const struct replacement new_by_newest = {0, &new_type, &newest_type};

static void run_upgrader(const void *arg)
{
    const struct replacement *replacement = arg;
    EXPLORE_CHECK(upgrade_start(&rig, &rig.workers[replacement->worker], replacement->from,
                                replacement->to) >= 0,
                  "it can be replaced");
}

static void run_inspector(const void *arg)
{
    (void)arg;
    const struct upgrade *last = upgrade_last(&rig);
    explore_note("looks at the last upgrade");
    EXPLORE_CHECK(last == NULL || (last->from == &old_type && last->to == &new_type &&
                                   last->number == 1 && last->earlier == NULL),
                  "INV-41: it can be seen whole");
}

static void setup_starting(void)
{
    rig_reset(3);
    explore_heed(&rig.behind);
    struct worker *worker = &rig.workers[0];
    process = rig_spawn(&worker->caches.processes, &old_type, &pid);
    generation = pid_generation(pid);
    (void)exchange_seq_cst(&process->word, /* not published yet */
                           event_list_word(OBJECT_NONE, state_tag(generation, STATE_INIT)));
}

/* There was an upgrade before, of another type. */
static void setup_second(void)
{
    setup_starting();
    run_upgrader(&new_by_newer);
}

/* ---- who changes ---- */

/* The old type was replaced before the process came. */
static void setup_asked(void)
{
    rig_reset(3);
    run_upgrader(&old_by_new);
    struct worker *worker = &rig.workers[0];
    process = rig_spawn(&worker->caches.processes, &old_type, &pid);
    context_set_process(worker, process, pid);
}

/* The worker of the process, which was asked to change. */
static void run_asked(const void *arg)
{
    struct worker *worker = &rig.workers[0];
    struct upgrade *upgrade = (struct upgrade *)upgrade_find(&rig, &old_type, &new_type);
    uint32_t node;
    (void)arg;
    EXPLORE_CHECK(event_acquire_owner(&rig.events, &worker->caches.events, &node), "there is one");
    event_at(&rig.events, node)->as.request_to_become =
        (struct become_request){.type = EVENT_UPGRADE, .upgrade = upgrade};
    upgrade_take(worker, process, node);
}

static void finish_asked(void)
{
    const uint64_t word = explore_peek(&process->word);
    EXPLORE_CHECK(process_type(process) == &newer_type || event_list_first(word) != OBJECT_NONE,
                  "INV-41: it is of the newest type, or is asked to change");
    upgrade_deinit(&rig);
}

/* ---- who looks for the newest ---- */

static void setup_chain(void)
{
    rig_reset(3);
    run_upgrader(&old_by_new);
    loaded = (skua_process_type){.version = 0};
}

/* Replaces the second version by one that it has just loaded. */
static void run_loader(const void *arg)
{
    (void)arg;
    loaded = newer_type;
    explore_note("has loaded the type");
    EXPLORE_CHECK(upgrade_start(&rig, &rig.workers[0], &new_type, &loaded) >= 0,
                  "it can be replaced");
}

static void run_finder(const void *arg)
{
    const skua_process_type *type = upgrade_newest(&rig, &old_type);
    (void)arg;
    explore_note("has found the newest type");
    EXPLORE_CHECK(type->version == (type == &loaded ? 3u : 2u), "INV-40: it can be seen");
}

static void finish_chain(void)
{
    EXPLORE_CHECK(upgrade_newest(&rig, &old_type) == &loaded, "INV-41: it is found");
    upgrade_deinit(&rig);
}

/* Somebody has gone from the first version to the third. */
static void setup_fork(void)
{
    rig_reset(3);
    run_upgrader(&old_by_new);
    run_upgrader(&new_by_newer);
    EXPLORE_CHECK(upgrade_newest(&rig, &old_type) == &newer_type, "that is the newest");
}

static void run_fork_finder(const void *arg)
{
    const skua_process_type *type = upgrade_newest(&rig, &old_type);
    (void)arg;
    EXPLORE_CHECK(type == &newer_type || type == &newest_type, "INV-41: it is one of the two");
}

static void finish_fork(void)
{
    EXPLORE_CHECK(upgrade_newest(&rig, &old_type) == &newest_type,
                  "INV-41: what was replaced last is found");
    upgrade_deinit(&rig);
}

/* ---- who replaces ---- */

static void finish_two(void)
{
    const struct upgrade *last = upgrade_last(&rig);
    EXPLORE_CHECK(upgrade_find(&rig, &old_type, &new_type) != NULL &&
                      upgrade_find(&rig, &old_type, &newer_type) != NULL,
                  "INV-41: both are found");
    EXPLORE_CHECK(last->number == 2 && last->earlier->number == 1 && last->earlier->earlier == NULL,
                  "INV-41: and are in the list of all");
    upgrade_deinit(&rig);
}

static void finish_one(void)
{
    EXPLORE_CHECK(upgrade_find(&rig, &old_type, &new_type) != NULL, "INV-41: it is found");
    upgrade_deinit(&rig);
}

static void finish_starting(void)
{
    struct process *found = find_work(&rig.workers[0]); /* if its first step had to wait */
    EXPLORE_CHECK(found == NULL || spawn_before_step(&rig.workers[0], process, pid),
                  "INV-41: it can begin when the scan is over");
    const uint32_t request = event_list_first(explore_peek(&process->word));
    EXPLORE_CHECK(request != OBJECT_NONE, "INV-41: it is asked to change");
    EXPLORE_CHECK(event_at(&rig.events, request)->next == OBJECT_NONE, "INV-41: once");
    upgrade_deinit(&rig);
}

#define OWNER     EXPLORE_THREAD("owner", run_owner, NULL)
#define READER    EXPLORE_THREAD("reader", run_reader, NULL)
#define READER2   EXPLORE_THREAD("reader2", run_reader, NULL)
#define ASKED     EXPLORE_THREAD("asked", run_asked, NULL)
#define SPAWNER   EXPLORE_THREAD("spawner", run_spawner, NULL)
#define PUSHER    EXPLORE_THREAD("pusher", run_spawner, "taken")
#define THIEF     EXPLORE_THREAD("thief", run_thief, NULL)
#define SUBMITTER EXPLORE_THREAD("submitter", run_submitter, NULL)
#define WORKER    EXPLORE_THREAD("worker", run_finder_of_work, NULL)
#define UPGRADER  EXPLORE_THREAD("upgrader", run_upgrader, &old_by_new)
#define SECOND    EXPLORE_THREAD("upgrader2", run_upgrader, &old_by_newer)
#define NEXT      EXPLORE_THREAD("upgrader3", run_upgrader, &new_by_newer_elsewhere)
#define LOADER    EXPLORE_THREAD("loader", run_loader, NULL)
#define FINDER    EXPLORE_THREAD("finder", run_finder, NULL)
#define FINDER2   EXPLORE_THREAD("finder2", run_finder, NULL)
#define FORKER    EXPLORE_THREAD("forker", run_upgrader, &new_by_newest)
#define SEARCHER  EXPLORE_THREAD("searcher", run_fork_finder, NULL)
#define INSPECTOR EXPLORE_THREAD("inspector", run_inspector, NULL)

static const struct explore_model models[] = {
    {.name = "become_vs_inspect",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_changing,
     .threads = {OWNER, READER, READER2},
     .finish = finish_changing},
    {.name = "spawn_vs_upgrade",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_starting,
     .threads = {SPAWNER, UPGRADER},
     .finish = finish_starting},
    {.name = "spawn_vs_second_upgrade",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_second,
     .threads = {SPAWNER, UPGRADER},
     .finish = finish_starting},
    {.name = "push_vs_upgrade",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_starting,
     .threads = {PUSHER, UPGRADER},
     .finish = finish_starting},
    {.name = "spawn_vs_thief_vs_upgrade",
     .mode = EXPLORE_PREEMPTIONS, /* all takes minutes */
     .bound = 3,
     .stale = 1,
     .setup = setup_starting,
     .threads = {SPAWNER, THIEF, UPGRADER},
     .finish = finish_starting},
    {.name = "push_vs_thief_vs_upgrade",
     .mode = EXPLORE_PREEMPTIONS, /* all takes minutes */
     .bound = 3,
     .stale = 1,
     .setup = setup_starting,
     .threads = {PUSHER, THIEF, UPGRADER},
     .finish = finish_starting},
    {.name = "submit_vs_upgrade",
     .mode = EXPLORE_PREEMPTIONS,
     .bound = 3,
     .stale = 1,
     .setup = setup_starting,
     .threads = {SUBMITTER, WORKER, UPGRADER},
     .finish = finish_starting},
    {.name = "become_vs_next_upgrade",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_asked,
     .threads = {ASKED, NEXT},
     .finish = finish_asked},
    {.name = "two_upgraders",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_starting,
     .threads = {UPGRADER, SECOND},
     .finish = finish_two},
    {.name = "find_vs_find_vs_upgrade",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_chain,
     .threads = {LOADER, FINDER, FINDER2},
     .finish = finish_chain},
    {.name = "find_vs_fork",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_fork,
     .threads = {SEARCHER, FORKER},
     .finish = finish_fork},
    {.name = "upgrade_vs_inspect",
     .mode = EXPLORE_ALL,
     .stale = UINT32_MAX,
     .setup = setup_starting,
     .threads = {UPGRADER, INSPECTOR},
     .finish = finish_one},
};

EXPLORE_MAIN(models)
