"""Writes docs/lab.md from the results of the experiments.

    python3 lab/report.py [--check] [--results=lab/results] [--report=docs/lab.md]

--check writes nothing and fails if the report is not what the results say.
"""

import argparse
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lab"))

from draw import captions_of  # noqa: E402
from figures.results import Results  # noqa: E402

PAPERS = {
    "BBV": "Balcan, Blum, Vempala, *Kernels as features: on kernels, margins, and low-dimensional mappings*, Machine Learning "
           "65 (2006)",
    "BS": "Blum, *Random projection, margins, kernels, and feature-selection* (2005)",
    "AMS": "Achlioptas, McSherry, Schölkopf, *Sampling techniques for kernel methods* (2001)",
    "SH": "Shi, Shen, Hill, van den Hengel, *Is margin preserved after random projection?* (2012)",
    "CO": "the Cornell lecture notes on kernels",
    "phimap": "beyond the papers: phimap's mappings beside scikit-learn's",
}

INTRODUCTION = """\
# The laboratory

What the papers print, claim and draw, repeated with phimap's own mappings, learners and bounds: each experiment calls the
core's public functions, and those beyond the papers a running server. `lab/run` writes this page, the CSV files and the figures; do not
edit it by hand.

<!-- not run: minutes; a test runs all with --quick -->
```
lab/run                  # everything: {minutes} minutes on two cores
lab/run bbv_table1       # one experiment, and this page anew
lab/run one_row_speed    # the times of single rows, which need an idle machine
lab/run --quick          # fewer repetitions, to build/lab_quick; one of the tests
```

All that is drawn is drawn with fixed seeds, and only times differ from run to run. A verdict says by which rule it was passed.
Where a paper does not agree, the line says so and why, in the same table; `lab/run` fails where a verdict is not as expected.
Numbers are in `lab/results/EXPERIMENT/*.csv`. The statements that are proven and not measured are in
[the list of the papers' statements](maths.md#every-statement-of-the-papers).
"""


def heading_of(results):
    return f"{results.about['paper']} {results.about['item']}: {results.about['title']}"


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cell(text) or ' ' for text in line)} |\n" for line in lines)


def verdict_rows(results):
    for verdict in results.verdicts:
        agrees = verdict["agrees"] if not verdict["why_not"] else f"{verdict['agrees']}: {verdict['why_not']}"
        yield [verdict["claim"], verdict["printed"], verdict["measured"], verdict["rule"], agrees]


def section(results, path):
    about = results.about
    text = f"<a id=\"{about['name']}\"></a>\n\n### {heading_of(results)}\n\n**Claim.** {about['claim']}\n\n**Run.** {about['protocol']} Seed {about['seed']}; " \
           f"{about['seconds']} s; `lab/run {about['name']}`.\n\n"
    for figure, caption in captions_of(about["name"]).items():
        text += f"![{caption}]({path}/{figure}.svg)\n\n{caption}\n\n"
    text += table(["claim", "printed", "measured", "rule", "agrees"], verdict_rows(results)) + "\n"
    for name, caption in results.captions.items():
        if caption:
            text += f"{caption}\n\n{table(*results.text_table(name))}\n"
    return text


def agreement(results):
    """ Returns text such as "24 of 24", with how many of the others are explained."""
    agree = sum(verdict["agrees"] == "yes" for verdict in results.verdicts)
    explained = sum(verdict["agrees"] == "no" and bool(verdict["why_not"]) for verdict in results.verdicts)
    text = f"{agree} of {len(results.verdicts)}"
    return text + (f"; {explained} known not to, and why" if explained else "")


def order(folder):
    """Returns the experiments in the order of the papers and, within a paper, in the order of the
    program."""
    names = (folder / "order.txt").read_text(encoding="utf-8").split()
    return [Results(folder / name) for name in names]


def report(folder, page):
    experiments = order(folder)
    path = os.path.relpath(folder, page.parent)
    minutes = round(sum(float(e.about["seconds"]) for e in experiments) / 60)
    text = INTRODUCTION.format(minutes=max(minutes, 1)) + "\n## At a glance\n\n"
    text += table(["paper", "what", "experiment", "verdicts that agree"],
                  ([e.about["paper"], f"[{e.about['item']}](#{e.about['name']}): {e.about['title']}", f"`{e.about['name']}`",
                    agreement(e)] for e in experiments)) + "\n"
    for paper, title in PAPERS.items():
        of_paper = [e for e in experiments if e.about["paper"] == paper]
        if of_paper:
            text += f"## {paper}\n\n{title[0].upper()}{title[1:]}.\n\n" + "".join(section(e, f"{path}/{e.about['name']}") for e in of_paper)
    return text.rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "lab/results")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "docs/lab.md")
    arguments = parser.parse_args()
    text = report(arguments.results, arguments.report)
    if not arguments.check:
        arguments.report.write_text(text, encoding="utf-8")
    elif arguments.report.read_text(encoding="utf-8") != text:
        sys.exit(f"{arguments.report} is not what {arguments.results} says: run lab/report.py")


if __name__ == "__main__":
    main()
