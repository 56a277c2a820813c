/* The one interface of all layer kinds: four functions, a description, a table.
 *
 * Notation (Griewank & Walther, "Evaluating Derivatives", 2008): x_bar = dL/dx, x_dot = derivative
 * of x along a direction v in parameter space, x_bar_dot = derivative of x_bar along v. A
 * Hessian-vector product is the w_bar_dot of the whole parameter vector (Pearlmutter, Neural
 * Computation 6, 1994). All matrices are row-major, one row per sample. */
#ifndef KS_LAYERS_LAYER_H
#define KS_LAYERS_LAYER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/line.h"
#include "core/real.h"

enum { KS_LAYER_ARRAYS = 2 };

/* A parameter or a state: a matrix [rows, columns], or a vector [columns] where rows is 0. */
struct ks_array {
    const char *name; /* as in a checkpoint; a constant string */
    size_t rows, columns;
    bool orthogonal; /* starts orthogonal with gain `start`, else constant `start` */
    double start;
};

/* What backward, tangent_forward and tangent_backward read of the passes that they follow, beside
 * the cache (backward reads y_bar in any case). What nobody reads is not kept. KS_USES_SIGN stands
 * beside KS_USES_Y and says that of y only whether an entry is positive is read. */
enum ks_uses {
    KS_USES_X = 1,
    KS_USES_Y = 2,
    KS_USES_Y_BAR = 4,
    KS_USES_SKIP = 8,
    KS_USES_SIGN = 16
};

/* What is known of the sums of x_bar, whatever theta and the inputs are (null_space.h). */
enum ks_sums {
    KS_SUMS_ANY = 0, /* nothing */
    KS_SUMS_ROWS,    /* over the features of each row: zero */
    KS_SUMS_COLUMNS, /* over the rows of each feature: zero; in evaluation mode KS_SUMS_LINEAR */
    KS_SUMS_LINEAR,  /* each row of x_bar is the same linear map of that row of y_bar */
    KS_SUMS_COPIED   /* x_bar = skip_bar = y_bar */
};

struct ks_layer {
    const struct ks_layer_kind *kind;
    size_t number;  /* in the order of the text, repeat unrolled; if uncounted the next one's */
    size_t body;    /* a container's place in the list is where it closes: its body is layers
                     * body .. its own place - 1. Else its own place */
    size_t in, out; /* widths                                          */
    size_t offset, parameters;   /* place in the flat parameter vector of one critic */
    size_t state_offset, states; /* place in the flat state vector of one critic   */
    size_t n_params, n_states;
    struct ks_array param[KS_LAYER_ARRAYS], state[KS_LAYER_ARRAYS]; /* in canonical order */
    /* Reals that forward keeps for the other three, and tangent_forward for tangent_backward:
     * rows * cache_row + cache_fixed. */
    size_t cache_row, cache_fixed;
    unsigned uses; /* of enum ks_uses */
    /* Weight projection: the first sphere_rows * out parameters, read as a matrix
     * [sphere_rows, out], have columns that are scaled to Euclidean norm 1; 0: none. */
    size_t sphere_rows;
    void *settings;   /* the kind's own, from ks_alloc; the description frees it */
    const char *line; /* where its line starts in the description's text */
};

/* The arrays of one call. A kind reads and writes only what its function needs; `rows` samples. */
struct ks_pass {
    size_t rows;
    bool evaluation;             /* batchnorm uses its running statistics            */
    const real *x, *w;           /* forward, in: [rows, in], [parameters]            */
    real *y, *cache;             /*          out: [rows, out], [cache]               */
    real *state;                 /*          in evaluation; updated in training unless NULL */
    const real *y_bar;           /* backward, in: [rows, out]                        */
    bool gauss_newton;           /* tangent backward: y_bar is zero and may be left out */
    real *x_bar, *w_bar;         /* set; added to. Either may be NULL: not wanted    */
    const real *x_dot, *w_dot;   /* tangent forward, in; x_dot may be NULL: zero     */
    real *y_dot, *cache_dot;     /*                  out                             */
    const real *y_bar_dot;       /* tangent backward, in                             */
    real *x_bar_dot, *w_bar_dot; /* set, may be NULL: not wanted; added to           */
    /* A container's second input, what enters its body (x is what leaves it), as x above. */
    const real *skip, *skip_dot;
    real *skip_bar, *skip_bar_dot;
};

/* How weight decay and measurement treat the kind: a decay of norms acts on the parameters of
 * KS_BATCH_NORM, units of a KS_ACTIVATION are measured. */
enum ks_role { KS_NO_ROLE, KS_BATCH_NORM, KS_ACTIVATION };

struct ks_layer_kind {
    const char *name;            /* the first word of its line                           */
    const char *const *examples; /* lines that cover each option, for tests; end in NULL */
    /* y may be x where the kind does not use x, x_bar may be y_bar where it does not use y_bar;
     * y_dot may be x_dot, and x_bar_dot y_bar_dot: tangent_backward reads neither x_dot nor, after
     * it has set x_bar_dot, y_bar_dot. */
    bool in_place;
    /* tangent_backward sets x_bar too, as backward had set it, where the pass asks for it: so the
     * adjoint of the layer below need not be kept. */
    bool remakes_x_bar;
    bool container;    /* its line opens a body; `in` is the width that enters and leaves it  */
    bool uncounted;    /* takes no number, and has no parameters                              */
    bool head;         /* may be the last layer                                               */
    bool couples_rows; /* in training mode a row's y depends on the other rows             */
    enum ks_sums sums;
    bool caches_mean; /* its cache starts with what it subtracts from each feature of x, [in] */
    /* y = scale z(x) + bias, feature by feature: its parameters are `scale`, then `bias`, or the
     * first alone, or none, under whatever names, and z depends on x alone. */
    bool affine;
    enum ks_role role;
    /* Reads the line; sets out, arrays, sphere_rows, cache and uses of a layer of width l->in. */
    ks_status (*configure)(struct ks_layer *l, struct ks_line *line);
    void (*forward)(const struct ks_layer *l, const struct ks_pass *p);
    void (*backward)(const struct ks_layer *l, const struct ks_pass *p);
    void (*tangent_forward)(const struct ks_layer *l, const struct ks_pass *p);
    void (*tangent_backward)(const struct ks_layer *l, const struct ks_pass *p);
};

/* The table of all kinds, ends in NULL. To add a kind is to add one file and one row. */
extern const struct ks_layer_kind *const KS(layer_kinds)[];

extern const struct ks_layer_kind KS(dense), KS(batchnorm), KS(layernorm), KS(rmsnorm), KS(l2norm),
    KS(relu), KS(tanh), KS(silu), KS(gelu), KS(elu), KS(mish), KS(scaler), KS(append), KS(residual),
    KS(lerp);

#endif
