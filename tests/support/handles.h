/* Handles of the public header for its tests: critics from memory, and a matrix given by its
 * products. */
#ifndef KS_TEST_HANDLES_H
#define KS_TEST_HANDLES_H

#include "kappascope.h"
#include "small_critics.h"

#define assert_done(call)                                                                          \
    do {                                                                                           \
        if ((call) != KAPPASCOPE_OK)                                                               \
            fail_msg("%s: %s", #call, kappascope_error());                                         \
    } while (0)

/* The call fails with this status and a message that contains `words`. */
#define assert_refuses(call, status, words)                                                        \
    do {                                                                                           \
        int ks_found = (int)(call);                                                                \
        if (ks_found != (int)(status) || !strstr(kappascope_error(), (words)))                     \
            fail_msg("%s: %d, '%s'", #call, ks_found, kappascope_error());                         \
    } while (0)

/* A critic in memory that points to the arrays of a checkpoint. */
struct kappascope_critic critic_of(const struct ks_checkpoint *c);
struct kappascope_checkpoint *from_memory(const struct ks_checkpoint *c);
static const char PROJECTED[] = "batchnorm\ndense 6 bias=no project=unit\nbatchnorm\nrelu\n"
                                "dense 4 project=unit-kernel\nloss ce min=-5 max=5\n";

/* A checkpoint that every operator accepts: columns of norm 1 and Adam's second moment. */
struct ks_checkpoint *make_projected(void);

/* diag(1 .. n), or a failure, or a NaN, at product number `at`. */
struct counting {
    size_t n, products, fail_at, nan_at;
};

int count_up(void *context, const double *x, double *y);

#endif
