/* Folders of finished studies, whose spectra have statistics and returns made by hand. */
#ifndef KS_TEST_STUDIES_H
#define KS_TEST_STUDIES_H

#include <fcntl.h>

#include "gnuplots.h"

#include "core/process.h"
#include "io/spectrum.h"
#include "report/plots.h"
#include "report/study_report.h"
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
void attribute_number(struct ks_attribute *a, const char *name, double value);
void attribute_integer(struct ks_attribute *a, const char *name, int64_t value);
void attribute_string(struct ks_attribute *a, const char *name, const char *value);

struct place {
    const char *architecture;
    size_t seed, step;
    const char *analysis; /* NULL: the standard analysis */
};

/* The name of its file, until 15 other texts have been formatted. */
const char *spectrum_path(const struct place *place);

/* `zero`: all Ritz values are 0. */
void write_spectrum_at(const char *path, const struct place *place, double kappa, bool zero);
void write_spectrum(const struct place *place, double kappa, bool zero);
static const char RETURNS[] = "env_step,update,critic_loss,return_mean\n"
                              "0,0,nan,10\n2,0,nan,nan\n4,2,0.5,\n6,4,0.5,20\n8,6,0.5,nan\n"
                              "12,10,0.5,%d\n";
void write_returns(const char *architecture, size_t seed, const char *text);

/* A finished study: its last returns are 100, 200, 300, 400. */
int make_study(void **state);
#define TEST_IN_STUDY(name) TEST_WITH(name, make_study, scratch_remove)

/* Spectra of [analyze NAME] for all seeds: of this operator and layer (-1: all), with a sharpness
 * ratio. */
void write_operator(const char *architecture, const char *name, const char *operator,
                    int64_t layer);

/* The runs of [variant NAME]; they record the architecture that it changes. The last returns are 8.
 */
void write_variant(const char *name, const char *architecture);
void set_study(const char *more);

void remove_spectrum(const struct place *place);

/* The runs of an architecture have finished, but none of their checkpoints could be analyzed. */
void remove_spectra(const char *architecture);

struct outcome {
    struct ks_results *results;
    struct ks_summary_table table;
};

/* Lives until seven others have been read. */
struct outcome *outcome_new(size_t resamples);
void assert_warned(const struct ks_results *r, const char *words);

/* A spectrum of one probe with this Jacobi matrix, which a test completes and writes. */
struct known {
    struct ks_attribute attribute[21], start, summary[14];
    struct ks_spectrum s;
    double alpha[4], beta[4], ritz[4], weight[4], residual[4];
    int64_t steps[1];
};

void make_known(struct known *k, const struct place *place);
void write_known(struct known *k, const struct place *place);

/* Writes the tables of the study in the folder; returns one of them, as read_csv. */
const struct ks_csv *make_table(const char *name, size_t resamples);

void assert_starts(const char *name, const char *magic);

void plot_study(size_t resamples);

#endif
