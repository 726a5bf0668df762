-- gen:tables
local VERSION, HEADER_BYTES = 1, 136
local SEGMENT_BYTES_MIN = 1024
local FAMILIES = {
	[1] = "SEND", [2] = "REQUEST", [3] = "INTENT_SEND", [4] = "INTENT_REQUEST",
	[5] = "CONTROL", [6] = "PUSH", [7] = "REPLY", [8] = "ACK", [9] = "HELLO",
	[10] = "CHALLENGE",
}
local CONTROLS = {
	[1] = "CREATE", [2] = "GET_OR_CREATE", [3] = "CLOSE", [4] = "LOOKUP",
}
local FLAGS = {
	[1] = "PRESSURE", [2] = "EXPLAIN", [4] = "SEGMENTED", [8] = "ACK_NOW",
}
local CONTENTS = {
	[0] = "BYTES", [1] = "JSON", [2] = "TEXT", [3] = "REFUSAL", [4] = "ACK",
}
local SUITES = {
	[0] = "NONE",
}
local KINDS = {
	[1] = "OK", [2] = "NotFound", [3] = "AlreadyExists", [4] = "TypeMismatch",
	[5] = "NotConfigured", [6] = "Rejected", [7] = "StaleRoute", [8] = "Unavailable",
	[9] = "CapacityExceeded", [10] = "DeadlineExceeded", [11] = "Cancelled",
	[12] = "ShuttingDown", [13] = "ProtocolError", [14] = "InvalidOperation",
	[15] = "DataLost", [16] = "InternalFailure", [17] = "NotHomed", [18] = "SnapshotConflict",
	[19] = "HeadMismatch", [20] = "LifecycleConflict", [21] = "Denied",
	[22] = "Unauthenticated", [23] = "Unsupported",
}
local REASONS = {
	[0] = "None", [1] = "ProcessInbound", [2] = "Parked", [3] = "ApplicationLaneCount",
	[4] = "ApplicationLaneBytes", [5] = "LifecycleLaneCount", [6] = "LifecycleLaneBytes",
	[7] = "SchedulerQueue", [8] = "WorkerQueue", [9] = "Batch", [10] = "ActivationCeiling",
	[11] = "PendingActivations", [12] = "PendingResolves", [13] = "Placement",
	[14] = "Reassembly", [32] = "TooLarge", [33] = "KeyCollision",
	[34] = "GenerationExhausted", [35] = "StoreUnreachable", [36] = "RcuStalled",
	[37] = "LeaseLost", [38] = "OwnerUnusable", [39] = "Closing", [40] = "Declined",
	[41] = "FactoryFailed", [42] = "HandlerFault", [43] = "NoReply", [44] = "UnknownType",
	[45] = "UnknownMessage", [46] = "BadPayload", [47] = "IdMissing", [48] = "EntryIdShape",
	[49] = "SelfAwait", [50] = "CookieRequired", [51] = "GenerationMismatch",
	[52] = "OutOfMemory", [53] = "HasMembers", [54] = "WrongOwner",
}
-- name, offset, size, type
local FIELDS = {
	{"version", 0, 1, "u8"},
	{"suite_phase", 1, 1, "u8"},
	{"family", 2, 1, "u8"},
	{"flags", 3, 1, "u8"},
	{"kind", 4, 1, "u8"},
	{"reason", 5, 1, "u8"},
	{"accepted", 6, 1, "u8"},
	{"id_bytes", 7, 1, "u8"},
	{"session", 8, 8, "u64"},
	{"counter", 16, 8, "u64"},
	{"cookie", 24, 8, "u64"},
	{"spot_key_lo", 32, 8, "u64"},
	{"spot_key_hi", 40, 8, "u64"},
	{"operation_scope", 48, 8, "u64"},
	{"operation_id", 56, 8, "u64"},
	{"owner_node", 64, 8, "u64"},
	{"owner_lease", 72, 8, "u64"},
	{"object_generation", 80, 8, "u64"},
	{"spot_type", 88, 4, "u32"},
	{"message_type", 92, 2, "u16"},
	{"content_type", 94, 2, "u16"},
	{"budget_us", 96, 4, "u32"},
	{"total_bytes", 100, 4, "u32"},
	{"segment_offset", 104, 4, "u32"},
	{"segment_bytes", 108, 2, "u16"},
	{"segment_unit", 110, 2, "u16"},
	{"ingress_worker", 112, 1, "u8"},
	{"home_worker", 113, 1, "u8"},
	{"reserved", 114, 6, "bytes"},
	{"tag", 120, 16, "bytes"},
}
-- name, offset, size, type
local ACK_FIELDS = {
	{"base", 0, 4, "u32"},
	{"window", 4, 2, "u16"},
	{"done", 6, 2, "u16"},
	{"bits", 8, 32, "bytes"},
	{"reserved", 40, 8, "u64"},
}
-- name, offset, size, type
local REFUSAL_FIELDS = {
	{"limit", 0, 8, "u64"},
	{"current", 8, 8, "u64"},
	{"owner_key", 16, 16, "bytes"},
	{"owner_node", 32, 8, "u64"},
}
-- end:tables
