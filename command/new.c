/* SPDX-License-Identifier: MIT */
/* The command `skua new`: writes a module to begin with, which compiles as it is.
 *
 * The files come from command/template, as arrays in command_template.h. Words between @ are
 * replaced: the module's name, how to call this command, and where the headers are. For the latter
 * it looks around its own executable, so that it works in a build folder, too. */
#include <command_template.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/commands.h"
#include "command/support.h"

#define NEW "new" /* whose complaints these are */

static const char help[] =
    "usage: skua new [--task] DIR\n"
    "\n"
    "Creates a module: DIR/NAME.c and a Makefile, where NAME is the last part of DIR.\n"
    "DIR must be empty or not exist. `make run` there builds and runs it.\n"
    "\n"
    "  --task  its process is a task: a function that waits, in place of steps\n"
    "\n"
    "Example:\n"
    "  skua new hello && make -C hello run\n";

struct module {
    const char *directory;
    bool is_task;
    char name[NAME_MAX + 1];
    char skua[PATH_MAX + 2];         /* how to call this command, for make and the shell */
    char skua_cflags[PATH_MAX + 80]; /* for the Makefile: how the compiler finds the headers */
};

/* ---- the name ---- */

static bool is_name(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    const size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789_-");
    return text[0] != '\0' && strchr(letters, text[0]) != NULL && text[length] == '\0';
}

/* Takes the last part of the path, without slashes at its end. Returns 0 or the status. */
static int choose_name(struct module *module)
{
    size_t end = strlen(module->directory);
    while (end > 0 && module->directory[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && module->directory[begin - 1] != '/') {
        begin--;
    }
    const int length = (int)(end - begin);
    /* Room is left for what follows the name of a file. */
    if (snprintf(module->name, sizeof module->name, "%.*s", length, module->directory + begin) >
            NAME_MAX - 8 ||
        !is_name(module->name)) {
        return usage_error(NEW,
                           "invalid module name '%.*s': use letters, digits, _ and -, with a "
                           "letter or _ first",
                           length, module->directory + begin);
    }
    return 0;
}

/* ---- this command and its headers ---- */

/* Is there a `skua` in PATH, and is it this one? */
static bool is_in_path(const char *executable)
{
    const char *folders = getenv("PATH");
    char *path = strdup(folders != NULL ? folders : "");
    char *rest = path;
    bool same = false;
    for (char *part = path; part != NULL && (part = strsep(&rest, ":")) != NULL;) {
        char candidate[PATH_MAX];
        char resolved[PATH_MAX];
        const int length = snprintf(candidate, sizeof candidate, "%s/skua", part);
        if (length < (int)sizeof candidate && access(candidate, X_OK) == 0) {
            same = realpath(candidate, resolved) != NULL && strcmp(resolved, executable) == 0;
            break; /* only the first one counts */
        }
    }
    free(path);
    return same;
}

/* The nearest folder above `executable` that has the headers: the prefix of an installed command,
 * or the top of the source tree. */
static bool find_headers(const char *executable, char folder[PATH_MAX])
{
    char header[PATH_MAX + 32];
    (void)snprintf(folder, PATH_MAX, "%s", executable);
    while (strrchr(folder, '/') != NULL) {
        *strrchr(folder, '/') = '\0';
        (void)snprintf(header, sizeof header, "%s/include/skua/module.h", folder);
        if (access(header, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

static void choose_cflags(struct module *module, const char *executable)
{
    char folder[PATH_MAX];
    char *cflags = module->skua_cflags;
    const size_t size = sizeof module->skua_cflags;
    if (!find_headers(executable, folder)) {
        (void)snprintf(cflags, size, "$(shell pkg-config --cflags skua)");
    } else if (strcmp(executable + strlen(folder), "/bin/skua") == 0) {
        /* Installed: pkg-config, if it knows Skua, so that the Makefile fits elsewhere, too. */
        (void)snprintf(cflags, size,
                       "$(or $(shell pkg-config --cflags skua 2>/dev/null),-I'%s/include')",
                       folder);
    } else {
        (void)snprintf(cflags, size, "-I'%s/include'", folder);
    }
}

static int find_installation(struct module *module)
{
    /* As it was called. Not by /proc/self/exe: not every root directory has a /proc. */
    const char *called = (const char *)getauxval(AT_EXECFN);
    char executable[PATH_MAX];
    if (realpath(called, executable) == NULL) {
        return failure(NEW, "cannot find the skua executable: %s", strerror(errno));
    }
    const bool found = is_in_path(executable);
    const char *quote = !found && strchr(executable, ' ') != NULL ? "'" : "";
    (void)snprintf(module->skua, sizeof module->skua, "%s%s%s", quote, found ? "skua" : executable,
                   quote);
    choose_cflags(module, executable);
    return 0;
}

/* ---- the files ---- */

/* Writes a template with its words replaced. */
static void fill_in(FILE *file, const char *text, const struct module *module)
{
    const struct {
        const char *word;
        const char *value;
    } words[] = {
        {"@NAME@", module->name},
        {"@SKUA@", module->skua},
        {"@SKUA_CFLAGS@", module->skua_cflags},
    };
    /* NOLINTNEXTLINE(clang-analyzer-core.*): a word that was found ends before the text does. */
    while (*text != '\0') {
        size_t i = 0;
        while (i < 3 && strncmp(text, words[i].word, strlen(words[i].word)) != 0) {
            i++;
        }
        if (i < 3) {
            fputs(words[i].value, file);
            text += strlen(words[i].word);
        } else {
            fputc(*text++, file);
        }
    }
}

static int write_file(const struct module *module, const char *name, const char *text)
{
    char path[PATH_MAX];
    errno = ENAMETOOLONG;
    const int length = snprintf(path, sizeof path, "%s/%s", module->directory, name);
    FILE *file = length < (int)sizeof path ? fopen(path, "wx") : NULL;
    if (file == NULL) {
        return failure(NEW, "%s/%s: %s", module->directory, name, strerror(errno));
    }
    fill_in(file, text, module);
    if (fclose(file) != 0) {
        return failure(NEW, "%s: %s", path, strerror(errno));
    }
    return 0;
}

static bool is_empty(DIR *directory)
{
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            return false;
        }
    }
    return true;
}

static int make_directory(const char *path)
{
    if (mkdir(path, 0777) == 0) {
        return 0;
    }
    DIR *directory = errno == EEXIST ? opendir(path) : NULL;
    if (directory == NULL) {
        return failure(NEW, "%s: %s", path, strerror(errno));
    }
    const bool empty = is_empty(directory);
    (void)closedir(directory);
    return empty ? 0 : failure(NEW, "%s is not empty; nothing written", path);
}

static int write_files(const struct module *module)
{
    char source[NAME_MAX + 4];
    (void)snprintf(source, sizeof source, "%s.c", module->name);
    int status = make_directory(module->directory);
    if (status == 0) {
        status = write_file(module, source, module->is_task ? template_task_c : template_module_c);
    }
    if (status == 0) {
        status = write_file(module, "Makefile", template_Makefile);
    }
    if (status == 0) {
        status = write_file(module, ".gitignore", template_gitignore);
    }
    return status;
}

static void tell_what_next(const struct module *module)
{
    printf("Created the module %s/%s.c. Next:\n\n"
           "  cd %s\n"
           "  make run     # build it and run it until Ctrl-C\n"
           "  make test    # run it in the simulator, in virtual time\n\n"
           "While it runs, watch it with `%s top` in another terminal.\n",
           module->directory, module->name, module->directory, module->skua);
}

int new_command(int argc, char **argv)
{
    struct module module = {.directory = NULL};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--task") == 0) {
            module.is_task = true;
        } else if (argv[i][0] == '-') {
            return usage_error(NEW, "unknown option '%s'; see --help", argv[i]);
        } else if (module.directory != NULL) {
            return usage_error(NEW, "more than one directory; usage: skua new [--task] DIR");
        } else {
            module.directory = argv[i];
        }
    }
    if (module.directory == NULL) {
        return usage_error(NEW, "missing directory; usage: skua new [--task] DIR");
    }
    int status = choose_name(&module);
    if (status == 0) {
        status = find_installation(&module);
    }
    if (status == 0) {
        status = write_files(&module);
    }
    if (status == 0) {
        tell_what_next(&module);
    }
    return status;
}
