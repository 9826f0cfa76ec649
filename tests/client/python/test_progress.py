"""Tests the progress bar that progress=True draws."""
import io

from phimap.progress import Progress, ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_one_line_that_is_overwritten():
    terminal = Terminal()
    bar = ProgressBar(terminal)
    bar(Progress("sending", 1000))
    bar(Progress("gram", 1000, 1000, 0.5))
    bar(Progress("gram", 1000, 1000, 1.0))
    bar.close()
    lines = terminal.getvalue().split("\r")
    assert lines[1] == "sending  1,000 rows"
    assert lines[2].strip() == "gram         [###############...............]  50%  1,000 rows"
    assert lines[3].strip() == "gram         [##############################] 100%  1,000 rows"
    assert terminal.getvalue().endswith("\n")


def test_a_file_sees_a_line_for_each_phase():
    file = io.StringIO()
    bar = ProgressBar(file)
    for fraction in (0.1, 0.2):
        bar(Progress("sending", 10, 100, fraction))
    bar(Progress("factor", 100, 100, 0.0))
    bar.close()
    assert file.getvalue() == "phimap: sending\nphimap: factor\n"
