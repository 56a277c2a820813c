/* Study files and their milestones. */
#include "staged.h"

#include "core/memory.h"
#include "core/milestones.h"
#include "study/study_parse.h"

/* --- milestones --- */

static void assert_steps(size_t n, const size_t *found, size_t expected_n, const size_t *expected)
{
    assert_int_equal(n, expected_n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(found[i], expected[i]);
}

TEST(test_checkpoint_steps)
{
    size_t step[32], n;

    n = ks_milestones(1000000, 20, 5000 * 2, 2, step); /* the paper's */
    assert_int_equal(n, 21);
    assert_int_equal(step[0], 10000);
    for (size_t k = 1; k <= 20; k++)
        assert_int_equal(step[k], 50000 * k);
    n = ks_milestones(1000, 3, 250 * 2, 2, step); /* 333.3 and 666.7, rounded up to even */
    assert_steps(n, step, 4, (const size_t[]){334, 500, 668, 1000});
    n = ks_milestones(1000, 2, 250 * 2, 2, step); /* the first update is at a checkpoint */
    assert_steps(n, step, 2, (const size_t[]){500, 1000});
    n = ks_milestones(7, 2, 1 * 2, 2, step); /* the end is rounded up, too */
    assert_steps(n, step, 3, (const size_t[]){2, 4, 8});
    n = ks_milestones(100, 1, 51 * 2, 2, step); /* no update at all */
    assert_steps(n, step, 1, (const size_t[]){100});
    n = ks_milestones(2, 5, 9 * 2, 2, step); /* more checkpoints than agent steps */
    assert_steps(n, step, 1, (const size_t[]){2});
}

TEST(test_evaluation_steps)
{
    char name[32];
    size_t step[32], n;

    n = ks_milestones(1000, 3, 0, 2, step);
    assert_steps(n, step, 4, (const size_t[]){0, 334, 668, 1000});
    n = ks_milestones(1000, 0, 0, 2, step);
    assert_steps(n, step, 1, (const size_t[]){0});
    ks_checkpoint_name(50000, name);
    assert_string_equal(name, "step_000050000.h5");
}

/* --- study files --- */

TEST_IN_FOLDER(test_study_is_read)
{
    struct ks_study *s = good_study(GOOD);
    KS_OWNED char *folder = NULL;

    assert_string_equal(s->name, "some");
    assert_string_equal(s->env, "walker-run");
    assert_int_equal(s->n_architectures, 2);
    assert_string_equal(s->architecture[0].normalization, "bn");
    assert_true(s->architecture[0].weight_normalization);
    assert_string_equal(s->architecture[0].loss, "ce");
    assert_string_equal(s->architecture[1].normalization, "dense");
    assert_false(s->architecture[1].weight_normalization);
    assert_string_equal(s->architecture[1].loss, "mse");
    assert_steps(s->n_seeds, s->seed, 3, (const size_t[]){3, 0, 1});
    assert_int_equal(s->steps, 1000);
    assert_true(s->drop_missing && !s->common_grid);
    assert_int_equal(s->n_train, 6);
    assert_string_equal(s->train[1].value, "100");
    assert_int_equal(s->n_analyses, 1);
    assert_string_equal(s->analysis[0].name, "standard");
    assert_int_equal(s->analysis[0].n, 3);
    assert_int_equal(s->first_update, 200);
    assert_steps(s->n_checkpoints, s->checkpoint, 4, (const size_t[]){200, 334, 668, 1000});
    assert_steps(s->n_evaluations, s->evaluation, 3, (const size_t[]){0, 500, 1000});
    assert_ok(ks_study_run_folder(s, 1, 0, &folder));
    assert_string_equal(folder, "runs/walker-run/dense+mse/seed3");
}

/* The milestones are those of `steps`, cut off at `stop`, which is rounded up to a whole agent
 * step. */
TEST_IN_FOLDER(test_stop)
{
    static const char head[] = "[study]\nenv = e\narchitectures = bn+ce\nseeds = 0\nsteps = 1000\n"
                               "stop = %d\n[train]\ncheckpoints = 3\nrandom_steps = 100\n"
                               "evaluations = 4\n";
    static const struct {
        int stop;
        size_t end, checkpoints, evaluations;
    } cases[] = {
        {200, 200, 1, 1}, {333, 334, 2, 2}, {500, 500, 2, 3}, {749, 750, 3, 4}, {1000, 1000, 4, 5}};
    struct ks_study *s = NULL;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s = good_study(text_of(head, cases[i].stop));
        assert_int_equal(s->end, cases[i].end);
        assert_steps(s->n_checkpoints, s->checkpoint, cases[i].checkpoints,
                     (const size_t[]){200, 334, 668, 1000});
        assert_steps(s->n_evaluations, s->evaluation, cases[i].evaluations,
                     (const size_t[]){0, 250, 500, 750, 1000});
    }
    assert_fails(study_of_text(text_of(head, 1001), &s), KS_FORMAT,
                 ":6: stop: expected at most 1000 (steps), found 1001");
    assert_fails(study_of_text(text_of(head, 198), &s), KS_FORMAT,
                 ":6: stop: expected at least 200 (the first checkpoint), found 198");
    assert_fails(study_of_text(text_of(head, 0), &s), KS_FORMAT,
                 ":6: stop: expected an integer from 1 to 1000000000000, found '0'");
}

/* Sections [analyze NAME] have their own options, may be empty, and inherit nothing from [analyze].
 */
TEST_IN_FOLDER(test_further_analyses)
{
    const struct ks_study_analysis *ggn;
    const struct ks_spectrum_options *a;
    struct ks_study *s = good_study(
        "[analyze ggn-2]\noperator = ggn\n[analyze]\norder = 7\nprecision = f64\n"
        "[analyze  all_defaults ] ; a comment\n"
        "[study]\nenv=e\narchitectures=bn+ce\nseeds=0\nsteps=9\n");

    assert_int_equal(s->n_analyses, 3);
    assert_string_equal(s->analysis[0].name, "standard");
    a = &s->analysis[0].options;
    assert_true(a->order == 7 && !a->products_f32 && strcmp(a->kind->name, "hessian") == 0);
    ggn = ks_study_find_analysis(s, "ggn-2");
    assert_ptr_equal(ggn, &s->analysis[1]);
    a = &ggn->options;
    assert_true(a->order == 90 && a->products_f32 && strcmp(a->kind->name, "ggn") == 0);
    assert_string_equal(s->analysis[2].name, "all_defaults");
    assert_int_equal(s->analysis[2].n, 0);
    assert_null(ks_study_find_analysis(s, "ggn"));
}

/* checkpoints = last and a list of architectures limit a further analysis. */
TEST_IN_FOLDER(test_scopes)
{
    struct ks_study *s = good_study(
        "[analyze some]\ncheckpoints = last\narchitectures = bn+ce,\n    mine\n"
        "operator = ggn\n[analyze every]\ncheckpoints = all\n"
        "[analyze later]\ncheckpoints = trained\n"
        "[study]\nenv=e\narchitectures=bn+ce ln+ce\nseeds=0\nsteps=100\n[train]\n"
        "random_steps=10\ncheckpoints=3\n[variant mine]\narchitecture=ln+ce\n");

    assert_int_equal(s->analysis[1].n, 1); /* `operator` alone goes to the analyzer */
    assert_int_equal(s->n_architectures, 3);
    for (size_t a = 0; a < 3; a++)
        for (size_t i = 0; i < s->n_checkpoints; i++) {
            assert_true(ks_study_asks(s, 0, a, i));
            assert_int_equal(ks_study_asks(s, 1, a, i), a != 1 && i == s->n_checkpoints - 1);
            assert_true(ks_study_asks(s, 2, a, i));
            assert_int_equal(ks_study_asks(s, 3, a, i), i > 0);
        }
}

/* [train] accepts every setting. */
TEST_IN_FOLDER(test_all_settings)
{
    struct ks_study *s;
    char text[4096] = "[study]\nenv=e\narchitectures=bn+ce\nseeds=0\nsteps=9\n[train]\n";
    size_t n = 0;

    for (const struct ks_key *key = ks_keys; key->name; key++, n++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s = %s\n", key->name,
                 key->type == KS_KEY_FLAG ? "1" : key->default_text);
    s = good_study(text);
    assert_int_equal(s->n_train, n);
    assert_true(s->settings.skip == 1 && s->settings.n_step == 1 && s->settings.utd == 2);
}

/* A byte order mark is no part of the text. */
TEST_IN_FOLDER(test_all_and_long_lists)
{
    struct ks_study *s = good_study(
        "\xEF\xBB\xBF[study]\nenv=dog-run\narchitectures = all\nseeds = 0\n  1\n  2\nsteps=9\n");

    assert_int_equal(s->n_architectures, 12);
    assert_int_equal(s->n_seeds, 3);
}

/* An architecture from a file is named by the file's name with its ending, so it differs from all
 * of the twelve; a link keeps its own name. */
TEST_IN_FOLDER(test_architecture_of_a_file)
{
    struct ks_study *s;

    write_text("nets/bn+ce.arch", "dense 4\nrelu\ndense 1\nloss mse\n");
    assert_int_equal(symlink("bn+ce.arch", scratch("nets/link.arch.arch")), 0);
    s = good_study("[study]\nenv=e\narchitectures=nets/bn+ce.arch nets/link.arch.arch bn+ce\n"
                   "seeds=0\nsteps=9\n");
    assert_string_equal(s->architecture[0].name, "bn+ce.arch");
    assert_string_equal(s->architecture[0].argument, scratch("nets/bn+ce.arch"));
    assert_string_equal(s->architecture[0].loss, "other");
    assert_string_equal(s->architecture[1].name, "link.arch.arch");
    assert_string_equal(s->architecture[1].argument, scratch("nets/link.arch.arch"));
    assert_string_equal(s->architecture[2].name, "bn+ce");
    assert_string_equal(s->architecture[2].loss, "ce");
}

/* Text after a newline would be a command of the makefile. */
TEST_IN_FOLDER(test_control_characters)
{
    struct ks_study *s = NULL;

    write_text("a\n\ttouch pwned\n/mine.arch", "dense 4\nrelu\ndense 1\nloss mse\n");
    assert_int_equal(symlink(scratch("a\n\ttouch pwned\n"), scratch("nets")), 0);
    assert_fails(study_of_text("[study]\narchitectures = nets/mine.arch\n", &s), KS_USAGE,
                 ":2: architectures: expected no control characters, found '");
    assert_contains(ks_error_text(), "/a\\x0a\\x09touch pwned\\x0a/mine.arch'");
    assert_fails(study_of_text("[study]\narchitectures = \033[31m/mine.arch\n", &s), KS_USAGE,
                 "\\x1b[31m/mine.arch'");
    assert_null(s);
}

/* Messages name the line. */
TEST_IN_FOLDER(test_wrong_studies)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"[studdy]\n",
         ":1: expected [study], [train], [variant NAME] or [analyze], found '[studdy]'"},
        {"env = x\n", ":1: 'env' is outside"},
        {"[study]\nenv = x\nenvs = y\n", ":3: unknown option 'envs' for [study]"},
        {"[study]\nenv = x\nenv = y\n", ":3: 'env' is given twice"},
        {"[study]\nenv = a b\n",
         ":2: env: expected the name of a task or of a .so file, found 'a b'"},
        {"[study]\nenv = some.task\n",
         ":2: env: expected the name of a task or of a .so file, found 'some.task'"},
        {"[study]\nenv = x\n\narchitectures = bn+ce gn+ce\n",
         ":4: architectures: unknown architecture 'gn+ce'"},
        {"[study]\narchitectures = bn+ce all\n", ":2: architectures: 'bn+ce' is given twice"},
        {"[study]\narchitectures = none.arch\n", ":2: architectures: none.arch: does not exist"},
        {"[study]\narchitectures = ../..\n", ":2: architectures: unknown architecture '../..'"},
        {"[study]\nseeds = 0 1 x\n",
         ":2: seeds: expected an integer from 0 to 1000000000, found 'x'"},
        {"[study]\nseeds = 3..1\n", ":2: seeds: expected an integer from 3"},
        {"[study]\nseeds = 0..2 1\n", ":2: seeds: 1 is given twice"},
        {"[study]\nseeds = 0..999\n", ":2: seeds: more than 256"},
        {"[study]\nseeds = -1\n", "found '-1'"},
        {"[study]\nsteps = 1.5\n", ":2: steps: expected an integer"},
        {"[study]\nsteps = 0\n", ":2: steps: expected"},
        {"[study]\nsteps = 1000000000001\n",
         ":2: steps: expected an integer from 1 to 1000000000000"},
        {"[study]\nsteps = nan\n", ":2: steps: expected"},
        {"[study]\ngrid = some\n", ":2: grid: expected all or common, found 'some'"},
        {"[study]\ngrid = all\nenv = x\ngrid = all\n", ":4: 'grid' is given twice"},
        {"[study]\nmissing = drop\n  grid = all\n", ":3: 'missing' is given twice (an indented"},
        {"[study]\nmissing\n", ":2: expected a section, KEY = VALUE or a comment"},
        {"[train]\nbatches = 1\n", ":2: "},
        {"[train]\nbatch = 0\n", ":2: batch: expected an integer from 2 to 65536, found '0'"},
        {"[train]\nskip = 2\n", ":2: skip: expected yes or no (1 or 0), found '2'"},
        {"[train]\nutd = 2\nn_step = 0\n", ":3: n_step: expected an integer from 1 to 100"},
        {"[train]\nutd = 1\nutd = 1\n", ":3: 'utd' is given twice"},
        {"[analyze]\norders = 1\n", ":2: unknown option 'orders' for [analyze]"},
        {"[analyze]\norder = 0\n", ":2: --order: expected"},
        {"[analyze]\norder =\n", ":2: order: expected a value"},
        {"[analyze]\nexact = perhaps\n",
         ":2: --exact: expected yes or no (1 or 0), found 'perhaps'"},
        {"[analyze]\njson = yes\n", ":2: unknown option 'json' for [analyze]"},
        {"[analyze]\ngradient = x.h5\n", ":2: unknown option 'gradient' for [analyze]"},
        {"[analyze]\nprecision = f16\n", ":2: --precision: expected"},
        {"[analyze]\nname = x\n", ":2: unknown option 'name' for [analyze]"},
        {"[analyze]\nlayers = yes\n", ":2: unknown option 'layers' for [analyze]"},
        {"[analyze a b]\n",
         ":1: [analyze NAME]: expected a name of 1 to 32 letters, digits, - and _, "
         "found 'a b'"},
        {"[analyze .x]\n", ":1: [analyze NAME]: expected a name"},
        {"[analyze 123456789012345678901234567890123]\n", ":1: [analyze NAME]: expected a name"},
        {"[analyze ]\n", ":1: [analyze NAME]: expected a name"},
        {"[analyze x\n", ":1: [analyze NAME]: expected a name"},
        {"[analyze standard]\n", ":1: [analyze standard]: this is the name of the section"},
        {"[analyze x]\n[analyze y]\n[analyze x]\n",
         ":3: [analyze x]: a section of this name exists"},
        {"[analyze x]\norders = 1\n", ":2: unknown option 'orders' for [analyze]"},
        {"[analyze x]\norder = 2\norder = 2\n", ":3: 'order' is given twice"},
        {"[analyze]\ncheckpoints = last\n", ":2: checkpoints: [analyze] is of every checkpoint"},
        {"[analyze]\narchitectures = bn+ce\n", ":2: architectures: [analyze] is of every"},
        {"[analyze x]\ncheckpoints = 1\n",
         ":2: checkpoints: expected all, trained or last, found '1'"},
        {"[analyze x]\ncheckpoints = last\ncheckpoints = last\n",
         ":3: 'checkpoints' is given twice"},
        {"[analyze x]\narchitectures = a\narchitectures = b\n",
         ":3: 'architectures' is given twice"},
        {"[analyze x]\narchitectures = bn+ce, bn\n[study]\nenv=e\narchitectures=bn+ce\nseeds=0\n"
         "steps=9\n",
         ":2: architectures: expected architectures of the study, found 'bn'"},
        {"[analyze x]\ncompat = xqc\n[study]\n[analyze y]\nprecision = f64\ncompat = xqc\n",
         ":6: --compat xqc: expected --precision f32"},
        {"[study]\nenv = x\narchitectures = bn+ce\nseeds = 0\n", ": [study]: 'steps' is missing"},
        {"", ": [study]: 'env' is missing"},
    };
    struct ks_study *s = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ks_status status = study_of_text(wrong[i].text, &s);

        if (status == KS_OK)
            fail_msg("accepted: %s", wrong[i].text);
        assert_int_equal(ks_exit_status(status), 2);
        assert_null(s);
        if (!strstr(ks_error_text(), wrong[i].words) || strchr(ks_error_text(), '\n'))
            fail_msg("'%s' does not contain '%s'", ks_error_text(), wrong[i].words);
    }
    assert_fails(ks_study_read(scratch("none.study"), KS_STUDY_RUN, &s), KS_IO, "none.study");
}

/* Options that fit no critic of the study are refused before anything is trained. */
TEST_IN_FOLDER(test_options_that_do_not_fit)
{
    static const char head[] =
        "[study]\nenv = x\narchitectures = bn+wn+ce %s\nseeds = 0\nsteps = 9\n"
        "[analyze]\nscale = 1\n%s\n[train]\nanalysis_minibatches = 2\n";
    static const struct {
        const char *architecture, *line, *words; /* NULL: it fits */
    } cases[] = {
        {"", "batches = 3", ":8: --batches: expected at most 2 (analysis_minibatches), found 3"},
        {"", "critic = 2", ":8: --critic: expected 0 to 1, found 2"},
        {"", "layer = 99", ":8: bn+wn+ce: --layer: expected 0 to 13, found 99"},
        {"", "layer = 3",
         ":8: bn+wn+ce: --layer: expected a layer with parameters, found layer 3, a relu"},
        {"tiny.arch", "layer = 10", ":8: tiny.arch: --layer: expected 0 to 2, found 10"},
        {"tiny.arch", "array = 0/scale",
         ":8: tiny.arch: --array: expected some of 00_dense/kernel, 00_dense/bias, "},
        {"bn+ce", "operator = manifold", ":8: bn+ce: --operator: manifold needs a projected"},
        {"", "operator = preconditioned",
         ":8: --operator: preconditioned is not defined at the checkpoint of step"},
        {"", "exact = yes", ":8: bn+wn+ce: --exact: expected at most 8000 parameters, found 19"},
        {"broken.arch", "", "broken.arch:2: "},
        {"tiny.arch", "batches = 2\ncritic = 1\narray = 2/bias, 0/bias", NULL},
        {"", "operator = manifold", NULL},
        {"", "[analyze adam]\noperator = preconditioned\ncheckpoints = trained", NULL},
    };
    write_text("tiny.arch", "dense 4\nrelu\ndense 1\nloss mse\n");
    write_text("broken.arch", "dense 4\nrellu\ndense 1\nloss mse\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_study *s = good_study(text_of(head, cases[i].architecture, cases[i].line));

        if (cases[i].words)
            assert_fails(ks_study_check(s, 223, 38), KS_FORMAT, cases[i].words);
        else
            assert_ok(ks_study_check(s, 223, 38));
    }
}

TEST_IN_FOLDER(test_long_line_is_refused)
{
    static char text[4000] = "[study]\narchitectures = ";
    struct ks_study *s = NULL;

    for (size_t n = strlen(text); n + 1 < sizeof text; n++)
        text[n] = ' ';
    assert_fails(study_of_text(text, &s), KS_FORMAT, ":2: expected a line of");
}

TEST_IN_FOLDER(test_reading_without_memory)
{
    KS_OWNED_BY(ks_study_free) struct ks_study *s = NULL;
    struct starved turn = {0};

    write_text("some.study", GOOD);
    while (starving(&turn)) {
        turn.status = ks_study_read(scratch("some.study"), KS_STUDY_RUN, &s);
        assert_true(turn.status == KS_OK || !s);
    }
}

/* Options of one study do not affect the next one. */
TEST_IN_FOLDER(test_options_are_forgotten)
{
    struct ks_study *s = NULL;

    assert_fails(study_of_text("[analyze]\nprecision = f64\ncompat = xqc\n", &s), KS_USAGE, ":3: ");
    assert_fails(study_of_text("[analyze]\ncompat = xqc\n", &s), KS_FORMAT, "is missing");
}

TEST(test_shipped_studies)
{
    static const struct {
        const char *name;
        size_t architectures; /* the twelve, and SimBa-V2 */
    } shipped[] = {{"quick", 12}, {"dog", 12},        {"small", 12},  {"exact", 12},
                   {"trot", 13},  {"trot-small", 13}, {"dogtrot", 13}};

    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        KS_OWNED_BY(ks_study_free) struct ks_study *s = NULL;
        KS_OWNED char *path = NULL;

        assert_ok(ks_study_find(shipped[i].name, &path));
        assert_ok(ks_study_read(path, KS_STUDY_RUN, &s));
        assert_int_equal(s->n_architectures, shipped[i].architectures);
    }
}

/* A file or folder in the working directory does not hide a shipped study of that name; by another
 * name, or by its path, it is used. */
TEST_IN_FOLDER(test_names_of_studies)
{
    static const struct {
        const char *argument, *end;
    } found[] = {{"quick", "/configs/quick.study"},
                 {"./quick", "./quick/study.study"},
                 {"mine", "mine"},
                 {"new.study", "new.study"}};
    char *path = NULL, *here = hold(getcwd(NULL, 0));

    assert_non_null(here);
    write_text("quick/study.study", "");
    write_text("mine", "");
    assert_int_equal(chdir(scratch_folder), 0);
    for (size_t i = 0; i < 4; i++) {
        size_t length = strlen(found[i].end);

        assert_ok(ks_study_find(found[i].argument, &path));
        assert_true(strlen(path) >= length);
        assert_string_equal(path + strlen(path) - length, found[i].end);
        free(path);
    }
    path = NULL;
    assert_fails(ks_study_find("no-such-study", &path), KS_USAGE, "no-such-study");
    assert_null(path);
    assert_int_equal(chdir(here), 0);
}
