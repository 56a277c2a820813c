#include "program/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/memory.h"
#include "core/round.h"
#include "core/say.h"
#include "operators/selection.h"
#include "statistics/statistics.h"

/* The number of a layer's coordinates that ks_selection_new selects. */
static size_t count_coordinates(const struct ks_problem *q, const struct KS(layer) *l, bool moving)
{
    const struct ks_networks *critics = &q->checkpoint->critic;
    const double *v = moving ? q->checkpoint->adam_v : NULL;
    size_t n = 0;

    for (size_t e = 0; e < critics->ensemble; e++)
        for (size_t i = 0; (q->critic < 0 || (size_t)q->critic == e) && i < l->parameters; i++)
            n += !v || v[e * critics->arch->parameters + l->offset + i] > 0;
    return n;
}

ks_status ks_layers_new(const struct ks_problem *q, bool moving, size_t *n,
                        struct ks_layer_row **rows)
{
    const struct KS(arch) *arch = q->checkpoint->critic.arch;
    size_t low, high;

    *n = 0;
    *rows = NULL;
    KS_TRY(ks_selection_range(&q->checkpoint->critic, q->critic, -1, &low, &high));
    KS_TRY(ks_alloc(arch->n_layers, sizeof **rows, rows));
    for (size_t i = 0; i < arch->n_layers; i++) {
        const struct KS(layer) *l = &arch->layer[i];
        size_t dimension = count_coordinates(q, l, moving);

        if (dimension > 0)
            (*rows)[(*n)++] = (struct ks_layer_row){
                .number = l->number, .kind = l->kind->name, .dimension = dimension};
    }
    if (*n == 0)
        return ks_fail(KS_NUMBER, "--layers: expected a layer with parameters%s, found none",
                       moving ? " that have had a gradient" : "");
    return KS_OK;
}

void ks_layers_take(struct ks_layer_row *row, const struct ks_spectrum *s)
{
    row->steps = s->order;
    for (size_t i = 0; s->steps && i < s->probes; i++)
        row->steps = (size_t)s->steps[i] < row->steps ? (size_t)s->steps[i] : row->steps;
    row->lambda_max = ks_statistic(s, "lambda_max");
    row->lambda_max_data_se = ks_statistic(s, "lambda_max_data_se");
    row->kappa_effective_bound = ks_statistic(s, "kappa_effective_bound");
    row->kurtosis = ks_statistic(s, "kurtosis");
    row->trace = ks_statistic(s, "trace");
    row->trace_se = ks_statistic(s, "trace_se");
}

/* The traces of the diagonal blocks add up to the operator's trace. */
void ks_layers_share(size_t n, struct ks_layer_row *rows)
{
    double all = 0;

    for (size_t i = 0; i < n; i++)
        all += rows[i].trace;
    for (size_t i = 0; i < n; i++)
        rows[i].trace_share = all != 0 ? rows[i].trace / all : NAN;
}

/* --- printing: all forms have the same list of columns --- */

enum { STATISTICS = 7, CELL = 32 };
static const char *const names[STATISTICS] = {
    "lambda_max", "lambda_max_data_se", "kappa_effective_bound", "kurtosis", "trace",
    "trace_se",   "trace_share"};
static const size_t shown[] = {0, 2, 3, 6}; /* in the table */
enum { BOUND = 2, SHOWN = sizeof shown / sizeof *shown };

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

static int width_of(size_t k)
{
    int length = (int)strlen(names[k]);

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

static void print_table(struct ks_report *r, const char *checkpoint, size_t n,
                        const struct ks_layer_row *rows)
{
    char cell[CELL], name[4096];

    ks_escape(checkpoint, sizeof name, name);
    if (r->rows == 0) {
        fprintf(r->out, "%-*s %-16s %9s %5s", r->width, "checkpoint", "layer", "n", "m");
        for (size_t k = 0; k < SHOWN; k++)
            fprintf(r->out, " %*s", width_of(shown[k]), names[shown[k]]);
        fputc('\n', r->out);
    }
    for (size_t i = 0; i < n; i++) {
        double value[STATISTICS];

        snprintf(cell, sizeof cell, "%02zu %s", rows[i].number, rows[i].kind);
        fprintf(r->out, "%-*s %-16s %9zu %5zu", r->width, name, cell, rows[i].dimension,
                rows[i].steps);
        list_statistics(&rows[i], value);
        for (size_t k = 0; k < SHOWN; k++) {
            print_cell(shown[k], value[shown[k]], cell);
            fprintf(r->out, " %*s", width_of(shown[k]), cell);
        }
        fputc('\n', r->out);
    }
}

static void print_csv(struct ks_report *r, const char *checkpoint, const struct ks_options *o,
                      size_t n, const struct ks_layer_row *rows)
{
    if (r->rows == 0) {
        fputs("checkpoint,operator,precision,order,probes,probe_seed,critic,layer,kind,dimension,"
              "steps",
              r->out);
        for (size_t k = 0; k < STATISTICS; k++)
            fprintf(r->out, ",%s", names[k]);
        fputc('\n', r->out);
    }
    for (size_t i = 0; i < n; i++) {
        double value[STATISTICS];

        ks_report_csv_text(r->out, checkpoint);
        fprintf(r->out, ",%s,%s,%zu,%zu,%llu,%d,%zu,%s,%zu,%zu", o->kind->name,
                o->single ? "f32" : "f64", o->order, o->probes, (unsigned long long)o->seed,
                o->critic, rows[i].number, rows[i].kind, rows[i].dimension, rows[i].steps);
        list_statistics(&rows[i], value);
        for (size_t k = 0; k < STATISTICS; k++)
            fprintf(r->out, isfinite(value[k]) ? ",%.17g" : ",", value[k]);
        fputc('\n', r->out);
    }
}

static json_t *json_row(const struct ks_layer_row *row)
{
    json_t *object = json_pack("{s:I, s:s, s:I, s:I}", "layer", (json_int_t)row->number, "kind",
                               row->kind, "dimension", (json_int_t)row->dimension, "steps",
                               (json_int_t)row->steps);
    double value[STATISTICS];
    bool failed = !object;

    list_statistics(row, value);
    for (size_t k = 0; k < STATISTICS; k++)
        failed |= json_object_set_new(object, names[k],
                                      isfinite(value[k]) ? json_real(value[k]) : json_null());
    failed |= json_object_set_new(object, "kappa_effective_bound_state",
                                  json_string(isnan(value[BOUND])   ? "unresolved"
                                              : isinf(value[BOUND]) ? "infinite"
                                                                    : "finite"));
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static ks_status print_json(struct ks_report *r, const char *checkpoint, const struct ks_options *o,
                            size_t n, const struct ks_layer_row *rows)
{
    json_t *list = json_array();
    json_t *object = json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:i}", "checkpoint",
                               ks_report_json_text(checkpoint), "operator", o->kind->name,
                               "precision", o->single ? "f32" : "f64", "order",
                               (json_int_t)o->order, "probes", (json_int_t)o->probes, "probe_seed",
                               (json_int_t)o->seed, "critic", o->critic);
    bool failed = !object;
    char *line = NULL;

    for (size_t i = 0; i < n; i++)
        failed |= json_array_append_new(list, json_row(&rows[i])) != 0;
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

ks_status ks_layers_report(struct ks_report *r, const char *checkpoint, const struct ks_options *o,
                           size_t n, const struct ks_layer_row *rows)
{
    if (r->form == KS_REPORT_TABLE)
        print_table(r, checkpoint, n, rows);
    else if (r->form == KS_REPORT_CSV)
        print_csv(r, checkpoint, o, n, rows);
    else
        KS_TRY(print_json(r, checkpoint, o, n, rows));
    r->rows += n;
    return ks_report_flush(r);
}
