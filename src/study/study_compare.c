/* What two studies have in common: their trainings, their analyses. */
#include "study/study_file.h"

#include <string.h>

static bool has_architecture(const struct ks_study *s, const char *argument)
{
    for (size_t i = 0; i < s->n_architectures; i++)
        if (strcmp(s->architecture[i].argument, argument) == 0)
            return true;
    return false;
}

static bool has_architectures(const struct ks_study *asked, const struct ks_study *held)
{
    for (size_t i = 0; i < held->n_architectures; i++)
        if (!has_architecture(asked, held->architecture[i].argument))
            return false;
    return true;
}

static bool has_seed(const struct ks_study *s, size_t seed)
{
    for (size_t i = 0; i < s->n_seeds; i++)
        if (s->seed[i] == seed)
            return true;
    return false;
}

static bool has_seeds(const struct ks_study *asked, const struct ks_study *held)
{
    for (size_t i = 0; i < held->n_seeds; i++)
        if (!has_seed(asked, held->seed[i]))
            return false;
    return true;
}

/* The number of threads, too: checkpoints do not depend on it, but a run goes on with another only
 * where training is told to accept that. */
static const char *different_setting(const struct ks_study *a, const struct ks_study *b,
                                     bool any_threads)
{
    for (const struct ks_key *key = ks_keys; key->name; key++) {
        char of_a[KS_VALUE_LENGTH], of_b[KS_VALUE_LENGTH];

        if (any_threads && strcmp(key->name, "threads") == 0)
            continue;
        ks_settings_print(&a->settings, key, of_a);
        ks_settings_print(&b->settings, key, of_b);
        if (strcmp(of_a, of_b) != 0)
            return key->name;
    }
    return NULL;
}

const char *ks_study_difference(const struct ks_study *asked, const struct ks_study *held,
                                bool any_threads)
{
    return strcmp(asked->env, held->env) != 0 ? "env"
           : !has_architectures(asked, held)  ? "architectures"
           : !has_seeds(asked, held)          ? "seeds"
           : asked->steps != held->steps      ? "steps"
                                              : different_setting(asked, held, any_threads);
}

/* The others say how many steps there are, and how much memory may be filled. */
static bool is_of_steps(const struct ks_setting *s)
{
    return strcmp(s->key, "order") != 0 && strcmp(s->key, "probes") != 0 &&
           strcmp(s->key, "memory") != 0;
}

static bool has(const struct ks_study_analysis *analysis, const struct ks_setting *s)
{
    for (size_t i = 0; i < analysis->n; i++)
        if (strcmp(analysis->setting[i].key, s->key) == 0 &&
            strcmp(analysis->setting[i].value, s->value) == 0)
            return true;
    return false;
}

/* All that `a` says `b` says, too; with `steps` all that Lanczos steps depend on. */
static bool says(const struct ks_study_analysis *b, const struct ks_study_analysis *a, bool steps)
{
    for (size_t i = 0; i < a->n; i++)
        if ((!steps || is_of_steps(&a->setting[i])) && !has(b, &a->setting[i]))
            return false;
    return true;
}

bool ks_study_same_analysis(const struct ks_study_analysis *a, const struct ks_study_analysis *b)
{
    return says(a, b, false) && says(b, a, false);
}

bool ks_study_same_steps(const struct ks_study_analysis *a, const struct ks_study_analysis *b)
{
    return says(a, b, true) && says(b, a, true);
}

const struct ks_study_analysis *ks_study_find_analysis(const struct ks_study *s, const char *name)
{
    for (size_t i = 0; i < s->n_analyses; i++)
        if (strcmp(s->analysis[i].name, name) == 0)
            return &s->analysis[i];
    return NULL;
}
