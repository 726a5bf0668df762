#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: check.sh COMPILER SOURCE_ROOT. Each case compiles without WRONG and must not with it.
set -u
cc=$1
top=$2
passed=0
failed=0
case_is() { # RULES__name file
	flags="-std=gnu11 -fsyntax-only -Wall -Wextra -Werror -D_GNU_SOURCE"
	include="-I$top/lib -I$top/dataplane -I$top/dataplane/port"
	# shellcheck disable=SC2086
	if ! $cc $flags $include "$top/tests/core/compile_fail/$2.c"; then
		echo "not ok $1 does not compile when it is right"
		failed=$((failed + 1))
	elif $cc $flags $include -DWRONG "$top/tests/core/compile_fail/$2.c" 2>/dev/null; then
		echo "not ok $1 compiles when it is wrong"
		failed=$((failed + 1))
	else
		echo "ok $1"
		passed=$((passed + 1))
	fi
}
case_is K2__an_entry_turn_cannot_yield entry_yield
case_is K2_K3__only_an_instance_turn_closes_its_spot entry_turn_closes
case_is K1__a_spot_of_one_kind_needs_a_type_of_that_kind two_kinds
case_is K1__a_value_of_two_kinds_cannot_be_made kind_confused
case_is A4__an_unusable_owner_is_no_release tags
case_is A4__a_release_is_no_unusable_owner tags_back
case_is K3_K5__only_a_user_type_has_create instance_create
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
