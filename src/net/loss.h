/* The losses: a table of kinds, each with value, gradient and Hessian in the outputs. */
#ifndef KS_NET_LOSS_H
#define KS_NET_LOSS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/line.h"
#include "core/real.h"

struct ks_loss_kind;

struct ks_loss {
    const struct ks_loss_kind *kind;
    size_t outputs;  /* K: columns of the network's output            */
    size_t targets;  /* columns of the target: K, or 1 where K = 1    */
    double min, max; /* ce: the first and the last atom               */
    double delta;    /* huber: delta, quantile: kappa                 */
    double weight;   /* multiplies the loss                           */
};

struct ks_loss_kind {
    const char *name;            /* the word after `loss` on its line               */
    const char *const *examples; /* lines for the generic test; ends in NULL        */
    bool distribution;           /* targets are probabilities, whose sum is 1       */
    bool trainable;              /* the training engine has targets for it (target.h) */
    bool shift_invariant;        /* the same number added to a row's outputs changes nothing */
    ks_status (*configure)(struct ks_loss *l, struct ks_line *line);
    /* Returns sum over rows of l(f, t); f_bar = scale * weight * dl/df unless f_bar is NULL.
     * f, f_bar [rows, outputs], t [rows, targets]. The value is not scaled but weighted. */
    double (*gradient)(const struct ks_loss *l, size_t rows, const real *f, const real *t,
                       real scale, real *f_bar);
    /* The weights c [rows, outputs] of the loss's Hessian in the outputs, which is positive
     * semidefinite: row by row diag(c) - c c' / sum_k c_k for a distribution, else diag(c). The
     * loss's weight is in them. c may be f. */
    void (*curvature)(const struct ks_loss *l, size_t rows, const real *f, const real *t, real *c);
};

/* The table of all kinds, ends in NULL. */
extern const struct ks_loss_kind *const KS(loss_kinds)[];

/* f_bar_dot = scale * (d2l/df2) f_dot, row by row, from the weights c of that row. */
void KS(loss_multiply)(const struct ks_loss *loss, size_t rows, const real *c, real scale,
                       const real *f_dot, real *f_bar_dot);

/* p = softmax(f) of each row, [rows, columns], in the stable form; p may be f. */
void KS(softmax)(size_t rows, size_t columns, const real *f, real *p);

#endif
