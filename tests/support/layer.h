/* A test fixture: one layer, with random arrays for all arguments of its functions. Compiled in
 * both precisions. */
#ifndef KS_TEST_LAYER_H
#define KS_TEST_LAYER_H

#include "test.h"

#include "core/memory.h"
#include "core/rng.h"
#include "layers/layer.h"

enum { ROWS = 7, WIDTH = 6 };

/* The functions are compiled for both precisions. */
#define random_array   KS(layer_random_array)
#define setup_width    KS(layer_setup_width)
#define setup          KS(layer_setup)
#define pass_of        KS(layer_pass)
#define clear          KS(layer_clear)
#define first_order    KS(layer_first_order)
#define tangents       KS(layer_tangents)
#define second_order   KS(layer_second_order)
#define norm           KS(layer_norm)
#define keep           KS(layer_keep)
#define check_same     KS(layer_check_same)
#define check_near     KS(layer_check_near)
#define keep_products  KS(layer_keep_products)
#define check_products KS(layer_check_products)

/* An input or output of a layer, with its adjoint and the tangents of both. */
struct variable {
    size_t n;
    real *value, *bar, *dot, *bar_dot;
};

enum { X, W, SKIP, INPUTS };

/* A layer and arrays for all fields of struct KS(pass). */
struct fixture {
    struct KS(layer) layer;
    bool evaluation;
    struct variable in[INPUTS], y; /* in[SKIP].n = 0: not a container */
    size_t ns, nc;
    real *input; /* of the network */
    real *state, *cache, *cache_dot;
};

real *random_array(size_t n);

/* A layer of `width` inputs, in training mode. */
void setup_width(struct fixture *s, const struct KS(layer_kind) *kind, const char *example,
                 size_t width);
void setup(struct fixture *s, const struct KS(layer_kind) *kind, const char *example,
           bool evaluation);
struct KS(pass) pass_of(const struct fixture *s);
void clear(real *a, size_t n);
void first_order(struct fixture *s);
void tangents(struct fixture *s, const struct KS(pass) *p);
void second_order(struct fixture *s);
double norm(size_t n, const real *a);

/* A copy of `a` for a later comparison. Held until the test ends. */
real *keep(size_t n, const real *a);
void check_same(size_t n, const real *a, real *kept);
void check_near(size_t n, const real *a, real *kept);

/* The results of the tangent functions: y_dot, and x_bar_dot of every input. */
struct products {
    real *y_dot, *bar_dot[INPUTS];
};

struct products keep_products(const struct fixture *s);
void check_products(const struct fixture *s, struct products kept,
                    void (*check)(size_t n, const real *a, real *kept));

#endif
