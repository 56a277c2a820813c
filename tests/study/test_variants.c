/* [variant NAME] in study files: a network of the study, trained with settings of its own. */
#include "staged.h"

#include "claims/paper_claims.h"

static const char STUDY[] = "[study]\n"
                            "env = dog-trot\n"
                            "architectures = bn+wn+ce\n"
                            "seeds = 0\n"
                            "steps = 1000\n"
                            "[train]\n"
                            "checkpoints = 2\n"
                            "evaluations = 2\n"
                            "random_steps = 100\n"
                            "batch = 64\n";

/* STUDY followed by `sections`. */
static struct ks_study *good_with(const char *sections)
{
    return good_study(text_of("%s%s", STUDY, sections));
}

TEST_IN_FOLDER(test_settings)
{
    struct ks_study *s = good_with(
        "[variant more]\narchitecture = dense+mse\nbatch = 128\nutd = 8\n");

    assert_int_equal(s->n_architectures, 2);
    assert_string_equal(s->architecture[1].name, "more");
    assert_string_equal(s->architecture[1].argument, "dense+mse");
    assert_string_equal(s->architecture[1].normalization, "dense");
    assert_string_equal(s->architecture[1].loss, "mse");
    assert_int_equal(s->architecture[1].settings.batch, 128);
    assert_int_equal(s->architecture[1].settings.utd, 8);
    assert_int_equal(s->architecture[1].settings.random_steps, 100);
    assert_int_equal(s->architecture[0].settings.batch, 64);
}

/* A variant looks like the architecture that it changes, but is none of the twelve. */
TEST_IN_FOLDER(test_kind)
{
    size_t architecture[KS_JUDGED];
    struct ks_study *s = good_with("[variant a]\narchitecture = dense+mse\nutd = 8\n"
                                   "[variant b]\nutd = 8\narchitecture = bn+wn+ce\n"
                                   "[variant c]\narchitecture = bn+wn+ce\nutd = 4\n");

    assert_int_equal(ks_twelve_find(s, architecture), 1);
    assert_int_equal(architecture[KS_TWELVE_OF(KS_BN, 1, KS_CE)], 0);
    assert_int_equal(ks_study_base(s, 0), 4); /* no variant                  */
    assert_int_equal(ks_study_base(s, 1), 4); /* its architecture is missing */
    assert_int_equal(ks_study_base(s, 2), 0);
    assert_int_equal(ks_study_base(s, 3), 0);
    assert_string_equal(s->architecture[2].normalization, "bn");
    assert_true(s->architecture[2].weight_normalization);
}

/* The sections may stand in any order. */
TEST_IN_FOLDER(test_order)
{
    struct ks_study *s = good_study(
        "[variant a]\nutd = 4\narchitecture = bn+ce\n[train]\nutd = 3\n"
        "random_steps = 10\n[study]\nenv = dog-trot\nseeds = 0\nsteps = 1000\n");

    assert_int_equal(s->n_architectures, 1);
    assert_int_equal(s->architecture[0].settings.utd, 4);
    assert_int_equal(s->architecture[0].settings.random_steps, 10);
}

static void assert_refused(const char *sections, const char *message)
{
    struct ks_study *s = NULL;
    ks_status status = study_of_text(text_of("%s%s", STUDY, sections), &s);

    assert_true(status == KS_FORMAT || status == KS_USAGE); /* both exit with status 2 */
    assert_contains(ks_error_text(), message);
    assert_null(s);
}

TEST_IN_FOLDER(test_refusals)
{
    assert_refused("[variant a]\nbatch = 8\n", ":11: [variant a]: 'architecture' is missing");
    assert_refused("[variant a]\narchitecture = bn\n", ":12: ");
    assert_refused("[variant a]\narchitecture = bn+ce\narchitecture = ln+ce\n", "given twice");
    assert_refused("[variant a]\narchitecture = bn+ce\nbatch = x\n", ":13: batch");
    assert_refused("[variant a]\narchitecture = bn+ce\nbathc = 8\n", ":13: ");
    assert_refused("[variant bn+ce]\narchitecture = bn+ce\n", ":11: ");
    assert_refused("[variant a]\narchitecture = bn+ce\n[variant a]\n", "'a' is given twice");
    assert_refused("[variant ]\narchitecture = bn+ce\n", "expected a name");
    assert_refused("[variant a b]\narchitecture = bn+ce\n", "expected a name");
    assert_refused("[variant ../a]\narchitecture = bn+ce\n", "letters, digits");
    /* Two settings that do not fit together, one of [train], one of the variant. */
    assert_refused("[variant a]\narchitecture = bn+ce\nlr_end = 0.1\n", ":11: [variant a]: lr_end");
}

/* All runs of a study have their checkpoints and evaluations at the same environment steps. */
TEST_IN_FOLDER(test_steps)
{
    assert_refused("[variant a]\narchitecture = bn+ce\naction_repeat = 1\n", "must be 200");
    assert_refused("[variant a]\narchitecture = bn+ce\ncheckpoints = 3\n", ":11: [variant a]: ");
    assert_refused("[variant a]\narchitecture = bn+ce\nevaluations = 3\n", ":11: [variant a]: ");
    good_with("[variant a]\narchitecture = bn+ce\naction_repeat = 1\nrandom_steps = 200\n");
}

/* The command names the network, sets each setting once, and writes to the variant's folder. */
TEST_IN_FOLDER(test_command)
{
    const struct ks_graph_programs programs = {.train = "train", .analyze = "analyze"};
    KS_OWNED_BY(ks_graph_free) struct ks_graph *graph = NULL;
    const char *command;

    assert_ok(ks_graph_new(good_with("[variant a]\narchitecture = ln+ce\nbatch = 128\n"), &programs,
                           &graph));
    command = graph->job[1].command;
    assert_string_equal(graph->job[1].folder, "runs/dog-trot/a/seed0");
    assert_contains(command, "--arch=ln+ce ");
    assert_contains(command, "--set batch=128");
    assert_null(strstr(command, "batch=64"));
    assert_contains(command, "--set checkpoints=2");
    assert_contains(graph->job[0].command, "batch=64");
}

static void assert_difference(const char *asked, const char *held, const char *expected)
{
    const char *difference = ks_study_difference(good_with(asked), good_with(held), false);

    if (expected)
        assert_string_equal(difference, expected);
    else
        assert_null(difference);
}

/* A folder takes more variants, but not another network or settings under the same name. */
TEST_IN_FOLDER(test_differences)
{
    static const char one[] = "[variant a]\narchitecture = bn+ce\nutd = 4\n";

    assert_difference(one, one, NULL);
    assert_difference(one, "", NULL);
    assert_difference("", one, "architectures");
    assert_difference("[variant a]\narchitecture = ln+ce\nutd = 4\n", one, "architectures");
    assert_difference("[variant a]\narchitecture = bn+ce\nutd = 8\n", one, "utd");
    assert_difference("[variant a]\narchitecture = bn+ce\n", one, "utd");
}

/* An agent step is one environment step of Gymnasium and two of dm_control, if the study does not
 * say otherwise. */
TEST_IN_FOLDER(test_action_repeat)
{
    static const struct {
        const char *text;
        size_t action_repeat;
    } cases[] = {{"[study]\nenv=dog-trot\n", 2},
                 {"[study]\nenv=Hopper-v4\n", 1},
                 {"[study]\nenv=none-of-ours\n", 2},
                 {"[train]\naction_repeat=3\n[study]\nenv=Hopper-v4\n", 3},
                 {"[train]\naction_repeat=1\n[study]\nenv=dog-trot\n", 1}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_study *s = good_study(
            text_of("%sarchitectures=all\nseeds=0\nsteps=60000\n", cases[i].text));

        assert_int_equal(s->settings.action_repeat, cases[i].action_repeat);
        assert_int_equal(s->first_update, 5000 * cases[i].action_repeat);
        assert_int_equal(s->architecture[0].settings.action_repeat, cases[i].action_repeat);
    }
}
