/* The analyses of an audit, by the functions behind kappascope-analyze. What they write is kept in
 * a folder, so that a second audit of the same checkpoint reads it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/plan.h"
#include "config.h"
#include "core/memory.h"
#include "core/progress.h"
#include "inspect/inspect.h"
#include "io/file.h"
#include "io/h5.h"
#include "operators/operator.h"
#include "pipeline/pipeline.h"
#include "report/study_report.h"

/* --- what the checkpoint's file says --- */

static int find_moments(const struct ks_checkpoint *c)
{
    if (!c->adam_v)
        return KS_MOMENTS_ABSENT;
    for (size_t i = 0; i < ks_networks_parameters(&c->critic); i++)
        if (c->adam_v[i] > 0)
            return KS_MOMENTS_PRESENT;
    return KS_MOMENTS_ZERO;
}

static ks_status count_dead(const struct ks_checkpoint *c, struct ks_audit_summary *f)
{
    KS_CLEARED_BY(ks_dead_units_clear) struct ks_dead_units dead = {.n = 0};

    KS_TRY(ks_dead_units_count(c, &dead));
    f->tried = dead.minibatches;
    KS_TRY(ks_alloc(dead.n, sizeof *f->units, &f->units));
    for (size_t i = 0; i < dead.n; i++) {
        const struct KS(layer) *l = dead.layer[i].layer;
        struct ks_audit_units *u = &f->units[f->n_units++];

        u->number = l->number;
        u->units = c->critic.ensemble * l->out;
        snprintf(u->kind, sizeof u->kind, "%s", l->kind->name);
        for (size_t e = 0; e < c->critic.ensemble; e++)
            u->dead += dead.layer[i].dead[e];
    }
    return KS_OK;
}

static unsigned find_parts(const struct ks_arch_f64 *arch)
{
    unsigned parts = 0;

    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];

        if (l->kind->scale_free)
            parts |= l->kind->couples_rows ? KS_PART_BATCH_NORM : KS_PART_LAYER_NORM;
        if (l->sphere_rows > 0 || l->normed)
            parts |= KS_PART_WEIGHT_NORM;
    }
    return parts;
}

static ks_status take_summary(const struct ks_checkpoint *c, struct ks_audit_summary *f)
{
    const struct ks_attribute *step = ks_attribute_find(&c->attributes, "env_step");
    const struct ks_attribute *update = ks_attribute_find(&c->attributes, "update");
    const char *env = ks_attribute_text(&c->attributes, "env");
    const struct ks_references *p = &c->references;
    const size_t n = c->minibatches;
    const struct ks_piece batch[] = {
        {c->input, sizeof *c->input * n * c->rows * c->critic.arch->in},
        {c->target, sizeof *c->target * n * ks_checkpoint_target_size(c)},
        {c->weight, c->weight ? sizeof *c->weight * n * c->loss_rows : 0}};

    f->critics = c->critic.ensemble;
    f->parameters = c->critic.arch->parameters;
    f->minibatches = c->minibatches;
    f->rows = c->rows;
    for (size_t i = 0; i < c->critic.arch->n_layers; i++)
        f->blocks += c->critic.arch->layer[i].parameters > 0;
    f->loss_rows = c->loss_rows;
    f->moments = find_moments(c);
    f->references = (size_t)(p->output.value != NULL) + (p->loss.value != NULL) +
                    (p->gradient_norm.value != NULL);
    f->env_step = step && step->type == KS_ATTRIBUTE_INTEGER ? (double)step->integer : NAN;
    f->untrained = update && update->type == KS_ATTRIBUTE_INTEGER && update->integer == 0;
    KS(loss_name)(&c->critic.arch->loss, sizeof f->loss, f->loss);
    f->parts = find_parts(c->critic.arch) |
               (strcmp(f->loss, "mse") == 0 ? KS_PART_SQUARED_ERROR : 0);
    snprintf(f->env, sizeof f->env, "%s", env ? env : "");
    KS_TRY(ks_sha256(sizeof batch / sizeof *batch, batch, f->batch));
    return count_dead(c, f);
}

/* KS_USAGE if the file has fewer minibatches than the options ask for. */
static ks_status read_summary(struct ks_h5 *h5, const struct ks_audit_options *o,
                              struct ks_audit_summary *f)
{
    const size_t batches = o->batches;
    KS_OWNED_BY(ks_checkpoint_free) struct ks_checkpoint *c = NULL;

    *f = (struct ks_audit_summary){.env_step = NAN};
    KS_TRY(ks_h5_sha256(h5, f->digest));
    KS_TRY(ks_inspect_read(h5, &c));
    f->stored = c->minibatches;
    if (batches > 0 && batches <= c->minibatches) /* the others are not looked at */
        c->minibatches = batches;
    else if (batches == 0 && !o->thorough)
        c->minibatches = ks_audit_minibatches(c->minibatches, c->rows,
                                              ks_networks_parameters(&c->critic));
    if (batches > c->minibatches)
        return ks_fail(KS_USAGE, "%s: --batches: expected 1 to %zu, found %zu", h5->path, f->stored,
                       batches);
    return take_summary(c, f);
}

/* --- the analyses --- */

enum { FEW_STEPS = 4, MORE_STEPS = 12 }; /* to measure the pace */

/* Runs the analysis, whose results the caller frees with ks_pipeline_close, also after a failure.
 */
static ks_status analyze(const struct ks_audit *audit, const struct ks_audit_task *t,
                         struct ks_spectrum_options *options, struct ks_pipeline *p)
{
    const struct ks_audit_options *o = audit->options;

    *options = ks_spectrum_options_defaults();
    options->kind = ks_operator_kind_find(t->operator_name);
    options->products_f32 = !options->kind->wide;
    options->order = t->order;
    options->seed = o->seed;
    options->batches = t->batches;
    options->gradient_probe = t->gradient;
    options->certificates = !t->trial;
    options->count_above = o->count_above;
    *p = (struct ks_pipeline){.options = options,
                              .path = audit->path,
                              .quiet = o->quiet || t->trial,
                              .says_references = true,
                              .file = audit->file,
                              .by_layers = t->layers};
    KS_TRY(ks_pipeline_open(p));
    return t->layers ? ks_pipeline_layers(p) : ks_pipeline_spectrum(p);
}

/* Computes a spectrum and keeps it in the file `path`. */
static ks_status compute(struct ks_audit *a, const struct ks_audit_task *t, const char *path,
                         struct ks_spectrum **spectrum)
{
    struct ks_spectrum_options options;
    KS_CLEARED_BY(ks_pipeline_close) struct ks_pipeline p = {.options = NULL};

    KS_TRY(ks_output_check(path, a->path));
    KS_TRY(analyze(a, t, &options, &p));
    KS_TRY(ks_spectrum_write(path, p.spectrum));
    *spectrum = p.spectrum, p.spectrum = NULL;
    return KS_OK;
}

/* Whether a kept spectrum belongs to these bytes and this version of the program, and has all that
 * an audit prints. */
static bool is_current(const struct ks_spectrum *s, const char *digest)
{
    const char *of = ks_attribute_text(&s->attributes, "checkpoint_sha256"),
               *by = ks_attribute_text(&s->attributes, "analyzer_version");

    return of && strcmp(of, digest) == 0 && by && strcmp(by, KS_BUILD) == 0 &&
           ks_attribute_find(&s->attributes, "claim_first_sentence");
}

/* The file in the folder that keeps a task's results; its name has the options. What is kept of
 * layers does not say what it belongs to, so there the name has the start of the checkpoint's
 * digest and the version, too. */
static ks_status kept_path(const struct ks_audit *a, size_t which, char **path)
{
    const struct ks_audit_task t = ks_audit_task(a, which);
    const unsigned long long seed = a->options->seed;
    char above[32] = "";

    if (t.layers)
        return ks_print_string(path, "%s/layers-m%zu-n%zu-s%llu-%.16s-%s.h5", a->folder, t.order,
                               t.batches, seed, a->summary.digest, KS_BUILD);
    if (a->options->count_above > 0)
        snprintf(above, sizeof above, "-c%.17g", a->options->count_above);
    return ks_print_string(path, "%s/%s-m%zu-n%zu-s%llu%s%s.spectrum.h5", a->folder,
                           t.operator_name, t.order, t.batches, seed, t.gradient ? "-g" : "",
                           above);
}

/* What is kept of a layer: an attribute NUMBER_KIND with these numbers. */
enum { NUMBER, DIMENSION, LAMBDA_MAX, BOUND, TRACE, TRACE_SHARE, KEPT };
static const char LAYERS[] = "kappascope-layers";

/* Computes the rows and keeps them in the file `path`. */
static ks_status compute_layers(struct ks_audit *a, const char *path)
{
    const struct ks_audit_task t = ks_audit_task(a, KS_AUDIT_LAYERS);
    struct ks_spectrum_options options;
    KS_CLEARED_BY(ks_pipeline_close) struct ks_pipeline p = {.options = NULL};
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    ks_attributes_clear(&a->kept);
    KS_TRY(ks_output_check(path, a->path));
    KS_TRY(analyze(a, &t, &options, &p));
    for (size_t i = 0; i < p.n_rows; i++) {
        const struct ks_layer_row *r = &p.rows[i];
        const double kept[KEPT] = {(double)r->number, (double)r->dimension,
                                   r->lambda_max,     r->kappa_effective_bound,
                                   r->trace,          r->trace_share};
        char name[KS_ATTRIBUTE_NAME];

        snprintf(name, sizeof name, "%06zu_%s", r->number, r->kind);
        ks_attribute_add_list(&a->kept, name, KEPT, kept);
    }
    KS_TRY(ks_h5_create(path, LAYERS, 1, &h5));
    ks_h5_write_attributes(h5, "/", &a->kept);
    return ks_h5_commit(h5);
}

/* Reads what the file `path` keeps. */
static ks_status read_kept(const char *path, struct ks_audit *a)
{
    KS_OWNED_BY(ks_h5_close) struct ks_h5 *h5 = NULL;

    ks_attributes_clear(&a->kept);
    KS_TRY(ks_h5_open(path, LAYERS, &h5));
    return ks_h5_read_attributes(h5, "/", &a->kept);
}

/* The rows of the table. False if what is kept is no row for each layer. */
static bool take_rows(struct ks_audit *a)
{
    a->n_layers = 0;
    for (size_t i = 0; i < a->kept.n; i++) {
        const struct ks_attribute *one = &a->kept.list[i];
        const double *x = one->list;
        const char *kind = strchr(one->name, '_');

        if (one->type != KS_ATTRIBUTE_LIST)
            continue; /* format, version */
        if (one->n != KEPT || !kind || !(x[NUMBER] >= 0 && x[NUMBER] <= INT32_MAX) ||
            !(x[DIMENSION] >= 0 && x[DIMENSION] <= INT32_MAX))
            return false;
        a->layers[a->n_layers++] = (struct ks_layer_row){.number = (size_t)x[NUMBER],
                                                         .kind = kind + 1,
                                                         .dimension = (size_t)x[DIMENSION],
                                                         .lambda_max = x[LAMBDA_MAX],
                                                         .kappa_effective_bound = x[BOUND],
                                                         .trace = x[TRACE],
                                                         .trace_share = x[TRACE_SHARE]};
    }
    return a->n_layers > 0;
}

static ks_status take_layers(struct ks_audit *a, const char *path)
{
    free(a->layers);
    a->layers = NULL;
    KS_TRY(ks_alloc(a->kept.n, sizeof *a->layers, &a->layers));
    return take_rows(a) ? KS_OK : ks_fail(KS_FORMAT, "%s: expected a row for each layer", path);
}

/* --- all of them --- */

/* Takes what the folder keeps of a task. */
static bool take_kept(struct ks_audit *a, size_t which, const char *path)
{
    struct ks_spectrum **s = &a->spectrum[which];

    if (!ks_path_exists(path))
        return false;
    if (which == KS_AUDIT_LAYERS)
        return read_kept(path, a) == KS_OK && take_layers(a, path) == KS_OK;
    if (ks_spectrum_read(path, s) == KS_OK && is_current(*s, a->summary.digest))
        return true;
    ks_spectrum_free(*s);
    *s = NULL;
    return false;
}

static ks_status compute_task(struct ks_audit *a, size_t which, const char *path)
{
    const struct ks_audit_task t = ks_audit_task(a, which);

    if (which != KS_AUDIT_LAYERS)
        return compute(a, &t, path, &a->spectrum[which]);
    KS_TRY(compute_layers(a, path));
    return take_layers(a, path);
}

/* The seconds that so many Lanczos steps take, with some of the minibatches. */
static ks_status time_steps(const struct ks_audit *a, size_t order, double *seconds)
{
    const struct ks_audit_task t = {.operator_name = "hessian",
                                    .order = order,
                                    .batches = (a->summary.minibatches + 4) / 5,
                                    .trial = true};
    struct ks_spectrum_options options;
    KS_CLEARED_BY(ks_pipeline_close) struct ks_pipeline p = {.options = NULL};
    const double start = ks_seconds();

    KS_TRY(analyze(a, &t, &options, &p));
    *seconds = (ks_seconds() - start) / (double)t.batches;
    return KS_OK;
}

/* The time of a product with one minibatch, from the difference of two trials: what an analysis
 * does besides takes a while, too. */
static ks_status measure_pace(const struct ks_audit *a, double *pace)
{
    double few, more;

    KS_TRY(time_steps(a, FEW_STEPS, &few));
    KS_TRY(time_steps(a, MORE_STEPS, &more));
    *pace = more > few ? (more - few) / (MORE_STEPS - FEW_STEPS) : more / MORE_STEPS;
    return KS_OK;
}

/* Computes what the folder does not keep. */
static ks_status compute_missing(struct ks_audit *a, char *const path[KS_AUDIT_TASKS],
                                 struct ks_audit_clock *clock)
{
    bool all = true;

    for (size_t i = 0; i < KS_AUDIT_TASKS; i++) {
        clock->done[i] = ks_audit_has_task(a, i) && take_kept(a, i, path[i]);
        all &= clock->done[i] || !ks_audit_has_task(a, i);
    }
    if (all)
        return KS_OK;
    KS_TRY(measure_pace(a, &clock->pace));
    for (size_t i = 0; i < KS_AUDIT_TASKS; i++)
        if (ks_audit_has_task(a, i) && !clock->done[i]) {
            ks_audit_begin(clock, i);
            KS_TRY(compute_task(a, i, path[i]));
            ks_audit_end(clock, i);
        }
    return KS_OK;
}

ks_status ks_audit_folder(const char *path, const struct ks_audit_options *o, char **folder)
{
    const char *name = o->cache ? ks_path_base(path) : path;

    return ks_print_string(folder, "%s%s%.*s.audit", o->cache ? o->cache : "", o->cache ? "/" : "",
                           (int)ks_path_stem(name, ".h5"), name);
}

/* Writes FOLDER/tables/spectra.csv: which of the kept spectra this audit is about. */
static ks_status list_spectra(const struct ks_audit *a, char *const path[KS_AUDIT_TASKS])
{
    KS_CLEARED_BY(ks_table_free) struct ks_table table = {0};

    ks_table_columns(&table, "operator,minibatches,file");
    for (size_t i = 0; i < KS_AUDIT_SPECTRA; i++) {
        const struct ks_audit_task t = ks_audit_task(a, i);

        if (a->spectrum[i])
            ks_table_cells(&table, KS_TEXT(t.operator_name), KS_COUNT(t.batches),
                           KS_TEXT(ks_path_base(path[i])));
    }
    KS_TRY(ks_folder_make("%s/tables", a->folder));
    return ks_table_write(&table, a->folder, "spectra");
}

static ks_status run(struct ks_audit *a)
{
    struct ks_audit_clock clock = {.audit = a};
    char *path[KS_AUDIT_TASKS] = {NULL};
    ks_status status = KS_OK;

    KS_TRY(read_summary(a->file, a->options, &a->summary));
    KS_TRY(ks_audit_folder(a->path, a->options, &a->folder));
    KS_TRY(ks_folder_make("%s", a->folder));
    ks_report_sweep(a->folder);
    for (size_t i = 0; i < KS_AUDIT_TASKS; i++)
        KS_GO(kept_path(a, i, &path[i]));
    KS_GO(compute_missing(a, path, &clock));
    status = list_spectra(a, path);
done:
    for (size_t i = 0; i < KS_AUDIT_TASKS; i++)
        free(path[i]);
    return status;
}

ks_status ks_audit_run(const char *path, const struct ks_audit_options *o, struct ks_audit *a)
{
    ks_status status;

    *a = (struct ks_audit){.path = path, .options = o};
    KS_TRY(ks_h5_open(path, "kappascope-checkpoint", &a->file));
    status = run(a);
    ks_h5_close(a->file);
    a->file = NULL;
    return status;
}

void ks_audit_clear(struct ks_audit *a)
{
    for (int i = 0; i < KS_AUDIT_SPECTRA; i++)
        ks_spectrum_free(a->spectrum[i]);
    free(a->layers);
    ks_attributes_clear(&a->kept);
    free(a->folder);
    free(a->summary.units);
    *a = (struct ks_audit){.path = NULL};
}
