/* SPDX-License-Identifier: MIT */
#include "inspect/symbol.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

/* Of a larger table only the beginning is read: somebody waits for the line. */
#define SYMBOLS_MAX ((uint64_t)1 << 20)
#define CHUNK       64

/* The program or a library, and the address that is looked up in it. */
struct object {
    uintptr_t address;
    uintptr_t base; /* what is 0 in its file */
    const ElfW(Phdr) * segments;
    uint16_t segment_count;
    char path[PATH_MAX]; /* to open it by */
    const char *name;    /* to show */
};

/* Where its file has a table of symbols. */
struct table {
    int fd;
    uint64_t symbols;
    uint64_t count;
    uint64_t names;
    uint64_t names_size;
};

struct symbol {
    char name[TEXT_NAME_MAX + 1]; /* empty: not found */
    uintptr_t begin;              /* in the file */
};

/* ---- which object ---- */

static bool is_inside(const struct dl_phdr_info *info, uintptr_t address)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= begin && address - begin < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* For dl_iterate_phdr. The program itself has no name there. */
static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct object *object = arg;
    (void)size;
    if (!is_inside(info, object->address)) {
        return 0;
    }
    const bool is_program = info->dlpi_name == NULL || info->dlpi_name[0] == '\0';
    object->base = info->dlpi_addr;
    object->segments = info->dlpi_phdr;
    object->segment_count = info->dlpi_phnum;
    (void)snprintf(object->path, sizeof object->path, "%s",
                   is_program ? "/proc/self/exe" : info->dlpi_name);
    object->name = is_program ? program_invocation_short_name : last_part(object->path);
    return 1;
}

/* ---- its file ---- */

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return offset <= INT64_MAX - size && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* Whether the file is what was loaded: it may have been replaced since. */
static bool is_same(int fd, const ElfW(Ehdr) * header, const struct object *object)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_shentsize != sizeof(ElfW(Shdr)) ||
        header->e_phnum != object->segment_count) {
        return false;
    }
    for (uint16_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        if (!read_at(fd, &segment, sizeof segment, header->e_phoff + i * sizeof segment) ||
            memcmp(&segment, &object->segments[i], sizeof segment) != 0) {
            return false;
        }
    }
    return true;
}

static bool read_section(int fd, const ElfW(Ehdr) * header, uint32_t index, ElfW(Shdr) * section)
{
    return index < header->e_shnum &&
           read_at(fd, section, sizeof *section, header->e_shoff + index * sizeof *section);
}

/* The table of all symbols or, in a file that was stripped, of the exported ones. */
static bool find_table(int fd, const ElfW(Ehdr) * header, struct table *table)
{
    ElfW(Shdr) section;
    ElfW(Shdr) symbols = {.sh_type = SHT_NULL};
    for (uint32_t i = 0; read_section(fd, header, i, &section); i++) {
        if (section.sh_type == SHT_SYMTAB ||
            (section.sh_type == SHT_DYNSYM && symbols.sh_type == SHT_NULL)) {
            symbols = section;
        }
    }
    if (symbols.sh_type == SHT_NULL || symbols.sh_entsize != sizeof(ElfW(Sym)) ||
        !read_section(fd, header, symbols.sh_link, &section) || section.sh_type != SHT_STRTAB) {
        return false;
    }
    const uint64_t count = symbols.sh_size / sizeof(ElfW(Sym));
    *table = (struct table){
        .fd = fd,
        .symbols = symbols.sh_offset,
        .count = count < SYMBOLS_MAX ? count : SYMBOLS_MAX,
        .names = section.sh_offset,
        .names_size = section.sh_size,
    };
    return true;
}

/* ---- its symbols ---- */

static bool is_function_at(const ElfW(Sym) * symbol, uintptr_t place)
{
    const unsigned type = symbol->st_info & 0xf;
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           place >= symbol->st_value && place - symbol->st_value < symbol->st_size;
}

/* A function may have several names; the one with the fewest underscores is for people. */
static void consider(const struct table *table, const ElfW(Sym) * candidate, struct symbol *symbol)
{
    char name[sizeof symbol->name] = {0};
    if (candidate->st_name >= table->names_size) {
        return;
    }
    const uint64_t left = table->names_size - candidate->st_name;
    const size_t size = left < sizeof name - 1 ? (size_t)left : sizeof name - 1;
    if (read_at(table->fd, name, size, table->names + candidate->st_name) && name[0] != '\0' &&
        (symbol->name[0] == '\0' || strspn(name, "_") < strspn(symbol->name, "_"))) {
        memcpy(symbol->name, name, sizeof name);
        symbol->begin = candidate->st_value;
    }
}

static NOINLINE void search(const struct table *table, uintptr_t place, struct symbol *symbol)
{
    ElfW(Sym) chunk[CHUNK];
    for (uint64_t i = 0; i < table->count; i += CHUNK) {
        const size_t count = table->count - i < CHUNK ? (size_t)(table->count - i) : CHUNK;
        if (!read_at(table->fd, chunk, count * sizeof *chunk, table->symbols + i * sizeof *chunk)) {
            return;
        }
        for (size_t k = 0; k < count; k++) {
            if (is_function_at(&chunk[k], place)) {
                consider(table, &chunk[k], symbol);
            }
        }
    }
}

static void find_symbol(const struct object *object, uintptr_t place, struct symbol *symbol)
{
    ElfW(Ehdr) header;
    struct table table;
    const int fd = open(object->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return; /* as for the functions of the kernel */
    }
    if (read_at(fd, &header, sizeof header, 0) && is_same(fd, &header, object) &&
        find_table(fd, &header, &table)) {
        search(&table, place, symbol);
    }
    (void)close(fd);
}

void symbol_add(struct text *text, const void *address, bool is_return)
{
    struct symbol symbol = {.name = ""};
    struct object object = {.address = (uintptr_t)address - is_return};
    if (dl_iterate_phdr(look_at, &object) == 0) {
        text_add(text, "0x%" PRIxPTR, (uintptr_t)address);
        return;
    }
    const uintptr_t place = (uintptr_t)address - object.base;
    find_symbol(&object, place - is_return, &symbol);
    if (symbol.name[0] != '\0') {
        text_add_name(text, symbol.name);
        text_add(text, "+");
    }
    text_add(text, "0x%" PRIxPTR " (", place - symbol.begin);
    text_add_name(text, object.name);
    text_add(text, ")");
}
