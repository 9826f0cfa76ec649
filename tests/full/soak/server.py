"""Runs the phimapd of the soak test. Gives access to its TLS files, its tokens, its metrics, and the operating
system's figures about its process."""

import os
import pathlib
import re
import secrets
import signal
import ssl
import subprocess
import threading
import time
import urllib.request

MIB = 1 << 20
LAME_DUCK_SECONDS = 2
# The idle limits of the test's server. They are the same as the fixed limit of 5 s after which a server ends an
# unfinished TLS handshake.
IDLE_SECONDS = 5
MEMORY_BYTES = 64 * MIB
MAX_MESSAGE_BYTES = 16 * MIB
# The longest time until a change of a token or TLS file must take effect. The server checks these files once a
# second.
RELOAD_SECONDS = 15


class Files:
    """A folder with the certificate authority, the server's certificate and the tokens. Files are replaced by
    renaming new ones over them, as the documentation tells operators to do."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.ca = self.folder / "ca.pem"
        self.certificate = self.folder / "server.pem"
        self.key = self.folder / "server.key"
        self.tokens = self.folder / "tokens"
        self.builder, self.admin = secrets.token_hex(16), secrets.token_hex(16)
        self.reader = secrets.token_hex(16)
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days=2",
                      "-subj=/CN=soak authority", "-keyout", self.folder / "ca.key", "-out", self.ca)
        self.renew_certificate()
        self.write_tokens([self.reader])

    def _openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)

    def renew_certificate(self):
        """Makes a new key, and a new certificate that the same authority signs. Returns the certificate's serial
        number."""
        serial = secrets.randbits(63) | 1
        key, request, made = (self.folder / name for name in ("new.key", "new.csr", "new.pem"))
        names = self.folder / "names"
        names.write_text("subjectAltName=IP:127.0.0.1")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj=/CN=127.0.0.1",
                      "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.folder / "ca.key", "-days=2",
                      "-set_serial", serial, "-extfile", names, "-out", made)
        key.rename(self.key)
        made.rename(self.certificate)
        return serial

    def write_tokens(self, readers, rest=""):
        new = self.folder / "tokens.new"
        new.touch(mode=0o600)
        lines = [f"reader {token}" for token in readers] + [f"builder {self.builder}", f"admin {self.admin}"]
        new.write_text("\n".join(lines) + "\n" + rest)
        new.rename(self.tokens)


class Server:
    def __init__(self, phimapd, files):
        self.files = files
        self.unix = f"{files.folder}/socket"
        self.log_path = files.folder / "log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [phimapd, f"--data_dir={files.folder}/data", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                 f"--unix_listen={self.unix}", f"--tls_certificate={files.certificate}", f"--tls_key={files.key}",
                 f"--token_file={files.tokens}", f"--memory_bytes={MEMORY_BYTES}",
                 f"--max_message_bytes={MAX_MESSAGE_BYTES}", f"--max_live_bytes={64 * MIB}",
                 f"--build_memory_bytes={256 * MIB}", f"--stream_idle_seconds={IDLE_SECONDS}",
                 f"--build_idle_seconds={IDLE_SECONDS}", f"--lame_duck_seconds={LAME_DUCK_SECONDS}"],
                stdout=subprocess.PIPE, stderr=log, text=True)
        ready = self.process.stdout.readline()
        found = re.search(r"grpc=(\S+).*http=(\S+)", ready)
        if not found:
            raise RuntimeError(f"phimapd did not start: {ready} {self.log_path.read_text()}")
        self.address, self._http = found[1].split(",")[0], found[2]

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        """Stops the server with SIGTERM. Returns the exit code, and how many seconds the shutdown took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60), time.monotonic() - began

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def metrics(self):
        """Returns {metric: sum of its series}."""
        with urllib.request.urlopen(f"http://{self._http}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        sums = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name = re.split(r"[ {]", line, maxsplit=1)[0]
                sums[name] = sums.get(name, 0.0) + float(line.rpartition(" ")[2])
        return sums

    def status(self, name):
        """Returns a number from /proc/PID/status. Values in kB are converted to bytes."""
        number, unit = re.search(rf"^{name}:\s+(\d+)( kB)?", pathlib.Path(f"/proc/{self.pid}/status").read_text(),
                                 re.MULTILINE).groups()
        return int(number) << 10 if unit else int(number)

    def descriptors(self):
        """Returns {kind: number of open descriptors}. All sockets are one kind, and each file name is a kind."""
        kinds = {}
        for link in pathlib.Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                target = os.readlink(link)
            except OSError:
                continue  # the descriptor was closed meanwhile
            kind = re.sub(r":\[\d+\]$", "", target)
            kinds[kind] = kinds.get(kind, 0) + 1
        return kinds

    def tls(self):
        context = ssl.create_default_context(cafile=str(self.files.ca))
        context.set_alpn_protocols(["h2"])
        return context


class Tokens:
    """Holds the reader's current token, which callers use for each new connection. `retired` contains the earlier
    tokens."""

    def __init__(self, files):
        self._files = files
        self._lock = threading.Lock()
        self.reader = files.reader
        self.retired = set()

    def rotate(self, is_accepted, wait):
        """Replaces the token as an operator would: the new token is added to the token file, then all callers change
        to it, and then the old token is removed. `is_accepted(token)` asks the server. `wait(seconds)` returns true
        if the soak ends during the wait."""
        old, new = self.reader, secrets.token_hex(16)
        self._files.write_tokens([old, new])
        await_that(lambda: is_accepted(new), "the new token is accepted")
        with self._lock:
            self.reader = new
            self.retired.add(old)
        wait(2)
        self._files.write_tokens([new])
        await_that(lambda: not is_accepted(old), "the old token is refused")


def await_that(condition, what):
    until = time.monotonic() + RELOAD_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"did not happen within {RELOAD_SECONDS} s: {what}")
        time.sleep(0.2)
