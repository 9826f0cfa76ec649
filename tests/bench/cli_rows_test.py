"""Runs bench/cli_rows with few rows. The program before and the program after the change are the same."""
import argparse
import re
import subprocess


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--phimap", required=True)
    parser.add_argument("--phimapd", required=True)
    parser.add_argument("--script", required=True)
    arguments = parser.parse_args()
    # These rows are too few to judge the ratio.
    ran = subprocess.run([arguments.script, f"--phimapd={arguments.phimapd}", arguments.phimap, arguments.phimap,
                          "--rows=3001", "--columns=5", "--rounds=2", "--least=0"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    kinds = re.findall(r"^(\S+) +[\d,]+ rows/s before +[\d,]+ after +ratio [\d.]+ +peak \d+ and \d+ MiB$", ran.stdout, re.M)
    assert kinds == ["csv", "csv.gz", "npy"], ran.stdout


if __name__ == "__main__":
    main()
