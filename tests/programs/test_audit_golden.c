/* No sentence and no interval of an audit contradicts the eigenvalues of critics that were made to
 * deceive: those of ../shared/golden/claims, if that folder exists. */
#include <ctype.h>

#include "core/number.h"
#include "example.h"
#include "programs.h"

static const char FOLDER[] = "../shared/golden/claims";
static const double SLACK = 1e-6; /* relative; of the stored eigenvalues and of printed digits */

struct truth {
    size_t n;
    double *value, *size; /* [n] eigenvalues and their absolute values, ascending */
};

static struct truth read_truth(const char *path)
{
    struct truth t;

    t.value = read_list(path, "/eigenvalues", &t.n);
    t.size = hold(calloc(t.n, sizeof *t.size));
    for (size_t i = 0; i < t.n; i++)
        t.size[i] = fabs(t.value[i]);
    qsort(t.value, t.n, sizeof *t.value, ks_ascending);
    qsort(t.size, t.n, sizeof *t.size, ks_ascending);
    return t;
}

static size_t count_above(const struct truth *t, double size)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        n += t->size[i] > size;
    return n;
}

/* Joins the lines of the output: every run of blanks and newlines becomes one blank. */
static void join_lines(void)
{
    char *to = printed;

    for (const char *from = printed; *from; from++)
        if (!isspace((unsigned char)*from) || (to > printed && to[-1] != ' '))
            *to++ = isspace((unsigned char)*from) ? ' ' : *from;
    *to = '\0';
}

/* The number behind these words; false if they are not in the output. */
static bool find_number(const char *words, double *value)
{
    const char *at = strstr(printed, words);

    return at && sscanf(at + strlen(words), "%lf", value) == 1;
}

/* "NAME [LOWER, UPPER]", "NAME VALUE [LOWER, UPPER]" or "NAME at least LOWER" in the table. */
static void check_interval(const char *name, double truth, size_t *checked)
{
    double lower = -INFINITY, upper = INFINITY;
    const char *words = text_of(" %s ", name), *at = strstr(printed, words);

    assert_non_null(at);
    at += strlen(words);
    if (sscanf(at, "[%lf, %lf]", &lower, &upper) != 2 &&
        sscanf(at, "%*f [%lf, %lf]", &lower, &upper) != 2 &&
        sscanf(at, "at least %lf", &lower) != 1)
        return;
    if (lower * (1 - SLACK) > truth || upper * (1 + SLACK) < truth)
        fail_msg("%s: %g to %g, but it is %g", name, lower, upper, truth);
    ++*checked;
}

static void check_sentences(const struct truth *t, size_t *checked)
{
    const double largest = t->size[t->n - 1];
    double bound, low, percent;

    if (find_number("ondition number is at least ", &bound)) {
        assert_true(bound * (1 - SLACK) <= largest / t->size[0]);
        ++*checked;
    }
    if (find_number("the smallest eigenvalue is at most ", &low)) {
        assert_true(low < 0 && t->value[0] <= low + SLACK * largest);
        assert_true(find_number("Its size is at least ", &percent));
        assert_true(percent <= -100 * t->value[0] / largest * (1 + SLACK));
        ++*checked;
    }
    assert_null(strstr(printed, "curvature is exactly zero")); /* it is not, along any direction */
}

static void check_audit(const struct truth *t, size_t *checked)
{
    static const char *const directions[] = {"directions_1e1", "directions_1e2", "directions_1e3",
                                             "directions_1e4"};
    static const char *const quantiles[] = {"kappa_q99", "kappa_q90", "kappa_q50"};
    static const size_t percent[] = {99, 90, 50};
    const double largest = t->size[t->n - 1];

    check_sentences(t, checked);
    for (int i = 0; i < 4; i++)
        check_interval(directions[i], (double)count_above(t, largest / pow(10, i + 1)), checked);
    for (size_t i = 0; i < 3; i++)
        check_interval(quantiles[i], largest / t->size[(t->n * percent[i] + 99) / 100 - 1],
                       checked);
}

static size_t checked; /* statements */

static void audit_file(const char *name)
{
    static const int orders[] = {3, 12, 40};
    const struct truth t = read_truth(text_of("%s/%s.eig.h5", FOLDER, name));

    copy_file(text_of("%s/%s.h5", FOLDER, name), scratch("golden.h5"));
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        assert_int_equal(audit(text_of("--quiet --order %d --layer-order 0 golden.h5", orders[i])),
                         0);
        join_lines();
        check_audit(&t, &checked);
    }
}

TEST(test_golden)
{
    const size_t files = each_file(FOLDER, ".eig.h5", audit_file);

    print_message("%zu critics, %zu statements\n", files, checked);
    assert_true(files > 0 && checked > 60);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
