/* Verdicts by the paper's statistic from several start vectors of Lanczos, and by the rules of
 * 2026-11-27, which were written when the results of earlier runs were known. */
#include "claimed.h"

enum { XQC1 = XQC + 1, XQC2 };

static int make_starts(void **state)
{
    int failed = scratch_make(state);

    claimed_new(ALL_TWELVE, 3,
                "[analyze xqc]\ncompat = xqc\n[analyze xqc1]\ncompat = xqc\nseed = 1\n"
                "[analyze xqc2]\nseed = 2\ncompat = xqc\nno-certificates = 1\n"
                "[analyze shorter]\ncompat = xqc\nseed = 3\norder = 20\n");
    return failed;
}

static void put_kappa(size_t analysis, size_t number, double decades)
{
    for (size_t i = 0; i < study_seeds; i++)
        for (size_t t = 0; t < TIMES; t++)
            put((struct spot){analysis, number, i, t}, "kappa", pow(10, decades));
}

/* bn+wn+ce is lowest from the start vectors 0 and 2, second from 1. */
static void put_three_starts(void)
{
    for (size_t k = 0; k < KS_TWELVE; k++)
        for (size_t a = XQC; a <= XQC2; a++)
            put_kappa(a, k, k == BEST ? 2 : 3);
    put_kappa(XQC1, RIVAL, 1);
}

static const struct ks_claim_row *lowest(enum ks_claim_statistic statistic)
{
    return row_of(judge(0), "all-three-lowest", statistic);
}

static void begin_all(const char *day)
{
    FOR_RUNS(k, i)
        snprintf(run_of(k, i)->began, sizeof run_of(k, i)->began, "%s", day);
}

/* The headline stays that of the first start vector; beside it, how often each word comes, and the
 * range of the effect. What differs in more than the seed is no start vector. */
TEST_WITH(test_words_of_each_start, make_starts, claimed_end)
{
    const struct ks_claim_row *row;
    char text[KS_CLAIM_STARTS_TEXT];

    put_three_starts();
    row = lowest(KS_CLAIM_PAPER);
    assert_string_equal(ks_verdict_names[row->verdict], "supported");
    assert_int_equal(row->starts.n, 3);
    assert_int_equal(row->starts.verdicts[KS_SUPPORTED], 2);
    assert_int_equal(row->starts.verdicts[KS_NOT_SUPPORTED], 1);
    ks_claims_starts(row, text);
    assert_string_equal(text, "3 start vectors: 2 supported and 1 not supported; 1 to 2");
    ks_claims_starts(lowest(KS_CLAIM_SOUND), text);
    assert_string_equal(text, "");
    ks_claims_starts(row_of(judge(0), "all-three-highest", KS_CLAIM_PAPER), text);
    assert_string_equal(text, ""); /* of returns */
}

TEST_THREE_SEEDS(test_one_start)
{
    char text[KS_CLAIM_STARTS_TEXT];
    const struct ks_claims *claims;

    ks_claims_starts(lowest(KS_CLAIM_PAPER), text);
    assert_string_equal(text, "one start vector");
    claims = judge(0);
    for (size_t i = 0; i < claims->n; i++) /* and no mean over several */
        assert_false(claims->row[i].statistic == KS_CLAIM_REVISED &&
                     claims->row[i].claim->quantity == KS_CLAIM_KAPPA);
}

/* The mean over the start vectors: 2 for bn+wn+ce, (3 + 1 + 3)/3 for the rival. Runs that began
 * before the rule get numbers and no verdict; one later seed is judged by itself. */
TEST_WITH(test_revised_kappa, make_starts, claimed_end)
{
    const struct ks_claim_row *row;

    put_three_starts();
    begin_all("2026-11-27");
    row = lowest(KS_CLAIM_REVISED);
    assert_string_equal(ks_verdict_names[row->verdict], "results known");
    assert_close(row->found.effect_high, 1, 0);
    assert_reason(judge(0), "all-three-lowest", KS_CLAIM_REVISED,
                  "every run is older than the rule");
    put_kappa(XQC1, RIVAL, -2); /* a mean of 4/3 */
    assert_close(lowest(KS_CLAIM_REVISED)->found.effect_high, 2, 0);
    for (size_t k = 0; k < KS_TWELVE; k++)
        snprintf(run_of(k, 2)->began, sizeof run_of(k, 2)->began, "2026-11-28");
    row = lowest(KS_CLAIM_REVISED);
    assert_int_equal(row->found.seeds, 1);
    assert_string_equal(ks_verdict_names[row->verdict], "opposite direction");
    begin_all("2026-12-01");
    assert_string_equal(ks_verdict_names[lowest(KS_CLAIM_REVISED)->verdict], "not supported");
}

/* The correlation is of the mean of the logarithms: from each start vector alone it is not -1. */
TEST_WITH(test_revised_correlation, make_starts, claimed_end)
{
    const struct ks_claim_row *row;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        const double x = 0.1 * (double)k, swap = k % 2 ? -0.3 : 0.3;

        put_kappa(XQC, k, 2 + x + swap);
        put_kappa(XQC1, k, 2 + x - swap);
        put_kappa(XQC2, k, 2 + x);
        for (size_t i = 0; i < 3; i++)
            put_return(k, i, 500 - 20 * (double)k);
    }
    begin_all("2026-12-01");
    row = row_of(judge(200), "kappa-and-return", KS_CLAIM_REVISED);
    assert_close(row->found.effect_low, -1, 1e-12);
    assert_string_equal(ks_verdict_names[row->verdict], "supported");
    row = row_of(judge(200), "kappa-and-return", KS_CLAIM_PAPER);
    assert_close(row->starts.effect_least, -1, 1e-12);
    assert_true(row->starts.effect_most > -0.95);
}

/* A norm that falls tenfold before a run has learned and stays then: the growth from the last row
 * before learning is a decade, from where the return has doubled it is zero. */
TEST_THREE_SEEDS(test_revised_growth)
{
    const struct ks_study *s = study_results->study;
    const size_t last = s->n_evaluations - 1;

    assert_true(s->n_evaluations == 3 && s->evaluation[1] > s->first_update);
    begin_all("2026-12-01");
    FOR_RUNS(k, i) {
        struct ks_result *run = run_of(k, i);

        run->returns[0] = 9 + (double)i, run->returns[1] = 21, run->returns[last] = 100; /* 10 */
        for (size_t t = 0; t < ROWS; t++)
            metric[k][i][t][GRAD_NORM] = t < 5 ? -1 : 0;
    }
    assert_close(row_of(judge(0), "gradient-constant", KS_CLAIM_PAPER)->found.effect_high, 1, 1e-9);
    assert_close(row_of(judge(0), "gradient-constant", KS_CLAIM_REVISED)->found.effect_high, 0,
                 1e-9);
    for (size_t late = 0; late < 2; late++) { /* learned never, or too late for four rows */
        FOR_RUNS(k, i)
            run_of(k, i)->returns[1] = 20, run_of(k, i)->returns[last] = late ? 100 : 20;
        assert_close(row_of(judge(0), "gradient-constant", KS_CLAIM_REVISED)->found.effect_high, 1,
                     1e-9);
    }
}

/* The cells from `from` on in the row of a claim and statistic. */
static void check_cells(const char *row, const char *from, const char *expected)
{
    const char *text = strstr(file_text("table"), row), *at;

    assert_non_null(text);
    at = strstr(text, from);
    assert_non_null(at);
    assert_int_equal(strncmp(at, expected, strlen(expected)), 0);
}

TEST_WITH(test_table_of_starts, make_starts, claimed_end)
{
    put_three_starts();
    begin_all("2026-11-27");
    table_text("claims", &(struct ks_summary_table){.claims = *judge(0)});
    check_cells("\nall-three-lowest,paper,", "2026-",
                "2026-11-22,-,3,3 start vectors: 2 supported and 1 not supported; 1 to 2,1,2\n");
    check_cells("\nall-three-lowest,sound,", ",0,-,", ",0,-,-,-\n");
    check_cells("\nall-three-lowest,revised,", "results known", "results known,Figure 4 and ");
    check_cells("\nall-three-lowest,revised,", "2026-", "2026-11-27,");
}
