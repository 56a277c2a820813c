/* Verdicts on claims about matched pairs, on studies whose verdicts are known. */
#include "claimed.h"

/* Three seeds of four cells: each of the twelve differences is 2. Of the 2^12 flips only one has a
 * sum as large as that of d - 1, so p = 2 / 2^12. */
TEST_THREE_SEEDS(test_supported)
{
    const struct ks_claims *claims;
    const struct ks_claim_row *row;

    put_paper_world();
    claims = judge(0);
    row = row_of(claims, "bn-below-ln", KS_CLAIM_PAPER);
    assert_int_equal(row->found.seeds, 3);
    assert_int_equal(row->found.units, 12);
    assert_close(row->found.effect_low, 2, 1e-12);
    assert_close(row->found.effect_high, 2, 1e-12);
    assert_close(row->found.theta, 1, 0);
    assert_close(row->found.p, 2 / 4096., 1e-15);
    assert_true(row->p_holm > row->found.p);
    assert_word(claims, "bn-below-ln", KS_CLAIM_PAPER, "supported");
    assert_word(claims, "bn-below-ln", KS_CLAIM_SOUND, "supported");
    assert_word(claims, "bn-below-ln", KS_CLAIM_SECOND, "supported");
    assert_word(claims, "bn-by-itself", KS_CLAIM_PAPER, "supported");
    assert_string_equal(ks_claims_survival(claims, claim_named("bn-below-ln")), "survives");
}

/* The difference is 0, which is below the threshold: the same p, the other way round. */
TEST_THREE_SEEDS(test_not_supported)
{
    const struct ks_claims *claims;

    put_levels(KS_FACTOR_NORMALIZATION, KS_BN, 4);
    put_levels(KS_FACTOR_NORMALIZATION, KS_LN, 4);
    claims = judge(0);
    assert_close(row_of(claims, "bn-below-ln", KS_CLAIM_PAPER)->found.p, 2 / 4096., 1e-15);
    assert_word(claims, "bn-below-ln", KS_CLAIM_PAPER, "not supported");
    assert_word(claims, "ce-below-mse", KS_CLAIM_PAPER, "not supported");
    assert_string_equal(ks_claims_survival(claims, claim_named("bn-below-ln")), "open");
}

/* The paper's statistic says so and the sound one the opposite. */
TEST_THREE_SEEDS(test_claim_that_does_not_survive)
{
    const struct ks_claims *claims;

    put_paper_world();
    FOR_RUNS(k, i)
        put_sound(k, i, 3, 3);
    claims = judge(0);
    assert_word(claims, "bn-below-ln", KS_CLAIM_PAPER, "supported");
    assert_word(claims, "bn-below-ln", KS_CLAIM_SOUND, "not supported");
    assert_string_equal(ks_claims_survival(claims, claim_named("bn-below-ln")), "does not survive");
    assert_string_equal(ks_claims_survival(claims, claim_named("ce-below-mse")), "open");
}

/* Sound intervals that contain the threshold: E_lo = 0.5, E_hi = 3.5. Then those whose upper ends
 * are not resolved, and exceed any threshold. */
TEST_THREE_SEEDS(test_intervals_that_decide_nothing)
{
    const struct ks_claims *claims;
    const struct ks_claim_row *row;

    FOR_RUNS(k, i)
        put_sound(k, i, is_of(k, KS_FACTOR_NORMALIZATION, KS_BN) ? 2 : 4,
                  is_of(k, KS_FACTOR_NORMALIZATION, KS_BN) ? 3.5 : 5.5);
    claims = judge(0);
    row = row_of(claims, "bn-below-ln", KS_CLAIM_SOUND);
    assert_close(row->found.effect_low, 0.5, 1e-12);
    assert_close(row->found.effect_high, 3.5, 1e-12);
    assert_word(claims, "bn-below-ln", KS_CLAIM_SOUND, "not decided");
    assert_reason(claims, "bn-below-ln", KS_CLAIM_SOUND, "threshold inside the interval");
    FOR_RUNS(k, i)
        for (size_t t = 0; t < TIMES; t++)
            put((struct spot){STANDARD, k, i, t}, "kappa_q99_upper", NAN);
    row = row_of(judge(0), "bn-below-ln", KS_CLAIM_SOUND);
    assert_close(row->found.effect_low, -10, 0);
    assert_close(row->found.effect_high, 10, 0);
}

/* An infinite kappa on both sides is no difference; on one side it is the largest that counts. */
TEST_THREE_SEEDS(test_infinite_kappa)
{
    const struct ks_claim_row *row;

    put_paper_world();
    FOR_RUNS(k, i)
        if (is_of(k, KS_FACTOR_NORMALIZATION, KS_LN))
            put_paper(k, i, "kappa", 400); /* pow(10, 400) = inf */
    row = row_of(judge(0), "bn-below-ln", KS_CLAIM_PAPER);
    assert_close(row->found.effect_low, 10, 0);
    assert_close(row->found.effect_high, 10, 0);
    FOR_RUNS(k, i)
        put_paper(k, i, "kappa", 400);
    row = row_of(judge(0), "bn-below-ln", KS_CLAIM_PAPER);
    assert_close(row->found.effect_low, -10, 0);
    assert_close(row->found.effect_high, 10, 0);
    assert_word(judge(0), "bn-below-ln", KS_CLAIM_PAPER, "not decided");
    assert_word(judge(0), "bn-steadier-than-ln", KS_CLAIM_PAPER, "not decided");
}

/* The mean effect is at least 1 and the p is small, but not without the last seed, whose effect is
 * 9: 0.9999 in the other two. Likewise for "not supported": below the threshold only because of one
 * seed. */
TEST_THREE_SEEDS(test_leaving_a_seed_out)
{
    for (int against = 0; against < 2; against++)
        for (int enough = 0; enough < 2; enough++) {
            struct ks_finding found;

            put_paper_world();
            FOR_RUNS(k, i)
                if (is_of(k, KS_FACTOR_NORMALIZATION, KS_LN))
                    put_level(k, i,
                              i == 2              ? (against ? 0 : 11)
                              : against != enough ? 3.0001
                                                  : 2.9999);
            found = row_of(judge(0), "bn-below-ln", KS_CLAIM_PAPER)->found;
            assert_true(against ? found.effect_high < 1 : found.effect_low > 3.6);
            if (!against && !enough) /* the four of the last seed keep their sign */
                assert_close(found.p, 2 * 256 / 4096., 1e-15);
            assert_int_equal(found.in_favour, enough && !against);
            assert_int_equal(found.against, enough && against);
        }
}

/* "By itself": the mean over the cells is 1.5 decades and the same in all seeds, but in the cell
 * without the other two components there is nothing. */
TEST_THREE_SEEDS(test_cell_of_the_claim_by_itself)
{
    const struct ks_claims *claims;

    put_paper_world();
    for (size_t i = 0; i < 3; i++)
        put_level(LONE, i, 2.2);
    claims = judge(0);
    assert_true(row_of(claims, "bn-below-none", KS_CLAIM_PAPER)->found.in_favour);
    assert_false(row_of(claims, "bn-by-itself", KS_CLAIM_PAPER)->found.in_favour);
    assert_word(claims, "bn-by-itself", KS_CLAIM_PAPER, "not decided");
    for (size_t i = 0; i < 3; i++)
        put_level(LONE, i, 2.4);
    claims = judge(0);
    assert_true(row_of(claims, "bn-by-itself", KS_CLAIM_PAPER)->found.in_favour);
}

/* Each factor has its own pairs. */
TEST_THREE_SEEDS(test_factors)
{
    const struct ks_claims *claims;

    FOR_RUNS(k, i)
        put_level(k, i,
                  5 - (is_of(k, KS_FACTOR_LOSS, KS_CE) ? 1 : 0) -
                      (is_of(k, KS_FACTOR_WEIGHT_NORMALIZATION, 1) ? 0.5 : 0));
    claims = judge(0);
    assert_int_equal(row_of(claims, "ce-below-mse", KS_CLAIM_PAPER)->found.units, 18);
    assert_close(row_of(claims, "ce-below-mse", KS_CLAIM_PAPER)->found.effect_low, 1, 1e-12);
    assert_close(row_of(claims, "wn-by-itself", KS_CLAIM_SOUND)->found.effect_low, 0.5, 1e-12);
    assert_close(row_of(claims, "bn-by-itself", KS_CLAIM_PAPER)->found.effect_low, 0, 1e-12);
    assert_word(claims, "ce-below-mse", KS_CLAIM_PAPER, "supported");
    assert_word(claims, "ce-by-itself", KS_CLAIM_SOUND, "supported");
    assert_word(claims, "wn-by-itself", KS_CLAIM_SECOND, "supported");
    assert_word(claims, "bn-below-none", KS_CLAIM_PAPER, "not supported");
}

/* Steadier: LN moves by 2 decades and BN by 1. */
TEST_THREE_SEEDS(test_range_over_training)
{
    const struct ks_claims *claims;

    FOR_RUNS(k, i)
        put((struct spot){XQC, k, i, 3}, "kappa",
            is_of(k, KS_FACTOR_NORMALIZATION, KS_BN) ? 10 : 0.01);
    claims = judge(0);
    assert_close(row_of(claims, "bn-steadier-than-ln", KS_CLAIM_PAPER)->found.effect_low, 1, 1e-12);
    assert_word(claims, "bn-steadier-than-ln", KS_CLAIM_PAPER, "supported");
    assert_word(claims, "bn-steadier-than-none", KS_CLAIM_PAPER, "supported");
    assert_word(claims, "bn-steadier-than-ln", KS_CLAIM_SOUND, "not supported");
}

/* Growing outliers: LN's lambda_max grows 10-fold. If BN's grows as much, the smaller of LN's
 * growth and the difference is 0. */
TEST_THREE_SEEDS(test_smaller_of_growth_and_difference)
{
    for (size_t bn = 0; bn < 2; bn++) {
        const struct ks_claims *claims;

        FOR_RUNS(k, i)
            for (size_t t = TIMES / 2; t < TIMES; t++)
                if (is_of(k, KS_FACTOR_NORMALIZATION, bn ? KS_BN : KS_LN))
                    put((struct spot){XQC, k, i, t}, "lambda_max", 10);
        claims = judge(0);
        assert_close(row_of(claims, "ln-outliers-grow", KS_CLAIM_PAPER)->found.effect_low,
                     bn ? 0 : 1, 1e-12);
        assert_word(claims, "ln-outliers-grow", KS_CLAIM_PAPER, bn ? "not supported" : "supported");
    }
    /* LN does not grow, BN shrinks: the difference is 1, LN's own growth 0 */
    FOR_RUNS(k, i)
        for (size_t t = 0; t < TIMES; t++)
            put((struct spot){XQC, k, i, t}, "lambda_max",
                is_of(k, KS_FACTOR_NORMALIZATION, KS_BN) && t >= TIMES / 2 ? 0.1 : 1);
    assert_close(row_of(judge(0), "ln-outliers-grow", KS_CLAIM_PAPER)->found.effect_low, 0, 1e-12);
}

/* Numbers of progress.csv count for all three statistics. */
TEST_THREE_SEEDS(test_metrics)
{
    const struct ks_claims *claims;

    FOR_RUNS(k, i) {
        if (is_of(k, KS_FACTOR_WEIGHT_NORMALIZATION, 0))
            put_growth(k, i, PARAM_NORM, 0.05);
        if (is_of(k, KS_FACTOR_LOSS, KS_MSE))
            put_growth(k, i, GRAD_NORM, 0.5);
    }
    claims = judge(0);
    for (enum ks_claim_statistic s = 0; s < KS_CLAIM_CONTROL; s++) {
        assert_close(row_of(claims, "norm-grows-without-wn", s)->found.effect_low, 0.05, 1e-9);
        assert_word(claims, "norm-grows-without-wn", s, "supported");
        assert_word(claims, "mse-gradient-grows", s, "supported");
    }
}

/* --- Holm's adjustment --- */

/* A raw p of 0.033 is not enough among so many claims. */
TEST_THREE_SEEDS(test_adjusted_p)
{
    const struct ks_claims *claims;
    const struct ks_claim_row *row;

    put_paper_world();
    put_level(KS_TWELVE_OF(KS_LN, 0, KS_CE), 0, 1); /* of d - 1, eleven are 1 and one is -2 */
    claims = judge(0);
    row = row_of(claims, "bn-below-ln", KS_CLAIM_PAPER);
    /* Their sum is 9. As large are: no flip; the flip of the -2 with up to two of the eleven, which
     * leaves 13, 11 or 9: 1 + 1 + 11 + 55 of 4096. */
    assert_close(row->found.p, 2 * 68 / 4096., 1e-15);
    assert_true(row->found.p < 0.05 && row->p_holm > 0.05);
    assert_true(row->found.in_favour);
    assert_word(claims, "bn-below-ln", KS_CLAIM_PAPER, "not decided");
}

/* "Not supported" needs the adjusted p as well. */
TEST_THREE_SEEDS(test_adjusted_p_against)
{
    const struct ks_claims *claims;
    const struct ks_claim_row *row;

    put_levels(KS_FACTOR_NORMALIZATION, KS_BN, 2);
    put_levels(KS_FACTOR_NORMALIZATION, KS_LN, 2);
    put_level(KS_TWELVE_OF(KS_LN, 0, KS_CE), 0, 5); /* of 1 - d, eleven are 1 and one is -2 */
    claims = judge(0);
    row = row_of(claims, "bn-below-ln", KS_CLAIM_PAPER);
    assert_close(row->found.p, 2 * 68 / 4096., 1e-15);
    assert_true(row->found.against && row->p_holm > 0.05);
    assert_word(claims, "bn-below-ln", KS_CLAIM_PAPER, "not decided");
}

static bool is_beside(const struct ks_claim_row *x, const struct ks_claim_row *y)
{
    return x->statistic == y->statistic && x->claim->family == y->claim->family;
}

/* Each family and statistic by itself, with the definition of the adjusted p. */
TEST_THREE_SEEDS(test_families)
{
    const struct ks_claims *claims;

    put_paper_world();
    for (size_t i = 0; i < 3; i++)
        put_level(KS_TWELVE_OF(KS_LN, 0, KS_CE), i, 2.5 + (double)i);
    claims = judge(100);
    for (size_t i = 0; i < claims->n; i++) {
        const struct ks_claim_row *row = &claims->row[i];
        double largest = 0, m = 0;

        for (size_t j = 0; j < claims->n; j++)
            m += is_beside(&claims->row[j], row) && !isnan(claims->row[j].found.p);
        for (size_t j = 0; j < claims->n; j++) {
            double p = claims->row[j].found.p, below = 0;

            if (!is_beside(&claims->row[j], row) || !(p <= row->found.p))
                continue;
            for (size_t k = 0; k < claims->n; k++)
                below += is_beside(&claims->row[k], row) && claims->row[k].found.p < p;
            largest = fmax(largest, fmin(1, (m - below) * p)); /* the first of equal p's counts */
        }
        if (isnan(row->found.p))
            assert_true(isnan(row->p_holm));
        else
            assert_close(row->p_holm, largest, 1e-12);
    }
}
