# SPDX-License-Identifier: MIT
"""What is missing in the comments of the headers."""

from apidoc.index import NAME

# Functions that take none of these, and are short enough to be inline, may be called from anywhere.
SHARED = ("skua_runtime *", "skua_context *")
KINDS = {"function": "function", "callback": "function type", "struct": "type", "opaque": "type",
         "enum": "enum", "macro": "macro", "table": "macro"}


def find_defects(index):
    """Complaints, each with its place in front: "file:line: text"."""
    return [f"{header.file}:{line}: {text}" for header in index.headers
            for line, text in sorted(header_defects(index, header))]


def header_defects(index, header):
    if header.head:
        yield from unknown_names(index, header.head)
    else:
        yield 1, "the header has no comment at its head"
    for entry in header.entries:
        if entry.comment:
            yield from unknown_names(index, entry.comment)
        for item in entry.items:
            yield from item_defects(index, entry, item)


def item_defects(index, entry, item):
    name = item.name or "this enum"
    if not entry.comment:
        yield item.line, f"{KINDS[item.kind]} {name} has no comment"
    for member in all_members(item.members):
        if not member.documented:
            yield member.line, f"{member.name} of {name} has no comment"
        if member.comment and not item.generated:
            yield from unknown_names(index, member.comment)
    if entry.comment and item.kind == "callback":
        if item.result != "void" and not says_what_it_returns(entry.comment):
            yield item.line, f"function type {name} does not say what it returns"
    if entry.comment and item.kind == "function":
        if item.result == "int" and index.key(name, "Returns") is None:
            yield item.line, f"function {name} has no `Returns:`"
        if needs_threads(item) and index.key(name, "Threads") is None:
            yield item.line, f"function {name} has no `Threads:`"


def says_what_it_returns(comment):
    return "Returns" in comment.keys or "Returns" in comment.prose


def all_members(members):
    for member in members:
        if member.members:
            yield from all_members(member.members)
        else:
            yield member


def needs_threads(item):
    shares = any(kind in parameter for kind in SHARED for parameter in item.parameters)
    return shares or not item.inline


def unknown_names(index, comment):
    for name in NAME.findall(comment.whole):
        if name.startswith("SKUA_E_") and name not in index.errors and name not in index.items:
            yield comment.line, f"{name} is not in the table of errors"
        elif name.startswith("skua_") and name not in index.items:
            yield comment.line, f"{name} does not exist"
