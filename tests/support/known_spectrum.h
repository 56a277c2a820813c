/* Spectra that a test completes by hand and the tables of a finished study that has them. */
#ifndef KS_KNOWN_SPECTRUM_H
#define KS_KNOWN_SPECTRUM_H

#include "finished_study.h"

#include "io/csv.h"

/* A spectrum of one probe with this Jacobi matrix, which a test completes and writes. */
struct known {
    struct ks_attribute attribute[21], start, summary[14];
    struct ks_spectrum s;
    double alpha[4], beta[4], ritz[4], weight[4], residual[4];
    int64_t steps[1];
};

static inline void make_known(struct known *k, const struct place *place)
{
    const double ritz[] = {-4, -0.001, 1, 100}, weight[] = {0.1, 0.6, 0.2, 0.1};

    memset(k, 0, sizeof *k);
    set_attributes(k->attribute, place);
    set_statistics(k->summary, place, 7);
    set_string(&k->start, "start", "random");
    memcpy(k->ritz, ritz, sizeof ritz);
    memcpy(k->weight, weight, sizeof weight);
    for (size_t i = 0; i < 4; i++) { /* the Laplacian of a path */
        k->alpha[i] = 2;
        k->beta[i] = -1;
    }
    k->steps[0] = 4;
    k->s = (struct ks_spectrum){.attributes = {k->attribute, 21, 21},
                                .statistics = {k->summary, 14, 14},
                                .lanczos = {&k->start, 1, 1},
                                .probes = 1,
                                .order = 4,
                                .alpha = k->alpha,
                                .beta = k->beta,
                                .steps = k->steps,
                                .ritz = k->ritz,
                                .weight = k->weight,
                                .residual = k->residual};
}

static inline void write_known(struct known *k, const struct place *place)
{
    char path[256];

    spectrum_path(place, path);
    tree_write(path, "");
    assert_ok(ks_spectrum_write(tree_path(path), &k->s));
}

static inline struct ks_csv *make_table(const char *name, size_t resamples)
{
    struct outcome o = outcome_new(resamples);
    struct ks_csv *csv = NULL;
    char path[64];

    assert_ok(ks_tables_write(o.results, &o.table, resamples));
    outcome_free(&o);
    snprintf(path, sizeof path, "tables/%s.csv", name);
    assert_ok(ks_csv_read(tree_path(path), false, &csv));
    return csv;
}

/* A cell as text, and as a number; "-" is NaN. */
static const char *cell(const struct ks_csv *csv, size_t row, const char *name)
{
    size_t column;

    assert_ok(ks_csv_column(csv, name, &column));
    return ks_csv_cell(csv, row, column);
}

static inline double number(const struct ks_csv *csv, size_t row, const char *name)
{
    const char *text = cell(csv, row, name);

    return strcmp(text, "-") == 0 ? NAN : strtod(text, NULL);
}

#endif
