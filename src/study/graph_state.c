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
#include "train/resume_file.h"

const char *const ks_graph_point[KS_GRAPH_POINTS] = {"resume/point.0", "resume/point.1"};

bool ks_graph_has(const char *dir, const char *path)
{
    char *full = NULL;
    bool found = ks_print_string(&full, "%s/%s", dir, path) == KS_OK && ks_path_exists(full);

    free(full);
    return found;
}

size_t ks_graph_targets(const struct ks_graph *graph, size_t i, const char *dir)
{
    const struct ks_graph_job *job = &graph->job[i];
    size_t n = 0;

    for (size_t k = 0; k < job->n_targets && !job->stale; k++)
        n += ks_graph_has(dir, job->target[k]);
    return n;
}

/* What its files say about a run. */
struct view {
    struct ks_study_run_state state;
    bool over, resumes; /* it has a resume point */
    size_t step;        /* its checkpoints up to this step are not written again */
    /* The first analysis of these that has to be made although its checkpoint is gone, or NULL. */
    const struct ks_graph_job *lost;
};

/* A resume point is written only when all that is due at its step is done. One that cannot be read
 * counts as one at the step of run.json. */
static ks_status find_resume_point(const struct ks_graph *graph, size_t run, const char *dir,
                                   struct view *view)
{
    const struct ks_study *s = graph->study;
    size_t repeat = s->architecture[run % s->n_architectures].settings.action_repeat;

    for (size_t i = 0; i < KS_GRAPH_POINTS; i++) {
        struct ks_resume_header header;
        size_t step = view->state.env_step;
        char *path = NULL;

        KS_TRY(ks_print_string(&path, "%s/%s/%s", dir, graph->job[run].folder, ks_graph_point[i]));
        if (ks_resume_file_header(path, &header))
            step = (size_t)header.rows * repeat;
        if (ks_path_exists(path)) {
            view->resumes = true;
            view->step = step > view->step ? step : view->step;
        }
        free(path);
    }
    return KS_OK;
}

static ks_status look(const struct ks_graph *graph, size_t run, const char *dir, struct view *view)
{
    *view = (struct view){.resumes = false};
    KS_TRY(ks_study_run_state(dir, graph->job[run].folder, &view->state));
    view->over = ks_study_run_is_over(graph->study, &view->state);
    if (view->over)
        view->step = graph->study->end;
    else if (view->state.resumable)
        KS_TRY(find_resume_point(graph, run, dir, view));
    for (size_t i = graph->n_runs; i < graph->n_jobs && (view->over || view->resumes); i++) {
        const struct ks_graph_job *job = &graph->job[i];

        if (job->run == run && job->step <= view->step && ks_graph_targets(graph, i, dir) == 0 &&
            !ks_graph_has(dir, job->needs)) {
            view->lost = job;
            break;
        }
    }
    return KS_OK;
}

ks_status ks_graph_done(const struct ks_graph *graph, const char *dir, bool **done)
{
    struct view *view = NULL;
    ks_status status = KS_OK;

    *done = NULL;
    KS_GO(ks_alloc(graph->n_runs, sizeof *view, &view));
    KS_GO(ks_alloc(graph->n_jobs, sizeof **done, done));
    for (size_t i = 0; i < graph->n_jobs; i++) {
        const struct ks_graph_job *job = &graph->job[i];
        struct view *v = &view[job->run];

        if (job->trains) {
            KS_GO(look(graph, i, dir, v));
            (*done)[i] = v->over && !v->lost;
        } else
            (*done)[i] = (v->over || v->resumes) && !v->lost && job->step <= v->step &&
                         ks_graph_targets(graph, i, dir) == job->n_targets;
    }
done:
    free(view);
    if (status != KS_OK) {
        free(*done);
        *done = NULL;
    }
    return status;
}

ks_status ks_graph_restart(const struct ks_graph *graph, size_t run, const char *dir, char **why)
{
    const char *label = graph->job[run].label;
    struct view view;

    *why = NULL;
    KS_TRY(look(graph, run, dir, &view));
    if (view.lost)
        return ks_print_string(why,
                               "%s: has to start from the beginning: %s has to be made, but its "
                               "checkpoint %s is gone",
                               label, ks_path_base(view.lost->target[0]),
                               ks_path_base(view.lost->needs));
    return view.over || view.resumes || strcmp(view.state.word, "stopped") != 0
               ? KS_OK
               : ks_print_string(why,
                                 "%s: has to start from the beginning: it was stopped at step %zu, "
                                 "but its resume point is gone",
                                 label, view.state.env_step);
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
    bool *done = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_graph_done(graph, dir, &done));
    KS_GO(print_start(graph, dir, study, out));
    for (size_t n = 0; n < graph->n_runs; n++)
        for (size_t i = n; i < graph->n_jobs; i = i < graph->n_runs ? graph->n_runs : i + 1)
            if (graph->job[i].run == n && !done[i])
                print_job(&graph->job[i], out);
    ks_shell_word(out, plot);
    fprintf(out, " .\n");
done:
    free(done);
    return status;
}
