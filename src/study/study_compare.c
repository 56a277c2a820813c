/* What two studies have in common: their trainings, their analyses. */
#include "ks/study.h"

#include <string.h>

static bool same_architectures(const struct ks_study *a, const struct ks_study *b)
{
    for (size_t i = 0; i < a->n_architectures && i < b->n_architectures; i++)
        if (strcmp(a->architecture[i].argument, b->architecture[i].argument) != 0)
            return false;
    return a->n_architectures == b->n_architectures;
}

/* The number of threads, too: checkpoints do not depend on it, but a run goes on with no other. */
static const char *different_setting(const struct ks_study *a, const struct ks_study *b)
{
    for (const struct ks_key *key = ks_keys; key->name; key++) {
        char of_a[KS_VALUE_LENGTH], of_b[KS_VALUE_LENGTH];

        ks_settings_print(&a->settings, key, of_a);
        ks_settings_print(&b->settings, key, of_b);
        if (strcmp(of_a, of_b) != 0)
            return key->name;
    }
    return NULL;
}

const char *ks_study_difference(const struct ks_study *a, const struct ks_study *b)
{
    bool seeds = a->n_seeds == b->n_seeds &&
                 memcmp(a->seed, b->seed, a->n_seeds * sizeof *a->seed) == 0;

    return strcmp(a->env, b->env) != 0 ? "env"
           : !same_architectures(a, b) ? "architectures"
           : !seeds                    ? "seeds"
           : a->steps != b->steps      ? "steps"
                                       : different_setting(a, b);
}

/* The others say how many steps there are, and how much memory may be filled. */
static bool is_of_steps(const struct ks_setting *s)
{
    return strcmp(s->key, "order") != 0 && strcmp(s->key, "probes") != 0 &&
           strcmp(s->key, "memory") != 0;
}

static bool has(const struct ks_study *study, const struct ks_setting *s)
{
    for (size_t i = 0; i < study->n_analyze; i++)
        if (strcmp(study->analyze[i].key, s->key) == 0 &&
            strcmp(study->analyze[i].value, s->value) == 0)
            return true;
    return false;
}

/* All that [analyze] of `a` says `b` says, too; with `steps` all that Lanczos steps depend on. */
static bool says(const struct ks_study *b, const struct ks_study *a, bool steps)
{
    for (size_t i = 0; i < a->n_analyze; i++)
        if ((!steps || is_of_steps(&a->analyze[i])) && !has(b, &a->analyze[i]))
            return false;
    return true;
}

bool ks_study_same_analysis(const struct ks_study *a, const struct ks_study *b)
{
    return says(a, b, false) && says(b, a, false);
}

bool ks_study_same_steps(const struct ks_study *a, const struct ks_study *b)
{
    return says(a, b, true) && says(b, a, true);
}
