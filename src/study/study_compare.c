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

/* A run is the same for any number of threads. */
static const char *different_setting(const struct ks_study *a, const struct ks_study *b)
{
    for (const struct ks_key *key = ks_keys; key->name; key++) {
        char of_a[KS_VALUE_LENGTH], of_b[KS_VALUE_LENGTH];

        ks_settings_print(&a->settings, key, of_a);
        ks_settings_print(&b->settings, key, of_b);
        if (strcmp(of_a, of_b) != 0 && strcmp(key->name, "threads") != 0)
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

bool ks_study_same_analysis(const struct ks_study *a, const struct ks_study *b)
{
    size_t same = 0;

    for (size_t i = 0; i < a->n_analyze; i++)
        for (size_t k = 0; k < b->n_analyze; k++)
            same += strcmp(a->analyze[i].key, b->analyze[k].key) == 0 &&
                    strcmp(a->analyze[i].value, b->analyze[k].value) == 0;
    return same == a->n_analyze && same == b->n_analyze;
}
