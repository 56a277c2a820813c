/* Comparing two studies: their trainings, their analyses. */
#include "study/study_file.h"

#include <math.h>
#include <string.h>

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

/* "auto" is NaN; of a choice ks_settings_number gives its index and false. */
static bool same_setting(const struct ks_settings *a, const struct ks_settings *b,
                         const struct ks_key *key)
{
    double of_a, of_b;
    bool a_is_number = ks_settings_number(a, key, &of_a);
    bool b_is_number = ks_settings_number(b, key, &of_b);

    return a_is_number == b_is_number && (of_a == of_b || (isnan(of_a) && isnan(of_b)));
}

/* Checkpoints do not depend on the number of threads, but a run can only resume with the same one
 * unless --resume=any allows another. */
static const char *different_setting(const struct ks_settings *a, const struct ks_settings *b,
                                     bool any_threads)
{
    for (const struct ks_key *key = ks_keys; key->name; key++) {
        if (any_threads && strcmp(key->name, "threads") == 0)
            continue;
        if (!same_setting(a, b, key))
            return key->name;
    }
    return NULL;
}

static const struct ks_study_architecture *find_architecture(const struct ks_study *s,
                                                             const struct ks_study_architecture *a)
{
    for (size_t i = 0; i < s->n_architectures; i++)
        if (strcmp(s->architecture[i].name, a->name) == 0 &&
            strcmp(s->architecture[i].word, a->word) == 0)
            return &s->architecture[i];
    return NULL;
}

/* Whether `asked` has every architecture of `held`, and trains it with the same settings. */
static const char *different_architecture(const struct ks_study *asked, const struct ks_study *held,
                                          bool any_threads)
{
    const char *difference = NULL;

    for (size_t i = 0; i < held->n_architectures && !difference; i++) {
        const struct ks_study_architecture *b = &held->architecture[i];
        const struct ks_study_architecture *a = find_architecture(asked, b);

        difference = a ? different_setting(&a->settings, &b->settings, any_threads)
                       : "architectures";
    }
    return difference;
}

const char *ks_study_difference(const struct ks_study *asked, const struct ks_study *held,
                                bool any_threads)
{
    return strcmp(asked->env, held->env) != 0 ? "env"
           : !has_seeds(asked, held)          ? "seeds"
           : asked->steps != held->steps      ? "steps"
                                              : different_architecture(asked, held, any_threads);
}

/* Kept Lanczos steps depend on an option unless it only sets how many there are, or the memory. */
static bool affects_steps(const struct ks_setting *s)
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

/* Whether `b` has every setting of `a`; with `steps`, every one on which Lanczos steps depend. */
static bool includes(const struct ks_study_analysis *b, const struct ks_study_analysis *a,
                     bool steps)
{
    for (size_t i = 0; i < a->n; i++)
        if ((!steps || affects_steps(&a->setting[i])) && !has(b, &a->setting[i]))
            return false;
    return true;
}

bool ks_study_same_analysis(const struct ks_study_analysis *a, const struct ks_study_analysis *b)
{
    return includes(a, b, false) && includes(b, a, false);
}

bool ks_study_same_steps(const struct ks_study_analysis *a, const struct ks_study_analysis *b)
{
    return includes(a, b, true) && includes(b, a, true);
}

const struct ks_study_analysis *ks_study_find_analysis(const struct ks_study *s, const char *name)
{
    for (size_t i = 0; i < s->n_analyses; i++)
        if (strcmp(s->analysis[i].name, name) == 0)
            return &s->analysis[i];
    return NULL;
}
