"""The request for entries of the audit."""
from __future__ import annotations

import datetime

from phimap.v1 import mapping_service_pb2 as service_pb


def audit_request(name: str, principal: str | None, start_time: datetime.datetime | None,
                  end_time: datetime.datetime | None) -> service_pb.ListAuditEntriesRequest:
    """Times without a time zone are local, as `datetime` has it."""
    request = service_pb.ListAuditEntriesRequest(name=name, principal=principal, page_size=1000)
    if start_time is not None:
        request.start_time.FromDatetime(start_time.astimezone(datetime.timezone.utc))
    if end_time is not None:
        request.end_time.FromDatetime(end_time.astimezone(datetime.timezone.utc))
    return request
