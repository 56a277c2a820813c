/* Which jobs of a study's graph are done, as the existing files show; the others as shell commands.
 */
#include "study/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/path.h"
#include "io/text.h"
#include "study/shell.h"

size_t ks_graph_targets(const struct ks_graph *graph, size_t i, const char *dir)
{
    const struct ks_graph_job *job = &graph->job[i];
    size_t n = 0;

    for (size_t k = 0; k < job->n_targets && !job->stale; k++) {
        char *path = NULL;

        if (ks_print_string(&path, "%s/%s", dir, job->target[k]) == KS_OK)
            n += ks_path_exists(path);
        free(path);
    }
    return n;
}

static bool has_file(const char *dir, const char *folder, const char *name)
{
    char *path = NULL;
    bool found = ks_print_string(&path, "%s/%s/%s", dir, folder, name) == KS_OK &&
                 ks_path_exists(path);

    free(path);
    return found;
}

static bool has_resume_point(const char *dir, const char *folder)
{
    return has_file(dir, folder, KS_GRAPH_RESUME(0)) || has_file(dir, folder, KS_GRAPH_RESUME(1));
}

/* The first analysis of a run, of a checkpoint up to `step`, that has to be made although the
 * checkpoint is gone; NULL: there is none. */
static const struct ks_graph_job *find_lost(const struct ks_graph *graph, size_t run,
                                            const char *dir, size_t step)
{
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++) {
        const struct ks_graph_job *job = &graph->job[i];

        if (job->run == run && job->step <= step && ks_graph_targets(graph, i, dir) == 0 &&
            !has_file(dir, job->folder, ks_path_base(job->needs)))
            return job;
    }
    return NULL;
}

static bool is_trained(const struct ks_graph *graph, size_t run, const char *dir)
{
    struct ks_study_run_state state;

    return ks_study_run_state(dir, graph->job[run].folder, &state) == KS_OK &&
           ks_study_run_is_over(graph->study, &state) &&
           !find_lost(graph, run, dir, graph->study->end);
}

/* Whether the analyzed checkpoint will not be written again, because the run was stopped after it
 * and has a resume point. */
static bool is_kept(const struct ks_graph *graph, const struct ks_graph_job *analysis,
                    const char *dir)
{
    struct ks_study_run_state state;

    return has_resume_point(dir, analysis->folder) &&
           ks_study_run_state(dir, analysis->folder, &state) == KS_OK &&
           strcmp(state.word, "stopped") == 0 && state.env_step >= analysis->step &&
           !find_lost(graph, analysis->run, dir, state.env_step);
}

ks_status ks_graph_restart(const struct ks_graph *graph, size_t run, const char *dir, char **why)
{
    const char *folder = graph->job[run].folder, *label = graph->job[run].label;
    const struct ks_graph_job *lost;
    struct ks_study_run_state state;
    bool over;

    *why = NULL;
    KS_TRY(ks_study_run_state(dir, folder, &state));
    over = ks_study_run_is_over(graph->study, &state);
    if (!over && strcmp(state.word, "stopped") != 0)
        return KS_OK;
    lost = find_lost(graph, run, dir, over ? graph->study->end : state.env_step);
    if (lost)
        return ks_print_string(why,
                               "%s: starts from the beginning: %s has to be made, but its "
                               "checkpoint is gone",
                               label, ks_path_base(lost->target[0]));
    return over || has_resume_point(dir, folder)
               ? KS_OK
               : ks_print_string(why,
                                 "%s: starts from the beginning: it was stopped at step %zu, but "
                                 "its resume point is gone",
                                 label, state.env_step);
}

bool ks_graph_is_done(const struct ks_graph *graph, size_t i, const char *dir)
{
    const struct ks_graph_job *job = &graph->job[i];

    return job->trains ? is_trained(graph, i, dir)
                       : ks_graph_targets(graph, i, dir) == job->n_targets &&
                             (is_trained(graph, job->run, dir) || is_kept(graph, job, dir));
}

/* Copies study.study only after stale spectra are removed: it asserts that the others match it. */
static ks_status print_start(const struct ks_graph *graph, const char *dir, const char *study,
                             FILE *out)
{
    fprintf(out, "mkdir -p -- ");
    ks_shell_word(out, dir);
    fprintf(out, " && cd -- ");
    ks_shell_word(out, dir);
    fprintf(out, " || exit\n");
    KS_TRY(ks_graph_print_stale(graph, dir, out));
    if (study) {
        fprintf(out, "cp ");
        ks_shell_word(out, study);
        fprintf(out, " study.study\n");
    }
    fprintf(out, "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1\n");
    return KS_OK;
}

static void print_job(const struct ks_graph_job *job, FILE *out)
{
    if (job->trains)
        fprintf(out, "mkdir -p %s\n", job->folder);
    fprintf(out, "%s >%s 2>&1\n", job->command, job->log);
}

ks_status ks_graph_print(const struct ks_graph *graph, const char *dir, const char *study,
                         const char *plot, FILE *out)
{
    KS_TRY(print_start(graph, dir, study, out));
    for (size_t n = 0; n < graph->n_runs; n++)
        for (size_t i = n; i < graph->n_jobs; i = i < graph->n_runs ? graph->n_runs : i + 1)
            if (graph->job[i].run == n && !ks_graph_is_done(graph, i, dir))
                print_job(&graph->job[i], out);
    ks_shell_word(out, plot);
    fprintf(out, " .\n");
    return KS_OK;
}
