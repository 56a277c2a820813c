/* The study behind `audit --train`: one seed of two small critics. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/training.h"
#include "core/memory.h"
#include "core/process.h"
#include "io/file.h"
#include "study/study_file.h"

/* Some thousand steps take minutes with these settings. The runs are planned for TIMES as many, so
 * that they can go on. The sizes of a described critic and of a
 * system are their own; one of the twelve architectures is as narrow as both actors (NARROW). */
static const char STUDY[] =
    "; Written by kappascope audit --train. To continue, raise `stop` or add seeds, and run\n"
    "; kappascope study on this folder.\n"
    "[study]\n"
    "env = %s\n"
    "architectures = %s\n"
    "seeds = 0\n"
    "steps = %zu\n"
    "stop = %zu\n"
    "\n"
    "[train]\n"
    "random_steps = 200\n"
    "checkpoints = %d\n"
    "evaluations = %d\n"
    "eval_episodes = 2\n"
    "analysis_minibatches = %d\n"
    "threads = 1\n"
    "\n"
    "[variant baseline]\n"
    "architecture = %s\n"
    "%s\n"
    "[analyze]\n"
    "order = 30\n"
    "start = gradient\n";
enum { TIMES = 20, CHECKPOINTS = 2 * TIMES, EVALUATIONS = 4 * TIMES };
static const char NARROW[] = "hidden = 64\n";

/* *path = an absolute path, as a study's paths are relative to its file: its folder's real path and
 * the file's own name, after which the run is called. A name without a slash and without an ending
 * stays. The caller frees. KS_IO if the file does not exist, KS_USAGE if its path has a blank or a
 * comma, at which the lists of study files are split. */
static ks_status absolute(const char *name, char **path)
{
    KS_OWNED char *folder = NULL, *resolved = NULL;

    if (!strchr(name, '/') && !ks_path_ends(name, ".arch") && !ks_path_ends(name, ".system") &&
        !ks_path_ends(name, ".so"))
        return ks_copy_string(name, path);
    if (!ks_path_exists(name))
        return ks_fail(KS_IO, "%s: expected a file, found none", name);
    KS_TRY(ks_print_string(&folder, "./%.*s", (int)(ks_path_base(name) - name), name));
    resolved = realpath(*name == '/' ? folder + 2 : folder, NULL);
    KS_TRY(ks_print_string(path, "%s/%s", resolved ? resolved : ".", ks_path_base(name)));
    return strpbrk(*path, ", \t")
               ? ks_fail(KS_USAGE, "%s: expected a path without blanks and commas", *path)
               : KS_OK;
}

/* KS_USAGE if the folder has another study. */
static ks_status write_study(const char *folder, const char *study)
{
    KS_OWNED char *path = NULL, *found = NULL;

    KS_TRY(ks_print_string(&path, "%s/study.study", folder));
    if (!ks_path_exists(path)) {
        KS_TRY(ks_folder_make("%s", folder));
        return ks_file_write(path, study, strlen(study));
    }
    KS_TRY(ks_text_read(path, &found, NULL));
    return strcmp(found, study) == 0
               ? KS_OK
               : ks_fail(KS_USAGE,
                         "%s: expected the study of this audit, found another one: name another "
                         "folder (--out), or continue it with `kappascope study`",
                         path);
}

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

/* Whether to pass on a line: failures, and progress. A study's summary is in its folder. */
static bool is_wanted(const char *line, bool quiet)
{
    return begins(line, "kappascope") ||
           (!quiet && (strstr(line, " jobs, ") || begins(line, "to do:")));
}

/* Removes the study of a folder without runs, so that a corrected one can take its place. */
static ks_status forget_study(const char *folder)
{
    char path[KS_PATH];

    KS_TRY(ks_path_print(path, "%s/runs", folder));
    if (ks_path_exists(path))
        return KS_OK;
    KS_TRY(ks_path_print(path, "%s/study.study", folder));
    remove(path);
    return KS_OK;
}

/* Runs the study and passes on its progress. */
static ks_status run_study(const char *folder, bool quiet)
{
    KS_OWNED char *program = NULL, *file = NULL;
    char line[1024];
    struct ks_process process = {.pid = 0};
    int code = 0;

    KS_TRY(ks_locate_program("kappascope-study", &program));
    KS_TRY(ks_print_string(&file, "%s/study.study", folder));
    KS_TRY(ks_process_start(
        ".", (const char *const[]){program, "--out", folder, file, quiet ? "--quiet" : NULL, NULL},
        NULL, true, &process));
    while (fgets(line, sizeof line, process.output))
        if (is_wanted(line, quiet))
            fputs(line, stderr);
    KS_TRY(ks_process_end(&process, &code));
    if (code == 2)
        KS_TRY(forget_study(folder));
    if (code != 0)
        return ks_fail(KS_RUN, "%s: the study failed (exit status %d)%s", folder, code,
                       code == 2 ? "" : "; the same command goes on");
    return KS_OK;
}

/* The last checkpoint is at --steps, rounded up to whole agent steps. */
static ks_status name_checkpoints(const struct ks_audit_training *t, const char *folder,
                                  char *checkpoint[KS_AUDIT_TRAINED])
{
    const char *names[KS_AUDIT_TRAINED] = {ks_path_base(t->arch), "baseline"};
    const char *env = ks_path_base(t->env);
    KS_OWNED_BY(ks_study_free) struct ks_study *study = NULL;
    char path[KS_PATH];

    KS_TRY(ks_path_print(path, "%s/study.study", folder));
    KS_TRY(ks_study_read(path, KS_STUDY_SHOW, &study));
    for (size_t i = 0; i < KS_AUDIT_TRAINED; i++)
        KS_TRY(ks_print_string(&checkpoint[i], "%s/runs/%.*s/%s/seed0/step_%09zu.h5", folder,
                               (int)ks_path_stem(env, ".so"), env, names[i],
                               study->checkpoint[study->n_checkpoints - 1]));
    return KS_OK;
}

/* Whether it is one of the twelve architectures, whose width is a setting. */
static bool is_named(const char *architecture)
{
    return ks_path_ends(architecture, "+ce") || ks_path_ends(architecture, "+mse");
}

ks_status ks_audit_train(const struct ks_audit_training *t, char **folder,
                         char *checkpoint[KS_AUDIT_TRAINED])
{
    const char *name = ks_path_base(t->arch), *task = ks_path_base(t->env);
    KS_OWNED char *arch = NULL, *env = NULL, *baseline = NULL, *study = NULL;

    KS_TRY(absolute(t->arch, &arch));
    KS_TRY(absolute(t->env, &env));
    KS_TRY(absolute(t->baseline, &baseline));
    KS_TRY(t->folder ? ks_copy_string(t->folder, folder)
                     : ks_print_string(folder, "%.*s-%.*s", (int)ks_path_stem(name, ".arch"), name,
                                       (int)ks_path_stem(task, ".so"), task));
    KS_TRY(ks_print_string(&study, STUDY, env, arch, TIMES * t->steps, t->steps, CHECKPOINTS,
                           EVALUATIONS, KS_AUDIT_MINIBATCHES, baseline,
                           is_named(baseline) ? NARROW : ""));
    KS_TRY(write_study(*folder, study));
    KS_TRY(run_study(*folder, t->quiet));
    return name_checkpoints(t, *folder, checkpoint);
}
