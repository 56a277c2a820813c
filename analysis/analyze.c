/* kappascope-analyze: from a checkpoint to the spectrum of its loss's curvature. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ks/analysis.h"
#include "ks/density.h"
#include "ks/memory.h"
#include "ks/program.h"
#include "ks/report.h"
#include "ks/slq.h"
#include "ks/summary.h"

/* One checkpoint's work; job_clear frees what it owns. */
struct job {
    const char *path;   /* of the checkpoint */
    const char *output; /* of the spectrum   */
    bool quiet;
    struct ks_checkpoint *checkpoint;
    struct ks_problem problem;
    struct ks_operator *a;
    struct ks_spectrum *spectrum;
    struct ks_watch watch;
};

static void job_clear(struct job *job)
{
    ks_watch_end(&job->watch);
    ks_spectrum_free(job->spectrum);
    ks_operator_free(job->a);
    ks_checkpoint_free(job->checkpoint);
}

/* Vectors that stay in memory beside the operator: the basis, or the dense matrix. */
static size_t held_bytes(const struct ks_analysis *o, size_t n)
{
    double rows = o->exact ? (double)n : fmin((double)o->order, (double)n) + 1;
    double bytes = rows * (double)n * sizeof(double);

    return bytes < (double)SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

static ks_status pose_problem(const struct ks_analysis *o, struct job *job)
{
    const struct ks_checkpoint *c = job->checkpoint;
    size_t n = c->critic.ensemble * c->critic.arch->parameters;
    size_t held = o->apply || o->gradient ? 0 : held_bytes(o, n), room = ks_analysis_free_memory();

    if (o->batches > c->minibatches)
        return ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", job->path,
                       c->minibatches, o->batches);
    if (o->exact && n > KS_EXACT_LIMIT)
        return ks_fail(KS_USAGE,
                       "%s: --exact: expected at most %d parameters, found %zu; without it "
                       "the spectrum is estimated",
                       job->path, KS_EXACT_LIMIT, n);
    if (room > 0 && held > room)
        return ks_fail(KS_MEMORY,
                       "%s: %zu Lanczos vectors of %zu numbers need %.1f GB, %.1f GB are "
                       "free; choose a smaller --order",
                       job->path, o->order + 1, n, 1e-9 * (double)held, 1e-9 * (double)room);
    job->problem = (struct ks_problem){.checkpoint = c,
                                       .minibatches = o->batches ? o->batches : c->minibatches,
                                       .evaluation = o->evaluation,
                                       .weight_decay = o->weight_decay,
                                       .scale = o->scale,
                                       .memory = o->memory > held ? o->memory - held : 0};
    if (o->compat) /* the published product is divided by N twice */
        job->problem.scale /= (double)job->problem.minibatches;
    job->watch = (struct ks_watch){.checkpoint = job->path,
                                   .dimension = n,
                                   .products = o->exact ? n : o->order * o->probes,
                                   .order = o->order,
                                   .held = held,
                                   .kept = job->problem.memory,
                                   .quiet = job->quiet};
    return KS_OK;
}

static ks_status new_operator(const struct ks_analysis *o, struct job *job)
{
    return (o->single ? o->kind->new_f32 : o->kind->new_f64)(&job->problem, &job->a);
}

static void say_breakdowns(const struct job *job)
{
    const struct ks_spectrum *s = job->spectrum;

    for (size_t i = 0; !job->quiet && i < s->probes; i++)
        if ((size_t)s->steps[i] < s->order)
            fprintf(stderr, "%s: probe %zu: the Krylov space ends after %lld of %zu steps\n",
                    job->path, i, (long long)s->steps[i], s->order);
}

static ks_status find_spectrum(const struct ks_analysis *o, struct job *job)
{
    struct ks_slq slq = {.order = o->order,
                         .probes = o->probes,
                         .seed = o->seed,
                         .watch = ks_watch_step,
                         .context = &job->watch};

    KS_TRY(ks_alloc(1, sizeof *job->spectrum, &job->spectrum));
    KS_TRY(ks_watch_start(&job->watch));
    if (o->exact)
        return ks_exact(job->a, ks_watch_product, &job->watch, job->spectrum);
    KS_TRY(ks_slq(job->a, &slq, job->spectrum));
    ks_watch_end(&job->watch);
    say_breakdowns(job);
    if (o->compat)
        ks_summary_unweight(job->spectrum);
    return KS_OK;
}

static ks_status analyze(const struct ks_analysis *o, struct job *job, struct ks_report *report)
{
    KS_TRY(ks_output_check(job->output, job->path));
    KS_TRY(ks_checkpoint_read(job->path, &job->checkpoint));
    KS_TRY(pose_problem(o, job));
    KS_TRY(new_operator(o, job));
    KS_TRY(find_spectrum(o, job));
    KS_TRY(ks_summary(job->spectrum, job->a->n, o->compat));
    KS_TRY(ks_density(job->spectrum));
    KS_TRY(ks_describe(o, &job->problem, job->path, job->a->n, job->spectrum));
    KS_TRY(ks_spectrum_write(job->output, job->spectrum));
    return ks_report_add(report, job->path, job->spectrum);
}

/* --apply and --gradient: vectors in place of a spectrum. */
static ks_status write_vectors(const struct ks_analysis *o, struct job *job)
{
    const char *const outputs[] = {o->output, o->gradient};

    for (size_t i = 0; i < 2; i++)
        if (outputs[i]) {
            KS_TRY(ks_output_check(outputs[i], job->path));
            KS_TRY(ks_output_check(outputs[i], o->apply));
        }
    if (o->output && o->gradient && strcmp(o->output, o->gradient) == 0)
        return ks_fail(KS_USAGE, "--output and --gradient: expected two files, found one, %s",
                       o->output);
    KS_TRY(ks_checkpoint_read(job->path, &job->checkpoint));
    KS_TRY(pose_problem(o, job));
    if (o->gradient)
        KS_TRY(ks_gradient_file(&job->problem, o->gradient));
    if (!o->apply)
        return KS_OK;
    KS_TRY(new_operator(o, job));
    return ks_apply_file(job->a, o->apply, o->output, &job->watch);
}

/* A message of a part that does not know the file gets its name; one about another file has that.
 */
static ks_status name_culprit(const struct ks_analysis *o, const char *path, ks_status status)
{
    const char *const files[] = {path, o->apply, o->output, o->gradient};
    char text[1024];

    snprintf(text, sizeof text, "%s", ks_error_text());
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] && strstr(text, files[i]))
            return status;
    return ks_fail(status, "%s: %s", path, text);
}

static const char *version(void)
{
    static char text[64];

    snprintf(text, sizeof text, "jansson %s", JANSSON_VERSION);
    return text;
}

static const struct ks_program program = {
    .name = "kappascope-analyze",
    .synopsis = "[OPTION...] CHECKPOINT...",
    .summary = "measures the curvature of a critic's loss",
    .details = "DESCRIPTION\n"
               "  Writes NAME.spectrum.h5 for each NAME.h5 and prints a summary. With --apply or "
               "--gradient it\n"
               "  writes vectors of one checkpoint instead.\n\n"
               "EXAMPLES\n"
               "  kappascope analyze step_000050000.h5\n"
               "  kappascope analyze --order 150 --probes 3 --json -o spectra run/*.h5\n"
               "  kappascope analyze --apply v.h5 --output hv.h5 step_000050000.h5\n",
    .version = version,
    .options = ks_analysis_options,
};

/* All checkpoints; one that fails has its line and the others go on. The worst exit status. */
static int analyze_all(const struct ks_analysis *o, const struct ks_arguments *arguments,
                       char *const *outputs, struct ks_report *report)
{
    int worst = 0;

    for (size_t i = 0; i < arguments->n_rest; i++) {
        struct job job = {.path = arguments->rest[i],
                          .quiet = arguments->quiet,
                          .output = outputs ? outputs[i] : NULL};
        ks_status status = outputs ? analyze(o, &job, report) : write_vectors(o, &job);

        job_clear(&job);
        if (status == KS_OK)
            continue;
        status = name_culprit(o, arguments->rest[i], status);
        fprintf(stderr, "%s: %s\n", program.name, ks_error_text());
        if (ks_exit_status(status) > worst)
            worst = ks_exit_status(status);
    }
    return worst;
}

int main(int argc, char **argv)
{
    ks_status status = KS_OK;
    struct ks_arguments arguments;
    struct ks_analysis o;
    struct ks_report report = {.out = stdout};
    char **outputs = NULL;
    int worst = 0, end;

    KS_GO(ks_program_start(&program, argc, argv, &arguments));
    if (arguments.done)
        goto done;
    KS_GO(ks_analysis_read(&o));
    if (arguments.n_rest == 0 || ((o.apply || o.gradient) && arguments.n_rest > 1)) {
        status = ks_fail(KS_USAGE, "expected %s, found %zu (see --help)",
                         arguments.n_rest == 0 ? "a checkpoint"
                                               : "one checkpoint with --apply and --gradient",
                         arguments.n_rest);
        goto done;
    }
    report.form = o.json ? KS_REPORT_JSON : o.csv ? KS_REPORT_CSV : KS_REPORT_TABLE;
    for (size_t i = 0; i < arguments.n_rest; i++)
        if ((int)strlen(arguments.rest[i]) > report.width)
            report.width = (int)strlen(arguments.rest[i]);
    if (!o.apply && !o.gradient)
        KS_GO(ks_outputs_new(arguments.n_rest, arguments.rest, o.folder, &outputs));
    worst = analyze_all(&o, &arguments, outputs, &report);
    if (outputs)
        KS_GO(ks_report_end(&report));
done:
    ks_outputs_free(arguments.n_rest, outputs);
    end = ks_program_end(&program, &arguments, status);
    return end > worst ? end : worst;
}
