/* The claim about a spectrum states what is known, and no more. */
#include "statistics/statistics.h"

#include "core/memory.h"
#include "spectra.h"

enum { N = 400 };
static double value[N];

/* The claim about a spectrum contains each of the words, separated by '~', in this order. */
static void says(const struct ks_spectrum *s, const struct ks_statement_inputs *inputs,
                 const char *words)
{
    char *text = NULL, list[1024];
    const char *at;
    size_t first;

    assert_ok(ks_statement(s, inputs, &text, &first));
    at = strstr(text, ". ");
    assert_int_equal(first, at ? (size_t)(at - text) + 1 : strlen(text));
    snprintf(list, sizeof list, "%s", words);
    at = text;
    for (char *word = strtok(list, "~"); word; word = strtok(NULL, "~")) {
        const char *found = strstr(at, word);

        if (!found)
            fail_msg("'%s' lacks '%s', or has it in another place", text, word);
        at = found + strlen(word);
    }
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf "));
    assert_null(strchr(text, '\n'));
    assert_true(text[0] < 'a' && text[strlen(text) - 1] == '.');
    free(text);
}

static struct ks_statement_inputs inputs_of(const char *kind,
                                            const struct ks_statistics_inputs *statistics)
{
    return (struct ks_statement_inputs){.kind = ks_operator_kind_find(kind),
                                        .critic = -1,
                                        .layer = -1,
                                        .minibatches = 4,
                                        .statistics = statistics};
}

/* diag(value) by Lanczos with certificates; the first coordinates are a known null space. *inputs:
 * of a claim about it. */
static struct certified *estimated(size_t n, struct certified_run how,
                                   struct ks_statement_inputs *inputs)
{
    struct diagonal d = {.n = n, .value = value};
    struct certified *e;

    how.seed = 5;
    e = estimate_certified(&d, &how);
    *inputs = inputs_of("hessian", &e->inputs);
    return e;
}

static struct certified *certified_with(size_t order, size_t probes, const struct ks_null *null,
                                        struct ks_statement_inputs *inputs)
{
    return estimated(N, (struct certified_run){order, probes, .null = null, .certify = true},
                     inputs);
}

/* The products turned out to be wrong by `error`. */
static void set_error(struct certified *e, double error)
{
    e->certificates.error = error;
    ks_attributes_clear(&e->s->statistics);
    assert_ok(ks_statistics(e->s, &e->inputs));
}

static void estimate_says(size_t n, struct certified_run how, const char *words)
{
    struct ks_statement_inputs inputs;
    struct certified *e = estimated(n, how, &inputs);

    says(e->s, &inputs, words);
    certified_free(e);
}

static void certified_says(size_t order, size_t probes, const struct ks_null *null,
                           const char *words)
{
    estimate_says(N, (struct certified_run){order, probes, .null = null, .certify = true}, words);
}

static void exact_says(const struct ks_null *null, const char *words)
{
    struct ks_operator a = DIAGONAL(N, value);
    struct ks_spectrum *s = exact_with(&a, null);
    const struct ks_statistics_inputs statistics = {.n = N, .null = null};
    const struct ks_statement_inputs inputs = inputs_of("hessian", &statistics);

    says(s, &inputs, words);
}

/* The condition number is 2; the claim states a bound for it. */
TEST(test_bounds)
{
    for (size_t i = 0; i < N; i++)
        value[i] = 1 + (double)i / (N - 1);
    certified_says(
        60, 3, NULL,
        "On these 4 minibatches, 400 of the 400 eigenvalues of H have an absolute value "
        "within a factor of 100 of the largest one (99% interval). Its condition number "
        "is at least 1.99 (certified in float64). With rounding errors, the computed "
        "operator has a condition number of at least 1.99, whatever the order and the "
        "start vector. The largest absolute eigenvalue is 1 to 1.~ times as large as the "
        "99% quantile of all absolute eigenvalues (99% interval). The paper's kappa, the "
        "ratio of the largest to the smallest absolute Ritz value at m = 60, is 2; it "
        "grew by a factor of 1 from m = 30 to 60.");
    estimate_says(N, (struct certified_run){.order = 30, .probes = 1},
                  "(99% interval, uncertified). Its condition number is at least 1.9~(uncertified)."
                  "~whatever the order and the start vector (uncertified).~(99% interval, "
                  "uncertified).~at m = 30, is 2.");
}

/* The claim states the factor by which kappa grew or fell since m = 30, although the condition
 * number is always 2. */
TEST(test_kappa_moves)
{
    for (size_t i = 0; i < N; i++)
        value[i] = (i % 2 == 0 ? 1 : -1) * (1 + (double)(i / 2) / (N / 2 - 1));
    for (int turn = 0; turn < 2; turn++) {
        struct ks_statement_inputs inputs;
        struct certified *e;
        double ratio;

        if (turn == 1) /* an outlier: now m = 30 leaves one Ritz value in the gap */
            for (size_t i = 0; i < N; i++)
                value[i] = i == 0 ? 9 : value[i];
        e = certified_with(31, 1, NULL, &inputs);
        ratio = ks_statistic(e->s, "kappa") / ks_statistic(e->s, "kappa_m30");
        says(e->s, &inputs,
             text_of("at m = 31, is~; it %s by a factor of %.3g from", turn == 0 ? "grew" : "fell",
                     turn == 0 ? ratio : 1 / ratio));
        certified_free(e);
    }
}

/* The claim calls an operator zero only if every coordinate is known to be null. */
TEST(test_zero)
{
    const struct ks_null all = {.product = NAN, .dead = N}, some = {.product = NAN, .dead = 3};
    static const char unknown[] = "every product with H that was computed in float64 is zero; "
                                  "nothing more is known about its eigenvalues.";

    memset(value, 0, sizeof value);
    certified_says(40, 2, &all,
                   "On these 4 minibatches, H is zero, so it has no condition number.");
    exact_says(&all, "H is zero, so it has no condition number.");
    certified_says(40, 2, NULL, unknown);
    certified_says(40, 2, &some, unknown);
    estimate_says(N, (struct certified_run){40, 2, .null = &all}, unknown);
}

/* If the Krylov space ends, the Ritz values are all the eigenvalues, unless one of them is too
 * small to be distinguished from a rounded zero. */
TEST(test_complete)
{
    for (size_t i = 0; i < N; i++)
        value[i] = -3;
    certified_says(40, 2, NULL,
                   "400 of the 400~Its condition number is 1, because every Krylov space ended and "
                   "the Ritz values include all its eigenvalues.~at m = 1, is 1.");
    for (size_t i = 0; i < N; i++)
        value[i] = i % 2 == 0 ? 1 : -5;
    certified_says(40, 2, NULL,
                   "Its condition number is 5, because every Krylov space ended~at m = 2");
    /* the recurrence stopped before the space ended */
    certified_says(2, 2, NULL, "Its condition number is at least ");
    for (size_t i = 0; i < 30; i++)
        value[i] = 1 + (double)i;
    estimate_says(30, (struct certified_run){30, 1, .certify = true},
                  "Its condition number is 30, because every Krylov space");
    estimate_says(30, (struct certified_run){29, 1, .certify = true},
                  "Its condition number is at least ~(certified");
    for (size_t i = 0; i < N; i++)
        value[i] = i % 2 == 0 ? 1 : 2e-14; /* a few noise floors */
    certified_says(40, 2, NULL, "Its condition number is at least ~(certified");
    for (size_t i = 0; i < N; i++)
        value[i] = i < 10 ? 1 + (double)i : 0; /* rank 10, which is not known to the analysis */
    certified_says(40, 1, NULL, "Its condition number is at least ~(certified");
    exact_says(NULL, "Its condition number is at least ~. The ratio of~as computed, is infinite.");
}

/* Five noise floors are too few: rounding may have changed such a Ritz value by a tenth. */
TEST(test_not_clear)
{
    for (size_t i = 0; i < N; i++)
        value[i] = i % 2 == 0 ? 1 : 1e-3;
    for (int clear = 0; clear < 2; clear++) {
        struct ks_statement_inputs inputs;
        struct certified *e = certified_with(30, 1, NULL, &inputs);
        double floor;

        set_error(e, 1e-3 / (clear ? 120 : 30)); /* a sixth of the noise floor */
        floor = ks_statistic(e->s, "noise_floor");
        assert_true(clear ? floor < 1e-4 : floor > 1e-4 && floor < 1e-3);
        says(e->s, &inputs,
             clear ? "Its condition number is between ~, because every Krylov space ended"
                   : "Its condition number is at least ~(certified in float64).");
        certified_free(e);
    }
}

TEST(test_null_space)
{
    const struct ks_null null = {.dimension = 100, .product = 1e-15, .dead = 4},
                         dead = {.product = NAN, .dead = 104}, one = {.product = NAN, .dead = 1};

    for (size_t i = 0; i < N; i++)
        value[i] = i < 104 ? 0 : 1 + (double)(i - 104) / (N - 105);
    certified_says(60, 2, &null,
                   "H~It has an exact null space of at least 104 dimensions (100 from the "
                   "architecture, where products are zero up to 5e-16 of the largest absolute "
                   "eigenvalue; 4 dead coordinates), so its condition number is infinite; off that "
                   "space, the condition number is at least 1.9");
    certified_says(60, 1, &dead, "at least 104 dimensions (104 dead coordinates), so~at least 1.9");
    certified_says(60, 1, &one,
                   "at least 1 dimension (1 dead coordinate), so its condition number is infinite; "
                   "off that space, the condition number is at least ~(certified");
    exact_says(&null,
               "(rounding errors included). It has~; off that space, the condition number is 2, "
               "because all its eigenvalues are known.");
    value[104] = 0; /* one more zero than is known */
    exact_says(&null, "; off that space, the condition number is at least ~, ~");
    certified_says(1, 1, NULL,
                   "is not resolved at m = 1 (1 to 400, 99% interval). Its condition "
                   "number is not resolved at m = 1. The largest absolute");
    for (size_t i = 0; i < N; i++) /* the Krylov space ends, also off the null space */
        value[i] = i < 104 ? 0 : i % 2 == 0 ? 1 : -4;
    certified_says(40, 2, &null,
                   "off that space, the condition number is 4, because every Krylov space ended");
    for (size_t i = 0; i < 4; i++) /* more null directions than are known */
        value[104 + i] = 0;
    certified_says(40, 2, &null,
                   "off that space, the condition number is at least ~(certified in float64)");
}

/* A bound on the rank gives a count of zeros, but no directions. */
TEST(test_rank)
{
    const struct ks_null null = {.dimension = 10, .product = 1e-15};

    for (size_t i = 0; i < N; i++)
        value[i] = i < 300 ? 0 : 1;
    estimate_says(N, (struct certified_run){30, 1, 5, &null, 110, true},
                  "Its rank is so low that its null space has at least 290 dimensions, of which 10 "
                  "directions are known; its condition number is infinite, also off the known "
                  "directions.");
    estimate_says(N, (struct certified_run){30, 1, 5, NULL, 110, true},
                  "at least 290 dimensions, so its condition number is infinite.");
    estimate_says(N, (struct certified_run){30, 1, 5, &null, 390, true},
                  "exact null space of at least 10 dimensions (10 from");
}

/* A weight decay removes the null space. Other operators and blocks are named. */
TEST(test_names)
{
    struct ks_operator a = DIAGONAL(N, value);
    const struct ks_null null = {.dimension = 5, .product = 1e-15};
    const struct ks_statistics_inputs statistics = {
        .n = N, .epsilon = DBL_EPSILON, .null = &null, .shift = 1};
    struct ks_statement_inputs inputs = inputs_of("ggn", &statistics);
    struct ks_spectrum *s = spectrum_new();

    for (size_t i = 0; i < N; i++)
        value[i] = i < 5 ? 1 : 2 + (double)i / N;
    assert_ok(ks_exact(&a, NULL, NULL, s));
    assert_ok(ks_statistics(s, &statistics));
    inputs.critic = 0, inputs.layer = 12, inputs.minibatches = 1;
    says(s, &inputs,
         "On this minibatch, 400 of the 400 eigenvalues of the ggn operator (critic 0, layer "
         "12) have~Along 5 directions the loss is constant, and its only curvature is that of the "
         "weight decay. Its condition number is 3, because all its eigenvalues are known.");
    inputs.critic = -1, inputs.layer = 3;
    says(s, &inputs, "of the ggn operator (layer 3) have");
    inputs.critic = 1, inputs.layer = -1;
    says(s, &inputs, "of the ggn operator (critic 1) have");
}

/* Normals alone do not make a condition number infinite. */
TEST(test_normals)
{
    const struct ks_null normals = {.dimension = 40, .product = 1e-15},
                         others = {.dimension = 43, .product = 1e-15, .dead = 1};

    for (int more = 0; more < 2; more++) {
        struct ks_statement_inputs inputs;
        struct certified *e;

        for (size_t i = 0; i < N; i++)
            value[i] = i < (more ? 44 : 40) ? 0 : 1 + (double)(i - 40) / (N - 41);
        e = certified_with(60, 2, more ? &others : &normals, &inputs);
        inputs.kind = ks_operator_kind_find("manifold");
        inputs.normals = 40;
        says(e->s, &inputs,
             more
                 ? "The 40 normals of the spheres are not directions of the manifold and are left "
                   "out of the condition number. It has an exact null space of at least 4 "
                   "dimensions (3 from the architecture, where~; 1 dead coordinate), so its "
                   "condition number is infinite; off that space, the condition number is at "
                   "least 1."
                 : "are left out of the condition number. Without them, its condition number is at "
                   "least 1.~ absolute eigenvalues, including the zeros of the normals (99% "
                   "interval");
        certified_free(e);
    }
}

/* Quantiles that are infinite or have no upper end. */
TEST(test_quantile)
{
    const struct ks_null most = {.dimension = 399, .product = 1e-15};

    memset(value, 0, sizeof value);
    value[N - 1] = 7;
    certified_says(30, 1, &most, " At least 99% of its eigenvalues are zero.");
    for (size_t i = 0; i < N; i++)
        value[i] = i == 0 ? 1 : 1e-20;
    certified_says(20, 8, NULL,
                   "The largest absolute eigenvalue is at least ~ times as large as the 99% "
                   "quantile of all absolute eigenvalues (99% interval; its upper end is not "
                   "resolved at m = ");
    for (size_t i = 0; i < N; i++)
        value[i] = i < 4 ? 1 : 1e-20;
    certified_says(
        2, 1, NULL,
        "By which factor the largest absolute eigenvalue exceeds the 99% quantile of all "
        "absolute eigenvalues is not resolved at m = 2.");
}

/* A probe at the gradient adds a sentence, with only the resolved quantities. */
TEST(test_gradient)
{
    static const struct {
        double lower, upper;
        const char *words;
    } cases[] = {
        {5.129, 7.121,
         "90% of the gradient's energy (its squared norm) lies on eigenvectors whose absolute "
         "eigenvalues are within a factor K of the largest one; K is 5.12 to 7.13 (99% interval). "
         "The paper's"},
        {5.129, NAN, "of the largest one; K is at least 5.12 (99% interval). The paper's"},
        {1, NAN,
         "Within which factor of the largest absolute eigenvalue 90% of the gradient's energy (its "
         "squared norm) lies is not resolved at m = 30."},
    };

    for (size_t i = 0; i < N; i++)
        value[i] = 1 + (double)i / N;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct ks_statement_inputs inputs;
        struct certified *e = certified_with(30, 2, NULL, &inputs);

        e->s->gradient = true; /* the second probe starts at the gradient */
        ks_attribute_add_number(&e->s->statistics, "kappa_gradient_90_lower", cases[k].lower);
        ks_attribute_add_number(&e->s->statistics, "kappa_gradient_90_upper", cases[k].upper);
        says(e->s, &inputs, cases[k].words);
        certified_free(e);
    }
}

/* The published code's recurrence gives no bounds, even with as many Ritz values as eigenvalues. */
TEST(test_published_recurrence)
{
    enum { SMALL = 20 };
    struct ks_operator a = DIAGONAL(SMALL, value);
    struct slq slq = {.order = SMALL, .probes = 1, .seed = 5, .basis_f32 = true, .published = true};
    const struct ks_statistics_inputs statistics = {
        .n = SMALL, .epsilon = FLT_EPSILON, .basis_epsilon = FLT_EPSILON, .published = true};
    const struct ks_statement_inputs inputs = inputs_of("hessian", &statistics);
    struct ks_spectrum *s = spectrum_new();

    for (size_t i = 0; i < SMALL; i++)
        value[i] = 1 + (double)i;
    assert_ok(slq_run(&a, &slq, s));
    ks_statistics_unweight(s);
    assert_ok(ks_statistics(s, &statistics));
    says(s, &inputs,
         "On these 4 minibatches, the Ritz values of H come from the published code's recurrence, "
         "whose vectors are not orthonormal, so they prove no bounds. The paper's kappa, the ratio "
         "of the largest to the smallest absolute Ritz value at m = ");
}

/* Wrong products in float32 are reported as wrong. */
TEST(test_product_error)
{
    for (size_t i = 0; i < N; i++)
        value[i] = 1 + (double)i / N;
    for (int wrong = 0; wrong < 2; wrong++) {
        struct ks_statement_inputs inputs;
        struct certified *e = certified_with(30, 1, NULL, &inputs);
        char *text;
        size_t first;

        inputs.products_f32 = true;
        set_error(e, wrong ? 0.5 : 1e-4);
        assert_ok(ks_statement(e->s, &inputs, &text, &first));
        assert_true(!wrong == !strstr(text,
                                      " The float32 products are wrong by up to 0.251 of the "
                                      "largest absolute eigenvalue: --precision f64 avoids this."));
        free(text);
        certified_free(e);
    }
}

/* Numbers are rounded to few digits in the direction that keeps a bound true. */
TEST(test_rounding_direction)
{
    assert_close(ks_round_down(1.9999, 3), 1.99, 1e-14);
    assert_close(ks_round_down(1.9999999999999996, 3), 2, 1e-14);
    assert_close(ks_round_up(2.0000000000000004, 3), 2, 1e-14);
    assert_close(ks_round_up(2.0001, 3), 2.01, 1e-14);
    assert_close(ks_round_up(999.5, 3), 1000, 1e-10);
    assert_close(ks_round_down(123456, 4), 123400, 1e-9);
    assert_close(ks_round_down(0, 3), 0, 0);
    assert_close(ks_round_down(-1.231, 3), -1.24, 1e-14);
    assert_close(ks_round_up(-1.239, 3), -1.23, 1e-14);
    assert_close(ks_round_up(-2.0000000000000004, 3), -2, 1e-14);
    assert_true(isinf(ks_round_up(INFINITY, 3)) && isnan(ks_round_up(NAN, 3)));
}
