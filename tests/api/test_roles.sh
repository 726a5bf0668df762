#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A real node and users of this machine: who may do what on its socket (G2). Other users need root; without
# it only the node's own user is tried. Usage: test_roles.sh SPOTD SPOTCTL
set -u
work=$(mktemp -d)
passed=0 failed=0 node=
cleanup() {
	[ -n "$node" ] && kill -KILL "$node" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
verdict() { # name, exit status, words
	if [ "$2" = 0 ]; then echo "ok $1"; passed=$((passed + 1));
	else echo "not ok $1 $3"; failed=$((failed + 1)); fi
}
skip() { echo "ok $1 # SKIP $2"; }

cp "$1" "$work/spotd"
cp "$2" "$work/spotctl"
chmod 0711 "$work"
chmod 0755 "$work/spotd" "$work/spotctl"
mkdir -m 0777 "$work/run"
socket=$work/run/control.sock

config() { # mode
	rm -f "$socket.lock" # another user's
	cat >"$work/spotd.yaml" <<YAML
node: {id: roles}
insecure: yes
fabrics: [{kind: udp, listen: "127.0.0.1:0"}]
store: {kind: memory}
control:
  socket: $socket
  mode: $1
  roles:
    - {uid: 4001, role: operate}
    - {gid: 4500, role: administer}
YAML
	chmod 0644 "$work/spotd.yaml"
}

ready() {
	local deadline=$((SECONDS + 60))
	until "$work/spotctl" --socket "$socket" health ready >/dev/null 2>&1; do
		kill -0 "$node" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.05
	done
}
stop() {
	kill -TERM "$node"
	wait "$node"
	node=
}

user() { # uid, gid, groups or -, words…
	local uid=$1 gid=$2 groups=(--clear-groups)
	[ "$3" = - ] || groups=(--groups "$3")
	shift 3
	setpriv --reuid "$uid" --regid "$gid" "${groups[@]}" "$work/spotctl" --socket "$socket" "$@"
}

# Words that call each op, with the role that the tool's own table asks for.
words() {
	"$work/spotctl" help | sed -n 's/^  \([a-z]\{1,\}\( [a-z]\{1,\}\)\{0,1\}\)  .*/\1/p' | while read -r noun verb; do
		[ "$noun" != help ] || continue
		role=$("$work/spotctl" help $noun $verb | sed -n 's/.*role \(read\|operate\|administer\).*/\1/p' | head -1)
		[ -n "$role" ] && echo "$role $noun $verb"
	done
}
arguments() { # noun verb
	case "$1 ${2:-}" in
	"spot create") echo "x counter" ;;
	"spot "*|"route show") [ "$2" = list ] || echo x ;;
	"node show"|"node fence") echo nobody ;;
	esac
}
rank() { case $1 in read) echo 1 ;; operate) echo 2 ;; administer) echo 3 ;; esac; }

# Every op as one user: exit code 5 exactly where the role does not reach.
every_op() { # role, uid, gid, groups
	local have=$1 need noun verb code wrong=
	shift
	while read -r need noun verb; do
		case $noun in stop|watch) [ "$(rank "$need")" -gt "$(rank "$have")" ] || continue ;; esac
		code=0
		user "$@" $noun $verb $(arguments "$noun" "$verb") >/dev/null 2>"$work/err" </dev/null || code=$?
		if [ "$(rank "$need")" -gt "$(rank "$have")" ]; then
			[ "$code" = 5 ] && grep -q "needs the role $need" "$work/err" || wrong+=" $noun $verb: $code"
		else
			[ "$code" != 5 ] || wrong+=" $noun $verb: $code"
		fi
	done <"$work/words"
	[ -z "$wrong" ] || { echo "$wrong"; return 1; }
}

# ---- the node's own user, whoever that is ----
config 0600
"$work/spotd" --config "$work/spotd.yaml" 2>"$work/log" &
node=$!
ready
verdict x__node_is_ready $? "$(tail -3 "$work/log")"
words >"$work/words"
[ "$(wc -l <"$work/words")" -ge 20 ] && grep -q '^administer stop' "$work/words"
verdict x__the_table_of_roles_is_read $? "$(cat "$work/words")"
"$work/spotctl" --socket "$socket" stop --deadline 1s >/dev/null
verdict G2__the_nodes_own_user_administers $? "stop refused"
wait "$node"
node=

if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null || ! setpriv --reuid 4001 --regid 4001 --clear-groups true; then
	skip G2__each_user_has_exactly_its_role "needs root"
	skip G2__the_sockets_mode_keeps_others_out "needs root"
	skip G2__members_of_the_group_spotlane_operate "needs root"
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
	exit
fi

# ---- a node of user 4100, and others ----
config 0666
setpriv --reuid 4100 --regid 4100 --clear-groups "$work/spotd" --config "$work/spotd.yaml" 2>"$work/log" &
node=$!
ready
verdict x__node_of_another_user_is_ready $? "$(tail -3 "$work/log")"
for row in "administer 0 0 -" "administer 4100 4100 -" "operate 4001 4001 -" "administer 4002 4500 -" \
	"administer 4003 4003 4400,4500" "read 4004 4004 -" "read 4005 4100 -" "read 65534 65534 -"; do
	said=$(every_op $row)
	verdict "G2__each_user_has_exactly_its_role:${row// /_}" $? "$said"
done
stop

config 0660
setpriv --reuid 4100 --regid 4100 --clear-groups "$work/spotd" --config "$work/spotd.yaml" 2>"$work/log" &
node=$!
ready
code=0
user 4004 4004 - status >/dev/null 2>"$work/err" || code=$?
[ "$code" = 5 ] && grep -q "Permission denied" "$work/err" && [ "$(wc -l <"$work/err")" = 1 ] &&
	user 4005 4100 - status >/dev/null
verdict G2__the_sockets_mode_keeps_others_out $? "exit $code: $(cat "$work/err")"
stop

# ---- the group spotlane, where the machine has one ----
config 0666
{ cat /etc/group; echo "spotlane:x:4600:"; } >"$work/group"
if ! unshare -m true 2>/dev/null; then
	skip G2__members_of_the_group_spotlane_operate "no mount namespaces here"
else
	unshare -m sh -c "mount --bind '$work/group' /etc/group &&
		exec setpriv --reuid 4100 --regid 4100 --clear-groups '$work/spotd' --config '$work/spotd.yaml'" \
		2>"$work/log" &
	node=$!
	ready
	said=$(every_op operate 4006 4006 4600 && every_op operate 4006 4600 - && every_op read 4006 4006 -)
	verdict G2__members_of_the_group_spotlane_operate $? "$said $(tail -2 "$work/log")"
	stop
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
