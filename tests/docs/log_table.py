"""The tables of docs/operations/log.md: which lines the server's log has, and which type each field has."""

from typing import NamedTuple

import document

PAGE = document.SOURCE / "docs/operations/log.md"
# What Python's json makes of a value of each type. A number may happen to be whole.
PYTHON_TYPES = {"text": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


class Event(NamedTuple):
    levels: set
    keys: list


def _words(cell):
    return [word for word in cell.replace("`", "").replace(",", "").split() if word != "or"]


_sections = document.sections(PAGE.read_text(encoding="utf-8"))
EVENTS = {_words(event)[0]: Event(set(_words(levels)), _words(fields))
          for event, levels, fields, _ in document.table_rows(_sections["Events"])}
TYPES = {_words(key)[0]: kind for key, kind, _ in document.table_rows(_sections["Fields"])}


def mistakes(line):
    """Returns what is wrong with a line of the log, which json has read: sentences, none if it is as documented."""
    if not isinstance(line, dict):
        return [f"expected an object, got {line!r}"]
    if list(line)[:3] != ["time", "level", "event"]:
        return [f"expected time, level and event first, got {line}"]
    event = EVENTS.get(line["event"])
    if event is None:
        return [f"no such event in docs/operations/log.md: {line}"]
    wrong = []
    if line["level"] not in event.levels:
        wrong.append(f"{line['event']} has the level {line['level']}, expected one of {event.levels}")
    keys = list(line)[3:]
    if keys != [key for key in event.keys if key in keys]:
        wrong.append(f"{line['event']} has {keys}, expected of {event.keys}, in this order")
    for key in keys:
        value = line[key]
        if not isinstance(value, PYTHON_TYPES[TYPES[key]]) or isinstance(value, bool) != (TYPES[key] == "boolean"):
            wrong.append(f"{line['event']} has {key}={value!r}, expected {TYPES[key]}")
        if value == "":
            wrong.append(f"{line['event']} has {key} without a value")
    return wrong
