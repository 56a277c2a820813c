/* Studies of runs that were trained elsewhere, from folders with small checkpoints to the report.
 */
#include "elsewhere_runs.h"
#include "gnuplots.h"
#include "programs.h"

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

TEST_IN_FOLDER(test_from_folders_to_the_report)
{
    const struct ks_csv *csv;

    need_gnuplot();
    write_two();
    write_study(MINIMAL);
    study_says("--status",
               "toy/a/seed0                               checkpoints  3/3  spectra  0/3  "
               "trained elsewhere, about ");
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
    check_row(read_csv("s/tables/checkpoints.csv"), 1, "architecture=a env_step=200 return_mean=2");
}

/* --- changed, a study makes again what it has to and nothing else --- */

/* A finished study of a and b. */
static void make_study(void)
{
    draw_nothing();
    write_two();
    write_study(MINIMAL);
    study_says("", "drawing the plots");
    forget_logs();
}

TEST_IN_FOLDER(test_changed_checkpoint)
{
    make_study();
    study_says("", "drawing the plots");
    spectrum_is_new("a", false);
    write_checkpoint("a", 0, 200, &(struct sort){.reward_scale = 2});
    study_says("", "step_000000200.spectrum.h5: checkpoint_sha256: expected ");
    assert_said("a: its own spectra are not comparable: reward scale not said and 2", 0);
    spectrum_is_new("a", true);
    spectrum_is_new("b", false);
}

/* A spectrum whose checkpoint is gone stays, and is not lost to other options. */
TEST_IN_FOLDER(test_lost_checkpoint)
{
    make_study();
    assert_int_equal(unlink(scratch(run_path("b", 1, "step_000000300.h5"))), 0);
    study_says("--status", "4 runs: 11 of 12 checkpoints, 12 of 12 spectra\n");
    write_study("[study]\ntrained = elsewhere\n[analyze]\norder = 7\n");
    assert_int_equal(run_here("kappascope-study", scratch("s")), 2);
    assert_said("b/seed1: step_000000300.spectrum.h5 has to be made, but its checkpoint "
                "step_000000300.h5 is gone\n",
                0);
    assert_true(exists(run_path("b", 1, "step_000000300.spectrum.h5")));
}

TEST_IN_FOLDER(test_changed_options)
{
    make_study();
    write_run("c", 0, &(struct sort){0}, 50);
    write_study("[study]\ntrained = elsewhere\n[analyze]\norder = 9\n");
    study_says("--status", "the options of [analyze] have changed");
    study_says("", "to do: 15 x analyze (0 of 15 jobs are done)");
    spectrum_is_new("b", true);
    check_row(read_csv("s/tables/conditions.csv"), 0, "order=9");
    assert_true(read_csv("s/tables/correlation.csv")->rows > 0);
}

/* A name goes with its folder, also where the study named it; so does a task. */
TEST_IN_FOLDER(test_names_that_go)
{
    make_study();
    write_run("c", 0, &(struct sort){0}, 50);
    write_study(MINIMAL_OF("elsewhere = a b c\n"));
    study_says("", "drawing the plots");
    assert_int_equal(system(text_of("rm -r %s/s/runs/toy/c", scratch_folder)), 0);
    assert_int_equal(run_here("kappascope-study", scratch("s")), 2);
    assert_said("elsewhere: 'c': expected folders ", 1);
    write_study(MINIMAL_OF("elsewhere = a b\n"));
    study_says("", "drawing the plots");
    assert_int_equal(rename(scratch("s/runs/toy"), scratch("s/runs/other")), 0);
    write_study(MINIMAL_OF("env = other\n"));
    study_says("", "drawing the plots");
    assert_int_equal(rename(scratch("s/runs/other"), scratch("s/runs/third")), 0);
    write_study(MINIMAL_OF("env = third\n"));
    study_says("", "drawing the plots");
    assert_int_equal(
        run_here("kappascope-study", text_of("%s --out %s", scratch("s"), scratch("elsewhere"))),
        2);
    assert_said("--out: expected ", 1);
}

/* A checkpoint that cannot be read is left out; the others are analyzed and drawn. */
TEST_IN_FOLDER(test_unreadable_checkpoint)
{
    const struct sort bad = {.minibatches = "some"};
    const struct ks_csv *csv;

    draw_nothing();
    write_two();
    write_study(MINIMAL);
    write_checkpoint("a", 0, 200, &bad);
    assert_int_equal(run_here("kappascope-study", text_of("%s -j1", scratch("s"))), 0);
    assert_non_null(strstr(file_text("said"), "found 'some': this checkpoint is left out"));
    assert_true(exists(run_path("b", 1, "step_000000300.spectrum.h5")));
    assert_true(exists("s/figures/kappa_return.svg"));
    csv = read_csv("s/tables/kappa_return.csv");
    check_row(csv, 0, "architecture=a return=20"); /* of the complete seed */
    assert_true(cell_number(csv, 0, "kappa") > 1);
}

/* Only rows that have a return are drawn, in the order of their steps. */
TEST_IN_FOLDER(test_norms)
{
    const struct ks_csv *csv;

    draw_nothing();
    write_two();
    write_study(MINIMAL);
    for (size_t i = 0; i < 2; i++)
        write_return_table("b", i,
                           "env_step,return,critic_param_norm\n300,30,3\n100,1,1\n"
                           "250.5,2,9\n250,nan,8\n150,1,7\n150,2,7\n200,2,2\n");
    study_says("", "b/seed0/returns.csv:4: env_step: expected an environment step, found '250.5'");
    csv = read_csv("s/tables/norms.csv");
    assert_int_equal(csv->rows, 3);
    check_row(csv, 0, "architecture=b env_step=100 param_norm=1");
    check_row(csv, 1, "architecture=b env_step=200 param_norm=2");
    check_row(csv, 2, "architecture=b env_step=300 param_norm=3");
}

/* [analyze] takes two minibatches, the further analysis all of them. */
#define TWO_OF_ALL                                                                                 \
    "[study]\ntrained = elsewhere\n[analyze]\norder = 8\nbatches = 2\n[analyze all]\norder = 8\n"

/* Each difference puts the third name apart, names it, and ends the correlations. */
TEST_IN_FOLDER(test_incomparable)
{
    static const struct {
        struct sort sort;
        const char *words, *study; /* NULL: MINIMAL */
    } cases[] = {
        {{.n = 3}, "number of minibatches 3 against 2 in [analyze all]", TWO_OF_ALL},
        {{.n = 3}, "number of minibatches 3 against 2", NULL},
        {{.rows = 6}, "rows of a minibatch 6 against 8", NULL},
        {{.gamma = 0.5}, "discount 0.5 against 0.99", NULL},
        {{.reward_scale = 2}, "reward scale 2 against not said", NULL},
        {{.network = CE}, "loss ce against mse", NULL},
        {{.network = HUBER}, "loss huber delta=2 against mse", NULL},
        {{.minibatches = "fresh"}, "minibatches (fixed or fresh) fresh against fixed", NULL},
    };
    const struct ks_csv *csv;

    draw_svg_alone("");
    write_two();
    write_run("d", 0, &(struct sort){0}, 50);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_run("c", 0, &cases[i].sort, 50);
        write_study(cases[i].study ? cases[i].study : MINIMAL);
        study_says("", text_of("warning: c: not comparable with a: %s\n", cases[i].words));
        assert_said("correlations are not computed", 0);
        assert_int_equal(read_csv("s/tables/correlation.csv")->rows, 0);
        csv = read_csv("s/tables/conditions.csv");
        check_row(csv, 2, "architecture=c group=2");
        check_row(csv, 3, "architecture=d group=1");
        if (i == 0)
            assert_non_null(strstr(file_text("s/figures/kappa_return.svg"), "apart: "));
        draw_nothing();
        assert_null(strstr(file_text("said"), "Spearman"));
    }
    write_run("c", 0, &(struct sort){0}, 50);
    write_checkpoint("c", 0, 200, &(struct sort){.minibatches = "fresh"});
    study_says("", "c: not comparable with a: minibatches (fixed or fresh) fresh against fixed\n");
    write_run("c", 0, &(struct sort){.minibatches = "fresh"}, 50);
    /* a loss that the study names as a factor is part of its design */
    write_run("c", 0, &(struct sort){.network = CE}, 50);
    write_study(
        "[study]\ntrained = elsewhere\nfactors a = dense\nfactors b = ln\nfactors c = dense "
        "ce\nfactors d = bn\n[analyze]\norder = 8\n");
    study_says("", "drawing the plots");
    assert_null(strstr(file_text("said"), "not comparable"));
    assert_null(strstr(file_text("said"), "cannot be judged"));
    /* a lacks the analysis in which b differs from the larger group */
    write_run("b", 0, &(struct sort){.n = 3}, 30);
    write_run("b", 1, &(struct sort){.n = 3}, 40);
    write_run("c", 0, &(struct sort){0}, 50);
    write_run("e", 0, &(struct sort){0}, 60);
    write_study(TWO_OF_ALL "architectures = b c d e\n");
    study_says("", "warning: b: not comparable with a: number of minibatches 3 in [analyze all]\n");
    csv = read_csv("s/tables/conditions.csv");
    check_row(csv, 0, "architecture=a group=1");
    check_row(csv, 1, "architecture=b group=2");
    check_row(csv, 2, "architecture=c group=1");
}

/* The coordinates that Adam moves are not the parameters: their number may change within a name. */
TEST_IN_FOLDER(test_preconditioned)
{
    const struct sort adam = {.has_adam = true};
    static const char *const names[] = {"a", "b", "c"};
    const struct ks_csv *csv;

    draw_nothing();
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < 2; i++)
            write_run(names[k], i, &adam, 10 * (int)k + (int)i);
    write_study(MINIMAL "[analyze adam]\noperator = preconditioned\norder = 8\n");
    study_says("", "drawing the plots");
    assert_null(strstr(file_text("said"), "comparable"));
    csv = read_csv("s/tables/conditions.csv");
    for (size_t k = 0; k < 3; k++)
        check_row(csv, k, "group=1 differs=-");
    assert_true(read_csv("s/tables/correlation.csv")->rows > 0);
}

/* However many values there are, all of them are named, and compared. */
TEST_IN_FOLDER(test_many_values)
{
    draw_nothing();
    write_study(MINIMAL);
    for (size_t i = 0; i < 12; i++) {
        write_checkpoint("a", i / 3, 100 + 100 * (i % 3),
                         &(struct sort){.gamma = 0.9 + 0.00123456789 * (double)i});
        write_return_table("a", i / 3, "env_step,return\n100,1\n200,2\n300,3\n");
    }
    study_says("", "discount 0.9 and 0.9012345679 and ");
    assert_said(" and 0.9123456789 and 0.9135802468\n", 0);
}

/* What only its seeds differ in puts a name apart, too: then it pools a mixture. */
TEST_IN_FOLDER(test_incomparable_seeds)
{
    static const struct {
        struct sort sort; /* of the second seed */
        const char *words;
    } cases[] = {
        {{.minibatches = "fresh"}, "minibatches (fixed or fresh) fixed and fresh"},
        {{.network = "dense 5\nrelu\ndense 1\nloss mse\n"}, "number of parameters 42 and 52"},
        {{.network = HUBER}, "loss mse and huber delta=2"},
    };
    const struct ks_csv *csv;

    draw_nothing();
    write_two();
    write_study(MINIMAL);
    write_run("c", 0, &(struct sort){0}, 50);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_run("c", 1, &cases[i].sort, 50);
        study_says("",
                   text_of("warning: c: its own spectra are not comparable: %s\n", cases[i].words));
        csv = read_csv("s/tables/conditions.csv");
        check_row(csv, 1, "architecture=b group=1");
        check_row(csv, 2, "architecture=c group=2");
        assert_int_equal(read_csv("s/tables/correlation.csv")->rows, 0);
    }
    /* without any spectra, there is nothing to compare */
    assert_int_equal(system(text_of("rm -r %s/s/runs/toy/c", scratch_folder)), 0);
    write_run("A", 0, &(struct sort){0}, 50);
    assert_int_equal(run_here("kappascope-plot", scratch("s")), 0);
    assert_null(strstr(file_text("said"), "comparable"));
    csv = read_csv("s/tables/conditions.csv");
    check_row(csv, 0, "architecture=A group=- differs=-");
    check_row(csv, 1, "architecture=a group=1");
    assert_non_null(strstr(file_text("s/tables/conditions.csv"), "A,elsewhere,-,-,not said,"));
    assert_true(read_csv("s/tables/correlation.csv")->rows > 0);
}

/* The paper's claims are judged by names that have its factors: here by all twelve. */
TEST_IN_FOLDER(test_factors)
{
    static const char *const norms[] = {"bn", "ln", "dense"};
    char text[2048] = "[study]\ntrained = elsewhere\n";
    const struct ks_csv *csv;
    size_t claims;

    draw_nothing();
    for (size_t k = 0; k < 12; k++) {
        write_run(text_of("n%zu", k), 0, &(struct sort){.network = k % 2 ? MSE : CE}, (int)k);
        snprintf(text + strlen(text), sizeof text - strlen(text), "factors n%zu = %s %s%s\n", k,
                 norms[k / 4], k / 2 % 2 ? "wn " : "", k % 2 ? "mse" : "ce");
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "[analyze]\norder = 8\n");
    write_study(text);
    study_says("", "claim of the paper");
    assert_null(strstr(file_text("said"), "not comparable"));
    claims = read_csv("s/tables/claims.csv")->rows;
    assert_true(claims > 10);
    csv = read_csv("s/tables/kappa_return.csv");
    check_row(csv, 0, "architecture=n0 normalization=bn weight_normalization=0 loss=ce");
    assert_int_equal(csv->rows, 12);
    /* factors that the spectra contradict do not count */
    write_run("n0", 0, &(struct sort){.network = MSE}, 0);
    study_says("", "warning: n0: its factors are not used: they say ce, the loss of its spectra is "
                   "mse\n");
    assert_null(strstr(file_text("said"), "not comparable"));
    assert_true(read_csv("s/tables/claims.csv")->rows < claims);
    csv = read_csv("s/tables/kappa_return.csv");
    check_row(csv, 11, "architecture=n0 normalization=other weight_normalization=0 loss=other");
}

/* Beside runs that are trained here. */
TEST_IN_FOLDER(test_mixed)
{
    const struct ks_csv *csv;
    struct ks_study *s;

    draw_nothing();
    write_study(
        "[study]\nenv = cartpole-balance\narchitectures = bn+ce dense+mse\nelsewhere = mine\n"
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
