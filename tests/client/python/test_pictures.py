"""Tests the script that draws the pictures for the documentation, and the pictures themselves."""
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

PICTURES = pathlib.Path(os.environ["PHIMAP_SOURCE"]) / "docs/pictures"


def words(path):
    """Returns the texts in a picture, except the numbers on its axes."""
    texts = {"".join(node.itertext()).strip() for node in xml.etree.ElementTree.parse(path).iter()
             if node.tag.endswith("}text")}
    return {re.sub(r"[\d.,]+", "#", text) for text in texts if re.search(r"[a-z]{3}", text)}


def test_the_script_draws_what_the_documents_show(phimapd, client, tmp_path):
    before = len(client.list_mappings())
    subprocess.run([sys.executable, PICTURES / "draw.py", f"--server={phimapd.address}", f"--output={tmp_path}", "--quick"],
                   check=True)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in PICTURES.glob("*.svg")} == {"certificate.svg", "margin.svg", "sweep.svg"}
    for name in drawn:
        assert words(tmp_path / name) == words(PICTURES / name) != set(), name
        picture = (PICTURES / name).read_text(encoding="utf-8")
        assert "#ffffff" not in picture and "#000000" not in picture  # the picture is readable on white and on black
    assert len(client.list_mappings()) == before
