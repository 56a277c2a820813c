#include "pipeline/listing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/interval.h"
#include "core/memory.h"
#include "io/attribute.h"
#include "statistics/statistics.h"

/* The root attributes that stand in a row beside the statistics: what was computed, and how. */
static const char *const settings[] = {"operator",
                                       "batchnorm",
                                       "precision",
                                       "order",
                                       "probes",
                                       "probe_seed",
                                       "dimension",
                                       "weight_decay",
                                       "scale",
                                       "batches",
                                       "batch",
                                       "critic",
                                       "layer",
                                       "array",
                                       "count_above",
                                       "blas_version",
                                       "blas_kernel",
                                       "products",
                                       "threads",
                                       "basis_precision",
                                       "rewards",
                                       "compat",
                                       "minibatch_products",
                                       "tolerance"};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

/* The columns of the table: first what holds for every order and start vector, the paper's kappa
 * last. Rows are printed one by one, so the columns have the width of the longest usual number. */
static const struct column {
    enum ks_statistic_id statistic;
    size_t width;
} columns[] = {
    {KS_STAT_KAPPA_EFFECTIVE_BOUND, 21},
    {KS_STAT_DIRECTIONS_1E2, 18},
    {KS_STAT_KAPPA_Q99, 20},
    {KS_STAT_LAMBDA_MAX, 10},
    {KS_STAT_ZERO_MASS, 24},
    {KS_STAT_OUTLIERS, 8},
    {KS_STAT_KURTOSIS, 8},
    {KS_STAT_KAPPA, 9},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

ks_status ks_listing_flush(struct ks_listing *r)
{
    KS_TRY(ks_document_print(&r->table, KS_DOCUMENT_WIDTH, r->out));
    if (r->failed || (fflush(r->out) == 0 && !ferror(r->out)))
        return KS_OK;
    r->failed = true;
    return ks_fail(KS_FULL, "standard output: %s", strerror(errno));
}

size_t ks_listing_steps(const struct ks_spectrum *s)
{
    size_t fewest = s->order;

    for (size_t i = 0; i < s->probes; i++)
        fewest = ks_spectrum_steps(s, i) < fewest ? ks_spectrum_steps(s, i) : fewest;
    return fewest;
}

/* A sentence about the spectrum, "" if it has none of that name. */
static const char *sentence(const struct ks_spectrum *s, const char *name)
{
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, name);

    return a && a->type == KS_ATTRIBUTE_STRING ? a->string : "";
}

/* A count, share or ratio is never printed without its interval. A lower bound is rounded down, so
 * that it stays one. */
static struct ks_cell table_cell(const struct ks_spectrum *s, enum ks_statistic_id id)
{
    const enum ks_statistic_kind kind = ks_catalogue[id].kind;
    const double value = ks_statistic_value(s, id);
    const bool known = !isnan(kind == KS_IS_RATIO ? ks_statistic_interval(s, id).lower : value);

    if (known && (kind == KS_IS_RATIO || kind == KS_IS_COUNT || kind == KS_IS_SHARE))
        return ks_statistic_cell(s, id);
    return kind == KS_IS_BOUND ? ks_cell_at_least(4, value)
                               : ks_cell_digits(4, known ? value : NAN);
}

void ks_listing_headings(struct ks_listing *r, size_t n, const struct ks_cell *headings)
{
    if (r->rows > 0)
        return;
    ks_document_table(&r->table, "", KS_CELLS(ks_cell_wide(ks_cell_name("checkpoint"), r->width)));
    for (size_t i = 0; i < n; i++)
        ks_document_cell(&r->table, headings[i]);
}

static void add_table_row(struct ks_listing *r, const char *checkpoint, const struct ks_spectrum *s)
{
    const char *tolerance = sentence(s, "tolerance");
    struct ks_cell headings[2 + COLUMNS] = {ks_cell_wide(ks_cell_heading("n"), 8),
                                            ks_cell_wide(ks_cell_heading("m"), 4)};

    for (size_t k = 0; k < COLUMNS; k++)
        headings[2 + k] = ks_cell_wide(ks_cell_heading(ks_catalogue[columns[k].statistic].name),
                                       columns[k].width);
    ks_listing_headings(r, 2 + COLUMNS, headings);
    ks_document_cells(&r->table, ks_cell_name(checkpoint),
                      ks_cell_fixed(0, ks_attribute_number(&s->attributes, "dimension")),
                      ks_cell_count(ks_listing_steps(s)));
    for (size_t k = 0; k < COLUMNS; k++)
        ks_document_cell(&r->table, table_cell(s, columns[k].statistic));
    ks_document_add(&r->statements, KS_BLOCK_SECTION, "%s", checkpoint);
    ks_document_add(&r->statements, KS_BLOCK_TEXT, "%s", sentence(s, "claim"));
    if (*tolerance)
        ks_document_add(&r->statements, KS_BLOCK_TEXT, "%s", tolerance);
}

/* JSON strings are UTF-8: in a text that is not, every byte beyond ASCII becomes '?'. NULL if there
 * is no memory. */
static json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    KS_OWNED char *plain = NULL;

    if (value || ks_copy_string(text, &plain) != KS_OK)
        return value;
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return json_string(plain);
}

static json_t *json_value(const struct ks_attribute *a)
{
    switch (a->type) {
    case KS_ATTRIBUTE_INTEGER:
        return json_integer(a->integer);
    case KS_ATTRIBUTE_STRING:
        return json_text(a->string);
    case KS_ATTRIBUTE_NUMBER:
        return isfinite(a->number) ? json_real(a->number) : json_null();
    default:
        return json_null();
    }
}

/* NAME_state, which says what JSON's null stands for, is written beside every ratio that can be
 * infinite or unresolved, and beside any other statistic that is null. */
static bool needs_state(const struct ks_attribute *a)
{
    return a->type == KS_ATTRIBUTE_NUMBER &&
           (ks_statistic_is_ratio(ks_catalogue_of_column(a->name)) || !isfinite(a->number));
}

const char *ks_listing_state(double value)
{
    return isnan(value) ? "unresolved" : isinf(value) ? "infinite" : "finite";
}

/* Adds attributes to an object; false if there is no memory, also for the object. */
static bool set_members(json_t *object, size_t n, const struct ks_attribute *a)
{
    bool fine = true;

    for (size_t i = 0; i < n; i++)
        fine &= json_object_set_new(object, a[i].name, json_value(&a[i])) == 0;
    return fine;
}

static bool set_statistic(json_t *object, const struct ks_attribute *a)
{
    char name[KS_ATTRIBUTE_NAME + sizeof "_state"];

    snprintf(name, sizeof name, "%s_state", a->name);
    return set_members(object, 1, a) &&
           (!needs_state(a) ||
            json_object_set_new(object, name, json_string(ks_listing_state(a->number))) == 0);
}

/* Prints a complete (`fine`) object on one line, and frees it. */
static ks_status print_object(FILE *out, json_t *object, bool fine, const char *what)
{
    KS_OWNED char *line = fine ? json_dumps(object, JSON_COMPACT) : NULL;

    if (line)
        fprintf(out, "%s\n", line);
    json_decref(object);
    return line ? KS_OK : ks_fail(KS_MEMORY, "out of memory: the %s as JSON", what);
}

static ks_status add_json(struct ks_listing *r, const char *checkpoint, const struct ks_spectrum *s)
{
    json_t *object = json_object();
    bool fine = json_object_set_new(object, "checkpoint", json_text(checkpoint)) == 0;

    for (size_t k = 0; k < SETTINGS; k++) {
        const struct ks_attribute *a = ks_attribute_find(&s->attributes, settings[k]);

        fine &= set_members(object, a != NULL, a);
    }
    for (size_t i = 0; i < s->statistics.n; i++)
        fine &= set_statistic(object, &s->statistics.list[i]);
    fine &= json_object_set_new(object, "claim", json_text(sentence(s, "claim"))) == 0;
    return print_object(r->out, object, fine, "statistics");
}

static json_t *json_row(const struct ks_listing_rows *rows, size_t n,
                        const struct ks_attribute *row)
{
    const size_t plain = rows->group ? rows->ungrouped : n;
    json_t *object = json_object(), *group = rows->group ? json_object() : NULL;

    if (set_members(object, plain, row) && set_members(group, n - plain, row + plain) &&
        (!rows->group || json_object_set(object, rows->group, group) == 0)) {
        json_decref(group);
        return object;
    }
    json_decref(object);
    json_decref(group);
    return NULL;
}

static ks_status print_json_rows(const struct ks_listing *r, const struct ks_listing_rows *rows)
{
    const size_t width = rows->cells.n / rows->n;
    json_t *object = json_object(), *list = json_array();
    bool fine = json_object_set_new(object, "checkpoint", json_text(rows->path)) == 0;

    fine &= set_members(object, rows->settings.n, rows->settings.list);
    for (size_t i = 0; i < rows->n; i++)
        fine &= json_array_append_new(list, json_row(rows, width, rows->cells.list + i * width)) ==
                0;
    fine &= json_object_set_new(object, rows->list, list) == 0;
    return print_object(r->out, object, fine, rows->list);
}

/* A CSV cell by RFC 4180: quoted where needed, quotes doubled. */
static void print_csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

static void print_csv_value(FILE *out, const struct ks_attribute *a)
{
    fputc(',', out);
    if (!a)
        return;
    if (a->type == KS_ATTRIBUTE_INTEGER)
        fprintf(out, "%lld", (long long)a->integer);
    else if (a->type == KS_ATTRIBUTE_STRING)
        print_csv_text(out, a->string);
    else if (isfinite(a->number))
        fprintf(out, "%.17g", a->number);
}

static void print_csv_rows(const struct ks_listing *r, const struct ks_listing_rows *rows)
{
    const struct ks_attributes *const common = &rows->settings;
    const size_t width = rows->cells.n / rows->n;

    if (r->rows == 0) {
        fputs("checkpoint", r->out);
        for (size_t k = 0; k < common->n; k++)
            fprintf(r->out, ",%s", common->list[k].name);
        for (size_t k = 0; k < width; k++)
            fprintf(r->out, ",%s", rows->cells.list[k].name);
        fputc('\n', r->out);
    }
    for (size_t i = 0; i < rows->n; i++) {
        print_csv_text(r->out, rows->path);
        for (size_t k = 0; k < common->n; k++)
            print_csv_value(r->out, &common->list[k]);
        for (size_t k = 0; k < width; k++)
            print_csv_value(r->out, &rows->cells.list[i * width + k]);
        fputc('\n', r->out);
    }
}

ks_status ks_listing_print_rows(struct ks_listing *r, struct ks_listing_rows *rows)
{
    ks_status status = rows->settings.status != KS_OK ? rows->settings.status : rows->cells.status;

    if (status == KS_OK && r->form == KS_LISTING_CSV)
        print_csv_rows(r, rows);
    else if (status == KS_OK)
        status = print_json_rows(r, rows);
    r->rows += rows->n;
    ks_attributes_clear(&rows->settings);
    ks_attributes_clear(&rows->cells);
    return status == KS_OK ? ks_listing_flush(r) : status;
}

/* Some spectra have no kurtosis_spectral, but every header has its columns: each follows the column
 * of kurtosis_excess with the same suffix. Returns the name of the column that follows `a`, or
 * NULL. */
static const char *spectral_column(const struct ks_attribute *a, char name[KS_ATTRIBUTE_NAME])
{
    if (ks_catalogue_of_column(a->name) != KS_STAT_KURTOSIS_EXCESS)
        return NULL;
    snprintf(name, KS_ATTRIBUTE_NAME, "%s%s", ks_catalogue[KS_STAT_KURTOSIS_SPECTRAL].name,
             a->name + strlen(ks_catalogue[KS_STAT_KURTOSIS_EXCESS].name));
    return name;
}

static void add_csv_column(struct ks_listing *r, const char *name)
{
    fprintf(r->out, ",%s", name);
    ks_attribute_add_number(&r->columns, name, NAN);
}

static ks_status print_csv_header(struct ks_listing *r, const struct ks_spectrum *s)
{
    char name[KS_ATTRIBUTE_NAME];

    fputs("checkpoint", r->out);
    for (size_t k = 0; k < SETTINGS; k++)
        if (ks_attribute_find(&s->attributes, settings[k]))
            add_csv_column(r, settings[k]);
    for (size_t i = 0; i < s->statistics.n; i++) {
        const struct ks_attribute *a = &s->statistics.list[i];

        if (ks_catalogue_of_column(a->name) != KS_STAT_KURTOSIS_SPECTRAL)
            add_csv_column(r, a->name);
        if (spectral_column(a, name))
            add_csv_column(r, name);
    }
    fputc('\n', r->out);
    return r->columns.status;
}

/* With --tolerance the spectra of several checkpoints may have different statistics: NAME_se needs
 * two probes, NAME_m30 30 steps. */
static void say_left_out(const struct ks_listing *r, const char *checkpoint,
                         const struct ks_spectrum *s)
{
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < s->statistics.n; i++)
        if (!ks_attribute_find(&r->columns, s->statistics.list[i].name)) {
            first = first ? first : s->statistics.list[i].name;
            n++;
        }
    if (n > 0)
        ks_say("%s: --csv leaves out %s%s, which the first checkpoint does not have (--json has "
               "every number)",
               checkpoint, first, n > 1 ? " and other statistics" : "");
}

/* The columns are those of the first checkpoint. */
static ks_status add_csv_row(struct ks_listing *r, const char *checkpoint,
                             const struct ks_spectrum *s)
{
    if (r->rows == 0)
        KS_TRY(print_csv_header(r, s));
    print_csv_text(r->out, checkpoint);
    for (size_t i = 0; i < r->columns.n; i++) {
        const char *name = r->columns.list[i].name;
        const struct ks_attribute *a = ks_attribute_find(&s->statistics, name);

        print_csv_value(r->out, a ? a : ks_attribute_find(&s->attributes, name));
    }
    fputc('\n', r->out);
    say_left_out(r, checkpoint, s);
    return KS_OK;
}

ks_status ks_listing_add(struct ks_listing *r, const char *checkpoint, const struct ks_spectrum *s)
{
    if (r->form == KS_LISTING_TABLE)
        add_table_row(r, checkpoint, s);
    else
        KS_TRY((r->form == KS_LISTING_JSON ? add_json : add_csv_row)(r, checkpoint, s));
    r->rows++;
    return ks_listing_flush(r);
}

ks_status ks_listing_end(struct ks_listing *r)
{
    ks_status status = ks_document_print(&r->statements, KS_DOCUMENT_WIDTH, r->out);

    if (status == KS_OK)
        status = ks_listing_flush(r);
    ks_document_clear(&r->table);
    ks_document_clear(&r->statements);
    ks_attributes_clear(&r->columns);
    return status;
}
