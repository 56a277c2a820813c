/* The parts of a description, as kappascope_arch_parts gives them. */
#include "handles.h"

enum { MOST_PARTS = 8 };

/* A line for each layer and each head, as the test below has them. */
static const char *parts_of(const char *arch, size_t inputs)
{
    struct kappascope_layer layer[MOST_PARTS];
    struct kappascope_head head[MOST_PARTS];
    struct kappascope_sizes sizes;
    char *text = hold(calloc(1, 4096)), *at = text;

    assert_done(kappascope_arch_sizes(arch, inputs, &sizes));
    assert_true(sizes.layers <= MOST_PARTS && sizes.heads <= MOST_PARTS);
    assert_done(kappascope_arch_parts(arch, inputs, layer, head));
    for (size_t i = 0; i < sizes.layers; i++) {
        const struct kappascope_layer *l = &layer[i];

        at += sprintf(at, "%s %s %zu%s%s", l->name, l->kind, l->outputs,
                      l->trainable ? "" : " frozen", l->joint ? " joint" : "");
        for (size_t k = 0; k < 2 * KAPPASCOPE_LAYER_ARRAYS; k++) {
            const bool state = k >= KAPPASCOPE_LAYER_ARRAYS;
            const struct kappascope_shape *s = state ? &l->state[k - KAPPASCOPE_LAYER_ARRAYS]
                                                     : &l->parameter[k];

            if (s->name)
                at += sprintf(at, "%s%s[%zu,%zu]", state ? " :" : " ", s->name, s->rows,
                              s->columns);
        }
        at += sprintf(at, "\n");
    }
    for (size_t i = 0; i < sizes.heads; i++)
        at += sprintf(at, "%s %zu %zu %g %g %g %g\n", head[i].loss, head[i].outputs,
                      head[i].targets, head[i].min, head[i].max, head[i].delta, head[i].weight);
    return text;
}

TEST(test_parts)
{
    assert_string_equal(
        parts_of("repeat 2 {\n  dense 4 groups=2 bias=no\n  layernorm affine=no\n}\n"
                 "batchnorm trainable=no\ndense 3 norm=weight\n"
                 "loss ce min=-5 max=5 weight=2\n",
                 6),
        "00_dense dense 4 kernel[3,4]\n"
        "01_layernorm layernorm 4\n"
        "02_dense dense 4 kernel[2,4]\n"
        "03_layernorm layernorm 4\n"
        "04_batchnorm batchnorm 4 frozen joint scale[0,4] bias[0,4] :mean[0,4] "
        ":var[0,4]\n"
        "05_dense dense 3 v[4,3] g[0,3] bias[0,3]\n"
        "ce 3 3 -5 5 0 2\n");
    assert_string_equal(parts_of("input [0:8]\nconv2d 3 size=2 channels=2 height=2 width=2\nrelu\n"
                                 "concat input[8:9]\nlerp {\n  dense 4\n}\ndense 1 norm=spectral\n"
                                 "loss quantile kappa=0.5\n",
                                 9),
                        "00_conv2d conv2d 3 kernel[8,3] bias[0,3]\n"
                        "01_relu relu 3\n"
                        "02_concat concat 4\n"
                        "03_dense dense 4 kernel[4,4] bias[0,4]\n"
                        "04_lerp lerp 4 alpha[0,4]\n"
                        "05_dense dense 1 kernel[4,1] bias[0,1] :u[0,1] :v[0,4]\n"
                        "quantile 1 1 0 0 0.5 1\n");
    assert_string_equal(
        parts_of("residual {\n  batchrenorm\n}\nbranch {\n  dense 2\n  loss mse\n}\n"
                 "branch {\n  slice [0:3]\n  dense 1 bias=no\n  loss huber\n}\n",
                 5),
        "00_batchrenorm batchrenorm 5 joint scale[0,5] bias[0,5] :mean[0,5] "
        ":var[0,5]\n"
        "01_dense dense 2 kernel[5,2] bias[0,2]\n"
        "02_dense dense 1 kernel[3,1]\n"
        "mse 2 2 0 0 0 1\nhuber 1 1 0 0 1 1\n");
    assert_string_equal(parts_of("dense 2\noutputs\n", 1),
                        "00_dense dense 2 kernel[1,2] bias[0,2]\n");
}

TEST(test_parts_refusals)
{
    struct kappascope_layer layer = {.kind = "none"};
    struct kappascope_head head = {.loss = "none"};

    assert_refuses(kappascope_arch_parts("dens 1\nloss mse\n", 3, &layer, &head), KAPPASCOPE_FORMAT,
                   "arch:1: unknown layer 'dens': did you mean 'dense'?");
    assert_refuses(kappascope_arch_parts("dense 1\n", 3, &layer, &head), KAPPASCOPE_FORMAT,
                   "is missing");
    assert_refuses(kappascope_arch_parts("dense 1\nloss mse\n", 0, &layer, &head), KAPPASCOPE_USAGE,
                   "inputs: expected 1");
    assert_refuses(kappascope_arch_parts(NULL, 3, &layer, &head), KAPPASCOPE_USAGE, "arch is NULL");
    assert_refuses(kappascope_arch_parts("", 3, NULL, &head), KAPPASCOPE_USAGE, "layer is NULL");
    assert_refuses(kappascope_arch_parts("", 3, &layer, NULL), KAPPASCOPE_USAGE, "head is NULL");
    assert_string_equal(layer.kind, "none");
    assert_string_equal(head.loss, "none");
}
