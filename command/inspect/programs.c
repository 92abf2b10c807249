/* SPDX-License-Identifier: MIT */
/* Which programs can be inspected, and which of them is meant. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <skua/inspect.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/format.h"
#include "command/inspect/client.h"
#include "command/support.h"

/* A folder of sockets. */
struct place {
    char folder[PATH_MAX];
    bool may_clean; /* it is this user's */
};

/* A program with inspection, by the name of its socket. */
struct address {
    const struct place *place;
    uint64_t process;
    uint64_t runtime; /* 0: any, in what the user wants */
};

enum { LISTED_MAX = 32 };

/* What a look at the folders has found. */
struct search {
    const char *command;
    struct place here;      /* where a program would be that is started as this command was */
    struct place elsewhere; /* where it would be without XDG_RUNTIME_DIR */
    struct address wanted;  /* all zero: any */
    size_t count;
    struct address found[LISTED_MAX]; /* the first of them */
    int error;                        /* why the last one has no connection; 0: it has */
};

/* <process id>, or <process id>.<number of the runtime>, or nothing of the kind. */
static bool parse_address(const char *text, struct address *address)
{
    char process[24];
    const size_t length = strcspn(text, ".");
    if (length >= sizeof process) {
        return false;
    }
    memcpy(process, text, length);
    process[length] = '\0';
    address->runtime = 0;
    return parse_number(process, 1, INT32_MAX, &address->process) &&
           (text[length] == '\0' ||
            parse_number(text + length + 1, 1, UINT32_MAX, &address->runtime));
}

static bool is_wanted(const struct search *search, const struct address *address)
{
    const struct address *wanted = &search->wanted;
    return wanted->process == 0 || (wanted->process == address->process &&
                                    (wanted->runtime == 0 || wanted->runtime == address->runtime));
}

/* What a program leaves that has crashed. A child that it had made without a new program may still
 * hold the socket open, so that connections are accepted and nobody answers. */
static bool is_left_behind(const char *path, const struct address *address)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISSOCK(status.st_mode) &&
           kill((pid_t)address->process, 0) != 0 && errno == ESRCH;
}

static bool connect_to(const struct search *search, const struct address *address,
                       struct client *client)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%" PRIu64 ".%" PRIu64, address->place->folder, address->process,
             address->runtime);
    if (address->place->may_clean && is_left_behind(path, address)) {
        unlink(path);
        errno = ENOENT;
        return false;
    }
    return client_connect(client, search->command, path);
}

/* Says hello: the program tells its name. */
static enum client_result greet(struct client *client)
{
    struct line line;
    enum client_result result;
    bool told = false;
    client_ask(client, "hello");
    while ((result = client_read(client, &line)) == CLIENT_LINE) {
        told |= line_is(&line, "program") && line_number(&line, 1, &client->process) &&
                line_number(&line, 2, &client->runtime) &&
                line_text(&line, 3, client->name, sizeof client->name);
    }
    return result == CLIENT_END && !told ? CLIENT_BROKEN : result;
}

/* Counts it, unless nobody listens there. */
static void note(struct search *search, const struct address *address)
{
    struct client client;
    int error = 0;
    if (connect_to(search, address, &client)) {
        client_close(&client);
    } else if (errno == ECONNREFUSED || errno == ENOENT) {
        return;
    } else {
        error = errno;
    }
    search->error = error;
    if (search->count < LISTED_MAX) {
        search->found[search->count] = *address;
    }
    search->count++;
}

/* Sockets in somebody else's folder could be anybody's, and so could what a link leads to. Root may
 * look at the programs of others, and removes nothing there. */
static bool may_look(struct place *place)
{
    struct stat status;
    if (lstat(place->folder, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return false;
    }
    place->may_clean = status.st_uid == geteuid();
    return place->may_clean || geteuid() == 0;
}

static void note_all(struct search *search, const struct place *place, DIR *folder)
{
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        struct address address;
        if (parse_address(entry->d_name, &address) && address.runtime != 0 &&
            is_wanted(search, &address)) {
            address.place = place;
            note(search, &address);
        }
    }
}

static int find_here(struct search *search)
{
    struct place *here = &search->here;
    const int length = skua_inspect_directory(here->folder, sizeof here->folder);
    if (length < 0 || (size_t)length >= sizeof here->folder) {
        return failure(search->command, "the path of the inspector directory is too long");
    }
    DIR *folder = opendir(here->folder);
    if (folder == NULL) {
        return errno == ENOENT
                   ? 0
                   : failure(search->command, "cannot open %s: %s", here->folder, strerror(errno));
    }
    const bool may = may_look(here);
    if (may) {
        note_all(search, here, folder);
    }
    closedir(folder);
    return may ? 0
               : failure(search->command, "%s is a symbolic link or belongs to another user",
                         here->folder);
}

/* Programs of cron and of services. If the folder is not this user's, neither is what is in it: no
 * reason for a complaint. */
static void find_elsewhere(struct search *search)
{
    struct place *elsewhere = &search->elsewhere;
    snprintf(elsewhere->folder, sizeof elsewhere->folder, "/tmp/skua-%u", (unsigned)geteuid());
    if (strcmp(elsewhere->folder, search->here.folder) == 0) {
        return;
    }
    DIR *folder = opendir(elsewhere->folder);
    if (folder != NULL) {
        if (may_look(elsewhere)) {
            note_all(search, elsewhere, folder);
        }
        closedir(folder);
    }
}

/* One line with all that could be meant. */
static int ask_for_choice(const struct search *search)
{
    struct client client;
    fprintf(stderr,
            "skua %s: several programs can be inspected; choose one with -p:", search->command);
    for (size_t i = 0; i < search->count && i < LISTED_MAX; i++) {
        const struct address *address = &search->found[i];
        const char *name = "does not answer";
        if (connect_to(search, address, &client)) {
            if (greet(&client) == CLIENT_END) {
                name = client.name;
            }
            client_close(&client);
        }
        fprintf(stderr, "%s %" PRIu64 ".%" PRIu64 " (%s)", i > 0 ? "," : "", address->process,
                address->runtime, name);
    }
    fprintf(stderr, "%s\n", search->count > LISTED_MAX ? ", and more" : "");
    return STATUS_USAGE;
}

static int open_found(struct search *search, struct client *client)
{
    if (search->error == 0 && !connect_to(search, &search->found[0], client)) {
        search->error = errno;
    }
    if (search->error != 0) {
        return failure(search->command, "cannot connect to program %" PRIu64 ": %s",
                       search->found[0].process,
                       search->error == EAGAIN ? "it does not answer" : strerror(search->error));
    }
    const enum client_result result = greet(client);
    if (result != CLIENT_END) {
        client_close(client);
        return client_failure(client, result);
    }
    return 0;
}

int client_open(struct client *client, const char *command, const char *wanted)
{
    struct search search = {.command = command};
    if (wanted != NULL && !parse_address(wanted, &search.wanted)) {
        return usage_error(command, "invalid program '%s': -p takes a process id, or PID.N",
                           wanted);
    }
    const int status = find_here(&search);
    if (status != 0) {
        return status;
    }
    find_elsewhere(&search);
    if (search.count == 0) {
        return wanted != NULL ? failure(command, "cannot find program %s", wanted)
                              : failure(command, "cannot find a program to inspect (start one with "
                                                 "SKUA_INSPECT=1 or skua run)");
    }
    return search.count > 1 ? ask_for_choice(&search) : open_found(&search, client);
}
