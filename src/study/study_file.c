#include "study/study_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "core/process.h"
#include "io/file.h"

const struct ks_setting *ks_setting_find(const struct ks_setting *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return &list[i];
    return NULL;
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
    ks_list_clear(&s->warnings);
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
    json_auto_t *run = NULL;

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
    KS_OWNED char *from = json_dumps(json_object_get(change, "from"), JSON_ENCODE_ANY);
    KS_OWNED char *to = json_dumps(json_object_get(change, "to"), JSON_ENCODE_ANY);

    if (what && json_is_integer(step) && from && to)
        fprintf(out, "%sfrom environment step %lld on, %s was %s, is %s", before > 0 ? "; " : "",
                (long long)json_integer_value(step), what, from, to);
}

ks_status ks_changes_read(const char *dir, const char *folder, char **text)
{
    char path[KS_PATH];
    json_auto_t *run = NULL;
    json_t *changes;
    size_t size = 0;
    FILE *out;

    *text = NULL;
    KS_TRY(ks_path_print(path, "%s/%s/run.json", dir, folder));
    run = json_load_file(path, 0, NULL);
    changes = json_object_get(run, "changes");
    out = open_memstream(text, &size);
    for (size_t i = 0; out && i < json_array_size(changes); i++)
        print_change(json_array_get(changes, i), (size_t)ftell(out), out);
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

static bool has_any(const struct ks_study *s, bool elsewhere)
{
    for (size_t a = 0; a < s->n_architectures; a++)
        if (s->architecture[a].elsewhere == elsewhere)
            return true;
    return false;
}

bool ks_study_trains(const struct ks_study *s)
{
    return has_any(s, false);
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
    return has_any(s, true);
}
