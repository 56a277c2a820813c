#define _XOPEN_SOURCE 700 /* scandir, alphasort */
#include "study/elsewhere.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static ks_status find_env(struct ks_study *s)
{
    struct ks_folder_names names;
    char path[KS_PATH];
    const char *found = NULL;
    ks_status status = KS_OK;

    if (s->env)
        return KS_OK;
    KS_TRY(ks_path_print(path, "%s/runs", s->folder));
    ks_folder_names_read(path, &names);
    for (int i = 0; i < names.n && status == KS_OK; i++) {
        const char *name = names.list[i]->d_name;

        if (!is_folder(path, name))
            continue;
        if (found)
            status = ks_fail(KS_FORMAT,
                             "%s: the runs are of several tasks, '%s' and '%s': expected env in "
                             "[study] of %s",
                             path, found, name, s->path);
        found = name;
    }
    if (status == KS_OK && !found)
        status = ks_fail(KS_FORMAT,
                         "%s: expected runs from elsewhere in %s/ENV/NAME/seedS/, found none",
                         s->path, path);
    else if (status == KS_OK && !ks_study_is_plain(found))
        status = ks_fail(KS_FORMAT, "%s/%s: expected a name of letters, digits and +-_.", path,
                         found);
    if (status == KS_OK)
        status = ks_copy_string(found, &s->env);
    if (status == KS_OK)
        status = ks_copy_string(found, &s->env_argument);
    ks_folder_names_clear(&names);
    return status;
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
 * these seeds; or the study has its seeds, and others are warned about. */
enum seeds { COUNT_SEEDS, ADD_SEEDS, COMPARE_SEEDS };

static ks_status find_seeds(struct ks_study *s, const char *name, enum seeds what, size_t *n)
{
    struct ks_folder_names names;
    char path[KS_PATH];
    size_t seed = 0;
    ks_status status = KS_OK;

    *n = 0;
    KS_TRY(ks_path_print(path, "%s/runs/%s/%s", s->folder, s->env, name));
    ks_folder_names_read(path, &names);
    for (int i = 0; i < names.n && status == KS_OK; i++) {
        if (!read_seed(names.list[i]->d_name, &seed) || !is_folder(path, names.list[i]->d_name))
            continue;
        ++*n;
        if (what == ADD_SEEDS)
            status = add_seed(s, seed);
        else if (what == COMPARE_SEEDS && !ks_study_has_seed(s, seed))
            status = ks_study_warn(s, "%s/seed%zu: left out: `seeds` of the study lacks it", path,
                                   seed);
    }
    ks_folder_names_clear(&names);
    return status;
}

/* All names that have folders of seeds. */
static ks_status find_names(struct ks_study *s)
{
    struct ks_folder_names names;
    char path[KS_PATH];
    ks_status status = KS_OK;

    KS_TRY(ks_path_print(path, "%s/runs/%s", s->folder, s->env));
    ks_folder_names_read(path, &names);
    for (int i = 0; i < names.n && status == KS_OK; i++) {
        const char *name = names.list[i]->d_name;
        size_t n = 0;

        if (!is_folder(path, name))
            continue;
        if (ks_study_is_plain(name))
            status = find_seeds(s, name, COUNT_SEEDS, &n);
        else
            status = ks_study_warn(s,
                                   "%s/%s: left out: expected a name of letters, digits and "
                                   "+-_.",
                                   path, name);
        if (status == KS_OK && n > 0)
            status = ks_study_add_elsewhere(s, name);
    }
    ks_folder_names_clear(&names);
    return status;
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
        if (n > 0)
            continue;
        ks_fail(KS_FORMAT, "%s: elsewhere: '%s': expected folders %s/runs/%s/%s/seedS", s->path,
                s->architecture[a].name, s->folder, s->env, s->architecture[a].name);
        if (check)
            return KS_FORMAT;
        KS_TRY(ks_study_warn(s, "%s", ks_error_text()));
    }
    return ks_study_has_elsewhere(s) ? KS_OK
                                     : ks_fail(KS_FORMAT,
                                               "%s: expected folders %s/runs/%s/NAME/seedS, "
                                               "found none",
                                               s->path, s->folder, s->env);
}
