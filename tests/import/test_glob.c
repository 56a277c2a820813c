/* Patterns for names, and the order of names. */
#include "import/glob.h"

#include <string.h>

#include "test.h"

static void test_matches(void **state)
{
    struct ks_glob_parts parts;
    char name[300];

    (void)state;
    assert_true(ks_glob_matches("q*.net.0.weight", "q12.net.0.weight", &parts));
    assert_int_equal(parts.n, 1);
    assert_int_equal(parts.part[0].length, 2);
    assert_true(parts.part[0].start[0] == '1');
    assert_false(ks_glob_matches("q*.weight", "q1.net.weight", NULL));
    assert_false(ks_glob_matches("q*.weight", "q1/net.weight", NULL));
    assert_true(ks_glob_matches("q**.weight", "q1/net.weight", NULL));
    assert_true(ks_glob_matches("q?", "q1", NULL));
    assert_false(ks_glob_matches("q?", "q.", NULL));
    assert_false(ks_glob_matches("q?", "q", NULL));
    assert_true(ks_glob_matches("*", "", NULL));
    assert_true(ks_glob_matches("a*b*c", "abbcbc", &parts));
    assert_int_equal(parts.part[0].length, 0);
    assert_false(ks_glob_matches("a", "ab", NULL));
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_false(ks_glob_matches("*a*a*a*a*a*a*a*b", name, NULL)); /* at once */
}

static void test_order(void **state)
{
    (void)state;
    assert_true(ks_glob_compare("q2.w", "q10.w") < 0);
    assert_true(ks_glob_compare("q10.w", "q9.w") > 0);
    assert_true(ks_glob_compare("q02", "q2") == 0);
    assert_true(ks_glob_compare("a", "ab") < 0);
    assert_true(ks_glob_compare("b", "a10") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
