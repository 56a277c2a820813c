#define _XOPEN_SOURCE 700 /* scandir, alphasort, strncasecmp */
#include "study/elsewhere.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/milestones.h"
#include "core/number.h"
#include "io/file.h"
#include "study/study_parse.h"

void ks_folder_names_clear(struct ks_folder_names *names)
{
    for (int i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
    *names = (struct ks_folder_names){0, NULL};
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

void ks_folder_names_read(const char *folder, struct ks_folder_names *names)
{
    names->list = NULL;
    names->n = scandir(folder, &names->list, is_visible, alphasort);
    if (names->n < 0)
        *names = (struct ks_folder_names){0, NULL};
}

static bool is_folder(const char *folder, const char *name)
{
    struct stat about;
    char path[KS_PATH];

    return ks_path_print(path, "%s/%s", folder, name) == KS_OK && stat(path, &about) == 0 &&
           S_ISDIR(about.st_mode);
}

/* Reads the S of "seedS". */
static bool read_seed(const char *name, size_t *seed)
{
    char same[32];
    uint64_t value;

    if (strncmp(name, "seed", 4) != 0 || !ks_parse_integer(name + 4, 0, KS_MOST_STEPS, &value))
        return false;
    *seed = (size_t)value;
    snprintf(same, sizeof same, "seed%zu", *seed);
    return strcmp(same, name) == 0;
}

bool ks_elsewhere_resembles_checkpoint(const char *name)
{
    return strncasecmp(name, "step", 4) == 0 &&
           (ks_path_ends(name, ".h5") || ks_path_ends(name, ".hdf5")) &&
           !ks_path_ends(name, KS_STUDY_SPECTRUM);
}

/* Whether an entry of a name's folder that is no folder seedS resembles a run, by its name or its
 * contents. */
static bool resembles_run(const char *folder, const char *name)
{
    KS_CLEARED_BY(ks_folder_names_clear) struct ks_folder_names names = {0, NULL};
    char path[KS_PATH];
    bool found = strncasecmp(name, "seed", 4) == 0;

    if (ks_path_print(path, "%s/%s", folder, name) != KS_OK)
        return false;
    if (!is_folder(folder, name))
        return ks_elsewhere_resembles_checkpoint(name) || (found && ks_link_dangles(path));
    ks_folder_names_read(path, &names);
    for (int i = 0; i < names.n && !found; i++)
        found = ks_elsewhere_resembles_checkpoint(names.list[i]->d_name) ||
                strcmp(names.list[i]->d_name, KS_ELSEWHERE_RETURNS) == 0;
    return found;
}

static ks_status find_env(struct ks_study *s)
{
    KS_CLEARED_BY(ks_folder_names_clear) struct ks_folder_names names = {0, NULL};
    char path[KS_PATH];
    const char *found = NULL;

    if (s->env)
        return KS_OK;
    KS_TRY(ks_path_print(path, "%s/runs", s->folder));
    ks_folder_names_read(path, &names);
    for (int i = 0; i < names.n; i++) {
        const char *name = names.list[i]->d_name;

        if (!is_folder(path, name))
            continue;
        if (found)
            return ks_fail(KS_FORMAT,
                           "%s: the runs are of several tasks, '%s' and '%s': expected env in "
                           "[study] of %s",
                           path, found, name, s->path);
        found = name;
    }
    if (!found)
        return ks_fail(KS_FORMAT,
                       "%s: expected runs from elsewhere in %s/ENV/NAME/seedS/, found none",
                       s->path, path);
    if (!ks_study_is_plain(found))
        return ks_fail(KS_FORMAT, "%s/%s: expected a name of letters, digits and +-_.", path,
                       found);
    KS_TRY(ks_copy_string(found, &s->env));
    return ks_copy_string(found, &s->env_argument);
}

/* Adds a seed to the study, whose seeds ascend. */
static ks_status add_seed(struct ks_study *s, size_t seed)
{
    size_t at = 0;

    while (at < s->n_seeds && s->seed[at] < seed)
        at++;
    if (at < s->n_seeds && s->seed[at] == seed)
        return KS_OK;
    if (s->n_seeds == KS_STUDY_SEEDS)
        return ks_fail(KS_FORMAT, "%s: seeds: more than %d", s->path, KS_STUDY_SEEDS);
    memmove(s->seed + at + 1, s->seed + at, (s->n_seeds - at) * sizeof *s->seed);
    s->seed[at] = seed;
    s->n_seeds++;
    return KS_OK;
}

/* The number of seeds' folders that a name has, and what becomes of them: nothing; the study gets
 * these seeds; or the study has its seeds, and others are warned about. A name's folders are
 * counted and then added or compared, if there are any: only then is what resembles a run warned
 * about. */
enum seeds { COUNT_SEEDS, ADD_SEEDS, COMPARE_SEEDS };

static ks_status find_seeds(struct ks_study *s, const char *name, enum seeds what, size_t *n)
{
    struct ks_left_out odd = {0}, unasked = {0};
    KS_CLEARED_BY(ks_folder_names_clear) struct ks_folder_names names = {0, NULL};
    char path[KS_PATH];
    size_t seed = 0;

    *n = 0;
    KS_TRY(ks_path_print(path, "%s/runs/%s/%s", s->folder, s->env, name));
    ks_folder_names_read(path, &names);
    for (int i = 0; i < names.n; i++) {
        const char *entry = names.list[i]->d_name;

        if (!read_seed(entry, &seed) || !is_folder(path, entry)) {
            if (resembles_run(path, entry))
                ks_left_out_add(&odd, entry);
            continue;
        }
        ++*n;
        if (what == ADD_SEEDS)
            KS_TRY(add_seed(s, seed));
        else if (what == COMPARE_SEEDS && !ks_study_has_seed(s, seed))
            ks_left_out_add(&unasked, entry);
    }
    if (what != COUNT_SEEDS || *n == 0)
        KS_TRY(ks_left_out_warn(s, path, &odd,
                                "left out: expected runs in folders seed0, seed1, ..."));
    return ks_left_out_warn(s, path, &unasked, "left out: `seeds` of the study lacks it");
}

/* Of the seeds that the study's file gives, those that a name lacks are warned about. */
static ks_status expect_seeds(struct ks_study *s, const char *name)
{
    struct ks_left_out missing = {0};
    char path[KS_PATH], folder[32];

    KS_TRY(ks_path_print(path, "%s/runs/%s/%s", s->folder, s->env, name));
    for (size_t i = 0; i < s->n_seeds; i++) {
        snprintf(folder, sizeof folder, "seed%zu", s->seed[i]);
        if (!is_folder(path, folder))
            ks_left_out_add(&missing, folder);
    }
    return ks_left_out_warn(s, path, &missing,
                            "expected a folder, as `seeds` of the study has it, found none");
}

/* All names that have folders of seeds. */
static ks_status find_names(struct ks_study *s)
{
    struct ks_left_out dangling = {0}, unnamed = {0};
    KS_CLEARED_BY(ks_folder_names_clear) struct ks_folder_names names = {0, NULL};
    char path[KS_PATH], link[KS_PATH];

    KS_TRY(ks_path_print(path, "%s/runs/%s", s->folder, s->env));
    ks_folder_names_read(path, &names);
    for (int i = 0; i < names.n; i++) {
        const char *name = names.list[i]->d_name;
        size_t n = 0;

        if (!is_folder(path, name)) {
            if (ks_path_print(link, "%s/%s", path, name) == KS_OK && ks_link_dangles(link))
                ks_left_out_add(&dangling, name);
            continue;
        }
        if (ks_study_is_plain(name))
            KS_TRY(find_seeds(s, name, COUNT_SEEDS, &n));
        else
            ks_left_out_add(&unnamed, name);
        if (n > 0)
            KS_TRY(ks_study_add_elsewhere(s, name));
    }
    KS_TRY(ks_left_out_warn(s, path, &dangling, "left out: the link leads to no folder"));
    return ks_left_out_warn(s, path, &unnamed,
                            "left out: expected a name of letters, digits and +-_.");
}

ks_status ks_elsewhere_names(struct ks_study *s, bool check)
{
    const bool given = ks_study_has_elsewhere(s), seeds = s->n_seeds > 0;

    if (!s->elsewhere && !given)
        return KS_OK;
    KS_TRY(find_env(s));
    if (!given)
        KS_TRY(find_names(s));
    for (size_t a = 0; a < s->n_architectures; a++) {
        size_t n = 0;

        if (!s->architecture[a].elsewhere)
            continue;
        KS_TRY(find_seeds(s, s->architecture[a].name, seeds ? COMPARE_SEEDS : ADD_SEEDS, &n));
        if (n > 0) {
            if (seeds)
                KS_TRY(expect_seeds(s, s->architecture[a].name));
            continue;
        }
        ks_fail(KS_FORMAT, "%s: elsewhere: '%s': expected folders %s/runs/%s/%s/seedS", s->path,
                s->architecture[a].name, s->folder, s->env, s->architecture[a].name);
        if (check)
            return KS_FORMAT;
        KS_TRY(ks_list_add(&s->warnings, "%s", ks_error_text()));
    }
    return ks_study_has_elsewhere(s)
               ? KS_OK
               : ks_fail(KS_FORMAT,
                         "%s: expected folders %s/runs/%s/NAME/seedS, "
                         "found none%s%s",
                         s->path, s->folder, s->env, s->warnings.n ? ": " : "",
                         s->warnings.n ? s->warnings.text[0] : "");
}
