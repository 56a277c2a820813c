/* The grammar of descriptions: sizes, numbers, offsets, and a one-line message for every mistake.
 */
#include <glob.h>

#include "test.h"

#include "core/memory.h"
#include "io/file.h"
#include "net/arch.h"

static const char *const XQC = "batchnorm\n"
                               "repeat 4 {\n"
                               "  dense 512 bias=no project=unit\n"
                               "  batchnorm\n"
                               "  relu\n"
                               "}\n"
                               "dense 101 project=unit-kernel\n"
                               "loss ce min=-5 max=5\n";

RELEASES(free_arch, KS(arch_free))

static struct KS(arch) *parse(const char *text, size_t in)
{
    struct KS(arch) *arch = NULL;

    assert_ok(KS(arch_parse)(text, "test.arch", in, &arch));
    return hold_object(arch, free_arch);
}

/* 2*261 + 261*512 + 3*512*512 + 4*2*512 + 512*101 + 101 = 976,495 */
TEST(test_xqc)
{
    struct KS(arch) *a = parse(XQC, 223 + 38);
    char name[32];

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
}

/* Slices of the input and of features do not count; concat does. */
TEST(test_joined_input)
{
    struct KS(arch) *a = parse(
        "input [:3]\ndense 5\nslice [1:]\nconcat input[3:7]\ndense 1\nloss mse\n", 7);

    assert_int_equal(a->in, 7);
    assert_int_equal(a->n_layers, 5);
    assert_int_equal(a->layer[1].in, 3);
    assert_int_equal(a->layer[1].number, 0);
    assert_int_equal(a->layer[3].number, 1);
    assert_int_equal(a->layer[4].number, 2);
    assert_int_equal(a->layer[4].in, 4 + 4);
    assert_int_equal(a->parameters, 3 * 5 + 5 + 8 + 1);
}

TEST(test_nested_repeat_and_comments)
{
    struct KS(arch) *a = parse(
        "# a comment\n\nrepeat 2 { # twice\n  dense 3\n  repeat 3 {\n relu\n}\n}\r\n"
        "dense 1\nloss mse weight=2\n# end",
        2);

    assert_int_equal(a->n_layers, 2 * 4 + 1);
    assert_int_equal(a->parameters, (2 * 3 + 3) + (3 * 3 + 3) + 4);
    assert_int_equal(a->layer[4].number, 4);
    assert_close(a->loss.weight, 2, 0);
    assert_false(a->joint);
}

static void assert_group(const struct KS(arch) *a, size_t k, const char *group)
{
    char name[32];

    KS(arch_group)(&a->layer[k], name);
    assert_string_equal(name, group);
}

/* A residual has no number of its own; a lerp gets its number where it closes. Both follow their
 * body in the list. */
TEST(test_containers)
{
    struct KS(arch) *a = parse("residual {\n"
                               "  repeat 2 {\n"
                               "    lerp init=0.5 scale=0.25 {\n"
                               "      residual {\n"
                               "        relu\n"
                               "        dense 4\n"
                               "      }\n"
                               "    }\n"
                               "  }\n"
                               "  l2norm\n"
                               "}\n"
                               "dense 1\n"
                               "loss mse\n",
                               4);
    static const size_t body[] = {0, 1, 0, 0, 4, 5, 4, 4, 8, 0, 10};

    assert_int_equal(a->n_layers, 11);
    for (size_t k = 0; k < a->n_layers; k++)
        assert_int_equal(a->layer[k].body, body[k]);
    assert_group(a, 0, "00_relu");
    assert_group(a, 1, "01_dense");
    assert_group(a, 2, "02_residual"); /* not in a checkpoint: it has no parameters */
    assert_group(a, 3, "02_lerp");
    assert_group(a, 4, "03_relu");
    assert_group(a, 5, "04_dense");
    assert_group(a, 7, "05_lerp");
    assert_group(a, 8, "06_l2norm");
    assert_group(a, 9, "07_residual");
    assert_group(a, 10, "07_dense");
    assert_int_equal(a->layer[1].offset, 0);
    assert_int_equal(a->layer[3].offset, 20); /* alpha follows the body's parameters */
    assert_int_equal(a->layer[5].offset, 24);
    assert_int_equal(a->layer[7].offset, 44);
    assert_int_equal(a->layer[10].offset, 48);
    assert_int_equal(a->parameters, 53);
    assert_string_equal(a->layer[3].param[0].name, "alpha");
    assert_close(a->layer[3].param[0].start, 0.25, 0);
}

/* The descriptions of published critics in configs/arch: their parameters for dog-trot (261 inputs;
 * MR.Q's embeddings have 512), which the comment of each file states, and whether `train` has the
 * system. */
TEST(test_published_critics)
{
    static const struct {
        const char *name;
        size_t in, parameters;
    } critics[] = {{"brc", 261, 17549413},         {"bro", 261, 1241188},
                   {"bronet-bn", 261, 1241701},    {"crossq", 261, 4743691},
                   {"crossq-wn", 261, 399883},     {"flashsac", 261, 1147247},
                   {"drqv2", 88, 1141761},         {"drqv2-small", 88, 88833},
                   {"xqc-pixels", 88, 3347733},    {"xqc-pixels-small", 88, 247317},
                   {"mrq-value", 512, 788481},     {"sac", 261, 133121},
                   {"simba", 261, 4337153},        {"simba-v2", 261, 4648549},
                   {"simba-v2-small", 261, 326629}};
    const size_t n = sizeof critics / sizeof *critics;
    glob_t found;

    assert_int_equal(glob("configs/arch/*.arch", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, n);
    globfree(&found);
    for (size_t i = 0; i < n; i++) {
        char *text = NULL;
        struct KS(arch) *a;

        assert_ok(ks_text_read(text_of("configs/arch/%s.arch", critics[i].name), &text, NULL));
        a = parse(text, critics[i].in);
        assert_int_equal(a->parameters, critics[i].parameters);
        assert_contains(text, text_of("%zu,%03zu parameters", a->parameters / 1000 % 1000,
                                      a->parameters % 1000));
        assert_true(strstr(text, "Not trained here") || strstr(text, "` trains the system."));
        free(text);
    }
}

/* The actor of SimBa-V2 at its published size. */
TEST(test_published_actor)
{
    struct KS(arch) *a = parse(
        "append 3\nl2norm\ndense 128 bias=no project=unit\nscaler init=0.125 scale=0.125\nl2norm\n"
        "lerp init=0.5 scale=0.08838834764831845 {\ndense 512 bias=no project=unit\n"
        "scaler init=0.0625 scale=0.0625\nrelu shift=1e-8\ndense 128 bias=no project=unit\nl2norm\n"
        "}\ndense 256 bias=no project=unit\nscaler\ndense 76 groups=2 project=unit-kernel\n"
        "policy tanh-gaussian log-std=squash min=-10 max=2\n",
        223);

    assert_int_equal(a->parameters, 203340);
}

/* The critic of DrQ-v2 for 6 actions at its published size; a convolution gets its image through
 * activations. */
TEST(test_images)
{
    struct KS(arch) *a = parse("input [:63504]\n"
                               "conv2d 32 channels=9 height=84 width=84 size=3 stride=2\nrelu\n"
                               "repeat 3 {\nconv2d 32 size=3\nrelu\n}\ndense 50\n"
                               "layernorm eps=1e-5\ntanh\nconcat input[63504:]\n"
                               "branch {\nrepeat 2 {\ndense 1024\nrelu\n}\ndense 1\n"
                               "loss mse weight=2\n}\n"
                               "branch {\nrepeat 2 {\ndense 1024\nrelu\n}\ndense 1\n"
                               "loss mse weight=2\n}\n",
                               9 * 84 * 84 + 6);
    size_t encoder = 9 * 9 * 32 + 32 + 3 * (32 * 9 * 32 + 32);
    size_t head = 56 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 + 1;

    assert_int_equal(a->layer[1].out, 32 * 41 * 41);
    assert_int_equal(a->layer[7].out, 32 * 35 * 35);
    assert_int_equal(a->layer[9].in, 39200); /* repr_dim there */
    assert_int_equal(a->parameters, encoder + 39200 * 50 + 50 + 2 * 50 + 2 * head);
}

TEST(test_losses)
{
    /* a byte order mark is no part of the description */
    struct KS(arch) *huber = parse("\xEF\xBB\xBF"
                                   "dense 1\nloss huber delta=0.7 weight=0.5\n",
                                   3);
    struct KS(arch) *quantile = parse("dense 8\nloss quantile\n", 3);

    assert_close(huber->loss.delta, 0.7, 0);
    assert_close(huber->loss.weight, 0.5, 0);
    assert_int_equal(huber->loss.targets, 1);
    assert_close(quantile->loss.delta, 1, 0);
    assert_int_equal(quantile->loss.targets, 8);
}

TEST(test_actor)
{
    struct KS(arch) *a = parse("dense 8\npolicy tanh-gaussian log-std=clip min=-10 max=2\n", 5);

    assert_int_equal(a->policy.actions, 4);
    assert_false(a->policy.squash);
    assert_close(a->policy.log_std_min, -10, 0);
    assert_null(a->loss.kind);
}

TEST(test_mistakes)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"dens 3\ndense 1\nloss mse",
         "1: unknown layer 'dens': did you mean 'dense'? (known: dense, "},
        {"dense 3 bais=no\ndense 1\nloss mse",
         "1: unknown option 'bais=no' for 'dense': did you mean 'bias='? (known: bias, "},
        {"dense\n", "1: 'dense' needs width"},
        {"dense 3\rrelu\ndense 1\n", "1: expected one line, found a carriage return within it"},
        {"# old\rdense 3\n", "1: expected one line, found a carriage return within it"},
        {"dense 0\n", "1: width: expected an integer from 1"},
        {"dense 2.5\n", "1: width: expected an integer"},
        {"dense x\n", "1: width: expected a number, found 'x'"},
        {"dense nan\n", "1: width: expected a number"},
        {"dense 3 bias=maybe\n", "1: bias: expected no|yes, found 'maybe'"},
        {"dense 3 bias=no bias=no\n", "1: option 'bias' is given twice"},
        {"dense 3 groups=2\n", "1: groups: expected a divisor of 4 and 3"},
        {"dense 4 norm=weight project=unit\n", "1: dense: norm=weight contradicts project=unit"},
        {"dense 4 norm=spectral groups=2\n", "1: dense: norm=spectral contradicts groups=2"},
        {"conv2d 3 size=2\n", "1: conv2d: expected channels, height and width of an image of 4 "
                              "features, found 0 x 0 x 0"},
        {"conv2d 3 channels=1 height=2 width=2\n",
         "1: conv2d: expected size=K of at most 2, found 0"},
        {"conv2d 3 channels=1 height=2 width=2 size=3\n",
         "1: conv2d: expected size=K of at most 2, found 3"},
        {"conv2d 3 channels=1 height=2 width=2 size=2 stride=1.5\n",
         "1: stride: expected an integer, found 1.5"},
        {"conv2d 3 channels=1 height=2 width=2 size=1\ndense 12\nconv2d 2 size=1\n",
         "3: conv2d: expected channels, height and width of an image of 12 features"},
        {"groupnorm\n", "1: groupnorm: expected groups=G, a divisor of 4"},
        {"groupnorm groups=3\n", "1: groups: expected a divisor of 4, found 3"},
        {"groupnorm groups=1.5\n", "1: groups: expected a divisor of 4, found 1.5"},
        {"groupnorm groups=2 affine=no bias=yes\n", "1: groupnorm: bias=yes contradicts affine=no"},
        {"batchnorm eps=-1\n", "1: eps: expected a number from"},
        {"relu 3\n", "1: unknown argument '3' for 'relu'"},
        {"relu {\n", "1: 'relu' is not a container"},
        {"\n\nrepeat 2 {\n}\ndense 1\nloss mse", "4: the 'repeat' opened in line 3 is empty"},
        {"repeat 2 {\ndense 1\nloss mse", "3: 'loss' is not allowed inside a container"},
        {"repeat 2 {\ndense 1\n", "2: a '{' is never closed"},
        {"repeat 2\ndense 1\n}\n", "1: 'repeat' needs '{'"},
        {"repeat 1 {\ndense 1\n\n", "3: a '{' is never closed"},
        {"residual\nrelu\n}\n", "1: 'residual' needs '{'"},
        {"relu\nlerp init=1\nrelu\n}\n", "2: 'lerp' needs '{'"},
        {"residual 2 {\nrelu\n}\n", "1: unknown argument '2' for 'residual'"},
        {"residual init=1 {\nrelu\n}\n", "1: unknown option 'init=1' for 'residual'"},
        {"lerp eps=1 {\nrelu\n}\n", "1: unknown option 'eps=1' for 'lerp'"},
        {"lerp scale=0 {\nrelu\n}\n", "1: scale: expected a number from"},
        {"lerp init=1 init=2 {\nrelu\n}\n", "1: option 'init' is given twice"},
        {"lerp { init=1\nrelu\n}\n", "1: unknown argument '{' for 'lerp'"},
        {"relu\nresidual {\n}\n", "3: the 'residual' opened in line 2 is empty"},
        {"lerp {\n# nothing\n\n}\n", "4: the 'lerp' opened in line 1 is empty"},
        {"residual {\nresidual {\n}\n}\n", "3: the 'residual' opened in line 2 is empty"},
        {"residual {\nrelu\n} # end\nresidual {\nrelu\n} relu\n",
         "6: '}' must be alone on its line"},
        {"relu\nresidual {\ndense 3\nrelu\n}\ndense 1\nloss mse",
         "5: the body of the 'residual' opened in line 2: expected 4 output columns, as many as "
         "inputs, found 3"},
        {"lerp {\nappend 1\n}\n", "3: the body of the 'lerp' opened in line 1: expected 4 output "
                                  "columns, as many as inputs, found 5"},
        {"repeat 2 {\nresidual {\nrelu\n}\nappend 1\nresidual {\nrepeat 2 {\nappend 1\n}\n}\n}\n",
         "10: the body of the 'residual' opened in line 6: expected 5 output columns, as many as "
         "inputs, found 7"},
        {"residual {\ndense 4\nloss mse", "3: 'loss' is not allowed inside a container"},
        {"residual {\ndense 4\n", "2: a '{' is never closed"},
        {"residual {\ndense 4\n}\nloss mse", "4: the last layer must be a dense"},
        {"dense 3\ninput [0:2]\n", "2: 'input' is only allowed as the first layer"},
        {"residual {\ninput [0:2]\n", "2: 'input' is only allowed as the first layer"},
        {"input [0:5]\n", "1: 'input': expected columns FROM < TO <= 4, found '[0:5]'"},
        {"input [2:2]\n", "1: 'input': expected columns FROM < TO <= 4, found '[2:2]'"},
        {"input\n", "1: 'input' needs a slice of columns"},
        {"input input[0:2]\n", "1: 'input': expected [FROM:TO], found 'input[0:2]'"},
        {"concat [0:2]\n", "1: 'concat': expected input[FROM:TO], found '[0:2]'"},
        {"concat input[0-2]\n", "1: 'concat': expected input[FROM:TO]"},
        {"concat input[-1:]\n", "1: 'concat': expected input[FROM:TO]"},
        {"concat input[0:2] [1:3]\n", "1: unknown argument '[1:3]' for 'concat'"},
        {"dense 9\nslice [3:10]\n", "2: 'slice': expected columns FROM < TO <= 9"},
        {"append\n", "1: 'append' needs a constant"},
        {"append inf\n", "1: a constant: expected a number, found 'inf'"},
        {"append 1e13\n", "1: a constant: expected a number from"},
        {"append 1 2\n", "1: unknown argument '2' for 'append'"},
        {"scaler scale=-1\n", "1: scale: expected a number from"},
        {"tanh shift=1\n", "1: unknown option 'shift=1' for 'tanh'"},
        {"rmsnorm affine=no\n", "1: unknown option 'affine=no' for 'rmsnorm'"},
        {"l2norm eps=0\n", "1: eps: expected a number from"},
        {"repeat 0 {\ndense 1\n}\n", "1: a number of repetitions: expected"},
        {"repeat 2 {\ndense 1\n} relu\n", "3: '}' must be alone on its line"},
        {"}\n", "1: '}' without a '{'"},
        {"dense 1\n", "1: the line 'loss ...' or 'policy ...' is missing"},
        {"", "0: the line 'loss ...' or 'policy ...' is missing"},
        {"dense 1\nrelu\nloss mse", "3: the last layer must be a dense"},
        {"repeat 1 {\ndense 1\n}\nloss mse", "4: the last layer must be a dense"},
        {"dense 1\nloss mse\nloss mse", "3: 'loss' follows the last line"},
        {"dense 1\nloss ce min=0 max=1", "2: ce: expected a last dense of at least 2"},
        {"dense 2\nloss ce min=0", "2: ce: expected the options min=V and max=V"},
        {"dense 2\nloss ce min=1 max=0", "2: ce: expected min < max"},
        {"dense 1\nloss huber delta=0", "2: delta: expected a number from"},
        {"dense 1\nloss huber kappa=1", "2: unknown option 'kappa=1' for 'loss'"},
        {"dense 2\nloss quantile kappa=-1", "2: kappa: expected a number from"},
        {"dense 2\nloss cross", "2: unknown loss 'cross' (known: mse, ce"},
        {"dense 3\npolicy tanh-gaussian", "2: policy: expected an even number"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct KS(arch) *a = NULL;

        assert_fails(KS(arch_parse)(cases[i].text, "test.arch", 4, &a), KS_FORMAT,
                     text_of("test.arch:%s", cases[i].message));
        assert_null(a);
    }
}

/* Words of other libraries, other spellings and slips lead to the name that was meant; the names of
 * other functions do not. */
TEST(test_near_words)
{
    static const struct {
        const char *text, *meant; /* NULL: no suggestion */
    } cases[] = {
        {"linear 3\n", "'dense'"},
        {"nn.Linear 3\n", "'dense'"},
        {"LayerNorm\n", "'layernorm'"},
        {"layer_norm\n", "'layernorm'"},
        {"BatchNorm1d\n", "'batchnorm'"},
        {"layrenorm\n", "'layernorm'"},
        {"RMSNorm\n", "'rmsnorm'"},
        {"ReLU\n", "'relu'"},
        {"rleu\n", "'relu'"},
        {"tahn\n", "'tanh'"},
        {"swish\n", "'silu'"},
        {"residul {\nrelu\n}\n", "'residual'"},
        {"repaet 2 {\nrelu\n}\n", "'repeat'"},
        {"dense 1\nLoss mse\n", "'loss'"},
        {"leakyrelu\n", "'leaky_relu'"},
        {"LeakyReLU\n", "'leaky_relu'"},
        {"selu\n", NULL},
        {"prelu\n", NULL},
        {"conv 3\n", "'conv2d'"},
        {"gn groups=2\n", "'groupnorm'"},
        {"transformer_encoder_layer_with_a_long_name\n", NULL},
        {"layernorm epsilon=1e-5\n", "'eps='"},
        {"layernorm EPS=1e-5\n", "'eps='"},
        {"dense 3 use_bias=no\n", "'bias='"},
        {"dense 3 units=3\n", NULL},
        {"dense 1\nloss MSELoss\n", "'mse weight=2'"},
        {"dense 1\nloss smooth_l1\n", "'huber'"},
        {"dense 3\nloss cross_entropy min=0 max=1\n", "'ce min=V max=V'"},
        {"dense 3\nloss ce v_min=0 min=0 max=1\n", "'min='"},
        {"dense 3\nloss hinge\n", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct KS(arch) *a = NULL;
        const char *meant;

        assert_fails(KS(arch_parse)(cases[i].text, "test.arch", 4, &a), KS_FORMAT, "unknown ");
        meant = strstr(ks_error_text(), "did you mean ");
        if (!meant != !cases[i].meant || (meant && !strstr(meant, cases[i].meant)))
            fail_msg("%s: '%s', expected %s", cases[i].text, ks_error_text(),
                     cases[i].meant ? cases[i].meant : "no suggestion");
    }
}

TEST(test_exploding_repeat)
{
    struct KS(arch) *a = NULL;

    assert_fails(
        KS(arch_parse)("repeat 1000 {\nrepeat 1000 {\nrelu\n}\n}\ndense 1\nloss mse", "t", 4, &a),
        KS_FORMAT, "more than 4096 layers");
    assert_fails(
        KS(arch_parse)("repeat 1000 {\nresidual {\nresidual {\nresidual {\nresidual {\nrelu\n}"
                       "\n}\n}\n}\n}\ndense 1\nloss mse",
                       "t", 4, &a),
        KS_FORMAT, "more than 4096 layers");
}

/* Containers of any kind can be nested 16 deep. */
TEST(test_depth)
{
    static const char *const opening[] = {"repeat 1 {\n", "residual {\n", "lerp {\n"};
    char text[1024];

    for (size_t depth = 16; depth <= 17; depth++) {
        struct KS(arch) *a = NULL;

        *text = '\0';
        for (size_t i = 0; i < depth; i++)
            strcat(text, opening[i % 3]);
        strcat(text, "relu\n");
        for (size_t i = 0; i < depth; i++)
            strcat(text, "}\n");
        strcat(text, "dense 1\nloss mse\n");
        if (depth == 16)
            parse(text, 4);
        else
            assert_fails(KS(arch_parse)(text, "t", 4, &a), KS_FORMAT,
                         "t:17: containers nest deeper than 16");
    }
}

/* Whichever allocation fails, no memory leaks (checked by AddressSanitizer). */
TEST(test_allocations)
{
    struct starved s = {.least = 5};

    while (starving(&s)) {
        struct KS(arch) *a = NULL;

        s.status = KS(arch_parse)("lerp {\nlerp {\nl2norm\n}\n}\ndense 1\nloss mse", "t", 4, &a);
        assert_true(s.status == KS_OK || !a);
        KS(arch_free)(a);
    }
}
