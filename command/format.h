/* SPDX-License-Identifier: MIT */
/* Numbers and times for people, and text that is fit to be printed. */
#ifndef COMMAND_FORMAT_H
#define COMMAND_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* A short text, to be used at once: printf("%s", format_time(ns).text). */
struct formatted {
    char text[24];
};

/* 0, 350ns, 12.3ms, 4.5s, 3m12s, 5h7m, 2d4h. */
struct formatted format_time(uint64_t ns);

/* 0, 0.3, 7, 1234, 12.3k, 340k, 1.2M. */
struct formatted format_count(double count);

/* 0%, 3.4%, 97%. */
struct formatted format_percent(double part);

/* How many of the `size` bytes at `text` are its first character in UTF-8; 0 if there is none, or
 * none to print on a terminal. */
size_t character_size(const char *text, size_t size);

/* Replaces control characters, and what is not UTF-8, by `?`. */
void make_printable(char *text);

/* Copies as much as fits into `size` bytes with a zero at their end, and no half characters. */
void copy_text(char *to, size_t size, const char *from);

/* How many columns of a terminal a text takes, if each character takes one. */
size_t text_columns(const char *text);

/* The width to give to printf's `%-*s`, which counts bytes, for so many columns. */
int text_width(const char *text, size_t columns);

#endif
