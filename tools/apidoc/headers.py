# SPDX-License-Identifier: MIT
"""Reads the public headers: which declarations there are, and which comment belongs to each.

A comment documents the declaration right below it and those that follow without a blank line and
without a comment of their own. Fields and enumerators have one each, above or behind them; only
`alloc_arg` may share that of `alloc`. A name with an underscore at its end is no part of the
interface, which is made of such names; nor is a header whose first sentence calls it internal. A
macro that has the name of a function is that function. It is the C of these headers that is
understood here, not all of C: what cannot be read is reported, not skipped."""

import re
from dataclasses import dataclass, field

from apidoc.comments import Comment, read_comment

TOKEN = re.compile(
    r"""/\*.*?\*/ | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' |
        [A-Za-z_]\w* | \#\# | \n | [ \t]+ | .""", re.S | re.X)
DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.S)
DEFINE = re.compile(r"#\s*define\s+(\w+)(\([^)]*\))?(.*)", re.S)
FORWARD = re.compile(r"struct \w+;")  # what it is comes later in the header
SECTION = re.compile(r"/\* -+ (.*?) -+ \*/")
INTERNAL = re.compile(r"/\* SPDX[^\n]*\n/\*[^.]*: internal\.")
BODY = re.compile(r"static inline|template <[^<>]*>\s+(SKUA_NODISCARD )?inline")
BRACKETS = re.compile(r"^SKUA_(BEGIN|END)_DECLS\s*")
COMPOUND = re.compile(r"(typedef struct|struct|enum)\b\s*(\w*)\s*\{(.*)\}\s*(\w*)\s*;$", re.S)
NO_TYPE = re.compile(r"\b(SKUA_API|SKUA_NODISCARD|static|inline|extern)\b\s*")


class Unreadable(Exception):
    def __init__(self, line, text):
        super().__init__(text)
        self.line = line


@dataclass
class Member:
    """A field or an enumerator. One that shares a comment is documented, but has none."""
    name: str
    text: str
    line: int
    comment: Comment = None
    behind: bool = False  # the comment stands behind it on its line
    documented: bool = False
    members: list = field(default_factory=list)


@dataclass
class Item:
    """One declaration. kind: function, callback, struct, opaque, enum, macro or table."""
    kind: str
    name: str
    line: int
    text: str = ""  # of functions, callbacks and macros, on one line
    result: str = ""  # the type that a function or callback returns
    parameters: list = field(default_factory=list)
    inline: bool = False
    tag: str = ""  # "typedef struct", "struct" or "enum"
    members: list = field(default_factory=list)
    generated: bool = False  # its members come from a table


@dataclass
class Entry:
    """Declarations that share a comment."""
    comment: Comment
    items: list
    section: str


@dataclass
class Header:
    name: str  # "process"
    file: str  # for complaints
    head: Comment = None
    entries: list = field(default_factory=list)

    @property
    def items(self):
        return [item for entry in self.entries for item in entry.items]


@dataclass
class Piece:
    """A comment, a directive or a declaration, as it stands in the file."""
    kind: str
    text: str
    line: int

    @property
    def end(self):
        return self.line + self.text.count("\n")


def split_pieces(text):
    """The pieces at the outermost level."""
    pieces, position, line = [], 0, 1
    while position < len(text):
        blank = re.match(r"\s+", text[position:])
        if blank:
            step = blank.end()
        else:
            piece = next_piece(text[position:], line)
            step = len(piece.text)
            if piece.kind != "brackets":
                pieces.append(piece)
        line += text.count("\n", position, position + step)
        position += step
    return pieces


def next_piece(text, line):
    if text.startswith("/*"):
        return Piece("comment", text[:text.index("*/") + 2], line)
    directive = DIRECTIVE.match(text)
    if directive:
        return Piece("directive", directive.group(), line)
    brackets = BRACKETS.match(text)
    if brackets:
        return Piece("brackets", brackets.group(), line)
    return Piece("code", text[:declaration_end(text, line)], line)


def declaration_end(text, line):
    """Up to the semicolon, or to the end of a function's body."""
    depth = 0
    is_body = BODY.match(text)
    for token in TOKEN.finditer(text):
        mark = token.group()
        depth += (mark in "({[") - (mark in ")}]") if len(mark) == 1 else 0
        if depth == 0 and (mark == ";" or (mark == "}" and is_body)):
            return token.end()
    raise Unreadable(line, "a declaration without an end")


def one_line(text):
    """Without comments, line ends and runs of spaces."""
    text = re.sub(r"/\*.*?\*/|\\\n", " ", text, flags=re.S)
    return re.sub(r"\s+", " ", text).strip()


def split_list(text, separator=","):
    """The parts between separators that are in no brackets and no strings."""
    parts, depth = [""], 0
    for token in TOKEN.finditer(text):
        mark = token.group()
        if len(mark) == 1:
            depth += (mark in "({[") - (mark in ")}]")
        if mark == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    return [part.strip() for part in parts]


# --- tables: #define SKUA_SOME_MAP(X) X(...) X(...) ---------------------------------------------

@dataclass
class Row:
    arguments: list
    about: str  # the comment behind it, or else its last argument if that is a string
    line: int


def read_rows(parameter, body, line):
    """The rows of a macro that is nothing but calls of its parameter; None for any other macro."""
    rows = []
    rest = body
    call = re.compile(rf"(?:\s|\\\n)*{parameter}(\((?:[^()\"]|\"(?:\\.|[^\"\\])*\")*\))"
                      r"[ \t]*(?:/\*(.*?)\*/)?")
    while match := call.match(rest):
        arguments = split_list(match.group(1)[1:-1])
        said = (match.group(2) or "").strip()
        if not said and arguments[-1].startswith('"'):
            said = arguments[-1].strip('"')
        position = len(body) - len(rest)
        rows.append(Row(arguments, said, line + body.count("\n", 0, position + match.start(1))))
        rest = rest[match.end():]
    return rows if rows and not rest.strip() else None


def expand_tables(body, tables, helpers):
    """Replaces TABLE(HELPER) in the body of an enum or struct. The line numbers stay."""
    def expansion(match):
        parameters, replacement = helpers[match.group(2)]
        return " ".join(substitute(replacement, dict(zip(parameters, row.arguments))) +
                        (f" /* {row.about} */" if row.about else "")
                        for row in tables[match.group(1)])

    for table in tables:
        for helper in helpers:
            body = re.sub(rf"\b({table})\(({helper})\)", expansion, body)
    return body


def substitute(text, values):
    tokens = (token.group() for token in TOKEN.finditer(text))
    joined = "".join(values.get(token, token) for token in tokens)
    return re.sub(r"\s*##\s*", "", joined).strip()


# --- the members of structs and enums -----------------------------------------------------------

class MemberReader:
    """Goes through a body and finds out which comment belongs to which member."""

    def __init__(self, separator, line):
        self.separator = separator
        self.line = line
        self.members = []
        self.text, self.start, self.end = "", None, 0
        self.depth = 0
        self.above = None  # the comment that the next member has
        self.above_end = 0

    def read(self, body):
        for token in TOKEN.finditer(body):
            self.take(token.group())
            self.line += token.group().count("\n")
        self.finish()
        return self.members

    def take(self, mark):
        if mark.startswith("/*") and self.depth == 0:
            self.take_comment(mark)
        elif mark == self.separator and self.depth == 0:
            self.finish()
        elif self.text or not mark.isspace():
            if not self.text:
                self.start = self.line
            self.text += mark
            self.depth += (mark in "({[") - (mark in ")}]") if len(mark) == 1 else 0

    def take_comment(self, mark):
        comment = read_comment(mark, self.line)
        if self.text.strip():  # the last enumerator, without a comma
            self.finish()
        if self.members and self.end == self.line:
            member = self.members[-1]
            member.comment, member.behind, member.documented = comment, True, True
            self.above = None
        else:
            self.above = comment
            self.above_end = self.line + mark.count("\n")

    def finish(self):
        if not self.text.strip():
            return
        member = read_member(self.text.strip(), self.start)
        if self.above and self.start == self.above_end + 1:
            member.comment, member.documented = self.above, True
            self.above = None
        elif self.members and member.name == self.members[-1].name + "_arg":
            member.documented = self.members[-1].documented
        self.members.append(member)
        self.text, self.end = "", self.line


def read_member(text, line):
    nested = re.match(r"(struct|union)\s*\w*\s*\{(.*)\}\s*(\w*)$", text, re.S)
    if nested:
        body_line = line + text[:nested.start(2)].count("\n")
        inner = MemberReader(";", body_line).read(nested.group(2))
        return Member(nested.group(3), nested.group(1), line, members=inner)
    text = one_line(text)
    pointer = re.search(r"\(\*(\w+)\)\s*\(", text)
    name = pointer or re.search(r"(\w+)\s*(?:\[[^]]*\])*$", text.split(" = ")[0])
    if not name:
        raise Unreadable(line, f"a member that cannot be read: {text}")
    return Member(name.group(1), re.sub(r"= \((-?\d+)\)$", r"= \1", text), line)


# --- declarations -------------------------------------------------------------------------------

class HeaderReader:
    def __init__(self, name, file, text, tables):
        self.header = Header(name, file)
        self.tables = tables
        self.helpers = {}
        self.undefined = set(re.findall(r"#\s*undef\s+(\w+)", text))
        self.defined = set(re.findall(r"^struct (\w+) \{", text, re.M))
        self.guard = next(iter(re.findall(r"#ifndef (\w+)\n#define \1\n", text)), None)
        self.in_guard = False
        self.names = set()
        self.section = ""
        self.comment = None
        self.adjacent = 0  # a declaration that begins on this line has that comment

    def read(self, text):
        for piece in split_pieces(text):
            if piece.kind == "comment":
                self.take_comment(piece)
            elif piece.kind == "directive":
                self.take_directive(piece)
            else:
                if not FORWARD.fullmatch(one_line(piece.text)):
                    self.take_item(read_declaration(piece, self.tables, self.helpers), piece)
        return self.header

    def take_comment(self, piece):
        section = SECTION.fullmatch(piece.text)
        if section:
            self.section = section.group(1)
        elif "SPDX-License-Identifier" not in piece.text:
            self.comment = read_comment(piece.text, piece.line)
            self.adjacent = piece.end + 1
            if not self.in_guard:
                self.header.head = self.comment

    def take_directive(self, piece):
        define = DEFINE.match(piece.text.strip())
        if not define:
            self.in_guard = True  # the first directive of every header is its guard's
            self.keep_adjacent(piece)
            return
        name, parameters, body = define.groups()
        if name == self.guard or name.endswith("_"):
            return
        if name in self.undefined:
            self.helpers[name] = (split_list((parameters or "()")[1:-1]), body.strip())
            self.keep_adjacent(piece)
        else:
            self.take_item(self.read_macro(name, parameters, body, piece.line), piece)

    def keep_adjacent(self, piece):
        """Conditions and helpers may stand between a comment and what it is about."""
        if piece.line == self.adjacent:
            self.adjacent = piece.end + 1

    def read_macro(self, name, parameters, body, line):
        rows = read_rows(parameters[1:-1].strip(), body, line) if parameters else None
        if rows:
            self.tables[name] = rows
            return Item("table", name, line, f"#define {name}{parameters}", members=[
                Member(row.arguments[0], "", row.line, documented=bool(row.about))
                for row in rows])
        shown = f"#define {name}{parameters}" if parameters else f"#define {name} {one_line(body)}"
        return Item("macro", name, line, shown.strip())

    def take_item(self, item, piece):
        forward = item.kind == "opaque" and item.name in self.defined
        known = item.name in self.names  # the other branch of a condition, or a macro around it
        if forward or known or item.name.endswith("_"):
            self.keep_adjacent(piece)
            return
        if item.name:
            self.names.add(item.name)
        entries = self.header.entries
        if piece.line != self.adjacent or not self.comment:
            entries.append(Entry(None, [item], self.section))
        elif entries and entries[-1].comment is self.comment:
            entries[-1].items.append(item)
        else:
            entries.append(Entry(self.comment, [item], self.section))
        self.keep_adjacent(piece)


def read_declaration(piece, tables, helpers):
    text, line = piece.text, piece.line
    compound = COMPOUND.match(text)
    if compound:
        return read_compound(compound, line, tables, helpers)
    opaque = re.fullmatch(r"typedef struct (\w+) (\w+);", one_line(text))
    if opaque:
        return Item("opaque", opaque.group(2), line, one_line(text))
    inline = text.startswith("static inline")
    shown = one_line(text.split("{")[0]).rstrip(";")
    function = re.fullmatch(r"(typedef )?(.*?[\s*])(\w+)\((.*)\)", shown)
    if not function:
        raise Unreadable(line, f"a declaration that cannot be read: {shown}")
    shown = NO_TYPE.sub("", shown) + ";"
    parameters = [] if function.group(4) == "void" else split_list(function.group(4))
    return Item("callback" if function.group(1) else "function", function.group(3), line, shown,
                NO_TYPE.sub("", function.group(2)).strip(), parameters, inline)


def read_compound(match, line, tables, helpers):
    tag, name, body, alias = match.groups()
    body_line = line + match.string[:match.start(3)].count("\n")
    expanded = expand_tables(body, tables, helpers)
    members = MemberReader("," if tag == "enum" else ";", body_line).read(expanded)
    return Item("enum" if tag == "enum" else "struct", alias or name, line, tag=tag,
                members=members, generated=expanded != body)


def read_headers(root):
    """All public headers below a root folder, in the order of their names."""
    headers, tables = [], {}
    for path in sorted((root / "include/skua").glob("*.h")):
        file = str(path.relative_to(root))
        text = path.read_text(encoding="utf-8")
        if INTERNAL.match(text):
            continue
        try:
            headers.append(HeaderReader(path.stem, file, text, tables).read(text))
        except Unreadable as trouble:
            raise SystemExit(f"{file}:{trouble.line}: {trouble}") from None
    return headers
