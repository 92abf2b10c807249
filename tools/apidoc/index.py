# SPDX-License-Identifier: MIT
"""What the headers say, taken together: who is called what, which errors there are, and what a
function says when it refers to another."""

import re

from apidoc.comments import ERROR, split_returns

AS_IN_KEY = re.compile(r"\bas (skua_\w+)")
NAME = re.compile(r"\b(?:skua|SKUA)_\w*[A-Za-z0-9]\b")


class Index:
    def __init__(self, headers):
        self.headers = headers
        self.items = {}  # by name
        self.entries = {}  # by the name of an item
        self.names = set()  # of items and enumerators
        self.errors = {}  # the enumerators that come from the table of errors, by name
        for header in headers:
            for entry in header.entries:
                for item in entry.items:
                    self.add(entry, item)

    def add(self, entry, item):
        if item.name:
            self.items[item.name] = item
            self.entries[item.name] = entry
            self.names.add(item.name)
        if item.kind == "enum":
            for member in item.members:
                self.names.add(member.name)
                if ERROR.fullmatch(member.name):
                    self.errors[member.name] = member

    def others(self, name, key):
        """The functions that this one refers to with "Like ...", "As ..." or, in a key, "as ..."."""
        comment = self.entries[name].comment if name in self.entries else None
        if not comment:
            return []
        first = [comment.other] if comment.other else []
        return first + AS_IN_KEY.findall(comment.keys.get(key, ""))

    def key(self, name, key):
        """What a function says under a key, itself or through the one it is like; or None."""
        seen = set()
        while name in self.entries and name not in seen:
            seen.add(name)
            comment = self.entries[name].comment
            if not comment:
                return None
            if key in comment.keys:
                return comment.keys[key]
            name = comment.other
        return None

    def outcomes(self, name):
        """What a function returns: outcomes, and the sentences behind them."""
        text = self.key(name, "Returns")
        return split_returns(text) if text else ([], "")

    def errors_of(self, name):
        """Pairs of an error and a note, those of the functions it refers to included."""
        found, seen = {}, set()
        self.collect_errors(name, found, seen)
        return [(error, note) for error, note in found.items() if error in self.errors]

    def collect_errors(self, name, found, seen):
        if name in seen:
            return
        seen.add(name)
        for outcome in self.outcomes(name)[0]:
            for error in outcome.errors:
                found.setdefault(error, outcome.note)
            if not outcome.errors:
                for error in ERROR.findall(outcome.text):
                    found.setdefault(error, "")
        for other in self.others(name, "Returns"):
            self.collect_errors(other, found, seen)
