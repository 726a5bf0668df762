// SPDX-License-Identifier: BSD-3-Clause
#include "api/internal.h"

#include <sys/socket.h>

enum { PEER_GROUPS_MAX = 256, UID_UNMAPPED = 65534 };

static bool in_group(int fd, gid_t primary, gid_t wanted)
{
	gid_t groups[PEER_GROUPS_MAX];
	socklen_t size = sizeof groups;
	if (primary == wanted)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0)
		return false;
	for (size_t i = 0; i < size / sizeof groups[0]; i++) {
		if (groups[i] == wanted)
			return true;
	}
	return false;
}

static enum api_role role_by_rules(const struct api *api, int fd, uid_t uid, gid_t gid)
{
	const struct config *config = api->options.config;
	for (uint32_t i = 0; i < config->control.role_count; i++) {
		const struct config_role_rule *rule = &config->control.roles[i];
		if ((rule->uid >= 0 && (uid_t)rule->uid == uid) ||
			(rule->gid >= 0 && in_group(fd, gid, (gid_t)rule->gid)))
			return (enum api_role)rule->role;
	}
	if (api->operators != (gid_t)-1 && in_group(fd, gid, api->operators))
		return API_ROLE_OPERATE;
	return API_ROLE_READ;
}

// The credentials are those of the moment of connect. A user that this namespace does not know shows
// as 65534 and is never taken for somebody.
enum api_role peer_role(const struct api *api, int fd, uid_t *out_uid, gid_t *out_gid)
{
	struct ucred cred;
	socklen_t size = sizeof cred;
	*out_uid = UID_UNMAPPED;
	*out_gid = UID_UNMAPPED;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) != 0 || cred.uid == UID_UNMAPPED)
		return API_ROLE_READ;
	*out_uid = cred.uid;
	*out_gid = cred.gid;
	if (cred.uid == 0 || cred.uid == api->owner)
		return API_ROLE_ADMINISTER;
	return role_by_rules(api, fd, cred.uid, cred.gid);
}
