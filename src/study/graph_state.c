/* Which jobs of a study's graph are done, as the existing files show; the others as shell commands.
 */
#include "study/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
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

static bool has_resume_point(const struct ks_graph_job *training, const char *dir)
{
    char *path = NULL;
    bool found = ks_print_string(&path, "%s/%s/" KS_GRAPH_RESUME, dir, training->folder) == KS_OK &&
                 ks_path_exists(path);

    free(path);
    return found;
}

static bool is_trained(const struct ks_graph *graph, size_t run, const char *dir)
{
    const struct ks_graph_job *training = &graph->job[run];
    struct ks_study_run_state state;

    if (ks_graph_targets(graph, run, dir) < training->n_targets)
        return false;
    if (graph->study->stop == 0)
        return !has_resume_point(training, dir);
    return ks_study_run_state(dir, training->folder, &state) == KS_OK &&
           ks_study_run_is_over(graph->study, &state);
}

/* Whether the checkpoint exists and will not be written again, because the run was stopped after it
 * and has a resume point. */
static bool is_kept(const struct ks_graph *graph, const struct ks_graph_job *analysis,
                    const char *dir)
{
    struct ks_study_run_state state;
    char *path = NULL;
    bool found = ks_print_string(&path, "%s/%s", dir, analysis->needs) == KS_OK &&
                 ks_path_exists(path);

    free(path);
    return found && has_resume_point(&graph->job[analysis->run], dir) &&
           ks_study_run_state(dir, analysis->folder, &state) == KS_OK &&
           strcmp(state.word, "stopped") == 0 && state.env_step >= analysis->step;
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

ks_status ks_graph_print(const struct ks_graph *graph, const char *dir, const char *study,
                         const char *plot, FILE *out)
{
    KS_TRY(print_start(graph, dir, study, out));
    for (size_t i = 0; i < graph->n_jobs; i++) {
        const struct ks_graph_job *job = &graph->job[i];

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
