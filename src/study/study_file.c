#include "study/study_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "core/process.h"
#include "env/env.h"
#include "io/file.h"
#include "study/elsewhere.h"
#include "study/study_parse.h"
#include "train/architecture.h"

const struct ks_setting *ks_setting_find(const struct ks_setting *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return &list[i];
    return NULL;
}

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

ks_status ks_study_fail_at(const struct ks_study *s, size_t line, const char *place,
                           ks_status status)
{
    char message[1024], number[24] = "";

    snprintf(message, sizeof message, "%s", ks_error_text());
    if (line > 0)
        snprintf(number, sizeof number, ":%zu", line);
    return ks_fail(status, "%s%s: %s%s%s", s->path, number, place ? place : "", place ? ": " : "",
                   message);
}

/* In environment steps, ascending; the lists are owned. */
struct milestones {
    size_t n_checkpoints, *checkpoint, n_evaluations, *evaluation;
};

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
    struct milestones own = {0};
    ks_status status = KS_OK;
    char place[96];

    if (a->line > 0)
        snprintf(place, sizeof place, ":%zu: [variant %.40s]", a->line, a->name);
    else
        snprintf(place, sizeof place, ": %.80s", a->name);
    KS_GO(list_milestones(s->steps, &a->settings, &own));
    if (!same_steps(own.n_checkpoints, own.checkpoint, s->n_checkpoints, s->checkpoint) ||
        !same_steps(own.n_evaluations, own.evaluation, s->n_evaluations, s->evaluation))
        status = ks_fail(KS_FORMAT,
                         "%s%s: its checkpoints and evaluations are not at the environment steps "
                         "of [train]; random_steps * action_repeat must be %zu",
                         s->path, place, s->first_update);
done:
    free(own.checkpoint);
    free(own.evaluation);
    return status;
}

/* The settings of a system (train/architecture.h), and over them those of [train]. A study that is
 * only read may lie where the files of its own systems do not. */
static ks_status set_system(const struct ks_study *s, struct ks_study_architecture *a)
{
    ks_status status = KS_OK;
    char *path = NULL;

    if (ks_architecture_find(a->argument))
        return KS_OK;
    KS_TRY(ks_system_find(a->argument, &path));
    if (path && ks_path_exists(path)) {
        ks_settings_defaults(&a->settings);
        a->settings.action_repeat = s->settings.action_repeat;
        status = ks_system_settings(path, &a->settings);
        for (size_t i = 0; i < s->n_train && status == KS_OK; i++)
            status = ks_settings_set(&a->settings, s->train[i].key, s->train[i].value);
    }
    free(path);
    return status;
}

static ks_status derive_settings(struct ks_study *s, struct ks_study_architecture *a)
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

static ks_status derive(struct ks_study *s, enum ks_study_use use)
{
    const struct ks_settings *set = &s->settings;
    struct milestones steps = {0};
    struct ks_env_about about;
    ks_status status;

    /* as training does where [train] does not say it */
    if (!s->elsewhere && !ks_setting_find(s->train, s->n_train, "action_repeat") &&
        ks_env_about_task(s->env, &about))
        s->settings.action_repeat = about.action_repeat;
    if (ks_settings_check(set) != KS_OK)
        return ks_study_fail_at(s, 0, "[train]", KS_FORMAT);
    if (use != KS_STUDY_COMPARE)
        KS_TRY(ks_elsewhere_names(s, use == KS_STUDY_RUN));
    for (size_t i = 0; i < s->n_architectures; i++)
        if (s->architecture[i].elsewhere)
            s->architecture[i].settings = *set;
        else
            KS_TRY(derive_settings(s, &s->architecture[i]));
    if (use != KS_STUDY_COMPARE) {
        KS_TRY(ks_study_resolve_names(s));
        KS_TRY(ks_study_resolve_scopes(s));
    }
    if (!ks_study_trains(s))
        return use == KS_STUDY_COMPARE ? KS_OK : ks_elsewhere_steps(s);
    s->first_update = set->random_steps * set->action_repeat;
    status = list_milestones(s->steps, set, &steps); /* the study owns the lists in any case */
    s->checkpoint = steps.checkpoint, s->n_checkpoints = steps.n_checkpoints;
    s->evaluation = steps.evaluation, s->n_evaluations = steps.n_evaluations;
    KS_TRY(status);
    for (size_t i = 0; i < s->n_architectures; i++)
        if (!s->architecture[i].elsewhere)
            KS_TRY(check_milestones(s, &s->architecture[i]));
    KS_TRY(apply_stop(s));
    return use == KS_STUDY_COMPARE ? KS_OK : ks_elsewhere_steps(s);
}

ks_status ks_study_read(const char *path, enum ks_study_use use, struct ks_study **out)
{
    const char *base = ks_path_base(path);
    struct ks_study *study = NULL;
    ks_status status = KS_OK;
    size_t size = 0;

    *out = NULL;
    KS_GO(ks_alloc(1, sizeof *study, &study));
    KS_GO(ks_copy_string(path, &study->path));
    KS_GO(ks_print_string(&study->name, "%.*s", (int)ks_path_stem(base, ".study"), base));
    KS_GO(base == path ? ks_copy_string(".", &study->folder)
                       : ks_print_string(&study->folder, "%.*s",
                                         (int)(base - path > 1 ? base - path - 1 : 1), path));
    KS_GO(ks_text_read(path, &study->text, &size));
    if (strlen(study->text) != size) {
        status = ks_fail(KS_FORMAT, "%s: expected text, found a zero byte", path);
        goto done;
    }
    KS_GO(ks_study_parse(study, use == KS_STUDY_RUN));
    KS_GO(require(study));
    KS_GO(derive(study, use));
    *out = study, study = NULL;
done:
    ks_study_free(study);
    return status;
}

ks_status ks_study_warn(struct ks_study *s, const char *format, ...)
{
    va_list values;
    ks_status status;

    va_start(values, format);
    status = ks_list_print(&s->warning, &s->n_warnings, &s->warning_room, format, values);
    va_end(values);
    return status;
}

static void free_settings(struct ks_setting *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].key);
        free(list[i].value);
    }
}

void ks_study_free(struct ks_study *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_architectures; i++) {
        free(s->architecture[i].name);
        free(s->architecture[i].word);
        free(s->architecture[i].argument);
        free_settings(s->architecture[i].own, s->architecture[i].n_own);
    }
    free_settings(s->train, s->n_train);
    for (size_t i = 0; i < s->n_analyses; i++) {
        free_settings(s->analysis[i].setting, s->analysis[i].n);
        free(s->analysis[i].scope.architectures);
    }
    free_settings(s->factors, s->n_factors);
    for (size_t i = 0; i < s->n_warnings; i++)
        free(s->warning[i]);
    free(s->warning);
    free(s->has_checkpoint);
    free(s->has_return);
    free(s->family);
    free(s->folder);
    free(s->checkpoint);
    free(s->evaluation);
    free(s->path);
    free(s->name);
    free(s->text);
    free(s->env);
    free(s->env_argument);
    free(s);
}

ks_status ks_study_run_folder(const struct ks_study *s, size_t architecture, size_t seed,
                              char **folder)
{
    return ks_print_string(folder, "runs/%s/%s/seed%zu", s->env, s->architecture[architecture].name,
                           s->seed[seed]);
}

ks_status ks_study_output(const struct ks_study_analysis *analysis, const char *folder, size_t step,
                          const char *ending, char **path)
{
    bool named = strcmp(analysis->name, KS_STUDY_STANDARD) != 0;
    char checkpoint[32];

    ks_checkpoint_name(step, checkpoint);
    return ks_print_string(path, "%s/%.*s%s%s%s", folder, (int)ks_path_stem(checkpoint, ".h5"),
                           checkpoint, named ? "." : "", named ? analysis->name : "", ending);
}

ks_status ks_study_run_state(const char *dir, const char *folder, struct ks_study_run_state *state)
{
    char path[KS_PATH];
    const char *word, *start;
    json_int_t step;
    json_t *run;

    KS_TRY(ks_path_print(path, "%s/%s/run.json", dir, folder));
    run = json_load_file(path, 0, NULL);
    word = json_string_value(json_object_get(run, "state"));
    start = json_string_value(json_object_get(run, "start"));
    step = json_integer_value(json_object_get(run, "env_step"));
    snprintf(state->word, sizeof state->word, "%s",
             word                   ? word
             : ks_path_exists(path) ? "unknown"
                                    : "waiting");
    state->env_step = step > 0 ? (size_t)step : 0;
    snprintf(state->began, sizeof state->began, "%s", start ? start : "");
    state->has_reason = json_is_string(json_object_get(run, "reason"));
    state->resumable = strcmp(state->word, "running") == 0 || strcmp(state->word, "stopped") == 0 ||
                       (strcmp(state->word, "failed") == 0 &&
                        json_is_true(json_object_get(run, "resumable")));
    json_decref(run);
    return KS_OK;
}

bool ks_study_run_is_over(const struct ks_study *s, const struct ks_study_run_state *state)
{
    return strcmp(state->word, "finished") == 0 ||
           (strcmp(state->word, "stopped") == 0 && s->stop > 0 &&
            state->env_step >= s->end + state->has_reason);
}

static ks_status copy_path(const char *argument, char **path)
{
    struct stat about;

    return stat(argument, &about) == 0 && S_ISDIR(about.st_mode)
               ? ks_print_string(path, "%s/study.study", argument)
               : ks_copy_string(argument, path);
}

ks_status ks_study_find(const char *argument, char **path)
{
    char relative[KS_PATH];
    ks_status status;

    if (strchr(argument, '/') || ks_path_ends(argument, ".study"))
        return copy_path(argument, path);
    KS_TRY(ks_path_print(relative, "configs/%s.study", argument));
    status = ks_installed_shared(relative, path);
    if (status != KS_MISSING)
        return status;
    return ks_path_exists(argument)
               ? copy_path(argument, path)
               : ks_fail(KS_USAGE, "%s: neither a file nor the name of a shipped study", argument);
}

/* Skips an entry unless it has all of its four parts. */
static void print_change(const json_t *change, size_t before, FILE *out)
{
    const char *what = json_string_value(json_object_get(change, "what"));
    json_t *step = json_object_get(change, "env_step");
    char *from = json_dumps(json_object_get(change, "from"), JSON_ENCODE_ANY);
    char *to = json_dumps(json_object_get(change, "to"), JSON_ENCODE_ANY);

    if (what && json_is_integer(step) && from && to)
        fprintf(out, "%sfrom environment step %lld on, %s was %s, is %s", before > 0 ? "; " : "",
                (long long)json_integer_value(step), what, from, to);
    free(from);
    free(to);
}

ks_status ks_changes_read(const char *dir, const char *folder, char **text)
{
    char path[KS_PATH];
    json_t *run, *changes;
    size_t size = 0;
    FILE *out;

    *text = NULL;
    KS_TRY(ks_path_print(path, "%s/%s/run.json", dir, folder));
    run = json_load_file(path, 0, NULL);
    changes = json_object_get(run, "changes");
    out = open_memstream(text, &size);
    for (size_t i = 0; out && i < json_array_size(changes); i++)
        print_change(json_array_get(changes, i), (size_t)ftell(out), out);
    json_decref(run);
    return out && fclose(out) == 0 ? KS_OK : ks_fail(KS_MEMORY, "%s: out of memory", path);
}

/* --- which run has what --- */

static bool is_set(const struct ks_study *s, const bool *has, size_t steps,
                   struct ks_study_place at)
{
    return !has || has[(at.architecture * s->n_seeds + at.seed) * steps + at.step];
}

bool ks_study_has_checkpoint(const struct ks_study *s, struct ks_study_place at)
{
    return is_set(s, s->has_checkpoint, s->n_checkpoints, at);
}

bool ks_study_has_return(const struct ks_study *s, struct ks_study_place at)
{
    return is_set(s, s->has_return, s->n_evaluations, at);
}

bool ks_study_has_any(const struct ks_study *s, size_t architecture, size_t checkpoint)
{
    for (size_t i = 0; i < s->n_seeds; i++)
        if (ks_study_has_checkpoint(s, (struct ks_study_place){architecture, i, checkpoint}))
            return true;
    return false;
}

size_t ks_study_last_checkpoint(const struct ks_study *s, size_t architecture)
{
    size_t k = s->n_checkpoints - 1;

    while (k > 0 && !ks_study_has_any(s, architecture, k))
        k--;
    return k;
}

bool ks_study_has_run(const struct ks_study *s, size_t architecture, size_t seed)
{
    bool has = !s->architecture[architecture].elsewhere;

    for (size_t k = 0; k < s->n_checkpoints && !has; k++)
        has = ks_study_has_checkpoint(s, (struct ks_study_place){architecture, seed, k});
    return has;
}

bool ks_study_trains(const struct ks_study *s)
{
    for (size_t a = 0; a < s->n_architectures; a++)
        if (!s->architecture[a].elsewhere)
            return true;
    return false;
}

bool ks_study_has_seed(const struct ks_study *s, size_t seed)
{
    for (size_t i = 0; i < s->n_seeds; i++)
        if (s->seed[i] == seed)
            return true;
    return false;
}

bool ks_study_has_elsewhere(const struct ks_study *s)
{
    for (size_t a = 0; a < s->n_architectures; a++)
        if (s->architecture[a].elsewhere)
            return true;
    return false;
}
