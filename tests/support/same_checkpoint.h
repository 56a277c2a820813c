/* Compares checkpoints of the files of a tree. */
#ifndef KS_SAME_CHECKPOINT_H
#define KS_SAME_CHECKPOINT_H

#include "said.h"

#include "io/checkpoint.h"
#include "net/arch.h"

/* Two checkpoints hold the same critics, moments, and minibatches. */
static inline void assert_same(const char *a, const char *b)
{
    struct ks_checkpoint *x = NULL, *y = NULL;
    size_t n;

    assert_ok(ks_checkpoint_read(tree_path(a), &x));
    assert_ok(ks_checkpoint_read(tree_path(b), &y));
    n = ks_networks_parameters(&x->critic);
    assert_int_equal(n, ks_networks_parameters(&y->critic));
    assert_memory_equal(x->critic.w, y->critic.w, n * sizeof *x->critic.w);
    assert_memory_equal(x->adam_v, y->adam_v, n * sizeof *x->adam_v);
    n = x->minibatches * x->rows * x->critic.arch->in;
    assert_memory_equal(x->input, y->input, n * sizeof *x->input);
    ks_checkpoint_free(x);
    ks_checkpoint_free(y);
}

#endif
