/* Settings: defaults, ranges, messages, conversion to text and back; and the architectures built
 * from them. */
#include "scratch.h"

#include "agent/optim.h"
#include "train/architecture.h"
#include "train/settings.h"

/* For every key, in the order of the table. */
static const char *const defaults[][2] = {
    {"hidden", "512"},
    {"depth", "4"},
    {"actor_hidden", "256"},
    {"actor_depth", "4"},
    {"skip", "0"},
    {"critics", "2"},
    {"atoms", "101"},
    {"v_min", "-5"},
    {"v_max", "5"},
    {"batch", "256"},
    {"utd", "2"},
    {"update_every", "1"},
    {"random_steps", "5000"},
    {"replay", "1000000"},
    {"n_step", "1"},
    {"reset_step", "0"},
    {"horizon", "5"},
    {"replay_priority", "0"},
    {"action_repeat", "2"},
    {"gamma", "auto"},
    {"tau", "0.005"},
    {"target_period", "0"},
    {"critic_lr", "0.0003"},
    {"actor_lr", "0.0003"},
    {"lr_end", "3e-05"},
    {"encoder_lr", "0.0001"},
    {"noise", "1"},
    {"noise_end", "0.1"},
    {"noise_steps", "500000"},
    {"noise_clip", "0.3"},
    {"gradient_norm", "0"},
    {"policy_delay", "3"},
    {"update_order", "critics-first"},
    {"temperature", "0.01"},
    {"target_entropy", "auto"},
    {"temperature_beta1", "0.9"},
    {"temperature_decay", "0"},
    {"target_value", "min"},
    {"policy_value", "min"},
    {"init", "orthogonal"},
    {"init_blocks", "orthogonal"},
    {"init_gain", "auto"},
    {"weight_decay", "0"},
    {"decay", "none"},
    {"reward_normalization", "1"},
    {"reward_scaling", "std"},
    {"observation_normalization", "0"},
    {"raw_rewards", "0"},
    {"eval_episodes", "10"},
    {"evaluations", "20"},
    {"checkpoints", "20"},
    {"analysis_minibatches", "50"},
    {"threads", "2"},
    {"products", "blas"},
    {"nativeccd", "auto"},
    {"multiccd", "auto"},
};

TEST(test_defaults)
{
    struct ks_settings s;
    size_t n = 0;

    ks_settings_defaults(&s);
    for (const struct ks_key *key = ks_keys; key->name; key++, n++) {
        char text[KS_VALUE_LENGTH];

        assert_true(n < sizeof defaults / sizeof *defaults);
        assert_string_equal(key->name, defaults[n][0]);
        ks_key_print(key, &s, text);
        assert_string_equal(text, defaults[n][1]);
        assert_ok(ks_settings_set(&s, key->name, key->default_text));
    }
    assert_int_equal(n, sizeof defaults / sizeof *defaults);
    assert_ok(ks_settings_check(&s));
}

/* The numbers arrive where the engine reads them. */
TEST(test_fields)
{
    struct ks_settings s;

    ks_settings_defaults(&s);
    assert_true(s.hidden == 512 && s.depth == 4 && s.actor_hidden == 256 && s.actor_depth == 4);
    assert_true(s.skip == 0 && s.n_step == 1);
    assert_true(s.critics == 2 && s.atoms == 101 && s.v_min == -5 && s.v_max == 5);
    assert_true(s.batch == 256 && s.utd == 2 && s.random_steps == 5000 && s.replay == 1000000);
    assert_true(s.action_repeat == 2 && isnan(s.gamma) && s.agent.tau == 0.005 &&
                s.agent.policy_delay == 3);
    assert_true(s.critic_lr == 3e-4 && s.actor_lr == 3e-4 && s.lr_end == 3e-5);
    assert_true(s.agent.temperature == 0.01 && isnan(s.target_entropy));
    assert_true(s.agent.weight_decay == 0 && s.agent.decay == 0);
    assert_true(s.reward_normalization == 1 && s.raw_rewards == 0 && s.eval_episodes == 10);
    assert_true(s.evaluations == 20 && s.checkpoints == 20 && s.analysis_minibatches == 50);
    assert_true(s.threads == 2 && isnan(s.nativeccd) && isnan(s.multiccd));
}

TEST(test_values)
{
    struct ks_settings s;

    ks_settings_defaults(&s);
    assert_ok(ks_settings_assign(&s, "utd=8"));
    assert_ok(ks_settings_assign(&s, "batch=1e3"));
    assert_ok(ks_settings_assign(&s, "gamma=0.97"));
    assert_ok(ks_settings_assign(&s, "decay=norms+heads"));
    assert_ok(ks_settings_assign(&s, "raw_rewards=yes"));
    assert_ok(ks_settings_assign(&s, "nativeccd=off"));
    assert_int_equal(s.utd, 8);
    assert_int_equal(s.batch, 1000);
    assert_close(s.gamma, 0.97, 0);
    assert_int_equal(s.agent.decay, KS_DECAY_NORMS_AND_HEADS);
    assert_ok(ks_settings_assign(&s, "decay=heads"));
    assert_int_equal(s.agent.decay, KS_DECAY_HEADS);
    assert_int_equal(s.raw_rewards, 1);
    assert_close(s.nativeccd, 0, 0);
    assert_ok(ks_settings_assign(&s, "gamma=auto"));
    assert_true(isnan(s.gamma));
}

TEST(test_refused)
{
    static const char *const cases[][2] = {
        {"widht=3", "'widht'"},
        {"utd", "KEY=VALUE"},
        {"=3", "KEY=VALUE"},
        {"utd=", "utd: expected an integer"},
        {"utd=0", "from 1 to 1024"},
        {"utd=2.5", "found '2.5'"},
        {"n_step=0", "n_step: expected an integer from 1 to 100, found '0'"},
        {"n_step=101", "from 1 to 100"},
        {"skip=2", "skip: expected yes or no (1 or 0), found '2'"},
        {"utd=2x", "found '2x'"},
        {"batch=-4", "found '-4'"},
        {"batch=1", "from 2"},
        {"tau=1.1", "from 0 to 1"},
        {"tau=nan", "tau"},
        {"tau=inf", "tau"},
        {"tau=auto", "tau"},
        {"gamma=AUTO", "or auto"},
        {"decay=some", "expected none, norms, heads, norms+heads or all, found 'some'"},
        {"raw_rewards=2", "yes or no"},
        {"nativeccd=maybe", "or auto"},
        {"replay=1e300", "replay"},
        {"critic_lr=1e-4 ", "critic_lr"},
        {"temperature=0", "temperature"},
    };
    struct ks_settings s, before;

    ks_settings_defaults(&s);
    ks_settings_defaults(&before);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fails(ks_settings_assign(&s, cases[i][0]), KS_USAGE, cases[i][1]);
        assert_memory_equal(&s, &before, sizeof s);
    }
}

TEST(test_pairs)
{
    struct ks_settings s;

    ks_settings_defaults(&s);
    s.v_min = s.v_max;
    assert_fails(ks_settings_check(&s), KS_USAGE, "v_min");
    ks_settings_defaults(&s);
    s.agent.weight_decay = 1e-4;
    assert_fails(ks_settings_check(&s), KS_USAGE, "no effect with decay=none");
    s.agent.decay = 1;
    assert_ok(ks_settings_check(&s));
}

/* Every key with a value other than its default is restored from its text. */
TEST(test_text)
{
    struct ks_settings s, back;

    ks_settings_defaults(&s);
    ks_settings_defaults(&back);
    for (const struct ks_key *key = ks_keys; key->name; key++) {
        char text[KS_VALUE_LENGTH];

        assert_ok(ks_settings_set(&s, key->name,
                                  key->type == KS_KEY_CHOICE   ? key->choices[1]
                                  : key->type == KS_KEY_FLAG   ? "1"
                                  : key->type == KS_KEY_NUMBER ? "0.1"
                                                               : "13"));
        ks_key_print(key, &s, text);
        assert_ok(ks_settings_set(&back, key->name, text));
    }
    assert_memory_equal(&s, &back, sizeof s);
}

/* clip((t/5 - 1)/(t/5), 0.95, 0.995), t agent steps of an episode: 0.99 on DMC. */
TEST(test_gamma)
{
    struct ks_settings s;

    ks_settings_defaults(&s);
    assert_close(ks_settings_gamma(&s, 1000), 0.99, 1e-15);
    s.action_repeat = 1;
    assert_close(ks_settings_gamma(&s, 1000), 0.995, 1e-15);
    assert_close(ks_settings_gamma(&s, 40), 0.95, 1e-15);
    assert_close(ks_settings_gamma(&s, 250), 0.98, 1e-15);
    s.gamma = 0.5;
    assert_close(ks_settings_gamma(&s, 1000), 0.5, 0);
}

/* The descriptions as the paper's text has them, with their parameter counts for dog-trot: 223
 * observations and 38 actions. */
static const struct {
    const char *name, *critic;
    size_t parameters;
} twelve[] = {
    {"bn+wn+ce",
     "batchnorm\nrepeat 4 {\n  dense 512 bias=no project=unit\n  batchnorm\n  relu\n}\n"
     "dense 101 project=unit-kernel\nloss ce min=-5 max=5\n",
     976495},
    {"bn+ce",
     "batchnorm\nrepeat 4 {\n  dense 512 bias=no\n  batchnorm\n  relu\n}\ndense 101\n"
     "loss ce min=-5 max=5\n",
     976495},
    {"bn+wn+mse",
     "batchnorm\nrepeat 4 {\n  dense 512 bias=no project=unit\n  batchnorm\n  relu\n}\n"
     "dense 1 project=unit-kernel\nloss mse\n",
     925195},
    {"bn+mse",
     "batchnorm\nrepeat 4 {\n  dense 512 bias=no\n  batchnorm\n  relu\n}\ndense 1\nloss mse\n",
     925195},
    {"ln+wn+ce",
     "layernorm\nrepeat 4 {\n  dense 512 project=unit\n  layernorm\n  relu\n}\n"
     "dense 101 project=unit-kernel\nloss ce min=-5 max=5\n",
     978543},
    {"ln+ce",
     "layernorm\nrepeat 4 {\n  dense 512\n  layernorm\n  relu\n}\ndense 101\n"
     "loss ce min=-5 max=5\n",
     978543},
    {"ln+wn+mse",
     "layernorm\nrepeat 4 {\n  dense 512 project=unit\n  layernorm\n  relu\n}\n"
     "dense 1 project=unit-kernel\nloss mse\n",
     927243},
    {"ln+mse", "layernorm\nrepeat 4 {\n  dense 512\n  layernorm\n  relu\n}\ndense 1\nloss mse\n",
     927243},
    {"dense+wn+ce",
     "repeat 4 {\n  dense 512 project=unit\n  relu\n}\ndense 101 project=unit-kernel\n"
     "loss ce min=-5 max=5\n",
     973925},
    {"dense+ce", "repeat 4 {\n  dense 512\n  relu\n}\ndense 101\nloss ce min=-5 max=5\n", 973925},
    {"dense+wn+mse",
     "repeat 4 {\n  dense 512 project=unit\n  relu\n}\ndense 1 project=unit-kernel\nloss mse\n",
     922625},
    {"dense+mse", "repeat 4 {\n  dense 512\n  relu\n}\ndense 1\nloss mse\n", 922625},
};

static size_t count_parameters(const char *text, size_t in)
{
    struct KS(arch) *arch;
    size_t parameters;

    assert_ok(KS(arch_parse)(text, "test", in, &arch));
    parameters = arch->parameters;
    KS(arch_free)(arch);
    return parameters;
}

TEST(test_twelve)
{
    struct ks_settings s;

    ks_settings_defaults(&s);
    for (size_t i = 0; i < 12; i++) {
        const struct ks_architecture *a = ks_architecture_find(twelve[i].name);
        char *text[KS_TEXTS], name[32];
        size_t expected = twelve[i].name[0] == 'b'   ? 275722
                          : twelve[i].name[0] == 'l' ? 276746
                                                     : 274252;

        assert_ptr_equal(a, &ks_architectures[i]);
        snprintf(name, sizeof name, "%s%s+%s", a->normalization,
                 a->weight_normalization ? "+wn" : "", a->loss);
        assert_string_equal(name, a->name);
        assert_ok(ks_architecture(twelve[i].name, &s, 38, text));
        assert_string_equal(text[KS_CRITIC_TEXT], twelve[i].critic);
        assert_int_equal(count_parameters(text[KS_CRITIC_TEXT], 261), twelve[i].parameters);
        assert_int_equal(count_parameters(text[KS_ACTOR_TEXT], 223), expected);
        ks_texts_free(text);
    }
    assert_null(ks_architectures[12].name);
}

TEST(test_actor_text)
{
    struct ks_settings s;
    char *text[KS_TEXTS];

    ks_settings_defaults(&s);
    assert_ok(ks_architecture("bn+wn+mse", &s, 38, text));
    assert_string_equal(text[KS_ACTOR_TEXT],
                        "batchnorm\nrepeat 4 {\n  dense 256 bias=no project=unit\n"
                        "  batchnorm\n  relu\n}\ndense 76 project=unit-kernel\n"
                        "policy tanh-gaussian log-std=clip min=-10 max=2\n");
    ks_texts_free(text);
}

/* The paper's ablation, at depths 4 and 6. The first block has no skip, so a network of depth 1 has
 * none. */
TEST(test_skips)
{
    static const char first[] = "batchnorm\ndense 512 bias=no project=unit\nbatchnorm\nrelu\n";
    static const char rest[] = "  residual {\n    dense 512 bias=no project=unit\n    batchnorm\n"
                               "    relu\n  }\n}\ndense 101 project=unit-kernel\n"
                               "loss ce min=-5 max=5\n";
    static const size_t parameters[][2] = {{4, 976495}, {6, 1502831}};
    char *text[KS_TEXTS], *plain[KS_TEXTS];
    struct ks_settings s;

    ks_settings_defaults(&s);
    assert_ok(ks_settings_assign(&s, "skip=1"));
    for (size_t i = 0; i < 2; i++) {
        s.depth = parameters[i][0];
        assert_ok(ks_architecture("bn+wn+ce", &s, 38, text));
        assert_string_equal(text[KS_CRITIC_TEXT],
                            text_of("%srepeat %zu {\n%s", first, s.depth - 1, rest));
        assert_int_equal(count_parameters(text[KS_CRITIC_TEXT], 261), parameters[i][1]);
        assert_string_equal(text[KS_ACTOR_TEXT],
                            "batchnorm\ndense 256 bias=no project=unit\nbatchnorm\nrelu\n"
                            "repeat 3 {\n  residual {\n    dense 256 bias=no project=unit\n"
                            "    batchnorm\n    relu\n  }\n}\ndense 76 project=unit-kernel\n"
                            "policy tanh-gaussian log-std=clip min=-10 max=2\n");
        assert_int_equal(count_parameters(text[KS_ACTOR_TEXT], 223), 275722);
        ks_texts_free(text);
    }
    assert_ok(ks_architecture("dense+mse", &s, 38, text));
    assert_string_equal(text[KS_CRITIC_TEXT],
                        "dense 512\nrelu\nrepeat 5 {\n  residual {\n    dense 512\n"
                        "    relu\n  }\n}\ndense 1\nloss mse\n");
    ks_texts_free(text);
    s.depth = s.actor_depth = 1;
    assert_ok(ks_architecture("ln+ce", &s, 38, text));
    s.skip = 0;
    assert_ok(ks_architecture("ln+ce", &s, 38, plain));
    assert_string_equal(text[KS_CRITIC_TEXT], plain[KS_CRITIC_TEXT]);
    assert_string_equal(text[KS_ACTOR_TEXT], plain[KS_ACTOR_TEXT]);
    ks_texts_free(text);
    ks_texts_free(plain);
}

/* The paper's ablations of critics, and their parameter counts on dog-trot; and the others. */
TEST(test_ablations)
{
    static const struct {
        const char *name, *settings[4];
        size_t parameters;
    } cases[] = {
        {"bn+wn+ce", {"depth=2"}, 450159},
        {"bn+wn+ce", {"depth=6"}, 1502831},
        {"bn+wn+ce", {"depth=8"}, 2029167},
        {"bn+wn+ce", {"hidden=256"}, 291951},
        {"bn+wn+ce", {"hidden=1024"}, 3525231},
        {"bn+wn+ce", {"hidden=2048"}, 13341295},
        {"dense+ce", {"depth=2"}, 448613},
        {"dense+ce", {"depth=6"}, 1499237},
        {"dense+mse", {"hidden=256", "depth=2"}, 133121}, /* SAC */
        {"bn+wn+ce", {"batch=128"}, 976495},
        {"bn+wn+ce", {"batch=512"}, 976495},
        {"bn+wn+ce", {"weight_decay=1e-4", "decay=norms"}, 976495},
        {"bn+wn+ce", {"action_repeat=1"}, 976495},
        {"ln+wn+ce", {"critic_lr=1.5e-4", "actor_lr=1.5e-4", "lr_end=1.5e-5"}, 978543},
        {"bn+wn+ce", {"utd=1"}, 976495},
        {"bn+wn+ce", {"utd=16"}, 976495},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ks_settings s;
        char *text[KS_TEXTS];

        ks_settings_defaults(&s);
        for (size_t k = 0; cases[i].settings[k]; k++)
            assert_ok(ks_settings_assign(&s, cases[i].settings[k]));
        assert_ok(ks_settings_check(&s));
        assert_ok(ks_architecture(cases[i].name, &s, 38, text));
        assert_int_equal(count_parameters(text[KS_CRITIC_TEXT], 261), cases[i].parameters);
        ks_texts_free(text);
    }
}

/* The actor that follows from a file's layers; `skip` applies to the actor only. */
TEST(test_files)
{
    static const char *const cases[][2] = {
        {"dense 4 project=unit\nrelu\nlayernorm\ndense 1\nloss mse\n",
         "layernorm\nrepeat 4 {\n  dense 256 project=unit\n"},
        {"layernorm\ndense 4\nbatchnorm # project=unit\nrelu\ndense 1\nloss mse\n",
         "batchnorm\nrepeat 4 {\n  dense 256 bias=no\n"},
        {"# batchnorm\ndense 4 # project=unit\nrelu\ndense 1\nloss mse\n",
         "repeat 4 {\n  dense 256\n"},
    };
    struct ks_settings s;
    char *text[KS_TEXTS];

    ks_settings_defaults(&s);
    for (size_t i = 0; i < 3; i++) {
        const char *path = scratch("critic.arch");

        write_bytes(path, cases[i][0], strlen(cases[i][0]));
        assert_ok(ks_architecture(path, &s, 2, text));
        assert_string_equal(text[KS_CRITIC_TEXT], cases[i][0]);
        if (strncmp(text[KS_ACTOR_TEXT], cases[i][1], strlen(cases[i][1])) != 0)
            fail_msg("case %zu: %s", i, text[KS_ACTOR_TEXT]);
        ks_texts_free(text);
    }
    s.skip = 1;
    assert_ok(ks_architecture(scratch("critic.arch"), &s, 2, text));
    assert_string_equal(text[KS_CRITIC_TEXT], cases[2][0]);
    assert_non_null(strstr(text[KS_ACTOR_TEXT], "dense 256\nrelu\nrepeat 3 {\n  residual {\n"));
    ks_texts_free(text);
    s.hidden = 64;
    assert_fails(ks_architecture(scratch("critic.arch"), &s, 2, text), KS_USAGE, "hidden");
}

TEST(test_unknown)
{
    struct ks_settings s;
    char *text[KS_TEXTS];

    ks_settings_defaults(&s);
    assert_fails(ks_architecture("bn+wn", &s, 2, text), KS_USAGE, "'bn+wn'");
    assert_fails(ks_architecture("", &s, 2, text), KS_USAGE, "''");
    assert_fails(ks_architecture(scratch("none.arch"), &s, 2, text), KS_IO, "none.arch");
    assert_null(text[KS_CRITIC_TEXT]);
}

CMFixtureFunction tests_setup = scratch_make, tests_teardown = scratch_remove;
