/* Studies of runs that were trained elsewhere, from folders with small checkpoints to the report.
 */
#include "critics.h"
#include "programs.h"

#include "core/process.h"
#include "results/results.h"
#include "study/elsewhere.h"
#include "study/graph.h"

enum { IN = 3, ROWS = 8, STEPS = 3 };
static const size_t step_of[STEPS] = {100, 200, 300};

#define MSE     "dense 4\nrelu\ndense 1\nloss mse\n"
#define CE      "dense 4\nrelu\ndense 3\nloss ce min=-1 max=1\n"
#define MINIMAL "[study]\ntrained = elsewhere\n[analyze]\norder = 8\n"

/* What differs between the checkpoints of the tests. */
struct sort {
    const char *network, *minibatches; /* NULL: MSE, "fixed" */
    size_t n, rows;                    /* 0: 2 minibatches of ROWS rows */
    double gamma, reward_scale;        /* 0: 0.99; not said             */
};

static const char *run_path(const char *name, size_t seed, const char *file)
{
    return text_of("s/runs/toy/%s/seed%zu/%s", name, seed, file);
}

static void write_checkpoint(const char *name, size_t seed, size_t step, const struct sort *sort)
{
    const char *path = run_path(name, seed, text_of("step_%09zu.h5", step));
    const struct critic_sizes sizes = {2, IN, sort->n ? sort->n : 2, sort->rows ? sort->rows : ROWS,
                                       sort->rows ? sort->rows : ROWS};
    struct ks_checkpoint *c = random_critic(sort->network ? sort->network : MSE, sizes,
                                            1000 * seed + step + (size_t)*name);

    assert_ok(ks_attribute_add_integer(&c->attributes, "env_step", (int64_t)step));
    assert_ok(ks_attribute_add_integer(&c->attributes, "seed", (int64_t)seed));
    assert_ok(
        ks_attribute_add_number(&c->attributes, "gamma", sort->gamma > 0 ? sort->gamma : 0.99));
    if (sort->reward_scale > 0)
        assert_ok(ks_attribute_add_number(&c->attributes, "reward_scale", sort->reward_scale));
    assert_ok(ks_attribute_add_string(&c->attributes, "minibatches",
                                      sort->minibatches ? sort->minibatches : "fixed"));
    write_text(path, ""); /* creates its folder */
    assert_ok(ks_checkpoint_write(scratch(path), c, false));
    ks_checkpoint_free(c);
}

static void write_returns(const char *name, size_t seed, const char *text)
{
    write_text(run_path(name, seed, "returns.csv"), text);
}

static void write_run(const char *name, size_t seed, const struct sort *sort, int last)
{
    for (size_t k = 0; k < STEPS; k++)
        write_checkpoint(name, seed, step_of[k], sort);
    write_returns(name, seed, text_of("env_step,return,note\n100,1,a\n200,2,b\n300,%d,c\n", last));
}

/* Two names with two seeds each; the last returns are 10, 20 and 30, 40. */
static void write_two(void)
{
    const struct sort same = {0};

    for (size_t i = 0; i < 2; i++) {
        write_run("a", i, &same, 10 + 10 * (int)i);
        write_run("b", i, &same, 30 + 10 * (int)i);
    }
}

static void set_study(const char *text)
{
    write_text("s/study.study", text);
}

static struct ks_study *read_study(void)
{
    struct ks_study *s = NULL;

    assert_ok(ks_study_read(scratch("s/study.study"), false, &s));
    return s;
}

static void study_refuses(const char *words)
{
    struct ks_study *s = NULL;

    assert_fails(ks_study_read(scratch("s/study.study"), true, &s), KS_FORMAT, words);
    assert_null(s);
}

static size_t count_warnings(const struct ks_study *s, const char *words)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_warnings; i++) {
        assert_null(strchr(s->warning[i], '\n'));
        n += strstr(s->warning[i], words) != NULL;
    }
    return n;
}

/* --- what the folders say --- */

TEST_IN_FOLDER(test_folders_are_found)
{
    const struct sort same = {0};
    struct ks_study *s;

    write_two();
    write_checkpoint("b", 10, 400, &same);
    write_text("s/runs/toy/.tmp/seed0/returns.csv", "");
    write_text("s/runs/toy/notes/plan.txt", "");
    write_text("s/runs/toy/a/seed01/returns.csv", "");
    write_text(run_path("a", 0, "step_000000200.h5.part"), "");
    write_text(run_path("a", 0, "step_5.h5"), "");
    set_study(MINIMAL);
    s = read_study();
    assert_string_equal(s->env, "toy");
    assert_int_equal(s->n_architectures, 2);
    assert_string_equal(s->architecture[0].name, "a");
    assert_true(s->architecture[1].elsewhere);
    assert_int_equal(s->n_seeds, 3);
    assert_int_equal(s->seed[2], 10);
    assert_int_equal(s->n_checkpoints, 4);
    assert_int_equal(s->n_evaluations, 3);
    assert_int_equal(s->end, 400);
    assert_true(ks_study_has_run(s, 1, 2));
    assert_false(ks_study_has_run(s, 0, 2));
    assert_true(ks_study_has_checkpoint(s, (struct ks_study_place){1, 2, 3}));
    assert_false(ks_study_has_checkpoint(s, (struct ks_study_place){1, 0, 3}));
    assert_int_equal(ks_study_last_checkpoint(s, 0), 2);
    assert_false(ks_study_trains(s));
    assert_int_equal(count_warnings(s, "b/seed10/returns.csv: missing"), 1);
    ks_study_free(s);
    set_study("[study]\ntrained = elsewhere\nelsewhere = b\nseeds = 0 1\nsteps = 200\n[analyze]\n");
    s = read_study();
    assert_int_equal(s->n_architectures, 1);
    assert_int_equal(s->n_seeds, 2);
    assert_int_equal(s->n_checkpoints, 2);
    assert_int_equal(s->end, 200);
    ks_study_free(s);
}

TEST_IN_FOLDER(test_refused_studies)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"trained = there\n", "study.study:2: trained: expected here or elsewhere, found 'there'"},
        {"trained = elsewhere\narchitectures = bn+ce\n", "nothing is trained here"},
        {"trained = elsewhere\n[train]\nutd = 2\n", ":4: [train]: nothing is trained here"},
        {"trained = elsewhere\nelsewhere = c\n", "elsewhere: 'c': expected folders "},
        {"trained = elsewhere\nelsewhere = a a\n", "'a' is given twice"},
        {"trained = elsewhere\nfamily = a c\n",
         ":3: family: expected names of the study, found 'c'"},
        {"trained = elsewhere\nfamily = a | a\n", ":3: family: 'a' is given twice"},
        {"trained = elsewhere\nfactors a = bn up\n",
         ":3: factors: expected bn, ln or dense, wn, ce or mse, found 'up'"},
        {"trained = elsewhere\nfactors a = bn ln\n", ":3: factors: 'ln' contradicts"},
        {"trained = elsewhere\nfactors c = bn\n", ":3: factors: expected names of the study"},
        {"trained = elsewhere\nfactors a = bn\nfactors a = ln\n", "is given twice"},
        {"trained = elsewhere\nfactors a = bn\nfactors b = bn mse\n",
         ":4: factors: 'a' has the same"},
        {"trained = elsewhere\nenv = none\n", "found none"},
    };

    write_two();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_study(text_of("[study]\n%s", cases[i].text));
        study_refuses(cases[i].words);
    }
    write_text("s/runs/other/a/seed0/returns.csv", "");
    set_study(MINIMAL);
    study_refuses("the runs are of several tasks, 'other' and 'toy': expected env in [study]");
    write_text("t/study.study", MINIMAL);
    assert_int_equal(run_here("kappascope-study", scratch("t")), 2);
    assert_said("expected runs from elsewhere in ", 1);
}

TEST_IN_FOLDER(test_names_in_groups)
{
    struct ks_study *s;

    write_two();
    set_study("[study]\ntrained = elsewhere\nfamily = b|a\nfactors a = wn bn ce\nfactors b =\n");
    s = read_study();
    assert_int_equal(s->architecture[0].family, 2);
    assert_int_equal(s->architecture[1].family, 1);
    assert_string_equal(s->architecture[0].normalization, "bn");
    assert_true(s->architecture[0].weight_normalization);
    assert_string_equal(s->architecture[0].loss, "ce");
    assert_string_equal(s->architecture[1].normalization, "dense");
    assert_string_equal(s->architecture[1].loss, "mse");
    ks_study_free(s);
}

/* --- bad input: a line each, which names file and row --- */

TEST_IN_FOLDER(test_bad_returns)
{
    static const struct {
        const char *text, *words;
        bool left_out;
    } cases[] = {
        {"env_step,return\n100,1\n200,x\n300,3\n",
         "seed1/returns.csv:3: return: expected a finite number, found 'x': the row is left out",
         false},
        {"env_step,return\n100,nan\n200,2\n300,3\n",
         "seed1/returns.csv:2: return: expected a finite "
         "number, found 'nan'",
         false},
        {"env_step,return\nhello,1\n100,1\n200,2\n300,3\n",
         "seed1/returns.csv:2: env_step: expected an environment step, found 'hello'", false},
        {"env_step,return\n100,1\n200,2\n200,3\n300,3\n",
         "seed1/returns.csv:4: a second return at step 200 (the first one is in line 3)", false},
        {"env_step,return\n100,1\n300,3\n",
         "seed1/returns.csv:2: expected a return at step 200 after this row, which seed 0 has",
         false},
        {"env_step,return\n100,1\n300,3\n",
         "seed1/returns.csv:2: expected a return at step 200 after this row, where there is a "
         "checkpoint",
         false},
        {"env_step,return\n100,1\n200,2\n300,inf\n",
         "seed1/returns.csv:4: the last return of the run is not usable", true},
        {"env_step,return\n100,1\n200,2\n",
         "a, seed 1: left out, as its returns end at step 200, those of another seed at step 300",
         true},
        {"env_step,score\n100,1\n", "seed1/returns.csv: expected a column 'return', found none",
         true},
        {"env_step,return\n100,1\n200,2,3\n300,3\n",
         "seed1/returns.csv:3: expected 2 columns, found 3: the run has no returns", true},
        {"", "seed1/returns.csv: expected a header line, found nothing", true},
    };
    struct ks_results *r;

    write_two();
    set_study(MINIMAL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool warned = false;

        write_returns("a", 1, cases[i].text);
        assert_ok(ks_results_read(scratch("s"), NULL, &r));
        for (size_t k = 0; k < r->n_warnings; k++)
            warned = warned || strstr(r->warning[k], cases[i].words);
        if (!warned)
            fail_msg("no warning says '%s'", cases[i].words);
        assert_true(r->run[0].complete);
        assert_int_equal(r->run[1].complete, !cases[i].left_out);
        /* the curve has only what both seeds have */
        if (!cases[i].left_out)
            assert_int_equal(ks_results_has_return(r, 0, 0) + ks_results_has_return(r, 0, 1) +
                                 ks_results_has_return(r, 0, 2),
                             i == 2 ? 3 : 2);
        ks_results_free(r);
    }
    assert_int_equal(unlink(scratch(run_path("a", 1, "returns.csv"))), 0);
    assert_ok(ks_results_read(scratch("s"), NULL, &r));
    assert_false(r->run[1].complete);
    ks_results_free(r);
}

TEST_IN_FOLDER(test_bad_checkpoints)
{
    const struct sort same = {0}, ce = {.network = CE};
    struct ks_study *s;

    write_two();
    set_study(MINIMAL);
    write_checkpoint("a", 0, 200, &ce);
    s = read_study();
    assert_int_equal(count_warnings(s,
                                    "a/seed0/step_000000200.h5: /critic: expected the network of "
                                    "step_000000100.h5 (arch, ensemble), found another: this "
                                    "checkpoint is left out"),
                     1);
    assert_false(ks_study_has_checkpoint(s, (struct ks_study_place){0, 0, 1}));
    assert_true(ks_study_has_checkpoint(s, (struct ks_study_place){0, 0, 2}));
    ks_study_free(s);
    write_text(run_path("a", 0, "step_000000200.h5"), "text");
    s = read_study();
    assert_int_equal(count_warnings(s, "a/seed0/step_000000200.h5: "), 1);
    ks_study_free(s);
    write_checkpoint("a", 0, 250, &same);
    assert_int_equal(rename(scratch(run_path("a", 0, "step_000000250.h5")),
                            scratch(run_path("a", 0, "step_000000200.h5"))),
                     0);
    s = read_study();
    assert_int_equal(count_warnings(s, "step_000000200.h5: env_step: expected 200, found 250"), 1);
    ks_study_free(s);
    assert_int_equal(rename(scratch(run_path("a", 1, "step_000000200.h5")),
                            scratch(run_path("a", 0, "step_000000200.h5"))),
                     0);
    s = read_study();
    assert_int_equal(count_warnings(s, "step_000000200.h5: seed: expected 0, found 1"), 1);
    ks_study_free(s);
    write_checkpoint("a", 0, 200, &(struct sort){.minibatches = "some"});
    assert_int_equal(analyzer("s/runs/toy/a/seed0/step_000000200.h5"), 2);
    assert_complains("minibatches: expected fixed or fresh, found 'some'");
}

/* --- the program --- */

static void need_programs(void)
{
    char *gnuplot = NULL;
    bool drawn = ks_locate_program("gnuplot", &gnuplot) == KS_OK;

    free(gnuplot);
    if (!drawn || run_here("kappascope-analyze", "--version") != 0)
        skip();
}

static void study_says(const char *options, const char *words)
{
    const int status = run_here("kappascope-study", text_of("%s -j2 %s", scratch("s"), options));

    if (status != 0)
        fail_msg("the study failed: %s", file_text("said"));
    assert_said(words, 0);
}

static void spectrum_is_new(const char *name, bool expected)
{
    assert_int_equal(access(scratch(run_path(name, 0, "step_000000200.analyze.log")), F_OK) == 0,
                     expected);
}

static void forget_logs(void)
{
    assert_int_equal(system(text_of("find %s/s/runs -name '*.log' -exec rm {} +", scratch_folder)),
                     0);
}

/* Interrupted, extended and changed, a study makes again what it has to and nothing else. */
TEST_IN_FOLDER(test_from_folders_to_the_report)
{
    const struct sort same = {0};
    const struct ks_csv *csv;

    need_programs();
    write_two();
    set_study(MINIMAL);
    study_says("--status",
               "toy/a/seed0                               checkpoints  3/3  spectra  0/3  "
               "trained elsewhere\n");
    assert_said("4 runs: 12 of 12 checkpoints, 0 of 12 spectra\n", 0);
    study_says("--dry-run", "# to do: 0 of 0 trainings, 12 of 12 spectra\n");
    assert_said(" analyzed.study\n", 0);
    assert_false(exists("s/study.mk"));
    study_says("", "to do: 12 x analyze (0 of 12 jobs are done), 2 at a time\n");
    assert_true(exists("s/report.html"));
    assert_true(exists("s/figures/kappa_return.svg"));
    assert_true(exists("s/figures/spectra.svg"));
    assert_null(strstr(file_text("said"), "not resolved"));
    assert_null(strstr(file_text("said"), "of the paper's"));
    csv = read_csv("s/tables/kappa_return.csv");
    assert_int_equal(csv->rows, 2);
    check_row(csv, 0, "architecture=a return=15");
    check_row(csv, 1, "architecture=b return=35");
    assert_true(cell_number(csv, 0, "kappa") > 1);
    csv = read_csv("s/tables/conditions.csv");
    check_row(csv, 0,
              "trained=elsewhere group=1 differs=- minibatches=2 rows=8 order=8 "
              "operator=hessian discount=0.99 loss=mse minibatch_kind=fixed");
    forget_logs();
    study_says("", "drawing the plots");
    spectrum_is_new("a", false);
    write_checkpoint("a", 0, 200, &(struct sort){.reward_scale = 2});
    study_says("", "step_000000200.spectrum.h5: checkpoint_sha256: expected ");
    assert_said("a: its own spectra are not comparable: reward scale not said and 2", 0);
    spectrum_is_new("a", true);
    spectrum_is_new("b", false);
    /* a spectrum whose checkpoint is gone stays, and is not lost to other options */
    assert_int_equal(unlink(scratch(run_path("b", 1, "step_000000300.h5"))), 0);
    study_says("--status", "4 runs: 11 of 12 checkpoints, 12 of 12 spectra\n");
    set_study("[study]\ntrained = elsewhere\n[analyze]\norder = 7\n");
    assert_int_equal(run_here("kappascope-study", scratch("s")), 2);
    assert_said("b/seed1: step_000000300.spectrum.h5 has to be made, but its checkpoint "
                "step_000000300.h5 is gone\n",
                0);
    assert_true(exists(run_path("b", 1, "step_000000300.spectrum.h5")));
    set_study(MINIMAL);
    write_checkpoint("b", 1, 300, &same);
    write_checkpoint("a", 0, 200, &same);
    write_run("c", 0, &same, 50);
    forget_logs();
    set_study("[study]\ntrained = elsewhere\n[analyze]\norder = 9\n");
    study_says("--status", "the options of [analyze] have changed");
    study_says("", "to do: 15 x analyze (0 of 15 jobs are done)");
    spectrum_is_new("b", true);
    check_row(read_csv("s/tables/conditions.csv"), 0, "order=9");
    assert_int_equal(read_csv("s/tables/correlation.csv")->rows > 0, true);
    /* a name goes, with its folder */
    set_study("[study]\ntrained = elsewhere\nelsewhere = a b c\n[analyze]\norder = 9\n");
    study_says("", "drawing the plots");
    assert_int_equal(system(text_of("rm -r %s/s/runs/toy/c", scratch_folder)), 0);
    assert_int_equal(run_here("kappascope-study", scratch("s")), 2);
    assert_said("elsewhere: 'c': expected folders ", 1);
    set_study("[study]\ntrained = elsewhere\nelsewhere = a b\n[analyze]\norder = 9\n");
    study_says("", "drawing the plots");
    assert_int_equal(
        run_here("kappascope-study", text_of("%s --out %s", scratch("s"), scratch("elsewhere"))),
        2);
    assert_said("--out: expected ", 1);
}

/* Each difference puts the third name apart, names it, and ends the correlations. */
TEST_IN_FOLDER(test_incomparable)
{
    static const struct {
        struct sort sort;
        const char *words;
    } cases[] = {
        {{.n = 3}, "number of minibatches 3 against 2"},
        {{.rows = 6}, "rows of a minibatch 6 against 8"},
        {{.gamma = 0.5}, "discount 0.5 against 0.99"},
        {{.reward_scale = 2}, "reward scale 2 against not said"},
        {{.network = CE}, "loss ce against mse"},
        {{.minibatches = "fresh"}, "minibatches (fixed or fresh) fresh against fixed"},
    };
    const struct ks_csv *csv;

    need_programs();
    write_two();
    write_run("d", 0, &(struct sort){0}, 50);
    set_study(MINIMAL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_run("c", 0, &cases[i].sort, 50);
        study_says("", text_of("warning: c: not comparable with a: %s\n", cases[i].words));
        assert_said("correlations are not computed", 0);
        assert_int_equal(read_csv("s/tables/correlation.csv")->rows, 0);
        csv = read_csv("s/tables/conditions.csv");
        check_row(csv, 2, "architecture=c group=2");
        check_row(csv, 3, "architecture=d group=1");
        assert_non_null(strstr(file_text("s/figures/kappa_return.svg"), "apart: "));
        assert_null(strstr(file_text("said"), "Spearman"));
    }
    write_run("c", 0, &(struct sort){0}, 50);
    write_checkpoint("c", 0, 200, &(struct sort){.minibatches = "fresh"});
    study_says("", "c: not comparable with a: minibatches (fixed or fresh) fresh against fixed\n");
    write_run("c", 0, &(struct sort){.minibatches = "fresh"}, 50);
    /* a loss that the study names as a factor is part of its design */
    write_run("c", 0, &(struct sort){.network = CE}, 50);
    set_study("[study]\ntrained = elsewhere\nfactors a = dense\nfactors b = ln\nfactors c = dense "
              "ce\nfactors d = bn\n[analyze]\norder = 8\n");
    study_says("", "drawing the plots");
    assert_null(strstr(file_text("said"), "not comparable"));
    assert_null(strstr(file_text("said"), "cannot be judged"));
}

/* The paper's claims are judged by names that have its factors: here by all twelve. */
TEST_IN_FOLDER(test_factors)
{
    static const char *const norms[] = {"bn", "ln", "dense"};
    char text[2048] = "[study]\ntrained = elsewhere\n";
    const struct ks_csv *csv;

    need_programs();
    for (size_t k = 0; k < 12; k++) {
        write_run(text_of("n%zu", k), 0, &(struct sort){.network = k % 2 ? MSE : CE}, (int)k);
        snprintf(text + strlen(text), sizeof text - strlen(text), "factors n%zu = %s %s%s\n", k,
                 norms[k / 4], k / 2 % 2 ? "wn " : "", k % 2 ? "mse" : "ce");
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "[analyze]\norder = 8\n");
    set_study(text);
    study_says("", "claim of the paper");
    assert_null(strstr(file_text("said"), "not comparable"));
    csv = read_csv("s/tables/claims.csv");
    assert_true(csv->rows > 10);
    csv = read_csv("s/tables/kappa_return.csv");
    check_row(csv, 0, "architecture=n0 normalization=bn weight_normalization=0 loss=ce");
    assert_int_equal(csv->rows, 12);
}

/* Beside runs that are trained here. */
TEST_IN_FOLDER(test_mixed)
{
    const struct ks_csv *csv;
    struct ks_study *s;

    need_programs();
    if (run_here("kappascope-train", "--list") != 0)
        skip();
    set_study("[study]\nenv = cartpole-balance\narchitectures = bn+ce dense+mse\nelsewhere = mine\n"
              "seeds = 0\nsteps = 400\n"
              "[train]\nhidden = 16\ndepth = 1\nactor_hidden = 16\nactor_depth = 1\nbatch = 16\n"
              "random_steps = 50\nreplay = 1000\ncheckpoints = 2\nevaluations = 2\n"
              "eval_episodes = 1\nanalysis_minibatches = 2\nthreads = 1\n[analyze]\norder = 8\n");
    study_refuses("elsewhere: 'mine': expected folders ");
    write_run("mine", 0, &(struct sort){.rows = 16, .minibatches = "fresh"}, 5);
    write_checkpoint("mine", 0, 500, &(struct sort){.rows = 16, .minibatches = "fresh"});
    assert_int_equal(rename(scratch("s/runs/toy"), scratch("s/runs/cartpole-balance")), 0);
    s = read_study();
    assert_int_equal(s->n_architectures, 3);
    assert_int_equal(s->end, 400);
    assert_int_equal(s->n_checkpoints, 4); /* here at 100, 200, 400; mine also at 300 */
    assert_true(ks_study_has_checkpoint(s, (struct ks_study_place){0, 0, 3}));
    assert_false(ks_study_has_checkpoint(s, (struct ks_study_place){0, 0, 2}));
    assert_false(ks_study_has_checkpoint(s, (struct ks_study_place){2, 0, 3}));
    assert_int_equal(count_warnings(s, "mine/seed0: left out: 1 checkpoint after step 400"), 1);
    ks_study_free(s);
    study_says("--status", "checkpoints  3/3  spectra  0/3  trained elsewhere");
    study_says("", "to do: 2 x train, 9 x analyze (0 of 11 jobs are done)");
    assert_said("mine (elsewhere)", 0);
    assert_said("the returns at the end are at different steps, from 300 (mine, seed 0) to 400", 0);
    csv = read_csv("s/tables/kappa_return.csv");
    assert_int_equal(csv->rows, 3);
    check_row(csv, 2, "architecture=mine return=5");
    csv = read_csv("s/tables/conditions.csv");
    check_row(csv, 0, "architecture=bn+ce trained=here group=1 minibatch_kind=fresh");
    check_row(csv, 2, "architecture=mine trained=elsewhere minibatch_kind=fresh loss=mse rows=16");
    assert_non_null(strstr(file_text("s/report.html"), "trained elsewhere"));
    study_says("--status", "3 runs: 9 of 9 checkpoints, 9 of 9 spectra\n");
}
