/* Reads a study: its file, then the folders of its runs from elsewhere, then what follows from
 * both: settings, and the steps of checkpoints and evaluations. */
#include "study/study_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "env/env.h"
#include "io/file.h"
#include "study/elsewhere.h"
#include "study/study_parse.h"
#include "train/architecture.h"

/* Of a study that trains no runs, the folders say all of this. */
static ks_status require(const struct ks_study *s)
{
    const char *missing = !s->env               ? "env"
                          : !s->n_architectures ? "architectures"
                          : !s->n_seeds         ? "seeds"
                          : !s->steps           ? "steps"
                                                : NULL;

    if (s->elsewhere && ks_study_trains(s))
        return ks_fail(KS_FORMAT,
                       "%s: [study]: trained = elsewhere: nothing is trained here, but there are "
                       "architectures or variants (names of runs from elsewhere: elsewhere = ...)",
                       s->path);
    if (s->elsewhere && s->n_train > 0)
        return ks_fail(KS_FORMAT, "%s:%zu: [train]: nothing is trained here (trained = elsewhere)",
                       s->path, s->train[0].line);
    if (s->elsewhere)
        return KS_OK;
    return missing ? ks_fail(KS_FORMAT, "%s: [study]: '%s' is missing", s->path, missing) : KS_OK;
}

/* The number of these ascending steps that are at most `end`. */
static size_t count_until(size_t n, const size_t *step, size_t end)
{
    while (n > 0 && step[n - 1] > end)
        n--;
    return n;
}

/* Cuts the milestones off after `stop`, as training does: a run ends with a complete agent step. */
static ks_status apply_stop(struct ks_study *s)
{
    const size_t stop = s->stop > 0 ? s->stop : s->steps, repeat = s->settings.action_repeat;

    s->end = (stop + repeat - 1) / repeat * repeat;
    if (s->stop > s->steps)
        return ks_fail(KS_FORMAT, "%s:%zu: stop: expected at most %zu (steps), found %zu", s->path,
                       s->stop_line, s->steps, s->stop);
    if (s->stop > 0 && s->n_checkpoints > 0 && s->end < s->checkpoint[0])
        return ks_fail(KS_FORMAT,
                       "%s:%zu: stop: expected at least %zu (the first checkpoint), found %zu",
                       s->path, s->stop_line, s->checkpoint[0], s->stop);
    s->n_scheduled = s->n_checkpoints;
    s->n_checkpoints = count_until(s->n_checkpoints, s->checkpoint, s->end);
    s->n_evaluations = count_until(s->n_evaluations, s->evaluation, s->end);
    return KS_OK;
}

/* In environment steps, ascending; the lists are owned. */
struct milestones {
    size_t n_checkpoints, *checkpoint, n_evaluations, *evaluation;
};

static void milestones_clear(struct milestones *m)
{
    free(m->checkpoint);
    free(m->evaluation);
}

static ks_status list_milestones(size_t steps, const struct ks_settings *set, struct milestones *m)
{
    KS_TRY(ks_alloc(set->checkpoints + 1, sizeof *m->checkpoint, &m->checkpoint));
    KS_TRY(ks_alloc(set->evaluations + 1, sizeof *m->evaluation, &m->evaluation));
    m->n_checkpoints = ks_milestones(steps, set->checkpoints,
                                     set->random_steps * set->action_repeat, set->action_repeat,
                                     m->checkpoint);
    m->n_evaluations = ks_milestones(steps, set->evaluations, 0, set->action_repeat, m->evaluation);
    return KS_OK;
}

static bool same_steps(size_t n_a, const size_t *a, size_t n_b, const size_t *b)
{
    return n_a == n_b && memcmp(a, b, n_a * sizeof *a) == 0;
}

/* The tables compare all runs of a study at the same environment steps. */
static ks_status check_milestones(const struct ks_study *s, const struct ks_study_architecture *a)
{
    KS_CLEARED_BY(milestones_clear) struct milestones own = {0};
    char place[96];

    if (a->line > 0)
        snprintf(place, sizeof place, ":%zu: [variant %.40s]", a->line, a->name);
    else
        snprintf(place, sizeof place, ": %.80s", a->name);
    KS_TRY(list_milestones(s->steps, &a->settings, &own));
    return same_steps(own.n_checkpoints, own.checkpoint, s->n_checkpoints, s->checkpoint) &&
                   same_steps(own.n_evaluations, own.evaluation, s->n_evaluations, s->evaluation)
               ? KS_OK
               : ks_fail(KS_FORMAT,
                         "%s%s: its checkpoints and evaluations are not at the environment steps "
                         "of [train]; random_steps * action_repeat must be %zu",
                         s->path, place, s->first_update);
}

/* The settings of a system (train/architecture.h), and over them those of [train]. A study that is
 * only read may lie where the files of its own systems do not. */
static ks_status set_system(const struct ks_study *s, struct ks_study_architecture *a)
{
    KS_OWNED char *path = NULL;

    if (ks_architecture_find(a->argument))
        return KS_OK;
    KS_TRY(ks_system_find(a->argument, &path));
    if (!path || !ks_path_exists(path))
        return KS_OK;
    ks_settings_defaults(&a->settings);
    a->settings.action_repeat = s->settings.action_repeat;
    KS_TRY(ks_system_settings(path, &a->settings));
    for (size_t i = 0; i < s->n_train; i++)
        KS_TRY(ks_settings_set(&a->settings, s->train[i].key, s->train[i].value));
    return KS_OK;
}

static ks_status derive_own(const struct ks_study *s, struct ks_study_architecture *a)
{
    char section[64] = "[study]";
    ks_status status = KS_OK;

    a->settings = s->settings;
    if (a->line > 0)
        snprintf(section, sizeof section, "[variant %.40s]", a->name);
    status = a->word ? set_system(s, a) : ks_fail(KS_FORMAT, "'architecture' is missing");
    for (size_t i = 0; i < a->n_own && status == KS_OK; i++)
        status = ks_settings_set(&a->settings, a->own[i].key, a->own[i].value);
    if (status == KS_OK)
        status = ks_settings_check(&a->settings);
    return status == KS_OK ? KS_OK : ks_study_fail_at(s, a->line, section, KS_FORMAT);
}

ks_status ks_study_find_systems(struct ks_study *held, const struct ks_study *asked)
{
    for (size_t i = 0; i < held->n_architectures; i++) {
        struct ks_study_architecture *b = &held->architecture[i];
        const size_t k = ks_study_find_architecture(asked, b->name);
        const struct ks_study_architecture *a = &asked->architecture[k];

        if (b->elsewhere || k == asked->n_architectures || strcmp(a->word, b->word) != 0)
            continue;
        free(b->argument);
        KS_TRY(ks_copy_string(a->argument, &b->argument));
        KS_TRY(derive_own(held, b));
    }
    return KS_OK;
}

/* What [train] does not say is as in training. */
static ks_status complete_settings(struct ks_study *s)
{
    struct ks_env_about about;

    if (!s->elsewhere && !ks_setting_find(s->train, s->n_train, "action_repeat") &&
        ks_env_about_task(s->env, &about))
        s->settings.action_repeat = about.action_repeat;
    return ks_settings_check(&s->settings) == KS_OK ? KS_OK
                                                    : ks_study_fail_at(s, 0, "[train]", KS_FORMAT);
}

static ks_status derive_settings(struct ks_study *s)
{
    for (size_t i = 0; i < s->n_architectures; i++)
        if (s->architecture[i].elsewhere)
            s->architecture[i].settings = s->settings;
        else
            KS_TRY(derive_own(s, &s->architecture[i]));
    return KS_OK;
}

/* The steps of the runs that are trained here. */
static ks_status derive_steps(struct ks_study *s)
{
    struct milestones steps = {0};
    ks_status status;

    if (!ks_study_trains(s))
        return KS_OK;
    s->first_update = s->settings.random_steps * s->settings.action_repeat;
    status = list_milestones(s->steps, &s->settings,
                             &steps); /* the lists are the study's, always */
    s->checkpoint = steps.checkpoint, s->n_checkpoints = steps.n_checkpoints;
    s->evaluation = steps.evaluation, s->n_evaluations = steps.n_evaluations;
    KS_TRY(status);
    for (size_t i = 0; i < s->n_architectures; i++)
        if (!s->architecture[i].elsewhere)
            KS_TRY(check_milestones(s, &s->architecture[i]));
    return apply_stop(s);
}

static ks_status read_text(const char *path, struct ks_study *s)
{
    const char *base = ks_path_base(path);

    KS_TRY(ks_copy_string(path, &s->path));
    KS_TRY(ks_print_string(&s->name, "%.*s", (int)ks_path_stem(base, ".study"), base));
    KS_TRY(base == path ? ks_copy_string(".", &s->folder)
                        : ks_print_string(&s->folder, "%.*s",
                                          (int)(base - path > 1 ? base - path - 1 : 1), path));
    return ks_text_read(path, &s->text, NULL);
}

ks_status ks_study_read(const char *path, enum ks_study_use use, struct ks_study **out)
{
    const bool run = use == KS_STUDY_RUN, folders = use != KS_STUDY_COMPARE;
    KS_OWNED_BY(ks_study_free) struct ks_study *study = NULL;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *study, &study));
    KS_TRY(read_text(path, study));
    KS_TRY(ks_study_parse(study, run));
    KS_TRY(require(study));
    KS_TRY(complete_settings(study));
    if (folders)
        KS_TRY(ks_elsewhere_names(study, run));
    KS_TRY(derive_settings(study));
    if (folders) {
        KS_TRY(ks_study_resolve_names(study));
        KS_TRY(ks_study_resolve_scopes(study));
    }
    KS_TRY(derive_steps(study));
    if (folders)
        KS_TRY(ks_elsewhere_steps(study));
    *out = study, study = NULL;
    return KS_OK;
}
