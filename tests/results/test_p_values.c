/* Adjusted p-values and rank sums against published values and enumeration. */
#include "test.h"

#include "results/correlation.h"

/* 0.01, 0.04, 0.03, 0.005: 0.005 times 4, 0.01 times 3, 0.03 times 2, and 0.04 times 1 is less than
 * the one before. R's p.adjust(p, "holm") gives the same. */
TEST(test_holm)
{
    const double p[] = {0.01, 0.04, 0.03, 0.005}, expected[] = {0.03, 0.06, 0.06, 0.02};
    double adjusted[4];

    assert_ok(ks_holm(4, p, adjusted));
    for (size_t i = 0; i < 4; i++)
        assert_close(adjusted[i], expected[i], 1e-15);
}

TEST(test_holm_without_tests)
{
    const double p[] = {0.4, NAN, 0.03, 0.6};
    double adjusted[4];

    assert_ok(ks_holm(4, p, adjusted));
    assert_close(adjusted[0], 0.8, 1e-15);
    assert_true(isnan(adjusted[1]));
    assert_close(adjusted[2], 0.09, 1e-15); /* three tests, not four */
    assert_close(adjusted[3], 0.8, 1e-15);
    assert_ok(ks_holm(2, (double[]){0.7, 0.8}, adjusted));
    assert_close(adjusted[0], 1, 0); /* never above 1 */
    assert_close(adjusted[1], 1, 0);
    assert_ok(ks_holm(0, NULL, adjusted));
}

/* All 12^3 triples of ranks. */
TEST(test_rank_sums_by_enumeration)
{
    for (size_t sum = 0; sum <= 36; sum++) {
        size_t hits = 0;

        for (size_t i = 0; i < 12 * 12 * 12; i++)
            hits += i % 12 + i / 12 % 12 + i / 144 + 3 <= sum;
        assert_close(ks_rank_sum_p(3, 12, sum), (double)hits / 1728, 1e-14);
    }
}

TEST(test_rank_sums_by_hand)
{
    assert_close(ks_rank_sum_p(3, 6, 4), 4 / 216., 1e-15); /* three dice */
    assert_close(ks_rank_sum_p(1, 12, 5), 5 / 12., 1e-15);
    assert_close(ks_rank_sum_p(5, 12, 5), pow(12, -5), 1e-18);
    assert_close(ks_rank_sum_p(5, 12, 4), 0, 0);
    assert_close(ks_rank_sum_p(5, 12, 60), 1, 1e-14);
    assert_close(ks_rank_sum_p(KS_RANK_SUM_TERMS, 12, 12 * KS_RANK_SUM_TERMS), 1, 1e-12);
}
