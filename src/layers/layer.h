/* The interface of all layer kinds: four functions per kind, and a table of the kinds.
 *
 * Notation (Griewank & Walther, "Evaluating Derivatives", 2008): x_bar = dL/dx, x_dot = derivative
 * of x along a direction v in parameter space, x_bar_dot = derivative of x_bar along v. A
 * Hessian-vector product is the w_bar_dot of the parameter vector (Pearlmutter, Neural
 * Computation 6, 1994). All matrices are row-major, one row per sample.
 *
 * To add a layer kind:
 *
 * 1. Write src/layers/NAME.c: its equations, `configure`, the four functions, example lines, and
 *    a `const struct KS(layer_kind) KS(NAME)`. relu.c is a short example without parameters,
 *    scaler.c one with parameters.
 * 2. Add a row ROW(NAME) to KS_LAYER_KINDS at the end of this file.
 *
 * Parser, checkpoints, training and analysis then know it, and tests/layers/test_layers.c checks
 * its functions against each other and against differences, for every example line. An elementwise
 * activation is simpler still: see activation.c. A line in configs/README.md documents the kind. */
#ifndef KS_LAYERS_LAYER_H
#define KS_LAYERS_LAYER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/line.h"
#include "core/products.h"
#include "core/real.h"

enum { KS_LAYER_ARRAYS = 3 };

/* A parameter or state array: a matrix [rows, columns], or a vector [columns] if rows is 0. */
struct ks_array {
    const char *name; /* its name in a checkpoint; a string constant */
    size_t rows, columns;
    bool orthogonal;   /* initialized orthogonal with gain `start`; else every entry is `start` */
    bool column_norms; /* initialized with the Euclidean norms of the columns of the first array */
    double start;
};

/* Which arrays of earlier passes backward, tangent_forward and tangent_backward read, besides the
 * cache (backward always reads y_bar). Arrays that no layer reads are not stored. KS_USES_SIGN
 * qualifies KS_USES_Y: of y only the sign matters, that is whether an entry is positive. */
enum ks_uses {
    KS_USES_X = 1,
    KS_USES_Y = 2,
    KS_USES_Y_BAR = 4,
    KS_USES_SKIP = 8,
    KS_USES_SIGN = 16
};

/* Structure of x_bar that holds for all parameters and inputs; exact null directions of the Hessian
 * follow from it (operators/null_space.h). */
enum ks_sums {
    KS_SUMS_ANY = 0, /* none is known */
    KS_SUMS_ROWS,    /* each row sums to zero over each of the layer's `groups` of features */
    KS_SUMS_COLUMNS, /* each column sums to zero over the rows; in evaluation mode KS_SUMS_LINEAR */
    KS_SUMS_LINEAR,  /* a row of x_bar is a linear map of this row of y_bar, one map for all rows */
    KS_SUMS_COPIED   /* x_bar = skip_bar = y_bar */
};

/* A row as an image: its columns are channels x height x width, the width running fastest. All are
 * 0 if it is none. */
struct ks_image {
    size_t channels, height, width;
};

struct KS(layer) {
    const struct KS(layer_kind) *kind;
    size_t number; /* in the order of the text, repeat unrolled; an uncounted layer has the number
                    * of the layer after it */
    size_t body;   /* Index in ks_arch.layer of the first layer of a container's body. A container's
                    * own index is where it closes: index - 1 is the last layer of the body. For
                    * other layers: their own index. */
    size_t in, out;                      /* columns of x and of y */
    size_t network_in;                   /* columns of the network's input */
    struct ks_image in_image, out_image; /* rows of x, as the layer before made them, and of y */
    /* Start and length in a network's parameter vector. A layer with trainable=no has the length 0,
     * and its `frozen` numbers are behind all parameters, at `offset` of the extended vector
     * (arch.h). */
    size_t offset, parameters, frozen;
    size_t state_offset, states; /* start and length in a network's state vector */
    size_t n_params, n_states;
    size_t groups;    /* of KS_SUMS_ROWS: groups of equal size of consecutive features */
    bool reads_state; /* in training mode too, `forward` reads the state arrays */
    bool normed;      /* of a dense: its kernel is a function of its parameters (kernel_norm.h) */
    size_t head;      /* of a branch that ends in a loss: its number, from 1; else 0 */
    struct ks_array param[KS_LAYER_ARRAYS], state[KS_LAYER_ARRAYS]; /* in the order of both */
    /* Size of the cache that forward writes for the other three functions, and of cache_dot, which
     * tangent_forward writes for tangent_backward: rows * cache_row + cache_fixed reals. */
    size_t cache_row, cache_fixed;
    unsigned uses; /* a union of enum ks_uses */
    /* Weight projection: the first sphere_rows * out parameters form a matrix [sphere_rows, out]
     * whose columns are scaled to Euclidean norm 1 after each update. 0: no projection. */
    size_t sphere_rows;
    void *settings; /* the kind's own struct, from ks_alloc; ks_arch_free frees it */
};

/* The arrays of one call. Each function reads and writes only the arrays that it needs. */
struct KS(pass) {
    size_t rows;                 /* samples                                          */
    bool evaluation;             /* batchnorm uses its running statistics            */
    enum ks_products products;   /* of float32: how matrix products are computed     */
    const real *input;           /* forward, in: the network's input [rows, network_in], for kinds
                                  * with reads_input                                 */
    const real *x, *w;           /* forward, in: [rows, in], [parameters]            */
    real *y, *cache;             /*          out: [rows, out], [cache]               */
    real *state;                 /* read in evaluation mode; else updated, unless NULL */
    const real *y_bar;           /* backward, in: [rows, out]                        */
    bool gauss_newton;           /* tangent backward: y_bar is zero, its terms may be skipped */
    real *x_bar, *w_bar;         /* set; added to. NULL: not computed                */
    const real *x_dot, *w_dot;   /* tangent forward, in; x_dot NULL: zero            */
    real *y_dot, *cache_dot;     /*                  out                             */
    const real *y_bar_dot;       /* tangent backward, in                             */
    real *x_bar_dot, *w_bar_dot; /* set; added to. NULL: not computed                */
    /* Tangent functions of a kind with takes_gate: where gate [rows, out] is not positive, y_dot is
     * set to zero and y_bar_dot counts as zero. NULL: nowhere. */
    const real *gate;
    /* A container's second input: what enters its body (x is what leaves it). Used like x. */
    const real *skip, *skip_dot;
    real *skip_bar, *skip_bar_dot;
};

/* How training treats the kind: decay=norms acts on the parameters of KS_BATCH_NORM layers, and the
 * metrics (agent/agent_metrics.h) are computed from the outputs of KS_ACTIVATION layers. */
enum ks_role { KS_NO_ROLE, KS_BATCH_NORM, KS_ACTIVATION };

struct KS(layer_kind) {
    const char *name;            /* the first word of its line in a description          */
    const char *const *examples; /* lines for the tests that use each option; end in NULL */
    /* Outputs may alias inputs: y may be x if the kind does not use x, and x_bar may be y_bar if it
     * does not use y_bar; y_dot may be x_dot, and x_bar_dot may be y_bar_dot. So tangent_backward
     * must not read x_dot, nor y_bar_dot after setting x_bar_dot. */
    bool in_place;
    /* If the pass has an x_bar, tangent_backward recomputes it as backward had set it. Then the
     * previous layer's y_bar need not be stored. */
    bool recomputes_x_bar;
    /* Its tangent functions only set entries to zero, where its y is not positive, if `uses` has
     * KS_USES_SIGN. They need not be called if the layer before has takes_gate. */
    bool gates;
    bool takes_gate;   /* its tangent functions obey ks_pass.gate                            */
    bool container;    /* its line opens a body, whose input, and output unless `joins`, have `in`
                          columns */
    bool joins;        /* of a container: `out` is `in` plus the columns of its body         */
    bool uncounted;    /* has no number of its own, and no parameters                         */
    bool first;        /* only as the first layer of a network, outside any container         */
    bool reads_input;  /* `forward` reads the network's input; a constant for derivatives     */
    bool head;         /* may be the last layer of a network                                  */
    bool couples_rows; /* in training mode a row of y depends on the other rows of x       */
    bool scale_free;   /* y does not change if x is multiplied by a positive number, up to an
                        * epsilon; of a kind with couples_rows, in training mode only          */
    enum ks_sums sums;
    bool caches_mean; /* its cache starts with the means [in] that it subtracts from x */
    /* y = scale * z(x) + bias per feature, where z depends only on x. The parameters are the scale
     * and then the bias, or only the scale, or none; their names do not matter. */
    bool affine;
    enum ks_role role;
    /* Of a kind whose y is linear in x, up to what `forward` adds, for KS_LAYER_LINEAR: sets y from
     * x (NULL counts as zero), and x_bar from y_bar (x_bar NULL: not computed). A container's read
     * p->skip and set p->skip_bar, too. */
    void (*map)(const struct KS(layer) *l, const struct KS(pass) *p, const real *x, real *y);
    void (*adjoint)(const struct KS(layer) *l, const struct KS(pass) *p, const real *y_bar,
                    real *x_bar);
    size_t settings; /* bytes of its settings, which are zero before `configure` */
    /* Parses the line of a layer whose l->in, l->in_image and l->network_in are set; sets out,
     * out_image unless the layer is an activation, the arrays, cache sizes, uses, sphere_rows and
     * settings. */
    ks_status (*configure)(struct KS(layer) *l, struct ks_line *line);
    void (*forward)(const struct KS(layer) *l, const struct KS(pass) *p);
    void (*backward)(const struct KS(layer) *l, const struct KS(pass) *p);
    void (*tangent_forward)(const struct KS(layer) *l, const struct KS(pass) *p);
    void (*tangent_backward)(const struct KS(layer) *l, const struct KS(pass) *p);
};

/* The functions of a kind, under these names in its file. */
#define KS_LAYER_FUNCTIONS                                                                         \
    .configure = configure, .forward = forward, .backward = backward,                              \
    .tangent_forward = tangent_forward, .tangent_backward = tangent_backward

/* The passes of a linear kind, all but `forward`, which is KS(linear_forward) if y is map(x). */
#define KS_LAYER_LINEAR(its_map, its_adjoint)                                                      \
    .map = its_map, .adjoint = its_adjoint, .backward = KS(linear_backward),                       \
    .tangent_forward = KS(linear_tangent_forward), .tangent_backward = KS(linear_tangent_backward)
void KS(linear_forward)(const struct KS(layer) *l, const struct KS(pass) *p);
void KS(linear_backward)(const struct KS(layer) *l, const struct KS(pass) *p);
void KS(linear_tangent_forward)(const struct KS(layer) *l, const struct KS(pass) *p);
void KS(linear_tangent_backward)(const struct KS(layer) *l, const struct KS(pass) *p);

/* Allocates the settings of a layer whose kind is set, and configures it. */
ks_status KS(layer_configure)(struct KS(layer) *l, struct ks_line *line);

/* All layer kinds, one row each: the name of a KS(NAME) that a file of this folder defines. */
#define KS_LAYER_KINDS(ROW)                                                                        \
    ROW(dense)                                                                                     \
    ROW(conv2d)                                                                                    \
    ROW(batchnorm)                                                                                 \
    ROW(batchrenorm)                                                                               \
    ROW(layernorm)                                                                                 \
    ROW(groupnorm)                                                                                 \
    ROW(rmsnorm)                                                                                   \
    ROW(l2norm)                                                                                    \
    ROW(avgl1norm)                                                                                 \
    ROW(simnorm)                                                                                   \
    ROW(relu)                                                                                      \
    ROW(tanh)                                                                                      \
    ROW(silu)                                                                                      \
    ROW(gelu)                                                                                      \
    ROW(elu)                                                                                       \
    ROW(mish)                                                                                      \
    ROW(sigmoid)                                                                                   \
    ROW(softplus)                                                                                  \
    ROW(leaky_relu)                                                                                \
    ROW(relu6)                                                                                     \
    ROW(scaler)                                                                                    \
    ROW(append)                                                                                    \
    ROW(concat)                                                                                    \
    ROW(input)                                                                                     \
    ROW(slice)                                                                                     \
    ROW(dropout)                                                                                   \
    ROW(dueling)                                                                                   \
    ROW(select)                                                                                    \
    ROW(branch)                                                                                    \
    ROW(residual)                                                                                  \
    ROW(lerp)

#define KS_DECLARE_KIND(name) extern const struct KS(layer_kind) KS(name);
KS_LAYER_KINDS(KS_DECLARE_KIND)

/* All kinds as a table, which ends in NULL. */
extern const struct KS(layer_kind) *const KS(layer_kinds)[];

enum { KS_BATCHNORM_SETTINGS = 64 }; /* bytes; at least the size of the settings */
/* For a kind that builds on the functions of a batchnorm with parameters: reads the options eps,
 * momentum and unbiased into `settings`, KS_BATCHNORM_SETTINGS aligned
 * bytes, which a ks_layer may point to. */
ks_status KS(batchnorm_settings)(struct ks_line *line, void *settings);

#endif
