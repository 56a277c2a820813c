/* What a file says of an analysis beside the numbers: which operator of which checkpoint, the
 * versions and the machine that computed it, what tolerances reached and cost, how far the
 * optimizer's steps are stable. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <omp.h>

#include "config.h"
#include "core/blas.h"
#include "core/interval.h"
#include "core/memory.h"
#include "io/attribute.h"
#include "net/loss.h"
#include "statistics/statistics.h"

/* --- the analysis --- */

static ks_status add_statement(const struct ks_pipeline *p,
                               const struct ks_statistics_inputs *statistics)
{
    const struct ks_problem *problem = &p->problem;
    struct ks_spectrum *s = p->spectrum;
    const bool of_loss = problem->kind;
    const struct ks_statement_inputs inputs = {.kind = problem->kind,
                                               .critic = of_loss ? problem->critic : -1,
                                               .layer = of_loss ? problem->layer : -1,
                                               .arrays = problem->arrays,
                                               .products_f32 = p->options->products_f32,
                                               .minibatches = ks_problem_minibatches(problem),
                                               .normals = of_loss ? p->space->normals : 0,
                                               .statistics = statistics};
    KS_OWNED char *text = NULL;
    size_t first;

    KS_TRY(ks_statement(s, &inputs, &text, &first));
    ks_attribute_add_string(&s->attributes, "claim", text);
    text[first] = '\0';
    ks_attribute_add_string(&s->attributes, "claim_first_sentence", text);
    return s->attributes.status;
}

static void add_loss(const struct ks_pipeline *p, struct ks_attributes *list)
{
    const struct ks_problem *problem = &p->problem;

    ks_attribute_add_string(list, "checkpoint_sha256", p->digest);
    ks_attribute_add_string(list, "rewards", p->raw ? "raw" : "normalized");
    ks_attribute_add_string(list, "batchnorm",
                            problem->evaluation       ? "eval"
                            : problem->loss_rows_only ? "loss"
                                                      : "train");
    ks_attribute_add_number(list, "weight_decay", problem->weight_decay);
    ks_attribute_add_number(list, "scale", problem->scale);
    ks_attribute_add_integer(list, "batches", (int64_t)ks_problem_minibatches(problem));
    if (p->options->batch > 0)
        ks_attribute_add_integer(list, "batch", (int64_t)p->options->batch - 1);
}

static void add_product(const struct ks_pipeline *p, struct ks_attributes *list)
{
    ks_attribute_add_string(list, "operator", p->problem.kind->name);
    ks_attribute_add_string(list, "precision", p->options->products_f32 ? "f32" : "f64");
    ks_attribute_add_string(
        list, "products",
        ks_products_names[p->options->products_f32 ? p->options->products : KS_PRODUCTS_BLAS]);
    ks_attribute_add_integer(list, "dimension", (int64_t)p->selection->n);
    ks_attribute_add_integer(list, "critic", p->problem.critic);
    ks_attribute_add_integer(list, "layer", p->problem.layer);
    if (p->problem.arrays)
        ks_attribute_add_string(list, "array", p->problem.arrays);
    if (p->options->published)
        ks_attribute_add_string(list, "compat", "xqc");
}

static void add_machine(struct ks_attributes *list)
{
    ks_attribute_add_string(list, "analyzer_version", KS_BUILD);
    ks_attribute_add_string(list, "blas_version", ks_blas_version());
    ks_attribute_add_string(list, "blas_kernel", ks_blas_kernel());
    ks_attribute_add_integer(list, "threads", omp_get_max_threads());
}

static void add_run(const struct ks_pipeline *p, struct ks_attributes *list)
{
    ks_attribute_add_integer(list, "probe_seed", (int64_t)p->options->seed);
    if (p->options->count_above > 0)
        ks_attribute_add_number(list, "count_above", p->options->count_above);
    if (!p->options->exact)
        ks_attribute_add_string(list, "basis_precision", p->budget.basis_f32 ? "f32" : "f64");
}

void ks_attributes_vectors(const struct ks_pipeline *p, const double *loss,
                           struct ks_attributes *list)
{
    ks_attribute_add_string(list, "checkpoint", p->path);
    add_loss(p, list);
    if (loss)
        ks_attribute_add_number(list, "loss", *loss);
    else
        add_product(p, list);
    add_machine(list);
}

ks_status ks_attributes_spectrum(struct ks_pipeline *p, const struct ks_statistics_inputs *inputs)
{
    struct ks_attributes *list = &p->spectrum->attributes;
    char loss[64], options[KS_SPECTRUM_OPTIONS_TEXT];

    if (p->problem.kind)
        ks_attribute_add_string(list, "checkpoint", p->path);
    ks_attribute_add_integer(list, "order", (int64_t)p->spectrum->order);
    ks_attribute_add_integer(list, "probes", (int64_t)p->spectrum->probes);
    if (!p->problem.kind) { /* a matrix of the library's caller */
        ks_attribute_add_string(list, "operator", "caller's");
        ks_attribute_add_string(list, "precision", p->options->products_f32 ? "f32" : "f64");
        ks_attribute_add_integer(list, "dimension", (int64_t)p->budget.dimension);
        add_run(p, list);
        add_machine(list);
        return add_statement(p, inputs);
    }
    add_loss(p, list);
    ks_attribute_add_integer(list, "minibatch_rows", (int64_t)p->problem.checkpoint->loss_rows);
    add_product(p, list);
    add_run(p, list);
    ks_spectrum_options_print(p->options, options);
    ks_attribute_add_string(list, "options", options);
    add_machine(list);
    KS(loss_name)(&p->problem.checkpoint->critic.arch->loss, sizeof loss, loss);
    ks_attribute_add_string(list, "loss_kind", loss);
    KS(loss_options)(&p->problem.checkpoint->critic.arch->loss, sizeof loss, loss);
    if (*loss)
        ks_attribute_add_string(list, "loss_options", loss);
    ks_attribute_add_copies(list, &p->problem.checkpoint->attributes);
    return add_statement(p, inputs);
}

/* --- start vectors (/lanczos) and certificates (/certificate) --- */

/* "random complement gradient": one word per probe. */
static ks_status add_start(struct ks_spectrum *s)
{
    KS_OWNED char *words = NULL;
    char *next;
    size_t size = s->probes * sizeof "complement ";

    KS_TRY(ks_alloc(size, 1, &words));
    next = words;
    for (size_t i = 0; i < s->probes; i++)
        next += snprintf(next, size - (size_t)(next - words), "%s%s", i > 0 ? " " : "",
                         ks_spectrum_start(s, i));
    ks_attribute_add_string(&s->lanczos, "start", words);
    return KS_OK;
}

static void add_certificate(struct ks_spectrum *s, const char *vector,
                            const struct ks_certificate *y)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"quotient", y->quotient},  {"size", y->size},
                   {"residual", y->residual},  {"run_quotient", y->run_quotient},
                   {"run_size", y->run_size},  {"run_residual", y->run_residual},
                   {"product_error", y->error}};
    char name[KS_ATTRIBUTE_NAME];

    for (size_t i = 0; y->formed && i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(name, sizeof name, "%s_%s", vector, numbers[i].name);
        ks_attribute_add_number(&s->certificate, name, numbers[i].value);
    }
}

ks_status ks_attributes_probes(struct ks_pipeline *p)
{
    static const char *const vectors[KS_CERTIFICATES] = {"largest", "smallest", "flat"};
    const struct ks_certificates *c = ks_pipeline_has_certificates(p) ? &p->certificates : NULL;
    struct ks_spectrum *s = p->spectrum;

    if (!s->alpha)
        return KS_OK;
    KS_TRY(add_start(s));
    ks_attribute_add_list(&s->lanczos, "start_norm2", s->probes, s->start_norm2);
    if (c)
        ks_attribute_add_list(&s->lanczos, "null_weight", s->probes, c->null_weight);
    for (size_t i = 0; c && c->certified && i < KS_CERTIFICATES; i++)
        add_certificate(s, vectors[i], &c->vector[i]);
    return s->lanczos.status != KS_OK ? s->lanczos.status : s->certificate.status;
}

/* --- what tolerances wanted, reached and cost --- */

/* Products with all minibatches: of the test of null directions, of the early error, of
 * Lanczos steps, of certificates. */
static size_t count_products(const struct ks_pipeline *p)
{
    const struct ks_null_space *space = p->space;
    const struct ks_certificates *c = &p->certificates;
    size_t products = (space ? ks_null_products(space) : 0) + p->early_error.products;

    if (ks_pipeline_is_short(p)) /* no spectrum */
        return products + p->early_error.steps;
    for (size_t i = 0; i < p->spectrum->probes; i++)
        products += (size_t)p->spectrum->steps[i];
    if (!c->certified)
        return products;
    for (size_t i = 0; i < KS_CERTIFICATES; i++)
        products += c->vector[i].formed;
    return products + (c->basis != NULL) + (p->gradient != NULL);
}

size_t ks_products_spent(const struct ks_pipeline *p)
{
    const struct ks_certificates *c = &p->certificates;
    size_t spent = (count_products(p) + p->trace.rounds) * ks_problem_minibatches(&p->problem);

    for (size_t i = 0; c->certified && i <= KS_Y_SMALLEST; i++)
        spent += c->vector[i].formed ? c->held_out : 0;
    return spent;
}

/* "lambda_max: 0.0032, tolerance 0.01 reached, standard error over 8 minibatches 0.004, within the
 * tolerance". Where fewer probes were run than allowed, more were not expected to be enough. */
static void print_tolerance(const struct ks_pipeline *p, const struct ks_tolerance *t, FILE *out)
{
    const struct ks_spectrum_options *o = p->options;
    const size_t most = o->probes + o->complement;
    const double width = ks_tolerance_width(t, p->spectrum);
    const double error = ks_tolerance_data_error(t, p->spectrum);

    fprintf(out, "%s: ", ks_tolerance_name(t));
    if (isnan(width))
        fputs("not resolved", out);
    else
        fprintf(out, "%.2g", ks_round_up(width, 2));
    fprintf(out, ", tolerance %g ", t->most);
    if (width <= t->most)
        fputs("reached", out);
    else if (t->statistic == KS_STAT_TRACE && p->trace.rounds > 0)
        fprintf(out, "not reached: the limit is %zu vectors for each minibatch", p->trace.rounds);
    else
        fprintf(out, "not reached: the limit is %zu probe%s of %zu steps%s", most,
                most == 1 ? "" : "s", o->order,
                ks_spectrum_random(p->spectrum) + p->spectrum->complement == most
                    ? ""
                    : ", expected not to be enough");
    if (!isnan(error))
        fprintf(out, ", standard error over %zu minibatches %.2g, %s the tolerance",
                ks_problem_minibatches(&p->problem), ks_round_up(error, 2),
                error <= t->most ? "within" : "beyond");
}

/* "Widths of intervals: ... . Spent: ..." */
static ks_status add_sentence(const struct ks_pipeline *p, size_t spent)
{
    const struct ks_tolerances *t = &p->options->tolerances;
    const size_t probes = p->spectrum->probes;
    KS_OWNED char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; out && i < t->n; i++) {
        fputs(i > 0 ? "; " : "Widths of intervals: ", out);
        print_tolerance(p, &t->list[i], out);
    }
    if (out)
        fprintf(out, ". Spent: %zu probe%s of at most %zu steps, %zu products", probes,
                probes == 1 ? "" : "s", p->spectrum->order, count_products(p));
    if (out && p->trace.rounds > 0)
        fprintf(out, "; for the trace %zu vectors for each minibatch", p->trace.rounds);
    if (out && p->problem.kind)
        fprintf(out, "; with single minibatches %zu products in all", spent);
    KS_TRY(ks_stream_close(out));
    ks_attribute_add_string(&p->spectrum->attributes, "tolerance", text);
    return p->spectrum->attributes.status;
}

ks_status ks_attributes_tolerances(struct ks_pipeline *p)
{
    const size_t spent = p->spent + ks_products_spent(p);
    struct ks_spectrum *s = p->spectrum;

    for (size_t i = 0; i < p->options->tolerances.n; i++) {
        const struct ks_tolerance *t = &p->options->tolerances.list[i];

        ks_statistic_add(s, t->statistic, "_tolerance", t->most);
        ks_statistic_add(s, t->statistic, "_width", ks_tolerance_width(t, s));
    }
    if (p->problem.kind)
        ks_attribute_add_integer(&s->attributes, "minibatch_products", (int64_t)spent);
    return add_sentence(p, spent);
}

/* --- the stability of the optimizer --- */

double ks_stability_threshold(bool adam, double beta1, double learning_rate)
{
    return (adam ? 2 * (1 + beta1) / (1 - beta1) : 2) / learning_rate;
}

double ks_learning_rate(const struct ks_pipeline *p)
{
    double rate = p->options->learning_rate;

    if (isnan(rate))
        rate = ks_attribute_number(&p->checkpoint->attributes, "learning_rate");
    /* 0, at the end of a schedule, is valid: all is stable */
    return rate >= 0 && isfinite(rate) ? rate : NAN;
}

void ks_attributes_sharpness(struct ks_pipeline *p)
{
    const struct ks_checkpoint *c = p->checkpoint;
    const struct ks_operator_kind *kind = p->problem.kind;
    const bool adam = kind->moving;
    struct ks_attributes *list = &p->spectrum->attributes;
    const double rate = ks_learning_rate(p);

    if (!isnan(rate))
        ks_attribute_add_number(list, "sharpness_learning_rate", rate);
    if (adam) {
        ks_attribute_add_number(list, "adam_beta1", c->adam.beta1);
        ks_attribute_add_number(list, "adam_beta2", c->adam.beta2);
        ks_attribute_add_number(list, "adam_eps", c->adam.eps);
    }
    if (p->options->published || kind->partial)
        return;
    ks_statistic_add(p->spectrum, KS_STAT_SHARPNESS_RATIO, "",
                     ks_statistic_value(p->spectrum, KS_STAT_LAMBDA_MAX) /
                         ks_stability_threshold(adam, c->adam.beta1, rate));
}
