#include "train/architecture.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "io/file.h"

const struct ks_architecture ks_architectures[] = {
    {"bn+wn+ce", "bn", true, "ce"},
    {"bn+ce", "bn", false, "ce"},
    {"bn+wn+mse", "bn", true, "mse"},
    {"bn+mse", "bn", false, "mse"},
    {"ln+wn+ce", "ln", true, "ce"},
    {"ln+ce", "ln", false, "ce"},
    {"ln+wn+mse", "ln", true, "mse"},
    {"ln+mse", "ln", false, "mse"},
    {"dense+wn+ce", "dense", true, "ce"},
    {"dense+ce", "dense", false, "ce"},
    {"dense+wn+mse", "dense", true, "mse"},
    {"dense+mse", "dense", false, "mse"},
    {.name = NULL},
};

/* The blocks of a network. `norm` is the normalization layer, or "". Before a batchnorm a dense
 * layer needs no bias. */
struct blocks {
    const char *norm;
    bool projected, skips;
    size_t depth, width;
};

enum { BLOCK = 128 }; /* room for the text of one block */

static void print_block(const struct blocks *b, const char *indent, char text[BLOCK])
{
    bool normalized = *b->norm != '\0', bias = strcmp(b->norm, "batchnorm") != 0;

    snprintf(text, BLOCK, "%sdense %zu%s%s\n%s%s%s%srelu\n", indent, b->width,
             bias ? "" : " bias=no", b->projected ? " project=unit" : "", normalized ? indent : "",
             b->norm, normalized ? "\n" : "", indent);
}

/* Prints a description without its last two lines. A skip adds the input of a block to its output;
 * the first block has none, because its input has another width. */
static ks_status print_blocks(const struct blocks *b, char **text)
{
    const char *end = *b->norm ? "\n" : "";
    char first[BLOCK], block[BLOCK];

    if (!b->skips || b->depth == 1) {
        print_block(b, "  ", block);
        return ks_print_string(text, "%s%srepeat %zu {\n%s}\n", b->norm, end, b->depth, block);
    }
    print_block(b, "", first);
    print_block(b, "    ", block);
    return ks_print_string(text, "%s%s%srepeat %zu {\n  residual {\n%s  }\n}\n", b->norm, end,
                           first, b->depth - 1, block);
}

/* Prints a whole description; its last two lines are the last dense layer and `last`. */
static ks_status finish(const struct blocks *b, size_t outputs, const char *last, char **text)
{
    KS_OWNED char *blocks = NULL;

    KS_TRY(print_blocks(b, &blocks));
    return ks_print_string(text, "%sdense %zu%s\n%s\n", blocks, outputs,
                           b->projected ? " project=unit-kernel" : "", last);
}

static ks_status describe_critic(const struct blocks *b, const struct ks_settings *s, bool ce,
                                 char **text)
{
    char loss[96];

    snprintf(loss, sizeof loss, "loss ce min=%.17g max=%.17g", s->v_min, s->v_max);
    return finish(b, ce ? s->atoms : 1, ce ? loss : "loss mse", text);
}

static ks_status describe_actor(const struct blocks *b, const struct ks_settings *s, size_t actions,
                                char **text)
{
    struct blocks actor = {b->norm, b->projected, s->skip != 0, s->actor_depth, s->actor_hidden};

    return finish(&actor, 2 * actions, "policy tanh-gaussian log-std=clip min=-10 max=2", text);
}

static bool starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

const struct ks_architecture *ks_architecture_find(const char *name)
{
    for (const struct ks_architecture *a = ks_architectures; a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

bool ks_architecture_is_file(const char *name)
{
    return ks_path_ends(name, ".arch");
}

/* The kind of blocks in a file, from the first word of its lines. The parser checks the lines. */
static struct blocks kind_of_file(const char *text)
{
    struct blocks b = {.norm = ""};

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += strspn(line, " \t\r\n");
        if (starts(line, "batchnorm"))
            b.norm = "batchnorm";
        else if (!*b.norm && (starts(line, "layernorm") || starts(line, "groupnorm") ||
                              starts(line, "rmsnorm")))
            b.norm = "layernorm";
        if (starts(line, "dense")) {
            const char *project = strstr(line, "project=unit"), *end = line + strcspn(line, "#\n");

            b.projected = b.projected || (project && project < end);
        }
    }
    return b;
}

/* Fails if a setting that applies only to named architectures is not at its default. */
static ks_status refuse_sizes(const char *path, const struct ks_settings *s)
{
    struct ks_settings standard;

    ks_settings_defaults(&standard);
    if (s->hidden == standard.hidden && s->depth == standard.depth && s->atoms == standard.atoms &&
        s->v_min == standard.v_min && s->v_max == standard.v_max)
        return KS_OK;
    return ks_fail(KS_USAGE,
                   "%s: the settings hidden, depth, atoms, v_min and v_max apply only to named "
                   "architectures; the file determines them",
                   path);
}

static ks_status read_file(const char *path, const struct ks_settings *s, size_t actions,
                           char *text[KS_TEXTS])
{
    struct blocks b;

    KS_TRY(KS(arch_read)(path, &text[KS_CRITIC_TEXT]));
    KS_TRY(refuse_sizes(path, s));
    b = kind_of_file(text[KS_CRITIC_TEXT]);
    return describe_actor(&b, s, actions, &text[KS_ACTOR_TEXT]);
}

static ks_status describe_system(const char *name, const struct ks_settings *s, size_t actions,
                                 char *text[KS_TEXTS])
{
    struct ks_settings standard;
    KS_OWNED char *path = NULL;

    KS_TRY(ks_system_find(name, &path));
    if (!path)
        return ks_fail(KS_USAGE,
                       "arch: '%s' is neither an architecture or a system (--list names them) nor "
                       "a .arch or .system file",
                       name);
    ks_settings_defaults(&standard);
    KS_TRY(refuse_sizes(name, s));
    if (s->actor_hidden != standard.actor_hidden || s->actor_depth != standard.actor_depth ||
        s->skip != standard.skip)
        return ks_fail(KS_USAGE,
                       "%s: the settings actor_hidden, actor_depth and skip do not apply to a "
                       "system; its actor's description determines them",
                       name);
    return ks_system_describe(path, actions, text);
}

static const char *norm_layer(const char *normalization)
{
    return strcmp(normalization, "bn") == 0   ? "batchnorm"
           : strcmp(normalization, "ln") == 0 ? "layernorm"
                                              : "";
}

static ks_status build_named(const struct ks_architecture *a, const struct ks_settings *s,
                             size_t actions, char *text[KS_TEXTS])
{
    struct blocks b = {norm_layer(a->normalization), a->weight_normalization, s->skip != 0,
                       s->depth, s->hidden};

    KS_TRY(describe_critic(&b, s, strcmp(a->loss, "ce") == 0, &text[KS_CRITIC_TEXT]));
    return describe_actor(&b, s, actions, &text[KS_ACTOR_TEXT]);
}

ks_status ks_architecture(const char *name, const struct ks_settings *s, size_t actions,
                          char *text[KS_TEXTS])
{
    const struct ks_architecture *named = ks_architecture_find(name);
    ks_status status;

    memset(text, 0, KS_TEXTS * sizeof *text);
    if (named)
        status = build_named(named, s, actions, text);
    else if (ks_architecture_is_file(name))
        status = read_file(name, s, actions, text);
    else
        status = describe_system(name, s, actions, text);
    if (status != KS_OK)
        ks_texts_free(text);
    return status;
}

/* Parses description k for inputs of `in` columns and adds its parameters. */
static ks_status read_width(char *const text[KS_TEXTS], size_t k, size_t in, size_t *out,
                            size_t *parameters)
{
    struct KS(arch) *arch = NULL;
    const ks_status status = KS(arch_parse)(text[k], ks_text_names[k], in, &arch);

    if (status == KS_OK) {
        *out = arch->out;
        *parameters += arch->parameters;
    }
    KS(arch_free)(arch);
    return status;
}

ks_status ks_architecture_widths(char *const text[KS_TEXTS], size_t observations, size_t actions,
                                 struct ks_widths *w)
{
    size_t *const n = &w->encoder, action, model;

    *w = (struct ks_widths){.critic = observations + actions, .actor = observations};
    if (text[KS_PIXELS_TEXT]) {
        KS_TRY(read_width(text, KS_PIXELS_TEXT + KS_IMAGE, observations, &w->actor, n));
        KS_TRY(read_width(text, KS_PIXELS_TEXT + KS_TRUNK, w->actor, &w->critic, n));
        w->critic += actions;
    }
    if (!text[KS_ENCODER_TEXT])
        return KS_OK;
    KS_TRY(read_width(text, KS_ENCODER_TEXT + KS_STATE_MODULE, observations, &w->actor, n));
    KS_TRY(read_width(text, KS_ENCODER_TEXT + KS_ACTION_MODULE, actions, &action, n));
    KS_TRY(read_width(text, KS_ENCODER_TEXT + KS_PAIR_MODULE, w->actor + action, &w->critic, n));
    return read_width(text, KS_ENCODER_TEXT + KS_MODEL_MODULE, w->critic, &model, n);
}
