/* Losses: a table of kinds, each with the value, gradient and Hessian in the network's outputs.
 *
 * To add a loss: its three functions and a row of the table in loss.c. The tests read the table. */
#ifndef KS_NET_LOSS_H
#define KS_NET_LOSS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/line.h"
#include "core/real.h"

struct KS(loss_kind);

struct KS(loss) {
    const struct KS(loss_kind) *kind;
    size_t outputs;  /* K: columns of the network's output            */
    size_t targets;  /* T, columns of the target: K unless any_targets */
    double min, max; /* ce: the first and the last atom      */
    double delta;    /* huber: delta; quantile: kappa        */
    double weight;   /* factor of the loss                   */
    /* Of several heads: their losses, which are summed; their outputs lie side by side in a row,
     * and so do their targets. kind is KS(heads), weight 1. Owned by the description. */
    size_t n_heads;
    struct KS(loss) *head;
};

/* Outputs of a network, and what they should be. */
struct KS(outputs) {
    size_t rows;
    const real *f; /* [rows, outputs] */
    const real *t; /* [rows, targets] */
};

struct KS(loss_kind) {
    const char *name;            /* the word after `loss` on its line               */
    const char *const *examples; /* lines for the tests; end in NULL                */
    bool distribution;           /* the target is a probability vector              */
    bool trainable;              /* training can compute its targets (target.h)     */
    bool any_targets;            /* the number of targets is free                   */
    bool shift_invariant;        /* adding a constant to a row of outputs changes nothing */
    ks_status (*configure)(struct KS(loss) *l, struct ks_line *line); /* NULL: no options */
    /* Returns the sum over the rows of weight * l(f, t). Unless f_bar is NULL, sets f_bar [rows,
     * outputs] to scale * weight * dl/df. */
    double (*gradient)(const struct KS(loss) *l, const struct KS(outputs) *at, real scale,
                       real *f_bar);
    /* Sets c [rows, outputs], which describes the Hessian of weight * l in the outputs: for each
     * row diag(c) - c c' / sum_k c_k for a distribution, else diag(c). The Hessian is positive
     * semidefinite. c may alias f. */
    void (*curvature)(const struct KS(loss) *l, const struct KS(outputs) *at, real *c);
    /* Sets v [outputs] to the gradient, in one row's outputs f, of the number that they stand for.
     * NULL: each output is a number. v may be f. */
    void (*value)(const struct KS(loss) *l, const real *f, real *v);
};

/* The sum of the losses of several heads; it is not in the table. */
extern const struct KS(loss_kind) KS(heads);

/* Parses a line `loss ...` for a network with `outputs` columns. KS_FORMAT. */
ks_status KS(loss_parse)(struct ks_line *line, size_t outputs, struct KS(loss) *loss);

/* The kind's name, such as "ce"; of several heads theirs, such as "mse+quantile". `name` is cut off
 * to fit into `size` bytes. */
void KS(loss_name)(const struct KS(loss) *l, size_t size, char *name);

/* The options that differ from the defaults, such as "delta=2 weight=0.5", else ""; of several
 * heads such as "+kappa=2". Not the ends of ce: given the targets, the Hessian does not depend on
 * them. */
void KS(loss_options)(const struct KS(loss) *l, size_t size, char *text);

/* All kinds; ends in NULL. */
extern const struct KS(loss_kind) *const KS(loss_kinds)[];

/* The gradient and curvature of the kind, with l multiplied by row_weight [rows] in each row; NULL:
 * by 1. */
double KS(loss_gradient)(const struct KS(loss) *loss, const struct KS(outputs) *at,
                         const real *row_weight, real scale, real *f_bar);
void KS(loss_curvature)(const struct KS(loss) *loss, const struct KS(outputs) *at,
                        const real *row_weight, real *c);

/* The matrix M_i between the Jacobians of row i's outputs in sum_i J_i' M_i J_i. */
enum ks_inner {
    KS_INNER_HESSIAN,  /* of the loss in the outputs: the generalized Gauss-Newton matrix      */
    KS_INNER_IDENTITY, /* its nonzero eigenvalues are those of the neural tangent kernel (NTK) */
    KS_INNER_VALUE,    /* of each head v v', v = loss_kind.value: the NTK of a head's number   */
    KS_INNER_GRADIENT  /* g g', g = the gradient of the row's loss in its outputs              */
};

/* M_i of all rows. */
struct KS(loss_inner) {
    enum ks_inner kind;
    size_t rows;
    const real *c; /* [rows, outputs]: from loss_curvature; ones; v; g */
    real scale;    /* a factor of M */
};

/* c = v of each row and head, with ones in place of v where each output is a number. c may alias
 * f [rows, outputs]. */
void KS(loss_value)(const struct KS(loss) *loss, size_t rows, const real *f, real *c);

/* f_bar_dot = M f_dot for each row. */
void KS(loss_multiply)(const struct KS(loss) *loss, const struct KS(loss_inner) *inner,
                       const real *f_dot, real *f_bar_dot);

/* p = softmax(f) for each row of [rows, columns], without overflow; p may alias f. */
void KS(softmax)(size_t rows, size_t columns, const real *f, real *p);

enum { KS_EXP_BLOCK = 32 };
/* exponential.c: y_i = exp(x_i) for KS_EXP_BLOCK numbers; x and y may be the same array. It uses
 * the vector functions of the C library if it has them (glibc's libmvec on x86-64: error below 4
 * ulp), and takes whole blocks only, so that the bits of y_i depend on x_i alone: a loop of any
 * length would leave its last numbers to the scalar function, which rounds differently. */
void KS(exp_block)(const real x[KS_EXP_BLOCK], real y[KS_EXP_BLOCK]);

#endif
