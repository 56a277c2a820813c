/* Verdicts on claims about rank correlations with the return. */
#include "claimed.h"

#include "results/comparison.h"
#include "results/correlation.h"

/* Levels rise and returns fall from one architecture to the next, in all seeds. */
static void put_correlated(double sign)
{
    FOR_RUNS(k, i) {
        put_level(k, i, 2 + 0.1 * (double)k + 0.01 * (double)i);
        put_paper(k, i, "lambda_max", 0.1 * (double)k);
        put_return(k, i, 500 - sign * 20 * (double)k + (double)i);
    }
}

static const struct ks_claim_row *correlated(const char *name, enum ks_claim_statistic statistic)
{
    return row_of(judge(200), name, statistic);
}

TEST_THREE_SEEDS(test_correlated)
{
    const struct ks_claim_row *row;

    put_correlated(1);
    for (enum ks_claim_statistic s = 0; s < KS_CLAIM_CONTROL; s++) {
        row = correlated("kappa-and-return", s);
        assert_close(row->found.effect_low, -1, 1e-12);
        assert_close(row->found.effect_high, -1, 1e-12);
        assert_close(row->found.p, 1e-5, 1e-12); /* none of 99,999 permutations */
        assert_close(row->found.within, -1, 1e-12);
        assert_int_equal(row->found.units, 12);
        assert_string_equal(ks_verdict_names[row->verdict], "supported");
    }
    assert_word(judge(200), "lambda-max-and-return", KS_CLAIM_PAPER, "supported");
    /* the sound lambda_max is the same everywhere: there is no correlation */
    assert_true(isnan(correlated("lambda-max-and-return", KS_CLAIM_SOUND)->found.effect_low));
    assert_word(judge(200), "lambda-max-and-return", KS_CLAIM_SOUND, "not decided");
    /* without resamples there is no interval */
    assert_word(judge(0), "kappa-and-return", KS_CLAIM_PAPER, "not decided");
}

TEST_THREE_SEEDS(test_correlated_the_other_way)
{
    put_correlated(-1);
    assert_close(correlated("kappa-and-return", KS_CLAIM_SECOND)->found.effect_high, 1, 1e-12);
    for (enum ks_claim_statistic s = 0; s < KS_CLAIM_CONTROL; s++)
        assert_word(judge(200), "kappa-and-return", s, "not supported");
}

/* Of the two ends the worse one counts. */
TEST_THREE_SEEDS(test_ends_that_disagree)
{
    const struct ks_claim_row *row;

    put_correlated(1);
    FOR_RUNS(k, i)
        put_sound(k, i, 1 + 0.1 * (double)k, 5 - 0.1 * (double)k);
    row = correlated("kappa-and-return", KS_CLAIM_SOUND);
    assert_close(row->found.effect_low, -1, 1e-12);
    assert_close(row->found.effect_high, 1, 1e-12);
    assert_close(row->found.within, 1, 1e-12);
    assert_string_equal(ks_verdict_names[row->verdict], "not decided");
}

/* Fewer than six architectures more than double their return. */
TEST_THREE_SEEDS(test_policies_that_have_not_learned)
{
    for (size_t learned = 5; learned <= 6; learned++)
        for (int sign = -1; sign <= 1; sign += 2) {
            put_correlated(sign);
            for (size_t k = learned; k < KS_TWELVE; k++)
                for (size_t i = 0; i < 3; i++)
                    run_of(k, i)->returns[0] = 400;
            assert_word(judge(200), "kappa-and-return", KS_CLAIM_PAPER,
                        learned < 6 ? "not decided"
                        : sign > 0  ? "supported"
                                    : "not supported");
            FOR_RUNS(k, i)
                run_of(k, i)->returns[0] = 10;
        }
}

/* With all runs there, the numbers are those of correlation.csv. */
TEST_THREE_SEEDS(test_same_as_correlation_csv)
{
    const struct ks_study_analyses xqc = {.n = 1, .index = {XQC}};
    struct ks_comparison comparison;
    struct ks_correlation expected;
    const struct ks_claim_row *row;

    put_correlated(1);
    for (size_t i = 0; i < 3; i++) {
        put_paper(RIVAL, i, "kappa", 1 + (double)i);
        put_paper(LONE, i, "kappa", 3 - (double)i);
        put((struct spot){XQC, BEST, i, 2}, "kappa", NAN);
    }
    assert_ok(ks_comparison_new(study_results, 300, &comparison));
    assert_ok(ks_comparison_correlate(
        &comparison, &xqc, (struct ks_statistic_column){KS_STAT_KAPPA, KS_ITSELF}, &expected));
    row = row_of(judge(300), "kappa-and-return", KS_CLAIM_PAPER);
    assert_true(expected.spearman.value > -0.9);
    assert_close(row->found.effect_low, expected.spearman.value, 1e-12);
    assert_close(row->found.p, expected.p, 0);
    ks_pool_free(&comparison.pool);
}

/* A seed without a last return is left out in all twelve. */
TEST_THREE_SEEDS(test_seed_without_a_return)
{
    put_correlated(1);
    put_return(LONE, 2, NAN);
    assert_int_equal(correlated("kappa-and-return", KS_CLAIM_PAPER)->found.seeds, 2);
    assert_word(judge(200), "kappa-and-return", KS_CLAIM_PAPER, "same direction");
}

TEST_ONE_SEED(test_correlation_with_one_seed)
{
    put_correlated(1);
    assert_word(judge(200), "kappa-and-return", KS_CLAIM_SOUND, "same direction");
    assert_true(isnan(correlated("kappa-and-return", KS_CLAIM_SOUND)->found.p));
    put_correlated(-1);
    assert_word(judge(200), "kappa-and-return", KS_CLAIM_SECOND, "opposite direction");
    put_sound(0, 0, 1, 9);
    for (size_t k = 0; k < KS_TWELVE; k++)
        put_sound(k, 0, 1 + 0.1 * (double)k, 5 - 0.1 * (double)k);
    assert_word(judge(200), "kappa-and-return", KS_CLAIM_SOUND, "not resolved");
}
