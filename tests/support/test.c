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

/* --- what is held until a test ends --- */

static struct held {
    void *object;
    void (*release)(void *object);
} * held;
static size_t n_held, room, n_before; /* n_before: held before the first test */

void *hold_object(void *object, void (*release)(void *object))
{
    if (n_held == room) {
        room = 2 * room + 64;
        held = realloc(held, room * sizeof *held);
        assert_non_null(held);
    }
    held[n_held++] = (struct held){object, release};
    return object;
}

void *hold(void *memory)
{
    return hold_object(memory, free);
}

struct variable {
    char *name, *value; /* as they were; NULL: not set */
};

static void change_variable(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void restore_variable(void *object)
{
    struct variable *was = object;

    change_variable(was->name, was->value);
    free(was->name), free(was->value), free(was);
}

void set_variable(const char *name, const char *value)
{
    const char *now = getenv(name);
    struct variable *was = malloc(sizeof *was);

    assert_non_null(was);
    *was = (struct variable){strdup(name), now ? strdup(now) : NULL};
    hold_object(was, restore_variable);
    change_variable(name, value);
}

static void release_down_to(size_t n)
{
    while (n_held > n) {
        n_held--;
        held[n_held].release(held[n_held].object);
    }
}

int end_test(void **state, CMFixtureFunction teardown)
{
    const int status = teardown ? teardown(state) : 0;

    release_down_to(n_before);
    return status;
}

static int begin_tests(void **state)
{
    const int status = tests_setup ? tests_setup(state) : 0;

    n_before = n_held;
    return status;
}

static int end_tests(void **state)
{
    const int status = tests_teardown ? tests_teardown(state) : 0;

    release_down_to(0);
    return status;
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
    return _cmocka_run_group_tests("tests", tests, count, begin_tests, end_tests);
}
