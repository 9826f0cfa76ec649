"""Writes the results of an experiment in Python, in the same files as phimap_lab does. The classes
are those of lab/results.h."""

import csv
import pathlib
from dataclasses import dataclass, field


def cell(value):
    """A text, or a number with six digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass
class Table:
    """A CSV file with a header. A table with a caption is also shown in docs/lab.md."""

    name: str
    columns: list[str]
    caption: str = ""
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *row):
        if len(row) != len(self.columns):
            raise ValueError(f"{self.name}: expected {len(self.columns)} cells, got {len(row)}")
        self.rows.append([cell(value) for value in row])


@dataclass
class Verdict:
    """A judgement of whether a measurement agrees with a claim; see Verdict in lab/results.h."""

    claim: str
    measured: str
    rule: str
    agrees: bool
    printed: str = ""
    why_not: str = ""

    @property
    def is_expected(self):
        return self.agrees == (not self.why_not)


class ResultsWriter:
    """The tables and verdicts of one experiment."""

    def __init__(self):
        self.tables = []
        self.verdicts = []

    def add_table(self, name, columns, caption=""):
        self.tables.append(Table(name, columns, caption))
        return self.tables[-1]

    def judge(self, **verdict):
        self.verdicts.append(Verdict(**verdict))

    def write(self, folder, about):
        """Writes all files into a folder, which is created if it does not exist. `about` is {key:
        value}, with the keys of phimap_lab."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        listed = Table("tables", ["name", "caption"])
        for table in self.tables:
            listed.add(table.name, table.caption)
        judged = Table("verdicts", ["claim", "printed", "measured", "rule", "agrees", "why_not"])
        for v in self.verdicts:
            judged.add(v.claim, v.printed, v.measured, v.rule, "yes" if v.agrees else "no", v.why_not)
        told = Table("about", ["key", "value"])
        for key, value in about.items():
            told.add(key, value)
        for table in [*self.tables, listed, judged, told]:
            with open(folder / f"{table.name}.csv", "w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([table.columns, *table.rows])

    def print_verdicts(self):
        """Prints the verdicts as phimap_lab does. Returns True if all came out as expected."""
        for v in self.verdicts:
            printed = f" [printed {v.printed}]" if v.printed else ""
            print(f"  {'agrees   ' if v.agrees else 'disagrees'} {v.claim}{printed}: measured {v.measured} ({v.rule})"
                  f"{'' if v.is_expected else '   NOT AS EXPECTED'}")
        return all(v.is_expected for v in self.verdicts)
