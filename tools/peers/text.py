# SPDX-License-Identifier: MIT
"""Numbers and tables as people read them."""


def number(value):
    """Three digits or all before the point: 1,234  123  12.3  1.23  0.12"""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(round(value, 2)) >= 10 else f"{value:.2f}"


def spread(figure):
    return f"({number(figure.min)}-{number(figure.max)})"


def times(ratio):
    return f"{number(ratio.median)}x {spread(ratio)}"


def table(head, rows):
    """A Markdown table whose columns are aligned, so that it can be read as it is."""
    lines = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    def line_of(cells):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |\n"
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|\n"
    return line_of(lines[0]) + rule + "".join(map(line_of, lines[1:]))


def replace_section(page, name, text):
    """Puts a text between the two comments of a page that are there for it."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no place for {name}: {begin.strip()} ... {end.strip()}")
    return f"{before}{begin}\n{text}\n{end}{after}"
