#include "net/arch.h"

#include <string.h>

static ks_status parse_tanh_gaussian(struct ks_line *line, size_t outputs, struct ks_policy *policy)
{
    static const char *const bounds[] = {"clip", "squash", NULL};
    size_t squash = 0;

    policy->log_std_min = -10;
    policy->log_std_max = 2;
    KS_TRY(ks_line_option_choice(line, "log-std", bounds, &squash));
    KS_TRY(ks_line_option_number(line, "min", -100, 100, &policy->log_std_min));
    KS_TRY(ks_line_option_number(line, "max", -100, 100, &policy->log_std_max));
    policy->squash = squash;
    if (!(policy->log_std_min < policy->log_std_max))
        return ks_line_fail(line, "policy: expected min < max, found %g and %g",
                            policy->log_std_min, policy->log_std_max);
    if (outputs % 2 != 0)
        return ks_line_fail(line, "policy: expected an even number of outputs, found %zu", outputs);
    policy->actions = outputs / 2;
    return ks_line_end(line);
}

ks_status KS(policy_parse)(struct ks_line *line, size_t outputs, struct ks_policy *policy)
{
    static const char *const known[] = {"tanh-gaussian", "shift", "tanh", NULL};
    enum { TANH_GAUSSIAN, SHIFT, TANH };
    const char *word = line->n_words > 1 ? line->word[1] : "";
    size_t kind = 0;

    while (known[kind] && strcmp(word, known[kind]) != 0)
        kind++;
    if (!known[kind])
        return ks_line_unknown(line, "policy", word, known, NULL);
    line->taken[1] = true;
    *policy = (struct ks_policy){.actions = outputs, .shift = kind == SHIFT, .fixed = kind == TANH};
    if (kind == TANH_GAUSSIAN)
        return parse_tanh_gaussian(line, outputs, policy);
    if (kind == SHIFT) {
        policy->gain = 0.01;
        KS_TRY(ks_line_option_number(line, "gain", 1e-12, 1e12, &policy->gain));
    }
    return ks_line_end(line);
}
