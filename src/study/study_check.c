/* Checks the analyses against the architectures before anything is trained. */
#include "study/study_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/path.h"
#include "io/spectrum.h"
#include "lanczos/slq.h"
#include "operators/selection.h"
#include "pipeline/pipeline.h"
#include "study/study_parse.h"
#include "train/architecture.h"

struct check {
    const struct ks_study *study;
    const struct ks_study_analysis *asked;
    struct ks_spectrum_options read;
    size_t observations, actions; /* of the task */
};

/* Repeats the last failure with the line of that key and the name of the architecture (may be
 * NULL).
 */
static ks_status fail_at(const struct check *c, const char *key, const char *architecture)
{
    char message[1024];
    size_t line = 0;

    snprintf(message, sizeof message, "%s", ks_error_text());
    for (size_t i = 0; i < c->asked->n; i++)
        if (strcmp(c->asked->setting[i].key, key) == 0)
            line = c->asked->setting[i].line;
    return ks_fail(KS_FORMAT, "%s:%zu: %s%s%s", c->study->path, line,
                   architecture ? architecture : "", architecture ? ": " : "", message);
}

static ks_status check_projected(const struct KS(arch) *arch)
{
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].sphere_rows > 0)
            return KS_OK;
    return ks_fail(KS_FORMAT, "--operator: manifold needs a projected layer (project=unit or "
                              "unit-kernel), and the description has none");
}

/* The critics of one architecture. */
static ks_status check_critics(const struct check *c, const char *name,
                               const struct ks_networks *critics)
{
    const struct ks_spectrum_options *a = &c->read;
    size_t low, high, n;

    if (ks_selection_range(critics, a->critic, -1, &low, &high) != KS_OK)
        return fail_at(c, "critic", NULL);
    if (ks_selection_range(critics, a->critic, a->layer, &low, &high) != KS_OK)
        return fail_at(c, "layer", name);
    if (strcmp(a->kind->name, "manifold") == 0 && check_projected(critics->arch) != KS_OK)
        return fail_at(c, "operator", name);
    n = (high - low) * (a->critic < 0 ? critics->ensemble : 1);
    if (a->exact && !a->kind->moving && n > KS_EXACT_LIMIT) {
        ks_fail(KS_FORMAT, "--exact: expected at most %d parameters, found %zu", KS_EXACT_LIMIT, n);
        return fail_at(c, "exact", name);
    }
    return KS_OK;
}

static ks_status check_architecture(const struct check *c,
                                    const struct ks_study_architecture *architecture)
{
    const struct ks_settings *settings = &architecture->settings;
    struct ks_networks critics = {.ensemble = settings->critics};
    char *critic = NULL, *actor = NULL;
    struct ks_widths widths;
    ks_status status = KS_OK;

    KS_GO(ks_architecture(architecture->argument, settings, c->actions, &critic, &actor));
    KS_GO(ks_architecture_widths(architecture->argument, c->observations, c->actions, &widths));
    KS_GO(KS(arch_parse)(critic, architecture->argument, widths.critic, &critics.arch));
    status = check_critics(c, architecture->name, &critics);
done:
    KS(arch_free)(critics.arch);
    free(critic);
    free(actor);
    return status;
}

static ks_status check_analysis(struct check *c)
{
    const struct ks_study *s = c->study;

    KS_TRY(ks_study_read_analysis(c->asked, &c->read));
    if (c->read.batches > s->settings.analysis_minibatches) {
        ks_fail(KS_FORMAT, "--batches: expected at most %zu (analysis_minibatches), found %zu",
                s->settings.analysis_minibatches, c->read.batches);
        return fail_at(c, "batches", NULL);
    }
    for (size_t i = 0; i < s->n_architectures; i++)
        if (ks_study_asks_architecture(s, (size_t)(c->asked - s->analysis), i))
            KS_TRY(check_architecture(c, &s->architecture[i]));
    return KS_OK;
}

ks_status ks_study_check(const struct ks_study *s, size_t observations, size_t actions)
{
    struct check check = {.study = s, .observations = observations, .actions = actions};

    for (size_t i = 0; i < s->n_analyses; i++) {
        check.asked = &s->analysis[i];
        KS_TRY(check_analysis(&check));
    }
    return KS_OK;
}

/* Comparing two studies: their trainings, their analyses. */

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

static bool has(const struct ks_study_analysis *analysis, const struct ks_setting *s)
{
    for (size_t i = 0; i < analysis->n; i++)
        if (strcmp(analysis->setting[i].key, s->key) == 0 &&
            strcmp(analysis->setting[i].value, s->value) == 0)
            return true;
    return false;
}

/* Whether `b` has every setting of `a`. */
static bool includes(const struct ks_study_analysis *b, const struct ks_study_analysis *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (!has(b, &a->setting[i]))
            return false;
    return true;
}

bool ks_study_same_analysis(const struct ks_study_analysis *a, const struct ks_study_analysis *b)
{
    return includes(a, b) && includes(b, a);
}

const struct ks_study_analysis *ks_study_find_analysis(const struct ks_study *s, const char *name)
{
    for (size_t i = 0; i < s->n_analyses; i++)
        if (strcmp(s->analysis[i].name, name) == 0)
            return &s->analysis[i];
    return NULL;
}

/* Architecture, step and seed of the spectrum must be those of the checkpoint: a file that was
 * moved is refused. */
static ks_status check_origin(const struct ks_study *study,
                              const struct ks_study_checkpoint *checkpoint, const char *path,
                              const struct ks_spectrum *s)
{
    /* A run records its network: the name, or the file's name. A variant has another name. */
    const char *name = ks_path_base(study->architecture[checkpoint->architecture].argument);
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, "architecture");
    double step = ks_attribute_number(&s->attributes, "env_step");
    double seed = ks_attribute_number(&s->attributes, "seed");

    if (a && a->type == KS_ATTRIBUTE_STRING && strcmp(a->string, name) != 0)
        return ks_fail(KS_FORMAT, "%s: architecture: expected '%s', found '%s'", path, name,
                       a->string);
    if (!isnan(step) && step != (double)checkpoint->step)
        return ks_fail(KS_FORMAT, "%s: env_step: expected %zu, found %g", path, checkpoint->step,
                       step);
    if (!isnan(seed) && seed != (double)study->seed[checkpoint->seed])
        return ks_fail(KS_FORMAT, "%s: seed: expected %zu, found %g", path,
                       study->seed[checkpoint->seed], seed);
    return KS_OK;
}

ks_status ks_study_read_spectrum(const struct ks_study *study,
                                 const struct ks_study_checkpoint *checkpoint, const char *path,
                                 struct ks_spectrum **spectrum)
{
    ks_status status;

    KS_TRY(ks_spectrum_read(path, spectrum));
    status = check_origin(study, checkpoint, path, *spectrum);
    if (status != KS_OK) {
        ks_spectrum_free(*spectrum);
        *spectrum = NULL;
    }
    return status;
}
