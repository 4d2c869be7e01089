"""A receiver of OTLP over HTTP on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.limits import LIMIT


class Receiver:
    """The requests that have arrived, by path; `gate` holds the answers back while it is clear."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {"/v1/traces": [], "/v1/metrics": []}
        self.headers: list[dict[str, str]] = []
        self.arrived = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.url = ""

    @property
    def spans(self) -> list[Any]:
        """The spans, decoded."""
        return [
            span
            for resource in self._resources()
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def services(self) -> set[str]:
        """The names of the services that the spans are from."""
        return {
            attribute.value.string_value
            for resource in self._resources()
            for attribute in resource.resource.attributes
            if attribute.key == "service.name"
        }

    @property
    def metrics(self) -> set[str]:
        """The names of the metrics."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
            ExportMetricsServiceRequest,
        )

        return {
            metric.name
            for body in self.bodies["/v1/metrics"]
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def _resources(self) -> Iterator[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        for body in self.bodies["/v1/traces"]:
            yield from ExportTraceServiceRequest.FromString(body).resource_spans


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.bodies[self.path].append(body)
            receiver.headers.append({key.lower(): value for key, value in self.headers.items()})
            receiver.arrived.set()
            receiver.gate.wait(LIMIT)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.gate.set()
            server.shutdown()
            thread.join()
