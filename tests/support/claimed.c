#include "claimed.h"

struct ks_results *study_results;

size_t study_seeds;

double metric[KS_TWELVE][MOST_SEEDS][ROWS][METRICS];

bool is_of(size_t number, enum ks_claim_factor factor, size_t level)
{
    size_t is[] = {number / 4, number / 2 % 2, number % 2};

    return is[factor] == level;
}

struct ks_result *run_of(size_t number, size_t seed)
{
    size_t architecture[KS_JUDGED];

    ks_twelve_find(study_results->study, architecture);
    assert_true(architecture[number] < study_results->study->n_architectures);
    return &study_results->run[architecture[number] * study_seeds + seed];
}

struct ks_spectrum **spectrum_at(struct spot at)
{
    return &run_of(at.number, at.seed)
                ->spectrum[at.analysis * study_results->study->n_checkpoints + 1 + at.time];
}

void lose_spectrum(struct spot at)
{
    struct ks_spectrum **s = spectrum_at(at);

    ks_spectrum_free(*s);
    *s = NULL;
}

void put(struct spot at, const char *name, double value)
{
    struct ks_spectrum *s = *spectrum_at(at);

    assert_non_null(s);
    for (size_t i = 0; i < s->statistics.n; i++)
        if (strcmp(s->statistics.list[i].name, name) == 0) {
            s->statistics.list[i].number = value;
            return;
        }
    ks_attribute_add_number(&s->statistics, name, value);
}

void put_paper(size_t number, size_t seed, const char *name, double decades)
{
    for (size_t t = 0; t < TIMES; t++)
        put((struct spot){XQC, number, seed, t}, name, pow(10, decades));
}

void put_sound(size_t number, size_t seed, double low, double high)
{
    for (size_t t = 0; t < TIMES; t++) {
        struct spot at = {STANDARD, number, seed, t};

        put(at, "kappa_q99_lower", pow(10, low));
        put(at, "kappa_q99_upper", pow(10, high));
        put(at, "directions_1e2_lower", pow(10, 4 - high));
        put(at, "directions_1e2_upper", pow(10, 4 - low));
    }
}

void put_level(size_t number, size_t seed, double decades)
{
    put_paper(number, seed, "kappa", decades);
    put_sound(number, seed, decades, decades);
}

static void put_spectra(struct ks_result *run)
{
    const struct ks_study *s = study_results->study;
    static const char *const names[] = {"kappa",
                                        "kappa_q99_lower",
                                        "kappa_q99_upper",
                                        "directions_1e2_lower",
                                        "directions_1e2_upper",
                                        "lambda_max",
                                        "lambda_max_upper",
                                        "kurtosis",
                                        "kurtosis_spectral",
                                        "lambda_min",
                                        "noise_floor"};

    assert_ok(ks_pool_alloc(&study_results->pool, s->n_analyses * s->n_checkpoints,
                            sizeof *run->spectrum, &run->spectrum));
    for (size_t i = 0; i < s->n_analyses * s->n_checkpoints; i++) {
        assert_ok(ks_alloc(1, sizeof **run->spectrum, &run->spectrum[i]));
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            ks_attribute_add_number(&run->spectrum[i]->statistics, names[k], 1);
    }
    run->complete = true;
}

/* Returns rise from 10 to 100. */
static void put_returns(struct ks_result *run)
{
    const struct ks_study *s = study_results->study;

    assert_ok(
        ks_pool_alloc(&study_results->pool, s->n_evaluations, sizeof *run->returns, &run->returns));
    for (size_t k = 0; k < s->n_evaluations; k++)
        run->returns[k] = k + 1 < s->n_evaluations ? 10 : 100;
}

void claimed_new(const char *architectures, size_t seeds, const char *more)
{
    struct ks_results *r = NULL;

    write_text("study.study",
               text_of("[study]\nenv = toy\narchitectures = %s\nseeds = 0..%zu\nsteps = 48\n"
                       "[train]\ncheckpoints = 12\nrandom_steps = 1\nevaluations = 2\n%s",
                       architectures, seeds - 1, more));
    assert_ok(ks_alloc(1, sizeof *r, &r));
    study_results = r;
    study_seeds = seeds;
    memset(metric, 0, sizeof metric);
    assert_ok(ks_copy_string(scratch_folder, &r->dir));
    assert_ok(ks_study_read(scratch("study.study"), KS_STUDY_SHOW, &r->own_study));
    r->study = r->own_study;
    assert_int_equal(r->study->n_checkpoints, TIMES + 1);
    assert_int_equal(r->study->checkpoint[0], r->study->first_update);
    r->n_runs = r->study->n_architectures * seeds;
    assert_ok(ks_pool_alloc(&r->pool, r->n_runs, sizeof *r->run, &r->run));
    assert_ok(
        ks_pool_alloc(&r->pool, r->study->n_architectures, sizeof *r->included, &r->included));
    assert_ok(
        ks_pool_alloc(&r->pool, TIMES + 1, sizeof *r->common_checkpoint, &r->common_checkpoint));
    assert_ok(ks_pool_alloc(&r->pool, r->study->n_evaluations, sizeof *r->common_evaluation,
                            &r->common_evaluation));
    memset(r->included, true, r->study->n_architectures * sizeof *r->included);
    memset(r->common_checkpoint, true, (TIMES + 1) * sizeof *r->common_checkpoint);
    memset(r->common_evaluation, true, r->study->n_evaluations * sizeof *r->common_evaluation);
    for (size_t n = 0; n < r->n_runs; n++) {
        r->run[n].architecture = n / seeds;
        r->run[n].seed = n % seeds;
        put_spectra(&r->run[n]);
        put_returns(&r->run[n]);
    }
}

int claimed_end(void **state)
{
    ks_results_free(study_results);
    study_results = NULL;
    return scratch_remove(state);
}

/* Writes progress.csv of all runs: a row before the first update, then one at each checkpoint. */
static void write_progress(void)
{
    const struct ks_study *s = study_results->study;
    size_t architecture[KS_JUDGED];

    ks_twelve_find(s, architecture);
    for (size_t k = 0; k < KS_TWELVE; k++)
        for (size_t i = 0; i < study_seeds && architecture[k] < s->n_architectures; i++) {
            char text[4096] = "env_step,critic_param_norm,critic_grad_norm,"
                              "critic_effective_lr\n2,1e9,0,1e-9\n";

            for (size_t t = 0; t < ROWS; t++)
                snprintf(text + strlen(text), sizeof text - strlen(text), "%zu,%.12g,%.12g,%.12g\n",
                         s->checkpoint[1 + t], pow(10, metric[k][i][t][PARAM_NORM]),
                         pow(10, metric[k][i][t][GRAD_NORM]),
                         pow(10, metric[k][i][t][EFFECTIVE_LR]));
            write_text(text_of("runs/toy/%s/seed%zu/progress.csv",
                               s->architecture[architecture[k]].name, s->seed[i]),
                       text);
        }
}

void put_return(size_t number, size_t seed, double last)
{
    run_of(number, seed)->returns[study_results->study->n_evaluations - 1] = last;
}

void put_growth(size_t number, size_t seed, size_t which, double decades)
{
    for (size_t t = 0; t < ROWS; t++)
        metric[number][seed][t][which] = t < ROWS / 2 ? 0 : decades;
}

const struct ks_claims *judge(size_t resamples)
{
    static struct ks_claims claims;

    write_progress();
    assert_ok(ks_claims_judge(study_results, resamples, &claims));
    return &claims;
}

const struct ks_paper_claim *claim_named(const char *name)
{
    for (size_t i = 0; i < KS_CLAIMS; i++)
        if (strcmp(ks_paper_claims[i].name, name) == 0)
            return &ks_paper_claims[i];
    fail_msg("no claim is called %s", name);
    return NULL;
}

const struct ks_claim_row *row_of(const struct ks_claims *claims, const char *name,
                                  enum ks_claim_statistic statistic)
{
    const struct ks_claim_row *row = ks_claims_row(claims, claim_named(name), statistic);

    if (!row)
        fail_msg("%s has no row %s", name, ks_claim_statistic_names[statistic]);
    return row;
}

const char *table_text(const char *name, const struct ks_summary_table *results)
{
    const struct ks_tables tables = {.r = study_results, .table = results};
    const struct ks_table_file *file = ks_table_files;
    FILE *out = fopen(scratch("table"), "w");
    struct ks_table table = {0};

    assert_non_null(out);
    while (strcmp(file->name, name) != 0)
        file++;
    ks_table_columns(&table, file->columns);
    assert_ok(file->all(&tables, &table));
    ks_table_print(&table, out);
    ks_table_free(&table);
    assert_int_equal(fclose(out), 0);
    return file_text("table");
}

void put_levels(enum ks_claim_factor factor, size_t level, double decades)
{
    for (size_t k = 0; k < KS_TWELVE; k++)
        for (size_t i = 0; i < study_seeds && is_of(k, factor, level); i++)
            put_level(k, i, decades);
}

void put_paper_world(void)
{
    put_levels(KS_FACTOR_NORMALIZATION, KS_BN, 2);
    put_levels(KS_FACTOR_NORMALIZATION, KS_LN, 4);
    put_levels(KS_FACTOR_NORMALIZATION, KS_DENSE, 4);
}

static int make_seeds(void **state, size_t seeds)
{
    int failed = scratch_make(state);

    claimed_new(ALL_TWELVE, seeds, XQC_ANALYSIS);
    return failed;
}

int make_one(void **state)
{
    return make_seeds(state, 1);
}

int make_three(void **state)
{
    return make_seeds(state, 3);
}

void assert_reason(const struct ks_claims *claims, const char *name,
                   enum ks_claim_statistic statistic, const char *expected)
{
    char text[KS_CLAIM_REASON];

    ks_claims_reason(claims, row_of(claims, name, statistic), text);
    assert_string_equal(text, expected);
}
