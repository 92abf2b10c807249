/* SPDX-License-Identifier: MIT */
/* Lists of processes, as the inspector gives them. */
#include <inttypes.h>
#include <string.h>

#include "inspect.h"

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

bool row_read(const struct line *line, struct process_row *row)
{
    return line_pid(line, 1, &row->pid) && line_text(line, 2, row->type, sizeof row->type) &&
           line_text(line, 3, row->state, sizeof row->state) &&
           line_number(line, 4, &row->mailbox) && line_number(line, 5, &row->steps) &&
           line_number(line, 6, &row->run_ns) && line_number(line, 7, &row->age_ns);
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

enum client_result page_read(struct client *client, enum process_sort sort, uint64_t after,
                             size_t limit, struct process_page *page)
{
    struct line line;
    enum client_result result;
    page->count = 0;
    page->live = 0;
    page->more = 0;
    client_ask(client, "processes %s %016" PRIx64 " %zu", sort_name(sort), after, limit);
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        if (!take_line(&line, limit, page)) {
            return CLIENT_BROKEN;
        }
    }
    return result;
}
