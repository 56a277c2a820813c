/* --tolerance: reading it, the widths of intervals, and analyses that stop when they are tight. */
#include "programs.h"

#include "critics.h"
#include "statements.h"

enum { SEEDS = 8 };

/* --- reading and widths --- */

static void refused(const char *text, const char *words)
{
    struct ks_tolerances t;

    assert_fails(ks_tolerances_read(text, &t), KS_USAGE, words);
}

TEST(test_reading)
{
    struct ks_tolerances t;

    assert_ok(ks_tolerances_read("0.05", &t));
    assert_int_equal(t.n, 2);
    assert_string_equal(ks_tolerance_name(&t.list[0]), "lambda_max");
    assert_string_equal(ks_tolerance_name(&t.list[1]), "lambda_min");
    assert_close(t.list[1].most, 0.05, 0);
    assert_ok(ks_tolerances_read("trace=0.02,directions_1e2=1", &t));
    assert_int_equal(t.n, 2);
    assert_string_equal(ks_tolerance_name(&t.list[1]), "directions_1e2");
    assert_close(t.list[1].most, 1, 0);
    refused("", "expected a number above 0, or NAME=NUMBER, found ''");
    refused("trace=0.02,", "found ''");
    refused("trace=", "found ''");
    refused("trace=0", "found '0'");
    refused("trace=-1", "found '-1'");
    refused("trace", "found 'trace'");
    refused("lambda_max=0.1,0.1", "expected lambda_max once, found it twice");
    refused("kurtosis=0.1", "expected one of lambda_max, lambda_min, trace, directions_1e1,");
    refused("kappa_effective_bound=0.1", "it has no width and so no tolerance");
}

static double width(const char *name, const struct ks_spectrum *s)
{
    struct ks_tolerances t;

    assert_ok(ks_tolerances_read(text_of("%s=1", name), &t));
    return ks_tolerance_width(&t.list[0], s);
}

TEST(test_widths)
{
    static const struct {
        const char *name;
        double value;
    } numbers[] = {{"lambda_max", 3},
                   {"lambda_max_upper", 3.4},
                   {"lambda_min", -4},
                   {"lambda_min_lower", -5},
                   {"directions_1e2_lower", 10},
                   {"directions_1e2_upper", 25},
                   {"kappa_q99_lower", 10},
                   {"kappa_q99_upper", NAN},
                   {"negative_mass_lower", 0.1},
                   {"negative_mass_upper", 1},
                   {"trace", -2},
                   {"trace_lower", -3},
                   {"trace_upper", -1},
                   {"kappa_q50_lower", INFINITY},
                   {"kappa_q50_upper", INFINITY}};
    struct ks_spectrum s = {.probes = 1};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        ks_attribute_add_number(&s.statistics, numbers[i].name, numbers[i].value);
    assert_close(width("lambda_max", &s), 0.1, 1e-15);
    assert_close(width("lambda_min", &s), 0.25, 1e-15);
    assert_close(width("directions_1e2", &s), 1.5, 1e-15);
    assert_close(width("negative_mass", &s), 0.9, 1e-15);
    assert_close(width("trace", &s), 0.5, 1e-15);
    assert_close(width("kappa_q50", &s), 0, 0); /* both ends are certain */
    assert_true(isnan(width("kappa_q99", &s)) && isnan(width("zero_mass", &s)));
    ks_attributes_clear(&s.statistics);
}

/* --- analyses --- */

static struct ks_spectrum *run(const char *arguments)
{
    assert_runs("-q %s critic.h5", arguments);
    return read_spectrum(scratch("critic.spectrum.h5"));
}

static const char *outcome(const struct ks_spectrum *s)
{
    const struct ks_attribute *a = ks_attribute_find(&s->attributes, "tolerance");

    assert_non_null(a);
    assert_int_equal(a->type, KS_ATTRIBUTE_STRING);
    return a->string;
}

static void write_critic(size_t k)
{
    struct ks_checkpoint *c = train_critic(k);

    assert_ok(ks_checkpoint_write(scratch("critic.h5"), c, false));
    ks_checkpoint_free(c);
}

/* Whatever number of steps and probes was found: the numbers are those of an analysis that had them
 * as its options. */
TEST(test_same_as_fixed)
{
    static const struct {
        const char *tolerance, *others;
    } wanted[] = {{"lambda_max=0.01", ""},
                  {"directions_1e1=2", ""},
                  {"directions_above=1", "--count-above 0.3"},
                  {"directions_1e2=2", "--start gradient"}};

    write_critic(1);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct ks_spectrum *s, *fixed;

        s = run(text_of("--tolerance %s %s", wanted[i].tolerance, wanted[i].others));
        assert_contains(outcome(s), "reached");
        assert_null(strstr(outcome(s), "not reached"));
        assert_true(s->order < 90);
        fixed = run(text_of("--order %zu --probes %zu %s", s->order, ks_spectrum_random(s),
                            wanted[i].others));
        assert_int_equal(fixed->probes, s->probes);
        assert_memory_equal(fixed->alpha, s->alpha, s->probes * s->order * sizeof(double));
        for (size_t k = 0; k < fixed->statistics.n; k++) {
            const struct ks_attribute *a = &fixed->statistics.list[k];

            double number = ks_statistic(s, a->name);

            /* rounding, as vectors lie at other addresses */
            if (number != a->number && !(fabs(number - a->number) <= 1e-7 * fabs(a->number)) &&
                !(isnan(number) && isnan(a->number)))
                fail_msg("%s: %.17g, with fixed steps %.17g", a->name, number, a->number);
        }
    }
}

static size_t minibatches(const struct ks_spectrum *s)
{
    return (size_t)ks_attribute_number(&s->attributes, "batches");
}

/* With all minibatches: of the probes, null directions and certificates. */
static double products(const struct ks_spectrum *s)
{
    const char *at = strstr(outcome(s), " steps, ");
    double count;

    assert_non_null(at);
    assert_int_equal(sscanf(at, " steps, %lf products", &count), 1);
    return count;
}

/* Few minibatches where they are enough, more where their error is too large, all where even their
 * error is. */
TEST(test_minibatches)
{
    enum { ALL = 64 };
    struct ks_checkpoint *critic = train_critic(4), *c = draw_minibatches(critic, ALL, 1);
    struct ks_spectrum *s, *fixed;
    double error, alone, spent;
    size_t least;

    assert_ok(ks_checkpoint_write(scratch("critic.h5"), c, false));
    s = run("--tolerance lambda_max=0.5");
    assert_int_equal(minibatches(s), 8);
    error = ks_statistic(s, "lambda_max_data_se") / ks_statistic(s, "lambda_max");

    s = run(text_of("--tolerance lambda_max=%g", error / 1.3));
    assert_in_range(minibatches(s), 12, ALL - 1);
    assert_contains(outcome(s), "within the tolerance");
    assert_true(ks_statistic(s, "lambda_max_loss_lower") <
                ks_statistic(s, "lambda_max_loss_upper"));
    alone = ks_attribute_number(&s->attributes, "minibatch_products");
    /* Of the first 8 minibatches: null directions, 8 steps and the look, but no certificates. */
    assert_in_range(alone - (double)minibatches(s) * (products(s) + 2), 8 * 9, 8 * 11);
    fixed = run(text_of("--batches %zu --order %zu", minibatches(s), s->order));
    assert_memory_equal(fixed->alpha, s->alpha, s->order * sizeof(double));
    /* What the first minibatches took is free again. */
    least = least_memory(text_of("-q --batches %zu --tolerance trace=1 critic.h5", minibatches(s)));
    assert_runs("-q --tolerance lambda_max=%g --memory %zuK critic.h5", error / 1.3,
                least + 2); /* 2K: a few numbers for each of all minibatches */

    /* Probes for other statistics are run once the number of minibatches is known. */
    s = run(text_of("--tolerance lambda_max=%g,directions_1e1=1", error / 1.3));
    assert_in_range(minibatches(s), 12, ALL - 1);
    spent = ks_attribute_number(&s->attributes, "minibatch_products");
    fixed = run(text_of("--batches %zu --tolerance directions_1e1=1", minibatches(s)));
    assert_memory_equal(fixed->alpha, s->alpha, 8 * sizeof(double));
    assert_true(spent - alone <
                1.15 * ks_attribute_number(&fixed->attributes, "minibatch_products"));
    assert_true(ks_statistic(s, "directions_1e1_width") <= 1);

    s = run("--tolerance lambda_max=1e-4");
    assert_int_equal(minibatches(s), ALL);
    assert_contains(outcome(s), "beyond the tolerance");
    assert_null(ks_attribute_find(&s->statistics, "lambda_max_loss_lower"));
    s = run("--tolerance directions_1e1=5"); /* only these minibatches are meant */
    assert_int_equal(minibatches(s), ALL);
    ks_checkpoint_free(critic), ks_checkpoint_free(c);
}

/* What is out of reach is said after one probe, and does not keep the others from being reached. */
/* The price of a tight interval is not much more than that of one probe of 90 steps, where that is
 * tight enough. A first look at few steps suggests dozens of probes. */
TEST(test_price)
{
    for (size_t k = 0; k < TRAINED; k++) {
        struct ks_spectrum *s;

        write_critic(k);
        s = run("--tolerance directions_1e2=1,directions_1e3=2");
        assert_null(strstr(outcome(s), "not reached"));
        if (products(s) > 125)
            fail_msg("%s: %.0f products; %s", trained_critics[k].name, products(s), outcome(s));
    }
}

/* Where few eigenvalues count, the second probe is in the complement, and far fewer products are
 * enough; where many count, it is an ordinary one. */
TEST(test_complement)
{
    struct ks_spectrum *s, *fixed, *plain;

    write_critic(1);
    s = run("--tolerance directions_1e2=0.1 --complement");
    assert_contains(outcome(s), "tolerance 0.1 reached. Spent: 2 probes");
    assert_true(s->complement && s->probes == 2 && s->order < 90);
    fixed = run(text_of("--order %zu --complement", s->order));
    assert_memory_equal(fixed->alpha, s->alpha, s->probes * s->order * sizeof(double));
    assert_close(ks_statistic(fixed, "directions_1e2_upper"),
                 ks_statistic(s, "directions_1e2_upper"), 0);
    s = run("--tolerance directions_1e2=0.5 --complement");
    plain = run("--tolerance directions_1e2=0.5");
    assert_true(ks_attribute_number(&s->attributes, "minibatch_products") <
                0.3 * ks_attribute_number(&plain->attributes, "minibatch_products"));
    s = run("--tolerance directions_1e4=0.2 --complement --order 20");
    assert_true(ks_statistic(s, "directions_1e4") > 40);
    assert_true(!s->complement && ks_spectrum_random(s) == 2);
    assert_contains(outcome(s), "not reached: the limit is 2 probes of 20 steps. Spent: 2 probes");
    s = run("--tolerance lambda_max=0.1 --complement"); /* which needs one */
    assert_true(s->probes == 1);
}

TEST(test_out_of_reach)
{
    struct ks_spectrum *s;

    write_critic(0);
    s = run("--tolerance negative_mass=0.001 --order 20 --probes 3");
    assert_int_equal(s->order, 20);
    assert_int_equal(s->probes, 1);
    assert_contains(outcome(s), "negative_mass: ");
    assert_contains(outcome(s), "tolerance 0.001 not reached: the limit is 3 probes of 20 "
                                "steps, expected not to be enough. Spent: ");
    assert_true(ks_statistic(s, "negative_mass_width") > 0.001);
    assert_close(ks_statistic(s, "negative_mass_tolerance"), 0.001, 0);
    s = run("--tolerance negative_mass=0.001,directions_1e1=3 --order 20 --probes 16");
    assert_contains(outcome(s), "; directions_1e1: ");
    assert_contains(outcome(s), "tolerance 3 reached. Spent: ");
    assert_true(ks_statistic(s, "directions_1e1_width") <= 3);
}

/* The Krylov space ends before the first look at the widths, or between two. */
TEST(test_early_end)
{
    static const struct {
        const char *text;
        size_t steps;
    } networks[] = {{"dense 1\nloss mse\n", 4}, {"dense 1\nloss mse\n", 11}};

    for (size_t i = 0; i < 2; i++) {
        struct ks_checkpoint *c = random_critic(
            networks[i].text, (struct critic_sizes){1, networks[i].steps - 1, 1, 32, 32}, 7);
        struct ks_spectrum *s;

        assert_ok(ks_checkpoint_write(scratch("critic.h5"), c, false));
        s = run("--tolerance lambda_max=1e-6 --precision f64");
        assert_int_equal(s->steps[0], networks[i].steps);
        assert_null(strstr(outcome(s), "not reached"));
        ks_checkpoint_free(c);
    }
}

/* An interval that is read when it happens to be tight could be false more often than another one:
 * all eigenvalues show that it is not. */
TEST(test_coverage)
{
    size_t false_ones = 0, made = 0;

    for (size_t k = 0; k < TRAINED; k += 2) {
        struct ks_spectrum *exact;
        double x, trace;
        size_t count = 0;

        write_critic(k);
        exact = run("--exact --precision f64");
        trace = ks_statistic(exact, "trace");
        x = fmax(ks_statistic(exact, "lambda_max"), -ks_statistic(exact, "lambda_min")) / 100;
        for (size_t i = 0; i < exact->order; i++)
            count += fabs(exact->ritz[i]) > x;
        for (size_t seed = 0; seed < SEEDS; seed++) {
            struct ks_spectrum *s;

            s = run(text_of("--tolerance directions_1e2=1.2,trace=0.2 --seed %zu", seed));
            made += 2;
            false_ones += (double)count < ks_statistic(s, "directions_1e2_lower") ||
                          (double)count > ks_statistic(s, "directions_1e2_upper");
            false_ones += trace < ks_statistic(s, "trace_lower") ||
                          trace > ks_statistic(s, "trace_upper");
        }
    }
    print_message("%zu of %zu intervals are false\n", false_ones, made);
    assert_true(false_ones <= most_misses(made, 0.01));
}

/* The trace by vectors of their own for each minibatch: against all eigenvalues, for every critic,
 * with and without weight decay. KS_COVERAGE=full: 200 seeds each instead of 6. */
TEST(test_trace)
{
    static const char *const options[] = {"", "--weight-decay 0.01", "--critic 0 --operator ggn"};
    const char *size = getenv("KS_COVERAGE");
    const size_t seeds = size && strcmp(size, "full") == 0 ? 200 : 6;
    size_t misses = 0, made = 0;
    double products = 0;

    for (size_t k = 0; k < TRAINED; k++)
        for (size_t i = 0; i < (k == 1 ? 3 : 1); i++) {
            struct ks_checkpoint *critic = train_critic(k), *c = draw_minibatches(critic, 6, 1);
            struct ks_spectrum *s;
            double trace;

            assert_ok(ks_checkpoint_write(scratch("critic.h5"), c, false));
            ks_checkpoint_free(critic), ks_checkpoint_free(c);
            s = run(text_of("--exact --precision f64 %s", options[i]));
            trace = ks_statistic(s, "trace");
            for (size_t seed = 0; seed < seeds; seed++, made++) {
                s = run(text_of("--no-certificates --tolerance trace=0.1 --seed %zu %s", seed,
                                options[i]));
                assert_contains(outcome(s), "tolerance 0.1 reached");
                assert_true(ks_statistic(s, "trace_width") <= 0.1);
                misses += trace < ks_statistic(s, "trace_lower") ||
                          trace > ks_statistic(s, "trace_upper");
                products += ks_attribute_number(&s->attributes, "minibatch_products");
            }
        }
    print_message("%zu of %zu intervals miss the trace; %.0f products of a minibatch each\n",
                  misses, made, products / (double)made);
    assert_true(misses <= most_misses(made, 0.01));
}

TEST(test_trace_limit)
{
    struct ks_spectrum *s;

    write_critic(1);
    s = run("--tolerance trace=0.0001 --probes 3");
    assert_contains(outcome(s), "tolerance 0.0001 not reached: the limit is 3 vectors for "
                                "each minibatch. Spent: 1 probe of at most 8 steps");
    assert_contains(outcome(s), "; for the trace 3 vectors for each minibatch;");
}

TEST(test_refusals)
{
    static const char *const others[] = {"--compat xqc", "--layers"};

    write_critic(1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(analyzer("--tolerance 0.1 %s critic.h5", others[i]), 2);
        assert_complains("--tolerance: expected no --");
    }
    analyzer_refuses("--tolerance 0.1 --exact critic.h5", "--tolerance: expected without --exact");
    assert_int_equal(analyzer("--tolerance 0.1 --gradient g.h5 critic.h5"), 2);
    analyzer_refuses("--tolerance lambda=0.1 critic.h5", "found 'lambda'");
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
