/* Before anything is trained: checks the analyses against the architectures, counts the disk space,
 * and compares the study with the one that its folder holds. */
#include "study/study_file.h"

#include <math.h>
#include <string.h>

#include "env/env.h"
#include "io/file.h"
#include "io/spectrum.h"
#include "lanczos/slq.h"
#include "operators/operator.h"
#include "pipeline/pipeline.h"
#include "study/study_parse.h"
#include "train/architecture.h"

struct check {
    const struct ks_study *study;
    const struct ks_study_analysis *asked;
    size_t observations, actions; /* of the task */
};

/* Repeats the last failure with the line of that key and the name of the architecture (may be
 * NULL). */
static ks_status fail_at(const struct check *c, const char *key, const char *architecture)
{
    const struct ks_setting *s = ks_setting_find(c->asked->setting, c->asked->n, key);

    return ks_study_fail_at(c->study, s ? s->line : 0, architecture, KS_FORMAT);
}

static ks_status check_projected(const struct KS(arch) *arch)
{
    for (size_t i = 0; i < arch->n_layers; i++)
        if (arch->layer[i].sphere_rows > 0)
            return KS_OK;
    return ks_fail(KS_FORMAT, "--operator: manifold needs a projected layer (project=unit or "
                              "unit-kernel), and the description has none");
}

static ks_status check_critics(const struct check *c, const char *name,
                               const struct ks_networks *critics)
{
    const struct ks_spectrum_options *a = &c->asked->options;
    size_t n;

    if (ks_selection_count(critics, a->critic, -1, NULL, &n) != KS_OK)
        return fail_at(c, "critic", NULL);
    if (ks_selection_count(critics, a->critic, a->layer, NULL, &n) != KS_OK)
        return fail_at(c, "layer", name);
    if (*a->arrays && ks_selection_count(critics, a->critic, -1, a->arrays, &n) != KS_OK)
        return fail_at(c, "array", name);
    if (strcmp(a->kind->name, "manifold") == 0 && check_projected(critics->arch) != KS_OK)
        return fail_at(c, "operator", name);
    n *= a->critic < 0 ? critics->ensemble : 1;
    if (a->exact && !a->kind->moving && n > KS_EXACT_LIMIT) {
        ks_fail(KS_FORMAT, "--exact: expected at most %d parameters, found %zu", KS_EXACT_LIMIT, n);
        return fail_at(c, "exact", name);
    }
    return KS_OK;
}

/* Adam's second moment is 0 until the first update. */
static ks_status check_moments(const struct check *c, size_t architecture)
{
    const struct ks_study *s = c->study;
    const size_t analysis = (size_t)(c->asked - s->analysis);

    if (strcmp(c->asked->options.kind->name, "preconditioned") != 0 ||
        s->checkpoint[0] > s->first_update || !ks_study_asks(s, analysis, architecture, 0))
        return KS_OK;
    ks_fail(KS_FORMAT,
            "--operator: preconditioned is not defined at the checkpoint of step %zu, which is "
            "before the first update: expected an [analyze NAME] with checkpoints = trained",
            s->checkpoint[0]);
    return fail_at(c, "operator", NULL);
}

/* The descriptions of one architecture's networks, for a task of these widths. */
struct networks {
    struct KS(arch) *critic, *actor; /* owned */
    size_t encoder;                  /* parameters; 0: it has none */
};

static void networks_clear(struct networks *n)
{
    KS(arch_free)(n->critic);
    KS(arch_free)(n->actor);
}

/* The caller clears, also after a failure. */
static ks_status networks_read(const struct ks_study_architecture *a, size_t observations,
                               size_t actions, struct networks *n)
{
    char *text[KS_TEXTS];
    struct ks_widths widths;
    ks_status status = KS_OK;

    *n = (struct networks){NULL, NULL, 0};
    KS_TRY(ks_architecture(a->argument, &a->settings, actions, text));
    KS_GO(ks_architecture_widths(text, observations, actions, &widths));
    KS_GO(KS(arch_parse)(text[KS_CRITIC_TEXT], a->argument, widths.critic, &n->critic));
    KS_GO(KS(arch_parse)(text[KS_ACTOR_TEXT], a->argument, widths.actor, &n->actor));
    n->encoder = widths.encoder;
done:
    ks_texts_free(text);
    return status;
}

static ks_status check_architecture(const struct check *c, const struct ks_study_architecture *a)
{
    struct ks_networks critics = {.ensemble = a->settings.critics};
    KS_CLEARED_BY(networks_clear) struct networks n = {NULL, NULL, 0};

    KS_TRY(networks_read(a, c->observations, c->actions, &n));
    critics.arch = n.critic;
    return check_critics(c, a->name, &critics);
}

ks_status ks_study_check(const struct ks_study *s, size_t observations, size_t actions)
{
    struct check c = {.study = s, .observations = observations, .actions = actions};

    for (size_t k = 0; k < s->n_analyses; k++) {
        c.asked = &s->analysis[k];
        if (c.asked->options.batches > s->settings.analysis_minibatches) {
            ks_fail(KS_FORMAT, "--batches: expected at most %zu (analysis_minibatches), found %zu",
                    s->settings.analysis_minibatches, c.asked->options.batches);
            return fail_at(&c, "batches", NULL);
        }
        if (c.asked->options.batch > s->settings.analysis_minibatches) {
            ks_fail(KS_FORMAT, "--batch: expected less than %zu (analysis_minibatches), found %zu",
                    s->settings.analysis_minibatches, c.asked->options.batch - 1);
            return fail_at(&c, "batch", NULL);
        }
        for (size_t i = 0; i < s->n_architectures; i++)
            if (s->analysis[k].scope.of[i] && !s->architecture[i].elsewhere) {
                KS_TRY(check_moments(&c, i));
                KS_TRY(check_architecture(&c, &s->architecture[i]));
            }
    }
    return KS_OK;
}

/* --- the disk space --- */

enum { NUMBER = 4 }; /* bytes of a number in float32 */

/* Critics, target critics, both of Adam's moments; actor; minibatches with two kinds of targets. */
static double checkpoint_bytes(const struct ks_settings *s, const struct networks *n)
{
    double critics = (double)(s->critics * n->critic->parameters);
    size_t rows = n->critic->joint ? 2 * s->batch : s->batch;
    double minibatch = (double)(rows * n->critic->in) + 2 * (double)(s->batch * n->critic->out);

    return NUMBER * (4 * critics + (double)n->actor->parameters +
                     (double)s->analysis_minibatches * minibatch);
}

/* Two resume points with all networks, gradients and moments and the inputs of the last minibatch,
 * and the transitions of replay (two observations, or a frame, and an action, which are `inputs`
 * numbers; reward, mask). */
static double resume_bytes(const struct ks_study *study, const struct ks_settings *s,
                           const struct networks *n, size_t inputs)
{
    double critics = (double)(s->critics * n->critic->parameters);
    double steps = (double)study->end / (double)s->action_repeat;
    double networks = 5 * critics + 4 * (double)n->actor->parameters + 5 * (double)n->encoder;
    double minibatch = (double)(s->batch * (n->critic->in + n->actor->in));

    if (steps > (double)s->replay)
        steps = (double)s->replay;
    return NUMBER * (2 * (networks + minibatch) + steps * (double)(inputs + 2));
}

ks_status ks_study_disk(const struct ks_study *study, size_t observations, size_t actions,
                        struct ks_disk *disk)
{
    const size_t seen = ks_env_is_pixels(study->env) ? KS_FRAME / NUMBER : 2 * observations;

    *disk = (struct ks_disk){0, 0};
    for (size_t a = 0; a < study->n_architectures; a++) {
        const struct ks_settings *s = &study->architecture[a].settings;
        KS_CLEARED_BY(networks_clear) struct networks n = {NULL, NULL, 0};
        double resume;

        if (study->architecture[a].elsewhere)
            continue;
        KS_TRY(networks_read(&study->architecture[a], observations, actions, &n));
        resume = resume_bytes(study, s, &n, seen + actions);
        disk->checkpoints += (double)(study->n_seeds * study->n_checkpoints) *
                             checkpoint_bytes(s, &n);
        disk->resume = resume > disk->resume ? resume : disk->resume;
    }
    return KS_OK;
}

/* --- comparing two studies: their trainings, their analyses --- */

/* The name of a setting that differs, or NULL. Checkpoints do not depend on the number of threads,
 * but a run can only resume with the same one unless --resume=any allows another. */
static const char *different_setting(const struct ks_settings *a, const struct ks_settings *b,
                                     bool any_threads)
{
    for (const struct ks_key *key = ks_keys; key->name; key++) {
        char of_a[KS_VALUE_LENGTH], of_b[KS_VALUE_LENGTH];

        ks_key_print(key, a, of_a); /* with all digits */
        ks_key_print(key, b, of_b);
        if (strcmp(of_a, of_b) != 0 && !(any_threads && strcmp(key->name, "threads") == 0))
            return key->name;
    }
    return NULL;
}

const char *ks_study_difference(const struct ks_study *asked, const struct ks_study *held,
                                bool any_threads)
{
    if (!ks_study_trains(held)) /* there is nothing to lose */
        return NULL;
    if (strcmp(asked->env, held->env) != 0)
        return "env";
    for (size_t i = 0; i < held->n_seeds; i++)
        if (!ks_study_has_seed(asked, held->seed[i]))
            return "seeds";
    if (asked->steps != held->steps)
        return "steps";
    for (size_t i = 0; i < held->n_architectures; i++) {
        const struct ks_study_architecture *b = &held->architecture[i];
        const size_t k = ks_study_find_architecture(asked, b->name);
        const struct ks_study_architecture *a = &asked->architecture[k];
        const char *difference = b->elsewhere ? NULL
                                 : k < asked->n_architectures && strcmp(a->word, b->word) == 0
                                     ? different_setting(&a->settings, &b->settings, any_threads)
                                     : "architectures";

        if (difference)
            return difference;
    }
    return NULL;
}

bool ks_study_same_analysis(const struct ks_study_analysis *a, const struct ks_study_analysis *b)
{
    return ks_spectrum_options_same(&a->options, &b->options) &&
           a->options.memory == b->options.memory && a->options.products == b->options.products;
}

/* Without the options that may differ between start vectors. */
static struct ks_study_analysis without_seed(const struct ks_study_analysis *analysis)
{
    struct ks_study_analysis rest = *analysis;

    rest.options.seed = 0;
    rest.options.certificates = true;
    return rest;
}

struct ks_study_analyses ks_study_starts(const struct ks_study *s, size_t analysis)
{
    const struct ks_study_scope *scope = &s->analysis[analysis].scope;
    const struct ks_study_analysis one = without_seed(&s->analysis[analysis]);
    struct ks_study_analyses found = {.n = 1, .index = {analysis}};

    for (size_t k = 0; k < s->n_analyses; k++) {
        const struct ks_study_analysis other = without_seed(&s->analysis[k]);

        if (k != analysis && scope->checkpoints == other.scope.checkpoints &&
            memcmp(scope->of, other.scope.of, s->n_architectures * sizeof *scope->of) == 0 &&
            ks_study_same_analysis(&one, &other))
            found.index[found.n++] = k;
    }
    return found;
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
static ks_status check_origin(const struct ks_study *study, const struct ks_study_spectrum *id,
                              const char *path, const struct ks_spectrum *s)
{
    /* A run records its network: the name, or the file's name. A variant has another name, and the
     * folder of runs from elsewhere is their name. */
    const struct ks_study_architecture *of = &study->architecture[id->architecture];
    const char *name = ks_path_base(of->argument);
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, "architecture");
    double step = ks_attribute_number(&s->attributes, "env_step");
    double seed = ks_attribute_number(&s->attributes, "seed");

    if (a && a->type == KS_ATTRIBUTE_STRING && !of->elsewhere && strcmp(a->string, name) != 0)
        return ks_fail(KS_FORMAT, "%s: architecture: expected '%s', found '%s'", path, name,
                       a->string);
    if (!isnan(step) && step != (double)id->step)
        return ks_fail(KS_FORMAT, "%s: env_step: expected %zu, found %g", path, id->step, step);
    if (!isnan(seed) && seed != (double)study->seed[id->seed])
        return ks_fail(KS_FORMAT, "%s: seed: expected %zu, found %g", path, study->seed[id->seed],
                       seed);
    return KS_OK;
}

/* The options of a spectrum must equal the options of its analysis; the error names the first one
 * that differs. Older spectra do not say their options, and are accepted. */
static ks_status check_options(const struct ks_study_analysis *asked, const char *path,
                               const struct ks_spectrum *s)
{
    const char *found = ks_attribute_text(&s->attributes, "options");
    char expected[KS_SPECTRUM_OPTIONS_TEXT];
    size_t at = 0;

    if (!found)
        return KS_OK;
    ks_spectrum_options_print(&asked->options, expected);
    if (strcmp(expected, found) == 0)
        return KS_OK;
    for (size_t i = 0; expected[i] && expected[i] == found[i]; i++)
        at = expected[i] == ' ' ? i + 1 : at;
    return ks_fail(KS_FORMAT, "%s: expected %.*s, found %.*s", path,
                   (int)strcspn(expected + at, " "), expected + at, (int)strcspn(found + at, " "),
                   found + at);
}

ks_status ks_study_read_spectrum(const struct ks_study *study, const struct ks_study_spectrum *id,
                                 const char *path, struct ks_spectrum **spectrum)
{
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *found = NULL;

    *spectrum = NULL;
    KS_TRY(ks_spectrum_read(path, &found));
    KS_TRY(check_origin(study, id, path, found));
    KS_TRY(check_options(&study->analysis[id->analysis], path, found));
    *spectrum = found, found = NULL;
    return KS_OK;
}
