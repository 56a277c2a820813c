/* Verdicts on the further claims of the paper, whose rules are of 2026-11-26, on studies whose
 * verdicts are known. */
#include "claimed.h"

static void put_returns_of(double best, double others)
{
    FOR_RUNS(k, i)
        put_return(k, i, k == BEST ? best : others);
}

/* --- the highest return --- */

TEST_THREE_SEEDS(test_highest_return)
{
    const struct ks_claim_row *row;

    put_returns_of(100, 50);
    row = row_of(judge(0), "all-three-highest", KS_CLAIM_PAPER);
    assert_close(row->found.effect_low, 1, 0);
    assert_close(row->found.effect_high, 1, 0);
    assert_close(row->found.p, pow(12, -3), 1e-15);
    assert_word(judge(0), "all-three-highest", KS_CLAIM_SOUND, "supported");
    for (size_t i = 0; i < 3; i++)
        put_return(RIVAL, i, 124);
    assert_word(judge(0), "all-three-highest", KS_CLAIM_PAPER, "not decided"); /* not 1.25 times */
    for (size_t i = 0; i < 3; i++)
        put_return(RIVAL, i, 126);
    assert_word(judge(0), "all-three-highest", KS_CLAIM_PAPER, "not supported");
}

/* Returns of policies that have not learned, at most twice those at the start, say nothing. */
TEST_THREE_SEEDS(test_returns_without_learning)
{
    put_returns_of(100, 19);
    assert_word(judge(0), "all-three-highest", KS_CLAIM_PAPER, "not decided");
    put_returns_of(100, 21);
    assert_word(judge(0), "all-three-highest", KS_CLAIM_PAPER, "supported");
    put_return(LONE, 0, 0); /* has no logarithm: the seed is left out */
    assert_int_equal(row_of(judge(0), "all-three-highest", KS_CLAIM_PAPER)->found.seeds, 2);
}

/* --- distances --- */

TEST_THREE_SEEDS(test_far_below)
{
    const struct ks_claim_row *row;

    put_levels(KS_FACTOR_NORMALIZATION, KS_BN, 2);
    put_levels(KS_FACTOR_NORMALIZATION, KS_LN, 3);
    put_levels(KS_FACTOR_NORMALIZATION, KS_DENSE, 5); /* the median of the eight: 4 */
    row = row_of(judge(0), "all-three-far-below", KS_CLAIM_PAPER);
    assert_close(row->found.effect_low, 2, 1e-12);
    assert_close(row->found.p, pow(9, -3), 1e-15);
    assert_word(judge(0), "all-three-far-below", KS_CLAIM_PAPER, "supported");
    assert_word(judge(0), "all-three-far-below", KS_CLAIM_SECOND, "supported");
    put_level(BEST, 1, 2.1); /* in one seed it is 1.9 */
    assert_word(judge(0), "all-three-far-below", KS_CLAIM_PAPER, "not decided");
    for (size_t i = 0; i < 3; i++)
        put_level(BEST, i, 2.1);
    assert_word(judge(0), "all-three-far-below", KS_CLAIM_PAPER, "not supported");
    put_sound(BEST, 0, 1.9, 2.1); /* intervals: from 1.9 to 2.1 */
    row = row_of(judge(0), "all-three-far-below", KS_CLAIM_SOUND);
    assert_close(row->found.effect_low, 1.9, 1e-12);
    assert_close(row->found.effect_high, 2.1, 1e-12);
    assert_word(judge(0), "all-three-far-below", KS_CLAIM_SOUND, "not decided");
}

TEST_ONE_SEED(test_far_below_with_one_seed)
{
    put_paper_world();
    put_level(BEST, 0, 3.9);
    assert_word(judge(0), "all-three-far-below", KS_CLAIM_PAPER, "same direction");
    put_level(BEST, 0, 4.1);
    assert_word(judge(0), "all-three-far-below", KS_CLAIM_PAPER, "opposite direction");
}

static int make_with_simba_v2(void **state)
{
    int failed = scratch_make(state);

    claimed_new("all simba-v2", 3, XQC_ANALYSIS);
    return failed;
}

static void put_simba_v2(double decades)
{
    put_paper_world();
    for (size_t i = 0; i < study_seeds; i++) {
        put_level(BEST, i, 1);
        put_level(KS_SIMBA_V2, i, decades);
    }
}

TEST_WITH(test_simba_v2, make_with_simba_v2, claimed_end)
{
    put_simba_v2(1.4); /* the other eleven are at 2 and 4 */
    assert_close(row_of(judge(0), "simba-v2-near", KS_CLAIM_PAPER)->found.p, pow(12, -3), 1e-15);
    assert_word(judge(0), "simba-v2-near", KS_CLAIM_PAPER, "supported");
    put_simba_v2(1.6);
    assert_word(judge(0), "simba-v2-near", KS_CLAIM_PAPER, "not supported");
    put_simba_v2(1.4);
    put_level(KS_SIMBA_V2, 2, 1.6);
    assert_word(judge(0), "simba-v2-near", KS_CLAIM_PAPER, "not decided");
    for (size_t i = 0; i < 3; i++)
        put_sound(KS_SIMBA_V2, i, 1.3, 1.7); /* intervals that contain the threshold */
    assert_word(judge(0), "simba-v2-near", KS_CLAIM_SOUND, "not decided");
    put_simba_v2(0.5); /* lower still is as good */
    assert_word(judge(0), "simba-v2-near", KS_CLAIM_SOUND, "supported");
}

/* Spectra that are not comparable end the claims that need their critic, and no others. */
TEST_WITH(test_simba_v2_apart, make_with_simba_v2, claimed_end)
{
    struct ks_results *r = study_results;
    const struct ks_claims *claims;
    KS_OWNED char *text = NULL;
    size_t architecture[KS_JUDGED], size;
    FILE *out;

    put_simba_v2(1.4);
    FOR_RUNS(k, i)
        put_return(k, i, 100 - (double)k);
    ks_twelve_find(r->study, architecture);
    assert_ok(ks_pool_alloc(&r->pool, r->study->n_analyses * r->study->n_architectures,
                            sizeof *r->conditions, &r->conditions));
    for (size_t a = 0; a < r->study->n_architectures; a++)
        r->conditions[a].group = a == architecture[KS_SIMBA_V2] ? 2 : 1;
    r->n_groups = 2;
    claims = judge(0);
    assert_null(ks_claims_row(claims, claim_named("simba-v2-near"), KS_CLAIM_PAPER));
    assert_false(isnan(row_of(claims, "kappa-and-return", KS_CLAIM_PAPER)->found.p));
    out = open_memstream(&text, &size);
    ks_claims_print(claims, out);
    fclose(out);
    assert_contains(text, "claims cannot be judged, because these spectra are not comparable with "
                          "the others: simba-v2: simba-v2-");
    r->conditions[architecture[BEST]].group = 2;
    assert_true(judge(0)->apart[BEST]);
}

TEST_THREE_SEEDS(test_study_without_simba_v2)
{
    const struct ks_claims *claims = judge(0);

    assert_null(ks_claims_row(claims, claim_named("simba-v2-near"), KS_CLAIM_PAPER));
    assert_true(claims->lacks[KS_SIMBA_V2]);
}

/* --- negative eigenvalues --- */

static void put_smallest(size_t analysis, double smallest, double floor)
{
    FOR_RUNS(k, i)
        for (size_t t = 0; t < TIMES; t++) {
            struct spot at = {analysis, k, i, t};

            put(at, "lambda_min", smallest);
            put(at, "noise_floor", floor);
        }
}

/* One spectrum in each seed is enough, if the eigenvalue lies below minus the noise floor. */
TEST_THREE_SEEDS(test_negative_eigenvalues)
{
    const struct ks_claim_row *row;

    put_smallest(STANDARD, -0.1, 0.2);
    put_smallest(XQC, -0.1, 0.2);
    assert_word(judge(0), "negative-eigenvalues", KS_CLAIM_SOUND, "not decided");
    for (size_t i = 0; i < 3; i++)
        put((struct spot){STANDARD, RIVAL, i, 3}, "lambda_min", -0.3);
    row = row_of(judge(0), "negative-eigenvalues", KS_CLAIM_SOUND);
    assert_close(row->found.effect_low, 1. / (KS_TWELVE * TIMES), 1e-12);
    assert_true(isnan(row->found.p));
    assert_string_equal(ks_verdict_names[row->verdict], "supported");
    assert_word(judge(0), "negative-eigenvalues", KS_CLAIM_PAPER, "not decided");
    assert_null(ks_claims_row(judge(0), claim_named("negative-eigenvalues"), KS_CLAIM_SECOND));
    put((struct spot){STANDARD, RIVAL, 1, 3}, "lambda_min", 0.1);
    assert_word(judge(0), "negative-eigenvalues", KS_CLAIM_SOUND, "not decided");
    put_smallest(STANDARD, -0.3, NAN); /* without a noise floor nothing is known */
    assert_int_equal(row_of(judge(0), "negative-eigenvalues", KS_CLAIM_SOUND)->found.seeds, 0);
}

/* --- quantities of progress.csv --- */

static void put_all(size_t which, enum ks_claim_factor factor, size_t level, double decades)
{
    FOR_RUNS(k, i)
        if (is_of(k, factor, level))
            put_growth(k, i, which, decades);
}

/* Falls by 0.4 decades without WN; with WN it falls, too: then by how much more. */
TEST_THREE_SEEDS(test_falling_learning_rate)
{
    const char *name = "effective-lr-falls-without-wn";

    put_all(EFFECTIVE_LR, KS_FACTOR_WEIGHT_NORMALIZATION, 0, -0.4);
    assert_close(row_of(judge(0), name, KS_CLAIM_PAPER)->found.effect_low, 0.4, 1e-9);
    assert_word(judge(0), name, KS_CLAIM_PAPER, "supported");
    put_all(EFFECTIVE_LR, KS_FACTOR_WEIGHT_NORMALIZATION, 1, -0.2);
    assert_close(row_of(judge(0), name, KS_CLAIM_PAPER)->found.effect_low, 0.2, 1e-9);
    assert_word(judge(0), name, KS_CLAIM_PAPER, "not supported");
    put_all(EFFECTIVE_LR, KS_FACTOR_WEIGHT_NORMALIZATION, 1, 0.5);
    put_all(EFFECTIVE_LR, KS_FACTOR_WEIGHT_NORMALIZATION, 0, 0);
    assert_close(row_of(judge(0), name, KS_CLAIM_PAPER)->found.effect_low, 0, 1e-9);
}

static void put_metric(size_t which, enum ks_claim_factor factor, size_t level, double decades)
{
    FOR_RUNS(k, i)
        for (size_t t = 0; t < ROWS && is_of(k, factor, level); t++)
            metric[k][i][t][which] = decades;
}

/* Growing and shrinking count alike; what happens without WN does not count. */
TEST_THREE_SEEDS(test_constant_norm)
{
    const char *name = "norm-constant-with-wn";

    put_all(PARAM_NORM, KS_FACTOR_WEIGHT_NORMALIZATION, 0, 3);
    put_all(PARAM_NORM, KS_FACTOR_WEIGHT_NORMALIZATION, 1, -0.04);
    assert_close(row_of(judge(0), name, KS_CLAIM_PAPER)->found.effect_low, -0.04, 1e-9);
    assert_word(judge(0), name, KS_CLAIM_PAPER, "supported");
    put_all(PARAM_NORM, KS_FACTOR_WEIGHT_NORMALIZATION, 1, 0.05);
    assert_word(judge(0), name, KS_CLAIM_PAPER, "not supported");
    put_all(PARAM_NORM, KS_FACTOR_WEIGHT_NORMALIZATION, 1, -0.05);
    assert_word(judge(0), name, KS_CLAIM_PAPER, "not supported");
}

/* Minus a size is never above 0: directions go by the threshold. */
TEST_ONE_SEED(test_constant_norm_with_one_seed)
{
    assert_word(judge(0), "norm-constant-with-wn", KS_CLAIM_PAPER, "same direction");
    put_all(PARAM_NORM, KS_FACTOR_WEIGHT_NORMALIZATION, 1, 0.05);
    assert_word(judge(0), "norm-constant-with-wn", KS_CLAIM_PAPER, "opposite direction");
}

/* A mean over all cells of little more than the threshold is enough, but not with little less in
 * the cell that the paper shows. */
TEST_THREE_SEEDS(test_cell_of_the_paper)
{
    static const struct {
        const char *claim;
        size_t metric;
        enum ks_claim_factor factor;
        size_t level, cell; /* of the run that is said to change; the paper's */
        double by, less;    /* enough, and too little in that cell            */
        bool growth;
    } paper[] = {
        {"effective-lr-falls-without-wn", EFFECTIVE_LR, KS_FACTOR_WEIGHT_NORMALIZATION, 0,
         KS_TWELVE_OF(KS_BN, 0, KS_CE), -0.31, -0.29, true},
        {"mse-gradient-tenfold", GRAD_NORM, KS_FACTOR_LOSS, KS_MSE, KS_TWELVE_OF(KS_BN, 1, KS_MSE),
         0.71, 0.69, true},
        {"mse-effective-lr-tenfold", EFFECTIVE_LR, KS_FACTOR_LOSS, KS_MSE,
         KS_TWELVE_OF(KS_BN, 1, KS_MSE), 0.71, 0.69, true},
        {"ce-gradient-far-below", GRAD_NORM, KS_FACTOR_LOSS, KS_MSE, KS_TWELVE_OF(KS_BN, 1, KS_MSE),
         2.1, 1.9, false},
        {"norm-constant-with-wn", PARAM_NORM, KS_FACTOR_WEIGHT_NORMALIZATION, 1, BEST, 0.04, 0.042,
         true},
        {"ln-larger-effective-lr", EFFECTIVE_LR, KS_FACTOR_NORMALIZATION, KS_LN,
         KS_TWELVE_OF(KS_LN, 1, KS_CE), 0.31, 0.29, false},
    };

    for (size_t n = 0; n < sizeof paper / sizeof *paper; n++) {
        memset(metric, 0, sizeof metric);
        if (paper[n].growth)
            put_all(paper[n].metric, paper[n].factor, paper[n].level, paper[n].by);
        else
            put_metric(paper[n].metric, paper[n].factor, paper[n].level, paper[n].by);
        assert_true(row_of(judge(0), paper[n].claim, KS_CLAIM_PAPER)->found.in_favour);
        for (size_t i = 0; i < 3; i++)
            for (size_t t = 0; t < ROWS; t++)
                if (!paper[n].growth || t >= ROWS / 2)
                    metric[paper[n].cell][i][t][paper[n].metric] = paper[n].less;
        assert_false(row_of(judge(0), paper[n].claim, KS_CLAIM_PAPER)->found.in_favour);
    }
}
