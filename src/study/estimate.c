#define _DEFAULT_SOURCE     /* timegm */
#define _XOPEN_SOURCE   700 /* strptime */
#include "study/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <omp.h>

#include "core/memory.h"
#include "core/progress.h"
#include "core/rng.h"
#include "io/csv.h"
#include "io/file.h"
#include "io/h5.h"
#include "net/arch.h"
#include "operators/operator.h"
#include "pipeline/pipeline.h"
#include "study/study_parse.h"
#include "train/architecture.h"
#include "train/learner.h"
#include "train/run.h"

/* Environment steps of an episode; at most, for tasks with terminal states. */
enum { EPISODE = 1000 };

static void add(struct ks_pace *sum, struct ks_pace more)
{
    sum->seconds += more.seconds;
    sum->amount += more.amount;
}

/* What a run's progress.csv says: a row's rate holds for the steps since the row before it; the
 * first update follows a row. The rows before a damaged one count. */
static void add_rows(const struct ks_csv *csv, struct ks_paces *paces)
{
    double before = 0;

    for (size_t row = 0; row < csv->rows; row++) {
        const double step = ks_csv_value(csv, row, "env_step");
        const double update = ks_csv_value(csv, row, "update");
        const double rate = ks_csv_value(csv, row, "steps_per_second");

        if (isnan(step) || isnan(update))
            return;
        if (step > before && rate > 0)
            add(&paces->of[update > 0 ? KS_PACE_TRAINING : KS_PACE_ACTING],
                (struct ks_pace){(step - before) / rate, step - before});
        before = step;
    }
}

/* A run without a log was made elsewhere and brought into the folder: its pace is another
 * machine's. */
static ks_status read_run(struct ks_forecast *f, size_t run, const char *dir)
{
    struct ks_paces *paces = &f->own[run % f->graph->study->n_architectures];
    const struct ks_pace *training = &paces->of[KS_PACE_TRAINING];
    double before = training->amount;
    KS_OWNED_BY(ks_csv_free) struct ks_csv *csv = NULL;
    char path[KS_PATH];

    KS_TRY(ks_path_print(path, "%s/%s/progress.csv", dir, f->graph->job[run].folder));
    if (ks_graph_has(dir, f->graph->job[run].log) && ks_path_exists(path) &&
        ks_csv_read(path, true, &csv) == KS_OK)
        add_rows(csv, paces);
    f->n_runs += training->amount > before;
    return KS_OK;
}

/* The time in the last line of a log that begins with `word`; -1: there is none. */
static double find_time(const char *text, const char *word)
{
    double found = -1;

    for (const char *line = text; line; line = strchr(line, '\n')) {
        struct tm t = {0};

        line += *line == '\n';
        if (strncmp(line, word, strlen(word)) == 0 &&
            strptime(line + strlen(word), "%Y-%m-%dT%H:%M:%S", &t))
            found = (double)timegm(&t);
    }
    return found;
}

/* What the log of an analysis says. */
static ks_status read_log(struct ks_forecast *f, const struct ks_graph_job *job, const char *dir)
{
    struct ks_paces *paces = &f->own[job->run % f->graph->study->n_architectures];
    KS_OWNED char *text = NULL;
    char path[KS_PATH];
    size_t size;

    KS_TRY(ks_path_print(path, "%s/%s", dir, job->log));
    if (ks_path_exists(path) && ks_text_read(path, &text, &size) == KS_OK) {
        double started = find_time(text, KS_GRAPH_STARTED), ended = find_time(text, KS_GRAPH_ENDED);

        if (started > 0 && ended >= started) {
            add(&paces->of[KS_PACE_SPECTRUM + job->analysis], (struct ks_pace){ended - started, 1});
            f->n_spectra++;
        }
    }
    return KS_OK;
}

/* Of a kind of work: what records say that trials say, too. */
static double find_ratio(const struct ks_forecast *f, size_t kind)
{
    double recorded = 0, tried = 0;

    for (size_t a = 0; a < f->graph->study->n_architectures; a++) {
        const struct ks_pace own = f->own[a].of[kind], trial = f->trial[a].of[kind];

        if (own.amount > 0 && trial.amount > 0) {
            recorded += own.seconds;
            tried += own.amount * trial.seconds / trial.amount;
        }
    }
    return recorded > 0 && tried > 0 ? recorded / tried : 1;
}

ks_status ks_forecast_update(struct ks_forecast *f, const char *dir)
{
    const struct ks_graph *graph = f->graph;
    const size_t n = graph->study->n_architectures;

    memset(f->own, 0, n * sizeof *f->own);
    f->all = (struct ks_paces){.best = {0}};
    f->n_runs = f->n_spectra = 0;
    for (size_t i = 0; i < graph->n_jobs; i++)
        if (graph->job[i].trains)
            KS_TRY(read_run(f, i, dir));
        else if (ks_graph_targets(graph, i, dir) == graph->job[i].n_targets)
            KS_TRY(read_log(f, &graph->job[i], dir));
    for (size_t kind = 0; kind < KS_PACES; kind++) {
        for (size_t a = 0; a < n; a++)
            add(&f->all.of[kind], f->own[a].of[kind]);
        f->ratio[kind] = find_ratio(f, kind);
    }
    return KS_OK;
}

ks_status ks_forecast_read(struct ks_graph *graph, const char *dir, struct ks_forecast *f)
{
    *f = (struct ks_forecast){.graph = graph};
    KS_TRY(ks_alloc(graph->study->n_architectures, sizeof *f->own, &f->own));
    KS_TRY(ks_alloc(graph->study->n_architectures, sizeof *f->trial, &f->trial));
    KS_TRY(ks_graph_look(graph, dir));
    return ks_forecast_update(f, dir);
}

void ks_forecast_clear(struct ks_forecast *f)
{
    free(f->own);
    free(f->trial);
    *f = (struct ks_forecast){.graph = NULL};
}

/* Seconds for an amount of work of this kind; NaN: not known. */
static double seconds_for(const struct ks_forecast *f, size_t architecture, size_t kind,
                          double amount)
{
    const struct ks_pace own = f->own[architecture].of[kind],
                         trial = f->trial[architecture].of[kind], all = f->all.of[kind];

    return amount == 0        ? 0
           : own.amount > 0   ? amount * own.seconds / own.amount
           : trial.amount > 0 ? amount * trial.seconds / trial.amount * f->ratio[kind]
           : all.amount > 0   ? amount * all.seconds / all.amount
                              : NAN;
}

/* What is left of the seconds of a job. */
static double seconds_left(const struct ks_graph_job *job, double seconds)
{
    const double left = seconds - (job->runs ? ks_seconds() - job->since : 0);

    return left < 0 ? 0 : left;
}

static double estimate_training(const struct ks_forecast *f, size_t run)
{
    const struct ks_study *s = f->graph->study;
    const size_t a = run % s->n_architectures;
    const struct ks_settings *settings = &s->architecture[a].settings;
    size_t first = settings->random_steps * settings->action_repeat, episodes = 0;
    size_t step = f->graph->job[run].restart ? 0 : f->graph->job[run].state.env_step;

    step = step < s->end ? step : s->end;
    first = first < s->end ? first : s->end;
    for (size_t i = 0; i < s->n_evaluations; i++)
        if (step == 0 || s->evaluation[i] > step)
            episodes += settings->eval_episodes;
    return seconds_for(f, a, KS_PACE_ACTING,
                       (double)(episodes * EPISODE + (step < first ? first - step : 0))) +
           seconds_for(f, a, KS_PACE_TRAINING, (double)(s->end - (step < first ? first : step)));
}

struct ks_time_left ks_forecast_run(const struct ks_forecast *f, size_t run)
{
    const struct ks_graph *graph = f->graph;
    const size_t a = run % graph->study->n_architectures;
    const struct ks_paces *own = &f->own[a];
    const struct ks_graph_job *training = &graph->job[run];
    struct ks_time_left left = {0, 0, 0, 0};

    if (!training->done)
        left.training = seconds_left(training, estimate_training(f, run));
    for (size_t i = graph->n_runs; i < graph->n_jobs; i++)
        if (graph->job[i].run == run && !graph->job[i].done) {
            size_t k = graph->job[i].analysis;
            double best = f->trial[a].best[k];
            double spectrum = seconds_left(&graph->job[i],
                                           seconds_for(f, a, KS_PACE_SPECTRUM + k, 1));

            left.spectra += spectrum;
            left.best_spectra += best > 0 && own->of[KS_PACE_SPECTRUM + k].amount == 0 ? best
                                                                                       : spectrum;
        }
    left.all = left.training + left.spectra;
    return left;
}

struct ks_time_left ks_forecast_all(const struct ks_forecast *f, size_t jobs)
{
    struct ks_time_left sum = {0, 0, 0, 0};
    double longest = 0;

    for (size_t n = 0; n < f->graph->n_runs; n++) {
        struct ks_time_left left = ks_forecast_run(f, n);

        sum.training += left.training;
        sum.spectra += left.spectra;
        sum.best_spectra += left.best_spectra;
        longest = left.training > longest ? left.training : longest;
    }
    sum.all = (sum.training + sum.spectra) / (double)(jobs > 0 ? jobs : 1);
    if (sum.all < longest)
        sum.all = longest;
    return sum;
}

/* --- measuring, where nothing is recorded: environment steps with and without updates, by the
 * training engine itself, and products of a Hessian of this size. Nothing is written. --- */

enum { ACTING = 100 };           /* agent steps without updates */
static const double LEAST = 0.1; /* seconds for which steps and products are measured */

/* Seconds of processor time: of one thread, and of OpenGL's, if frames are drawn. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ks_status measure_steps(struct ks_run *run, size_t least, double seconds,
                               struct ks_pace *pace)
{
    struct ks_metrics metrics = {.path = NULL};
    double start = now();

    for (size_t i = 0; i < least || now() - start < seconds; i++) {
        KS_TRY(ks_learner_step(&run->learner, &metrics));
        pace->amount += (double)run->plan.options->settings.action_repeat;
    }
    pace->seconds += now() - start;
    return KS_OK;
}

/* The first update touches fresh memory and does not count. */
static ks_status measure_run(struct ks_run *run, struct ks_paces *paces)
{
    const struct ks_settings *s = &run->plan.options->settings;
    struct ks_pace acting = {0, 0}, warm = {0, 0}, training = {0, 0};
    const size_t cycle = (s->agent.policy_delay + s->utd - 1) / s->utd * s->update_every;

    KS_TRY(ks_learner_start_episode(&run->learner));
    KS_TRY(measure_steps(run, s->random_steps, 0, &acting));
    KS_TRY(measure_steps(run, 1, 0, &warm));
    KS_TRY(measure_steps(run, cycle, LEAST, &training));
    paces->of[KS_PACE_ACTING] = acting;
    paces->of[KS_PACE_TRAINING] = training;
    return KS_OK;
}

static ks_status fill(size_t n, double scale, double **values)
{
    struct ks_rng rng = ks_rng_start(0, n);

    KS_TRY(ks_alloc(n, sizeof **values, values));
    for (size_t i = 0; i < n; i++)
        (*values)[i] = scale * ks_rng_normal(&rng);
    return KS_OK;
}

/* One minibatch and random parameters: their values do not matter for the time. */
static ks_status make_checkpoint(const struct ks_run *run, struct ks_checkpoint *c)
{
    const struct ks_settings *s = &run->plan.options->settings;
    const struct ks_env *env = run->learner.player.env;
    struct ks_widths widths;
    size_t k;

    KS_TRY(ks_architecture_widths(run->plan.text, ks_env_seen(env), ks_env_actions(env), &widths));
    KS_TRY(ks_copy_string(run->plan.text[KS_CRITIC_TEXT], &c->critic.text));
    KS_TRY(KS(arch_parse)(c->critic.text, run->plan.name, widths.critic, &c->critic.arch));
    c->critic.ensemble = s->critics;
    c->minibatches = 1;
    c->loss_rows = s->batch;
    c->rows = c->critic.arch->joint ? 2 * s->batch : s->batch;
    k = c->critic.arch->out;
    KS_TRY(fill(ks_networks_parameters(&c->critic), 0.05, &c->critic.w));
    KS_TRY(fill(c->rows * c->critic.arch->in, 1, &c->input));
    KS_TRY(ks_alloc(c->loss_rows * k, sizeof *c->target, &c->target));
    for (size_t i = 0; i < c->loss_rows; i++)
        c->target[i * k + i % k] = 1;
    return KS_OK;
}

/* Seconds of a product with all critics on one minibatch. */
static ks_status measure_product(const struct ks_checkpoint *c, const struct ks_spectrum_options *o,
                                 double *seconds)
{
    const struct ks_problem problem = {.checkpoint = c,
                                       .products = o->products,
                                       .minibatches = 1,
                                       .scale = 1,
                                       .critic = -1,
                                       .layer = -1};
    KS_OWNED_BY(ks_operator_free) struct ks_operator *a = NULL;
    KS_OWNED double *v = NULL, *out = NULL;
    double start = 0;
    size_t n;

    KS_TRY(ks_hessian_new(&problem, o->products_f32, &a));
    KS_TRY(fill(a->n, 1, &v));
    KS_TRY(ks_alloc(a->n, sizeof *out, &out));
    KS_TRY(ks_operator_prepare(a, SIZE_MAX / 2));
    KS_TRY(ks_operator_apply(a, v, out)); /* touches fresh memory */
    start = now();
    for (n = 0; n == 0 || now() - start < LEAST; n++)
        KS_TRY(ks_operator_apply(a, v, out));
    *seconds = (now() - start) / (double)n;
    return KS_OK;
}

/* Of a checkpoint; for analyses with so many minibatches. */
static ks_status measure_spectra(const struct ks_study *study, const struct ks_checkpoint *c,
                                 size_t minibatches, struct ks_paces *paces)
{
    double product[3] = {0}; /* in float64; in float32, by BLAS or not; 0: not measured */

    for (size_t k = 0; k < study->n_analyses; k++) {
        const struct ks_spectrum_options *o = &study->analysis[k].options;
        double *measured = &product[!o->products_f32 ? 0 : o->products == KS_PRODUCTS_BLAS ? 1 : 2];
        double pace;

        if (*measured == 0)
            KS_TRY(measure_product(c, o, measured));
        pace = *measured / (o->critic >= 0 ? (double)c->critic.ensemble : 1);
        paces->of[KS_PACE_SPECTRUM + k] = (struct ks_pace){
            pace * ks_most_products(o, ks_networks_parameters(&c->critic), minibatches), 1};
        paces->best[k] = pace *
                         ks_fewest_products(o, ks_networks_parameters(&c->critic), minibatches);
    }
    return KS_OK;
}

/* Of runs from elsewhere, by their first checkpoint. */
static ks_status measure_elsewhere(const struct ks_graph *graph, size_t a, struct ks_paces *paces)
{
    const struct ks_study *s = graph->study;
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;
    char path[KS_PATH] = "";

    for (size_t i = graph->n_runs; i < graph->n_jobs && !*path; i++)
        if (graph->job[i].run % s->n_architectures == a &&
            ks_graph_has(s->folder, graph->job[i].needs))
            KS_TRY(ks_path_print(path, "%s/%s", s->folder, graph->job[i].needs));
    if (!*path)
        return KS_OK;
    KS_TRY(ks_h5_open(path, "kappascope-checkpoint", &h5));
    KS_TRY(ks_checkpoint_read_loss(h5, &c));
    return measure_spectra(s, c, c->minibatches, paces);
}

static void set_threads(const int *threads)
{
    omp_set_num_threads(*threads);
}

/* Sets the paces of architecture number `a`. They are seconds of one processor's time, so other
 * processes do not disturb them, with one thread. */
static ks_status calibrate(const struct ks_study *study, size_t a, struct ks_paces *paces)
{
    struct ks_train_options options = {.env = study->env_argument,
                                       .architecture = study->architecture[a].argument,
                                       .out = ".",
                                       .steps = study->steps,
                                       .settings = study->architecture[a].settings,
                                       .quiet = true};
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;
    KS_OWNED_BY(ks_run_free) struct ks_run *run = NULL;
    KS_CLEARED_BY(set_threads) int threads = omp_get_max_threads(); /* again at the end */

    omp_set_num_threads(1); /* idle ones would wait at barriers with full load */
    options.settings.random_steps = ACTING + options.settings.n_step;
    options.settings.replay = 4 * (ACTING + options.settings.n_step +
                                   options.settings.update_every) +
                              options.settings.batch;
    options.settings.threads = 1;
    KS_TRY(ks_run_new(&options, &run));
    KS_TRY(measure_run(run, paces));
    KS_TRY(ks_alloc(1, sizeof *c, &c));
    KS_TRY(make_checkpoint(run, c));
    return measure_spectra(study, c, options.settings.analysis_minibatches, paces);
}

ks_status ks_forecast_try(struct ks_forecast *f, bool *made)
{
    const struct ks_study *s = f->graph->study;

    *made = false;
    for (size_t n = 0; n < f->graph->n_runs && !*made; n++) {
        const size_t a = n % s->n_architectures;

        if (f->trial[a].tried || !isnan(ks_forecast_run(f, n).all))
            continue;
        f->trial[a].tried = true;
        KS_TRY(s->architecture[a].elsewhere ? measure_elsewhere(f->graph, a, &f->trial[a])
                                            : calibrate(s, a, &f->trial[a]));
        *made = true;
    }
    return KS_OK;
}
