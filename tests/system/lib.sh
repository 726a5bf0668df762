# SPDX-License-Identifier: BSD-3-Clause
# What the system tests share: verdict lines, and a node of the test's own name.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
passed=0 failed=0

verdict() { # status, name, detail
	if [ "$1" = 0 ]; then
		echo "ok $2"
		passed=$((passed + 1))
	else
		echo "not ok $2 $(tr '\n' '|' <<<"${3:-}" | tail -c 400)"
		failed=$((failed + 1))
	fi
}

summary() {
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}

# Waits until a command succeeds; false when it does not within so many seconds.
until_true() { # seconds, command…
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.1
	done
}

run_pid=
# Starts scripts/run in the background; its output goes to $scratch/NAME.log.
start_run() { # name, options…
	local name=$1
	shift
	"$top/scripts/run" --name "$name" --no-tour --quiet "$@" >"$scratch/$name.log" 2>&1 &
	run_pid=$!
	until_true 90 grep -q 'is ready' "$scratch/$name.log"
}

stop_run() { # pid
	kill -INT "$1" 2>/dev/null
	wait "$1"
}

pages() {
	cat /proc/sys/vm/nr_hugepages
}
