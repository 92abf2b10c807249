/* SPDX-License-Identifier: MIT */
/* `skua metrics`: a running program's statistics as Prometheus reads them. */
#include <stdio.h>
#include <stdlib.h>

#include "command/commands.h"
#include "command/inspect/inspect.h"
#include "command/support.h"

/* No metrics are as long as that. */
#define TEXT_MAX ((size_t)16 << 20)

static int help(void)
{
    fputs("usage: skua metrics [-p PROGRAM]\n\n"
          "Prints the metrics of a running program in the Prometheus text format.\n\n" HELP_PROGRAM
          "\nExamples:\n"
          "  skua metrics\n"
          "  skua metrics -p 4711 >/var/lib/node_exporter/skua.prom\n",
          stdout);
    return 0;
}

/* Reads all of it before anything is printed: a reader of stdout may be slow, and half of the
 * metrics is worse than none. */
static enum client_result collect(struct client *client, FILE *out)
{
    struct line line;
    enum client_result result;
    client_ask(client, "metrics");
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        if (line_is(&line, "text")) {
            fprintf(out, "%s\n", line.count > 1 ? line.field[1] : "");
        }
        if (ftell(out) > (long)TEXT_MAX) {
            return CLIENT_BROKEN;
        }
    }
    return result;
}

static int show(struct client *client)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return failure(client->command, "out of memory");
    }
    const enum client_result result = collect(client, out);
    int status = 0;
    if (fclose(out) != 0) {
        status = failure(client->command, "out of memory");
    } else if (result != CLIENT_END) {
        status = client_failure(client, result);
    } else {
        fwrite(text, 1, size, stdout);
        status = finish_output(client->command, 0);
    }
    free(text);
    return status;
}

int metrics_command(int argc, char **argv)
{
    const char *command = "metrics";
    const char *program = NULL;
    for (int i = 1; i < argc; i++) {
        if (is_help(argv[i])) {
            return help();
        }
        if (!is_program(argv[i])) {
            return unknown_argument(command, argv[i]);
        }
        if (!option_text(command, argv, &i, &program)) {
            return STATUS_USAGE;
        }
    }
    struct client client;
    int status = client_open(&client, command, program);
    if (status == 0) {
        status = show(&client);
        client_close(&client);
    }
    return status;
}
