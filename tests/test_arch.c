/* The grammar of descriptions: sizes, numbering, places, and one clear line for every mistake. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "ks/arch.h"

static const char *const XQC = "batchnorm\n"
                               "repeat 4 {\n"
                               "  dense 512 bias=no project=unit\n"
                               "  batchnorm\n"
                               "  relu\n"
                               "}\n"
                               "dense 101 project=unit-kernel\n"
                               "loss ce min=-5 max=5\n";

static struct ks_arch *parse(const char *text, size_t in)
{
    struct ks_arch *arch = NULL;

    assert_ok(KS(arch_parse)(text, "test.arch", in, &arch));
    return arch;
}

/* 2*261 + 261*512 + 3*512*512 + 4*2*512 + 512*101 + 101 = 976,495 */
static void test_xqc(void **state)
{
    struct ks_arch *a = parse(XQC, 223 + 38);
    char name[32];

    (void)state;
    assert_int_equal(a->parameters, 976495);
    assert_int_equal(a->states, 2 * 261 + 4 * 2 * 512);
    assert_int_equal(a->n_layers, 1 + 4 * 3 + 1);
    assert_int_equal(a->out, 101);
    assert_true(a->joint);
    KS(arch_group)(&a->layer[4], name);
    assert_string_equal(name, "04_dense");
    assert_int_equal(a->layer[1].offset, 2 * 261);
    assert_int_equal(a->layer[1].sphere_rows, 261);
    assert_int_equal(a->layer[13].sphere_rows, 512);
    assert_int_equal(a->layer[13].offset, 976495 - 512 * 101 - 101);
    KS(arch_free)(a);
}

static void test_nested_repeat_and_comments(void **state)
{
    struct ks_arch *a = parse(
        "# a comment\n\nrepeat 2 { # twice\n  dense 3\n  repeat 3 {\n relu\n}\n}\r\n"
        "dense 1\nloss mse weight=2\n# end",
        2);

    (void)state;
    assert_int_equal(a->n_layers, 2 * 4 + 1);
    assert_int_equal(a->parameters, (2 * 3 + 3) + (3 * 3 + 3) + 4);
    assert_int_equal(a->layer[4].number, 4);
    assert_close(a->loss.weight, 2, 0);
    assert_false(a->joint);
    KS(arch_free)(a);
}

static void test_actor(void **state)
{
    struct ks_arch *a = parse("dense 8\npolicy tanh-gaussian log-std=clip min=-10 max=2\n", 5);

    (void)state;
    assert_int_equal(a->policy.actions, 4);
    assert_false(a->policy.squash);
    assert_close(a->policy.log_std_min, -10, 0);
    assert_null(a->loss.kind);
    KS(arch_free)(a);
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"dens 3\ndense 1\nloss mse", "test.arch:1: 'dens' is not a layer"},
        {"dense 3 bais=no\ndense 1\nloss mse", "test.arch:1: 'dense' does not know 'bais=no'"},
        {"dense\n", "test.arch:1: 'dense' needs width"},
        {"dense 0\n", "test.arch:1: width: expected an integer from 1"},
        {"dense 2.5\n", "test.arch:1: width: expected an integer"},
        {"dense x\n", "test.arch:1: width: expected a number, found 'x'"},
        {"dense nan\n", "test.arch:1: width: expected a number"},
        {"dense 3 bias=maybe\n", "test.arch:1: bias: expected no|yes, found 'maybe'"},
        {"dense 3 bias=no bias=no\n", "test.arch:1: option 'bias' is given twice"},
        {"dense 3 groups=2\n", "test.arch:1: groups: expected a divisor of 4 and 3"},
        {"batchnorm eps=-1\n", "test.arch:1: eps: expected a number from"},
        {"relu 3\n", "test.arch:1: 'relu' does not know '3'"},
        {"relu {\n", "test.arch:1: 'relu' is not a container"},
        {"\n\nrepeat 2 {\n}\ndense 1\nloss mse",
         "test.arch:4: the 'repeat' opened in line 3 is empty"},
        {"repeat 2 {\ndense 1\nloss mse", "test.arch:3: 'loss' stands inside a container"},
        {"repeat 2 {\ndense 1\n", "test.arch:2: a '{' is never closed"},
        {"repeat 2\ndense 1\n}\n", "test.arch:1: 'repeat' needs '{'"},
        {"repeat 0 {\ndense 1\n}\n", "test.arch:1: a number of repetitions: expected"},
        {"repeat 2 {\ndense 1\n} relu\n", "test.arch:3: '}' must stand alone"},
        {"}\n", "test.arch:1: '}' closes nothing"},
        {"dense 1\n", "test.arch:1: the line 'loss ...' is missing"},
        {"", "test.arch:0: the line 'loss ...' is missing"},
        {"dense 1\nrelu\nloss mse", "test.arch:3: the last layer must be a dense"},
        {"repeat 1 {\ndense 1\n}\nloss mse", "test.arch:4: the last layer must be a dense"},
        {"dense 1\nloss mse\nloss mse", "test.arch:3: 'loss' after the last line"},
        {"dense 2\nloss mse", "test.arch:2: mse: expected a last dense of 1 column, found 2"},
        {"dense 1\nloss ce min=0 max=1", "test.arch:2: ce: expected a last dense of at least 2"},
        {"dense 2\nloss ce min=0", "test.arch:2: ce: needs min=V and max=V"},
        {"dense 2\nloss ce min=1 max=0", "test.arch:2: ce: expected min < max"},
        {"dense 2\nloss cross", "test.arch:2: 'cross' is not a loss (known: mse, ce"},
        {"dense 3\npolicy tanh-gaussian", "test.arch:2: policy: expected an even number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_arch *a = NULL;

        assert_fails(KS(arch_parse)(cases[i].text, "test.arch", 4, &a), KS_FORMAT,
                     cases[i].message);
        assert_null(a);
    }
}

static void test_exploding_repeat(void **state)
{
    struct ks_arch *a = NULL;

    (void)state;
    assert_fails(
        KS(arch_parse)("repeat 1000 {\nrepeat 1000 {\nrelu\n}\n}\ndense 1\nloss mse", "t", 4, &a),
        KS_FORMAT, "more than 4096 layers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xqc),
        cmocka_unit_test(test_nested_repeat_and_comments),
        cmocka_unit_test(test_actor),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_exploding_repeat),
    };
    return cmocka_run_group_tests_name("arch", tests, NULL, NULL);
}
