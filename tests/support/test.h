/* Tests that register themselves, and assertions about numbers and statuses, which cmocka lacks. */
#ifndef KS_TEST_H
#define KS_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/error.h"
#include "core/real.h"

/* TEST(test_x) { ... } is a test of the program in whose file it stands: tests run in the order of
 * their lines. TEST_WITH calls a setup before it and a teardown after it, unless they are NULL. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, setup, teardown)                                                           \
    static void name(void **state);                                                                \
    static int end_##name(void **state)                                                            \
    {                                                                                              \
        return end_test(state, teardown);                                                          \
    }                                                                                              \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        add_test(__LINE__, (struct CMUnitTest){#name, name, setup, end_##name, NULL});             \
    }                                                                                              \
    static void name(void **state)

void add_test(int line, struct CMUnitTest test);
int end_test(void **state, CMFixtureFunction teardown);

/* Frees `memory`, or releases an object, when the test has ended in which this is called, after its
 * teardown; what is held before the first test stays until the last one has ended. */
void *hold(void *memory);
void *hold_object(void *object, void (*release)(void *object));

/* Defines such a function, which calls `release` with the type of its own argument. */
#define RELEASES(name, release)                                                                    \
    static void name(void *object)                                                                 \
    {                                                                                              \
        release(object);                                                                           \
    }

/* Sets an environment variable until the test ends; NULL removes it. */
void set_variable(const char *name, const char *value);

/* Called before and after all tests of a program; NULL if the program does not define them. */
extern CMFixtureFunction tests_setup, tests_teardown;

/* A setup for problems of microseconds, where several threads would only wait for each other. */
int one_thread(void **state);

/* What a call does as memory runs out: in `while (starving(&s)) s.status = call;` the first
 * allocation fails, then the second, ... until the status is KS_OK. Before, it has to be KS_MEMORY,
 * at least `least` times. */
struct starved {
    size_t least, n; /* n: the allocation that fails in this turn */
    ks_status status;
};

bool starving(struct starved *s);

/* Formatted text, in one of 16 buffers used in turn. */
__attribute__((format(printf, 1, 2))) const char *text_of(const char *format, ...);

/* What main calls; a program that does not define main itself has one that does nothing else. */
int run_all_tests(void);

/* Written so that a NaN fails. */
#define assert_close(value, expected, bound)                                                       \
    do {                                                                                           \
        double ks_value = (value), ks_expected = (expected), ks_bound = (bound);                   \
        if (!(fabs(ks_value - ks_expected) <= ks_bound))                                           \
            fail_msg("%s = %.17g, expected %.17g within %g", #value, ks_value, ks_expected,        \
                     ks_bound);                                                                    \
    } while (0)

#define assert_contains(text, words)                                                               \
    do {                                                                                           \
        const char *ks_text = (text);                                                              \
        if (!strstr(ks_text, (words)))                                                             \
            fail_msg("'%s' does not contain '%s'", ks_text, (words));                              \
    } while (0)

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if ((call) != KS_OK)                                                                       \
            fail_msg("%s: %s", #call, ks_error_text());                                            \
    } while (0)

/* Asserts that the call fails with this status and a message that contains `words`. */
#define assert_fails(call, status, words)                                                          \
    do {                                                                                           \
        assert_int_equal((call), (status));                                                        \
        assert_contains(ks_error_text(), (words));                                                 \
    } while (0)

/* |a - b| / |b| of two vectors. */
static inline double relative_error(size_t n, const double *a, const double *b)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < n; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    return sqrt(difference / norm);
}

static inline double dot(size_t n, const real *a, const real *b)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

#endif
