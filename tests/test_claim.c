/* The sentence about a spectrum says what holds, and nothing where nothing does. */
#include "ks/claim.h"

#include <stdio.h>

#include "ks/memory.h"
#include "summaries.h"

enum { N = 400 };
static double value[N];

/* As the analyzer describes it. */
static void describe(struct ks_spectrum *s, size_t n, const char *operator_name,
                     double weight_decay, int critic, int layer)
{
    assert_ok(ks_attribute_add_string(&s->attributes, "operator", operator_name));
    assert_ok(ks_attribute_add_string(&s->attributes, "precision", "f64"));
    assert_ok(ks_attribute_add_integer(&s->attributes, "dimension", (int64_t)n));
    assert_ok(ks_attribute_add_number(&s->attributes, "weight_decay", weight_decay));
    assert_ok(ks_attribute_add_integer(&s->attributes, "critic", critic));
    assert_ok(ks_attribute_add_integer(&s->attributes, "layer", layer));
}

/* The claim holds each of the words, which a '|' divides, in this order; it is one sentence.
 * `normals`: of the null dimension. Frees the spectrum. */
static void claims_off(size_t normals, struct ks_spectrum *s, const char *words)
{
    char *text = NULL, list[1024];
    const char *at;

    assert_ok(ks_claim(s, normals, &text));
    snprintf(list, sizeof list, "%s", words);
    at = text;
    for (char *word = strtok(list, "|"); word; word = strtok(NULL, "|")) {
        const char *found = strstr(at, word);

        if (!found)
            fail_msg("'%s' does not hold '%s' where it should", text, word);
        at = found + strlen(word);
    }
    assert_null(strstr(text, "nan"));
    assert_null(strchr(text, '\n'));
    assert_true(text[0] < 'a' && text[strlen(text) - 1] == '.');
    free(text);
    ks_spectrum_free(s);
}

static void claims(struct ks_spectrum *s, const char *words)
{
    claims_off(0, s, words);
}

/* diag(value) by Lanczos. */
static struct ks_spectrum *of_values(size_t order, size_t probes, const struct ks_null *null)
{
    struct diagonal d = {.n = N, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_spectrum *s = estimate_with(&a, order, probes, 5, null);

    describe(s, N, "hessian", 0, -1, -1);
    return s;
}

static struct ks_spectrum *all_of_values(const struct ks_null *null)
{
    struct diagonal d = {.n = N, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_spectrum *s = exact_with(&a, null);

    describe(s, N, "hessian", 0, -1, -1);
    return s;
}

/* The bound of the operator as it was computed is claimed where noise allows it. */
static void test_lower_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = 1 + (double)i / (N - 1); /* the condition number is 2 */
    claims(
        of_values(60, 3, NULL),
        "The condition number of H is at least 1.99; 90% of its |eigenvalues| are smaller than the "
        "largest by a factor of about 1.|or more; the paper's kappa = 2 is a ratio of Ritz values "
        "at m = 60, and grew by a factor of 1 from m = 30 to 60.");
    claims(of_values(30, 1, NULL), "at least 1.9|kappa = 2 is a ratio of Ritz values at m = 30.");
}

/* How far kappa moves, though the condition number is 2: both ways. */
static void test_kappa_moves(void **state)
{
    struct ks_spectrum *s;
    char words[128];

    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = (i % 2 == 0 ? 1 : -1) * (1 + (double)(i / 2) / (N / 2 - 1));
    for (int turn = 0; turn < 2; turn++) {
        double ratio;

        if (turn == 1) /* so that the odd one out is met at m = 30 */
            for (size_t i = 0; i < N; i++)
                value[i] = i == 0 ? 9 : value[i];
        s = of_values(31, 1, NULL);
        ratio = ks_summary_get(s, "kappa") / ks_summary_get(s, "kappa_m30");
        snprintf(words, sizeof words, "Ritz values at m = 31, and %s by a factor of %.3g from",
                 turn == 0 ? "grew" : "fell", turn == 0 ? ratio : 1 / ratio);
        claims(s, words);
    }
}

/* Zero, and what is zero times the identity. */
static void test_zero(void **state)
{
    const struct ks_null null = {.dimension = 3, .product = 0};

    (void)state;
    memset(value, 0, sizeof value);
    claims(of_values(40, 2, NULL), "H is zero and has no condition number.");
    claims(of_values(40, 2, &null), "H is zero and has no condition number.");
    claims(all_of_values(NULL), "H is zero and has no condition number.");
}

/* The Krylov space ends: the Ritz values are the eigenvalues. */
static void test_breakdown(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = -3;
    claims(
        of_values(40, 2, NULL),
        "The condition number of H is 1, as its Krylov spaces end|90%|factor of about 1 or more; "
        "the paper's kappa = 1 is a ratio of Ritz values at m = 1.");
    for (size_t i = 0; i < N; i++)
        value[i] = i % 2 == 0 ? 1 : -5;
    claims(of_values(40, 2, NULL), "The condition number of H is 5, as|at m = 2.");
    for (size_t i = 0; i < N; i++)
        value[i] = i < 10 ? 1 + (double)i : 0; /* rank 10, and nobody knew */
    claims(of_values(40, 1, NULL),
           "H cannot be told from a singular operator in f64: its condition number is at least |"
           "what rounding leaves of kappa_lower_bound = |90% of its eigenvalues are zero to f64 "
           "precision; the paper's kappa = |at m = 1");
}

/* As many steps as dimensions are all. */
static void test_whole_space(void **state)
{
    struct diagonal d = {.n = 30, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_spectrum *s;

    (void)state;
    for (size_t i = 0; i < 30; i++)
        value[i] = 1 + (double)i;
    s = estimate(&a, 30, 1);
    describe(s, 30, "hessian", 0, -1, -1);
    claims(s, "The condition number of H is 30, as its Krylov spaces end");
}

static void test_null_space(void **state)
{
    const struct ks_null null = {.dimension = 100, .product = 1e-15, .dead = 4},
                         dead = {.product = NAN, .dead = 104};
    struct ks_spectrum *s;
    char words[512];

    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = i < 104 ? 0 : 1 + (double)(i - 104) / (N - 105);
    s = of_values(60, 2, &null);
    snprintf(
        words, sizeof words,
        "H has an exact null space of dimension 104 (100 by its architecture, where products "
        "are zero to 5e-16 of lambda_abs_max, and 4 dead coordinates), so its condition number "
        "is infinite; on the rest it is at least %.2f",
        floor(100 * ks_summary_get(s, "kappa_effective_bound")) / 100);
    claims(s, words);
    claims(of_values(60, 2, &null),
           "on the rest it is at least 1.|(with 99% confidence); 90%|kappa");
    claims(of_values(60, 1, &dead), "null space of dimension 104 (104 dead coordinates), so|on the "
                                    "rest it is at least 1.");
    value[104] = 0; /* one more than is known */
    claims(all_of_values(&null),
           "infinite; the rest cannot be told from a singular operator in f64; "
           "90%");
    value[104] = 1;
    claims(of_values(1, 1, &null), "infinite; how the rest is conditioned cannot be told");
    claims(all_of_values(&null),
           "infinite; on the rest it is at least 2; 90%|factor of 1.|or more; "
           "kappa = |is the ratio of the largest to the smallest");
}

/* A weight decay lifts the null space; other operators and blocks have their names. */
static void test_names(void **state)
{
    struct diagonal d = {.n = N, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    const struct ks_null null = {.dimension = 5, .product = 1e-15};
    struct ks_summary_terms terms = {.n = N, .epsilon = DBL_EPSILON, .null = &null, .shift = 1};
    struct ks_spectrum *s = spectrum_new();

    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = i < 5 ? 1 : 2 + (double)i / N;
    assert_ok(ks_exact(&a, NULL, NULL, s));
    assert_ok(ks_summary(s, &terms));
    describe(s, N, "ggn", 1, 0, 12);
    claims(s,
           "On 5 directions that leave the loss as it is, the ggn operator (critic 0, layer 12) is "
           "the weight decay; the condition number of the ggn operator (critic 0, layer 12) is 3, "
           "as all its eigenvalues are known;");
    s = estimate(&a, 30, 1);
    describe(s, N, "manifold", 0, -1, 3);
    claims(s, "The condition number of the manifold operator (layer 3) is at least");
    s = exact_with(&a, NULL);
    describe(s, N, "preconditioned", 0, -1, 0);
    claims(s, "The condition number of the preconditioned operator (layer 0) is 3, as all its");
    s = estimate_with(&a, 30, 1, 5, &null);
    describe(s, N, "residual", 0.5, 1, -1); /* the decay is in the ggn */
    claims(s, "The residual operator (critic 1) has an exact null space of dimension 5 (5 by");
}

static struct ks_spectrum *as_manifold(struct ks_spectrum *s)
{
    ks_attributes_clear(&s->attributes);
    describe(s, N, "manifold", 0.5, -1, -1); /* the decay takes no null direction that is counted */
    return s;
}

/* Normals alone make no condition number infinite. */
static void test_normals(void **state)
{
    const struct ks_null normals = {.dimension = 40, .product = 1e-15},
                         others = {.dimension = 43, .product = 1e-15, .dead = 1},
                         dead = {.dimension = 40, .product = 1e-15, .dead = 4};

    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = i < 40 ? 0 : 1 + (double)(i - 40) / (N - 41);
    claims_off(40, as_manifold(of_values(60, 2, &normals)),
               "Off the 40 normals of its spheres, the condition number of the manifold operator "
               "is at least 1.|(with 99% confidence); 90% of its |eigenvalues|, the normals' "
               "counted in, are smaller than");
    claims_off(40, as_manifold(all_of_values(&normals)),
               "Off the 40 normals of its spheres, the condition number of the manifold operator "
               "is at least 2; 90%");
    claims_off(40, as_manifold(of_values(1, 1, &normals)),
               "Off the 40 normals of its spheres, how the manifold operator is conditioned "
               "cannot be told from this spectrum; 90%");
    value[40] = 0; /* one more than is known */
    claims_off(40, as_manifold(all_of_values(&normals)),
               "Off the 40 normals of its spheres, the manifold operator cannot be told from a "
               "singular operator in f64; 90%");
    for (size_t i = 40; i < 44; i++)
        value[i] = 0;
    claims_off(40, as_manifold(of_values(60, 2, &others)),
               "Off the 40 normals of its spheres, the manifold operator has an exact null space "
               "of dimension 4 (3 by its architecture, where|and 1 dead coordinates), so its "
               "condition number is infinite; on the rest it is at least 1.");
    claims_off(40, as_manifold(of_values(60, 2, &dead)),
               "Off the 40 normals|null space of dimension 4 (4 dead coordinates), so its");
    for (size_t i = 0; i < N; i++)
        value[i] = i < 390 ? 0 : 1;
    claims_off(40, as_manifold(all_of_values(&normals)),
               "Off the 40|; 90% of its eigenvalues, the normals' counted in, are zero to f64");
}

/* An eigenvalue that is exactly zero, or that --exact cannot tell from it. */
static void test_infinite(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++)
        value[i] = i == 0 ? 0 : (double)i;
    claims(all_of_values(NULL),
           "H cannot be told from a singular operator in f64|kappa_lower_bound "
           "= inf; 90%|kappa = inf is the ratio");
    for (size_t i = 0; i < N; i++)
        value[i] = i < 390 ? 0 : 1;
    claims(all_of_values(NULL), "; 90% of its eigenvalues are zero to f64 precision; kappa = inf");
}

/* --compat xqc weighs Ritz values alike; --exact has eigenvalues, which weigh alike anyway. */
static void test_unweighted(void **state)
{
    struct ks_spectrum *s;

    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        for (size_t i = 0; i < N; i++)
            value[i] = 1 + (double)i / (N - 1);
        s = exact ? all_of_values(NULL) : of_values(30, 1, NULL);
        assert_ok(ks_attribute_add_string(&s->attributes, "compat", "xqc"));
        claims(s, exact ? "; 90% of its |eigenvalues| are" : "; 90% of its |Ritz values| are");
    }
}

/* What the published code's process leaves is no basis for a bound, even where there are as many
 * Ritz values as eigenvalues. */
static void test_published_process(void **state)
{
    enum { SMALL = 20 };
    struct diagonal d = {.n = SMALL, .value = value};
    struct ks_operator a = diagonal_operator(&d);
    struct ks_slq slq = {.order = SMALL, .probes = 1, .seed = 5, .single = true, .xqc = true};
    struct ks_summary_terms terms = {
        .n = SMALL, .epsilon = FLT_EPSILON, .basis_epsilon = FLT_EPSILON, .unweighted = true};
    struct ks_spectrum *s = spectrum_new();

    (void)state;
    for (size_t i = 0; i < SMALL; i++)
        value[i] = 1 + (double)i;
    assert_ok(ks_slq(&a, &slq, s));
    ks_summary_unweight(s);
    assert_ok(ks_summary(s, &terms));
    describe(s, SMALL, "hessian", 0, -1, -1);
    assert_ok(ks_attribute_add_string(&s->attributes, "compat", "xqc"));
    claims(s, "How H is conditioned cannot be told from this spectrum; 90% of its |Ritz values| "
              "are|; the paper's kappa = 20 is a ratio of Ritz values at m = 20.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lower_bound), cmocka_unit_test(test_kappa_moves),
        cmocka_unit_test(test_zero),        cmocka_unit_test(test_breakdown),
        cmocka_unit_test(test_whole_space), cmocka_unit_test(test_null_space),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_infinite),
        cmocka_unit_test(test_unweighted),  cmocka_unit_test(test_published_process),
        cmocka_unit_test(test_normals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
