/* Makes the folder of a finished study: spectra with statistics made by hand, returns. */
#ifndef KS_FINISHED_STUDY_H
#define KS_FINISHED_STUDY_H

#include "tree.h"

#include "core/path.h"
#include "io/spectrum.h"
#include "report/plots.h"
#include "report/tables.h"
#include "results/results.h"

enum { SEEDS = 4, CHECKPOINTS = 3 };

/* The four seeds and three checkpoints of test_aggregate.c's hand values, and one checkpoint before
 * the first update, which is not pooled. */
static const double KAPPA[SEEDS][CHECKPOINTS] = {
    {100, 200, 400}, {50, 1000, 800}, {10, 20, 1e6}, {300, 300, 300}};
static const size_t STEP[CHECKPOINTS + 1] = {2, 4, 8, 12}; /* the milestones of STUDY */

static const char STUDY[] =
    "[study]\nenv = toy\narchitectures = ln+mse bn+wn+ce\nseeds = 0..3\n"
    "steps = 12\n%s[train]\ncheckpoints = 3\nrandom_steps = 1\nevaluations = 2\n";

static inline void set_number(struct ks_attribute *a, const char *name, double value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_NUMBER;
    a->number = value;
}

static inline void set_integer(struct ks_attribute *a, const char *name, int64_t value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_INTEGER;
    a->integer = value;
}

static inline void set_string(struct ks_attribute *a, const char *name, const char *value)
{
    snprintf(a->name, sizeof a->name, "%s", name);
    a->type = KS_ATTRIBUTE_STRING;
    a->string = (char *)(uintptr_t)value; /* not freed: the spectrum is on the stack */
}

struct place {
    const char *architecture;
    size_t seed, step;
    const char *analysis; /* NULL: the standard analysis */
};

static inline void spectrum_path(const struct place *place, char path[256])
{
    snprintf(path, 256, "runs/toy/%s/seed%zu/step_%09zu%s%s.spectrum.h5", place->architecture,
             place->seed, place->step, place->analysis ? "." : "",
             place->analysis ? place->analysis : "");
}

static inline void set_attributes(struct ks_attribute a[21], const struct place *place)
{
    set_string(a++, "checkpoint", "some.h5");
    set_string(a++, "checkpoint_sha256",
               "0000000000000000000000000000000000000000000000000000000000000000");
    set_string(a++, "operator", "hessian");
    set_string(a++, "batchnorm", "train");
    set_string(a++, "loss_kind", ks_path_ends(place->architecture, "+ce") ? "ce" : "mse");
    set_string(a++, "precision", "f64");
    set_integer(a++, "order", 4);
    set_integer(a++, "probes", 2);
    set_integer(a++, "probe_seed", 0);
    set_integer(a++, "dimension", 100);
    set_number(a++, "weight_decay", 0);
    set_number(a++, "scale", 1);
    set_integer(a++, "batches", 1);
    set_integer(a++, "critic", -1);
    set_integer(a++, "layer", -1);
    set_string(a++, "env", "toy");
    set_string(a++, "architecture", place->architecture);
    set_integer(a++, "seed", (int64_t)place->seed);
    set_integer(a++, "env_step", (int64_t)place->step);
    set_integer(a++, "update", place->step > 2 ? (int64_t)place->step - 2 : 0);
    set_number(a++, "return_mean", 1);
}

static inline void set_statistics(struct ks_attribute a[14], const struct place *place,
                                  double kappa)
{
    set_number(&a[0], "kappa", kappa);
    set_number(&a[1], "kappa_lower_bound", 7);
    set_number(&a[2], "kappa_effective_bound", 9);
    set_number(&a[3], "lambda_max", 0.5 * kappa);
    set_number(&a[4], "kurtosis", 3);
    set_number(&a[5], "zero_mass", 0.5);
    set_number(&a[6], "zero_mass_lower", 0.25);
    set_number(&a[7], "zero_mass_upper", 0.75);
    set_number(&a[8], "directions_1e2_lower", 20 + (double)place->seed);
    set_number(&a[9], "directions_1e2_upper", 30 + 2 * (double)place->seed);
    set_number(&a[10], "kappa_q99_lower", 123.45);
    set_number(&a[11], "kappa_q99_upper", place->seed < 2 ? 234.51 : NAN);
    set_number(&a[12], "kappa_gradient_90_lower", place->seed == 1 ? NAN : INFINITY);
    set_number(&a[13], "kappa_gradient_90_upper", place->seed == 1 ? NAN : INFINITY);
}

/* `zero`: all Ritz values are 0. */
static inline void write_spectrum_at(const char *path, const struct place *place, double kappa,
                                     bool zero)
{
    /* the second probe starts at the gradient: all its weight is on one Ritz value */
    double ritz[] = {-0.5, 0, 2, 50, -90, 0, 2, 80};
    double weight[] = {0.25, 0.5, 0.125, 0.125, 0, 0, 0, 1}, none[8] = {0};
    double alpha[] = {2, 2, 2, 2, 2, 2, 2, 2}, beta[] = {-1, -1, -1, -1, -1, -1, -1, -1};
    double grid[] = {-1, 0, 50}, density[] = {0, 0.5, 0};
    double at[] = {-50, -1, 1, 50}, lower[] = {0, 0.01, 0.9, 1}, upper[] = {0, 0.04, 0.95, 1};
    int64_t steps[] = {4, 4};
    struct ks_attribute attribute[21] = {0}, start = {0}, statistics[14] = {0};
    struct ks_spectrum s = {.attributes = {attribute, 21, 21},
                            .statistics = {statistics, 14, 14},
                            .lanczos = {&start, 1, 1},
                            .probes = 2,
                            .order = 4,
                            .alpha = alpha,
                            .beta = beta,
                            .steps = steps,
                            .ritz = ritz,
                            .weight = weight,
                            .residual = none,
                            .n_grid = 3,
                            .grid = grid,
                            .density = density,
                            .symlog_grid = grid,
                            .symlog_density = density,
                            .n_band = 4,
                            .band_at = at,
                            .band_lower = lower,
                            .band_upper = upper};

    if (zero) {
        memset(ritz, 0, sizeof ritz);
        memset(grid, 0, sizeof grid);
        memset(density, 0, sizeof density);
    }
    set_attributes(attribute, place);
    set_statistics(statistics, place, kappa);
    set_string(&start, "start", "random gradient");
    tree_write(path, ""); /* creates its folder */
    assert_ok(ks_spectrum_write(tree_path(path), &s));
}

static inline void write_spectrum(const struct place *place, double kappa, bool zero)
{
    char path[256];

    spectrum_path(place, path);
    write_spectrum_at(path, place, kappa, zero);
}

static const char RETURNS[] = "env_step,update,critic_loss,return_mean\n"
                              "0,0,nan,10\n2,0,nan,nan\n4,2,0.5,\n6,4,0.5,20\n8,6,0.5,nan\n"
                              "12,10,0.5,%d\n";

static inline void write_returns(const char *architecture, size_t seed, const char *text)
{
    char path[256];

    snprintf(path, sizeof path, "runs/toy/%s/seed%zu/progress.csv", architecture, seed);
    tree_write(path, text);
}

/* A finished study: its last returns are 100, 200, 300, 400. */
static inline int make_study(void **state)
{
    static const char *const architectures[] = {"ln+mse", "bn+wn+ce"};
    char text[1024];

    if (tree_make(state) != 0)
        return -1;
    snprintf(text, sizeof text, STUDY, "");
    tree_write("study.study", text);
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < SEEDS; i++) {
            for (size_t k = 0; k <= CHECKPOINTS; k++)
                write_spectrum(&(struct place){architectures[a], i, STEP[k], NULL},
                               k == 0 ? 1e9 : KAPPA[i][k - 1] * (a == 0 ? 10 : 1), false);
            snprintf(text, sizeof text, RETURNS, (int)(100 * (i + 1)));
            write_returns(architectures[a], i, text);
        }
    return 0;
}

/* The runs of [variant NAME]; they record the architecture that it changes. The last returns are 8.
 */
static inline void write_variant(const char *name, const char *architecture)
{
    for (size_t i = 0; i < SEEDS; i++) {
        for (size_t k = 0; k <= CHECKPOINTS; k++) {
            char path[256];

            spectrum_path(&(struct place){name, i, STEP[k], NULL}, path);
            write_spectrum_at(path, &(struct place){architecture, i, STEP[k], NULL}, 5, false);
        }
        write_returns(name, i,
                      "env_step,update,critic_loss,return_mean\n0,0,nan,1\n6,4,1,2\n"
                      "12,10,1,8\n");
    }
}

static inline void set_study(const char *more)
{
    char text[1024];

    snprintf(text, sizeof text, STUDY, more);
    tree_write("study.study", text);
}

/* The runs of an architecture have finished, but none of their checkpoints could be analyzed. */
static inline void remove_spectra(const char *architecture)
{
    char path[256];

    for (size_t i = 0; i < SEEDS; i++) {
        snprintf(path, sizeof path, "runs/toy/%s/seed%zu/run.json", architecture, i);
        tree_write(path, "{\"state\": \"finished\"}\n");
        for (size_t k = 0; k <= CHECKPOINTS; k++) {
            spectrum_path(&(struct place){architecture, i, STEP[k], NULL}, path);
            assert_int_equal(unlink(tree_path(path)), 0);
        }
    }
}

struct outcome {
    struct ks_results *results;
    struct ks_summary_table table;
};

static inline struct outcome outcome_new(size_t resamples)
{
    struct outcome o = {NULL, {0}};

    assert_ok(ks_results_read(tree, NULL, &o.results));
    assert_ok(ks_summary_table(o.results, resamples, &o.table));
    return o;
}

static inline void outcome_free(struct outcome *o)
{
    free(o->table.row);
    ks_results_free(o->results);
}

static inline void assert_warned(const struct ks_results *r, const char *words)
{
    for (size_t i = 0; i < r->n_warnings; i++)
        if (strstr(r->warning[i], words))
            return;
    fail_msg("no warning says '%s'", words);
}

#endif
