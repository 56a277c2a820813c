/* From a checkpoint to the spectrum of a curvature of its loss: one struct of options, one context.
 *
 * How to follow one kappa from the parameters theta to the number that is printed:
 *
 *   programs/analyze.c        options from the command line; prints what the pipeline found
 *   pipeline/options.c        reads the options
 *   pipeline/pipeline.c       the algorithm, top to bottom
 *   pipeline/reading.c        the checkpoint's file: theta, minibatches, targets
 *   io/checkpoint.c           what is in its groups, by io/networks.c and the HDF5 functions of io
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
#include "core/memory.h"
#include "core/progress.h"
#include "io/file.h"
#include "io/spectrum.h"
#include "lanczos/lanczos.h"
#include "operators/gradient_bounds.h"
#include "operators/null_space.h"
#include "operators/operator.h"
#include "operators/step.h"
#include "statistics/certificate.h"
#include "statistics/gradient_noise.h"
#include "statistics/statistics.h"
#include "statistics/tolerance.h"

struct ks_listing;

/* --- options --- */

/* Which of the checkpoint's targets are used: /batch/target, from the normalized rewards that the
 * critic was trained with; /batch/target_raw, from raw rewards; or raw where the checkpoint has
 * them, else normalized. */
enum ks_rewards { KS_REWARDS_NORMALIZED, KS_REWARDS_RAW, KS_REWARDS_RAW_IF_PRESENT };

/* The statistics of batch normalization: of the batch; of the loss's rows alone; running ones. */
enum ks_batchnorm { KS_BATCHNORM_TRAIN, KS_BATCHNORM_LOSS, KS_BATCHNORM_EVAL };

/* The longest list of arrays, and its end. */
enum { KS_ARRAYS_TEXT = 256 };

struct ks_spectrum_options {
    const struct ks_operator_kind *kind;
    bool products_f32;         /* products are in float32                              */
    enum ks_products products; /* how layers multiply then; not AUTO */
    bool basis_f32;            /* Lanczos vectors are in float32 even if float64 fits   */
    enum ks_batchnorm batchnorm;
    bool exact;     /* all eigenvalues, from the dense operator            */
    bool published; /* the published code's Lanczos recurrence, unweighted statistics, products
                     * divided by N once more                               */
    enum ks_rewards rewards;
    bool certificates;               /* float64 products certify bounds, or, of the published
                                      * code's recurrence, measure rounding */
    bool gradient_probe;             /* one more probe, which starts at the gradient       */
    bool complement;                 /* a second probe, in the complement of the first one */
    double learning_rate;            /* used by sharpness_ratio; NaN: the checkpoint's     */
    double count_above;              /* the size of directions_above; 0: not wanted        */
    size_t order, probes;            /* Lanczos steps; random start vectors                */
    struct ks_tolerances tolerances; /* none: `order` and `probes` are fixed, else limits  */
    size_t eigenvectors;             /* how many are wanted in place of a spectrum; 0: none */
    bool smallest;                   /* of the smallest eigenvalues, not of largest |..|   */
    double residual;                 /* the largest relative residual of eigenvectors      */
    size_t batches;                  /* how many minibatches are used; 0: all              */
    size_t batch;                    /* the only one that is used, from 1; 0: see batches  */
    size_t memory;                   /* in bytes; 0: half of the free memory               */
    uint64_t seed;                   /* seed of the start vectors                          */
    int critic, layer;               /* the diagonal block; -1: all                        */
    const char *layer_kind;          /* the kind that this layer must have; NULL: any      */
    char arrays[KS_ARRAYS_TEXT];     /* the block of these arrays (operator.h); "": all    */
    double weight_decay, scale;
};

/* The Lanczos steps of an analysis; the largest relative residual of eigenvectors. */
#define KS_DEFAULT_ORDER    90
#define KS_DEFAULT_RESIDUAL 0.001
/* The Hessian by products in float32, 90 steps from one start vector. */
struct ks_spectrum_options ks_spectrum_options_defaults(void);
/* Whether all options are the same that decide the numbers of a spectrum. */
bool ks_spectrum_options_same(const struct ks_spectrum_options *a,
                              const struct ks_spectrum_options *b);
/* Prints all options that decide the numbers of a spectrum, as words such as "order=90". Texts are
 * equal if and only if these options are. */
enum { KS_SPECTRUM_OPTIONS_TEXT = 2048 };
void ks_spectrum_options_print(const struct ks_spectrum_options *options,
                               char text[KS_SPECTRUM_OPTIONS_TEXT]);

/* The products of a spectrum, in products with one minibatch, for an operator of dimension `n` and
 * at most `minibatches`: the most; and the fewest with tolerances, for a first check with one start
 * vector, 0 without tolerances. */
double ks_most_products(const struct ks_spectrum_options *options, size_t n, size_t minibatches);
double ks_fewest_products(const struct ks_spectrum_options *options, size_t n, size_t minibatches);

/* --- results --- */

/* The error from few minibatches, after a few steps if minibatches may be added
 * (minibatch_samples.c). */
struct ks_early_error {
    size_t steps;    /* Lanczos steps before; 0: it was not computed */
    size_t products; /* with all minibatches, for the error          */
    double excess;   /* the largest error in units of its tolerance  */
};

/* A row of the table of layers. */
enum { KS_LAYER_STATISTICS = 7 };
struct ks_layer_row {
    size_t number;    /* the number of the layer, as in --layer             */
    const char *kind; /* the kind of the layer, such as "dense"             */
    size_t dimension; /* dimension of its block, for all critics or for --critic      */
    size_t steps;     /* the fewest Lanczos steps of a probe                */
    struct ks_gradient_noise noise;
    union { /* statistics of the block's spectrum, NaN if absent */
        struct {
            double lambda_max, lambda_max_data_se, kappa_effective_bound, kurtosis, trace, trace_se;
            double
                trace_share; /* trace / trace of the full operator, the sum of all rows' traces */
        };
        double statistic[KS_LAYER_STATISTICS];
    };
};

struct ks_eigenpairs {
    size_t n, count;  /* dimension of the operator; number of pairs */
    size_t steps;     /* Lanczos steps, each with one product       */
    double *value;    /* [count], by descending |value|, or ascending  */
    double *residual; /* [count] |A y - value y| for |y| = 1        */
    double *vector;   /* [count, n] of norm 1                       */
};

/* Eigenvectors of largest |eigenvalue|, or of the smallest eigenvalues. Each value is within its
 * residual of an eigenvalue. That no eigenvalue beyond them was missed follows for a random start
 * vector with a probability only; of a multiple eigenvalue one eigenvector is found. Layers are
 * named like their groups in a checkpoint, "02_dense". */
struct ks_eigenvectors {
    struct ks_eigenpairs pairs;
    size_t n_layers;       /* layers with parameters                                          */
    char (*layer)[32];     /* [n_layers]                                                      */
    double *share;         /* [count, n_layers]: of an eigenvector's squares, in all critics  */
    double *gradient;      /* [count]: (g'y)^2 / |g|^2; 0 if g is zero                        */
    char shortfall[256];   /* what the steps were not enough for; "": for nothing             */
    struct ks_arena arena; /* the arrays, also those of `pairs`. Owned                      */
};

/* --- the context --- */

struct ks_h5;

/* How an analysis divides its memory, in bytes. */
struct ks_budget {
    size_t dimension; /* dimension of the operator; for all layers the largest of a layer */
    size_t vectors;   /* the vectors that are multiplied in place of a spectrum              */
    size_t image;     /* the checkpoint's file, in memory while it is read                   */
    size_t fixed;     /* the checkpoint, and the operator without activations            */
    size_t held;      /* the Lanczos vectors, the dense matrix, or the vectors to be multiplied */
    size_t kept;      /* activations kept between products: the limit before the operator is
                       * prepared, then the bytes used                                   */
    size_t spare;     /* what the limit leaves then                                      */
    size_t wide;      /* the limit of activations in float64, of all threads, while the vectors
                       * that the steps gave are multiplied again                        */
    bool basis_f32;   /* the Lanczos basis is in float32 ...                             */
    bool squeezed;    /* ... because it does not fit in float64                          */
};

/* The lines on standard error while an analysis works: progress, and once the memory of a large run
 * and the time of a long one. */
struct ks_monitor {
    size_t dimension;     /* dimension of the operator                                */
    size_t products;      /* all products that will be computed, or the most          */
    size_t earlier;       /* products of the layers before this one                   */
    size_t null_products; /* products before the first Lanczos step of this spectrum  */
    double started; /* the clock at the start, then after the first products; 0: not started */
    bool size_said, time_said; /* lines that have been printed                         */
    size_t done;    /* products of Lanczos steps, of the null space and of earlier layers */
    size_t sampled; /* products' worth of random vectors for the trace, of this spectrum  */
    struct ks_progress_bar progress;
};

/* The caller sets the first fields, up to `in_library`; the others are zero before, filled by the
 * functions below, and freed by ks_pipeline_close. */
struct ks_pipeline {
    const struct ks_spectrum_options *options;
    const char *path;     /* the checkpoint's file; "(memory)" if there is none     */
    bool quiet;           /* no progress and no warnings on standard error          */
    bool says_references; /* the caller says itself if the file has no reference results */
    struct ks_h5 *file;   /* the checkpoint, opened by the caller and left open; NULL: `path` */
    const char *factors;  /* the file of vectors to be multiplied, for ks_pipeline_apply */
    bool finds_gradient;  /* the gradient is written, by ks_pipeline_apply          */
    bool by_layers;       /* the block of every layer is analyzed                   */
    bool in_library;      /* the operator and the checkpoint are kept                       */
    /* Of a matrix of the library's caller whose products are in float32: its products in float64;
     * NULL: as `a`. Not owned. */
    const struct ks_operator *wide;
    /* Called after each product with their number so far and in all; other than 0 ends the
     * analysis. NULL: nobody watches. */
    int (*watch)(void *watcher, size_t done, size_t products);
    void *watcher;

    /* What is analyzed. */
    struct ks_checkpoint *checkpoint;
    struct ks_h5 *factors_file;  /* the open file `factors`, until it is read; owned       */
    char digest[KS_SHA256_TEXT]; /* the SHA-256 of its file; "" if there is no file        */
    bool raw;                    /* the targets are /batch/target_raw                       */
    struct ks_problem problem;   /* without `kind`: a matrix of the library's caller        */
    struct ks_selection *selection;
    struct ks_null_space *space; /* what the architecture says of the null space           */
    struct ks_operator *full;    /* the operator of all coordinates, with activations       */
    struct ks_operator *a;       /* its block on the selected coordinates                   */
    size_t minibatches;          /* N                                                       */
    /* With tolerances for which fewer minibatches may be enough: the most of them, otherwise 0; and
     * the products with single minibatches that earlier, smaller selections cost. */
    size_t most_minibatches, spent;

    /* How. */
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
    double kappa_f64;   /* kappa in float64, if ks_pipeline_measures_rounding              */
    bool has_gradients; /* the following three are measured, where they exist */
    struct ks_gradient_bounds bounds; /* of a cross-entropy or a squared error              */
    struct ks_gradient_noise noise;
    struct ks_step step; /* along Adam's step, if the checkpoint has moments */
    struct ks_spectrum *spectrum;
    size_t n_rows;
    struct ks_layer_row *rows; /* [n_rows] the table of layers */
    struct ks_eigenvectors vectors;
};

/* Messages of the following functions name the file that they are about, but for those of
 * ks_pipeline_pose and ks_pipeline_analyze. */

/* KS_FORMAT if the file's name ends like weights of another framework (.safetensors, .npz,
 * .msgpack, .pt, ...) and it is not an HDF5 file; the message names the command that imports it. */
ks_status ks_foreign_check(const char *path);
/* Reads the checkpoint at p->path. The caller ends with ks_pipeline_close, also after a failure. */
ks_status ks_pipeline_open(struct ks_pipeline *p);
/* Poses the problem of one layer (-1: all): the loss and the coordinates of the operator, and what
 * the architecture says of its null space. For a checkpoint in memory, which the caller sets with
 * problem.minibatches. */
ks_status ks_pipeline_pose(struct ks_pipeline *p, int layer);
/* Stochastic Lanczos quadrature, or all eigenvalues: p->spectrum as it is stored in a file. */
ks_status ks_pipeline_spectrum(struct ks_pipeline *p);
/* The spectrum of an operator that the caller made: sets p->spectrum from p->a and budget.kept. */
ks_status ks_pipeline_analyze(struct ks_pipeline *p);
/* The spectra of the diagonal blocks of all layers: p->rows. */
ks_status ks_pipeline_layers(struct ks_pipeline *p);
/* Loss and gradient to the file `gradient`, unless it is NULL; and the products of the operator
 * with the vectors in p->factors to the file `products`, unless there are none. Vectors in files
 * have E P numbers. Coordinates that are not selected are ignored in factors and zero in products.
 * KS_MEMORY if --memory is too small. */
ks_status ks_pipeline_apply(struct ks_pipeline *p, const char *gradient, const char *products);
/* options->eigenvectors eigenvectors: p->vectors, and the file `output`. Lanczos steps until the
 * residuals are within the tolerance, or up to the order; then a float64 product with each vector.
 * KS_NUMBER, KS_MEMORY. */
ks_status ks_pipeline_eigenvectors(struct ks_pipeline *p, const char *output);
/* After that: KS_PARTIAL if the order was too small. */
ks_status ks_eigenvectors_complete(const struct ks_pipeline *p);
/* Prints p->rows: lines of a table, rows of CSV, or in JSON one object on a line, whose `layers` is
 * a list. Numbers that are not finite are printed as by ks_listing_add. KS_FULL, KS_MEMORY. */
ks_status ks_layers_list(struct ks_listing *listing, const struct ks_pipeline *p);
/* Prints a row for each eigenvector: lines of a table, with the three layers of largest share; rows
 * of CSV; or in JSON one object on a line. KS_FULL, KS_MEMORY. */
ks_status ks_eigenvectors_list(struct ks_listing *listing, const struct ks_pipeline *p);
/* Frees what was found, so that another spectrum can be computed. */
void ks_pipeline_clear(struct ks_pipeline *p);
void ks_pipeline_close(struct ks_pipeline *p);

/* The largest eigenvalue of a quadratic on which steps with learning rate eta are stable: 2 / eta
 * for gradient descent; 2 (1 + beta1) / ((1 - beta1) eta) for Adam with a fixed preconditioner
 * (Cohen et al., arXiv 2207.14484, 2022: 38 / eta at beta1 = 0.9). */
double ks_stability_threshold(bool adam, double beta1, double learning_rate);

/* --- stages, which only the pipeline's own files call --- */

/* pipeline.c */

/* The null space, nodes and weights, and products in float64, from the operator p->a on. */
ks_status ks_pipeline_from_operator(struct ks_pipeline *p);
/* The noise of the gradient: p->noise. */
ks_status ks_pipeline_measure_noise(struct ks_pipeline *p);
/* What gradients say, in float64: their noise, their bounds, and the loss along Adam's step.
 * Nothing for the published code. */
ks_status ks_pipeline_measure_gradients(struct ks_pipeline *p);
/* Adds the statistics to the spectrum. KS_MEMORY, KS_NUMBER. */
ks_status ks_pipeline_statistics(struct ks_pipeline *p);
/* Warns where products are wrong by more than 1e-3 of the largest |eigenvalue|, and names the layer
 * in which the error is largest. */
void ks_pipeline_warn(const struct ks_pipeline *p);

/* problem.c */

/* "CHECKPOINT: " in front of the message of a failure, which the functions below do not have; KS_OK
 * stays KS_OK. */
ks_status ks_pipeline_name(const struct ks_pipeline *p, ks_status status);
/* Whether vectors are formed to be certified: only Lanczos vectors that are orthonormal can give
 * certificates, and the published code's are not. */
bool ks_pipeline_has_certificates(const struct ks_pipeline *p);
/* Whether the published code's recurrence is run once more in float64. */
bool ks_pipeline_measures_rounding(const struct ks_spectrum_options *options);
/* Whether the early error has shown too few minibatches for the tolerances. */
bool ks_pipeline_is_short(const struct ks_pipeline *p);
/* What the statistics need besides the spectrum; it points into `p`. */
struct ks_statistics_inputs ks_pipeline_terms(const struct ks_pipeline *p);

/* Sets p->problem by the options; then the problem of one layer (-1: all); then its products. */
void ks_pipeline_fill_problem(struct ks_pipeline *p, int layer);
ks_status ks_pipeline_pose_loss(struct ks_pipeline *p, int layer);
ks_status ks_pipeline_pose_products(struct ks_pipeline *p);
/* The operator of the selected coordinates, by products of `full`, which the first call makes. */
ks_status ks_pipeline_make_block(struct ks_pipeline *p);
/* Makes the operator of the analysis, and keeps as many activations as the memory allows. */
ks_status ks_pipeline_make_operator(struct ks_pipeline *p);

/* budget.c */

/* Before anything large is allocated: KS_MEMORY if the analysis needs more than the limit, with the
 * size that is enough. `shapes`: the checkpoint, whose arrays take `bytes` and need not be there;
 * p->problem has the numbers of minibatches, p->budget the number of vectors to be multiplied. */
ks_status ks_budget_check(const struct ks_pipeline *p, const struct ks_checkpoint *shapes,
                          double bytes);
/* Given `dimension` and `vectors` of the budget, divides the limit before the operator is made. The
 * vectors come first: in float64 if they fit, otherwise, and always for the published code, in
 * float32. The rest is for activations. KS_MEMORY. */
ks_status ks_budget_divide(struct ks_pipeline *p);

/* monitor.c */

/* The monitor of one spectrum. */
void ks_monitor_set(struct ks_pipeline *p);
/* Starts the clock and the progress. */
void ks_monitor_start(struct ks_pipeline *p);
/* Ends the progress, if it was started. */
void ks_monitor_end(struct ks_pipeline *p);
/* After each Lanczos step; after each other product, of which `products` were computed for this
 * spectrum (`pipeline` is a struct ks_pipeline); and after `vectors` random vectors for the trace
 * were multiplied, each by a minibatch. KS_RUN if the watcher ends the analysis. */
ks_status ks_monitor_step(struct ks_pipeline *p, const struct ks_lanczos *lanczos);
ks_status ks_monitor_product(void *pipeline, size_t products);
ks_status ks_monitor_sample(struct ks_pipeline *p, size_t vectors);

/* probes.c */

/* Lanczos from every start vector: makes the spectrum with its nodes, weights and residuals. With
 * tolerances, order and probes are limits: the first probe takes steps until some number of probes
 * with its steps would be enough, and until the product of both no longer falls; then each other
 * probe takes the same number of steps. Ends early, without a spectrum, if ks_pipeline_is_short.
 * KS_NUMBER (Lanczos, LAPACK), KS_MEMORY, or as the operator fails. */
ks_status ks_probes_run(struct ks_pipeline *p);
/* Makes an empty spectrum and, for probes of `order` steps, certificates. KS_MEMORY. */
ks_status ks_probes_allocate(struct ks_pipeline *p, size_t order);
/* With tolerances: the steps after which the widths are computed for the first time. */
enum { KS_FIRST_STEPS = 8 };

/* minibatch_number.c */

/* Begins with few minibatches if the tolerances allow it. */
void ks_minibatches_begin(struct ks_pipeline *p);
/* After the certificates: whether more minibatches are needed; then p->minibatches is their number.
 */
bool ks_minibatches_grow(struct ks_pipeline *p);

/* minibatch_samples.c */

/* Let A = (A_1 + ... + A_N)/N and y the Ritz vector of lambda_max, or of lambda_min, as far as the
 * Lanczos steps have got. The error is the standard error of the N quotients y'A_i y/y'y, in units
 * of the largest absolute Ritz value, as lambda_max_data_se is for the final vector. It is computed
 * for each end that the tolerances name. For a checkpoint's operator, N > 1. Fails
 * as the operator does; KS_MEMORY, KS_NUMBER. */
ks_status ks_early_error(struct ks_pipeline *p, const struct ks_lanczos *lanczos);
/* Draws vectors for the trace until its error is at most `tolerance` times |trace|, but at most
 * `most` >= 2 for each minibatch. `lanczos` holds Lanczos vectors of the operator. For a
 * checkpoint's operator. Fails as the operator does; KS_NUMBER if a product is not
 * finite; KS_MEMORY. */
ks_status ks_trace_sample(struct ks_pipeline *p, const struct ks_lanczos *lanczos, double tolerance,
                          size_t most);

/* eigenvectors.c */

/* p->vectors, from the operator on. */
ks_status ks_eigenvectors_find(struct ks_pipeline *p);

/* attributes.c */

/* Adds to the spectrum, which has its statistics, sharpness_ratio (1), what tolerances reached and
 * cost, and all attributes. KS_MEMORY, also in the status of the list.
 *
 * (1) lambda_max over ks_stability_threshold: of Adam for `preconditioned`, of gradient descent for
 * the other operators. The checkpoint's learning rate is used if the option is NaN; if it has none
 * either, the ratio is NaN. Root attributes record the learning rate and, for `preconditioned`,
 * Adam's constants. Not added for `residual`, which is not the curvature of any step, nor for the
 * published code, whose operator is scaled by 1/N. */
void ks_attributes_sharpness(struct ks_pipeline *p);
/* eta: the option, else the checkpoint's; NaN if there is none. */
double ks_learning_rate(const struct ks_pipeline *p);
ks_status ks_attributes_tolerances(struct ks_pipeline *p);
ks_status ks_attributes_probes(struct ks_pipeline *p);
ks_status ks_attributes_spectrum(struct ks_pipeline *p, const struct ks_statistics_inputs *inputs);
/* The attributes of a file of products, or, if `loss` is not NULL, of a gradient. The caller clears
 * the list. */
void ks_attributes_vectors(const struct ks_pipeline *p, const double *loss,
                           struct ks_attributes *list);
/* The products with single minibatches that the present minibatches have cost. */
size_t ks_products_spent(const struct ks_pipeline *p);

/* --- The files that the analyzer writes: their names, and checks before any work that they can be
 * written and replace no input. --- */

/* The names of n spectra: "DIR/CHECKPOINT.spectrum.h5" for "CHECKPOINT.h5", or with a `name` (NULL:
 * none) "DIR/CHECKPOINT.NAME.spectrum.h5". Without `folder` (NULL), DIR is the checkpoint's folder;
 * else `folder`, which is created if its parent exists. KS_USAGE if two spectra would be the
 * same file, or one would replace a checkpoint; KS_IO or KS_FULL (file.h) if `folder` cannot be
 * written. The caller frees *outputs with ks_outputs_free. */
ks_status ks_outputs_new(size_t n, const char *const *checkpoints, const char *folder,
                         const char *name, char ***outputs);
void ks_outputs_free(size_t n, char **outputs);

/* Checks that `output` can be written, by a temporary file, which is removed; so are temporary
 * files that killed analyses left in that folder. KS_IO or KS_FULL if it cannot; KS_USAGE if
 * it would replace the file `input` (NULL: none), under any path or link, or has its path if it
 * does not exist. */
ks_status ks_output_check(const char *output, const char *input);

/* Whether two outputs are the same file: the same name in the same folder, under any path to it. */
bool ks_output_same(const char *a, const char *b);

#endif
