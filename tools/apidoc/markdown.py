# SPDX-License-Identifier: MIT
"""docs/reference.md: all declarations of all headers on one page, with links between them."""

import re
import textwrap

from apidoc.layout import item_lines

WIDTH = 100
HEAD = """\
<!-- SPDX-License-Identifier: MIT -->
<!-- Written by tools/reference from the comments of the headers: change those, then run
     tools/reference. -->
# Reference

Every public declaration, header by header. `#include <skua/skua.h>` includes them all. The same
text is in the manual pages: `man skua_process_submit`, `man skua-process` for a whole header.

What the words mean: a function *takes* what it owns from then on, also when it returns an error;
*borrows* what it uses only during the call; *gives* what the caller owns. *Threads* says who may
call it: `any` thread, several at once; a `worker`, that is, from inside of a step (or init); or
what else is written there. *Returns* lists the errors of the call itself; those that come later, with a
completion, are in the text.
"""
WORDS = re.compile(r"(`[^`]+`)|\*([a-z]+)\*|\b(?:skua|SKUA)_\w*[A-Za-z0-9]\b|skua/(\w+)\.h\b")


def anchor(name):
    """Names that differ in case only must not share one."""
    return name if name.islower() else f"constant-{name.lower()}"


def header_anchor(header):
    return f"header-{header.name}"


def plain(text):
    return re.sub(r"([*<\[\]|])", r"\\\1", text)


class Writer:
    def __init__(self, index):
        self.index = index
        self.known = {header.name for header in index.headers}
        self.blocks = []

    def marked(self, text, own=()):
        done, position = "", 0
        for match in WORDS.finditer(text):
            done += plain(text[position:match.start()]) + self.mark(match, own)
            position = match.end()
        return done + plain(text[position:])

    def mark(self, match, own):
        quoted, stressed, header = match.groups()
        if quoted:
            return quoted
        if stressed:
            return f"*{stressed}*"
        name = match.group()
        if header:
            return f"[`{name}`](#header-{header})" if header in self.known else f"`{name}`"
        if name in own or name not in self.index.names:
            return f"`{name}`"
        return f"[`{name}`](#{self.target(name)})"

    def target(self, name):
        """The place where a name is explained: enumerators are within their enum."""
        if name in self.index.items or name in self.index.errors:
            return anchor(name)
        for item in self.index.items.values():
            if any(member.name == name for member in item.members):
                return anchor(item.name)
        raise KeyError(name)

    def add(self, block):
        self.blocks.append(block)

    def add_text(self, text, own, start=""):
        self.add(textwrap.fill(self.marked(text, own), WIDTH, initial_indent=start,
                               subsequent_indent=" " * len(start), break_long_words=False,
                               break_on_hyphens=False))

    def add_paragraphs(self, paragraphs, own=()):
        for paragraph in paragraphs:
            if paragraph.literal:
                self.add(f"```\n{paragraph.text}\n```")
            else:
                self.add_text(paragraph.text, own)

    def page(self):
        self.blocks = [HEAD.rstrip()]
        self.add(self.contents())
        for header in self.index.headers:
            self.add_header(header)
        return "\n\n".join(self.blocks) + "\n"

    def contents(self):
        rows = ["| header | about |", "|---|---|"]
        for header in self.index.headers:
            about = self.marked(header.head.title)
            rows.append(f"| [`skua/{header.name}.h`](#{header_anchor(header)}) | {about} |")
        return "\n".join(rows)

    def add_header(self, header):
        self.add(f'<a id="{header_anchor(header)}"></a>\n\n## skua/{header.name}.h')
        self.add_paragraphs(header.head.paragraphs)
        names = [f"[`{item.name}`](#{anchor(item.name)})" for item in header.items if item.name]
        if names:
            self.add(textwrap.fill(" · ".join(names), WIDTH, break_long_words=False,
                                   break_on_hyphens=False))
        section = ""
        for entry in header.entries:
            if entry.section != section:
                section = entry.section
                self.add(f"### {section[:1].upper()}{section[1:]}")
            self.add_entry(entry, "####" if section else "###")

    def add_entry(self, entry, level):
        names = [item.name for item in entry.items if item.name]
        title = ", ".join(names) if names else "Constants"
        anchors = "".join(f'<a id="{anchor(name)}"></a>' for name in names)
        self.add(f"{anchors}\n\n{level} {title}" if anchors else f"{level} {title}")
        shown = [item for item in entry.items if not (item.kind == "enum" and item.generated)]
        if shown:
            lines = [line for item in shown for line in item_lines(item, WIDTH)]
            self.add("\n".join(["```c", *lines, "```"]))
        self.add_paragraphs(entry.comment.paragraphs, names)
        self.add_keys(entry, names)
        for item in entry.items:
            if item not in shown:
                self.add(generated_table(item))

    def add_keys(self, entry, names):
        bullets = [textwrap.fill(f"**{key}**: {self.marked(text, names)}", WIDTH,
                                 initial_indent="- ", subsequent_indent="  ",
                                 break_long_words=False, break_on_hyphens=False)
                   for key, text in entry.comment.keys.items()]
        if bullets:
            self.add("\n".join(bullets))


def generated_table(item):
    """Enumerators that come from a table of the header, each with a place of its own."""
    rows = ["| name | value | meaning |", "|---|---|---|"]
    for member in item.members:
        value = member.text.partition(" = ")[2]
        rows.append(f'| <a id="{anchor(member.name)}"></a>`{member.name}` | {value} | '
                    f"{plain(member.comment.prose)} |")
    return "\n".join(rows)


def page(index):
    return Writer(index).page()
