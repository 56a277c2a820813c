/* kappascope-inspect: what it prints of each kind of file, and refusals. */
#include "example.h"
#include "programs.h"

#include "inspect/inspect.h"

/* Runs the program; no line is longer than it promises, and nothing in it can reach a terminal. */
static int inspect(const char *arguments)
{
    int status = run_program("kappascope-inspect", arguments);
    size_t length = 0;

    for (const char *c = printed; *c; c++) {
        length = *c == '\n' ? 0 : length + 1;
        assert_true(length <= KS_DOCUMENT_WIDTH);
        assert_true(*c == '\n' || (unsigned char)*c >= ' ');
    }
    return status;
}

/* The rest of the line that starts with `words`, in one of two buffers. */
static const char *line_of(const char *words)
{
    static char lines[2][256];
    static int turn;
    char *line = lines[turn++ % 2];
    const char *at = strstr(printed, words);

    if (!at)
        fail_msg("'%s' is not in '%s'", words, printed);
    snprintf(line, sizeof lines[0], "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

/* Dead units of critic number `critic` in the first layer that has some, in the first minibatches.
 */
static size_t count_dead(struct ks_checkpoint *c, size_t minibatches, size_t critic)
{
    KS_CLEARED_BY(ks_dead_units_clear) struct ks_dead_units units;
    const size_t all = c->minibatches;

    c->minibatches = minibatches;
    assert_ok(ks_dead_units_count(c, &units));
    assert_int_equal(units.minibatches, minibatches);
    assert_int_equal(units.n, 1);
    c->minibatches = all;
    return units.layer[0].dead[critic];
}

TEST(test_checkpoint)
{
    struct ks_checkpoint *c = make_full();
    double norm[ENSEMBLE] = {0}, found[ENSEMBLE];
    const struct KS(layer) *l = &c->critic.arch->layer[1];
    size_t null = 0;

    for (size_t e = 0; e < ENSEMBLE; e++)
        for (size_t i = 0; i < l->parameters; i++)
            norm[e] += pow(c->critic.w[e * c->critic.arch->parameters + l->offset + i], 2);
    write_one(scratch("full.h5"), c, false);
    assert_int_equal(inspect("full.h5"), 0);
    /* layernorm reads this dense: the same vector added to all its columns is a null direction. */
    assert_int_equal(sscanf(line_of("01 dense"), "01 dense kernel [%*u, 7] 35 %zu %lf %lf", &null,
                            &found[0], &found[1]),
                     3);
    assert_int_equal(null, IN);
    for (size_t e = 0; e < ENSEMBLE; e++)
        assert_close(found[e] / sqrt(norm[e]), 1, 1e-3);
    assert_shows("ce, 3 outputs, atoms from -5 to 5");
    assert_shows("6, of which 4 enter the loss");
    assert_shows("12345678901 steps, beta1 0.8");
    assert_shows("from raw rewards");
    assert_contains(line_of("/batch/output"), "absent");
    assert_shows("Nothing in this file shows");
    assert_contains(line_of("  env "), "dog-trot");
}

/* A reference result that is present is said to be. */
TEST(test_references)
{
    const char *path = scratch("references.h5");

    write_one(path, make_plain(MSE), false);
    replace(path, "/batch/loss", H5T_IEEE_F32LE, &(struct stored){1, {MINIBATCHES}, NULL, 0});
    assert_int_equal(run_program("kappascope-inspect", "references.h5"), 0);
    assert_contains(line_of("/batch/loss"), "present, for 3 of 3 minibatches");
    assert_contains(line_of("/batch/output"), "absent");
    assert_null(strstr(printed, "Nothing in this file shows"));
}

/* Two units of the second critic are switched off by their biases, one of them in the first
 * minibatch only. */
TEST(test_dead_units)
{
    struct ks_checkpoint *c = make_plain(MSE);
    const size_t P = c->critic.arch->parameters, bias = (size_t)IN * 4;
    double *w = c->critic.w + P;

    for (size_t j = 0; j < 4; j++)
        c->critic.w[bias + j] = w[bias + j] = 1000;
    w[bias + 1] = -1000;
    for (size_t row = 0; row < ROWS;
         row++) { /* on in the second minibatch only: input 0 is large */
        c->input[row * IN] = 0;
        c->input[(ROWS + row) * IN] = 1e6;
    }
    w[2] = 1;
    w[bias + 2] = -1000;
    assert_int_equal(count_dead(c, 1, 0), 0);
    assert_int_equal(count_dead(c, 1, 1), 2);
    assert_int_equal(count_dead(c, 2, 1), 1);
    write_one(scratch("dead.h5"), c, false);
    assert_int_equal(inspect("dead.h5"), 0);
    assert_shows("  01 relu      4         0         1\n");
}

/* A frozen layer is marked; its numbers count in norms and in the forward pass. */
TEST(test_frozen)
{
    struct ks_checkpoint *c = make_plain("dense 4 trainable=no\nrelu\ndense 1\nloss mse\n");
    const size_t bias = (size_t)IN * 4;

    for (size_t j = 0; j < 4; j++)
        c->critic.frozen[bias + j] = -1e6;
    assert_int_equal(count_dead(c, 1, 0), 4);
    assert_true(count_dead(c, 1, 1) < 4);
    assert_ok(ks_alloc(MINIBATCHES * LOSS_ROWS, sizeof *c->weight, &c->weight));
    c->weight[1] = 2;
    write_one(scratch("frozen.h5"), c, false);
    assert_int_equal(inspect("frozen.h5"), 0);
    assert_contains(line_of("00 dense frozen"), "[5, 4]");
    assert_contains(line_of("bias    [4]"), "2e+06");
    assert_contains(line_of("weights of rows"), "from 0 to 2");
}

/* A line for the loss of each head; targets of each critic are named. */
TEST(test_heads)
{
    struct ks_checkpoint *c = make_plain(
        "dense 4\nrelu\nbranch {\ndense 1\nloss mse weight=0.5\n}\n"
        "branch {\ndense 3\nloss quantile\n}\n");
    size_t n = MINIBATCHES * ks_checkpoint_target_size(c);

    free(c->target);
    assert_ok(ks_alloc(ENSEMBLE * n, sizeof *c->target, &c->target));
    c->target[ENSEMBLE * n - 1] = 8;
    c->targets_differ = true;
    write_one(scratch("heads.h5"), c, false);
    assert_int_equal(inspect("heads.h5"), 0);
    assert_shows("mse, 1 output, weight 0.5");
    assert_shows("quantile, 3 outputs");
    assert_null(strstr(printed, "heads, "));
    assert_contains(line_of("targets of each critic"), "from 0 to 8");
}

/* Passes of a batchrenorm read the running statistics: a mean far above the batch's kills units. */
TEST(test_running_statistics)
{
    struct ks_checkpoint *c = make_plain(
        "dense 4\nbatchrenorm dmax=1e6\nrelu\ndense 1\nloss mse\n");

    for (size_t j = 0; j < 4; j++) {
        c->critic.w[IN * 4 + 4 + j] = 1;
        c->critic.state[j] = 1e3;
    }
    assert_int_equal(count_dead(c, 1, 0), 4);
    assert_true(count_dead(c, 1, 1) < 4);
}

TEST(test_spectrum)
{
    write_one(scratch("c.h5"), make_plain(CE), false);
    assert_runs("--start gradient --complement --order 20 c.h5");
    assert_int_equal(inspect("c.spectrum.h5"), 0);
    assert_contains(line_of("  operator"), "hessian");
    assert_shows("20, from a random vector\n");
    assert_shows("20, from a random vector in the complement");
    assert_shows("20, from the gradient");
    assert_contains(line_of("  kappa_effective_bound"), "at least");
    assert_true(strstr(printed, "kappa_effective_bound") < strstr(printed, "  kappa  "));
    assert_non_null(strchr(line_of("  directions_1e2"), '['));
    assert_shows("Certificates\n  vector");
    assert_shows("\nClaim\n  On these 3 minibatches");
}

/* A file of Lanczos steps, as older versions wrote. */
TEST(test_basis)
{
    write_bytes(scratch("c.probe0.basis"), "kappascope-basis and more", 25);
    assert_int_equal(inspect("c.probe0.basis"), 2);
    assert_complains("c.probe0.basis: expected a checkpoint, spectrum or vector");
    assert_true(strchr(complained, '\n') == complained + strlen(complained) - 1);
}

TEST(test_vectors)
{
    const double vectors[] = {3, 0, -4, 1, 1, 1};

    assert_ok(ks_vectors_write(scratch("v.h5"), &(struct ks_vectors){2, 3, vectors, NULL, NULL}));
    assert_int_equal(inspect("v.h5"), 0);
    assert_contains(line_of("  vectors"), "2 of 3 numbers");
    assert_shows("       0        5            4      1\n");
}

TEST(test_architecture)
{
    write_bytes(scratch("mine.arch"), CE, strlen(CE));
    assert_int_equal(inspect("--inputs 5 mine.arch"), 0);
    assert_contains(line_of("01 dense"), "[5, 7]");
    assert_contains(line_of("  parameters"), "146");
    assert_int_equal(inspect("mine.arch"), 0);
    assert_shows("not known without the input's width");
    write_bytes(scratch("bad.arch"), "dense 4\nrelu\n", 13);
    assert_int_equal(inspect("bad.arch"), 2);
    assert_complains("bad.arch:");
    assert_complains("--inputs D");
}

TEST(test_study)
{
    static const char STUDY[] = "[study]\nenv = walker-run\narchitectures = bn+ce\nseeds = 0..2\n"
                                "steps = 10000\n";

    write_bytes(scratch("mine.study"), STUDY, strlen(STUDY));
    assert_int_equal(inspect("mine.study"), 0);
    assert_contains(line_of("  architectures"), "bn+ce");
    assert_contains(line_of("  folder"), "none");
    write_bytes(scratch("study.study"), STUDY, strlen(STUDY));
    assert_int_equal(inspect("."), 0);
    assert_shows("walker-run/bn+ce/seed2");
    assert_shows("3 runs: 0 of");
    remove(scratch("study.study"));
}

static void refuses(const char *arguments, const char *words)
{
    assert_int_equal(inspect(arguments), 2);
    assert_string_equal(printed, "");
    assert_int_equal(strncmp(complained, "kappascope-inspect: ", 20), 0);
    assert_ptr_equal(strchr(complained, '\n'), complained + strlen(complained) - 1);
    if (!strstr(complained, words))
        fail_msg("'%s' is not in '%s'", words, complained);
}

/* --- overlaps --- */

enum { OF = 3, LONG = 4 }; /* vectors; their numbers */

static void write_eigenvectors(const char *name, const double *values, const char *parameters)
{
    const double value[OF] = {3, 2, 1};
    const struct ks_vectors_table tables[] = {{"/eigenvalue", 0, value}, {NULL, 0, NULL}};
    KS_CLEARED_BY(ks_attributes_clear) struct ks_attributes list = {.n = 0};

    ks_attribute_add_string(&list, "parameters", parameters);
    ks_attribute_add_string(&list, "operator", "hessian");
    assert_ok(
        ks_vectors_write(scratch(name), &(struct ks_vectors){OF, LONG, values, &list, tables}));
}

/* By hand: u_1 = v_1 turned by an angle whose squared cosine is 0.36 towards v_3, u_2 = v_2, u_3 =
 * the rest of the plane of v_1 and v_3. The spaces of one: 0.36; of two: (0.36 + 1)/2; of three:
 * the same. Scaled vectors and a component along an earlier vector change no space. */
TEST(test_overlap)
{
    const double a[] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0},
                 b[] = {0.6, 0, 0.8, 0, 0, 1, 0, 0, -0.8, 0, 0.6, 0},
                 c[] = {3, 0, 4, 0, 3, 7, 4, 0, -4, 1, 3, 0},
                 d[] = {0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0},
                 e[] = {1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0};

    write_eigenvectors("a.h5", a, "00_dense/kernel [4, 1]");
    write_eigenvectors("b.h5", b, "00_dense/kernel [4, 1]");
    write_eigenvectors("c.h5", c, "00_dense/kernel [4, 1]");
    write_eigenvectors("d.h5", d, "00_dense/kernel [4, 1]");
    assert_int_equal(inspect("a.h5 --against b.h5"), 0);
    assert_shows("  1  0.360000           3        3\n"
                 "  2  0.680000           2        2\n"
                 "  3  1.000000           1        1\n");
    assert_shows("k/4 on average for random ones");
    assert_int_equal(inspect("b.h5 --against a.h5"), 0);
    assert_shows("  2  0.680000 ");
    assert_int_equal(inspect("a.h5 --against c.h5"), 0);
    assert_shows("  1  0.360000 ");
    assert_shows("  2  0.680000 ");
    assert_int_equal(inspect("--json a.h5 --against d.h5"), 0);
    assert_shows("\"dimension\":4,\"overlap\":[0.0,0.5,0.66666666666666");
    write_eigenvectors("e.h5", e, "00_dense/kernel [4, 1]");
    refuses("a.h5 --against e.h5", "e.h5: expected linearly independent vectors, found vector 2");
    write_eigenvectors("e.h5", a, "00_dense/kernel [2, 2]");
    refuses("a.h5 --against e.h5",
            "same parameters as a.h5 has, 00_dense/kernel [4, 1]; found 00_dense/kernel [2, 2]");
    assert_ok(ks_vectors_write(scratch("e.h5"), &(struct ks_vectors){3, 4, a, NULL, NULL}));
    refuses("a.h5 --against e.h5", "e.h5: expected eigenvectors, as analyze --eigenvectors writes");
    refuses("e.h5 --against a.h5", "e.h5: expected eigenvectors");
    refuses("--json a.h5", "--json: expected with --against FILE");
    refuses("a.h5 --against none.h5", "none.h5: ");
}

TEST(test_refusals)
{
    size_t size;
    unsigned char *bytes;

    write_one(scratch("c.h5"), make_plain(MSE), false);
    refuses("", "expected one file, found 0");
    refuses("nowhere.h5", "nowhere.h5: ");
    refuses(".", "found no study.study");
    refuses("--inputs 3 c.h5", "--inputs: expected an architecture file");
    refuses("--inputs 3 .", "--inputs: expected an architecture file");
    refuses("--inputs x mine.arch", "expected an integer from 1");
    write_bytes(scratch("weights.safetensors"), "12345678", 8);
    refuses("weights.safetensors", "expected a checkpoint, spectrum or vector file");
    bytes = read_bytes(scratch("c.h5"), &size);
    write_bytes(scratch("cut.h5"), bytes, size / 2);
    refuses("cut.h5", "cut.h5: ");
    set_string(scratch("c.h5"), "/", "format", "other\033[2J");
    refuses("c.h5", "found 'other\\x1b[2J'");
}

/* Control characters of a file never reach the terminal. */
TEST(test_escaping)
{
    write_one(scratch("e.h5"), make_plain(MSE), false);
    set_string(scratch("e.h5"), "/", "env", "x\033[31m\ny");
    assert_int_equal(inspect("e.h5"), 0);
    assert_shows("x\\x1b[31m\\x0ay");
}

/* A long string of a file is cut, visibly, so that its line is not too long (inspect() checks it);
 * no character is cut in two. */
TEST(test_long_strings)
{
    char text[400] = "";

    for (size_t i = 0; i < 100; i++)
        strcat(text, i % 2 ? "\033" : "\xc3\xa9");
    write_one(scratch("l.h5"), make_plain(MSE), false);
    set_string(scratch("l.h5"), "/", "env", text);
    assert_int_equal(run_program("kappascope-inspect", "l.h5"), 0);
    assert_contains(line_of("  env "), "\xc3\xa9\\x1b\xc3\xa9");
    assert_true(strlen(line_of("  env ")) <= KS_DOCUMENT_WIDTH);
    assert_string_equal(strstr(line_of("  env "), "..."), "...");
    assert_null(strstr(line_of("  env "), "\xc3."));
}

/* Containers have no number, and each head its own line for the loss. */
TEST(test_containers)
{
    static const char TEXT[] =
        "dense 4\nresidual {\ndense 4\nrelu\n}\nbranch {\ndense 1\nloss mse\n}\n"
        "branch {\ndense 2\nloss ce min=0 max=1\n}\n";

    write_bytes(scratch("containers.arch"), TEXT, strlen(TEXT));
    assert_int_equal(inspect("containers.arch"), 0);
    assert_contains(line_of("  layers"), " 5");
    assert_shows("mse, 1 output\n");
    assert_shows("ce, 2 outputs, atoms from 0 to 1\n");
    assert_null(strstr(printed, "heads"));
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
