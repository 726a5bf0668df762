-- SPDX-License-Identifier: BSD-3-Clause
-- Wireshark dissector for Spotlane's wire format (docs/WIRE.md).
--
--   tshark -X lua_script:docs/wireshark/spotlane.lua -d udp.port==PORT,spotlane -r FILE
--
-- Every header field is shown under its name of the page (spotlane.FIELD). What a node would refuse
-- is marked with an expert item that names the reject code (spotlane.reject). Only what can be seen in
-- one frame is checked; that an id hashes to its key is not.

-- gen:tables
local VERSION, HEADER_BYTES = 1, 136
local SEGMENT_BYTES_MIN = 1024
local FAMILIES = {
	[1] = "SEND", [2] = "REQUEST", [3] = "INTENT_SEND", [4] = "INTENT_REQUEST",
	[5] = "CONTROL", [6] = "PUSH", [7] = "REPLY", [8] = "ACK", [9] = "HELLO",
	[10] = "CHALLENGE", [12] = "FORWARD_SEND", [13] = "FORWARD_REQUEST",
	[14] = "FORWARD_REPLY",
}
local CONTROLS = {
	[1] = "CREATE", [2] = "GET_OR_CREATE", [3] = "CLOSE", [4] = "LOOKUP", [6] = "JOIN",
	[7] = "LEAVE",
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

local spotlane = Proto("spotlane", "Spotlane")

local NAMES = {
	family = FAMILIES, kind = KINDS, reason = REASONS, content_type = CONTENTS,
	accepted = { [1] = "yes", [2] = "no", [3] = "unknown" },
}
local HEXADECIMAL = {
	session = true, cookie = true, operation_scope = true, spot_type = true, spot_key_lo = true,
	spot_key_hi = true, owner_node = true, flags = true,
}

local function make_field(prefix, name, kind)
	local abbreviation = prefix .. name
	if kind == "bytes" then
		return ProtoField.bytes(abbreviation, name)
	end
	local base = HEXADECIMAL[name] and base.HEX or base.DEC
	-- Wireshark takes no names for 64-bit fields.
	local names = kind ~= "u64" and NAMES[name] or nil
	return ProtoField["uint" .. kind:sub(2)](abbreviation, name, base, names)
end

local fields = {}
local function make_fields(prefix, list)
	local made = {}
	for _, row in ipairs(list) do
		made[row[1]] = make_field(prefix, row[1], row[4])
		fields[#fields + 1] = made[row[1]]
	end
	return made
end

local header_fields = make_fields("spotlane.", FIELDS)
local ack_fields = make_fields("spotlane.ack.", ACK_FIELDS)
local refusal_fields = make_fields("spotlane.refusal.", REFUSAL_FIELDS)

local flag_fields = {}
for value, name in pairs(FLAGS) do
	flag_fields[#flag_fields + 1] = ProtoField.bool(
		"spotlane.flag." .. name:lower(), name, 8, nil, value)
end
table.sort(flag_fields, function(a, b) return tostring(a) < tostring(b) end)
for _, field in ipairs(flag_fields) do
	fields[#fields + 1] = field
end

local suite_field = ProtoField.uint8("spotlane.suite", "suite", base.DEC, SUITES, 0xfe)
local phase_field = ProtoField.uint8("spotlane.key_phase", "key phase", base.DEC, nil, 0x01)
local control_field = ProtoField.uint16(
	"spotlane.control", "control operation", base.DEC, CONTROLS)
local key_field = ProtoField.bytes("spotlane.spot_key", "Spot key")
local route_field = ProtoField.bytes("spotlane.route", "sealed reply route")
local id_field = ProtoField.string("spotlane.id", "full id", base.UNICODE)
local explain_field = ProtoField.string("spotlane.explanation", "explanation", base.UNICODE)
local payload_field = ProtoField.bytes("spotlane.payload", "payload")
local reject_field = ProtoField.string("spotlane.reject", "a node refuses this frame")
for _, field in ipairs({ suite_field, phase_field, control_field, key_field, id_field, route_field,
	explain_field, payload_field, reject_field }) do
	fields[#fields + 1] = field
end
spotlane.fields = fields

local reject_expert = ProtoExpert.new(
	"spotlane.rejected", "a node refuses this frame", expert.group.MALFORMED, expert.severity.ERROR)
local failed_expert = ProtoExpert.new(
	"spotlane.failed", "result is not OK", expert.group.RESPONSE_CODE, expert.severity.NOTE)
spotlane.experts = { reject_expert, failed_expert }

local OFFSETS = {}
for _, row in ipairs(FIELDS) do
	OFFSETS[row[1]] = { row[2], row[3] }
end

local function range_of(buffer, name)
	return buffer(OFFSETS[name][1], OFFSETS[name][2])
end

local function number_of(buffer, name)
	return range_of(buffer, name):le_uint()
end

local function is_zero(range)
	for i = 0, range:len() - 1 do
		if range(i, 1):uint() ~= 0 then
			return false
		end
	end
	return true
end

local function has_flag(buffer, name)
	for value, flag in pairs(FLAGS) do
		if flag == name then
			return math.floor(number_of(buffer, "flags") / value) % 2 == 1
		end
	end
end

local function segment_fault(buffer)
	local offset, unit = number_of(buffer, "segment_offset"), number_of(buffer, "segment_unit")
	local total, bytes = number_of(buffer, "total_bytes"), number_of(buffer, "segment_bytes")
	if not has_flag(buffer, "SEGMENTED") then
		return total ~= bytes and "total" or (offset ~= 0 or unit ~= 0) and "segment" or nil
	end
	if unit < SEGMENT_BYTES_MIN or total <= unit or offset >= total or offset % unit ~= 0
		or bytes ~= math.min(unit, total - offset) then
		return "segment"
	end
end

local function is_reply(buffer)
	local family = FAMILIES[number_of(buffer, "family")]
	return family == "REPLY" or family == "FORWARD_REPLY"
end

local function result_fault(buffer)
	local kind, accepted = number_of(buffer, "kind"), number_of(buffer, "accepted")
	local reason = number_of(buffer, "reason")
	if not is_reply(buffer) then
		return kind ~= 0 or reason ~= 0 or accepted ~= 0
	end
	return KINDS[kind] == nil or REASONS[reason] == nil or NAMES.accepted[accepted] == nil
		or (kind == 1 and accepted ~= 1)
end

-- The first fault that shows in the frame alone, as a reject code of the page; nil = none.
local function fault_of(buffer)
	if buffer:len() < HEADER_BYTES then
		return "short"
	elseif number_of(buffer, "version") ~= VERSION then
		return "version"
	elseif number_of(buffer, "suite_phase") ~= 0 then
		return "suite"
	elseif FAMILIES[number_of(buffer, "family")] == nil then
		return "family"
	elseif number_of(buffer, "flags") > 15
		or (has_flag(buffer, "ACK_NOW") and not has_flag(buffer, "SEGMENTED")) then
		return "flags"
	elseif buffer:len() ~= HEADER_BYTES + number_of(buffer, "id_bytes")
		+ number_of(buffer, "segment_bytes") then
		return "length"
	elseif not is_zero(range_of(buffer, "reserved")) then
		return "reserved"
	elseif not is_zero(range_of(buffer, "tag")) then
		return "tag"
	elseif result_fault(buffer) then
		return "result"
	elseif is_zero(range_of(buffer, "session")) then
		return "session"
	elseif is_zero(range_of(buffer, "counter")) then
		return "counter"
	elseif CONTENTS[number_of(buffer, "content_type")] == nil then
		return "content"
	end
	return segment_fault(buffer)
end

local function add_derived(tree, buffer, name, range)
	if name == "suite_phase" then
		tree:add(suite_field, range)
		tree:add(phase_field, range)
	elseif name == "flags" then
		for _, field in ipairs(flag_fields) do
			tree:add(field, range)
		end
	elseif name == "spot_key_lo" then
		tree:add(key_field, buffer(range:offset(), 16))
	elseif name == "message_type" and FAMILIES[number_of(buffer, "family")] == "CONTROL" then
		tree:add_le(control_field, range)
	end
end

local function add_list(tree, buffer, list, made, derive)
	for _, row in ipairs(list) do
		local range = buffer(row[2], row[3])
		local item = row[4] == "bytes" and tree:add(made[row[1]], range)
			or tree:add_le(made[row[1]], range)
		if derive then
			add_derived(item, buffer, row[1], range)
		end
	end
end

local function add_payload(tree, body, header)
	local content = CONTENTS[number_of(header, "content_type")]
	local first = number_of(header, "segment_offset") == 0
	if has_flag(header, "EXPLAIN") and is_reply(header) and first
		and body:len() >= 2 and body:len() >= 2 + body(0, 2):le_uint() then
		local size = body(0, 2):le_uint()
		if size > 0 then
			tree:add(explain_field, body(2, size), body(2, size):string(ENC_UTF_8))
		end
		if body:len() == 2 + size then
			return
		end
		body = body(2 + size):tvb()
	end
	local item = tree:add(payload_field, body())
	if content == "ACK" and body:len() == 48 then
		add_list(item, body, ACK_FIELDS, ack_fields)
	elseif content == "REFUSAL" and body:len() == 40 then
		add_list(item, body, REFUSAL_FIELDS, refusal_fields)
	end
end

local function summary(buffer)
	local family = FAMILIES[number_of(buffer, "family")] or "?"
	local text = string.format("%s op %s", family, range_of(buffer, "operation_id"):le_uint64())
	if is_reply(buffer) then
		text = text .. string.format(" %s/%s", KINDS[number_of(buffer, "kind")] or "?",
			REASONS[number_of(buffer, "reason")] or "?")
	elseif family == "CONTROL" then
		text = text .. " " .. (CONTROLS[number_of(buffer, "message_type")] or "?")
	end
	if has_flag(buffer, "SEGMENTED") then
		local offset = number_of(buffer, "segment_offset")
		text = text .. string.format(" bytes %d-%d of %d", offset,
			offset + number_of(buffer, "segment_bytes"), number_of(buffer, "total_bytes"))
	end
	return text
end

local function is_between_nodes(buffer)
	local family = FAMILIES[number_of(buffer, "family")]
	return family ~= nil and family:sub(1, 8) == "FORWARD_"
end

local function add_rest(tree, buffer)
	local at, left = HEADER_BYTES, buffer:len() - HEADER_BYTES
	local id_bytes = math.min(number_of(buffer, "id_bytes"), left)
	if id_bytes > 0 and is_between_nodes(buffer) then
		tree:add(route_field, buffer(at, id_bytes))
	elseif id_bytes > 0 then
		tree:add(id_field, buffer(at, id_bytes), buffer(at, id_bytes):string(ENC_UTF_8))
	end
	if left > id_bytes then
		add_payload(tree, buffer(at + id_bytes):tvb(), buffer)
	end
end

function spotlane.dissector(buffer, packet, root)
	packet.cols.protocol = "Spotlane"
	local tree = root:add(spotlane, buffer())
	local fault = fault_of(buffer)
	local readable = buffer:len() >= HEADER_BYTES and number_of(buffer, "version") == VERSION
	if readable then
		add_list(tree, buffer, FIELDS, header_fields, true)
		add_rest(tree, buffer)
		packet.cols.info = summary(buffer)
	end
	if fault then
		tree:add(reject_field, fault):set_generated()
		tree:add_proto_expert_info(reject_expert, "a node refuses this frame: " .. fault)
		packet.cols.info = "refused: " .. fault
	elseif FAMILIES[number_of(buffer, "family")] == "REPLY" and number_of(buffer, "kind") ~= 1 then
		tree:add_proto_expert_info(failed_expert, "result is "
			.. KINDS[number_of(buffer, "kind")])
	end
	return buffer:len()
end

-- No port is registered for Spotlane: choose one with -d udp.port==PORT,spotlane.
DissectorTable.get("udp.port"):add_for_decode_as(spotlane)
