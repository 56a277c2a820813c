/* kappascope-audit: findings, comparisons, limits, the page, what is kept and used again. */
#include "analyzer.h"
#include "example_checkpoint.h"

#include "audit/audit.h"
#include "audit/gate.h"
#include "statistics/statistics.h"

/* --- intervals --- */

static void test_ratios(void **state)
{
    const struct ks_interval a = {2, 3}, b = {4, 8}, open = {5, NAN}, none = {NAN, NAN};
    char text[KS_INTERVAL_TEXT];
    struct ks_interval r = ks_interval_ratio(a, b);

    (void)state;
    assert_close(r.lower, 0.25, 0);
    assert_close(r.upper, 0.75, 0);
    r = ks_interval_ratio(a, open); /* the other one may be any number from 5 on */
    assert_true(isnan(r.lower));
    assert_close(r.upper, 0.6, 1e-15);
    r = ks_interval_ratio(open, a);
    assert_close(r.lower, 5. / 3, 1e-15);
    assert_true(isnan(r.upper));
    assert_string_equal(ks_interval_text(ks_interval_ratio(none, a), text), "not resolved");
    assert_string_equal(ks_interval_text(open, text), "at least 5");
    assert_string_equal(ks_interval_text((struct ks_interval){1.2345, 2.3451}, text),
                        "[1.23, 2.35]");
    assert_false(ks_intervals_overlap(a, b));
    assert_true(ks_intervals_overlap(b, open));
    assert_false(ks_intervals_overlap(a, open));
    assert_true(ks_intervals_overlap(a, none));
}

/* --- the program --- */

static int audit(const char *arguments)
{
    return run_program("kappascope-audit", arguments);
}

static void assert_shows(const char *words)
{
    if (!strstr(printed, words))
        fail_msg("'%s' is not in '%s'", words, printed);
}

static void test_audit(void **state)
{
    (void)state;
    write_one(scratch("full.h5"), make_full(), false);
    if (audit("--quiet --order 40 --layer-order 20 full.h5") != 0)
        fail_msg("%s", complained);
    assert_string_equal(complained, "");
    assert_shows("On these 3 minibatches");
    assert_shows("\nFindings\n");
    assert_shows("The file has no proofs");
    assert_shows("the condition number is at least");
    assert_shows("largest absolute eigenvalue of the residual H - G");
    assert_shows("  preconditioned  D^-1/2 H D^-1/2, as Adam sees it");
    assert_shows("  01     dense");
    assert_shows("first half of the minibatches");
    /* as long as the project ships none */
    assert_true(strstr(printed, "There is no shipped table") ||
                strstr(printed, "/plots/gallery/small") || strstr(printed, "/plots/gallery/trot"));
    /* bounds before the paper's kappa */
    assert_true(strstr(printed, "  kappa_effective_bound") < strstr(printed, "  kappa  "));
}

/* Without moments, layers and a second minibatch less is computed, and that is said. */
static void test_less(void **state)
{
    (void)state;
    write_one(scratch("plain.h5"), make_plain(MSE), false);
    if (audit("--quiet --order 20 --layer-order 0 --batches 1 plain.h5") != 0)
        fail_msg("%s", complained);
    assert_shows("no second moments of Adam");
    assert_shows("Not known: the analysis used a single minibatch");
    assert_null(strstr(printed, "share of the trace"));
    assert_int_equal(audit("--batches 4 plain.h5"), 2);
    assert_non_null(strstr(complained, "--batches: expected 1 to 3, found 4"));
}

/* Half of the minibatches: nothing changes if all are the same; the largest eigenvalue does if only
 * the first one has large inputs. */
static void test_half(void **state)
{
    static const char arguments[] = "--quiet --order 20 --layer-order 0 half.h5";
    struct ks_checkpoint *c = make_plain(MSE);
    const size_t inputs = (size_t)ROWS * IN;

    (void)state;
    for (size_t n = 1; n < MINIBATCHES; n++) {
        memcpy(c->input + n * inputs, c->input, inputs * sizeof *c->input);
        memcpy(c->target + n * LOSS_ROWS, c->target, LOSS_ROWS * sizeof *c->target);
    }
    assert_ok(ks_checkpoint_write(scratch("half.h5"), c, false));
    assert_int_equal(audit(arguments), 0);
    assert_shows("0 of 4 statistics change by more");
    for (size_t i = 0; i < inputs; i++)
        c->input[i] *= 100;
    write_one(scratch("half.h5"), c, false);
    assert_int_equal(audit(arguments), 0);
    assert_shows("  lambda_abs_max         changes");
}

/* The spectra are used again only for the same bytes of the checkpoint. */
static void test_cache(void **state)
{
    static const char arguments[] = "--quiet --order 20 --layer-order 0 kept.h5";
    static const char name[] = "kept.audit/hessian-m20-n3-s0.spectrum.h5";
    static char before[sizeof printed];
    struct stat first, second, third;
    struct ks_checkpoint *c = make_plain(MSE);

    (void)state;
    assert_ok(ks_checkpoint_write(scratch("kept.h5"), c, false));
    assert_int_equal(audit(arguments), 0);
    memcpy(before, printed, sizeof before);
    assert_int_equal(stat(scratch(name), &first), 0);
    assert_int_equal(audit(arguments), 0);
    assert_int_equal(stat(scratch(name), &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_string_equal(printed, before);
    c->critic.w[0] += 1;
    write_one(scratch("kept.h5"), c, false);
    assert_int_equal(audit(arguments), 0);
    assert_int_equal(stat(scratch(name), &third), 0);
    assert_true(second.st_ino != third.st_ino || second.st_mtim.tv_nsec != third.st_mtim.tv_nsec);
    assert_true(strcmp(printed, before) != 0);
}

/* --- limits --- */

static int limit(const char *expression)
{
    char arguments[256];

    snprintf(arguments, sizeof arguments,
             "--quiet --order 20 --layer-order 0 --fail-if '%s' plain.h5", expression);
    return audit(arguments);
}

static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(limit("kappa_effective_bound > 1e-3"), 3);
    assert_shows("met: shown by a bound");
    assert_int_equal(limit("kappa_effective_bound>1e30"), 0);
    assert_shows("not met: not shown to be worse");
    assert_int_equal(limit("directions_1e2_upper>=1e9"), 0);
    assert_shows("not met, and shown not to be");
    assert_int_equal(limit("directions_1e2_upper>0"), 3);
    assert_shows("met: the bound does not exclude it");
    assert_int_equal(limit("directions_1e2_lower<0"), 0);
    assert_shows("not met, and shown not to be");
    assert_int_equal(limit("lambda_max<1e9"), 3);
    assert_shows("met: the bound does not exclude it");
}

static void refuses(const char *expression, const char *words)
{
    struct ks_gate gate;

    assert_fails(ks_gate_read(expression, &gate), KS_USAGE, words);
}

static void test_refused_limits(void **state)
{
    struct ks_gate gate;

    (void)state;
    refuses("kappa>10", "kappa is a ratio of Ritz values that changes manyfold");
    refuses("kurtosis>10", "which is an estimate");
    refuses("directions_1e2>10", "which is an estimate");
    refuses("kappa_effective_bound", "expected NAME>NUMBER");
    refuses("kappa_effective_bound=1", "expected NAME>NUMBER");
    refuses("kappa_effective_bound>", "expected NAME>NUMBER");
    refuses("kappa_effective_bound>1x", "expected NAME>NUMBER");
    refuses(">1", "expected NAME>NUMBER");
    assert_ok(ks_gate_read(" kappa_q99_upper <= 2e3", &gate));
    assert_true(gate.upper && gate.equal && !gate.above);
    assert_close(gate.limit, 2000, 0);
    assert_int_equal(limit("no_such_upper>1"), 2);
    assert_non_null(strstr(complained, "expected a statistic of analyze, found 'no_such_upper'"));
}

/* An upper bound that is not resolved counts as infinite; a lower one bounds nothing. */
static void test_unresolved(void **state)
{
    struct ks_spectrum s = {.probes = 0};
    struct ks_document d = {.n = 0};
    struct ks_gate gate;
    bool met;

    (void)state;
    assert_ok(ks_attribute_add_number(&s.statistics, "kappa_q99_upper", NAN));
    assert_ok(ks_attribute_add_number(&s.statistics, "kappa_q99_lower", NAN));
    assert_ok(ks_gate_read("kappa_q99_upper>1e9", &gate));
    assert_ok(ks_gate_judge(&gate, &s, &met, &d));
    assert_true(met);
    assert_ok(ks_gate_read("kappa_q99_lower>1", &gate));
    assert_ok(ks_gate_judge(&gate, &s, &met, &d));
    assert_false(met);
    assert_non_null(strstr(d.block[1].text, "not resolved: not met: not shown to be worse"));
    ks_document_clear(&d);
    ks_attributes_clear(&s.statistics);
}

/* --- comparisons --- */

/* Four times the loss has four times the eigenvalues and the same ratios. */
static void test_against_file(void **state)
{
    double lower, upper;
    const char *line;

    (void)state;
    write_one(scratch("four.h5"), make_plain("dense 4\nrelu\ndense 1\nloss mse weight=4\n"), false);
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 --against four.h5 plain.h5"), 0);
    line = strstr(printed, "\nAgainst four.h5");
    assert_non_null(line);
    line = strstr(line, "lambda_abs_max     smaller here");
    assert_non_null(line);
    line = strrchr(strtok(strstr(line, "smaller"), "\n"), '[');
    assert_int_equal(sscanf(line, "[%lf, %lf]", &lower, &upper), 2);
    assert_true(lower <= 0.25 && 0.25 <= upper && upper < 0.3);
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 --against full.h5 plain.h5"), 0);
    assert_shows("The minibatches differ");
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 --against plain.h5 plain.h5"), 0);
    assert_shows("Both have the same minibatches; the start vectors are the same");
    assert_shows("directions_1e2     not resolved");
}

/* A table of a study: one architecture at the same step with the same loss, one with another loss,
 * one at another step. */
static void test_against_study(void **state)
{
    static const char TABLE[] =
        "env,architecture,seed,env_step,analysis,kappa_effective_bound,directions_1e2_lower,"
        "directions_1e2_upper,kappa_q99_lower,kappa_q99_upper\n"
        "toy,bn+mse,0,1000,standard,100,1e6,2e6,2,3\n"
        "toy,bn+mse,1,1000,standard,200,5e5,1e6,1,-\n"
        "toy,bn+mse,0,1000,xqc,1,1,1,1,1\n"
        "toy,bn+ce,0,1000,standard,100,1,2,2,3\n"
        "toy,ln+mse,0,9000,standard,100,1,2,2,3\n";

    (void)state;
    assert_int_equal(mkdir(scratch("study"), 0777), 0);
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 --against study plain.h5"), 2);
    assert_non_null(strstr(complained, "kappascope plot"));
    assert_int_equal(mkdir(scratch("study/tables"), 0777), 0);
    write_bytes(scratch("study/tables/checkpoints.csv"), TABLE, strlen(TABLE));
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 --against study plain.h5"), 0);
    assert_shows("None of these architectures is comparable");
    assert_shows("The file has no attribute env_step");
    set_integer(scratch("plain.h5"), "/", "env_step", 1010);
    assert_int_equal(audit("--quiet --order 20 --layer-order 0 --against study plain.h5"), 0);
    assert_shows("Of 1 comparable architectures, 0 have fewer");
    assert_shows("and 1 have more");
    assert_shows("  bn+mse           same loss and step  1000  2 ");
    assert_shows("100 to 200");
    assert_shows("[5e+05, 2e+06]");
    assert_shows(" (bn+ce            not comparable");
    assert_shows(" (ln+mse           not comparable");
    assert_int_equal(audit("--against nowhere plain.h5"), 2);
    assert_non_null(strstr(complained, "--against: expected a study's folder"));
}

/* --- the page --- */

static void test_page(void **state)
{
    size_t size;
    char *page;

    (void)state;
    write_one(scratch("a<b>&'.h5"), make_full(), false);
    set_string(scratch("a<b>&'.h5"), "/", "env", "<script>alert(1)</script>");
    if (audit("--quiet --order 20 --layer-order 10 -o page.html plain.h5 \"a<b>&'.h5\"") != 0)
        fail_msg("%s", complained);
    page = (char *)read_bytes(scratch("page.html"), &size);
    page[size] = '\0';
    assert_non_null(strstr(page, "<h2>a&lt;b&gt;&amp;&#39;.h5</h2>"));
    assert_null(strstr(page, "<script>alert"));
    assert_non_null(strstr(page, "id=\"critic-2-1\""));
    assert_non_null(strstr(page, "<svg"));
    assert_null(strstr(page, "{{"));
    assert_null(strstr(page, "http://www.example"));
    free(page);
    assert_int_equal(audit("-o plain.h5 plain.h5"), 2);
    assert_int_equal(audit("-o nowhere/page.html plain.h5"), 2);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_int_equal(audit(""), 2);
    assert_non_null(strstr(complained, "expected a checkpoint, found none"));
    assert_int_equal(audit("--order 0 plain.h5"), 2);
    assert_non_null(strstr(complained, "--order: expected an integer from 1 to 10000, found '0'"));
    assert_int_equal(audit("plain.audit/hessian-m20-n3-s0.spectrum.h5"), 2);
    assert_non_null(strstr(complained, "kappascope-checkpoint"));
}

static int remove_all(void **state)
{
    char command[600];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ratios),         cmocka_unit_test(test_audit),
        cmocka_unit_test(test_less),           cmocka_unit_test(test_half),
        cmocka_unit_test(test_cache),          cmocka_unit_test(test_limits),
        cmocka_unit_test(test_refused_limits), cmocka_unit_test(test_unresolved),
        cmocka_unit_test(test_against_file),   cmocka_unit_test(test_against_study),
        cmocka_unit_test(test_page),           cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, scratch_make, remove_all);
}
