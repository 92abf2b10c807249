/* SPDX-License-Identifier: MIT */
/* Lists of processes and sockets, as the inspector gives them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command/format.h"
#include "command/inspect/inspect.h"

static const char *const sort_names[] = {"pid", "steps", "mailbox", "run", "age"};

const char *sort_name(enum process_sort sort)
{
    return sort_names[sort];
}

bool parse_sort(const char *text, enum process_sort *sort)
{
    for (size_t i = 0; i < sizeof sort_names / sizeof sort_names[0]; i++) {
        if (strcmp(text, sort_names[i]) == 0) {
            *sort = (enum process_sort)i;
            return true;
        }
    }
    return false;
}

/* Types that have a version have it behind their name. */
static void add_version(const struct line *line, struct process_row *row)
{
    uint64_t version;
    if (line_number(line, 8, &version) && version <= UINT32_MAX) {
        const size_t length = strlen(row->type);
        (void)snprintf(row->type + length, sizeof row->type - length, " v%" PRIu64, version);
    }
}

static bool read_row(const struct line *line, struct process_row *row)
{
    return line_pid(line, 1, &row->pid) && line_text(line, 2, row->type, TYPE_TEXT_SIZE) &&
           line_text(line, 3, row->state, sizeof row->state) &&
           line_number(line, 4, &row->mailbox) && line_number(line, 5, &row->steps) &&
           line_number(line, 6, &row->run_ns) && line_number(line, 7, &row->age_ns);
}

bool row_read(const struct line *line, struct process_row *row)
{
    const bool makes_sense = read_row(line, row);
    if (makes_sense) {
        add_version(line, row);
        row->supervisor = 0;
        (void)line_pid(line, 9, &row->supervisor);
    }
    return makes_sense;
}

/* `-` in place of none: a column that is empty is hard to tell from none. */
static bool read_address(const struct line *line, size_t field, char address[ADDRESS_TEXT_SIZE])
{
    if (!line_text(line, field, address, ADDRESS_TEXT_SIZE)) {
        return false;
    }
    if (address[0] == '\0') {
        copy_text(address, ADDRESS_TEXT_SIZE, "-");
    }
    return true;
}

bool socket_row_read(const struct line *line, struct socket_row *row)
{
    return line_pid(line, 1, &row->socket) && line_pid(line, 2, &row->owner) &&
           line_text(line, 3, row->type, sizeof row->type) &&
           line_text(line, 4, row->state, sizeof row->state) && read_address(line, 5, row->local) &&
           read_address(line, 6, row->peer) && line_number(line, 7, &row->bytes_in) &&
           line_number(line, 8, &row->bytes_out) && line_number(line, 9, &row->queued) &&
           line_number(line, 10, &row->idle_ns);
}

static bool take_line(const struct line *line, size_t limit, struct process_page *page)
{
    if (line_is(line, "process")) {
        return page->count < limit && row_read(line, &page->rows[page->count++]);
    }
    if (line_is(line, "seen")) {
        return line_number(line, 1, &page->live);
    }
    if (line_is(line, "more")) {
        return line_pid(line, 1, &page->more);
    }
    return true;
}

static enum client_result read_answer(struct client *client, size_t limit,
                                      struct process_page *page)
{
    struct line line;
    enum client_result result;
    page->count = 0;
    page->live = 0;
    page->more = 0;
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        if (!take_line(&line, limit, page)) {
            return CLIENT_BROKEN;
        }
    }
    return result;
}

enum client_result page_read(struct client *client, const struct process_filter *filter,
                             uint64_t after, size_t limit, struct process_page *page)
{
    /* One byte more than names have, so that a longer one is not taken for its beginning. */
    char type[TYPE_TEXT_SIZE + 1] = "";
    if (filter->type != NULL) {
        copy_text(type, sizeof type, filter->type);
        make_printable(type); /* a line must stay one */
    }
    client_ask(client, "processes pid %016" PRIx64 " %zu %s%s%s", after, limit,
               filter->state != NULL ? filter->state : "any", filter->type != NULL ? " " : "",
               type);
    return read_answer(client, limit, page);
}

enum client_result page_read_largest(struct client *client, enum process_sort sort, size_t limit,
                                     struct process_page *page)
{
    client_ask(client, "processes %s 0 %zu", sort_name(sort), limit);
    return read_answer(client, limit, page);
}
