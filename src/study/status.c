#include "study/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/progress.h"
#include "core/say.h"
#include "net/arch.h"
#include "study/calibrate.h"
#include "study/estimate.h"
#include "study/slurm.h"
#include "study/study_parse.h"
#include "train/architecture.h"

enum { SINGLE = 4 }; /* bytes of a number */

/* The descriptions of one architecture's networks. */
struct networks {
    struct KS(arch) *critic, *actor; /* owned */
    size_t encoder;                  /* parameters; 0: it has none */
};

static void networks_clear(struct networks *n)
{
    KS(arch_free)(n->critic);
    KS(arch_free)(n->actor);
}

static ks_status networks_read(const struct ks_study_architecture *a, size_t observations,
                               size_t actions, struct networks *n)
{
    char *critic = NULL, *actor = NULL;
    struct ks_widths widths;
    ks_status status;

    *n = (struct networks){NULL, NULL, 0};
    KS_GO(ks_architecture(a->argument, &a->settings, actions, &critic, &actor));
    KS_GO(ks_architecture_widths(a->argument, observations, actions, &widths));
    KS_GO(KS(arch_parse)(critic, a->name, widths.critic, &n->critic));
    KS_GO(KS(arch_parse)(actor, a->name, widths.actor, &n->actor));
    n->encoder = widths.encoder;
done:
    free(critic);
    free(actor);
    return status;
}

/* Critics, target critics, both of Adam's moments; actor; minibatches with two kinds of targets. */
static double checkpoint_bytes(const struct ks_settings *s, const struct networks *n)
{
    double critics = (double)(s->critics * n->critic->parameters);
    size_t rows = n->critic->joint ? 2 * s->batch : s->batch;
    double minibatch = (double)(rows * n->critic->in) + 2 * (double)(s->batch * n->critic->out);

    return SINGLE * (4 * critics + (double)n->actor->parameters +
                     (double)s->analysis_minibatches * minibatch);
}

/* Two resume points with all networks and moments, and the transitions of replay (two observations
 * and an action, which are `inputs` numbers; reward, mask). */
static double resume_bytes(const struct ks_study *study, const struct ks_settings *s,
                           const struct networks *n, size_t inputs)
{
    double critics = (double)(s->critics * n->critic->parameters);
    double steps = (double)study->end / (double)s->action_repeat;
    double networks = 4 * critics + 3 * (double)n->actor->parameters + 4 * (double)n->encoder;

    if (steps > (double)s->replay)
        steps = (double)s->replay;
    return SINGLE * (2 * networks + steps * (double)(inputs + 2));
}

ks_status ks_study_disk(const struct ks_study *study, size_t observations, size_t actions,
                        struct ks_disk *disk)
{
    *disk = (struct ks_disk){0, 0};
    for (size_t a = 0; a < study->n_architectures; a++) {
        const struct ks_settings *s = &study->architecture[a].settings;
        double files = (double)(study->n_seeds * study->n_checkpoints), resume;
        struct networks n;
        ks_status status = networks_read(&study->architecture[a], observations, actions, &n);

        if (status == KS_OK) {
            disk->checkpoints += files * checkpoint_bytes(s, &n);
            resume = resume_bytes(study, s, &n, 2 * observations + actions);
            disk->resume = resume > disk->resume ? resume : disk->resume;
        }
        networks_clear(&n);
        KS_TRY(status);
    }
    return KS_OK;
}

/* What --dry-run says: the remaining work, the time and the disk space for it. */

static const double GIGABYTE = 1e9, MEGABYTE = 1e6;

/* Whether one of this architecture's runs has work left whose time is not known. */
static bool is_unknown(const struct ks_forecast *e, size_t a)
{
    const struct ks_graph *graph = e->graph;

    for (size_t n = a; n < graph->n_runs; n += graph->study->n_architectures)
        if (isnan(ks_estimate_training(e, n) + ks_estimate_spectra(e, n)))
            return true;
    return false;
}

/* Measures the architectures whose time is not known; *measured is their number. */
static ks_status measure(struct ks_forecast *e, size_t *measured)
{
    const struct ks_study *s = e->graph->study;

    *measured = 0;
    for (size_t a = 0; a < s->n_architectures; a++)
        if (is_unknown(e, a)) {
            KS_TRY(ks_calibrate(s, a, &e->own[a]));
            ++*measured;
        }
    return KS_OK;
}

/* Counts the work, and names the trainings that start again. */
static ks_status print_work(const struct ks_study_view *view, const bool *done, FILE *out)
{
    const struct ks_graph *graph = view->graph;
    size_t trainings = 0, spectra = 0;

    for (size_t i = 0; i < graph->n_jobs; i++)
        if (!done[i])
            ++*(graph->job[i].trains ? &trainings : &spectra);
    fprintf(out, "# to do: %zu of %zu trainings, %zu of %zu spectra\n", trainings, graph->n_runs,
            spectra, graph->n_jobs - graph->n_runs);
    for (size_t n = 0; n < graph->n_runs; n++) {
        char *why;

        KS_TRY(ks_graph_restart(graph, n, view->dir, &why));
        if (why)
            fprintf(out, "# %s\n", why);
        free(why);
    }
    return KS_OK;
}

static void print_time(const struct ks_study_view *view, const struct ks_forecast *e,
                       size_t measured, FILE *out)
{
    struct ks_time_left left = ks_estimate_all(e, view->jobs);
    char training[32], spectra[32], least[32], all[32];

    if (left.training + left.spectra == 0)
        return;
    ks_print_duration(left.training, training);
    ks_print_duration(left.spectra, spectra);
    ks_print_duration(left.least_spectra, least);
    ks_print_duration(left.all, all);
    fprintf(out, "# time, one job after the other: about %s for trainings, %s%s%s for spectra\n",
            training, left.least_spectra < left.spectra ? least : "",
            left.least_spectra < left.spectra ? " to " : "", spectra);
    if (left.least_spectra < left.spectra)
        fprintf(out,
                "#   less where tolerances are reached at once, more where only limits end the "
                "search\n");
    if (view->jobs > 1)
        fprintf(out, "#   with %zu jobs at a time on as many processors: %s %s\n", view->jobs,
                left.least_spectra < left.spectra ? "at most" : "about", all);
    fprintf(out, "#   an estimate, from ");
    if (e->n_runs + e->n_spectra > 0)
        fprintf(out, "what is done in this folder (trainings: %zu, spectra: %zu)%s", e->n_runs,
                e->n_spectra, measured > 0 ? " and " : "\n");
    if (measured > 0)
        fprintf(out,
                "steps and products measured now for %zu architecture%s, in one thread;\n"
                "#   certificates, reading and writing come on top\n",
                measured, measured == 1 ? "" : "s");
}

static void print_bytes(double bytes, const char *what, FILE *out)
{
    bool large = bytes >= GIGABYTE;

    fprintf(out, "%.*f %s %s", large ? 1 : 0, bytes / (large ? GIGABYTE : MEGABYTE),
            large ? "GB" : "MB", what);
}

static void print_disk(const struct ks_disk *disk, FILE *out)
{
    fprintf(out, "# disk: at most ");
    print_bytes(disk->checkpoints, "for all checkpoints, ", out);
    print_bytes(disk->resume, "for each unfinished run to resume; spectra and plots are small\n",
                out);
}

ks_status ks_study_print_forecast(const struct ks_study_view *view, size_t observations,
                                  size_t actions, FILE *out)
{
    struct ks_forecast estimate;
    struct ks_disk disk;
    size_t measured = 0;
    ks_status status;

    status = ks_estimate_read(view->graph, view->dir, &estimate);
    if (status == KS_OK)
        status = ks_study_disk(view->graph->study, observations, actions, &disk);
    if (status == KS_OK)
        status = measure(&estimate, &measured);
    if (status == KS_OK)
        status = print_work(view, estimate.done, out);
    if (status == KS_OK) {
        print_time(view, &estimate, measured, out);
        print_disk(&disk, out);
    }
    ks_estimate_clear(&estimate);
    return status;
}

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

static ks_status print_run(const struct ks_study_view *view, const struct ks_forecast *estimate,
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

static bool is_complete(const struct ks_forecast *estimate)
{
    for (size_t i = 0; i < estimate->graph->n_jobs; i++)
        if (!estimate->done[i])
            return false;
    return true;
}

/* In Slurm as many tasks run at a time as run now. */
static void print_time_left(const struct ks_study_view *view, const struct ks_forecast *estimate,
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
    struct ks_forecast estimate;
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
