/* SPDX-License-Identifier: MIT */
/* `skua info`: all there is to know of one process. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command/commands.h"
#include "command/format.h"
#include "command/inspect/inspect.h"
#include "command/support.h"

static int help(void)
{
    fputs("usage: skua info PID [-p PROGRAM]\n\n"
          "Shows one process of a running program, one line per detail.\n"
          "PID is what `skua ps` shows; leading zeros may be left out.\n\n" HELP_PROGRAM
          "\nExamples:\n"
          "  skua info 0001000000000001\n",
          stdout);
    return 0;
}

static void print_row(const struct process_row *row)
{
    printf("pid: %016" PRIx64 "\n", row->pid);
    printf("type: %s\n", row->type);
    printf("state: %s\n", row->state);
    printf("mailbox: %" PRIu64 "\n", row->mailbox);
    printf("steps: %" PRIu64 "\n", row->steps);
    printf("run: %s\n", format_time(row->run_ns).text);
    printf("age: %s\n", format_time(row->age_ns).text);
}

static int show(struct client *client, uint64_t pid)
{
    struct line line;
    struct process_row row;
    enum client_result result;
    client_ask(client, "process %016" PRIx64, pid);
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        if (line_is(&line, "process")) {
            if (!row_read(&line, &row)) {
                return client_failure(client, CLIENT_BROKEN);
            }
            print_row(&row);
        } else if (line_is(&line, "detail") && line.count >= 3) {
            printf("%s: %s\n", line.field[1], line.field[2]);
        }
    }
    return result == CLIENT_END ? 0 : client_failure(client, result);
}

int info_command(int argc, char **argv)
{
    const char *command = "info";
    const char *program = NULL;
    const char *process = NULL;
    uint64_t pid;
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i])) {
            return help();
        }
        if (is_program(argv[i])) {
            if (!option_text(command, argv, &i, &program)) {
                return STATUS_USAGE;
            }
        } else if (argv[i][0] != '-' && process == NULL) {
            process = argv[i];
        } else {
            return unknown_argument(command, argv[i]);
        }
    }
    if (process == NULL) {
        return usage_error(command, "missing PID; `skua ps` lists them");
    }
    if (!parse_pid(process, &pid) || pid == 0) {
        return usage_error(command, "invalid PID '%s': a PID has up to 16 hexadecimal digits",
                           process);
    }
    struct client client;
    int status = client_open(&client, command, program);
    if (status == 0) {
        status = finish_output(command, show(&client, pid));
        client_close(&client);
    }
    return status;
}
