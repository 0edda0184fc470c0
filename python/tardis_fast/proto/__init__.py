"""The generated Bronze and Silver classes; made by `scripts/generate`.

from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent
"""
