/* The diagonal block of every layer, and the table of them. */
#include "pipeline/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/interval.h"
#include "core/memory.h"
#include "core/say.h"
#include "pipeline/report.h"

static ks_status pose_layer(struct ks_pipeline *p, int layer)
{
    ks_pipeline_clear(p);
    KS_TRY(ks_pipeline_pose_loss(p, layer));
    return ks_pipeline_pose_products(p);
}

/* The number of a layer's coordinates that ks_selection_new selects. */
static size_t count_coordinates(const struct ks_problem *q, const struct KS(layer) *l)
{
    const struct ks_networks *critics = &q->checkpoint->critic;
    const double *v = q->kind->moving ? q->checkpoint->adam_v : NULL;
    size_t n = 0;

    for (size_t e = 0; e < critics->ensemble; e++)
        for (size_t i = 0; (q->critic < 0 || (size_t)q->critic == e) && i < l->parameters; i++)
            n += !v || v[e * critics->arch->parameters + l->offset + i] > 0;
    return n;
}

/* A row, with its first three fields, for every layer with parameters; for `preconditioned`, with
 * parameters that have had a gradient. Together the rows have all coordinates of the operator. */
static ks_status list_layers(struct ks_pipeline *p)
{
    const struct KS(arch) *arch = p->checkpoint->critic.arch;

    KS_TRY(ks_alloc(arch->n_layers, sizeof *p->rows, &p->rows));
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        size_t dimension = count_coordinates(&p->problem, l);

        if (dimension > 0)
            p->rows[p->n_rows++] = (struct ks_layer_row){
                .number = l->number, .kind = l->kind->name, .dimension = dimension};
    }
    if (p->n_rows == 0)
        return ks_fail(KS_NUMBER, "--layers: expected a layer with parameters%s, found none",
                       p->options->kind->moving ? " that have had a gradient" : "");
    return KS_OK;
}

/* Finds the layers, the number of products for all of them, and the largest dimension, by which
 * memory is divided. */
static ks_status plan_layers(struct ks_pipeline *p, size_t *products)
{
    const size_t order = p->options->order, probes = p->options->probes;
    size_t largest = 0;

    *products = 0;
    /* Of all layers: refuses a critic that does not exist. */
    KS_TRY(ks_pipeline_pose_loss(p, p->options->layer));
    KS_TRY(ks_pipeline_agree(p, list_layers(p)));
    for (size_t i = 0; i < p->n_rows; i++) {
        const size_t n = p->rows[i].dimension;

        KS_TRY(pose_layer(p, (int)p->rows[i].number));
        *products += probes * (n < order ? n : order) + ks_null_products(p->space);
        largest = n > largest ? n : largest;
    }
    p->budget.dimension = largest;
    return KS_OK;
}

static void take_row(const struct ks_spectrum *s, struct ks_layer_row *row)
{
    row->steps = s->order;
    for (size_t i = 0; s->steps && i < s->probes; i++)
        row->steps = (size_t)s->steps[i] < row->steps ? (size_t)s->steps[i] : row->steps;
    row->lambda_max = ks_statistic_value(s, KS_STAT_LAMBDA_MAX);
    row->lambda_max_data_se = ks_statistic_value(s, KS_STAT_LAMBDA_MAX_DATA_SE);
    row->kappa_effective_bound = ks_statistic_value(s, KS_STAT_KAPPA_EFFECTIVE_BOUND);
    row->kurtosis = ks_statistic_value(s, KS_STAT_KURTOSIS);
    row->trace = ks_statistic_value(s, KS_STAT_TRACE);
    row->trace_se = ks_statistic(s, "trace_se");
}

static ks_status analyze_layer(struct ks_pipeline *p, struct ks_layer_row *row)
{
    const struct ks_spectrum *s;

    KS_TRY(pose_layer(p, (int)row->number));
    KS_TRY(ks_pipeline_agree(p, ks_pipeline_make_block(p)));
    p->monitor.null_products = ks_null_products(p->space);
    KS_TRY(ks_pipeline_from_operator(p));
    KS_TRY(ks_pipeline_agree(p, ks_pipeline_statistics(p)));
    s = p->spectrum;
    p->monitor.earlier += p->monitor.null_products + p->monitor.sampled;
    p->monitor.sampled = 0;
    for (size_t i = 0; i < s->probes; i++)
        p->monitor.earlier += (size_t)s->steps[i];
    ks_pipeline_warn(p);
    take_row(s, row);
    return KS_OK;
}

/* The traces of the diagonal blocks add up to the operator's trace. */
static void share_trace(size_t n, struct ks_layer_row *rows)
{
    double all = 0;

    for (size_t i = 0; i < n; i++)
        all += rows[i].trace;
    for (size_t i = 0; i < n; i++)
        rows[i].trace_share = all != 0 ? rows[i].trace / all : NAN;
}

/* The operator of all coordinates is made once; a layer's products are its products, restricted. */
ks_status ks_pipeline_layers(struct ks_pipeline *p)
{
    size_t products;

    p->by_layers = true;
    KS_TRY(plan_layers(p, &products));
    KS_TRY(ks_pipeline_make_operator(p));
    p->monitor.products = products;
    for (size_t i = 0; i < p->n_rows; i++)
        KS_TRY(analyze_layer(p, &p->rows[i]));
    share_trace(p->n_rows, p->rows);
    return KS_OK;
}

/* --- printing: all forms have the same list of columns --- */

enum { STATISTICS = 7, IN_CATALOGUE = 5, CELL = 32 };
static const enum ks_statistic_id ids[IN_CATALOGUE] = {
    KS_STAT_LAMBDA_MAX, KS_STAT_LAMBDA_MAX_DATA_SE, KS_STAT_KAPPA_EFFECTIVE_BOUND, KS_STAT_KURTOSIS,
    KS_STAT_TRACE};
static const size_t shown[] = {0, 2, 3, 6}; /* in the table */
enum { BOUND = 2, COLUMNS = sizeof shown / sizeof *shown };

static void list_statistics(const struct ks_layer_row *row, double value[STATISTICS])
{
    const double list[STATISTICS] = {row->lambda_max,
                                     row->lambda_max_data_se,
                                     row->kappa_effective_bound,
                                     row->kurtosis,
                                     row->trace,
                                     row->trace_se,
                                     row->trace_share};

    memcpy(value, list, sizeof list);
}

static const char *name_of(size_t k)
{
    return k < IN_CATALOGUE    ? ks_catalogue[ids[k]].name
           : k == IN_CATALOGUE ? "trace_se"
                               : "trace_share";
}

static int width_of(size_t k)
{
    int length = (int)strlen(name_of(k));

    return length > 12 ? length : 12;
}

/* A lower bound is rounded down, so that it stays a bound. */
static void print_cell(size_t k, double value, char cell[CELL])
{
    if (isnan(value))
        snprintf(cell, CELL, "-");
    else
        snprintf(cell, CELL, "%.4g", k == BOUND ? ks_round_down(value, 4) : value);
}

static void print_layer_table(struct ks_report *r, const struct ks_pipeline *p)
{
    const struct ks_layer_row *rows = p->rows;
    char cell[CELL], name[4096];

    ks_escape(p->path, sizeof name, name);
    if (r->rows == 0) {
        fprintf(r->out, "%-*s %-16s %9s %5s", r->width, "checkpoint", "layer", "n", "m");
        for (size_t k = 0; k < COLUMNS; k++)
            fprintf(r->out, " %*s", width_of(shown[k]), name_of(shown[k]));
        fputc('\n', r->out);
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        double value[STATISTICS];

        snprintf(cell, sizeof cell, "%02zu %s", rows[i].number, rows[i].kind);
        fprintf(r->out, "%-*s %-16s %9zu %5zu", r->width, name, cell, rows[i].dimension,
                rows[i].steps);
        list_statistics(&rows[i], value);
        for (size_t k = 0; k < COLUMNS; k++) {
            print_cell(shown[k], value[shown[k]], cell);
            fprintf(r->out, " %*s", width_of(shown[k]), cell);
        }
        fputc('\n', r->out);
    }
}

static void print_layer_csv(struct ks_report *r, const struct ks_pipeline *p)
{
    const struct ks_layer_row *rows = p->rows;
    const struct ks_spectrum_options *o = p->options;
    if (r->rows == 0) {
        fputs("checkpoint,operator,precision,order,probes,probe_seed,critic,layer,kind,dimension,"
              "steps",
              r->out);
        for (size_t k = 0; k < STATISTICS; k++)
            fprintf(r->out, ",%s", name_of(k));
        fputc('\n', r->out);
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        double value[STATISTICS];

        ks_report_csv_text(r->out, p->path);
        fprintf(r->out, ",%s,%s,%zu,%zu,%llu,%d,%zu,%s,%zu,%zu", o->kind->name,
                o->products_f32 ? "f32" : "f64", o->order, o->probes, (unsigned long long)o->seed,
                o->critic, rows[i].number, rows[i].kind, rows[i].dimension, rows[i].steps);
        list_statistics(&rows[i], value);
        for (size_t k = 0; k < STATISTICS; k++)
            fprintf(r->out, isfinite(value[k]) ? ",%.17g" : ",", value[k]);
        fputc('\n', r->out);
    }
}

static json_t *json_layer(const struct ks_layer_row *row)
{
    json_t *object = json_pack("{s:I, s:s, s:I, s:I}", "layer", (json_int_t)row->number, "kind",
                               row->kind, "dimension", (json_int_t)row->dimension, "steps",
                               (json_int_t)row->steps);
    double value[STATISTICS];
    bool failed = !object;
    char state[64];

    list_statistics(row, value);
    snprintf(state, sizeof state, "%s_state", name_of(BOUND));
    for (size_t k = 0; k < STATISTICS; k++)
        failed |= json_object_set_new(object, name_of(k),
                                      isfinite(value[k]) ? json_real(value[k]) : json_null());
    failed |= json_object_set_new(object, state,
                                  json_string(isnan(value[BOUND])   ? "unresolved"
                                              : isinf(value[BOUND]) ? "infinite"
                                                                    : "finite"));
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static ks_status print_layer_json(struct ks_report *r, const struct ks_pipeline *p)
{
    const struct ks_layer_row *rows = p->rows;
    const struct ks_spectrum_options *o = p->options;
    json_t *list = json_array();
    json_t *object = json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:i}", "checkpoint",
                               ks_report_json_text(p->path), "operator", o->kind->name, "precision",
                               o->products_f32 ? "f32" : "f64", "order", (json_int_t)o->order,
                               "probes", (json_int_t)o->probes, "probe_seed", (json_int_t)o->seed,
                               "critic", o->critic);
    bool failed = !object;
    char *line = NULL;

    for (size_t i = 0; i < p->n_rows; i++)
        failed |= json_array_append_new(list, json_layer(&rows[i])) != 0;
    failed |= json_object_set_new(object, "layers", list) != 0;
    if (!failed)
        line = json_dumps(object, JSON_COMPACT);
    if (line)
        fprintf(r->out, "%s\n", line);
    json_decref(object);
    failed = !line;
    free(line);
    return failed ? ks_fail(KS_MEMORY, "out of memory: the layers as JSON") : KS_OK;
}

ks_status ks_layers_report(struct ks_report *r, const struct ks_pipeline *p)
{
    if (r->form == KS_REPORT_TABLE)
        print_layer_table(r, p);
    else if (r->form == KS_REPORT_CSV)
        print_layer_csv(r, p);
    else
        KS_TRY(print_layer_json(r, p));
    r->rows += p->n_rows;
    return ks_report_flush(r);
}
