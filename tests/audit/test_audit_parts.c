/* The functions behind an audit: intervals, findings, layers, limits. test_audit.c tests the
 * program. */
#include "scratch.h"

#include "audit/audit.h"
#include "audit/several.h"
#include "io/attribute.h"

/* --- intervals --- */

TEST(test_ratios)
{
    const struct ks_interval a = {2, 3}, b = {4, 8}, open = {5, NAN}, none = {NAN, NAN};
    char text[KS_INTERVAL_TEXT];
    struct ks_interval r = ks_interval_ratio(a, b);

    assert_close(r.lower, 0.25, 0);
    assert_close(r.upper, 0.75, 0);
    r = ks_interval_ratio(a, open); /* the other one may be any number from 5 on */
    assert_true(isnan(r.lower));
    assert_close(r.upper, 0.6, 1e-15);
    r = ks_interval_ratio(open, a);
    assert_close(r.lower, 5. / 3, 1e-15);
    assert_true(isnan(r.upper));
    assert_string_equal(ks_interval_text(ks_interval_ratio(none, a), KS_BRACKETS_WHOLE, text),
                        "not resolved");
    assert_string_equal(ks_interval_text(open, KS_BRACKETS_WHOLE, text), "at least 5");
    assert_string_equal(
        ks_interval_text((struct ks_interval){1.2345, 2.3451}, KS_BRACKETS_WHOLE, text),
        "[1.23, 2.35]");
    assert_string_equal(ks_interval_text((struct ks_interval){2818, 9086}, KS_BRACKETS_WHOLE, text),
                        "[2818, 9086]");
    assert_string_equal(ks_interval_text((struct ks_interval){0, 0}, KS_BRACKETS_WHOLE, text),
                        "[0, 0]");
    r = ks_statistic_resolved(
        KS_STAT_KAPPA_Q99,
        (struct ks_interval){1, NAN}); /* that a ratio is at least 1 says nothing */
    assert_string_equal(ks_interval_text(r, KS_BRACKETS_WHOLE, text), "not resolved");
    r = ks_statistic_resolved(KS_STAT_DIRECTIONS_1E2, (struct ks_interval){1, NAN});
    assert_string_equal(ks_interval_text(r, KS_BRACKETS_WHOLE, text), "at least 1");
}

/* --- findings --- */

/* What is printed as "at least" is not larger than the number, what is printed as "at most" not
 * smaller: the learning rate is chosen so that rounding to the nearest would be wrong. */
TEST(test_rounding)
{
    struct ks_spectrum s = {.probes = 0};
    struct ks_audit a = {.n_layers = 0};
    struct ks_document d = {.n = 0};
    bool negative = false, steps = false;

    for (int i = 0; i < KS_AUDIT_SPECTRA; i++)
        a.spectrum[i] = &s;
    ks_attribute_add_number(&s.statistics, "lambda_max", 1);
    ks_attribute_add_number(&s.statistics, "lambda_max_upper", 1);
    ks_attribute_add_number(&s.statistics, "lambda_min", -0.9969);
    ks_attribute_add_number(&s.statistics, "lambda_min_lower", -0.9969);
    ks_attribute_add_number(&s.statistics, "noise_floor", 1e-6);
    ks_attribute_add_number(&s.statistics, "sharpness_ratio", 2.2269);
    ks_audit_findings(&a, &d);
    assert_ok(d.status);
    for (size_t i = 0; i < d.n; i++) {
        negative |= strstr(d.block[i].text, "at most -0.996. Its size is at least 99%") != NULL;
        steps |= strstr(d.block[i].text, "are unstable. ") &&
                 strstr(d.block[i].text, ": [2.22, 2.23].");
    }
    assert_true(negative && steps);
    ks_document_clear(&d);
    ks_attributes_clear(&s.statistics);
}

static void assert_cells(const struct ks_block *row, const char *expected)
{
    char text[256] = "";

    for (size_t i = 0; i < row->n; i++) {
        strcat(text, row->cell[i].text);
        strcat(text, "|");
    }
    assert_string_equal(text, expected);
}

/* Shares of a trace exist only if no layer's trace is negative. */
TEST(test_shares)
{
    struct ks_layer_row layers[] = {{.number = 0,
                                     .kind = "dense",
                                     .dimension = 5,
                                     .lambda_max = -0.12341,
                                     .kappa_effective_bound = 7.7777,
                                     .trace_share = 0.25},
                                    {.number = 2,
                                     .kind = "dense",
                                     .dimension = 5,
                                     .lambda_max = 1,
                                     .kappa_effective_bound = INFINITY,
                                     .trace = 3,
                                     .trace_share = 0.75}};
    struct ks_audit a = {.path = "shares",
                         .folder = (char *)scratch("shares.audit"),
                         .summary = {.critics = 1, .parameters = 10},
                         .n_layers = 2,
                         .layers = layers};
    struct ks_document d = {.n = 0};

    for (int negative = 0; negative < 2; negative++) {
        layers[0].trace = negative ? -1 : 1;
        ks_audit_find_layer(&a, &d);
        ks_audit_layers(&a, &d);
        assert_ok(d.status);
        assert_string_equal(d.block[0].text,
                            negative ? "Layer 02 (dense) has the block of the Hessian with the "
                                       "largest trace: 3, an estimate. Some traces are negative, "
                                       "so the layers have no shares."
                                     : "Layer 02 (dense) has the largest share of the curvature: "
                                       "75% of the trace of the Hessian, an estimate, with 50% of "
                                       "the parameters.");
        assert_cells(&d.block[d.n - 3], negative ? "00|dense|5|-0.1235|7.777|-1|-|"
                                                 : "00|dense|5|-0.1235|7.777|1|25|");
        assert_cells(&d.block[d.n - 2],
                     negative ? "02|dense|5|1|infinite|3|-|" : "02|dense|5|1|infinite|3|75|");
        ks_document_clear(&d);
    }
}

/* --- limits --- */

TEST(test_refused_limits)
{
    static const char *const cases[][2] = {
        {"kappa>10", "kappa is a ratio of Ritz values that changes manyfold"},
        {"kurtosis>10", "expected a bound (kappa_effective_bound"},
        {"directions_1e2>10", "found 'directions_1e2'"},
        {"lambda_min<0", "found 'lambda_min'"},
        {"no_such_upper>1", "found 'no_such_upper'"},
        {"_upper>1", "found '_upper'"},
        {"kappa_effective_bound", "expected NAME>NUMBER"},
        {"kappa_effective_bound=1", "expected NAME>NUMBER"},
        {"kappa_effective_bound>", "expected NAME>NUMBER"},
        {"kappa_effective_bound>1x", "expected NAME>NUMBER"},
        {">1", "expected NAME>NUMBER"}};
    struct ks_limit limit;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(ks_limit_read(cases[i][0], 0, &limit), KS_USAGE, cases[i][1]);
    assert_ok(ks_limit_read(" kappa_q99_upper <= 2e3", 0, &limit));
    assert_true(limit.upper && limit.equal && !limit.above);
    assert_close(limit.value, 2000, 0);
}

/* An upper bound that is not resolved counts as infinite; a lower one bounds nothing. */
TEST(test_unresolved)
{
    struct ks_spectrum s = {.probes = 0};
    struct ks_document d = {.n = 0};
    struct ks_limit limit;
    bool met;

    ks_attribute_add_number(&s.statistics, "kappa_q99_upper", NAN);
    ks_attribute_add_number(&s.statistics, "kappa_q99_lower", NAN);
    assert_ok(ks_limit_read("kappa_q99_upper>1e9", 0, &limit));
    assert_ok(ks_limit_judge(&limit, "x.h5", &s, &met, &d));
    assert_true(met);
    assert_ok(ks_limit_read("kappa_q99_lower>1", 0, &limit));
    assert_ok(ks_limit_judge(&limit, "x.h5", &s, &met, &d));
    assert_false(met);
    assert_contains(d.block[1].text, "not resolved: not met: not shown to be worse");
    ks_document_clear(&d);
    ks_attributes_clear(&s.statistics);
}

/* --- several critics --- */

static void set_conditioning(struct ks_attributes *s, struct ks_interval directions,
                             struct ks_interval q99)
{
    ks_attribute_add_number(s, "lambda_max", 1);
    ks_attribute_add_number(s, "lambda_max_upper", 1);
    ks_attribute_add_number(s, "lambda_min", -1);
    ks_attribute_add_number(s, "lambda_min_lower", -1);
    ks_attribute_add_number(s, "directions_1e2_lower", directions.lower);
    ks_attribute_add_number(s, "directions_1e2_upper", directions.upper);
    ks_attribute_add_number(s, "kappa_q99_lower", q99.lower);
    ks_attribute_add_number(s, "kappa_q99_upper", q99.upper);
}

/* Each critic with those that are worse, and by which statistic; then the pairs without an answer.
 */
TEST(test_answers)
{
    static const struct {
        const char *path;
        struct ks_interval directions, q99;
    } critic[] = {{"a", {1000, 2000}, {5, 6}},
                  {"b", {100, 200}, {5, 7}},
                  {"c", {120, 220}, {50, 70}},
                  {"d", {900, 2100}, {NAN, NAN}}};
    enum { N = sizeof critic / sizeof *critic };
    struct ks_spectrum s[N] = {{.probes = 0}};
    struct ks_audit a[N] = {{.n_layers = 0}};
    struct ks_document d = {.n = 0};

    for (size_t i = 0; i < N; i++) {
        set_conditioning(&s[i].statistics, critic[i].directions, critic[i].q99);
        a[i].path = critic[i].path;
        a[i].summary.env_step = NAN;
        a[i].spectrum[KS_AUDIT_HESSIAN] = &s[i];
    }
    ks_audit_several(N, a, &d);
    assert_ok(d.status);
    assert_string_equal(d.block[1].text, "a is better conditioned than b (directions_1e2), c "
                                         "(directions_1e2 and kappa_q99)");
    assert_string_equal(d.block[2].text, "b is better conditioned than c (kappa_q99)");
    assert_string_equal(d.block[3].text,
                        "d is better conditioned than b (directions_1e2), c (directions_1e2)");
    assert_string_equal(d.block[4].text, "a and d: the intervals do not decide.");
    assert_true(d.block[5].kind == KS_BLOCK_NOTE);
    ks_document_clear(&d);
    for (size_t i = 0; i < N; i++)
        ks_attributes_clear(&s[i].statistics);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
