/* SPDX-License-Identifier: MIT */
/* What processes say of themselves: their names, and what they wait for. */
#include <inttypes.h>
#include <skua/task.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command/format.h"
#include "command/inspect/inspect.h"

/* Processes in one request. */
enum { ASKED_MAX = 64 };

/* Fields of a line `described`. */
enum { FIELD_ANSWER = 2, FIELD_NAMES, FIELD_NAME, FIELD_LABEL, FIELD_YIELDS, FIELD_YIELD };

/* Fields of a line `task`. */
enum { FIELD_KIND = 2, FIELD_TYPE, FIELD_LEFT, FIELD_WHERE };

/* Fields of a line `stack`. */
enum { FIELD_DEEPEST = 2, FIELD_SIZE };

/* The field of a line `sockets`. */
enum { FIELD_COUNT = 2 };

/* What a yield is about: fields of a line. */
struct yield {
    uint64_t tag;
    char kind[16];
    char about[24];
    char text[ADDRESS_TEXT_SIZE]; /* a name, or the address of a socket */
    bool has_time;
    uint64_t left_ns;
    uint64_t period_ns;
    uint64_t hops;   /* of a call: how often it was forwarded */
    char debtor[24]; /* who owes the answer since, as PID and type, if it is known */
    char debtor_type[65];
    char peer[ADDRESS_TEXT_SIZE]; /* of a socket; empty: unknown, or none */
};

/* Appends. */
__attribute__((format(printf, 2, 3))) static void add(struct wait_text *out, const char *format,
                                                      ...)
{
    const size_t length = strlen(out->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->text + length, sizeof out->text - length, format, arguments);
    va_end(arguments);
}

/* ---- a yield ---- */

/* Of a call that was forwarded. */
static bool read_debtor(const struct line *line, size_t field, struct yield *yield)
{
    return strcmp(yield->kind, "call") != 0 || line->count <= field ||
           (line_number(line, field, &yield->hops) &&
            line_text(line, field + 1, yield->debtor, sizeof yield->debtor) &&
            line_text(line, field + 2, yield->debtor_type, sizeof yield->debtor_type));
}

/* Yields of sockets, what is said of them, and which way the data goes. */
static const struct socket_kind {
    const char *kind;
    const char *text;
    const char *arrow;
} socket_kinds[] = {
    {"accept", "connection at", "<-"},
    {"read", "socket to read:", "<-"},
    {"write", "socket to write:", "->"},
    {"hangup", "end of input:", "<-"},
};

/* Null: it is not about a socket. */
static const struct socket_kind *find_socket_kind(const char *kind)
{
    for (size_t i = 0; i < sizeof socket_kinds / sizeof socket_kinds[0]; i++) {
        if (strcmp(kind, socket_kinds[i].kind) == 0) {
            return &socket_kinds[i];
        }
    }
    return NULL;
}

static bool read_peer(const struct line *line, size_t field, struct yield *yield)
{
    return find_socket_kind(yield->kind) == NULL || line->count <= field ||
           line_text(line, field, yield->peer, sizeof yield->peer);
}

static bool read_yield(const struct line *line, size_t field, struct yield *yield)
{
    *yield = (struct yield){.has_time = true};
    if (field + 4 < line->count && strcmp(line->field[field + 4], "-") == 0) {
        yield->has_time = false;
    }
    return line_number(line, field, &yield->tag) &&
           line_text(line, field + 1, yield->kind, sizeof yield->kind) &&
           line_text(line, field + 2, yield->about, sizeof yield->about) &&
           line_text(line, field + 3, yield->text, sizeof yield->text) &&
           (!yield->has_time || line_number(line, field + 4, &yield->left_ns)) &&
           line_number(line, field + 5, &yield->period_ns) && read_debtor(line, field + 6, yield) &&
           read_peer(line, field + 6, yield);
}

/* What ends at its time: a timer, or a tick. Returns whether it is one. */
static bool add_timer(struct wait_text *out, const struct yield *yield)
{
    const char *left = format_time(yield->left_ns).text;
    if (strcmp(yield->kind, "ticker") == 0) {
        add(out, "ticker of %s, next in %s", format_time(yield->period_ns).text, left);
        return true;
    }
    if (strcmp(yield->kind, "sleep") != 0 && strcmp(yield->kind, "timer") != 0) {
        return false;
    }
    if (yield->has_time) {
        add(out, "timer in %s", left);
    } else {
        add(out, "timer that is never due");
    }
    return true;
}

static bool is_nobody(const char *pid)
{
    return strspn(pid, "0") == strlen(pid);
}

static void add_peer(struct wait_text *out, const char *pid, const char *type)
{
    if (is_nobody(pid)) {
        add(out, "one that has ended");
    } else {
        add(out, "%s (%s)", pid, type);
    }
}

/* Two addresses, as far as they are known. */
static void add_addresses(struct wait_text *out, const char *local, const char *arrow,
                          const char *peer)
{
    if (local[0] != '\0') {
        add(out, " %s", local);
    }
    if (peer[0] != '\0') {
        add(out, " %s %s", arrow, peer);
    }
}

/* Returns whether it is about a socket. A Unix socket may have no address on either side. */
static bool add_socket(struct wait_text *out, const struct yield *yield)
{
    const struct socket_kind *kind = find_socket_kind(yield->kind);
    if (kind == NULL) {
        return false;
    }
    add(out, "%s", kind->text);
    if (yield->text[0] != '\0' || yield->peer[0] != '\0') {
        add_addresses(out, yield->text, kind->arrow, yield->peer);
    } else {
        add(out, " %s", yield->about);
    }
    return true;
}

static void add_subject(struct wait_text *out, const struct yield *yield)
{
    static const struct {
        const char *kind;
        const char *text;
        bool has_peer;
    } kinds[] = {
        {"readable", "descriptor to read: ", false},
        {"writable", "descriptor to write: ", false},
        {"call", "call to ", true},
        {"monitor", "monitor of ", true},
        {"join", "join of ", true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(yield->kind, kinds[i].kind) == 0) {
            add(out, "%s", kinds[i].text);
            if (kinds[i].has_peer) {
                add_peer(out, yield->about, yield->text);
            } else {
                add(out, "%s", yield->about);
            }
            return;
        }
    }
    if (strcmp(yield->kind, "name") == 0) {
        add(out, "name '%s'", yield->text);
    } else if (strcmp(yield->kind, "blocking") == 0) {
        add(out, "blocking pool");
    } else if (strcmp(yield->kind, "connect") == 0) {
        add(out, "connection to be made");
    } else if (!add_socket(out, yield)) { /* a command, or what later versions know */
        add(out, "%s %s", yield->kind, yield->about);
        if (yield->text[0] != '\0') {
            add(out, " (%s)", yield->text);
        }
    }
}

/* Where a call is that was forwarded. */
static void add_debtor(struct wait_text *out, const struct yield *yield)
{
    if (yield->hops == 0) {
        return;
    }
    add(out, ", forwarded");
    if (!is_nobody(yield->debtor)) {
        add(out, " to ");
        add_peer(out, yield->debtor, yield->debtor_type);
    }
}

static void add_yield(struct wait_text *out, const struct yield *yield)
{
    if (add_timer(out, yield)) {
        return;
    }
    add_subject(out, yield);
    add_debtor(out, yield);
    if (yield->has_time) {
        add(out, ", times out in %s", format_time(yield->left_ns).text);
    }
}

bool yield_describe(const struct line *line, bool is_task, struct wait_text *out)
{
    struct yield yield;
    out->text[0] = '\0';
    if (!read_yield(line, 1, &yield)) {
        return false;
    }
    add_yield(out, &yield);
    if (is_task && yield.tag > SKUA_TASK_TAGS) {
        add(out, " (of its wait)");
    } else {
        add(out, " (tag %" PRIu64 ")", yield.tag);
    }
    return true;
}

/* When the process got a request is known no better. */
#define AGE_LEAST (100 * SKUA_MILLISECOND)

bool request_describe(const struct line *line, struct wait_text *out)
{
    char type[65];
    uint64_t age_ns;
    uint64_t left_ns = 0;
    const bool has_time = line->count > 4 && strcmp(line->field[4], "-") != 0;
    out->text[0] = '\0';
    if (!line_text(line, 2, type, sizeof type) || !line_number(line, 3, &age_ns) ||
        (has_time && !line_number(line, 4, &left_ns))) {
        return false;
    }
    add_peer(out, line->field[1], type);
    add(out, age_ns < AGE_LEAST ? ", asked less than %s ago" : ", asked %s ago",
        format_time(age_ns < AGE_LEAST ? AGE_LEAST : age_ns).text);
    if (line->count > 5 && strcmp(line->field[5], "given-up") == 0) {
        add(out, ", has given up");
    } else if (has_time) {
        add(out, ", times out in %s", format_time(left_ns).text);
    }
    return true;
}

/* ---- a process ---- */

static bool set_name(struct process_row *row, const struct line *line)
{
    char name[65];
    char label[65];
    uint64_t names;
    struct wait_text out = {""};
    if (!line_number(line, FIELD_NAMES, &names) ||
        !line_text(line, FIELD_NAME, name, sizeof name) ||
        !line_text(line, FIELD_LABEL, label, sizeof label)) {
        return false;
    }
    if (names > 0) {
        add(&out, "%s", name);
    }
    if (names > 1) {
        add(&out, " +%" PRIu64 "%s", names - 1, names >= LIST_COUNT_MAX ? " or more" : "");
    }
    const bool says_more = names == 0 || strcmp(label, name) != 0; /* a registered child has both */
    if (label[0] != '\0' && says_more) {
        add(&out, "%s(%s)", names > 0 ? " " : "", label);
    }
    copy_text(row->name, sizeof row->name, out.text[0] != '\0' ? out.text : "-");
    return true;
}

static bool set_waits(struct process_row *row, const struct line *line)
{
    struct yield yield;
    row->waits.text[0] = '\0';
    if (!line_number(line, FIELD_YIELDS, &row->yields)) {
        return false;
    }
    if (row->yields == 0) {
        add(&row->waits, "nothing");
        return true;
    }
    if (line->count <= FIELD_YIELD) {
        add(&row->waits, "nothing any more"); /* what it has waited for has just ended */
        return true;
    }
    if (!read_yield(line, FIELD_YIELD, &yield)) {
        return false;
    }
    add_yield(&row->waits, &yield);
    if (row->yields > 1) {
        add(&row->waits, ", +%" PRIu64 "%s more", row->yields - 1,
            row->yields >= LIST_COUNT_MAX ? " or" : "");
    }
    return true;
}

void row_is_unknown(struct process_row *row)
{
    row->yields = 0;
    row->is_task = false;
    row->where[0] = '\0';
    (void)snprintf(row->stack, sizeof row->stack, "-");
    (void)snprintf(row->sockets, sizeof row->sockets, "-");
    (void)snprintf(row->name, sizeof row->name, "-");
    (void)snprintf(row->waits.text, sizeof row->waits.text, "%s",
                   strcmp(row->state, "running") == 0 ? "running" : "-");
}

bool row_describe(struct process_row *row, const struct line *line)
{
    char answer[8];
    if (!line_text(line, FIELD_ANSWER, answer, sizeof answer)) {
        return false;
    }
    row_is_unknown(row);
    if (strcmp(answer, "told") == 0) {
        return set_name(row, line) && set_waits(row, line);
    }
    if (strcmp(answer, "gone") == 0) {
        strcpy(row->waits.text, "ended");
    }
    return true;
}

/* What a task receives. */
static void set_received(struct process_row *row, const char *kind, const char *type)
{
    row->waits.text[0] = '\0';
    if (strcmp(kind, "type") == 0) {
        add(&row->waits, "message of type %s", type);
    } else if (strcmp(kind, "match") == 0) {
        add(&row->waits, "event that matches");
    } else if (strcmp(kind, "turn") == 0) {
        add(&row->waits, "its turn");
    } else {
        add(&row->waits, "any event");
    }
}

bool row_describe_task(struct process_row *row, const struct line *line)
{
    char kind[16];
    char type[24];
    uint64_t left_ns = 0;
    const bool has_time = line->count > FIELD_LEFT && strcmp(line->field[FIELD_LEFT], "-") != 0;
    if (!line_text(line, FIELD_KIND, kind, sizeof kind) ||
        !line_text(line, FIELD_TYPE, type, sizeof type) ||
        (has_time && !line_number(line, FIELD_LEFT, &left_ns)) ||
        !line_text(line, FIELD_WHERE, row->where, sizeof row->where)) {
        return false;
    }
    row->is_task = true;
    if (strcmp(kind, "completion") == 0) {
        return true; /* that is its newest yield */
    }
    set_received(row, kind, type);
    if (row->yields > has_time) {
        const uint64_t others = row->yields - has_time;
        add(&row->waits, ", %" PRIu64 " yield%s open", others, others == 1 ? "" : "s");
    }
    if (has_time) {
        add(&row->waits, ", times out in %s", format_time(left_ns).text);
    }
    return true;
}

bool row_describe_stack(struct process_row *row, const struct line *line)
{
    uint64_t deepest;
    uint64_t size;
    if (!line_number(line, FIELD_DEEPEST, &deepest) || !line_number(line, FIELD_SIZE, &size)) {
        return false;
    }
    snprintf(row->stack, sizeof row->stack, "%" PRIu64 "K/%" PRIu64 "K", (deepest + 1023) / 1024,
             size / 1024);
    return true;
}

bool row_describe_sockets(struct process_row *row, const struct line *line)
{
    uint64_t count;
    if (!line_number(line, FIELD_COUNT, &count)) {
        return false;
    }
    snprintf(row->sockets, sizeof row->sockets, "%" PRIu64 "%s", count,
             count >= LIST_COUNT_MAX ? "+" : "");
    return true;
}

/* ---- many ---- */

/* Programs of earlier versions do not know the request: asking for nobody tells. */
static enum client_result learn(struct client *client)
{
    client_ask(client, "describe");
    const enum client_result result = client_skip(client);
    if (result != CLIENT_END && result != CLIENT_ERROR) {
        return result;
    }
    client->describes = result == CLIENT_END ? DESCRIBES : DESCRIBES_NOT;
    return CLIENT_END;
}

/* Asks about up to ASKED_MAX processes, and hands each line `described`, `task`, `stack` or
 * `sockets` on, with its PID, until `take` returns false. */
static enum client_result ask(struct client *client, const uint64_t *asked, size_t count,
                              bool (*take)(void *arg, uint64_t pid, const struct line *line),
                              void *arg)
{
    struct line line;
    enum client_result result;
    uint64_t pid;
    char pids[17 * ASKED_MAX + 1] = "";
    for (size_t i = 0; i < count; i++) {
        snprintf(pids + 17 * i, sizeof pids - 17 * i, " %016" PRIx64, asked[i]);
    }
    client_ask(client, "describe%s", pids);
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        const bool is_known = line_is(&line, "described") || line_is(&line, "task") ||
                              line_is(&line, "stack") || line_is(&line, "sockets");
        if (is_known && (!line_pid(&line, 1, &pid) || !take(arg, pid, &line))) {
            return CLIENT_BROKEN;
        }
    }
    return result;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

struct row_list {
    struct process_row *rows;
    size_t count;
};

static bool take_row(void *arg, uint64_t pid, const struct line *line)
{
    const struct row_list *list = arg;
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].pid == pid) {
            return line_is(line, "task")      ? row_describe_task(&list->rows[i], line)
                   : line_is(line, "stack")   ? row_describe_stack(&list->rows[i], line)
                   : line_is(line, "sockets") ? row_describe_sockets(&list->rows[i], line)
                                              : row_describe(&list->rows[i], line);
        }
    }
    return false;
}

enum client_result rows_describe(struct client *client, struct process_row *rows, size_t count)
{
    enum client_result result = CLIENT_END;
    if (client->describes == DESCRIBES_UNKNOWN) {
        result = learn(client);
    }
    for (size_t i = 0; i < count; i++) {
        row_is_unknown(&rows[i]);
    }
    for (size_t i = 0; i < count && result == CLIENT_END && client->describes == DESCRIBES;
         i += ASKED_MAX) {
        uint64_t pids[ASKED_MAX];
        struct row_list list = {&rows[i], smaller(count - i, ASKED_MAX)};
        for (size_t j = 0; j < list.count; j++) {
            pids[j] = list.rows[j].pid;
        }
        result = ask(client, pids, list.count, take_row, &list);
    }
    return result;
}

struct names_taker {
    names_fn *take;
    void *arg;
};

static bool take_names(void *arg, uint64_t pid, const struct line *line)
{
    const struct names_taker *taker = arg;
    char answer[8];
    char name[65];
    char label[65];
    if (!line_is(line, "described")) {
        return true;
    }
    if (!line_text(line, FIELD_ANSWER, answer, sizeof answer)) {
        return false;
    }
    if (strcmp(answer, "told") != 0) {
        return true;
    }
    return line_text(line, FIELD_NAME, name, sizeof name) &&
           line_text(line, FIELD_LABEL, label, sizeof label) &&
           taker->take(taker->arg, pid, name, label);
}

enum client_result names_describe(struct client *client, const uint64_t *pids, size_t count,
                                  names_fn *take, void *arg)
{
    struct names_taker taker = {take, arg};
    enum client_result result = client->describes == DESCRIBES_UNKNOWN ? learn(client) : CLIENT_END;
    for (size_t i = 0; i < count && result == CLIENT_END && client->describes == DESCRIBES;
         i += ASKED_MAX) {
        result = ask(client, pids + i, smaller(count - i, ASKED_MAX), take_names, &taker);
    }
    return result;
}

bool socket_describe(const struct line *line, struct wait_text *out)
{
    struct socket_row row;
    out->text[0] = '\0';
    if (!socket_row_read(line, &row)) {
        return false;
    }
    add(out, "%s", row.state);
    add_addresses(out, strcmp(row.local, "-") != 0 ? row.local : "", "<->",
                  strcmp(row.peer, "-") != 0 ? row.peer : "");
    add(out, ", in %" PRIu64 ", out %" PRIu64 ", queued %" PRIu64 ", idle %s", row.bytes_in,
        row.bytes_out, row.queued, format_time(row.idle_ns).text);
    return true;
}
