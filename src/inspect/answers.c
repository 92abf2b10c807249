/* SPDX-License-Identifier: MIT */
#include "inspect/answers.h"

#include <errno.h>
#include <inttypes.h>
#include <skua/version.h>
#include <string.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "inspect/described.h"
#include "inspect/metrics.h"
#include "inspect/reload.h"
#include "inspect/tree.h"
#include "inspect/worker_view.h"
#include "sched/limits.h"
#include "sched/process_info.h"
#include "sched/spawn.h"
#include "sched/stats.h"

#define WORDS_MAX 5
/* At most this many processes are examined for one page, so that a narrow filter does not make an
 * answer slow. */
#define LOOKS_MAX 100000
/* Processes read at a time. */
#define CHUNK 64

/* A request split into words; missing ones are null. */
struct request {
    uint32_t client;
    char *words[WORDS_MAX];
    char *rest; /* the remainder, or null */
};

/* Which processes a page has. */
struct filter {
    const char *state; /* null: any */
    const char *type;  /* as text_is_name has it; null: any */
};

struct command {
    const char *name;
    int (*answer)(struct answers *answers, const struct request *request, struct text *out);
};

void answers_init(struct answers *answers, struct scheduler *sched)
{
    answers->sched = sched;
    answers->listing.made = 0;
    answers->sockets.made = 0;
    answers->tracer = NO_CLIENT;
    answers->asked = 0;
}

/* ---- the words of a request ---- */

static struct request cut(uint32_t client, char *line)
{
    struct request request = {.client = client};
    char *rest = line;
    for (uint32_t i = 0; i < WORDS_MAX; i++) {
        request.words[i] = strsep(&rest, " ");
    }
    request.rest = rest;
    return request;
}

static bool has_words(const struct request *request, uint32_t count)
{
    return request->words[count - 1] != NULL && request->rest == NULL &&
           (count == WORDS_MAX || request->words[count] == NULL);
}

static bool read_order(const char *word, enum listing_order *order)
{
    static const char *const names[LISTING_ORDERS] = {"mailbox", "steps", "run", "age"};
    for (uint32_t i = 0; i < LISTING_ORDERS; i++) {
        if (strcmp(word, names[i]) == 0) {
            *order = (enum listing_order)i;
            return true;
        }
    }
    return false;
}

static bool is_state(const char *word)
{
    for (int state = SKUA_PROCESS_READY; state <= SKUA_PROCESS_IDLE; state++) {
        if (strcmp(word, skua_process_state_name((enum skua_process_state)state)) == 0) {
            return true;
        }
    }
    return false;
}

/* The words after the limit: a state or `any`, and a type, which may contain spaces. */
static bool read_filter(const struct request *request, struct filter *filter)
{
    const char *state = request->words[4];
    if (state != NULL && strcmp(state, "any") != 0) {
        filter->state = state;
    }
    filter->type = request->rest;
    return filter->state == NULL || is_state(filter->state);
}

/* ---- the answers: 0, or the error to be answered ---- */

static int answer_hello(struct answers *answers, const struct request *request, struct text *out)
{
    if (!has_words(request, 1)) {
        return SKUA_E_INVALID;
    }
    struct scheduler *sched = answers->sched;
    text_add(out, "program\t%ld\t%" PRIu32 "\t", (long)getpid(),
             process_table_runtime(&sched->table));
    text_add_name(out, program_invocation_short_name);
    text_add(out, "\t%s\t%" PRIu64 "\n", skua_version(), monotonic_ns() - sched->account.created);
    return 0;
}

static void add_counters(struct text *out, const skua_stats *stats)
{
#define ADD(name) text_add(out, "\t%" PRIu64, stats->name);
    SKUA_STATS_MAP(ADD)
#undef ADD
    text_add(out, "\n");
}

static void add_worker(struct scheduler *sched, uint32_t index, struct text *out)
{
    const struct worker_view view = worker_view_read(&sched->workers[index]);
    skua_stats stats;
    counters_read(&sched->workers[index].stats, &stats);
    text_add(out, "worker\t%" PRIu32 "\t%s\t%s\t%" PRIu32 "\t%016" PRIx64 "\t", index,
             index < sched->worker_count ? "worker" : "spare", view.doing, view.queue,
             view.pid.bits);
    text_add_name(out, skua_pid_is_none(view.pid) ? "-" : process_info_type_name(sched, view.pid));
    add_counters(out, &stats);
}

static int answer_stats(struct answers *answers, const struct request *request, struct text *out)
{
    if (!has_words(request, 1)) {
        return SKUA_E_INVALID;
    }
    struct scheduler *sched = answers->sched;
    const uint64_t now = monotonic_ns();
    stats_update_cpu(sched); /* at once: clients divide it by the time between two answers */
    skua_stats total;
    stats_read_total(sched, &total);
    const struct sockets_total sockets = sockets_count(sched->sockets);
    text_add(out,
             "now\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\n",
             now, now - sched->account.created, total.live,
             load_relaxed(&sched->global.sorted) +    /* a snapshot */
                 load_relaxed(&sched->behind.sorted), /* likewise */
             sockets.open, sockets.lingering);
#define ADD_NAME(name) "\t" #name
    text_add(out, "counters" SKUA_STATS_MAP(ADD_NAME) "\n");
#undef ADD_NAME
    text_add(out, "total");
    add_counters(out, &total);
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        add_worker(sched, i, out);
    }
    return 0;
}

static void add_process(struct text *out, const skua_process_snapshot *info)
{
    text_add(out, "process\t%016" PRIx64 "\t", info->pid.bits);
    text_add_name(out, info->type_name);
    text_add(out, "\t%s\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
             skua_process_state_name(info->state), info->mailbox_length, info->steps, info->run_ns,
             info->age_ns);
    if (info->type_version != 0) {
        text_add(out, "\t%" PRIu32, info->type_version);
    } else if (!skua_pid_is_none(info->supervisor)) {
        text_add(out, "\t-");
    }
    if (!skua_pid_is_none(info->supervisor)) {
        text_add(out, "\t%016" PRIx64, info->supervisor.bits);
    }
    text_add(out, "\n");
}

static bool lets_through(const struct filter *filter, const skua_process_snapshot *info)
{
    return (filter->state == NULL ||
            strcmp(filter->state, skua_process_state_name(info->state)) == 0) &&
           (filter->type == NULL || text_is_name(filter->type, info->type_name));
}

/* A page in the order of the table. */
static void add_page(struct scheduler *sched, skua_pid after, uint32_t limit,
                     const struct filter *filter, struct text *out)
{
    skua_process_snapshot infos[CHUNK];
    uint32_t looks = 0;
    uint32_t rows = 0;
    uint32_t count;
    do {
        count = process_info_list(sched, after, infos, CHUNK);
        for (uint32_t i = 0; i < count && rows < limit; i++, looks++) {
            after = infos[i].pid;
            if (lets_through(filter, &infos[i])) {
                add_process(out, &infos[i]);
                rows++;
            }
        }
    } while (count == CHUNK && rows < limit && looks < LOOKS_MAX);
    if (rows == limit || count == CHUNK) {
        text_add(out, "more\t%016" PRIx64 "\n", after.bits);
    }
}

static uint64_t add_largest(struct answers *answers, enum listing_order order, uint32_t limit,
                            struct text *out)
{
    listing_renew(&answers->listing, answers->sched);
    const uint32_t count = listing_read(&answers->listing, answers->sched, order);
    for (uint32_t i = 0; i < count && i < limit; i++) {
        add_process(out, &answers->listing.rows[i].info);
    }
    return monotonic_ns() - answers->listing.made;
}

static int answer_processes(struct answers *answers, const struct request *request,
                            struct text *out)
{
    uint64_t after;
    uint64_t limit;
    enum listing_order order = BY_STEPS;
    struct filter filter = {0};
    uint64_t age = 0;
    if (request->words[3] == NULL || !text_is_number(request->words[2], 16, &after) ||
        !text_is_number(request->words[3], 10, &limit) || limit == 0 || limit > LISTING_MAX) {
        return SKUA_E_INVALID;
    }
    if (strcmp(request->words[1], "pid") == 0 && read_filter(request, &filter)) {
        add_page(answers->sched, (skua_pid){after}, (uint32_t)limit, &filter, out);
    } else if (read_order(request->words[1], &order) && after == 0 && has_words(request, 4)) {
        age = add_largest(answers, order, (uint32_t)limit, out);
    } else {
        return SKUA_E_INVALID;
    }
    text_add(out, "seen\t%" PRIu64 "\t%" PRIu64 "\n", stats_live(answers->sched), age);
    return 0;
}

static int answer_sockets(struct answers *answers, const struct request *request, struct text *out)
{
    const struct socket_request wanted = {.sort = request->words[1],
                                          .after = request->words[2],
                                          .limit = request->words[3],
                                          .state = request->words[4],
                                          .rest = request->rest};
    return socket_list_add(&answers->sockets, answers->sched, &wanted, out);
}

static void add_methods(struct text *out, const skua_process_type *type)
{
    text_add(out, "detail\tmethods\t");
    if (type->methods == NULL) {
        text_add(out, "main");
    }
    for (const char *const *name = type->methods; name != NULL && *name != NULL; name++) {
        text_add(out, "%s", name == type->methods ? "" : " ");
        text_add_name(out, *name);
    }
    text_add(out, "\n");
}

/* Which worker runs a process, if one does. */
static void add_worker_of(struct scheduler *sched, skua_pid pid, struct text *out)
{
    const uint32_t threads = scheduler_threads(sched);
    for (uint32_t i = 0; i < threads; i++) {
        if (load_relaxed(&sched->workers[i].running) == pid.bits) { /* a snapshot */
            text_add(out, "detail\tworker\t%" PRIu32 "\n", i);
        }
    }
}

/* The stack that a task has, or will have. */
static void add_stack(struct scheduler *sched, const skua_process_type *type, struct text *out)
{
    static const char *const guards[] = {
        [STACK_GUARD_UNKNOWN] = "unknown",
        [STACK_GUARD_PAGE] = "page",
        [STACK_GUARD_MAPPING] = "mapping",
        [STACK_GUARD_CANARY] = "canary",
    };
    const uint32_t guard = load_relaxed(&sched->stacks.guard); /* a number */
    if (process_is_task(type)) {
        const size_t size = type->stack_size != 0 ? type->stack_size : STACK_SIZE_DEFAULT;
        text_add(out, "detail\tstack_size\t%zu\n", stacks_size(stacks_tier(size)));
        text_add(out, "detail\tstack_guard\t%s\n", guards[guard]);
    }
}

/* What a full mailbox does. */
static const char *name_of_overflow(enum skua_overflow overflow)
{
    static const char *const names[] = {"refuse", "drop new", "drop old", "end"};
    return names[overflow]; /* the type was checked when the process was started */
}

static void add_quota_kind(struct text *out, const char *kind, uint64_t used, uint64_t limit)
{
    if (limit != 0) {
        text_add(out, "detail\tquota_%s\t%" PRIu64 " of %" PRIu64 "\n", kind, used, limit);
    }
}

/* The quota that a process has set for those under it. */
static void add_quota(struct scheduler *sched, skua_pid pid, struct text *out)
{
    skua_quota_use use;
    if (limits_read(sched, pid, &use) == 0) {
        add_quota_kind(out, "processes", use.used.processes, use.limit.processes);
        add_quota_kind(out, "messages", use.used.messages, use.limit.messages);
        add_quota_kind(out, "bytes", use.used.bytes, use.limit.bytes);
    }
}

static int answer_process(struct answers *answers, const struct request *request, struct text *out)
{
    uint64_t bits;
    if (!has_words(request, 2) || !text_is_number(request->words[1], 16, &bits)) {
        return SKUA_E_INVALID;
    }
    struct scheduler *sched = answers->sched;
    const skua_pid pid = {bits};
    skua_process_snapshot info;
    int error = process_info_read(sched, pid, &info);
    if (error != 0) {
        return error;
    }
    /* Between two reads of the process, so that these belong to it; before the first read it may
     * not have been published. */
    struct process *process = process_at(&sched->table, pid_slot(pid));
    const skua_process_type *type = load_acquire(&process->type);         /* MO-inspect */
    const uint32_t mailbox_limit = load_acquire(&process->mailbox_limit); /* MO-inspect */
    error = process_info_read(sched, pid, &info);
    if (error != 0) {
        return error;
    }
    add_process(out, &info);
    text_add(out, "detail\tmailbox_limit\t%" PRIu32 "\n",
             mailbox_limit < MAILBOX_MARK ? mailbox_limit : spawn_mailbox_limit(sched, type));
    text_add(out, "detail\toverflow\t%s\n", name_of_overflow(type->overflow));
    text_add(out, "detail\tstate_size\t%zu\n", type->state_size);
    add_quota(sched, pid, out);
    add_stack(sched, type, out);
    add_methods(out, type);
    add_worker_of(sched, pid, out);
    answers->asked += described_add_details(sched, pid, out);
    return 0;
}

static int answer_describe(struct answers *answers, const struct request *request, struct text *out)
{
    skua_pid pids[DESCRIBE_MAX];
    uint32_t count = 0;
    char *rest = request->rest;
    for (uint32_t i = 1;; i++) {
        const char *word = i < WORDS_MAX ? request->words[i] : strsep(&rest, " ");
        if (word == NULL) {
            break;
        }
        if (count == DESCRIBE_MAX || !text_is_number(word, 16, &pids[count++].bits)) {
            return SKUA_E_INVALID;
        }
    }
    answers->asked += described_add(answers->sched, pids, count, out);
    return 0;
}

/* The metrics in a block of `size` bytes; null if there is no memory. Counters grow meanwhile, so
 * the text may need more room than was measured. */
static char *take_metrics(struct scheduler *sched, size_t *size)
{
    size_t needed = (size_t)metrics_format(sched, NULL, 0) + 1;
    for (;;) {
        *size = needed;
        char *text = allocator_alloc(&sched->allocator, *size, 1);
        if (text == NULL) {
            return NULL;
        }
        needed = (size_t)metrics_format(sched, text, *size) + 1;
        if (needed <= *size) {
            return text;
        }
        allocator_free(&sched->allocator, text, *size, 1);
    }
}

static int answer_metrics(struct answers *answers, const struct request *request, struct text *out)
{
    if (!has_words(request, 1)) {
        return SKUA_E_INVALID;
    }
    /* Each line gets a prefix, so it cannot be formatted in place. */
    size_t size;
    char *copy = take_metrics(answers->sched, &size);
    if (copy == NULL) {
        return SKUA_E_NO_MEMORY;
    }
    char *rest = copy;
    for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n")) {
        text_add(out, "text\t%s\n", line);
    }
    allocator_free(&answers->sched->allocator, copy, size, 1);
    return 0;
}

static int start_trace(struct answers *answers, uint32_t client)
{
    if (answers->tracer != NO_CLIENT) {
        return SKUA_E_BUSY;
    }
    if (!tracing_start(&answers->tracing, answers->sched)) {
        return SKUA_E_NO_MEMORY;
    }
    answers->tracer = client;
    return 0;
}

static int read_trace(struct answers *answers, const struct request *request, struct text *out)
{
    uint64_t most = TRACING_MAX;
    if (!has_words(request, 2) &&
        !(has_words(request, 3) && text_is_number(request->words[2], 10, &most))) {
        return SKUA_E_INVALID;
    }
    if (most == 0 || most > TRACING_MAX) {
        return SKUA_E_INVALID;
    }
    tracing_read(&answers->tracing, answers->sched, (uint32_t)most, out);
    return 0;
}

static int answer_trace(struct answers *answers, const struct request *request, struct text *out)
{
    if (request->words[1] == NULL) {
        return SKUA_E_INVALID;
    }
    if (strcmp(request->words[1], "start") == 0 && has_words(request, 2)) {
        return start_trace(answers, request->client);
    }
    if (answers->tracer != request->client) {
        return SKUA_E_INVALID;
    }
    if (strcmp(request->words[1], "read") == 0) {
        return read_trace(answers, request, out);
    }
    if (strcmp(request->words[1], "stop") == 0 && has_words(request, 2)) {
        answers_forget(answers, request->client);
        tracing_read_end(&answers->tracing, answers->sched, out);
        return 0;
    }
    return SKUA_E_INVALID;
}

/* All words after the first, which may have spaces between them, as they came. */
static char *rejoin(const struct request *request)
{
    for (uint32_t i = 2; i < WORDS_MAX && request->words[i] != NULL; i++) {
        request->words[i][-1] = ' ';
    }
    if (request->rest != NULL) {
        request->rest[-1] = ' ';
    }
    return request->words[1];
}

static int answer_reload(struct answers *answers, const struct request *request, struct text *out)
{
    char *words = rejoin(request);
    return words != NULL
               ? reload_file(answers->sched, words, out, answers->why, sizeof answers->why)
               : SKUA_E_INVALID;
}

static int answer_upgrades(struct answers *answers, const struct request *request, struct text *out)
{
    uint64_t after;
    if (!has_words(request, 2) || !text_is_number(request->words[1], 10, &after)) {
        return SKUA_E_INVALID;
    }
    reload_add_upgrades(answers->sched, after, out);
    return 0;
}

/* The last two words of a request: a place, and how many. */
static bool read_place(const struct request *request, uint32_t words, uint64_t *place,
                       uint64_t *limit)
{
    return has_words(request, words) && text_is_number(request->words[words - 2], 16, place) &&
           text_is_number(request->words[words - 1], 10, limit) && *limit > 0 && *limit <= TREE_MAX;
}

static int answer_roots(struct answers *answers, const struct request *request, struct text *out)
{
    uint64_t place;
    uint64_t limit;
    return read_place(request, 3, &place, &limit)
               ? tree_add_roots(answers->sched, place, (uint32_t)limit, out)
               : SKUA_E_INVALID;
}

static int answer_children(struct answers *answers, const struct request *request, struct text *out)
{
    skua_pid pid;
    uint64_t place;
    uint64_t limit;
    if (!read_place(request, 4, &place, &limit) ||
        !text_is_number(request->words[1], 16, &pid.bits)) {
        return SKUA_E_INVALID;
    }
    return tree_add_children(answers->sched, pid, place, (uint32_t)limit, out, &answers->asked);
}

void answers_forget(struct answers *answers, uint32_t client)
{
    if (answers->tracer == client) {
        tracer_stop(&answers->sched->tracer);
        answers->tracer = NO_CLIENT;
    }
}

static int answer(struct answers *answers, const struct request *request, struct text *out)
{
    static const struct command commands[] = {
        {"hello", answer_hello},       {"stats", answer_stats},     {"processes", answer_processes},
        {"process", answer_process},   {"metrics", answer_metrics}, {"trace", answer_trace},
        {"describe", answer_describe}, {"sockets", answer_sockets}, {"reload", answer_reload},
        {"upgrades", answer_upgrades}, {"roots", answer_roots},     {"children", answer_children},
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(request->words[0], commands[i].name) == 0) {
            return commands[i].answer(answers, request, out);
        }
    }
    return SKUA_E_INVALID;
}

void answers_refuse(struct text *out, int error)
{
    out->length = 0;
    text_add(out, "error\t%s\t%s\n", skua_error_name(error), skua_error_text(error));
}

void answers_write(struct answers *answers, uint32_t client, char *line, struct text *out)
{
    const struct request request = cut(client, line);
    answers->why[0] = '\0';
    const int error = answer(answers, &request, out);
    if (error != 0 && answers->why[0] != '\0') {
        out->length = 0;
        text_add(out, "error\t%s\t", skua_error_name(error));
        text_add_clean(out, answers->why);
        text_add(out, "\n");
    } else if (error != 0) {
        answers_refuse(out, error);
    } else {
        text_add(out, "end\n");
    }
}
