#include "study/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/progress.h"
#include "core/say.h"
#include "study/estimate.h"
#include "study/slurm.h"

struct queue {
    size_t n, running;
    struct ks_slurm_task *task; /* [n]; owned */
};

/* Without an answer of squeue, the queue counts as empty. */
static void read_queue(const struct ks_study_view *view, struct queue *queue)
{
    *queue = (struct queue){0, 0, NULL};
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

static void print_left(const char *before, double seconds)
{
    char duration[32];

    ks_print_duration(seconds, duration);
    printf("%sabout %s%s", before, duration, *before == ',' ? " left" : "");
}

struct sums {
    size_t checkpoints, spectra;
};

static ks_status print_run(const struct ks_study_view *view, const struct ks_estimate *estimate,
                           const struct queue *queue, size_t n, struct sums *sums)
{
    const struct ks_graph *graph = view->graph;
    const struct ks_study *s = graph->study;
    size_t trained = ks_graph_targets(graph, n, view->dir), analyzed = 0;
    double left = ks_estimate_training(estimate, n) + ks_estimate_spectra(estimate, n);
    struct ks_study_run_state state;
    char *why;

    KS_TRY(ks_study_run_state(view->dir, graph->job[n].folder, &state));
    KS_TRY(ks_graph_restart(graph, n, view->dir, &why));
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].run == n)
            analyzed += ks_graph_targets(graph, i, view->dir);
    printf("%-40s  checkpoints %2zu/%zu  spectra %2zu/%zu  %s",
           graph->job[n].folder + strlen("runs/"), trained, s->n_checkpoints, analyzed,
           ks_study_spectra(s, n % s->n_architectures), state.word);
    if (strcmp(state.word, "stopped") == 0)
        printf(" at step %zu%s", state.env_step,
               why || ks_study_run_is_over(s, &state) ? "" : ", will go on");
    else if (strcmp(state.word, "running") == 0)
        printf(" (step %zu of %zu)", state.env_step, s->end);
    printf("%s", why ? ", has to start from the beginning (--retrain)" : "");
    free(why);
    if (view->held)
        print_task(queue, n);
    if (left > 0)
        print_left(", ", left);
    putchar('\n');
    sums->checkpoints += trained;
    sums->spectra += analyzed;
    return KS_OK;
}

static void print_sums(const struct ks_study_view *view, const struct sums *sums)
{
    const struct ks_study *s = view->graph->study;
    size_t runs = view->graph->n_runs;

    printf("%zu runs: %zu of %zu checkpoints, %zu of %zu spectra", runs, sums->checkpoints,
           runs * s->n_checkpoints, sums->spectra, view->graph->n_jobs - runs);
    if (s->stop > 0)
        printf(", up to step %zu of %zu (stop)", s->end, s->steps);
    putchar('\n');
}

static bool is_complete(const struct ks_estimate *estimate)
{
    for (size_t i = 0; i < estimate->graph->n_jobs; i++)
        if (!estimate->done[i])
            return false;
    return true;
}

/* In Slurm as many tasks run at a time as run now. */
static void print_time_left(const struct ks_study_view *view, const struct ks_estimate *estimate,
                            const struct queue *queue)
{
    size_t jobs = queue->running > 0            ? queue->running
                  : queue->n > 0 || !view->jobs ? 1
                                                : view->jobs;
    struct ks_time_left left = ks_estimate_all(estimate, jobs);

    if (queue->n > 0)
        printf("Slurm: %zu tasks are running, %zu are waiting\n", queue->running,
               queue->n - queue->running);
    if (is_complete(estimate))
        return;
    if (isnan(left.all))
        printf("time left: not known, as no %s of this folder has recorded its pace\n",
               isnan(left.training) ? "training" : "analysis");
    else {
        print_left("time left: ", left.all);
        printf(" with %zu job%s at a time, an estimate from what is done in this folder "
               "(trainings: %zu, spectra: %zu)\n",
               jobs, jobs == 1 ? "" : "s", estimate->n_runs, estimate->n_spectra);
    }
}

ks_status ks_study_print_status(const struct ks_study_view *view)
{
    struct sums sums = {0, 0};
    struct ks_estimate estimate;
    struct queue queue;
    ks_status status;

    read_queue(view, &queue);
    status = ks_estimate_read(view->graph, view->dir, &estimate);
    for (size_t n = 0; status == KS_OK && n < view->graph->n_runs; n++)
        status = print_run(view, &estimate, &queue, n, &sums);
    if (status == KS_OK) {
        print_sums(view, &sums);
        print_time_left(view, &estimate, &queue);
    }
    ks_estimate_clear(&estimate);
    free(queue.task);
    return status;
}
