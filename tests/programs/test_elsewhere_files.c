/* What the files of runs from elsewhere say, and what is wrong with them. */
#include "damaged.h"
#include "elsewhere_runs.h"
#include "gnuplots.h"
#include "programs.h"

#include "results/results.h"

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
    write_study(MINIMAL);
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
    write_study(
        "[study]\ntrained = elsewhere\nelsewhere = b\nseeds = 0 1\nsteps = 200\n[analyze]\n");
    s = read_study();
    assert_int_equal(s->n_architectures, 1);
    assert_int_equal(s->n_seeds, 2);
    assert_int_equal(s->n_checkpoints, 2);
    assert_int_equal(s->end, 200);
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
        write_study(text_of("[study]\n%s", cases[i].text));
        study_refuses(cases[i].words);
    }
    write_text("s/runs/other/a/seed0/returns.csv", "");
    write_study(MINIMAL);
    study_refuses("the runs are of several tasks, 'other' and 'toy': expected env in [study]");
    write_text("t/study.study", MINIMAL);
    assert_int_equal(run_here("kappascope-study", scratch("t")), 2);
    assert_said("expected runs from elsewhere in ", 1);
}

TEST_IN_FOLDER(test_names_in_groups)
{
    struct ks_study *s;

    write_two();
    write_study("[study]\ntrained = elsewhere\nfamily = b|a\nfactors a = wn bn ce\nfactors b =\n");
    s = read_study();
    assert_int_equal(s->architecture[0].family, 2);
    assert_int_equal(s->architecture[1].family, 1);
    assert_string_equal(s->architecture[0].normalization, "bn");
    assert_true(s->architecture[0].weight_normalization);
    assert_string_equal(s->architecture[0].loss, "ce");
    assert_string_equal(s->architecture[1].normalization, "dense");
    assert_string_equal(s->architecture[1].loss, "mse");
}

/* What resembles a run or a checkpoint but has another name is warned about, in one line a folder;
 * other files are nobody's business. */
TEST_IN_FOLDER(test_other_names)
{
    static const char *const quiet[] = {
        "notes/plan.txt",
        "a/videos/0.mp4",
        "a/seeds.txt",
        "a/returns.csv",
        "a/.seed5/returns.csv",
        "a/seed0/.step_5.h5",
        "a/seed0/model.h5",
        "a/seed0/critic.zip",
        "a/seed0/step_000000200.h5.part",
        "a/seed0/step_000000200.analyze.log",
        "a/seed0/step_000000200.xqc.spectrum.h5",
        "a/seed0/events.out.tfevents.1",
        "a/seed0/logs/step_5.h5",
    };
    static const char *const odd[] = {
        "a/seed01/log",
        "a/run2/step_000000100.h5",
        "a/Seed2/returns.csv",
        "c/step_000000100.h5",
        "b/seed0/step_5.h5",
        "b/seed7/plan.txt",
        "b/seed1/step_000000400.hdf5",
    };
    static const char *const words[] = {
        "a/Seed2: left out: expected runs in folders seed0, seed1, ...; likewise 2 further",
        "c/step_000000100.h5: left out: expected runs in folders seed0, seed1, ...",
        "b/seed0/step_5.h5: left out: expected step_NNNNNNNNN.h5",
        "b/seed1/step_000000400.hdf5: left out: expected step_NNNNNNNNN.h5",
        "b/seed7: left out: it has no checkpoint",
        "/d: left out: the link leads to no folder",
        "a/seed0/step_10.h5: left out: expected step_NNNNNNNNN.h5; likewise 999 further",
    };
    enum { ODD = sizeof words / sizeof *words };
    struct ks_study *s;

    write_two();
    write_study(MINIMAL);
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
        write_text(text_of("s/runs/toy/%s", quiet[i]), "");
    s = read_study();
    if (s->warnings.n > 0)
        fail_msg("a warning: %s", s->warnings.text[0]);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        write_text(text_of("s/runs/toy/%s", odd[i]), "");
    for (size_t i = 0; i < 1000; i++)
        write_text(run_path("a", 0, text_of("step_%zu.h5", 10 + i)), "");
    assert_int_equal(symlink("nowhere", scratch("s/runs/toy/d")), 0);
    s = read_study();
    for (size_t i = 0; i < ODD; i++)
        if (count_warnings(s, words[i]) != 1)
            fail_msg("no warning says '%s'", words[i]);
    assert_int_equal(s->warnings.n, ODD);
    write_study("[study]\ntrained = elsewhere\nelsewhere = b\nseeds = 0 1 3 4 5\n[analyze]\n");
    s = read_study();
    assert_int_equal(count_warnings(s,
                                    "b/seed3: expected a folder, as `seeds` of the study has it, "
                                    "found none; likewise 2 further"),
                     1);
    assert_int_equal(count_warnings(s, "b/seed7: left out: `seeds` of the study lacks it"), 1);
    /* nothing but what has other names */
    assert_int_equal(rename(scratch("s/runs/toy/c"), scratch("s/runs/c")), 0);
    write_study("[study]\ntrained = elsewhere\nenv = c\n[analyze]\n");
    write_text("s/runs/c/x/step_5.h5", "");
    study_refuses("seedS, found none: ");
}

static bool warns(const struct ks_results *r, const char *words)
{
    for (size_t k = 0; k < r->warnings.n; k++)
        if (strstr(r->warnings.text[k], words))
            return true;
    return false;
}

TEST_IN_FOLDER(test_unequal_runs)
{
    struct ks_results *r;

    write_two();
    write_run("c", 0, &(struct sort){0}, 50);
    write_study(MINIMAL);
    assert_ok(ks_results_read(scratch("s"), NULL, &r));
    assert_true(warns(r, "the architectures have unequal numbers of seeds, from 1 (c) to 2 (a)"));
    ks_results_free(r);
    write_study("[study]\ntrained = elsewhere\ngrid = common\n[analyze]\n");
    assert_ok(ks_results_read(scratch("s"), NULL, &r));
    assert_true(warns(r, "grid = common: only the steps that all runs of a name have"));
    ks_results_free(r);
}

/* --- bad input: a line each, which names file and row --- */

TEST_IN_FOLDER(test_bad_returns)
{
    static const struct {
        const char *text, *words;
        size_t steps; /* of the curve of both seeds; 0: the run is left out */
    } cases[] = {
        {"env_step,return\n100,1\n200,x\n300,3\n",
         "seed1/returns.csv:3: return: expected a finite number, found 'x': the row is left out",
         2},
        {"env_step,return\n100,nan\n200,2\n300,3\n",
         "seed1/returns.csv:2: return: expected a finite "
         "number, found 'nan'",
         2},
        {"env_step,return\nhello,1\n100,1\n200,2\n300,3\n",
         "seed1/returns.csv:2: env_step: expected an environment step, found 'hello'", 3},
        {"env_step,return\n100,1\n200,2\n200,3\n300,3\n",
         "seed1/returns.csv:4: a second return at step 200 (the first one is in line 3)", 2},
        {"env_step,return\n100,1\n300,3\n",
         "seed1/returns.csv:2: expected a return at step 200 after this row, which seed 0 has", 2},
        {"env_step,return\n100,1\n300,3\n",
         "seed1/returns.csv:2: expected a return at step 200 after this row, where there is a "
         "checkpoint",
         2},
        {"env_step,return\n100,1\n200,2\n300,inf\n",
         "seed1/returns.csv:4: the last return of the run is not usable", 0},
        {"env_step,return\n100,1\n200,2\n",
         "a, seed 1: left out, as its returns end at step 200, those of another seed at step 300",
         0},
        {"env_step,score\n100,1\n", "seed1/returns.csv: expected a column 'return', found none", 0},
        {"env_step,return\n100,1\n200,2,3\n300,3\n",
         "seed1/returns.csv:3: expected 2 columns, found 3: the run has no returns", 0},
        {"", "seed1/returns.csv: expected a header line, found nothing", 0},
        {"env_step,return\n100,1\n200,2\n300,3",
         "seed1/returns.csv:4: left out: this last line has no newline", 0},
        {"env_step,return,return\n100,1,2\n200,2,3\n300,3,4\n",
         "seed1/returns.csv: expected one column 'return', found 2: the run has no returns", 0},
        {"env_step,return\n100,1\n200,2\n250,x\n251,x\n252,x\n253,x\n254,x\n300,3\n",
         "seed1/returns.csv: 2 further rows are left out", 3},
    };
    struct ks_results *r;

    write_two();
    write_study(MINIMAL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_return_table("a", 1, cases[i].text);
        assert_ok(ks_results_read(scratch("s"), NULL, &r));
        if (!warns(r, cases[i].words))
            fail_msg("no warning says '%s'", cases[i].words);
        assert_true(r->run[0].complete);
        assert_int_equal(r->run[1].complete, cases[i].steps > 0);
        /* the curve has only what both seeds have */
        if (cases[i].steps > 0)
            assert_int_equal(ks_results_has_return(r, 0, 0) + ks_results_has_return(r, 0, 1) +
                                 ks_results_has_return(r, 0, 2),
                             cases[i].steps);
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
    write_study(MINIMAL);
    write_checkpoint("a", 0, 200, &ce);
    s = read_study();
    assert_int_equal(count_warnings(s,
                                    "a/seed0/step_000000200.h5: /critic: expected the network of "
                                    "step_000000100.h5 (arch, ensemble), found another: this "
                                    "checkpoint is left out"),
                     1);
    assert_false(ks_study_has_checkpoint(s, (struct ks_study_place){0, 0, 1}));
    assert_true(ks_study_has_checkpoint(s, (struct ks_study_place){0, 0, 2}));
    write_text(run_path("a", 0, "step_000000200.h5"), "text");
    s = read_study();
    assert_int_equal(count_warnings(s, "a/seed0/step_000000200.h5: "), 1);
    assert_int_equal(unlink(scratch(run_path("a", 0, "step_000000200.h5"))), 0);
    assert_int_equal(symlink("nowhere", scratch(run_path("a", 0, "step_000000200.h5"))), 0);
    s = read_study();
    assert_int_equal(count_warnings(s, "a/seed0/step_000000200.h5: the link leads to no file: this "
                                       "checkpoint is left out"),
                     1);
    assert_false(ks_study_has_checkpoint(s, (struct ks_study_place){0, 0, 1}));
    assert_int_equal(unlink(scratch(run_path("a", 0, "step_000000200.h5"))), 0);
    write_checkpoint("a", 0, 250, &same);
    assert_int_equal(rename(scratch(run_path("a", 0, "step_000000250.h5")),
                            scratch(run_path("a", 0, "step_000000200.h5"))),
                     0);
    s = read_study();
    assert_int_equal(count_warnings(s, "step_000000200.h5: env_step: expected 200, found 250"), 1);
    assert_int_equal(rename(scratch(run_path("a", 1, "step_000000200.h5")),
                            scratch(run_path("a", 0, "step_000000200.h5"))),
                     0);
    s = read_study();
    assert_int_equal(count_warnings(s, "step_000000200.h5: seed: expected 0, found 1"), 1);
    write_checkpoint("a", 0, 200, &(struct sort){.minibatches = "some"});
    assert_int_equal(analyzer("s/runs/toy/a/seed0/step_000000200.h5"), 2);
    assert_complains("minibatches: expected fixed or fresh, found 'some'");
}

/* Files that crash HDF5 or make it loop cost a study one checkpoint each, in every program. */
TEST_IN_FOLDER(test_damaged_checkpoints)
{
    static const struct {
        const char *program, *arguments;
        bool warns;
    } cases[] = {{"kappascope-study", "--status s", false},
                 {"kappascope-study", "-n s", false},
                 {"kappascope-scores", "--raw --resamples=0 s", false},
                 {"kappascope-study", "-q s", false},
                 {"kappascope-plot", "--resamples=0 s", true}};

    draw_nothing();
    write_two();
    write_study(MINIMAL);
    break_heap(scratch(run_path("a", 0, "step_000000200.h5")), (uint64_t)1 << 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(run_program(cases[i].program, cases[i].arguments), 0);
    break_heap(scratch(run_path("b", 1, "step_000000300.h5")), (uint64_t)0 - 16);
    assert_int_equal(setenv("KAPPASCOPE_SCOUT", "1", 1), 0); /* a second each */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run_program(cases[i].program, cases[i].arguments), 0);
        if (!cases[i].warns)
            continue;
        assert_complains("a/seed0/step_000000200.h5: ");
        assert_complains("b/seed1/step_000000300.h5: the file is damaged: the HDF5 library did not "
                         "finish in time while reading it: this checkpoint is left out");
    }
    assert_int_equal(unsetenv("KAPPASCOPE_SCOUT"), 0);
}
