// SPDX-License-Identifier: BSD-3-Clause
#include "state_page.h"

#include "spot/activation.h"

static void print_effects(FILE *out, uint32_t effects)
{
	const char *between = "";
	for (uint32_t left = effects; left != 0; left &= left - 1, between = ", ")
		fprintf(out, "%s%s", between,
			activation_effect_name((enum activation_effect_bit)__builtin_ctz(left)));
}

static void print_state(FILE *out, enum activation_state state)
{
	fprintf(out, "\n### %s\n\n%s\n\n| event | next | effects, in order |\n| --- | --- | --- |\n",
		activation_state_name(state), activation_state_text(state));
	for (int e = 1; e < ACTIVATION_EVENT_END; e++) {
		struct activation_step step = activation_next(state, (enum activation_event)e);
		if (step.next == ACTIVATION_STATE_NONE)
			continue;
		fprintf(out, "| %s | %s | ", activation_event_name((enum activation_event)e),
			activation_state_name((enum activation_state)step.next));
		print_effects(out, step.effects);
		fprintf(out, " |\n");
	}
	const char *between = "\nImpossible here: ";
	for (int e = 1; e < ACTIVATION_EVENT_END; e++)
		if (activation_next(state, (enum activation_event)e).next == ACTIVATION_STATE_NONE) {
			fprintf(out, "%s%s", between, activation_event_name((enum activation_event)e));
			between = ", ";
		}
	fprintf(out, ".\n");
}

void state_page_print(FILE *out)
{
	fprintf(out, "# Activation\n\nGenerated from `lib/spot/activation.c` by "
		     "`tests/control/print_states`; a test compares.\nOne machine per key under way on a "
		     "node; its driver is `control/node/entry.c`.\n\n## Events\n\n");
	for (int e = 1; e < ACTIVATION_EVENT_END; e++)
		fprintf(out, "- **%s**: %s\n", activation_event_name((enum activation_event)e),
			activation_event_text((enum activation_event)e));
	fprintf(out, "\n## Effects\n\n");
	for (int b = 0; b < ACTIVATION_EFFECT_COUNT; b++)
		fprintf(out, "- **%s**: %s\n", activation_effect_name((enum activation_effect_bit)b),
			activation_effect_text((enum activation_effect_bit)b));
	fprintf(out, "\n## States\n");
	for (int s = 1; s < ACTIVATION_STATE_END; s++)
		print_state(out, (enum activation_state)s);
}
