/* Verdicts on claims about ranks; the table and the printed words. */
#include "claimed.h"

#include "results/correlation.h"

/* --- all-three-lowest --- */

/* bn+wn+ce is at 1 decade, the others at 3. */
static void put_best_lowest(void)
{
    FOR_RUNS(k, i)
        put_level(k, i, k == BEST ? 1 : 3);
}

static const struct ks_claim_row *lowest(enum ks_claim_statistic statistic)
{
    return row_of(judge(0), "all-three-lowest", statistic);
}

static void assert_lowest(enum ks_claim_statistic statistic, double least, double most,
                          const char *word)
{
    const struct ks_claim_row *row = lowest(statistic);

    assert_close(row->found.effect_low, least, 0);
    assert_close(row->found.effect_high, most, 0);
    assert_string_equal(ks_verdict_names[row->verdict], word);
}

TEST_THREE_SEEDS(test_lowest_of_twelve)
{
    put_best_lowest();
    assert_lowest(KS_CLAIM_PAPER, 1, 1, "supported");
    assert_lowest(KS_CLAIM_SOUND, 1, 1, "supported");
    assert_close(lowest(KS_CLAIM_PAPER)->found.p, pow(12, -3), 1e-15);
    put_level(RIVAL, 2, 1); /* a tie in one seed: rank 1 or 2; ranks 1 1 2: 4 of 12^3 */
    assert_lowest(KS_CLAIM_PAPER, 1, 2, "not decided");
    assert_close(lowest(KS_CLAIM_PAPER)->found.p, 4 * pow(12, -3), 1e-15);
}

/* Intervals: what is not resolved may be lower or not. */
TEST_THREE_SEEDS(test_ranks_of_intervals)
{
    put_best_lowest();
    put_sound(BEST, 0, 0.5, 3.5); /* overlaps all others */
    assert_lowest(KS_CLAIM_SOUND, 1, 12, "not decided");
    put_sound(BEST, 0, 3.5, 4); /* above all others, but in one seed only */
    assert_lowest(KS_CLAIM_SOUND, 1, 12, "not decided");
    put_sound(BEST, 0, 1, 1);
    for (size_t t = 0; t < TIMES; t++) /* directions from 0 to infinity: a level without an end */
        put((struct spot){STANDARD, RIVAL, 0, t}, "directions_1e2_lower", t % 2 ? 0 : 1);
    assert_lowest(KS_CLAIM_SECOND, 1, 1, "supported");
    for (size_t t = 0; t < TIMES; t++)
        put((struct spot){STANDARD, RIVAL, 0, t}, "directions_1e2_upper", NAN);
    assert_lowest(KS_CLAIM_SECOND, 1, 2, "not decided");
}

/* "Not supported": the same other architecture is lower by more than 0.301 in every seed. */
TEST_THREE_SEEDS(test_another_is_lowest)
{
    put_best_lowest();
    for (size_t i = 0; i < 3; i++)
        put_level(RIVAL, i, 0.69);
    assert_lowest(KS_CLAIM_PAPER, 2, 2, "not supported");
    put_level(RIVAL, 1, 0.71); /* lower by 0.29 only */
    assert_lowest(KS_CLAIM_PAPER, 2, 2, "not decided");
    put_level(RIVAL, 1, 1.5);
    put_level(LONE, 1, 0.5); /* another one */
    assert_lowest(KS_CLAIM_PAPER, 2, 2, "not decided");
}

/* An infinite kappa of all: nothing is known about the ranks. */
TEST_THREE_SEEDS(test_undefined_levels)
{
    put_best_lowest();
    for (size_t t = 0; t < TIMES; t++)
        for (size_t k = 0; k < KS_TWELVE; k++)
            put((struct spot){XQC, k, 0, t}, "kappa", t % 2 ? 0 : INFINITY);
    assert_lowest(KS_CLAIM_PAPER, 1, 12, "not decided"); /* levels of minus and plus infinity */
}

TEST_ONE_SEED(test_lowest_with_one_seed)
{
    put_best_lowest();
    assert_lowest(KS_CLAIM_PAPER, 1, 1, "same direction");
    assert_true(isnan(lowest(KS_CLAIM_PAPER)->found.p));
    put_level(RIVAL, 0, 0.9); /* no threshold */
    assert_lowest(KS_CLAIM_PAPER, 2, 2, "opposite direction");
    put_level(RIVAL, 0, 1);
    assert_lowest(KS_CLAIM_PAPER, 1, 2, "not resolved");
    for (size_t t = 0; t < 7; t++)
        put((struct spot){XQC, LONE, 0, t}, "kappa", NAN); /* one of the twelve does not count */
    assert_int_equal(lowest(KS_CLAIM_PAPER)->found.seeds, 0);
    assert_string_equal(ks_verdict_names[lowest(KS_CLAIM_PAPER)->verdict], "not resolved");
}

/* --- constancy --- */

/* In bn+wn+ce the gradient's norm changes by `best` decades, elsewhere by 1. */
static void put_growths(double best)
{
    FOR_RUNS(k, i)
        put_growth(k, i, GRAD_NORM, k == BEST ? best : 1);
}

static const struct ks_claim_row *constancy(void)
{
    return row_of(judge(0), "gradient-constant", KS_CLAIM_PAPER);
}

TEST_THREE_SEEDS(test_constant)
{
    put_growths(-0.3); /* shrinking counts like growing */
    assert_close(constancy()->found.effect_high, 0.3, 1e-9);
    assert_close(constancy()->found.p, pow(12, -3), 1e-15);
    assert_word(judge(0), "gradient-constant", KS_CLAIM_PAPER, "supported");
    put_growth(BEST, 1, GRAD_NORM, 0.31); /* in one seed it is not constant */
    assert_word(judge(0), "gradient-constant", KS_CLAIM_PAPER, "not decided");
    put_growths(0.31);
    assert_word(judge(0), "gradient-constant", KS_CLAIM_SOUND, "not supported");
}

/* All are constant: then bn+wn+ce does not stand out. Ties get the larger rank. */
TEST_THREE_SEEDS(test_constant_like_all_others)
{
    assert_close(constancy()->found.effect_high, 0, 0);
    assert_close(constancy()->found.p, 1, 1e-12);
    assert_word(judge(0), "gradient-constant", KS_CLAIM_PAPER, "not decided");
    put_growths(0.2);
    for (size_t i = 0; i < 3; i++)
        put_growth(RIVAL, i, GRAD_NORM, -0.1); /* rank 2 in each seed: 3 ranks sum to at most 6 */
    assert_close(constancy()->found.p, 20 / 1728., 1e-15); /* C(6, 3) */
}

TEST_THREE_SEEDS(test_undefined_growth)
{
    put_growths(0.1);
    for (size_t t = 0; t < ROWS; t++)
        metric[BEST][1][t][GRAD_NORM] = -400; /* 0: minus infinity minus minus infinity */
    assert_true(isnan(constancy()->found.effect_low));
    assert_close(constancy()->found.p, ks_rank_sum_p(3, 12, 14), 1e-15); /* 1 + 12 + 1 */
    assert_word(judge(0), "gradient-constant", KS_CLAIM_PAPER, "not decided");
}

/* Another architecture's undefined growth has rank 12, which is not below that of bn+wn+ce. */
TEST_THREE_SEEDS(test_undefined_growth_of_another)
{
    put_growths(0.1);
    for (size_t t = 0; t < ROWS; t++)
        metric[RIVAL][1][t][GRAD_NORM] = -400;
    assert_close(constancy()->found.p, pow(12, -3), 1e-15);
}

TEST_ONE_SEED(test_constancy_with_one_seed)
{
    put_growths(0.3);
    assert_word(judge(0), "gradient-constant", KS_CLAIM_PAPER, "same direction");
    put_growths(0.31);
    assert_word(judge(0), "gradient-constant", KS_CLAIM_PAPER, "opposite direction");
    metric[BEST][0][0][GRAD_NORM] = metric[BEST][0][1][GRAD_NORM] = -400;
    metric[BEST][0][ROWS - 2][GRAD_NORM] = metric[BEST][0][ROWS - 1][GRAD_NORM] = -400;
    assert_word(judge(0), "gradient-constant", KS_CLAIM_PAPER, "not resolved");
}

/* --- texts --- */

static const char *printed(void)
{
    FILE *file = fopen(scratch("said"), "w");

    assert_non_null(file);
    ks_claims_print(judge(0), file);
    assert_int_equal(fclose(file), 0);
    return file_text("said");
}

TEST_THREE_SEEDS(test_table)
{
    const char *text;

    put_best_lowest();
    text = table_text("claims", &(struct ks_summary_table){.claims = *judge(0)});
    assert_ptr_equal(strstr(text,
                            "claim,statistic,seeds,units,effect_low,effect_high,theta,p,p_holm,"
                            "verdict,plot,within,survives,rules,reason,starts,by_start,"
                            "effect_least,effect_most\n"),
                     text);
    assert_contains(text, "\nall-three-lowest,paper,3,3,1,1,0.301,0.0005787037037,");
    assert_contains(text, ",supported,Figure 4 and kappa_return,-,survives,2026-11-22,-,1,"
                          "one start vector,1,1\n");
    assert_contains(text, "\nln-outliers-large,sound,3,12,0,0,0.301,");
    assert_null(strstr(text, "\nln-outliers-large,second,"));
    assert_contains(text, "\ngradient-constant,second,3,3,0,0,0.301,1,1,not decided,Figure "
                          "8 and norms,-,open,2026-11-22,adjusted p above 0.05,0,-,-,-\n");
}

TEST_THREE_SEEDS(test_printed_words)
{
    const char *text;

    put_best_lowest();
    text = printed();
    assert_contains(text, "\nall-three-lowest               supported           supported      "
                          "     supported           survives\n");
    assert_null(strstr(text, "fewer"));
    ks_results_free(study_results);
    claimed_new("bn+wn+ce bn+ce ln+ce ln+wn+ce dense+ce dense+wn+ce bn+mse", 2, "");
    text = printed();
    assert_contains(text, "28 of the paper's 28 claims cannot be judged, because the study "
                          "lacks bn+wn+mse, ln+mse, ln+wn+mse, dense+mse, dense+wn+mse, "
                          "simba-v2.\n");
    ks_results_free(study_results);
    claimed_new("ln+mse ln+ce ln+wn+mse ln+wn+ce bn+mse bn+ce bn+wn+mse bn+wn+ce", 2, "");
    text = printed();
    assert_contains(text, "lacks dense+ce, dense+mse, dense+wn+ce, dense+wn+mse, simba-v2: "
                          "bn-below-none, bn-steadier-than-none, ce-below-mse, ");
    assert_contains(text, "With fewer than 3 seeds there are directions and no verdicts.");
    assert_contains(text, "compat = xqc, which the study lacks.");
    assert_null(strstr(text, "A run counts"));
}
