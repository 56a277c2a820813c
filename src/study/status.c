#include "study/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/progress.h"
#include "study/slurm.h"

/* --- the forecast of --dry-run --- */

/* Counts the work, and names the trainings that start again. */
static void print_work(const struct ks_graph *graph, FILE *out)
{
    size_t left[2] = {0, 0}, all[2] = {0, 0}; /* spectra, trainings */

    for (size_t i = 0; i < graph->n_jobs; i++) {
        left[graph->job[i].trains] += !graph->job[i].done;
        all[graph->job[i].trains] += !graph->job[i].elsewhere;
    }
    fprintf(out, "# to do: %zu of %zu trainings, %zu of %zu spectra\n", left[1], all[1], left[0],
            all[0]);
    for (size_t n = 0; n < graph->n_runs; n++)
        if (graph->job[n].restart)
            fprintf(out, "# %s\n", graph->job[n].restart);
}

/* Makes the trials that are needed; *tried is their number. */
static ks_status try_all(struct ks_forecast *f, size_t *tried)
{
    for (bool made = true; made; *tried += made)
        KS_TRY(ks_forecast_try(f, &made));
    return KS_OK;
}

/* Lines of at most 100 characters that begin with `margin`. */
static void print_sources(const struct ks_forecast *f, size_t tried, const char *margin, FILE *out)
{
    const bool recorded = f->n_runs + f->n_spectra > 0;

    if (!recorded && tried == 0)
        return;
    fprintf(out, "%san estimate, from ", margin);
    if (recorded)
        fprintf(out, "what is done in this folder (trainings: %zu, spectra: %zu)\n", f->n_runs,
                f->n_spectra);
    if (tried > 0)
        fprintf(out,
                "%s%ssteps and products measured now for %zu architecture%s, in one thread\n"
                "%s(certificates, reading and writing come on top)\n",
                recorded ? margin : "", recorded ? "and " : "", tried, tried == 1 ? "" : "s",
                margin);
}

static void print_time(const struct ks_study_view *view, const struct ks_forecast *f, size_t tried,
                       FILE *out)
{
    struct ks_time_left left = ks_forecast_all(f, view->jobs);
    bool range = left.best_spectra < left.spectra;
    char training[32], spectra[32], best[32] = "", all[32];

    if (left.training + left.spectra == 0)
        return;
    ks_print_duration(left.training, training);
    ks_print_duration(left.spectra, spectra);
    ks_print_duration(left.all, all);
    if (range)
        ks_print_duration(left.best_spectra, best);
    fprintf(out, "# time, one job after the other: about %s for trainings, %s%s%s for spectra\n",
            training, best, range ? " to " : "", spectra);
    if (range)
        fprintf(out, "#   less where tolerances are reached at once, more where only limits end "
                     "the search\n");
    if (view->jobs > 1)
        fprintf(out, "#   with %zu jobs at a time on as many processors: %s %s\n", view->jobs,
                range ? "at most" : "about", all);
    print_sources(f, tried, "#   ", out);
}

static void print_bytes(double bytes, const char *what, FILE *out)
{
    bool large = bytes >= 1e9;

    fprintf(out, "%.*f %s %s", large ? 1 : 0, bytes / (large ? 1e9 : 1e6), large ? "GB" : "MB",
            what);
}

ks_status ks_study_print_forecast(const struct ks_study_view *view, size_t observations,
                                  size_t actions, FILE *out)
{
    KS_CLEARED_BY(ks_forecast_clear) struct ks_forecast f = {.graph = NULL};
    struct ks_disk disk;
    size_t tried = 0;

    KS_TRY(ks_forecast_read(view->graph, view->dir, &f));
    KS_TRY(ks_study_disk(view->graph->study, observations, actions, &disk));
    KS_TRY(try_all(&f, &tried));
    print_work(view->graph, out);
    print_time(view, &f, tried, out);
    if (ks_study_trains(view->graph->study)) {
        fprintf(out, "# disk: at most ");
        print_bytes(disk.checkpoints, "for all checkpoints, ", out);
        print_bytes(disk.resume, "for each unfinished run to resume; spectra and plots are small\n",
                    out);
    }
    return KS_OK;
}

/* --- --status --- */

struct queue {
    size_t n, running;
    struct ks_slurm_task *task; /* [n]; owned */
};

static void queue_clear(struct queue *queue)
{
    free(queue->task);
}

/* Without an answer of squeue, the queue counts as empty. */
static void read_queue(const struct ks_study_view *view, struct queue *queue)
{
    if (ks_slurm_queue(view->dir, &queue->n, &queue->task) != KS_OK)
        ks_say("note: %s", ks_error_text());
    for (size_t i = 0; i < queue->n; i++)
        queue->running += strcmp(queue->task[i].state, "RUNNING") == 0;
}

/* ", train 12_3 RUNNING on node7": the run's first task in the queue. */
static void print_task(const struct queue *queue, size_t run)
{
    const struct ks_slurm_task *found = NULL;

    for (size_t i = 0; i < queue->n; i++)
        if (queue->task[i].run == run && (!found || queue->task[i].job < found->job))
            found = &queue->task[i];
    if (found)
        printf(", %s %lu_%zu %s%s%s", found->kind, found->job, run, found->state,
               *found->node ? " on " : "", found->node);
}

/* The number of existing checkpoints and spectra of all runs. */
struct sums {
    size_t runs, checkpoints, all, spectra; /* all: checkpoints that the runs have in the end */
};

static void print_run(const struct ks_study_view *view, const struct ks_forecast *f,
                      const struct queue *queue, size_t n, struct sums *sums)
{
    const struct ks_graph *graph = view->graph;
    const struct ks_study *s = graph->study;
    const struct ks_graph_job *run = &graph->job[n];
    const char *word = run->state.word;
    size_t trained = ks_graph_targets(graph, n, view->dir), analyzed = 0;
    double left = ks_forecast_run(f, n).all;
    char duration[32];

    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].run == n)
            analyzed += ks_graph_targets(graph, i, view->dir);
    if (run->elsewhere && run->n_targets == 0)
        return; /* this name lacks this seed */
    printf("%-40s  checkpoints %2zu/%zu  spectra %2zu/%zu  %s", run->folder + strlen("runs/"),
           trained, run->n_targets, analyzed, ks_study_spectra(s, n),
           run->elsewhere ? "trained elsewhere" : word);
    if (strcmp(word, "stopped") == 0)
        printf(" at step %zu%s", run->state.env_step,
               run->restart || ks_study_run_is_over(s, &run->state) ? "" : ", will go on");
    else if (strcmp(word, "running") == 0)
        printf(" (step %zu of %zu)", run->state.env_step, s->end);
    if (run->restart)
        printf(run->elsewhere ? ", a checkpoint is gone that is needed"
                              : ", has to start from the beginning (--retrain)");
    if (view->held)
        print_task(queue, n);
    if (left > 0) {
        ks_print_duration(left, duration);
        printf(", about %s left", duration);
    }
    putchar('\n');
    sums->runs++;
    sums->all += run->n_targets;
    sums->checkpoints += trained;
    sums->spectra += analyzed;
}

static void print_sums(const struct ks_study_view *view, const struct queue *queue,
                       const struct sums *sums)
{
    const struct ks_study *s = view->graph->study;

    printf("%zu runs: %zu of %zu checkpoints, %zu of %zu spectra", sums->runs, sums->checkpoints,
           sums->all, sums->spectra, view->graph->n_jobs - view->graph->n_runs);
    if (s->stop > 0)
        printf(", up to step %zu of %zu (stop)", s->end, s->steps);
    putchar('\n');
    if (queue->n > 0)
        printf("Slurm: %zu tasks are running, %zu are waiting\n", queue->running,
               queue->n - queue->running);
}

/* In Slurm as many tasks run at a time as run now. */
static void print_time_left(const struct ks_study_view *view, const struct ks_forecast *f,
                            size_t tried, const struct queue *queue)
{
    size_t here = queue->n > 0 || view->jobs == 0 ? 1 : view->jobs;
    size_t jobs = queue->running > 0 ? queue->running : here, undone = 0;
    struct ks_time_left left = ks_forecast_all(f, jobs);
    char duration[32];

    for (size_t i = 0; i < f->graph->n_jobs; i++)
        undone += !f->graph->job[i].done;
    if (undone > 0 && isnan(left.all))
        printf("time left: not known\n");
    else if (undone > 0) {
        ks_print_duration(left.all, duration);
        printf("time left: about %s with %zu job%s at a time\n", duration, jobs,
               jobs == 1 ? "" : "s");
        print_sources(f, tried, "  ", stdout);
    }
}

ks_status ks_study_print_status(const struct ks_study_view *view)
{
    struct sums sums = {0, 0, 0, 0};
    KS_CLEARED_BY(ks_forecast_clear) struct ks_forecast f = {.graph = NULL};
    KS_CLEARED_BY(queue_clear) struct queue queue = {0, 0, NULL};
    size_t tried = 0;

    read_queue(view, &queue);
    KS_TRY(ks_forecast_read(view->graph, view->dir, &f));
    if (view->jobs > 0 && try_all(&f, &tried) != KS_OK)
        ks_say("note: the time left is not known: %s", ks_error_text());
    for (size_t n = 0; n < view->graph->n_runs; n++)
        print_run(view, &f, &queue, n, &sums);
    print_sums(view, &queue, &sums);
    print_time_left(view, &f, tried, &queue);
    return KS_OK;
}
