// SPDX-License-Identifier: BSD-3-Clause
#include "config/internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/units.h"

// What an item's block holds beside the payload, at most: node, envelope, id, metadata.
enum { ITEM_OVERHEAD_BYTES = 512 };

struct place {
	uint32_t line, column;
};

// Where a dotted path stands in the text, or the nearest part of it that is written.
static struct place place_of(const struct config_reading *r, const char *path)
{
	const struct tree_node *node = tree_at(r->tree, r->tree->root);
	struct place place = {1, 1};
	char word[72];
	while (node != NULL && *path != '\0') {
		size_t size = strcspn(path, ".");
		if (size >= sizeof word)
			break;
		memcpy(word, path, size);
		word[size] = '\0';
		node = tree_child(r->tree, node, word);
		if (node != NULL)
			place = (struct place){node->key_line, node->key_column};
		path += size + (path[size] == '.');
	}
	return place;
}

static const struct tree_node *node_of_element(
	const struct config_reading *r, const char *list, uint32_t index)
{
	const struct tree_node *node = tree_child(r->tree, tree_at(r->tree, r->tree->root), list);
	if (node == NULL || node->kind != TREE_LIST)
		return NULL;
	uint32_t i = node->child;
	while (i != 0 && index-- > 0)
		i = r->tree->nodes[i].next;
	return tree_at(r->tree, i);
}

#define COMPLAIN(r, path, ...)                                                                     \
	config_complain(r, place_of(r, path).line, place_of(r, path).column, __VA_ARGS__)

// The allocator's classes: four to each doubling. Computed here so that a check needs no allocator.
static uint64_t size_class(uint64_t bytes)
{
	unsigned top = 63u - (unsigned)__builtin_clzll(bytes - 1);
	uint64_t step = UINT64_C(1) << (top - 2);
	return (bytes + step - 1) / step * step;
}

// M8: a message of the largest size must be able to arrive.
static bool message_fits(struct config_reading *r, const struct config *c)
{
	uint64_t need = c->limits.accounting == CONFIG_ACCOUNTING_FIXED
				? c->limits.message_bytes + 256
				: size_class(c->limits.message_bytes + ITEM_OVERHEAD_BYTES);
	uint64_t block = size_class(c->limits.message_bytes + ITEM_OVERHEAD_BYTES);
	const struct {
		const char *path;
		uint64_t room, need;
		const char *what;
	} bounds[] = {
		{"limits.application_lane.bytes", c->limits.application_lane.bytes, need,
			"limits.application_lane.bytes"},
		{"limits.peer_reassembly", c->limits.peer_reassembly_bytes, block,
			"limits.peer_reassembly"},
		{"limits.process_inbound", c->limits.process_inbound_bytes / 4, block,
			"a quarter of limits.process_inbound"},
	};
	char message[32], needed[32], room[32];
	units_print_size(c->limits.message_bytes, message, sizeof message);
	for (size_t i = 0; i < ARRAY_COUNT(bounds); i++) {
		if (bounds[i].need <= bounds[i].room)
			continue;
		units_print_size(bounds[i].need, needed, sizeof needed);
		units_print_size(bounds[i].room, room, sizeof room);
		// The bound is named where it is written, else the message's size is what was changed.
		struct place at = place_of(r, bounds[i].path);
		if (at.line == 1 && at.column == 1)
			at = place_of(r, "limits.message");
		return config_complain(r, at.line, at.column,
			"limits.message: a message of %s takes %s, which must fit %s (%s)", message, needed,
			bounds[i].what, room);
	}
	return true;
}

// O1: max(renew, timeout) + timeout < ttl - margin.
static bool lease_holds(struct config_reading *r, const struct config *c)
{
	uint64_t renew = c->lease.renew_ms, timeout = c->lease.timeout_ms;
	uint64_t need = (renew > timeout ? renew : timeout) + timeout;
	uint64_t have = c->lease.ttl_ms > c->lease.margin_ms ? c->lease.ttl_ms - c->lease.margin_ms : 0;
	char needed[32], left[32];
	units_print_time(need, 1000000, needed, sizeof needed);
	units_print_time(have, 1000000, left, sizeof left);
	return need < have ||
	       COMPLAIN(r, "lease",
		       "lease: max(renew, timeout) + timeout = %s must be less than ttl - margin = %s",
		       needed, left);
}

static bool fabric_complain(
	struct config_reading *r, uint32_t index, const char *key, const char *text)
{
	const struct tree_node *element = node_of_element(r, "fabrics", index);
	const struct tree_node *child = key == NULL ? NULL : tree_child(r->tree, element, key);
	uint32_t line = child != NULL ? child->key_line : element->line;
	uint32_t column = child != NULL ? child->key_column : element->column;
	return config_complain(r, line, column, "fabrics[%u]%s%s: %s", index, key == NULL ? "" : ".",
		key == NULL ? "" : key, text);
}

static bool fabric_lacks(struct config_reading *r, uint32_t index, const char *const *names,
	const char *text)
{
	const struct tree_node *element = node_of_element(r, "fabrics", index);
	for (; *names != NULL; names++) {
		if (tree_child(r->tree, element, *names) != NULL)
			return fabric_complain(r, index, *names, text);
	}
	return true;
}

static bool fabric_udp(struct config_reading *r, const struct config_fabric *f, uint32_t index)
{
	static const char *const foreign[] = {
		"vdev", "pci", "iface", "addresses", "port", "gateway4", "gateway6", "vlan", NULL};
	if (f->listen.text[0] == '\0')
		return fabric_complain(r, index, NULL, "a udp fabric needs \"listen\"");
	return fabric_lacks(r, index, foreign, "not for a udp fabric");
}

static bool is_pci_address(const char *text)
{
	static const char shape[] = "hhhh:hh:hh.h";
	for (size_t i = 0; i < sizeof shape; i++) {
		if (shape[i] == 'h' ? !isxdigit((unsigned char)text[i]) : text[i] != shape[i])
			return false;
	}
	return true;
}

static bool fabric_dpdk(struct config_reading *r, const struct config_fabric *f, uint32_t index)
{
	static const char *const foreign[] = {"listen", NULL};
	int devices = (f->vdev[0] != '\0') + (f->pci[0] != '\0') + (f->iface[0] != '\0');
	if (devices != 1)
		return fabric_complain(
			r, index, NULL, "a dpdk fabric needs exactly one of vdev, pci, iface");
	if (f->pci[0] != '\0' && !is_pci_address(f->pci))
		return fabric_complain(r, index, "pci", "not a PCI address such as 0000:03:00.0");
	if (strchr(f->iface, '/') != NULL || strchr(f->iface, ',') != NULL)
		return fabric_complain(r, index, "iface", "not an interface name");
	if (f->address_count == 0)
		return fabric_complain(r, index, NULL, "a dpdk fabric needs \"addresses\"");
	return fabric_lacks(r, index, foreign, "not for a dpdk fabric");
}

static bool fabrics_hold(struct config_reading *r, struct config *c)
{
	if (c->fabric_count == 0)
		return COMPLAIN(r, "fabrics", "fabrics: missing and has no default; name at least one");
	for (uint32_t i = 0; i < c->fabric_count; i++) {
		struct config_fabric *f = &c->fabrics[i];
		if (f->kind == 0)
			return fabric_complain(r, i, NULL, "\"kind\" is missing and has no default");
		if (!(f->kind == CONFIG_FABRIC_UDP ? fabric_udp(r, f, i) : fabric_dpdk(r, f, i)))
			return false;
		if (f->name[0] == '\0')
			snprintf(f->name, sizeof f->name, "%s%u",
				f->kind == CONFIG_FABRIC_UDP ? "udp" : "dpdk", i);
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(c->fabrics[j].name, f->name) == 0)
				return fabric_complain(r, i, "name", "two fabrics of one name");
		}
	}
	return true;
}

static bool workers_hold(struct config_reading *r, struct config *c)
{
	const struct tree_node *section =
		tree_child(r->tree, tree_at(r->tree, r->tree->root), "workers");
	const struct tree_node *count = tree_child(r->tree, section, "count");
	if (c->workers.core_count == 0)
		return true;
	if (count != NULL && c->workers.count != c->workers.core_count)
		return config_complain(r, count->key_line, count->key_column,
			"workers.count: %u, but workers.cores names %u", c->workers.count,
			c->workers.core_count);
	c->workers.count = c->workers.core_count;
	return true;
}

static bool roles_hold(struct config_reading *r, const struct config *c)
{
	for (uint32_t i = 0; i < c->control.role_count; i++) {
		const struct config_role_rule *rule = &c->control.roles[i];
		struct place at = place_of(r, "control.roles");
		if ((rule->uid >= 0) == (rule->gid >= 0))
			return config_complain(r, at.line, at.column,
				"control.roles[%u]: exactly one of uid and gid is needed", i);
		if (rule->role == 0)
			return config_complain(r, at.line, at.column,
				"control.roles[%u]: \"role\" is missing and has no default", i);
	}
	return true;
}

static bool is_loopback(const struct config_endpoint *at)
{
	static const uint8_t last[16] = {[15] = 1};
	return at->is_ipv6 ? memcmp(at->ip, last, sizeof last) == 0 : at->ip[12] == 127;
}

static bool metrics_hold(struct config_reading *r, const struct config *c)
{
	return c->metrics.listen.text[0] == '\0' || c->metrics.beyond_loopback ||
	       is_loopback(&c->metrics.listen) ||
	       COMPLAIN(r, "metrics.listen",
		       "metrics.listen: %s is not loopback; other machines may read there only with "
		       "metrics.beyond_loopback: yes",
		       c->metrics.listen.text);
}

static bool modules_hold(struct config_reading *r, const struct config *c)
{
	for (uint32_t i = 0; i < c->module_count; i++) {
		struct place at = place_of(r, "modules");
		const struct tree_node *element = node_of_element(r, "modules", i);
		if (element != NULL)
			at = (struct place){element->line, element->column};
		if (c->modules[i].path[0] != '/')
			return config_complain(r, at.line, at.column,
				"modules[%u].path: an absolute path is needed", i);
	}
	return true;
}

static void hints(struct config_reading *r, const struct config *c)
{
	if (!c->insecure)
		config_warn(r, place_of(r, "insecure").line, place_of(r, "insecure").column,
			"insecure: not set, and this version has no authenticated suite: every frame will be "
			"refused");
	if (c->control.mode & 0007)
		config_warn(r, place_of(r, "control.mode").line, place_of(r, "control.mode").column,
			"control.mode: every user of the machine may read the node's state");
	if (c->workers.idle == CONFIG_IDLE_SPIN && c->workers.core_count == 0)
		config_warn(r, place_of(r, "workers.idle").line, place_of(r, "workers.idle").column,
			"workers.idle: spin without workers.cores lets workers share cores and starve each "
			"other");
	if (c->store.kind == CONFIG_STORE_MEMORY)
		config_warn(r, place_of(r, "store.kind").line, place_of(r, "store.kind").column,
			"store.kind: memory keeps nothing over a restart");
}

bool config_relations(struct config_reading *r, struct config *config)
{
	if (config->node.id[0] == '\0')
		return COMPLAIN(r, "node", "node.id: missing and has no default");
	if (config->store.kind == CONFIG_STORE_SQLITE && config->store.path[0] != '/')
		return COMPLAIN(r, "store.path", "store.path: an absolute path is needed");
	if (config->control.socket[0] != '/')
		return COMPLAIN(r, "control.socket", "control.socket: an absolute path is needed");
	if (!fabrics_hold(r, config) || !workers_hold(r, config) || !roles_hold(r, config) ||
		!metrics_hold(r, config) || !modules_hold(r, config) || !message_fits(r, config) || !lease_holds(r, config))
		return false;
	hints(r, config);
	return true;
}
