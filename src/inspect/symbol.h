/* SPDX-License-Identifier: MIT */
/* The names of functions, static ones included, for people who read a backtrace. They come from the
 * symbol tables in the files of the program and its libraries, read a little at a time when
 * somebody asks. The dynamic linker knows only those that are exported, and its lock may be held by
 * the very thread whose stack is shown. */
#ifndef SKUA_INSPECT_SYMBOL_H
#define SKUA_INSPECT_SYMBOL_H

#include "inspect/text.h"

/* Appends `function+0x1f (object)`; `0x4257 (object)`, the place in the file, for addr2line, if the
 * name is not known; or the address alone. If it is an address to return to, the function is the
 * one that made the call. Not for signal handlers. */
void symbol_add(struct text *text, const void *address, bool is_return);

#endif
