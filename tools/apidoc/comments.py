# SPDX-License-Identifier: MIT
"""Comments of the public headers: prose, then lines with fixed keys.

    /* Sends a message. Order is kept per sender.
     * Takes:   payload, always.      Threads: any.      Blocks: never.
     * Returns: 0; SKUA_E_NO_PROCESS (it has ended); SKUA_E_MAILBOX_FULL. */

A comment whose prose begins with `Like skua_other` or `As skua_other` has the other's keys where it
has none. Lines that are indented by four spaces or more, before the keys, are shown as they are."""

import re
from dataclasses import dataclass, field

KEYS = ("Takes", "Gives", "Borrows", "Threads", "Blocks", "Returns")
KEY = re.compile(rf"({'|'.join(KEYS)}):\s*")
NEXT_KEY = re.compile(rf"\s{{2,}}(?=(?:{'|'.join(KEYS)}):)")
BRIEF = 70  # characters, for a line of a list
AS_OTHER = re.compile(r"(?:As|Like) (skua_\w+)\b")
ERROR = re.compile(r"\bSKUA_E_[A-Z_]+\b")
ERRORS_WITH_NOTE = re.compile(
    r"(SKUA_E_[A-Z_]+(?:(?:, | or | and )SKUA_E_[A-Z_]+)*)(?: \((.*)\))?$", re.S)


@dataclass
class Paragraph:
    text: str
    literal: bool = False


@dataclass
class Comment:
    line: int
    paragraphs: list = field(default_factory=list)
    keys: dict = field(default_factory=dict)

    @property
    def prose(self):
        """All of it as one line, without what is shown literally."""
        return " ".join(p.text for p in self.paragraphs if not p.literal)

    @property
    def whole(self):
        return " ".join([p.text for p in self.paragraphs] + list(self.keys.values()))

    @property
    def title(self):
        """The first sentence."""
        return first_sentence(self.prose).rstrip(".")

    @property
    def brief(self):
        """What fits into a list: the first sentence, or how it begins."""
        brief = cut(re.sub(r" \([^()]*\)$", "", self.title), ":;")
        return brief if len(brief) <= BRIEF else cut(brief, ",")

    @property
    def other(self):
        """The function whose keys this one has, too, or None."""
        match = AS_OTHER.match(self.prose)
        return match.group(1) if match else None


def outside_parentheses(text):
    """Pairs of index and character of what is not in parentheses."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            yield index, character


def cut(text, marks):
    """What comes before the first of these marks that is followed by a space."""
    for index, character in outside_parentheses(text):
        if character in marks and text[index + 1:index + 2] == " ":
            return text[:index]
    return text


def first_sentence(text):
    for index, character in outside_parentheses(text):
        if character == "." and re.match(r"\. [A-Z`]|\.$", text[index:]):
            return text[:index + 1]
    return text


def strip_marks(text):
    """The lines of a comment without its stars."""
    lines = text.removeprefix("/*").removesuffix("*/").rstrip().split("\n")
    rest = [re.sub(r"^\s*\*? ?", "", line, count=1).rstrip() for line in lines[1:]]
    return [lines[0].strip(), *rest]


class Reader:
    """Takes the lines of one comment, one after the other."""

    def __init__(self, line):
        self.comment = Comment(line)
        self.key = None
        self.at_break = True

    def add(self, line):
        if not line.strip():
            self.at_break = True
        elif KEY.match(line) or (self.key and line.startswith(" ")):
            self.add_keys(line)
        elif self.key and not self.begins_a_sentence(line):
            self.comment.keys[self.key] += " " + line.strip()
        else:
            if self.key:
                self.at_break = True
            self.key = None
            self.add_prose(line)

    def begins_a_sentence(self, line):
        return line[0].isupper() and self.comment.keys[self.key].endswith(".")

    def add_keys(self, line):
        for part in NEXT_KEY.split(line.strip()):
            match = KEY.match(part)
            if match:
                self.key = match.group(1)
                self.comment.keys[self.key] = part[match.end():]
            else:
                self.comment.keys[self.key] += " " + part

    def add_prose(self, line):
        literal = line.startswith("    ")
        paragraphs = self.comment.paragraphs
        if self.at_break or not paragraphs or paragraphs[-1].literal != literal:
            paragraphs.append(Paragraph(line[4:] if literal else line.strip(), literal))
        elif literal:
            paragraphs[-1].text += "\n" + line[4:]
        else:
            paragraphs[-1].text += " " + line.strip()
        self.at_break = False


def read_comment(text, line):
    reader = Reader(line)
    for each in strip_marks(text):
        reader.add(each)
    return reader.comment


@dataclass
class Outcome:
    """One of the things a function returns: errors of the table, or anything else in words."""
    text: str
    errors: list
    note: str  # what the comment says about these errors, in parentheses


def split_returns(text):
    """The outcomes that a `Returns:` lists, and the sentences behind them."""
    listed = first_sentence(text)
    after = text[len(listed):].strip()
    parts, start = [], 0
    for index, character in outside_parentheses(listed):
        if character == ";":
            parts.append(listed[start:index])
            start = index + 1
    parts.append(listed[start:].rstrip("."))
    return [read_outcome(part.strip()) for part in parts], after


def read_outcome(text):
    match = ERRORS_WITH_NOTE.match(text)
    if match:
        return Outcome(text, ERROR.findall(match.group(1)), match.group(2) or "")
    return Outcome(text, [], "")
