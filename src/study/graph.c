#include "study/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "core/process.h"
#include "io/file.h"
#include "study/study_parse.h"
#include "train/state.h"

/* Prints the settings but those that the architecture (NULL: none) has itself. */
static void print_settings(FILE *out, const struct ks_setting *list, size_t n,
                           const struct ks_study_architecture *but)
{
    for (size_t i = 0; i < n; i++)
        if (!but || !ks_setting_find(but->own, but->n_own, list[i].key)) {
            fprintf(out, " --set %s=", list[i].key);
            ks_shell_word(out, list[i].value);
        }
}

static void print_training(FILE *out, const struct ks_study *s,
                           const struct ks_graph_programs *programs, const struct ks_graph_job *job)
{
    const struct ks_study_architecture *a = &s->architecture[job->run % s->n_architectures];

    ks_shell_word(out, programs->train);
    ks_shell_option(out, "env", s->env_argument);
    ks_shell_option(out, "arch", a->argument);
    fprintf(out, " --seed=%zu --steps=%zu", s->seed[job->run / s->n_architectures], s->steps);
    if (s->stop > 0)
        fprintf(out, " --stop-at=%zu", s->stop);
    print_settings(out, s->train, s->n_train, a);
    print_settings(out, a->own, a->n_own, NULL);
    ks_shell_option(out, "out", job->folder);
    fprintf(out, " --resume%s --quiet", programs->resume_any ? "=any" : "");
}

/* The command becomes a line of a makefile, so it is checked. */
static ks_status set_command(const struct ks_study *s, const struct ks_graph_programs *programs,
                             struct ks_graph_job *job)
{
    size_t size;
    FILE *out = open_memstream(&job->command, &size);

    if (out && job->trains)
        print_training(out, s, programs, job);
    else if (out) {
        ks_shell_word(out, programs->analyze);
        if (!ks_study_print_options(&s->analysis[job->analysis], out) && programs->memory > 0)
            fprintf(out, " --memory=%zu", programs->memory);
        fprintf(out, " --quiet ");
        ks_shell_word(out, job->needs);
    }
    KS_TRY(ks_stream_close(out));
    return ks_shell_check(job->label, job->command);
}

static ks_status print_checkpoint(const struct ks_study *s, const char *folder, size_t checkpoint,
                                  char **path)
{
    char name[32];

    ks_checkpoint_name(s->checkpoint[checkpoint], name);
    return ks_print_string(path, "%s/%s", folder, name);
}

static ks_status set_training(const struct ks_study *s, const struct ks_graph_programs *programs,
                              struct ks_graph_job *job)
{
    struct ks_study_place at = {job->run % s->n_architectures, job->run / s->n_architectures, 0};

    job->trains = true;
    job->elsewhere = s->architecture[at.architecture].elsewhere;
    KS_TRY(ks_study_run_folder(s, at.architecture, at.seed, &job->folder));
    KS_TRY(ks_print_string(&job->label, "train %s", job->folder + strlen("runs/")));
    KS_TRY(ks_print_string(&job->log, "%s/train.log", job->folder));
    KS_TRY(ks_alloc(s->n_checkpoints, sizeof *job->target, &job->target));
    for (; at.step < s->n_checkpoints; at.step++)
        if (ks_study_has_checkpoint(s, at))
            KS_TRY(print_checkpoint(s, job->folder, at.step, &job->target[job->n_targets++]));
    return job->elsewhere ? ks_copy_string(":", &job->command) : set_command(s, programs, job);
}

/* An analysis of a checkpoint that `training` writes. */
static ks_status set_analysis(const struct ks_study *s, const struct ks_graph_programs *programs,
                              const struct ks_graph_job *training, struct ks_graph_job *job)
{
    const struct ks_study_analysis *analysis = &s->analysis[job->analysis];

    job->step = s->checkpoint[job->checkpoint];
    KS_TRY(ks_copy_string(training->folder, &job->folder));
    KS_TRY(print_checkpoint(s, job->folder, job->checkpoint, &job->needs));
    KS_TRY(ks_study_output(analysis, job->folder, job->step, ".analyze.log", &job->log));
    KS_TRY(ks_print_string(&job->label, "analyze %.*s",
                           (int)ks_path_stem(job->log, ".analyze.log") - (int)strlen("runs/"),
                           job->log + strlen("runs/")));
    KS_TRY(ks_alloc(1, sizeof *job->target, &job->target));
    KS_TRY(ks_study_output(analysis, job->folder, job->step, KS_STUDY_SPECTRUM, &job->target[0]));
    job->n_targets = 1;
    return set_command(s, programs, job);
}

/* Whether the study asks for this analysis of a checkpoint that the run has. */
static bool asks(const struct ks_study *s, size_t analysis, size_t run, size_t checkpoint)
{
    const struct ks_study_place at = {run % s->n_architectures, run / s->n_architectures,
                                      checkpoint};

    return ks_study_asks(s, analysis, at.architecture, checkpoint) &&
           ks_study_has_checkpoint(s, at);
}

static ks_status set_jobs(const struct ks_graph_programs *programs, struct ks_graph *graph)
{
    const struct ks_study *s = graph->study;
    struct ks_graph_job *job = graph->job;

    for (size_t run = 0; run < graph->n_runs; run++, job++) {
        job->run = run;
        KS_TRY(set_training(s, programs, job));
    }
    for (size_t run = 0; run < graph->n_runs; run++)
        for (size_t i = 0; i < s->n_checkpoints; i++)
            for (size_t k = 0; k < s->n_analyses; k++)
                if (asks(s, k, run, i)) {
                    job->run = run;
                    job->checkpoint = i;
                    job->analysis = k;
                    KS_TRY(set_analysis(s, programs, &graph->job[run], job++));
                }
    return KS_OK;
}

size_t ks_study_spectra(const struct ks_study *s, size_t run)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_checkpoints; i++)
        for (size_t k = 0; k < s->n_analyses; k++)
            n += asks(s, k, run, i);
    return n;
}

size_t ks_graph_jobs(const struct ks_study *s)
{
    const size_t runs = s->n_architectures * s->n_seeds;
    size_t n = runs;

    for (size_t run = 0; run < runs; run++)
        n += ks_study_spectra(s, run);
    return n;
}

ks_status ks_graph_new(const struct ks_study *s, const struct ks_graph_programs *programs,
                       struct ks_graph **out)
{
    KS_OWNED_BY(ks_graph_free) struct ks_graph *graph = NULL;

    *out = NULL;
    KS_TRY(ks_alloc(1, sizeof *graph, &graph));
    graph->study = s;
    graph->n_runs = s->n_architectures * s->n_seeds;
    KS_TRY(ks_alloc(ks_graph_jobs(s), sizeof *graph->job, &graph->job));
    graph->n_jobs = ks_graph_jobs(s);
    KS_TRY(set_jobs(programs, graph));
    *out = graph, graph = NULL;
    return KS_OK;
}

static void clear_job(struct ks_graph_job *job)
{
    for (size_t i = 0; i < job->n_targets; i++)
        free(job->target[i]);
    free(job->target);
    free(job->label);
    free(job->folder);
    free(job->command);
    free(job->log);
    free(job->needs);
    free(job->restart);
}

void ks_graph_free(struct ks_graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->n_jobs; i++)
        clear_job(&graph->job[i]);
    free(graph->job);
    free(graph);
}

/* Which jobs of a study's graph are done, as the existing files show; the others as shell commands.
 */

bool ks_graph_has(const char *dir, const char *path)
{
    char full[KS_PATH];

    return ks_path_print(full, "%s/%s", dir, path) == KS_OK && ks_path_exists(full);
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
    bool over, resumes;  /* it has a resume point */
    size_t step;         /* its checkpoints up to this step are not written again */
    char point[KS_PATH]; /* the resume point of this step, if it is not over */
};

/* A resume point that cannot be read counts as one at the step of run.json. */
static ks_status find_resume_point(const struct ks_graph *graph, size_t run, const char *dir,
                                   struct view *view)
{
    const struct ks_study *s = graph->study;
    size_t repeat = s->architecture[run % s->n_architectures].settings.action_repeat;

    for (size_t i = 0; i < KS_GRAPH_POINTS; i++) {
        struct ks_resume_header header;
        size_t step = graph->job[run].state.env_step;
        char path[KS_PATH];

        KS_TRY(ks_path_print(path, "%s/%s/resume/point.%zu", dir, graph->job[run].folder, i));
        if (!ks_path_exists(path))
            continue;
        if (ks_resume_file_header(path, &header))
            step = (size_t)header.rows * repeat;
        if (!view->resumes || step > view->step) {
            memcpy(view->point, path, strlen(path) + 1);
            view->step = step;
        }
        view->resumes = true;
    }
    return KS_OK;
}

/* The first analysis of a run that has to be made although its checkpoint is gone, or NULL. A run
 * that was stopped during an evaluation has yet to write the checkpoint of that step. */
static const struct ks_graph_job *find_lost(const struct ks_graph *graph, size_t run,
                                            const char *dir, const struct view *view)
{
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++) {
        const struct ks_graph_job *job = &graph->job[i];

        if (job->run == run && job->step <= view->step && ks_graph_targets(graph, i, dir) == 0 &&
            !ks_graph_has(dir, job->needs) &&
            !(job->step == view->step && !view->over && ks_resume_file_is_pending(view->point)))
            return job;
    }
    return NULL;
}

static ks_status look(struct ks_graph *graph, size_t run, const char *dir)
{
    struct ks_graph_job *training = &graph->job[run];
    const struct ks_graph_job *lost = NULL;
    struct view view = {.resumes = false};

    free(training->restart);
    training->restart = NULL;
    if (training->elsewhere)
        snprintf(training->state.word, sizeof training->state.word, "elsewhere");
    else
        KS_TRY(ks_study_run_state(dir, training->folder, &training->state));
    view.over = training->elsewhere || ks_study_run_is_over(graph->study, &training->state);
    if (view.over)
        view.step = graph->study->end;
    else if (training->state.resumable)
        KS_TRY(find_resume_point(graph, run, dir, &view));
    if (view.over || view.resumes)
        lost = find_lost(graph, run, dir, &view);
    training->done = training->elsewhere || (view.over && !lost);
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].run == run)
            graph->job[i].done = (view.over || view.resumes) && (!lost || training->elsewhere) &&
                                 graph->job[i].step <= view.step &&
                                 ks_graph_targets(graph, i, dir) == graph->job[i].n_targets;
    if (lost && training->elsewhere)
        return ks_print_string(
            &training->restart, "%s: %s has to be made, but its checkpoint %s is gone",
            training->folder, ks_path_base(lost->target[0]), ks_path_base(lost->needs));
    if (lost)
        return ks_print_string(&training->restart,
                               "%s: has to start from the beginning: %s has to be made, but its "
                               "checkpoint %s is gone",
                               training->label, ks_path_base(lost->target[0]),
                               ks_path_base(lost->needs));
    return view.over || view.resumes || strcmp(training->state.word, "stopped") != 0
               ? KS_OK
               : ks_print_string(&training->restart,
                                 "%s: has to start from the beginning: it was stopped at step %zu, "
                                 "but its resume point is gone",
                                 training->label, training->state.env_step);
}

ks_status ks_graph_look(struct ks_graph *graph, const char *dir)
{
    for (size_t run = 0; run < graph->n_runs; run++)
        KS_TRY(look(graph, run, dir));
    return KS_OK;
}

ks_status ks_graph_print(struct ks_graph *graph, const char *dir, const char *claim,
                         const char *plot, FILE *out)
{
    fprintf(out, "mkdir -p -- ");
    ks_shell_word(out, dir);
    fprintf(out, " && cd -- ");
    ks_shell_word(out, dir);
    fprintf(out, " || exit\n");
    KS_TRY(ks_graph_drop_stale(graph, dir, out));
    if (claim) /* after stale spectra are removed: it asserts that the others match it */
        fprintf(out, "%s\n", claim);
    fprintf(out, "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1\n");
    for (size_t n = 0; n < graph->n_runs; n++)
        for (size_t i = n; i < graph->n_jobs; i = i < graph->n_runs ? graph->n_runs : i + 1)
            if (graph->job[i].run == n && !graph->job[i].done) {
                if (graph->job[i].trains)
                    fprintf(out, "mkdir -p %s\n", graph->job[i].folder);
                fprintf(out, "%s >%s 2>&1\n", graph->job[i].command, graph->job[i].log);
            }
    ks_shell_word(out, plot);
    fprintf(out, " .\n");
    return KS_OK;
}
