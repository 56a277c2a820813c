/* Pairs of audited critics, by the same rule as critics that were measured before. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/measured.h"
#include "audit/several.h"
#include "io/file.h"
#include "statistics/catalogue.h"

static struct ks_conditioning conditioning(const struct ks_audit *a)
{
    return ks_conditioning_of(a->spectrum[KS_AUDIT_HESSIAN]);
}

/* How many bytes of the paths are folders that all of them are in. */
static size_t common_folders(size_t n, const struct ks_audit *a)
{
    size_t length = 0;

    for (size_t k = 0; a->path[k]; k++) {
        for (size_t i = 1; i < n; i++)
            if (a[i].path[k] != a->path[k])
                return length;
        if (a->path[k] == '/')
            length = k + 1;
    }
    return length;
}

/* --- layers --- */

/* The layer whose share of the trace differs most: its row in both tables. False if the critics
 * have not the same layers, or if a trace is negative, so that there are no shares. */
static bool find_layer(const struct ks_audit *a, const struct ks_audit *b, size_t *row)
{
    double most = 0;

    if (!ks_audit_has_shares(a) || !ks_audit_has_shares(b) || a->n_layers != b->n_layers)
        return false;
    for (size_t i = 0; i < a->n_layers; i++) {
        const struct ks_layer_row *x = &a->layers[i], *y = &b->layers[i];
        const double difference = fabs(x->trace_share - y->trace_share);

        if (x->number != y->number || strcmp(x->kind, y->kind) != 0)
            return false;
        if (difference > most * (1 + 1e-6)) { /* of two layers the differences are equal */
            most = difference;
            *row = i;
        }
    }
    return most > 0;
}

static void add_layer(const struct ks_audit *a, const struct ks_audit *b, size_t folders,
                      struct ks_document *d)
{
    size_t row = 0;

    if (find_layer(a, b, &row))
        ks_document_add(d, KS_BLOCK_ITEM,
                        "%s and %s differ most in layer %02zu (%s): it has %.3g%% and %.3g%% of "
                        "the trace, estimates.",
                        a->path + folders, b->path + folders, a->layers[row].number,
                        a->layers[row].kind, 100 * a->layers[row].trace_share,
                        100 * b->layers[row].trace_share);
}

/* --- pairs --- */

/* In what a is better conditioned than b. */
static const char *reason(const struct ks_conditioning *a, const struct ks_conditioning *b)
{
    const struct ks_interval none = {NAN, NAN};
    const struct ks_conditioning x = {none, a->q99}, y = {none, b->q99};

    if (ks_verdict(&x, &y) != KS_BETTER)
        return "directions_1e2";
    return ks_verdict(&(struct ks_conditioning){a->directions, none},
                      &(struct ks_conditioning){b->directions, none}) == KS_BETTER
               ? "directions_1e2 and kappa_q99"
               : "kappa_q99";
}

/* The critics than which critic i is better conditioned. */
static void add_better(size_t n, const struct ks_audit *a, size_t i, size_t folders,
                       struct ks_document *d)
{
    const struct ks_conditioning x = conditioning(&a[i]);
    bool first = true;

    for (size_t j = 0; j < n; j++) {
        const struct ks_conditioning y = conditioning(&a[j]);

        if (j == i || ks_verdict(&x, &y) != KS_BETTER)
            continue;
        if (first)
            ks_document_add(d, KS_BLOCK_ITEM, "%s is better conditioned than", a[i].path + folders);
        ks_document_more(d, "%s %s (%s)", first ? "" : ",", a[j].path + folders, reason(&x, &y));
        first = false;
    }
}

/* The later critics of which it is not decided. */
static void add_undecided(size_t n, const struct ks_audit *a, size_t i, size_t folders,
                          struct ks_document *d)
{
    const struct ks_conditioning x = conditioning(&a[i]);
    bool first = true;

    for (size_t j = i + 1; j < n; j++) {
        const struct ks_conditioning y = conditioning(&a[j]);

        if (ks_verdict(&x, &y) != KS_UNDECIDED)
            continue;
        if (first)
            ks_document_add(d, KS_BLOCK_ITEM, "%s and", a[i].path + folders);
        ks_document_more(d, "%s %s", first ? "" : ",", a[j].path + folders);
        first = false;
    }
    if (!first)
        ks_document_more(d, ": the intervals do not decide.");
}

static void add_answers(size_t n, const struct ks_audit *a, struct ks_document *d)
{
    const size_t folders = common_folders(n, a);
    bool same = true;

    for (size_t i = 0; i < n; i++)
        add_better(n, a, i, folders, d);
    for (size_t i = 0; i < n; i++)
        add_undecided(n, a, i, folders, d);
    for (size_t i = 0; n <= 3 && i < n; i++) /* of more, the sections on each say enough */
        for (size_t j = i + 1; j < n; j++)
            add_layer(&a[i], &a[j], folders, d);
    for (size_t i = 1; i < n; i++)
        same &= memcmp(a[i].summary.batch, a->summary.batch, sizeof a->summary.batch) == 0;
    ks_document_add(
        d, KS_BLOCK_NOTE,
        "In brackets: by which statistics. directions_1e2 counts the directions whose curvature is "
        "within a factor of 100 of the largest one; kappa_q99 is the factor by which the largest "
        "one exceeds the curvature of 99%% of all directions. An answer needs 99%% intervals of "
        "one of the two that are at least a factor of %g apart, so it holds with 96%%, but not all "
        "of several together; narrower intervals may show that the other one says the opposite. %s",
        ks_verdict_margin,
        same ? "All critics were analyzed on the same minibatches."
             : "The minibatches differ, so the answers compare critics and data together.");
}

static void add_numbers(size_t n, const struct ks_audit *a, struct ks_document *d)
{
    ks_document_columns(d, "", "critic<, loss<, step, parameters, largest |eigenvalue|, %s, %s",
                        ks_catalogue[KS_STAT_DIRECTIONS_1E2].name,
                        ks_catalogue[KS_STAT_KAPPA_Q99].name);
    for (size_t i = 0; i < n; i++) {
        const struct ks_conditioning c = conditioning(&a[i]);
        const char *name = a[i].path + common_folders(n, a);

        ks_document_cells(
            d, ks_cell_name(name), ks_cell_text(a[i].summary.loss),
            ks_cell_fixed(0, a[i].summary.env_step),
            ks_cell_count(a[i].summary.critics * a[i].summary.parameters),
            ks_cell_interval(ks_audit_abs_max(a[i].spectrum[KS_AUDIT_HESSIAN]), KS_BRACKETS_WHOLE),
            ks_cell_interval(c.directions, KS_BRACKETS_WHOLE),
            ks_cell_interval(c.q99, KS_BRACKETS_WHOLE));
    }
}

/* --- over training --- */

/* Whether they are checkpoints of one run, as far as one can tell: they are in one folder and have
 * the same task, loss and size, and steps of their own. */
static bool are_one_run(size_t n, const struct ks_audit *a)
{
    for (size_t i = 0; i < n; i++)
        if (ks_path_base(a[i].path) != a[i].path + common_folders(n, a))
            return false;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            const struct ks_audit_summary *x = &a[i].summary, *y = &a[j].summary;

            if (isnan(x->env_step) || isnan(y->env_step) || x->env_step == y->env_step ||
                x->parameters != y->parameters || x->critics != y->critics ||
                strcmp(x->loss, y->loss) != 0 || strcmp(x->env, y->env) != 0)
                return false;
        }
    return true;
}

static void add_figure(size_t n, const struct ks_audit *a, struct ks_document *d)
{
    struct ks_table table = {0};

    ks_table_columns(&table, "env_step,directions_1e2_lower,directions_1e2_upper");
    for (size_t i = 0; i < n; i++)
        ks_table_cells(&table, KS_NUMBER(a[i].summary.env_step),
                       KS_INTERVAL(conditioning(&a[i]).directions));
    ks_audit_figure(a, "steps", &table,
                    "How many directions have a curvature within a factor of 100 of the largest "
                    "one, over the steps of training: 99% intervals.",
                    d);
}

void ks_audit_several(size_t n, const struct ks_audit *a, struct ks_document *d)
{
    ks_document_add(d, KS_BLOCK_SECTION, "Which is better conditioned?");
    add_answers(n, a, d);
    if (are_one_run(n, a))
        add_figure(n, a, d);
    add_numbers(n, a, d);
}
