# SPDX-License-Identifier: MIT
"""Declarations as C text that fits into a given width."""

import textwrap

INDENT = "    "


def function_lines(item, width):
    """The declaration, broken at its commas."""
    if len(item.text) <= width or not item.parameters:
        return [item.text]
    lines = [item.text[:item.text.index("(") + 1]]
    last = len(item.parameters) - 1
    for position, parameter in enumerate(item.parameters):
        part = parameter + (");" if position == last else ",")
        joined = lines[-1] + ("" if lines[-1].endswith("(") else " ") + part
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(2 * INDENT + part)
    return lines


def compound_lines(item, width):
    """A struct or an enum with the comments of its members."""
    name = item.name if item.name else ""
    lines = [f"{item.tag} {name}".rstrip() + " {"]
    lines += member_lines(item.members, "," if item.tag == "enum" else ";", INDENT, width)
    return [*lines, f"}} {name};" if item.tag == "typedef struct" else "};"]


def member_lines(members, separator, indent, width):
    column = 1 + max((len(indent + member.text + separator) for member in members
                      if member.behind), default=0)
    for member in members:
        text = indent + member.text + separator
        comment = member.comment
        if comment and member.behind and column + len(comment.whole) + 6 <= width:
            yield f"{text:{column}}/* {comment.whole} */"
            continue
        if comment:
            yield from comment_lines(comment, indent, width)
        if member.members:
            yield f"{indent}{member.text} {{"
            yield from member_lines(member.members, separator, indent + INDENT, width)
            yield f"{indent}}} {member.name}".rstrip() + separator
        else:
            yield text


def comment_lines(comment, indent, width):
    text = " ".join([comment.prose] + [f"{key}: {value}" for key, value in comment.keys.items()])
    lines = textwrap.wrap(text, width - len(indent) - 6, break_on_hyphens=False)
    for number, line in enumerate(lines):
        start = "/* " if number == 0 else " * "
        end = " */" if number == len(lines) - 1 else ""
        yield indent + start + line + end


def item_lines(item, width):
    if item.kind in ("function", "callback"):
        return function_lines(item, width)
    if item.kind in ("struct", "enum"):
        return compound_lines(item, width)
    return [item.text]
