/* Studies of systems: whose settings a run has. */
#include "staged.h"

/* A system's settings, over them those of [train], over them those of a variant; and so for no
 * other architecture. */
TEST_IN_FOLDER(test_settings)
{
    const struct ks_settings *of[4];
    struct ks_study *s;

    write_text("c.arch", "dense 4\nrelu\ndense 1\nloss mse\n");
    write_text("a.arch", "dense 2A\npolicy tanh-gaussian\n");
    write_text("own.system", "[system]\ncritic=c.arch\nactor=a.arch\n[train]\nutd=7\ntau=0.5\n");
    s = good_study("[study]\nenv=dog-trot\narchitectures=bn+ce simba-v2 own.system\nseeds=0\n"
                   "steps=1000\n[train]\ntau=0.25\npolicy_delay=3\nrandom_steps=10\n"
                   "[variant more]\narchitecture=simba-v2\ncritics=5\n[analyze]\norder=5\n");
    assert_int_equal(s->n_architectures, 4);
    for (size_t i = 0; i < 4; i++)
        of[i] = &s->architecture[i].settings;
    assert_int_equal(of[0]->utd, 2);
    assert_int_equal(of[0]->agent.order, KS_CRITICS_FIRST);
    assert_int_equal(of[1]->agent.order, KS_ACTOR_FIRST);
    assert_int_equal(of[1]->critics, 1);
    assert_int_equal(of[1]->agent.policy_delay, 3); /* which is also the default: [train] says it */
    assert_int_equal(of[2]->utd, 7);
    assert_int_equal(of[3]->critics, 5);
    assert_int_equal(of[3]->agent.order, KS_ACTOR_FIRST);
    for (size_t i = 0; i < 4; i++)
        assert_close(of[i]->agent.tau, 0.25, 0);
    assert_string_equal(s->architecture[1].argument, "simba-v2");
    assert_string_equal(s->architecture[2].argument, scratch("own.system"));
    assert_string_equal(s->architecture[2].name, "own.system");
}

/* The study that a folder holds lies where its systems are not. */
TEST_IN_FOLDER(test_held)
{
    static const char text[] = "[study]\nenv=dog-trot\narchitectures=own.system\nseeds=0\n"
                               "steps=1000\n[train]\nrandom_steps=10\ntau=%s\n";
    struct ks_study *asked;

    write_text("c.arch", "dense 4\nrelu\ndense 1\nloss mse\n");
    write_text("a.arch", "dense 2A\npolicy tanh-gaussian\n");
    write_text("own.system", "[system]\ncritic=c.arch\nactor=a.arch\n[train]\nutd=7\n");
    asked = good_study(text_of(text, "0.5"));
    for (size_t i = 0; i < 2; i++) {
        KS_OWNED_BY(ks_study_free) struct ks_study *held = NULL;

        write_text("folder/study.study", text_of(text, i == 0 ? "0.5" : "0.25"));
        assert_ok(ks_study_read(scratch("folder/study.study"), KS_STUDY_COMPARE, &held));
        assert_ok(ks_study_find_systems(held, asked));
        if (i == 0)
            assert_null(ks_study_difference(asked, held, false));
        else
            assert_string_equal(ks_study_difference(asked, held, false), "tau");
    }
}

/* A system has sizes of its own: beside a [train] with other ones a variant sets them back. */
TEST_IN_FOLDER(test_sizes_in_train)
{
    static const char text[] = "[study]\nenv=dog-trot\narchitectures=bn+ce\nseeds=0\nsteps=1000\n"
                               "[train]\nhidden=128\nactor_hidden=128\nrandom_steps=10\n"
                               "[variant small]\narchitecture=simba-v2-small\nactor_hidden=256\n%s"
                               "[analyze]\norder=5\n";
    struct ks_study *s = good_study(text_of(text, ""));

    assert_fails(ks_study_check(s, 223, 38), KS_USAGE, "the settings hidden, depth, atoms");
    s = good_study(text_of(text, "hidden=512\n"));
    assert_ok(ks_study_check(s, 223, 38));
    assert_int_equal(s->architecture[0].settings.hidden, 128);
    assert_int_equal(s->architecture[1].settings.random_steps, 10);
}

TEST_IN_FOLDER(test_refusals)
{
    static const struct {
        const char *architectures, *words;
    } studies[] = {{"simba-v9", "unknown architecture 'simba-v9'"},
                   {"none.system", "none.system: does not exist"},
                   {"bad.system", "[train] utd: utd: expected an integer"}};

    write_text("bad.system", "[system]\ncritic=c\nactor=a\n[train]\nutd=no\n");
    for (size_t i = 0; i < sizeof studies / sizeof *studies; i++) {
        struct ks_study *s = NULL;

        assert_fails(
            study_of_text(text_of("[study]\nenv=dog-trot\narchitectures=%s\nseeds=0\nsteps=9\n",
                                  studies[i].architectures),
                          &s),
            KS_FORMAT, studies[i].words);
    }
}

TEST(test_shipped)
{
    KS_OWNED_BY(ks_study_free) struct ks_study *s = NULL;
    KS_OWNED char *path = NULL;

    assert_ok(ks_study_find("reference", &path));
    assert_ok(ks_study_read(path, KS_STUDY_RUN, &s));
    assert_int_equal(s->n_architectures, 7);
    assert_int_equal(s->architecture[1].settings.critics, 1);
}
