#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What is shipped beside the programs: unit, sample configurations, manuals, scripts/nic-bind.
# Usage: test_dist.sh SOURCE_ROOT SPOTD SPOTCTL
set -u
root=$1 spotd=$(realpath "$2") spotctl=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

verdict() { # name, exit status, words
	if [ "$2" = 0 ]; then echo "ok $1"; passed=$((passed + 1));
	else echo "not ok $1 $3"; failed=$((failed + 1)); fi
}

# ---- the unit, with the programs of this build in place of the installed ones ----
sed -e "s#/usr/sbin/spotd#$spotd#; s#/usr/bin/spotctl#$spotctl#" "$root/dist/spotd.service" >"$work/spotd.service"
said=$(systemd-analyze verify --man=no "$work/spotd.service" 2>&1)
[ -z "$said" ]
verdict x__unit_passes_systemd_analyze_verify $? "$said"

# ---- sample configurations: the same parser as at start ----
for file in "$root"/dist/*.yaml; do
	said=$("$spotd" --config "$file" --check=strict 2>&1)
	verdict "FC116__sample_$(basename "$file" .yaml)_is_valid" $? "$said"
	said=$("$spotctl" config check "$file" --strict 2>&1)
	verdict "x__spotctl_agrees_on_$(basename "$file" .yaml)" $? "$said"
done

# ---- manuals: clean, and one for each program that is installed ----
said=$(mandoc -T lint "$root"/docs/man/* 2>&1 | grep -v 'referenced manual not found')
[ -z "$said" ]
verdict x__manuals_are_clean $? "$said"
for program in spotd.8 spotctl.8 spot.1 spotd.conf.5; do
	[ -s "$root/docs/man/$program" ] && grep -q "'$program'" "$root/programs/spotctl/meson.build"
	verdict "x__manual_of_${program//./_}_is_installed" $? "docs/man/$program, programs/spotctl/meson.build"
done
missing=
while read -r noun verb; do
	grep -q "^\.It Cm $noun${verb:+ $verb}" "$root/docs/man/spotctl.8" || missing+=" $noun $verb"
done < <("$spotctl" help | sed -n 's/^  \([a-z]\{1,\}\( [a-z]\{1,\}\)\{0,1\}\)  .*/\1/p')
[ -z "$missing" ]
verdict x__spotctl_8_has_every_verb $? "$missing"
missing=
while read -r verb; do
	grep -q "^\.Cm.*$verb\|^\.It Cm $verb" "$root/docs/man/spot.1" || missing+=" $verb"
done < <("$(dirname "$spotctl")/../spot/spot" help | sed -n 's/^  spot \([a-z]*\).*/\1/p')
[ -z "$missing" ]
verdict x__spot_1_has_every_verb $? "$missing"

# ---- nic-bind, on a made-up /sys and with a made-up ip(8) ----
pci=0000:03:00.0
device=$work/sys/bus/pci/devices/$pci
mkdir -p "$device/net/eth9" "$work/sys/class/net/eth9" "$work/sys/iommu/7/devices/$pci" "$work/sys/drivers/ixgbe" "$work/bin"
echo 0x020000 >"$device/class"
ln -s "$work/sys/drivers/ixgbe" "$device/driver"
ln -s "$work/sys/iommu/7" "$device/iommu_group"
cat >"$work/bin/ip" <<'END'
#!/bin/sh
case "$*" in
*"route show default") [ "$1" = -4 ] && echo "default via 10.0.0.1 dev ${FAKE_DEFAULT:-other} proto dhcp" ;;
*"addr show dev"*) [ -z "${FAKE_ADDRESS:-}" ] || echo "2: eth9    inet $FAKE_ADDRESS/24 scope global eth9" ;;
esac
exit 0
END
chmod +x "$work/bin/ip"
bind() { NIC_BIND_SYS=$work/sys PATH=$work/bin:$PATH "$root/scripts/nic-bind" "$@" 2>&1; }
state() { find "$work/sys" -printf '%p %s %l\n' | sort | sha256sum; }

before=$(state)
said=$(bind $pci) && [[ $said == *"Would run"* && $said == *unbind* ]] && [ "$before" = "$(state)" ]
verdict x__nic_bind_shows_and_does_nothing $? "$said"
said=$(FAKE_DEFAULT=eth9 bind $pci); code=$?
[ $code = 1 ] && [[ $said == *"default route"* ]]
verdict x__nic_bind_refuses_the_default_route $? "$said"
said=$(FAKE_DEFAULT=eth9 bind --yes $pci); code=$?
[ $code = 1 ] && [ "$before" = "$(state)" ]
verdict x__nic_bind_refuses_it_with_yes_too $? "$said"
said=$(FAKE_ADDRESS=10.1.1.1 bind $pci); code=$?
[ $code = 1 ] && [[ $said == *"address in use"* ]]
verdict x__nic_bind_refuses_an_address_in_use $? "$said"
touch "$work/sys/class/net/eth9/upper_br0"
said=$(FAKE_DEFAULT=br0 bind $pci); code=$?
[ $code = 1 ] && [[ $said == *"default route"* ]]
verdict x__nic_bind_looks_at_bridges_above $? "$said"
mkdir -p "$device/virtio0"
mv "$device/net" "$device/virtio0/net"
said=$(FAKE_DEFAULT=eth9 bind $pci); code=$?
[ $code = 1 ] && [[ $said == *"default route"* ]]
verdict x__nic_bind_finds_the_interface_of_a_virtio_device $? "$said"
rm "$device/iommu_group"
said=$(bind $pci); code=$?
[ $code = 11 ] && [[ $said == *IOMMU* ]]
verdict x__nic_bind_needs_an_iommu_group $? "$said"
said=$(bind 03:00.0); code=$?
[ $code = 2 ]
verdict x__nic_bind_refuses_half_an_address $? "$said"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
