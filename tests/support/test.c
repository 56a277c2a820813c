#include "test.h"

#include <assert.h>
#include <omp.h>

#include "core/memory.h"

enum { MOST_TESTS = 64 };

static struct CMUnitTest tests[MOST_TESTS];
static int lines[MOST_TESTS];
static size_t count;

__attribute__((weak)) CMFixtureFunction tests_setup, tests_teardown;

/* Compilers choose the order of these calls, so the tests are sorted by line. */
void add_test(int line, struct CMUnitTest test)
{
    size_t at = count++;

    assert(count <= MOST_TESTS);
    for (; at && lines[at - 1] > line; at--) {
        lines[at] = lines[at - 1];
        tests[at] = tests[at - 1];
    }
    lines[at] = line;
    tests[at] = test;
}

int one_thread(void **state)
{
    omp_set_num_threads(1);
    return 0;
}

bool starving(struct starved *s)
{
    enum { FAR_TOO_MANY = 1000000 };
    bool first = s->n == 0;

    ks_alloc_fail_at(0);
    if (!first && s->status == KS_OK) {
        assert_true(s->n > s->least);
        return false;
    }
    assert_true(first || s->status == KS_MEMORY);
    assert_true(s->n < FAR_TOO_MANY);
    ks_alloc_fail_at(++s->n);
    return true;
}

const char *text_of(const char *format, ...)
{
    static char buffers[16][4096];
    static size_t turn;
    char *text = buffers[turn++ % 16];
    va_list values;

    va_start(values, format);
    assert_true(vsnprintf(text, sizeof buffers[0], format, values) < (int)sizeof buffers[0]);
    va_end(values);
    return text;
}

int run_all_tests(void)
{
    return _cmocka_run_group_tests("tests", tests, count, tests_setup, tests_teardown);
}
