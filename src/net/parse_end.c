/* The end of a description: its loss, the losses of its heads, its policy, or `outputs`. */
#include <string.h>

#include "core/memory.h"
#include "net/parser.h"

enum { MAX_NAMES = 64 };

static ks_status parse_loss(struct KS(parser) *p)
{
    struct KS(arch) *arch = p->arch;
    const char *known[MAX_NAMES] = {NULL};

    arch->loss = (struct KS(loss)){.outputs = arch->out, .targets = arch->out, .weight = 1};
    for (size_t i = 0; i < MAX_NAMES - 1 && KS(loss_kinds)[i]; i++) {
        known[i] = KS(loss_kinds)[i]->name;
        if (p->line.n_words > 1 && strcmp(p->line.word[1], KS(loss_kinds)[i]->name) == 0)
            arch->loss.kind = KS(loss_kinds)[i];
    }
    if (!arch->loss.kind)
        return KS(parser_unknown)(p, "loss", p->line.n_words > 1 ? p->line.word[1] : "", known);
    p->line.taken[1] = true;
    KS_TRY(ks_line_option_number(&p->line, "weight", 1e-12, 1e12, &arch->loss.weight));
    if (arch->loss.kind->configure)
        KS_TRY(arch->loss.kind->configure(&arch->loss, &p->line));
    return ks_line_end(&p->line);
}

/* Parses the loss of a head, which ends a branch, and the branch's '}'. */
ks_status KS(parse_head)(struct KS(parser) *p)
{
    const struct KS(arch) *arch = p->arch;
    size_t room = p->heads;

    if (arch->n_layers == 0 || !arch->layer[arch->n_layers - 1].kind->head)
        return ks_line_fail(&p->line, "the last layer of a head must be a dense");
    KS_TRY(parse_loss(p));
    KS_TRY(ks_grow(p->heads, sizeof *p->head, &room, &p->head));
    p->head[p->heads++] = arch->loss;
    KS_TRY(KS(parser_line)(p));
    if (p->line.n_words != 1 || strcmp(p->line.word[0], "}") != 0)
        return ks_line_fail(&p->line, "expected the '}' of a branch after its loss");
    return KS_OK;
}

/* Ends a description whose last layers are heads: its loss is the sum of theirs. */
ks_status KS(parse_heads_end)(struct KS(parser) *p)
{
    struct KS(loss) *loss = &p->arch->loss;

    if (p->line.n_words > 0)
        return ks_line_fail(&p->line, "'%s' follows the last branch with a loss", p->line.word[0]);
    *loss = (struct KS(loss)){
        .kind = &KS(heads), .weight = 1, .n_heads = p->heads, .head = p->head};
    p->head = NULL;
    for (size_t k = 0; k < loss->n_heads; k++) {
        loss->outputs += loss->head[k].outputs;
        loss->targets += loss->head[k].targets;
    }
    return KS_OK;
}

static ks_status parse_shift(struct KS(parser) *p)
{
    p->arch->policy = (struct ks_policy){.actions = p->arch->out, .shift = true, .gain = 0.01};
    KS_TRY(ks_line_option_number(&p->line, "gain", 1e-12, 1e12, &p->arch->policy.gain));
    return ks_line_end(&p->line);
}

static ks_status parse_tanh_gaussian(struct KS(parser) *p)
{
    static const char *const bounds[] = {"clip", "squash", NULL};
    struct ks_policy *policy = &p->arch->policy;
    size_t squash = 0;

    policy->log_std_min = -10;
    policy->log_std_max = 2;
    KS_TRY(ks_line_option_choice(&p->line, "log-std", bounds, &squash));
    KS_TRY(ks_line_option_number(&p->line, "min", -100, 100, &policy->log_std_min));
    KS_TRY(ks_line_option_number(&p->line, "max", -100, 100, &policy->log_std_max));
    policy->squash = squash;
    if (!(policy->log_std_min < policy->log_std_max))
        return ks_line_fail(&p->line, "policy: expected min < max, found %g and %g",
                            policy->log_std_min, policy->log_std_max);
    if (p->arch->out % 2 != 0)
        return ks_line_fail(&p->line, "policy: expected an even number of outputs, found %zu",
                            p->arch->out);
    policy->actions = p->arch->out / 2;
    return ks_line_end(&p->line);
}

static ks_status parse_tanh(struct KS(parser) *p)
{
    p->arch->policy = (struct ks_policy){.actions = p->arch->out, .fixed = true};
    return ks_line_end(&p->line);
}

static ks_status parse_policy(struct KS(parser) *p)
{
    static const char *const known[] = {"tanh-gaussian", "shift", "tanh", NULL};
    static ks_status (*const parse[])(struct KS(parser) *p) = {parse_tanh_gaussian, parse_shift,
                                                               parse_tanh};
    const char *word = p->line.n_words > 1 ? p->line.word[1] : "";

    for (size_t i = 0; known[i]; i++)
        if (strcmp(word, known[i]) == 0) {
            p->line.taken[1] = true;
            return parse[i](p);
        }
    return KS(parser_unknown)(p, "policy", word, known);
}

/* Parses the last line of a description. `outputs` may follow any layer: another network reads
 * them. */
ks_status KS(parse_end)(struct KS(parser) *p)
{
    struct KS(arch) *arch = p->arch;
    const char *word = p->line.word[0];
    const bool outputs = strcmp(word, "outputs") == 0;

    if (p->line.opens)
        return ks_line_fail(&p->line, "'%s' is not a container", word);
    if (p->depth > 0)
        return ks_line_fail(&p->line, "'%s' is not allowed inside a container", word);
    if (arch->n_layers == 0 ||
        (!outputs && (p->last_depth > 0 || !arch->layer[arch->n_layers - 1].kind->head)))
        return ks_line_fail(&p->line, outputs
                                          ? "expected a layer before 'outputs'"
                                          : "the last layer must be a dense outside any container");
    KS_TRY(outputs                     ? ks_line_end(&p->line)
           : strcmp(word, "loss") == 0 ? parse_loss(p)
                                       : parse_policy(p));
    KS_TRY(KS(parser_line)(p));
    if (p->line.n_words > 0)
        return ks_line_fail(&p->line,
                            "'%s' follows the last line of the description (loss or policy)",
                            p->line.word[0]);
    return KS_OK;
}
