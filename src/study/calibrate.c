#include "study/calibrate.h"

#include <stdlib.h>
#include <time.h>

#include <omp.h>

#include "core/memory.h"
#include "core/rng.h"
#include "net/arch.h"
#include "operators/operator.h"
#include "pipeline/pipeline.h"
#include "study/study_parse.h"
#include "train/architecture.h"
#include "train/run.h"
#include "train/step.h"

enum { ACTING = 100 };           /* agent steps without updates */
static const double LEAST = 0.1; /* seconds for which steps and products are measured */

/* Seconds of processor time of this thread. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- steps of a run --- */

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
    size_t cycle = (s->agent.policy_delay + s->utd - 1) / s->utd;

    KS_TRY(ks_learner_start_episode(&run->learner));
    KS_TRY(measure_steps(run, ACTING, 0, &acting));
    KS_TRY(measure_steps(run, 1, 0, &warm));
    KS_TRY(measure_steps(run, cycle, LEAST, &training));
    paces->acting = paces->acting.amount > 0 ? paces->acting : acting;
    paces->training = paces->training.amount > 0 ? paces->training : training;
    return KS_OK;
}

/* --- products --- */

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

    KS_TRY(ks_architecture_widths(run->plan.text, ks_env_observations(env), ks_env_actions(env),
                                  &widths));
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

static ks_status time_products(const struct ks_operator *a, double *seconds)
{
    double *v = NULL, *out = NULL, start = 0;
    ks_status status = KS_OK;
    size_t n;

    KS_GO(fill(a->n, 1, &v));
    KS_GO(ks_alloc(a->n, sizeof *out, &out));
    KS_GO(ks_operator_prepare(a, SIZE_MAX / 2));
    KS_GO(ks_operator_apply(a, v, out)); /* touches fresh memory */
    start = now();
    for (n = 0; n == 0 || now() - start < LEAST; n++)
        KS_GO(ks_operator_apply(a, v, out));
    *seconds = (now() - start) / (double)n;
done:
    free(v);
    free(out);
    return status;
}

/* Seconds of a product with all critics on one minibatch. */
static ks_status measure_product(const struct ks_checkpoint *c, bool f32, double *seconds)
{
    const struct ks_problem problem = {
        .checkpoint = c, .minibatches = 1, .scale = 1, .critic = -1, .layer = -1};
    struct ks_operator *a = NULL;
    ks_status status;

    status = ks_hessian_new(&problem, f32, &a);
    if (status == KS_OK)
        status = time_products(a, seconds);
    ks_operator_free(a);
    return status;
}

static ks_status measure_spectra(const struct ks_study *study, const struct ks_run *run,
                                 struct ks_paces *paces)
{
    const struct ks_settings *settings = &run->plan.options->settings;
    struct ks_checkpoint *c = NULL;
    double product[2] = {0, 0}; /* in float64, in float32; 0: not measured */
    ks_status status = KS_OK;

    KS_GO(ks_alloc(1, sizeof *c, &c));
    KS_GO(make_checkpoint(run, c));
    for (size_t k = 0; k < study->n_analyses; k++) {
        struct ks_spectrum_options o;
        double part;

        if (paces->spectrum[k].amount > 0)
            continue;
        KS_GO(ks_study_read_analysis(&study->analysis[k], &o));
        if (product[o.products_f32] == 0)
            KS_GO(measure_product(c, o.products_f32, &product[o.products_f32]));
        part = product[o.products_f32] / (o.critic >= 0 ? (double)settings->critics : 1);
        paces->spectrum[k] = (struct ks_pace){
            part * ks_most_products(&o, ks_networks_parameters(&c->critic),
                                    settings->analysis_minibatches),
            1};
        paces->best[k] = part * ks_fewest_products(&o, ks_networks_parameters(&c->critic),
                                                   settings->analysis_minibatches);
    }
done:
    ks_checkpoint_free(c);
    return status;
}

ks_status ks_calibrate(const struct ks_study *study, size_t a, struct ks_paces *paces)
{
    struct ks_train_options options = {.env = study->env_argument,
                                       .architecture = study->architecture[a].argument,
                                       .out = ".",
                                       .steps = study->steps,
                                       .settings = study->architecture[a].settings,
                                       .quiet = true};
    struct ks_run *run = NULL;
    ks_status status;
    int threads = omp_get_max_threads();

    omp_set_num_threads(1); /* idle ones would wait at barriers with full load */
    options.settings.random_steps = ACTING;
    options.settings.replay = 2 * ACTING + options.settings.batch;
    options.settings.threads = 1;
    status = ks_run_new(&options, &run);
    if (status == KS_OK)
        status = measure_run(run, paces);
    if (status == KS_OK)
        status = measure_spectra(study, run, paces);
    ks_run_free(run);
    omp_set_num_threads(threads);
    return status;
}
