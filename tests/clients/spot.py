# gen:constants
VERSION, HEADER_BYTES, SEGMENT_BYTES_MIN = 1, 136, 1024
HEADER_FORMAT = "<BBBBBBBBQQQQQQQQQQIHHIIIHHBB6s16s"
FIELDS = (
    "version", "suite_phase", "family", "flags", "kind", "reason", "accepted", "id_bytes",
    "session", "counter", "cookie", "spot_key_lo", "spot_key_hi", "operation_scope",
    "operation_id", "owner_node", "owner_lease", "object_generation", "spot_type", "message_type",
    "content_type", "budget_us", "total_bytes", "segment_offset", "segment_bytes", "segment_unit",
    "ingress_worker", "home_worker", "reserved", "tag",
)
(SEND, REQUEST, INTENT_SEND, INTENT_REQUEST, CONTROL, PUSH, REPLY, ACK, HELLO, CHALLENGE) = \
    range(1, 11)
FLAG_PRESSURE, FLAG_EXPLAIN, FLAG_SEGMENTED, FLAG_ACK_NOW = 1, 2, 4, 8
CONTENT_REFUSAL, CONTENT_ACK = 3, 4
KINDS = {
    1: "OK", 2: "NotFound", 3: "AlreadyExists", 4: "TypeMismatch", 5: "NotConfigured",
    6: "Rejected", 7: "StaleRoute", 8: "Unavailable", 9: "CapacityExceeded",
    10: "DeadlineExceeded", 11: "Cancelled", 12: "ShuttingDown", 13: "ProtocolError",
    14: "InvalidOperation", 15: "DataLost", 16: "InternalFailure", 17: "NotHomed",
    18: "SnapshotConflict", 19: "HeadMismatch", 20: "LifecycleConflict", 21: "Denied",
    22: "Unauthenticated", 23: "Unsupported",
}
REASONS = {
    0: "None", 1: "ProcessInbound", 2: "Parked", 3: "ApplicationLaneCount",
    4: "ApplicationLaneBytes", 5: "LifecycleLaneCount", 6: "LifecycleLaneBytes",
    7: "SchedulerQueue", 8: "WorkerQueue", 9: "Batch", 10: "ActivationCeiling",
    11: "PendingActivations", 12: "PendingResolves", 13: "Placement", 14: "Reassembly",
    32: "TooLarge", 33: "KeyCollision", 34: "GenerationExhausted", 35: "StoreUnreachable",
    36: "RcuStalled", 37: "LeaseLost", 38: "OwnerUnusable", 39: "Closing", 40: "Declined",
    41: "FactoryFailed", 42: "HandlerFault", 43: "NoReply", 44: "UnknownType",
    45: "UnknownMessage", 46: "BadPayload", 47: "IdMissing", 48: "EntryIdShape", 49: "SelfAwait",
    50: "CookieRequired", 51: "GenerationMismatch", 52: "OutOfMemory", 53: "HasMembers",
    54: "WrongOwner",
}
# end:constants
