/* Verdicts on studies with one seed, with missing runs or analyses, with other architectures, and
 * with a control. */
#include "claimed.h"

/* --- fewer than three seeds, and runs that are missing --- */

TEST_ONE_SEED(test_one_seed)
{
    const struct ks_claims *claims;

    put_levels(KS_FACTOR_NORMALIZATION, KS_BN, 2);
    put_levels(KS_FACTOR_NORMALIZATION, KS_LN, 2.1);
    put_levels(KS_FACTOR_NORMALIZATION, KS_DENSE, 1.9);
    put_sound(BEST, 0, 2.05, 2.15); /* LN - BN: from 0.05 - in one of four cells - on */
    put_sound(KS_TWELVE_OF(KS_BN, 0, KS_CE), 0, 1.5, 2.6);
    claims = judge(0);
    assert_word(claims, "bn-below-ln", KS_CLAIM_PAPER, "same direction"); /* no threshold */
    assert_word(claims, "bn-below-none", KS_CLAIM_PAPER, "opposite direction");
    assert_word(claims, "ce-below-mse", KS_CLAIM_PAPER, "not resolved"); /* equal */
    assert_word(claims, "bn-below-ln", KS_CLAIM_SOUND, "not resolved");
    assert_true(isnan(row_of(claims, "bn-below-ln", KS_CLAIM_PAPER)->found.p));
    assert_true(isnan(row_of(claims, "bn-below-ln", KS_CLAIM_PAPER)->p_holm));
    assert_string_equal(ks_claims_survival(claims, claim_named("bn-below-ln")), "open");
}

/* Removes the spectra of a run from this checkpoint after the first update on. */
static void lose_spectra(struct spot at)
{
    for (; at.time < TIMES; at.time++)
        lose_spectrum(at);
}

static void lose_run(size_t analysis, size_t number, size_t seed)
{
    lose_spectra((struct spot){analysis, number, seed, 0});
}

/* A seed that lacks one run is left out of the claims that need it, in all cells. */
TEST_THREE_SEEDS(test_seed_that_lacks_a_run)
{
    const struct ks_claims *claims;

    put_paper_world();
    for (size_t k = 0; k < KS_TWELVE; k++)
        if (is_of(k, KS_FACTOR_NORMALIZATION, KS_LN))
            put_level(k, 1, 9); /* does not count */
    lose_run(XQC, KS_TWELVE_OF(KS_LN, 1, KS_CE), 1);
    claims = judge(0);
    assert_int_equal(row_of(claims, "bn-below-ln", KS_CLAIM_PAPER)->found.seeds, 2);
    assert_int_equal(row_of(claims, "bn-below-ln", KS_CLAIM_PAPER)->found.units, 8);
    assert_close(row_of(claims, "bn-below-ln", KS_CLAIM_PAPER)->found.effect_low, 2, 1e-12);
    assert_word(claims, "bn-below-ln", KS_CLAIM_PAPER, "same direction");
    assert_int_equal(row_of(claims, "bn-below-none", KS_CLAIM_PAPER)->found.seeds, 3);
    assert_int_equal(row_of(claims, "bn-below-ln", KS_CLAIM_SOUND)->found.seeds, 3);
    assert_int_equal(row_of(claims, "ce-below-mse", KS_CLAIM_PAPER)->found.units, 12);
}

TEST_ONE_SEED(test_missing_analysis)
{
    static const size_t seeds[] = {1, 3};

    for (size_t n = 0; n < 2; n++) {
        const struct ks_claims *claims;

        ks_results_free(study_results);
        claimed_new(ALL_TWELVE, seeds[n], "");
        claims = judge(0);
        for (size_t i = 0; i < claims->n; i++) {
            const struct ks_claim_row *row = &claims->row[i];

            if (row->statistic != KS_CLAIM_PAPER || ks_claim_is_number(row->claim->quantity))
                continue;
            assert_int_equal(row->found.seeds, 0);
            assert_true(isnan(row->found.effect_low) && isnan(row->found.effect_high));
            assert_string_equal(ks_verdict_names[row->verdict],
                                n == 0 ? "not resolved" : "not decided");
        }
        assert_word(claims, "bn-below-ln", KS_CLAIM_SOUND,
                    n == 0 ? "not resolved" : "not supported");
    }
}

/* --- why there is no verdict --- */

/* Of all runs only the first `n` checkpoints after the first update have a spectrum. */
static void keep_checkpoints(size_t analysis, size_t n)
{
    FOR_RUNS(k, i)
        lose_spectra((struct spot){analysis, k, i, n});
}

/* Of all runs only two rows of progress.csv remain; judges the study again. */
static struct ks_claims judge_two_rows(void)
{
    struct ks_claims claims;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        char name[16];

        ks_twelve_name(k, name);
        write_text(text_of("runs/toy/%s/seed0/progress.csv", name),
                   "env_step,critic_grad_norm\n4,1\n8,1\n");
    }
    assert_ok(ks_claims_judge(study_results, 0, &claims));
    return claims;
}

TEST_ONE_SEED(test_reasons_with_one_seed)
{
    const struct ks_claims *claims = judge(0);
    struct ks_claims two_rows;

    assert_reason(claims, "bn-below-ln", KS_CLAIM_PAPER, "one seed; direction unclear");
    assert_reason(claims, "gradient-constant", KS_CLAIM_PAPER, ""); /* same direction */
    keep_checkpoints(XQC, 1);
    claims = judge(0);
    assert_reason(claims, "bn-below-ln", KS_CLAIM_PAPER, "one checkpoint; needs four");
    assert_reason(claims, "bn-below-ln", KS_CLAIM_SOUND, "one seed; direction unclear");
    keep_checkpoints(STANDARD, 3);
    claims = judge(0);
    assert_reason(claims, "kappa-and-return", KS_CLAIM_SECOND, "three checkpoints; needs four");
    two_rows = judge_two_rows();
    assert_reason(&two_rows, "gradient-constant", KS_CLAIM_PAPER,
                  "two rows of progress.csv; needs four");
    ks_results_free(study_results);
    claimed_new(ALL_TWELVE, 1, "");
    claims = judge(0);
    assert_reason(claims, "bn-below-ln", KS_CLAIM_PAPER, "no analysis with compat = xqc");
    assert_reason(claims, "mse-gradient-grows", KS_CLAIM_PAPER, "one seed; direction unclear");
}

TEST_THREE_SEEDS(test_reasons_with_three_seeds)
{
    const struct ks_claims *claims;

    lose_run(XQC, BEST, 1);
    claims = judge(0);
    assert_reason(claims, "bn-below-ln", KS_CLAIM_PAPER, "two seeds; needs three");
    assert_reason(claims, "bn-below-ln", KS_CLAIM_SOUND, ""); /* not supported */
    lose_run(XQC, BEST, 0);
    lose_run(XQC, LONE, 2);
    claims = judge(0);
    assert_reason(claims, "ce-below-mse", KS_CLAIM_PAPER, "no seed is complete");
}

/* --- the control --- */

/* With 512 rows BN is two decades lower, with the rows of the loss it is as LN: the control says
 * that the rows made the difference. It takes only BN from its analysis. */
TEST_THREE_SEEDS(test_control)
{
    enum { CONTROL = 2 };
    const struct ks_claims *claims;

    assert_null(ks_claims_row(judge(0), claim_named("bn-below-ln"), KS_CLAIM_CONTROL));
    ks_results_free(study_results);
    claimed_new(ALL_TWELVE, 3,
                "[analyze both]\nbatchnorm = loss\ncompat = xqc\n[analyze rows]\nbatchnorm = "
                "loss\n");
    put_paper_world();
    FOR_RUNS(k, i)
        for (size_t t = 0; t < TIMES; t++) {
            struct spot at = {CONTROL, k, i, t};
            double value = is_of(k, KS_FACTOR_NORMALIZATION, KS_BN) ? 1e4 : 1e9;

            put(at, "kappa_q99_lower", value);
            put(at, "kappa_q99_upper", value);
        }
    claims = judge(0);
    assert_word(claims, "bn-below-ln", KS_CLAIM_SOUND, "supported");
    assert_word(claims, "bn-below-ln", KS_CLAIM_CONTROL, "not supported");
    assert_close(row_of(claims, "bn-below-ln", KS_CLAIM_CONTROL)->found.effect_low, 0, 1e-12);
    assert_close(row_of(claims, "bn-below-ln", KS_CLAIM_CONTROL)->found.theta, 1, 0);
    assert_null(ks_claims_row(claims, claim_named("ce-below-mse"), KS_CLAIM_CONTROL));
    assert_null(ks_claims_row(claims, claim_named("all-three-lowest"), KS_CLAIM_CONTROL));
}

/* --- studies of other architectures --- */

TEST_ONE_SEED(test_other_architectures)
{
    const struct ks_claims *claims;
    size_t judged = 0;

    ks_results_free(study_results);
    claimed_new("ln+mse ln+ce ln+wn+mse ln+wn+ce bn+mse bn+ce bn+wn+mse bn+wn+ce", 3, XQC_ANALYSIS);
    claims = judge(0);
    for (size_t i = 0; i < KS_CLAIMS; i++)
        judged += !claims->skipped[i];
    assert_int_equal(judged, 6); /* those that compare BN with LN */
    assert_int_equal(claims->n, 3 * 3 + 3 * 2);
    assert_word(claims, "bn-below-ln", KS_CLAIM_PAPER, "not supported");
    assert_null(ks_claims_row(claims, claim_named("bn-below-none"), KS_CLAIM_PAPER));
    assert_false(claims->lacks[BEST]);
    assert_true(claims->lacks[LONE]);
}
