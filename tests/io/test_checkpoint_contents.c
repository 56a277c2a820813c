/* Which contents of a checkpoint are required, which may vary, and which may not be there: a good
 * one with one edit at a time. */
#include "example.h"

/* --- edits --- */

/* An edit of a file, and the words by which it is refused. */
struct edit {
    void (*make)(const char *path, const struct edit *e);
    const char *words;
    const char *object, *name; /* name: of an attribute           */
    double number;             /* its value, or that of `element` */
    const char *text;          /* the attribute's value           */
    size_t element;            /* of the dataset                  */
    struct stored shape;       /* the dataset's                   */
};

static void no_object(const char *path, const struct edit *e)
{
    remove_object(path, e->object);
}

static void no_attribute(const char *path, const struct edit *e)
{
    remove_attribute(path, e->object, e->name);
}

static void integer(const char *path, const struct edit *e)
{
    set_integer(path, e->object, e->name, (int64_t)e->number);
}

static void number(const char *path, const struct edit *e)
{
    set_number(path, e->object, e->name, e->number);
}

static void string(const char *path, const struct edit *e)
{
    set_string(path, e->object, e->name, e->text);
}

static void element(const char *path, const struct edit *e)
{
    poke(path, e->object, e->element, e->number);
}

/* Datasets of zeros, in place of those of the file or in addition to them. */
static void reals(const char *path, const struct edit *e)
{
    replace(path, e->object, H5T_IEEE_F64LE, &e->shape);
}

static void integers(const char *path, const struct edit *e)
{
    replace(path, e->object, H5T_STD_I64LE, &e->shape);
}

/* A new group, which may have a new attribute. */
static void group(const char *path, const struct edit *e)
{
    hid_t file = edit(path);

    H5Gclose(H5Gcreate2(file, e->object, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    if (e->name)
        set_number(path, e->object, e->name, 0);
}

/* Rows of tables of edits: what is changed, and the words of the refusal. */
#define EDIT(how, o, w, ...)                                                                       \
    {                                                                                              \
        .make = how, .object = o, .words = w, __VA_ARGS__                                          \
    }
#define NO_OBJECT(o, w)                                                                            \
    {                                                                                              \
        .make = no_object, .object = o, .words = w                                                 \
    }
#define NO_ATTRIBUTE(o, n, w) EDIT(no_attribute, o, w, .name = n)
#define INTEGER(o, n, v, w)   EDIT(integer, o, w, .name = n, .number = v)
#define NUMBER(o, n, v, w)    EDIT(number, o, w, .name = n, .number = v)
#define STRING(o, n, t, w)    EDIT(string, o, w, .name = n, .text = t)
#define ELEMENT(o, at, v, w)  EDIT(element, o, w, .element = at, .number = v)
#define SET(how, o, w, ...)                                                                        \
    EDIT(how, o, w, .shape = {sizeof((hsize_t[]){__VA_ARGS__}) / sizeof(hsize_t), {__VA_ARGS__}})
#define REALS(o, w, ...)    SET(reals, o, w, __VA_ARGS__)
#define INTEGERS(o, w, ...) SET(integers, o, w, __VA_ARGS__)
#define GROUP(o, w)                                                                                \
    {                                                                                              \
        .make = group, .object = o, .words = w                                                     \
    }

/* The edited file is refused with these words; then restores the good one. */
static void refused(const char *path, const unsigned char *bytes, size_t n, const char *words)
{
    struct ks_checkpoint *c;

    assert_fails(try_checkpoint(path, &c), KS_FORMAT, words);
    assert_null(c);
    assert_one_line(path);
    write_bytes(path, bytes, n);
}

/* Each of the edits is refused. */
static void refuses(struct ks_checkpoint *c, size_t count, const struct edit *edits)
{
    const char *path = scratch("a.h5");
    unsigned char *bytes;
    size_t n;

    write_one(path, c, false);
    bytes = read_bytes(path, &n);
    for (size_t i = 0; i < count; i++) {
        edits[i].make(path, &edits[i]);
        refused(path, bytes, n, edits[i].words);
        if (edits[i].make == integers) /* their words are the same for all objects */
            assert_contains(ks_error_text(), edits[i].object);
    }
}
#define REFUSES(checkpoint, edits) refuses(checkpoint, sizeof(edits) / sizeof *(edits), edits)

/* --- what is required --- */

static const char *const required[] = {
    "/critic/00_batchnorm/scale",   "/critic/00_batchnorm/bias",
    "/critic/01_dense/kernel",      "/critic/02_layernorm/scale",
    "/critic/02_layernorm/bias",    "/critic/04_dense/kernel",
    "/critic/05_layernorm/scale",   "/critic/05_layernorm/bias",
    "/critic/07_dense/kernel",      "/critic/07_dense/bias",
    "/target/07_dense/bias",        "/actor/00_dense/kernel",
    "/actor/03_dense/bias",         "/optimizer/m/07_dense/bias",
    "/optimizer/v/01_dense/kernel", "/batch/target",
};
static const char *const optional[] = {"/critic/00_batchnorm/mean", "/critic/00_batchnorm/var",
                                       "/actor/01_batchnorm/mean", "/batch/target_raw"};
enum {
    REQUIRED = sizeof required / sizeof *required,
    OPTIONAL = sizeof optional / sizeof *optional
};

static size_t dimensions_of(const char *path, const char *object)
{
    struct ks_h5_shape found;
    struct ks_h5 *h5;

    assert_ok(ks_h5_open(path, NULL, &h5));
    assert_ok(ks_h5_shape(h5, object, &found));
    ks_h5_close(h5);
    return found.n_dims;
}

/* Each of the objects with one number more or less in each dimension. */
static void off_by_one(struct ks_checkpoint *c, size_t count, const char *const *objects)
{
    const char *path = scratch("a.h5");
    unsigned char *bytes;
    size_t n;

    write_one(path, c, false);
    bytes = read_bytes(path, &n);
    for (size_t i = 0; i < count; i++)
        for (size_t dim = dimensions_of(path, objects[i]); dim-- > 0;)
            for (int by = -1; by <= 1; by += 2) {
                if (strncmp(objects[i], "/batch/target", 13) == 0 && dim == 1)
                    continue; /* B: any number up to R, test_batch */
                resize(path, objects[i], dim, by);
                refused(path, bytes, n, "expected shape [");
            }
}

TEST_CLEAN(test_shapes_off_by_one)
{
    off_by_one(make_full(), REQUIRED, required);
    off_by_one(make_full(), OPTIONAL, optional);
}

/* A lerp has a group for its alpha, named by its number; a residual has none. */
TEST_CLEAN(test_containers)
{
    static const char text[] =
        "residual {\nrelu\nlerp {\ndense 5\n}\n}\nrmsnorm\nscaler\ndense 1\nloss mse\n";
    static const char *const arrays[] = {"/critic/02_lerp/alpha", "/critic/03_rmsnorm/scale",
                                         "/critic/04_scaler/scaler", "/critic/05_dense/kernel"};
    static const struct edit edits[] = {
        NO_OBJECT("/critic/02_lerp/alpha", "/critic/02_lerp/alpha: missing")};

    REFUSES(make_plain(text), edits);
    off_by_one(make_plain(text), sizeof arrays / sizeof *arrays, arrays);
}

TEST_CLEAN(test_missing)
{
    static const struct edit edits[] = {
        NO_OBJECT("/batch/input", "/batch/input: missing"),
        NO_OBJECT("/critic", "/critic: attribute arch: missing"),
        NO_ATTRIBUTE("/critic", "ensemble", "/critic: attribute ensemble: missing"),
        NO_ATTRIBUTE("/optimizer", "step", "/optimizer: attribute step: missing"),
    };

    REFUSES(make_full(), edits);
    for (size_t i = 0; i < REQUIRED; i++)
        refuses(make_full(), 1, &(struct edit)NO_OBJECT(required[i], "missing"));
}

TEST_CLEAN(test_optional)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c;

    for (size_t i = 0; i < OPTIONAL; i++) {
        write_one(path, make_full(), false);
        remove_object(path, optional[i]);
        c = read_checkpoint(path);
        assert_int_equal(c->critic.state == NULL, i < 2);
        assert_int_equal(c->actor.state == NULL, i == 2);
        assert_int_equal(c->target_raw == NULL, i == 3);
    }
    remove_attribute(path, "/optimizer", "beta1");
    remove_attribute(path, "/optimizer", "beta2");
    remove_attribute(path, "/optimizer", "eps");
    c = read_checkpoint(path);
    assert_close(c->adam.beta1, 0.9, 0);
    assert_close(c->adam.beta2, 0.999, 0);
    assert_close(c->adam.eps, 1e-8, 0);
}

/* --- attributes and numbers --- */

TEST_CLEAN(test_attributes)
{
    static const char LARGE[] = /* refused before memory is allocated */
        "batchnorm\nrepeat 200 {\n  dense 65536 bias=no\n}\ndense 3\nloss ce min=0 max=1\n";
    static const struct edit edits[] = {
        NO_ATTRIBUTE("/", "format",
                     "expected a kappascope-checkpoint, found an HDF5 file without the root "
                     "attribute format: "
                     "weights of another program become a checkpoint by 'kappascope import'"),
        INTEGER("/", "version", 3, "version of a kappascope-checkpoint: expected 1 or 2, found 3"),
        STRING("/", "version", "1", "attribute version: expected an integer"),
        STRING("/", "format", "kappascope-other",
               "expected \"kappascope-checkpoint\", found \"kappascope-other\""),
        INTEGER("/", "format", 1, "attribute format: expected a string"),
        INTEGER("/critic", "ensemble", 0, "ensemble: expected at least 1, found 0"),
        INTEGER("/critic", "ensemble", 3,
                "/critic/00_batchnorm/scale: expected shape [3, 5], found [2, 5]"),
        STRING("/critic", "arch", "dense 3\nloss nonsense\n", "/critic: arch:2: "),
        STRING("/critic", "arch", ACTOR, "expected a description that ends in a loss"),
        STRING("/critic", "arch", LARGE,
               "/critic/01_dense/kernel: expected shape [2, 5, 65536], found [2, 5, 7]"),
        NO_ATTRIBUTE("/target", "arch", "/target: attribute arch: missing"),
        INTEGER("/", "env", 4, "attribute env: expected a string"),
        INTEGER("/optimizer", "step", -1, "step: expected at least 0"),
        NUMBER("/optimizer", "beta1", 1,
               "/optimizer: attribute beta1: expected at least 0 and below 1, found 1"),
        NUMBER("/optimizer", "beta2", -0.5,
               "/optimizer: attribute beta2: expected at least 0 and below 1, found -0.5"),
        NUMBER("/optimizer", "eps", INFINITY,
               "/optimizer: attribute eps: expected at least 0 and below inf, found inf"),
        STRING("/optimizer", "eps", "small", "/optimizer: attribute eps: expected a number"),
    };

    REFUSES(make_full(), edits);
}

TEST_CLEAN(test_numbers)
{
    static const struct edit edits[] = {
        ELEMENT("/critic/04_dense/kernel", 90, NAN,
                "/critic/04_dense/kernel: expected finite numbers, found nan at element 90"),
        ELEMENT("/batch/input", 1, INFINITY, "/batch/input: expected finite"),
        ELEMENT("/batch/target", 0, -INFINITY, "/batch/target: expected finite"),
        ELEMENT("/critic/00_batchnorm/mean", 2, NAN, "/critic/00_batchnorm/mean: expected finite"),
        ELEMENT("/critic/00_batchnorm/var", 2, -1, "/critic/00_batchnorm/var: expected variances"),
        ELEMENT("/optimizer/v/01_dense/kernel", 2, -1e-9,
                "/optimizer/v: expected means of squares"),
        /* row 13 / 3 = 4 is row 0 of minibatch 1 */
        ELEMENT("/batch/target", 13, -1e-9, "row 0 of minibatch 1: expected probabilities"),
        ELEMENT("/batch/target", 35, 2, "row 3 of minibatch 2: expected the sum 1 within 0.001"),
        ELEMENT("/batch/target_raw", 14, NAN,
                "/batch/target_raw: expected finite numbers, found nan at element 14"),
        ELEMENT("/batch/target_raw", 14, -1e-9,
                "/batch/target_raw: row 0 of minibatch 1: expected probabilities, found -1e-09"),
        ELEMENT("/batch/target_raw", 35, 2,
                "/batch/target_raw: row 3 of minibatch 2: expected the sum 1 within 0.001"),
    };

    REFUSES(make_full(), edits);
}

/* Weights of rows need version 2. */
TEST_CLEAN(test_weights)
{
    static const char W[] = "/batch/weight";
    static const struct edit edits[] = {
        ELEMENT(W, LOSS_ROWS + 1, -0.5,
                "/batch/weight: row 1 of minibatch 1: expected a weight of at least 0, found -0.5"),
        ELEMENT(W, LOSS_ROWS + 1, NAN,
                "/batch/weight: expected finite numbers, found nan at element 5"),
        INTEGER("/", "version", 1,
                "/batch/weight: expected the attribute version 2 of a file with weights, found 1"),
        INTEGER("/", "version", 3, "version of a kappascope-checkpoint: expected 1 or 2, found 3"),
        REALS(W, "/batch/weight: expected shape [3, 4], found [3, 5]", 3, 5),
    };
    struct ks_checkpoint *c = make_plain(CE);

    assert_ok(ks_alloc(MINIBATCHES * LOSS_ROWS, sizeof(double), &c->weight));
    REFUSES(c, edits);
}

/* --- the shapes in /batch --- */

TEST_CLEAN(test_batch)
{
    static const char X[] = "/batch/input", T[] = "/batch/target", RAW[] = "/batch/target_raw";
    static const struct edit edits[] = {
        REALS(T, "/batch/target: expected shape [3, 4, 3], found [3, 4]", 3, 4),
        REALS(T,
              "/batch/target: expected [N, B, T], or [N, B, E, T] with the targets of each critic, "
              "where "
              "N = 3 minibatches, B = 1 to 6 rows, E = 2 critics and T = 3 targets of a row, found "
              "[4]",
              4),
        REALS(T, "E = 2 critics and T = 3 targets of a row, found [3, 4, 3, 3]", 3, 4, 3, 3),
        REALS(T, "/batch/target: expected at most 4 dimensions, found 5", 3, 4, 2, 3, 1),
        REALS(T, "/batch/target: expected 1 to 6 rows", 3, 7, 3),
        REALS(T, "/batch/target: expected 1 to 6 rows", 3, 0, 3),
        REALS(X, "/batch/input: expected at least one", 3, 0, 5),
        REALS(X, "/batch/input: expected at most 1073741824 rows", 1, 1ULL << 33, 5),
        REALS(X, "/batch/input: expected 3 dimensions [N, R, D], found [3, 4]", 3, 4),
        REALS(X, "expected 3 dimensions [N, R, D], found [1, 1, 1, 1]", 1, 1, 1, 1),
        REALS(X, "/critic/00_batchnorm/scale: expected shape [2, 6], found [2, 5]", 3, 6, 6),
        REALS(X, "/batch/target: expected shape [4, 4, 3], found [3, 4, 3]", 4, 6, 5),
        REALS(RAW, "/batch/target_raw: expected shape [3, 4, 3], found [3, 4]", 3, 4),
        REALS(RAW, "/batch/target_raw: expected [N, B, T], or [N, B, E, T]", 4),
        REALS(RAW, "/batch/target_raw: expected 1 to 6 rows", 3, 7, 3),
        REALS(RAW, "/batch/target_raw: expected 1 to 6 rows", 3, 0, 3),
        REALS(RAW, "/batch/target_raw: expected 4 rows per minibatch, as many as /batch/target has",
              3, 3, 3),
    };
    static const struct edit one_target[] = {
        REALS(T, "/batch/target: expected shape [3, 4, 1], found [3, 4, 2]", 3, 4, 2),
        REALS(T,
              "/batch/target: expected [N, B, T] or [N, B], or [N, B, E, T] with the targets of "
              "each critic, where N = 3 minibatches, B = 1 to 6 rows, E = 2 critics and T = 1 "
              "targets of a row, found [3, 4, 3, 1]",
              3, 4, 3, 1)};

    REFUSES(make_full(), edits);
    REFUSES(make_plain(MSE), one_target);
}

/* A sum that deviates from 1 by less than 1e-3 counts as rounding and is not corrected. */
TEST_CLEAN(test_target_sums)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *c = make_plain(CE), *read;
    const double t = c->target[4];

    c->target[4] = t + 0.9e-3;
    assert_ok(ks_checkpoint_write(path, c, false));
    read = read_checkpoint(path);
    assert_true(read->target[4] == t + 0.9e-3);
    c->target[4] = t + 1.1e-3;
    assert_ok(ks_checkpoint_write(path, c, false));
    assert_fails(try_checkpoint(path, &read), KS_FORMAT, "expected the sum 1");
}

/* Targets of other losses need not be distributions. Both datasets of targets may omit the
 * dimension T = 1. */
TEST_CLEAN(test_other_targets)
{
    static const char *const critics[] = {"dense 3\nloss quantile\n", MSE,
                                          "dense 1\nloss quantile kappa=0.5\n",
                                          "dense 1\nloss huber\n"};
    const struct stored flat = {.rank = 2, .dims = {MINIBATCHES, LOSS_ROWS}};
    const char *path = scratch("a.h5");

    for (size_t i = 0; i < sizeof critics / sizeof *critics; i++) {
        struct ks_checkpoint *c = make_plain(critics[i]), *read;
        struct ks_rng rng = ks_rng_start(7, 2);

        assert_int_equal(c->critic.arch->loss.targets, i == 0 ? 3 : 1);
        c->target[0] = -7, c->target[5] = 9;
        c->target_raw = make_targets(&rng, c->critic.arch->loss.targets);
        assert_ok(ks_checkpoint_write(path, c, false));
        read = read_checkpoint(path);
        same_checkpoint(read, c, false);
        if (i == 0)
            continue; /* test_batch refuses [N, B] */
        replace(path, "/batch/target", H5T_IEEE_F64LE, &flat);
        replace(path, "/batch/target_raw", H5T_IEEE_F64LE, &flat);
        read = read_checkpoint(path);
        assert_int_equal(read->loss_rows, LOSS_ROWS);
        assert_true(read->target_raw[MINIBATCHES * LOSS_ROWS - 1] == 0);
    }
}

/* --- what may not be there: objects and attributes that nothing reads --- */

TEST_CLEAN(test_unknown)
{
    static const struct edit edits[] = {
        REALS("/critic/00_dense/bias",
              "a.h5: /critic/00_dense/bias: unknown object: expected only kernel, by the desc",
              ENSEMBLE, 4),
        GROUP("/critic/01_layernorm",
              "a.h5: /critic/01_layernorm: unknown object: expected groups of the description's"),
        GROUP("/critic/01_relu", "a.h5: /critic/01_relu: unknown object"),
        GROUP("/critic/2_dense", "a.h5: /critic/2_dense: unknown object"),
        REALS("/batch/targets",
              "a.h5: /batch/targets: unknown object: expected only input, target, target_raw", 1),
        NUMBER("/critic", "eps", 0,
               "a.h5: /critic: unknown attribute eps: expected only arch, ensemble"),
        NUMBER("/critic/00_dense", "bias", 0, "a.h5: /critic/00_dense: unknown attribute bias"),
        NUMBER("/batch", "gamma", 0, "a.h5: /batch: unknown attribute gamma"),
        {.make = group,
         .words =
             "a.h5: /optimizer: unknown attribute betas: expected only step, beta1, beta2, eps",
         .object = "/optimizer",
         .name = "betas"},
    };

    REFUSES(make_plain("dense 4 bias=no\nrelu\ndense 1\nloss mse\n"), edits);
}

/* Integers in place of real numbers. */
TEST_CLEAN(test_integers)
{
    static const char WORDS[] = "expected real numbers (float32 or float64), found integers";
    static const struct edit edits[] = {
        INTEGERS("/critic/00_dense/kernel", WORDS, ENSEMBLE, IN, 4),
        INTEGERS("/critic/00_dense/bias", WORDS, ENSEMBLE, 4),
        INTEGERS("/batch/input", WORDS, MINIBATCHES, ROWS, IN),
        INTEGERS("/batch/target", WORDS, MINIBATCHES, LOSS_ROWS, 1),
        INTEGERS("/batch/target_raw", WORDS, MINIBATCHES, LOSS_ROWS, 1),
        INTEGERS("/batch/output", WORDS, MINIBATCHES, LOSS_ROWS, ENSEMBLE, 1),
        INTEGERS("/batch/loss", WORDS, MINIBATCHES),
        INTEGERS("/batch/gradient_norm", WORDS, 1),
    };

    REFUSES(make_plain("dense 4\nrelu\ndense 1\nloss mse\n"), edits);
}

TEST_CLEAN(test_reference_shapes)
{
    static const char F[] = "/batch/output",
                      WORDS[] = "/batch/output: expected [N, B, E, K] or [N, R, E, K] with N = 3 "
                                "minibatches (or 1: the first), B = 4, R = 6 rows, E = 2 critics "
                                "and K = 1 outputs, found [";
    static const struct edit edits[] = {
        REALS(F, WORDS, 3, 4, 2),
        REALS(F, WORDS, 2, 4, 2, 1),
        REALS(F, WORDS, 3, 5, 2, 1),
        REALS(F, WORDS, 3, 4, 3, 1),
        REALS(F, WORDS, 3, 4, 2, 2),
        REALS("/batch/loss",
              "/batch/loss: expected [N] with N = 3 minibatches (or 1: the first), found [2]", 2),
        REALS("/batch/gradient_norm",
              "/batch/gradient_norm: expected [N] with N = 3 minibatches (or 1: the first), found "
              "[3, "
              "2]",
              3, 2),
    };

    REFUSES(make_plain(MSE), edits);
}

/* Unknown objects and attributes elsewhere than under /critic and /batch are ignored. */
TEST_CLEAN(test_foreign)
{
    const char *path = scratch("a.h5");
    struct ks_checkpoint *written = make_full(), *read;

    assert_ok(ks_checkpoint_write(path, written, false));
    group(path, &(struct edit){.object = "/target/00_unknown"});
    group(path, &(struct edit){.object = "/unknown"});
    set_integer(path, "/", "unknown", 5);
    set_string(path, "/critic", "arch", CE);
    set_integer(path, "/", "env_step", 50);
    written->attributes.list[2].integer = 50;
    read = read_checkpoint(path);
    same_checkpoint(read, written, false);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
