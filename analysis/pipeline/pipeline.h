/* From a checkpoint to the spectrum of a curvature of its loss: one struct of options, one context.
 *
 * How to follow one kappa from the parameters theta to the number that is printed:
 *
 *   programs/analyze.c        options from the command line; prints what the pipeline found
 *   pipeline/options.c        reads the options
 *   pipeline/pipeline.c       the algorithm, top to bottom
 *   pipeline/reading.c        the checkpoint's file: theta, minibatches, targets
 *   io/checkpoint_read.c      the same in detail, by io/networks.c and the HDF5 functions of io
 *   pipeline/problem.c        which loss, which operator A
 *   operators/selection.c     the coordinates of the operator A
 *   operators/null_space.c    directions u with A u = 0, from the architecture alone
 *   operators/primal.c        at theta: forward and backward passes and the gradient, in float64
 *   products/curvature.c      A v: the tangent of those passes along v, summed over minibatches
 *   pipeline/probes.c         start vectors, and how many steps each takes
 *   lanczos/lanczos.c         the three-term recurrence with full reorthogonalization: alpha, beta
 *   lanczos/jacobi.c          the eigenvalues of the Jacobi matrix: Ritz values and weights
 *   statistics/certificate.c  products in float64 with the vectors behind the bounds
 *   statistics/statistics.c   the statistics of all probes; kappa itself is in probe.c
 *   pipeline/attributes.c     what the file says beside them */
#ifndef KS_PIPELINE_PIPELINE_H
#define KS_PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/progress.h"
#include "io/sha256.h"
#include "io/spectrum.h"
#include "lanczos/eigenpairs.h"
#include "lanczos/lanczos.h"
#include "operators/gradient_bounds.h"
#include "operators/null_basis.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"
#include "statistics/certificate.h"
#include "statistics/statistics.h"
#include "statistics/tolerance.h"

struct ks_report;

/* --- options --- */

/* Which of the checkpoint's targets are used: /batch/target, from the normalized rewards that the
 * critic was trained with; /batch/target_raw, from raw rewards; or raw where the checkpoint has
 * them, else normalized. */
enum ks_rewards { KS_REWARDS_NORMALIZED, KS_REWARDS_RAW, KS_REWARDS_RAW_IF_PRESENT };

struct ks_spectrum_options {
    const struct ks_operator_kind *kind;
    bool products_f32;   /* products are in float32                              */
    bool basis_f32;      /* Lanczos vectors are in float32 even if float64 fits   */
    bool evaluation;     /* batch normalization by running statistics           */
    bool loss_rows_only; /* batch statistics of the loss's rows alone           */
    bool exact;          /* all eigenvalues, from the dense operator            */
    bool published;      /* the published code's Lanczos recurrence, unweighted statistics, products
                          * divided by N once more                               */
    enum ks_rewards rewards;
    bool certificates;               /* certify bounds by float64 products                 */
    bool gradient_probe;             /* one more probe, which starts at the gradient       */
    double learning_rate;            /* used by sharpness_ratio; NaN: the checkpoint's     */
    size_t order, probes;            /* Lanczos steps; random start vectors                */
    struct ks_tolerances tolerances; /* none: `order` and `probes` are fixed, else limits  */
    size_t eigenvectors;             /* how many are wanted in place of a spectrum; 0: none */
    double residual;                 /* the largest relative residual of eigenvectors      */
    size_t batches;                  /* how many minibatches are used; 0: all              */
    size_t memory;                   /* bytes per MPI rank; 0: half of the free memory     */
    uint64_t seed;                   /* seed of the start vectors                          */
    int critic, layer;               /* the diagonal block; -1: all                        */
    const char *layer_kind;          /* the kind that this layer must have; NULL: any      */
    double weight_decay, scale;
};

/* The Lanczos steps of an analysis; the largest relative residual of eigenvectors. */
#define KS_DEFAULT_ORDER    90
#define KS_DEFAULT_RESIDUAL 0.001
/* The Hessian by products in float32, 90 steps from one start vector. */
struct ks_spectrum_options ks_spectrum_options_defaults(void);

/* The products of a spectrum, in products with one minibatch, for an operator of dimension `n` and
 * at most `minibatches`: the most; and the fewest with tolerances, for a first check with one start
 * vector, 0 without tolerances. */
double ks_most_products(const struct ks_spectrum_options *options, size_t n, size_t minibatches);
double ks_fewest_products(const struct ks_spectrum_options *options, size_t n, size_t minibatches);

/* --- results --- */

/* The trace from random vectors (minibatch_samples.c). */
struct ks_trace_samples {
    size_t rounds; /* vectors of each minibatch; 0: none were drawn           */
    double value;  /* the trace                                               */
    double se;     /* its standard error                                      */
    double error;  /* half of the 99% interval around `value`, by Student's t */
};

/* The error from few minibatches, after a few steps if minibatches may be added
 * (minibatch_samples.c). */
struct ks_early_error {
    size_t steps;    /* Lanczos steps before; 0: it was not computed */
    size_t products; /* with all minibatches, for the error          */
    double excess;   /* the largest error in units of its tolerance  */
};

/* A row of the table of layers. */
struct ks_layer_row {
    size_t number;    /* the number of the layer, as in --layer             */
    const char *kind; /* the kind of the layer, such as "dense"             */
    size_t dimension; /* dimension of its block, for all critics or for --critic      */
    size_t steps;     /* the fewest Lanczos steps of a probe                */
    /* Statistics of the block's spectrum; NaN if absent. */
    double lambda_max, lambda_max_data_se, kappa_effective_bound, kurtosis, trace, trace_se;
    double trace_share; /* trace / trace of the full operator, the sum of all rows' traces */
};

/* Eigenvectors of largest |eigenvalue|. Layers are named like their groups in a checkpoint,
 * "02_dense". */
struct ks_eigenvectors {
    struct ks_eigenpairs pairs;
    size_t n_layers;   /* layers with parameters                                           */
    char (*layer)[32]; /* [n_layers]; owned                                                */
    double *share;     /* [count, n_layers]: of an eigenvector's squares, in all critics; owned */
    double *gradient;  /* [count]: (g'y)^2 / |g|^2; 0 if g is zero; owned                  */
};

/* --- the context --- */

/* How an analysis divides its memory, in bytes. */
struct ks_budget {
    size_t dimension; /* dimension of the operator; for all layers the largest of a layer */
    size_t vectors;   /* the vectors that are multiplied in place of a spectrum              */
    size_t fixed;     /* the checkpoint, and the operator without activations            */
    size_t held;      /* the Lanczos vectors, the dense matrix, or the vectors to be multiplied */
    size_t kept;      /* activations kept between products: the limit before the operator is
                       * prepared, then the bytes used                                   */
    size_t spare;     /* what the limit leaves then                                      */
    bool basis_f32;   /* the Lanczos basis is in float32 ...                             */
    bool squeezed;    /* ... because it does not fit in float64                          */
};

/* The lines on standard error while an analysis works: progress, and once the memory of a large run
 * and the time of a long one. */
struct ks_monitor {
    const char *checkpoint;
    size_t dimension;     /* dimension of the operator                                */
    size_t products;      /* all products that will be computed                       */
    size_t earlier;       /* products of the layers before this one                   */
    size_t null_products; /* products before the first Lanczos step of this spectrum  */
    size_t probes;        /* probes with random start vectors                         */
    size_t minibatches;   /* that one product sums over                               */
    size_t order;         /* steps per probe                                          */
    const struct ks_budget *budget;
    bool at_most; /* fewer products may be enough */
    bool quiet;
    double started;            /* the clock at the start, then after the first products */
    bool size_said, time_said; /* lines that have been printed                         */
    size_t done;    /* products of Lanczos steps, of the null space and of earlier layers */
    size_t sampled; /* products' worth of random vectors for the trace, of this spectrum  */
    double *work;   /* [KS_JACOBI_WORK order]; owned                         */
    struct ks_progress_bar progress;
};

/* The caller sets the first fields, up to `in_library`; the others are zero before, filled by
 * the functions below, and freed by ks_pipeline_close. */
struct ks_pipeline {
    const struct ks_spectrum_options *options;
    const char *path;           /* the checkpoint's file; "(memory)" if there is none     */
    const struct ks_team *team; /* the ranks that share the work; NULL: a single one      */
    bool quiet;                 /* no progress and no warnings on standard error          */
    bool says_references;       /* the caller says itself if the file has no reference results */
    bool trusts_files;          /* the caller has had the files read by a scout           */
    const char *factors;        /* the file of vectors to be multiplied, for ks_pipeline_apply */
    bool in_library; /* messages do not name the checkpoint, and the operator is kept       */

    /* What is analyzed. */
    struct ks_checkpoint *checkpoint;
    char digest[KS_SHA256_TEXT]; /* the SHA-256 of its file; "" if there is no file        */
    bool raw;                    /* the targets are /batch/target_raw                       */
    struct ks_problem problem;   /* without `kind`: a matrix of the library's caller        */
    struct ks_selection *selection;
    struct ks_null_space *space; /* what the architecture says of the null space           */
    struct ks_operator *full;    /* the operator of all coordinates, with activations       */
    struct ks_operator *a;       /* its block on the selected coordinates                   */
    size_t minibatches;          /* N, over all ranks                                       */
    /* With tolerances for which fewer minibatches may be enough: the most of them, otherwise 0; and
     * the products with single minibatches that earlier, smaller selections cost. */
    size_t most_minibatches, spent;

    /* How. */
    bool by_layers;          /* the block of every layer is analyzed                 */
    size_t allocated_before; /* ks_alloc_total() at the start, for the budget ... */
    size_t allocated_read;   /* ... and when the checkpoint was read              */
    struct ks_budget budget;
    struct ks_monitor monitor;

    /* What was found. */
    struct ks_null null;               /* what products say of the null space               */
    struct ks_null_basis *basis;       /* a basis of the null space; NULL: none is known    */
    double *gradient;                  /* start vector of the last probe; NULL: none        */
    struct ks_trace_samples trace;     /* with a tolerance for the trace                    */
    struct ks_early_error early_error; /* with tolerances for an end of the spectrum         */
    struct ks_certificates certificates;
    double exact_error; /* norm of the error of float32 products, if `exact` (statistics.h) */
    struct ks_gradient_bounds bounds; /* of a cross-entropy or a squared error              */
    struct ks_spectrum *spectrum;
    size_t n_rows;
    struct ks_layer_row *rows; /* [n_rows] the table of layers */
    struct ks_eigenvectors vectors;
};

/* All ranks of the team call the following functions together, and fail together: whatever can fail
 * on one rank alone passes through one function, `agree`, before the next communication. Messages
 * name the file that they are about. */

/* KS_FORMAT if the file's name ends like weights of another framework (.safetensors, .npz,
 * .msgpack, .pt, ...) and it is not an HDF5 file; the message names the command that imports it. */
ks_status ks_foreign_check(const char *path);
/* Reads the checkpoint at p->path and gives each rank its share of the minibatches. The caller ends
 * with ks_pipeline_close, also after a failure. */
ks_status ks_pipeline_open(struct ks_pipeline *p);
/* Poses the problem: the loss and the coordinates of the operator, and what the architecture says
 * of its null space. For a checkpoint in memory, which the caller sets with problem.minibatches. */
ks_status ks_pipeline_pose(struct ks_pipeline *p);
/* Stochastic Lanczos quadrature, or all eigenvalues: p->spectrum as it is stored in a file. */
ks_status ks_pipeline_spectrum(struct ks_pipeline *p);
/* The spectrum of an operator that the caller made: sets p->spectrum from p->a and budget.kept. For
 * a single rank. */
ks_status ks_pipeline_measure(struct ks_pipeline *p);
/* The spectra of the diagonal blocks of all layers: p->rows. */
ks_status ks_pipeline_layers(struct ks_pipeline *p);
/* Loss and gradient to the file `gradient`, unless it is NULL; and the products of the operator
 * with the vectors in p->factors to the file `products`, unless there are none. Vectors in files
 * have E P numbers. Coordinates that are not selected are ignored in factors and zero in products.
 * KS_MEMORY if --memory is too small. */
ks_status ks_pipeline_apply(struct ks_pipeline *p, const char *gradient, const char *products);
/* options->eigenvectors eigenvectors: p->vectors, and the file `output`. Lanczos steps until the
 * residuals are within the tolerance; then a float64 product with each vector. KS_NUMBER if the
 * order is too small; KS_MEMORY. */
ks_status ks_pipeline_eigenvectors(struct ks_pipeline *p, const char *output);
/* Prints p->rows: lines of a table, rows of CSV, or in JSON one object on a line, whose `layers` is
 * a list. Numbers that are not finite are printed as by ks_report_add. KS_FULL, KS_MEMORY. */
ks_status ks_layers_report(struct ks_report *report, const struct ks_pipeline *p);
/* Prints a row for each eigenvector: lines of a table, with the three layers of largest share; rows
 * of CSV; or in JSON one object on a line. KS_FULL, KS_MEMORY. */
ks_status ks_eigenvectors_report(struct ks_report *report, const struct ks_pipeline *p);
/* Frees what was found, so that another spectrum can be computed. */
void ks_pipeline_clear(struct ks_pipeline *p);
void ks_pipeline_close(struct ks_pipeline *p);

/* The largest eigenvalue of a quadratic on which steps with learning rate eta are stable: 2 / eta
 * for gradient descent; 2 (1 + beta1) / ((1 - beta1) eta) for Adam with a fixed preconditioner
 * (Cohen et al., arXiv 2207.14484, 2022: 38 / eta at beta1 = 0.9). */
double ks_stability_threshold(bool adam, double beta1, double learning_rate);

#endif
