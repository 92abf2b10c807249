/* SPDX-License-Identifier: MIT */
/* `skua run`: whether a file holds what its ELF header says. The loader believes that header: a
 * file that is shorter, such as a copy that was cut off, would end the command by a signal. */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "command/run/run.h"

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Phdr) elf_segment;

static const char damaged[] = "is damaged or incomplete";

/* The header of this program, by the linker: what a module must have been compiled for. */
extern const elf_header __ehdr_start __attribute__((visibility("hidden")));

/* Whether `length` bytes from `offset` on are in the file. */
static bool is_within(uint64_t offset, uint64_t length, uint64_t file_size)
{
    return length <= file_size && offset <= file_size - length;
}

/* A part of the file that is within it. */
static bool read_part(int fd, uint64_t offset, void *to, size_t size)
{
    return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

static bool is_for_this_machine(const elf_header *header)
{
    return header->e_ident[EI_CLASS] == __ehdr_start.e_ident[EI_CLASS] &&
           header->e_ident[EI_DATA] == __ehdr_start.e_ident[EI_DATA] &&
           header->e_machine == __ehdr_start.e_machine;
}

/* Whether all that is to be loaded is in the file. */
static bool has_segments(int fd, const elf_header *header, uint64_t file_size)
{
    elf_segment segment;
    const uint64_t table_size = (uint64_t)header->e_phnum * sizeof segment;
    if (header->e_phentsize != sizeof segment ||
        !is_within(header->e_phoff, table_size, file_size)) {
        return false;
    }
    for (uint64_t i = 0; i < header->e_phnum; i++) {
        if (!read_part(fd, header->e_phoff + i * sizeof segment, &segment, sizeof segment)) {
            return false;
        }
        if (segment.p_type == PT_LOAD &&
            !is_within(segment.p_offset, segment.p_filesz, file_size)) {
            return false;
        }
    }
    return true;
}

/* The table of sections, mostly the end of the file, is not needed: it only tells that this end is
 * there. */
static bool has_sections(const elf_header *header, uint64_t file_size)
{
    return is_within(header->e_shoff, (uint64_t)header->e_shnum * header->e_shentsize, file_size);
}

const char *elf_fault(int fd, uint64_t file_size)
{
    elf_header header;
    char magic[SELFMAG];
    if (!is_within(0, sizeof magic, file_size) || !read_part(fd, 0, magic, sizeof magic) ||
        memcmp(magic, ELFMAG, SELFMAG) != 0) {
        return "is not a shared object; a module is compiled with -shared -fPIC";
    }
    if (!is_within(0, sizeof header, file_size) || !read_part(fd, 0, &header, sizeof header)) {
        return damaged;
    }
    if (!is_for_this_machine(&header)) {
        return "was compiled for another machine";
    }
    return has_segments(fd, &header, file_size) && has_sections(&header, file_size) ? NULL
                                                                                    : damaged;
}
