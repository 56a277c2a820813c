/* What of a study's graph is done, by the files that are there; what is left, as commands for the
 * shell. */
#include "ks/graph.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ks/file.h"
#include "ks/memory.h"
#include "ks/path.h"
#include "ks/shell.h"
#include "ks/text.h"

size_t ks_graph_targets(const struct ks_graph *graph, size_t i, const char *dir)
{
    const struct ks_job *job = &graph->job[i];
    size_t n = 0;

    for (size_t k = 0; k < job->n_targets && (job->trains || !graph->stale); k++) {
        char *path = NULL;

        if (ks_print_string(&path, "%s/%s", dir, job->target[k]) == KS_OK)
            n += ks_text_exists(path);
        free(path);
    }
    return n;
}

static bool has_resume_point(const struct ks_job *training, const char *dir)
{
    char *path = NULL;
    bool there = ks_print_string(&path, "%s/%s/" KS_GRAPH_RESUME, dir, training->folder) == KS_OK &&
                 ks_text_exists(path);

    free(path);
    return there;
}

static bool is_trained(const struct ks_graph *graph, size_t run, const char *dir)
{
    const struct ks_job *training = &graph->job[run];
    struct ks_run_state state;

    if (ks_graph_targets(graph, run, dir) < training->n_targets)
        return false;
    if (graph->study->stop == 0)
        return !has_resume_point(training, dir);
    return ks_study_run_state(dir, training->folder, &state) == KS_OK &&
           ks_study_run_is_over(graph->study, &state);
}

/* The checkpoint is there, and the run was stopped behind it and goes on from where it stopped. */
static bool is_kept(const struct ks_graph *graph, const struct ks_job *analysis, const char *dir)
{
    struct ks_run_state state;
    char *path = NULL;
    bool there = ks_print_string(&path, "%s/%s", dir, analysis->needs) == KS_OK &&
                 ks_text_exists(path);

    free(path);
    return there && has_resume_point(&graph->job[analysis->run], dir) &&
           ks_study_run_state(dir, analysis->folder, &state) == KS_OK &&
           strcmp(state.word, "stopped") == 0 && state.env_step >= analysis->step;
}

bool ks_graph_is_done(const struct ks_graph *graph, size_t i, const char *dir)
{
    const struct ks_job *job = &graph->job[i];

    return job->trains ? is_trained(graph, i, dir)
                       : ks_graph_targets(graph, i, dir) == job->n_targets &&
                             (is_trained(graph, job->run, dir) || is_kept(graph, job, dir));
}

/* What is done with a file that an analysis has left: `path` in the study's folder. */
struct action {
    ks_status (*take)(const char *dir, const char *path, FILE *out);
    FILE *out;
};

static ks_status remove_file(const char *dir, const char *path, FILE *out)
{
    char *whole = NULL;
    ks_status status = KS_OK;

    (void)out;
    KS_TRY(ks_print_string(&whole, "%s/%s", dir, path));
    if (unlink(whole) != 0 && errno != ENOENT)
        status = ks_file_fail(errno, whole, "removed");
    free(whole);
    return status;
}

static ks_status print_removal(const char *dir, const char *path, FILE *out)
{
    (void)dir;
    fprintf(out, "rm -f -- ");
    ks_shell_word(out, path);
    putc('\n', out);
    return KS_OK;
}

/* The files of --keep-basis are named as the analyzer names them: a probe, a process' part of one.
 */
static ks_status take_steps(const struct ks_job *job, const char *dir, struct action action)
{
    const char *base = ks_path_base(job->needs);
    char *folder = NULL, *pattern = NULL, *path = NULL;
    struct dirent *entry;
    DIR *list = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_print_string(&folder, "%s/%s", dir, job->folder));
    KS_GO(ks_print_string(&pattern, "%.*s.probe*.basis", (int)ks_path_stem(base, ".h5"), base));
    list = opendir(folder);
    if (!list && errno != ENOENT)
        status = ks_file_fail(errno, folder, "opened");
    while (list && status == KS_OK && (entry = readdir(list)))
        if (fnmatch(pattern, entry->d_name, 0) == 0) {
            KS_GO(ks_print_string(&path, "%s/%s", job->folder, entry->d_name));
            status = action.take(dir, path, action.out);
            free(path);
            path = NULL;
        }
done:
    if (list)
        closedir(list);
    free(folder);
    free(pattern);
    return status;
}

static ks_status take_stale(const struct ks_graph *graph, const char *dir, struct action action)
{
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++) {
        if (graph->stale)
            KS_TRY(action.take(dir, graph->job[i].target[0], action.out));
        if (graph->stale_steps)
            KS_TRY(take_steps(&graph->job[i], dir, action));
    }
    return KS_OK;
}

/* What was asked goes into the folder last, as what is there has to be of that. */
static ks_status print_start(const struct ks_graph *graph, const char *dir, const char *study,
                             FILE *out)
{
    fprintf(out, "mkdir -p -- ");
    ks_shell_word(out, dir);
    fprintf(out, " && cd -- ");
    ks_shell_word(out, dir);
    fprintf(out, " || exit\n");
    KS_TRY(take_stale(graph, dir, (struct action){print_removal, out}));
    if (study) {
        fprintf(out, "cp ");
        ks_shell_word(out, study);
        fprintf(out, " study.study\n");
    }
    fprintf(out, "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1\n");
    return KS_OK;
}

ks_status ks_graph_print(const struct ks_graph *graph, const char *dir, const char *study,
                         const char *plot, FILE *out)
{
    KS_TRY(print_start(graph, dir, study, out));
    for (size_t i = 0; i < graph->n_jobs; i++) {
        const struct ks_job *job = &graph->job[i];

        if (ks_graph_is_done(graph, i, dir))
            continue;
        if (job->trains)
            fprintf(out, "mkdir -p %s\n", job->folder);
        fprintf(out, "%s >%s 2>&1\n", job->command, job->log);
    }
    ks_shell_word(out, plot);
    fprintf(out, " .\n");
    return KS_OK;
}

ks_status ks_graph_remove_stale(struct ks_graph *graph, const char *dir)
{
    KS_TRY(take_stale(graph, dir, (struct action){remove_file, NULL}));
    graph->stale = graph->stale_steps = false;
    return KS_OK;
}
