"""The results of an experiment, as the programs of the laboratory write them."""

import csv
import pathlib


def number(text):
    """Returns a cell as a number if it is one, else as text."""
    try:
        return float(text)
    except ValueError:
        return text


class Rows(list):
    """The rows of a table, each {column: number or text}."""

    def column(self, name):
        return [row[name] for row in self]

    def where(self, **values):
        """Returns the rows that have these values."""
        return Rows(row for row in self if all(row[name] == value for name, value in values.items()))

    def values(self, name):
        """Returns the distinct values of a column, in order."""
        return list(dict.fromkeys(self.column(name)))


class Results:
    """One experiment's folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.about = {row["key"]: row["value"] for row in self._read("about")}
        self.verdicts = self._read("verdicts")
        self.captions = {row["name"]: row["caption"] for row in self._read("tables")}

    def _read(self, name):
        with open(self.folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def table(self, name):
        return Rows({column: number(cell) for column, cell in row.items()} for row in self._read(name))

    def text_table(self, name):
        """Returns the header and the rows, with cells as they were written."""
        with open(self.folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        return header, rows
