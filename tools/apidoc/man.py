# SPDX-License-Identifier: MIT
"""Pages of section 3: one for each function and each header. Functions that share a comment share a
page, and types are found under their own names, too: those pages are links."""

import re
import textwrap

from apidoc.index import NAME
from apidoc.layout import item_lines

CODE_WIDTH = 71  # 78 columns on the screen, less the margin of the text
WORDS = re.compile(r"`([^`]+)`|\*([a-z]+)\*|(\b(?:skua|SKUA)_\w*[A-Za-z0-9]\b)")
KEY_SECTIONS = (("OWNERSHIP", ("Takes", "Gives", "Borrows")), ("ATTRIBUTES", ("Threads", "Blocks")))


def header_page(header):
    return "skua" if header.name == "skua" else f"skua-{header.name}"


def plain(text):
    """Text that is nothing but text."""
    return text.replace("\\", "\\e").replace("~", "\\(ti").replace("^", "\\(ha")


def code(text):
    return plain(text).replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")


class Writer:
    def __init__(self, index, date, version):
        self.index = index
        self.date = date
        self.version = version
        self.own = set()  # names that the page is about
        self.lines = []

    # --- pieces of text ---

    def marked(self, text):
        """With the names in bold, and those of functions as references."""
        done, position = "", 0
        for match in WORDS.finditer(text):
            done += plain(text[position:match.start()])
            done += self.mark(match)
            position = match.end()
        return done + plain(text[position:])

    def mark(self, match):
        quoted, stressed, name = match.groups()
        if quoted or stressed:
            return f"\\fI\\%{code(quoted or stressed)}\\fP"
        item = self.index.items.get(name)
        refers = item and item.kind == "function" and name not in self.own
        return f"\\fB\\%{name}\\fP" + ("(3)" if refers else "")

    def add(self, *lines):
        self.lines += lines

    def add_text(self, text):
        for line in textwrap.wrap(self.marked(text), 78, break_on_hyphens=False):
            self.add("\\&" + line if line[0] in ".'" else line)

    def add_code(self, lines):
        self.add(".nf", *("\\&" + code(line) for line in lines), ".fi")

    def add_paragraphs(self, paragraphs):
        for number, paragraph in enumerate(paragraphs):
            if number > 0:
                self.add(".PP")
            if paragraph.literal:
                self.add(".RS 4")
                self.add_code(paragraph.text.split("\n"))
                self.add(".RE")
            else:
                self.add_text(paragraph.text)

    def begin(self, names, about):
        self.lines = [
            '.\\" Written by tools/reference from the comments of the headers: change those.',
            f'.TH {names[0].upper()} 3 "{self.date}" "Skua {self.version}" "Skua"',
            ".SH NAME", *textwrap.wrap(f"{', '.join(names)} \\- {plain(about)}", 78)]

    def add_synopsis(self, header, items):
        self.add(".SH LIBRARY", "Processes for C (libskua,", ".BR pkg\\-config (1)", "name skua)",
                 ".SH SYNOPSIS", ".nf", f".B #include <skua/{header.name}.h>")
        for item in items:
            self.add(".PP", *(f"\\fB{code(line)}\\fP" for line in item_lines(item, CODE_WIDTH)))
        self.add(".fi")

    # --- the page of a function ---

    def function_page(self, header, entry):
        items = [item for item in entry.items if item.kind == "function"]
        names = [item.name for item in items]
        self.own = set(names)
        self.begin(names, lower_first(unquoted(entry.comment.brief)))
        self.add_synopsis(header, items)
        self.add(".SH DESCRIPTION")
        self.add_paragraphs(entry.comment.paragraphs)
        self.add_returns(names[0])
        for title, keys in KEY_SECTIONS:
            self.add_keys(title, keys, names[0])
        self.add_see_also(header, entry, names)
        return "\n".join(self.lines) + "\n"

    def add_keys(self, title, keys, name):
        said = [(key, self.index.key(name, key)) for key in keys]
        if any(text for _, text in said):
            self.add(f".SH {title}")
            for key, text in said:
                if text:
                    self.add(".TP", f".B {key}")
                    self.add_text(text)

    def add_returns(self, name):
        outcomes, after = self.index.outcomes(name)
        if not outcomes:
            return
        errors = self.index.errors_of(name)
        words = upper_first("; ".join(each.text for each in outcomes if not each.errors))
        self.add(".SH RETURN VALUE")
        self.add_text(f"{words}; or one of the errors below." if errors and "an error" not in words
                      else f"{words}.")
        if after:
            self.add(".PP")
            self.add_text(after)
        if errors:
            self.add(".SH ERRORS")
            for error, note in errors:
                self.add_error(error, note)

    def add_error(self, error, note):
        self.add(".TP", f".B {error}")
        text = upper_first(self.index.errors[error].comment.prose)
        self.add_text(f"{text}. Here: {note}." if note else f"{text}.")

    def add_see_also(self, header, entry, names):
        mentioned = [name for name in NAME.findall(entry.comment.whole)
                     if name in self.index.items and self.index.items[name].kind == "function"]
        siblings = [item.name for each in header.entries if each.section == entry.section
                    for item in each.items if item.kind == "function"]
        pages = [header_page(header)]
        for name in mentioned + siblings:
            if name not in names and name not in pages:
                pages.append(name)
        self.add_references([(page, 3) for page in pages])

    def add_references(self, pages):
        self.add(".SH SEE ALSO")
        for number, (page, section) in enumerate(pages, 1):
            self.add(f".BR {code(page)} ({section})" + ("," if number < len(pages) else ""))

    # --- the page of a header ---

    def header_page(self, header):
        self.own = set()
        self.begin([code(header_page(header))], lower_first(unquoted(header.head.title)))
        self.add_synopsis(header, [])
        self.add(".SH DESCRIPTION")
        self.add_paragraphs(header.head.paragraphs)
        self.add_entries("TYPES", header, ("struct", "opaque", "enum", "callback"))
        self.add_entries("MACROS", header, ("macro", "table"))
        self.add_functions(header)
        if header.name == "skua":
            self.add_headers([each for each in self.index.headers if each is not header])
        self.add_references([("skua", 1 if header.name == "skua" else 3)])
        return "\n".join(self.lines) + "\n"

    def add_entries(self, title, header, kinds):
        entries = [entry for entry in header.entries if entry.items[0].kind in kinds]
        if entries:
            self.add(f".SH {title}")
        for number, entry in enumerate(entries):
            if number > 0:
                self.add(".PP")
            self.add_code([line for item in entry.items for line in item_lines(item, CODE_WIDTH)])
            self.add(".RS 4")
            self.add_paragraphs(entry.comment.paragraphs)
            for key, text in entry.comment.keys.items():
                self.add(".PP")
                self.add_text(f"{key}: {text}")
            self.add(".RE")

    def add_functions(self, header):
        entries = [entry for entry in header.entries if entry.items[0].kind == "function"]
        if entries:
            self.add(".SH FUNCTIONS")
        section = ""
        for entry in entries:
            if entry.section != section:
                section = entry.section
                self.add(f".SS {upper_first(section)}")
            for item in entry.items:
                self.add(".TP", f".BR {item.name} (3)")
                self.add_text(entry.comment.brief)

    def add_headers(self, headers):
        self.add(".SH HEADERS")
        for header in headers:
            self.add(".TP", f".BR {code(header_page(header))} (3)")
            self.add_text(header.head.title)


def lower_first(text):
    return text if re.match(r"[A-Z]{2}|Skua|skua_", text) else text[:1].lower() + text[1:]


def upper_first(text):
    return text[:1].upper() + text[1:]


def unquoted(text):
    return text.replace("`", "")


def pages(index, date, version):
    """Texts by file name, and links: file names by file name."""
    writer = Writer(index, date, version)
    texts, links = {}, {}
    for header in index.headers:
        about_header = f"{header_page(header)}.3"
        texts[about_header] = writer.header_page(header)
        for entry in header.entries:
            first = None
            for item in entry.items:
                file = f"{item.name}.3"
                if item.kind == "function" and not first:
                    first = file
                    texts[file] = writer.function_page(header, entry)
                elif item.name.startswith("skua_"):
                    links[file] = first or about_header
    return texts, links
