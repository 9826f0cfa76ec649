"""Tests that callers notice nothing of a collector of traces that hangs, refuses or is away, and that metrics count its
spans.

    traces_test.py --phimapd=… --phimap=…
"""

import http.server
import re
import socket
import threading
import time
import unittest
import urllib.request

from phimapd import Phimapd, take_flags

CALLS = 50
SPANS = 5 * CALLS  # of each call itself, and of its steps admission, receive, store and send
SAMPLED = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}

arguments = None


class Collector:
    """A collector on a free port that answers each request with `status`."""

    def __init__(self, status):
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                requests.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def get(server, path, headers=None):
    with urllib.request.urlopen(urllib.request.Request(f"http://{server}{path}", headers=headers or {}), timeout=60) as answer:
        return answer.read().decode()


def count(server, name, reason=None):
    label = f'{{reason="{reason}"}}' if reason else ""
    return int(re.search(rf"^{re.escape(name + label)} (\d+)", get(server.http, "/metrics"), re.M)[1])


class TracesTest(unittest.TestCase):
    def phimapd(self, *flags):
        return Phimapd(arguments, "--api_http=127.0.0.1:0", "--lame_duck_seconds=0", *flags, http="127.0.0.1:0")

    def call(self, server, headers):
        for _ in range(CALLS):
            self.assertIn("families", get(server.api_http, "/v1/capabilities", headers))

    def await_count(self, server, value, *name):
        while count(server, *name) < value:
            pass
        self.assertEqual(count(server, *name), value)

    def test_each_call_that_its_caller_traces_is_sent(self):
        with Collector(200) as collector, self.phimapd(f"--trace_endpoint={collector.url}", "--trace_ratio=0") as server:
            self.call(server, {})
            self.call(server, SAMPLED)
            self.await_count(server, SPANS, "phimap_trace_spans_sent_total")
            for path, body in collector.requests:
                self.assertEqual(path, "/v1/traces")
                self.assertIn(bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736"), body)

    def test_all_calls_are_sent_if_the_ratio_is_one(self):
        with Collector(200) as collector, self.phimapd(f"--trace_endpoint={collector.url}", "--trace_ratio=1") as server:
            self.call(server, {})
            self.await_count(server, SPANS, "phimap_trace_spans_sent_total")

    def test_what_the_collector_refuses_is_counted(self):
        with Collector(400) as collector, self.phimapd(f"--trace_endpoint={collector.url}") as server:
            self.call(server, SAMPLED)
            self.await_count(server, SPANS, "phimap_trace_spans_dropped_total", "rejected")

    def test_a_collector_that_hangs_delays_neither_calls_nor_the_end(self):
        with socket.socket() as hanging:
            hanging.bind(("127.0.0.1", 0))
            hanging.listen()
            with self.phimapd(f"--trace_endpoint=http://127.0.0.1:{hanging.getsockname()[1]}") as server:
                self.call(server, SAMPLED)
                began = time.monotonic()
                server.terminate()
                self.assertEqual(server.process.wait(), 0)
                # Spans are sent for a second; an answer would be waited for during ten.
                self.assertLess(time.monotonic() - began, 8)

    def test_a_collector_that_is_away_delays_neither_calls_nor_the_end(self):
        with Collector(200) as collector:
            url = collector.url
        with self.phimapd(f"--trace_endpoint={url}") as server:
            self.call(server, SAMPLED)
            while count(server, "phimap_trace_request_failures_total") == 0:
                pass
            began = time.monotonic()
            server.terminate()
            self.assertEqual(server.process.wait(), 0)
            self.assertLess(time.monotonic() - began, 8)


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap")
    unittest.main()
