/* KappaScope's contestant for hvp.py: Hessian-vector products of a checkpoint.
 *
 *   build/bench/peer/product CHECKPOINT VECTORS [f32|f64]
 *
 * Prints a line "ready" with a JSON object about the program. Then, for every line of standard
 * input, computes the product with the first of VECTORS over all minibatches and critics, and
 * prints the seconds that it took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/blas.h"
#include "core/memory.h"
#include "core/progress.h"
#include "io/checkpoint.h"
#include "io/h5.h"
#include "operators/operator.h"
#include "operators/primal.h"

#include "../must.h"

static const size_t MEMORY = (size_t)8 << 30; /* bytes for the operator's kept blocks */

static void serve(const struct ks_operator *h, const double *v, double *out)
{
    char line[256];

    while (fgets(line, sizeof line, stdin)) {
        double start = ks_seconds();

        must(ks_operator_apply(h, v, out));
        printf("%.9f\n", ks_seconds() - start);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct ks_problem q = {.scale = 1, .critic = -1, .layer = -1};
    struct ks_checkpoint *c;
    struct ks_operator *h;
    struct ks_h5 *h5;
    double *v, *out;
    size_t n, k;

    ks_blas_start(argv);
    if (argc < 3) {
        fprintf(stderr, "usage: product CHECKPOINT VECTORS [f32|f64]\n");
        return 2;
    }
    must(ks_h5_open(argv[1], "kappascope-checkpoint", &h5));
    must(ks_checkpoint_read_loss(h5, &c));
    ks_h5_close(h5);
    n = ks_networks_parameters(&c->critic);
    must(ks_h5_open(argv[2], "kappascope-vector", &h5));
    must(ks_vectors_read_open(h5, n, &k, &v));
    ks_h5_close(h5);
    must(ks_alloc(n, sizeof *out, &out));
    q.checkpoint = c, q.minibatches = c->minibatches;
    if (argc > 3 && strcmp(argv[3], "f64") == 0)
        must(ks_hessian_new_f64(&q, &h));
    else
        must(ks_hessian_new_f32(&q, &h));
    must(ks_operator_prepare(h, MEMORY));
    printf("ready {\"name\": \"KappaScope %s\", \"blas\": \"%s, kernel %s\", \"threads\": %zu}\n",
           KS_VERSION, ks_blas_version(), ks_blas_kernel(), ks_primal_threads(&q));
    fflush(stdout);
    serve(h, v, out);
    ks_operator_free(h);
    free(v);
    free(out);
    ks_checkpoint_free(c);
    return 0;
}
