"""Runs the commands of the guide to backup and restore in docs/operations/mend.md. Some versions of the first store were
deleted, so the second server gives the restored versions other numbers."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import server

GUIDE = server.SOURCE / "docs/operations/mend.md"


def commands_of_the_guide():
    """Returns the two code blocks of that section: the one for backup, and the one for restore."""
    section = re.search(r"^## Backup\n(.*?)^## ", GUIDE.read_text(encoding="utf-8"), re.M | re.S).group(1)
    return re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)


class RestoreTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        rows = "".join(f"{i % 17},{i % 5}\n" for i in range(200))
        (self.folder / "rows.csv").write_text("a,b\n" + rows)

    def start(self):
        started = server.Server()
        self.addCleanup(started.close)
        return started

    def build(self, where, mapping, landmarks):
        where.run("build", mapping, f"--input={self.folder}/rows.csv", f"--spec=f1(landmarks={landmarks})",
                  "--kernel=rbf(gamma=0.1)")

    def run_block(self, block, where):
        done = self.run_in_shell(block, where)
        self.assertEqual(done.returncode, 0, f"{block}\n{done.stdout}{done.stderr}")
        self.assertNotRegex(done.stdout + done.stderr, r"(?m)^phimap: |damaged|^Run with")

    def run_in_shell(self, block, where):
        environment = os.environ | {"PHIMAP_SERVER": where.address,
                                    "PATH": f"{pathlib.Path(server.PHIMAP).parent}:{os.environ['PATH']}"}
        return subprocess.run(["/bin/bash", "-c", block], cwd=self.folder, env=environment, capture_output=True,
                              text=True, check=False)

    def ask(self, where, *words):
        return subprocess.run([server.PHIMAP, "--server=" + where.address, *words], check=True, capture_output=True,
                              text=True).stdout

    def aliases(self, where):
        """Returns the aliases in the form {"letters@prod": (number, digest)}."""
        listed = json.loads(self.ask(where, "alias", "list", "--json"))
        return {f"{mapping['name']}@{alias['name']}": (int(alias["version"]), alias["digest"])
                for mapping in listed["mappings"] for alias in mapping.get("aliases", [])}

    def digest(self, where, reference):
        return json.loads(self.ask(where, "show", reference, "--json"))["ref"]["digest"]

    def old_server(self):
        """Starts a server with the versions 2, 3 and 5 of letters. letters@prod is version 3, letters@next is version
        5, and digits@prod is version 1."""
        old = self.start()
        for landmarks in (3, 4, 5, 6, 7):
            self.build(old, "letters", landmarks)
        self.build(old, "digits", 8)
        for number in (1, 4):
            old.run("delete", f"letters@{number}")
        for alias, number in (("letters@next", 5), ("letters@prod", 3), ("digits@prod", 1)):
            old.set_alias(*alias.split("@"), number)
        return old

    def test_aliases_mean_the_same_versions_on_a_server_that_numbers_them_otherwise(self):
        old, empty, other = self.old_server(), self.start(), self.start()
        # The other server already has a version of this mapping.
        self.build(other, "letters", 9)
        backup, restore = commands_of_the_guide()
        self.run_block(backup, old)
        before = self.aliases(old)
        self.assertEqual({name: number for name, (number, _) in before.items()},
                         {"letters@next": 5, "letters@prod": 3, "digits@prod": 1})
        for where, numbers in ((empty, {"letters@next": 3, "letters@prod": 2, "digits@prod": 1}),
                               (other, {"letters@next": 4, "letters@prod": 3, "digits@prod": 1})):
            self.run_block(restore, where)
            after = self.aliases(where)
            self.assertEqual({name: number for name, (number, _) in after.items()}, numbers)
            for name, (_, digest) in before.items():
                self.assertEqual(after[name][1], digest)
                # This digest comes from the answer to a call, not from the server's list of versions.
                self.assertEqual(self.digest(where, name), digest)

    def test_an_alias_whose_version_did_not_come_is_refused_and_the_rest_are_set(self):
        old, empty = self.old_server(), self.start()
        backup, restore = commands_of_the_guide()
        self.run_block(backup, old)
        (self.folder / "phimap-backup/letters@3.phimap").unlink()
        done = self.run_in_shell(restore, empty)
        self.assertIn("VERSION", done.stderr)
        before, after = self.aliases(old), self.aliases(empty)
        del before["letters@prod"]
        self.assertEqual({name: digest for name, (_, digest) in after.items()},
                         {name: digest for name, (_, digest) in before.items()})

    def test_the_list_shows_the_digest_as_the_list_of_versions_does(self):
        old = self.old_server()
        head, *rows = self.ask(old, "alias", "list").splitlines()
        self.assertEqual(head.split()[:4], ["ALIAS", "VERSION", "BEFORE", "DIGEST"])
        versions = self.ask(old, "list", "letters")
        self.assertEqual(len(rows), 3)
        for row in rows:
            alias, number, _, digest = row.split()[:4]
            full = self.digest(old, alias)
            self.assertEqual(full[:12], digest)
            if alias.startswith("letters"):
                self.assertRegex(versions, rf"(?m)^ *{number} .* {digest} ")


if __name__ == "__main__":
    unittest.main()
