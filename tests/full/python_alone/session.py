"""Runs the Python session of README.md as far as it needs no server, and what it promises of saved files. Writes the
digest of what it built to /tmp/digest."""
import pathlib
import re

blocks = re.findall(r"^```python\n(.*?)^```", pathlib.Path("README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
(session,) = (block for block in blocks if "from phimap.sklearn import F2" in block)
lines = [line for line in session.splitlines() if "server=" not in line]
assert len(lines) == len(session.splitlines()) - 1, "one line of the session, the last, needs a server"
names: dict = {}
exec(compile("\n".join(lines), "README.md", "exec"), names)

import phimap

spam, rows = names["spam"], names["X"][:50]
again = phimap.load("/tmp/spam.phimap")
assert again.digest == spam.digest
assert (again.transform(rows) == spam.transform(rows)).all()
assert (again.predict(rows).labels == spam.predict(rows).labels).all()
again.verify()
names["f2"].save("/tmp/f2.phimap")
assert phimap.load("/tmp/f2.phimap").digest == names["f2"].digest_
pathlib.Path("/tmp/digest").write_text(f"{names['f2'].digest_} {spam.digest}\n", encoding="utf-8")
