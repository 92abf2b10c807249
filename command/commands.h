/* SPDX-License-Identifier: MIT */
/* The commands, each in a file of its name. A command gets its own name as argv[0] and
 * returns the exit status. */
#ifndef COMMAND_COMMANDS_H
#define COMMAND_COMMANDS_H

int new_command(int argc, char **argv);
int run_command(int argc, char **argv);

/* inspect/: inspect a running program. */
int ps_command(int argc, char **argv);
int sockets_command(int argc, char **argv);
int tree_command(int argc, char **argv);
int top_command(int argc, char **argv);
int stat_command(int argc, char **argv);
int info_command(int argc, char **argv);
int trace_command(int argc, char **argv);
int metrics_command(int argc, char **argv);
int reload_command(int argc, char **argv);

#endif
