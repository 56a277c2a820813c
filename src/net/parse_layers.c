/* Reads the layers of a description line by line. The bodies of containers and of `repeat` are read
 * by recursion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/line.h"
#include "core/memory.h"
#include "net/parser.h"

enum { MAX_LAYERS = 4096, MAX_REPEATS = 1024, MAX_DEPTH = 16 };

/* Reads the next line that is not blank into p->line; n_words = 0 at the end of the text. */
ks_status KS(parser_line)(struct KS(parser) *p)
{
    while (*p->next) {
        size_t length = strcspn(p->next, "\n");

        KS_TRY(ks_line_split(&p->line, p->source, ++p->number, p->next));
        p->next += length + (p->next[length] == '\n');
        if (p->line.n_words > 0)
            return KS_OK;
    }
    p->line.n_words = 0;
    p->line.number = p->number;
    p->line.source = p->source;
    return KS_OK;
}

/* What other libraries call our layers and losses. */
static const struct ks_near_alias aliases[] = {{"linear", "dense"},
                                               {"fc", "dense"},
                                               {"fullyconnected", "dense"},
                                               {"conv", "conv2d"},
                                               {"bn", "batchnorm"},
                                               {"batchnorm1d", "batchnorm"},
                                               {"ln", "layernorm"},
                                               {"gn", "groupnorm"},
                                               {"swish", "silu"},
                                               {"normalize", "l2norm"},
                                               {"skip", "residual"},
                                               {"l2", "mse"},
                                               {"mseloss", "mse"},
                                               {"huberloss", "huber"},
                                               {"smoothl1", "huber"},
                                               {"smoothl1loss", "huber"},
                                               {"crossentropy", "ce"},
                                               {"crossentropyloss", "ce"},
                                               {"categorical", "ce"},
                                               {"c51", "ce"},
                                               {"hlgauss", "ce"},
                                               {"twohot", "ce"},
                                               {"quantilehuber", "quantile"},
                                               {"qrdqn", "quantile"},
                                               {NULL, NULL}};

enum { MAX_NAMES = 64 };

ks_status KS(parser_unknown)(const struct KS(parser) *p, const char *what, const char *found,
                             const char *const *known)
{
    char list[512] = "";
    const char *near;
    size_t n = 0;

    for (size_t used = 0; known[n] && used < sizeof list; n++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "",
                                 known[n]);
    near = ks_near(found, n, known, aliases);
    return ks_line_fail(&p->line, "unknown %s '%s'%s%s%s (known: %s)", what, found,
                        near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

static ks_status unknown_layer(const struct KS(parser) *p)
{
    const char *known[MAX_NAMES] = {NULL};
    size_t n = 0;

    for (; n < MAX_NAMES - 3 && KS(layer_kinds)[n]; n++)
        known[n] = KS(layer_kinds)[n]->name;
    known[n++] = "repeat";
    known[n] = "loss";
    return KS(parser_unknown)(p, "layer", p->line.word[0], known);
}

static const struct KS(layer_kind) *find_layer_kind(const char *name)
{
    for (size_t i = 0; KS(layer_kinds)[i]; i++)
        if (strcmp(name, KS(layer_kinds)[i]->name) == 0)
            return KS(layer_kinds)[i];
    return NULL;
}

/* Counts the layer's numbers, and takes the option trainable=no, which every layer with parameters
 * has. The weight projection leaves frozen columns as they are. */
static ks_status count_numbers(struct KS(parser) *p, struct KS(layer) *l)
{
    static const char *const no_yes[] = {"no", "yes", NULL};
    size_t trainable = true, numbers = 0;

    for (size_t i = 0; i < l->n_params; i++)
        numbers += KS(array_size)(&l->param[i]);
    for (size_t i = 0; i < l->n_states; i++)
        l->states += KS(array_size)(&l->state[i]);
    if (numbers == 0 && ks_line_has_option(&p->line, "trainable"))
        return ks_line_fail(&p->line, "trainable: this '%s' has no parameters", l->kind->name);
    KS_TRY(ks_line_option_choice(&p->line, "trainable", no_yes, &trainable));
    l->parameters = trainable ? numbers : 0;
    l->frozen = trainable ? 0 : numbers;
    l->sphere_rows = trainable ? l->sphere_rows : 0;
    return KS_OK;
}

/* Parses a layer's line. */
static ks_status read_layer(struct KS(parser) *p, struct KS(layer) *l)
{
    l->kind = find_layer_kind(p->line.word[0]);
    if (!l->kind)
        return unknown_layer(p);
    if (p->line.opens && !l->kind->container)
        return ks_line_fail(&p->line, "'%s' is not a container", l->kind->name);
    if (l->kind->first && (p->arch->n_layers > 0 || p->depth > 0))
        return ks_line_fail(&p->line, "'%s' is only allowed as the first layer", l->kind->name);
    l->in = p->arch->out;
    l->network_in = p->arch->in;
    l->in_image = p->image;
    if (l->kind->role == KS_ACTIVATION)
        l->out_image = p->image;
    l->body = p->arch->n_layers;
    if (l->kind->configure)
        KS_TRY(l->kind->configure(l, &p->line));
    KS_TRY(count_numbers(p, l));
    return ks_line_end(&p->line);
}

static ks_status append(struct KS(parser) *p, const struct KS(layer) *l)
{
    struct KS(arch) *arch = p->arch;

    if (arch->n_layers == MAX_LAYERS)
        return ks_line_fail(&p->line, "more than %d layers", MAX_LAYERS);
    KS_TRY(ks_grow(arch->n_layers, sizeof *arch->layer, &p->room, &arch->layer));
    arch->layer[arch->n_layers] = *l;
    arch->layer[arch->n_layers++].number = p->layers;
    p->layers += !l->kind->uncounted;
    arch->out = l->out;
    p->image = l->out_image;
    p->last_depth = p->depth;
    return KS_OK;
}

/* Appends the layer to the description, which then owns l->settings, if `parsed` is KS_OK. Frees
 * the settings and returns the failure otherwise. */
static ks_status add_layer(struct KS(parser) *p, struct KS(layer) *l, ks_status parsed)
{
    const ks_status status = parsed == KS_OK ? append(p, l) : parsed;

    if (status != KS_OK)
        free(l->settings);
    return status;
}

/* Checks that a container's line ends in '{' and is not nested too deeply. */
static ks_status check_opening(const struct KS(parser) *p)
{
    if (!p->line.opens)
        return ks_line_fail(&p->line, "'%s' needs '{' at the end of its line", p->line.word[0]);
    if (p->depth == MAX_DEPTH)
        return ks_line_fail(&p->line, "containers nest deeper than %d", MAX_DEPTH);
    return KS_OK;
}

/* Parses a body up to its '}'. Line number `opened` opened it, with the keyword `name`. */
static ks_status parse_body(struct KS(parser) *p, const char *name, size_t opened)
{
    size_t layers = p->arch->n_layers;

    p->depth++;
    KS_TRY(KS(parse_block)(p));
    p->depth--;
    if (p->arch->n_layers == layers)
        return ks_line_fail(&p->line, "the '%s' opened in line %zu is empty", name, opened);
    return KS_OK;
}

static ks_status parse_container(struct KS(parser) *p, const struct KS(layer) *l)
{
    size_t opened = p->number;

    KS_TRY(check_opening(p));
    KS_TRY(parse_body(p, l->kind->name, opened));
    if (p->arch->out != l->in)
        return ks_line_fail(&p->line,
                            "the body of the '%s' opened in line %zu: expected %zu output columns, "
                            "as many as inputs, found %zu",
                            l->kind->name, opened, l->in, p->arch->out);
    return KS_OK;
}

/* A row of branches: all see the features before the first one. */
struct row {
    size_t branches; /* how many of them have been read */
    size_t width;    /* columns of these features       */
};

static bool is_branch(const struct KS(parser) *p)
{
    return p->line.n_words > 0 && strcmp(p->line.word[0], KS(branch).name) == 0;
}

/* Adds a layer that takes the features [from:to]. It has no number of its own. */
static ks_status add_slice(struct KS(parser) *p, size_t from, size_t to)
{
    struct KS(layer) l = {.kind = &KS(slice), .in = p->arch->out, .body = p->arch->n_layers};
    struct ks_line line;
    char text[64];

    snprintf(text, sizeof text, "slice [%zu:%zu]", from, to);
    KS_TRY(ks_line_split(&line, p->source, p->number, text));
    return add_layer(p, &l, l.kind->configure(&l, &line));
}

/* Parses a branch's line and body. Its output is appended to the features, whose first `width`
 * columns are those that all branches of the row see. */
static ks_status parse_branch_body(struct KS(parser) *p, struct row *row, struct KS(layer) *l)
{
    size_t opened = p->number, heads = p->heads;

    KS_TRY(read_layer(p, l));
    KS_TRY(check_opening(p));
    if (row->branches++ == 0)
        row->width = l->in;
    else
        KS_TRY(add_slice(p, 0, row->width));
    p->in_branch = p->depth == 0;
    KS_TRY(parse_body(p, l->kind->name, opened));
    p->in_branch = false;
    l->out = l->in + p->arch->out;
    l->head = p->heads > heads ? p->heads : 0;
    return KS_OK;
}

static ks_status parse_branch(struct KS(parser) *p, struct row *row)
{
    struct KS(layer) l = {.kind = NULL};
    const ks_status status = parse_branch_body(p, row, &l);

    return add_layer(p, &l, status);
}

/* Removes the features that all branches of the row saw, so that only the outputs of the branches
 * are left. */
static ks_status end_branches(struct KS(parser) *p, struct row *row)
{
    KS_TRY(add_slice(p, row->width, p->arch->out));
    if (p->heads > 0 && p->heads != row->branches)
        return ks_line_fail(&p->line, "expected a loss in each of the %zu branches, found %zu",
                            row->branches, p->heads);
    row->branches = 0;
    return KS_OK;
}

static ks_status parse_layer(struct KS(parser) *p)
{
    struct KS(layer) l = {.kind = NULL};
    ks_status status = read_layer(p, &l);

    if (status == KS_OK && l.kind->container)
        status = parse_container(p, &l);
    return add_layer(p, &l, status);
}

/* repeat K { ... }: parses the text of the body K times, so that every copy has its own parameters.
 */
static ks_status parse_repeat(struct KS(parser) *p)
{
    size_t repeats = 0, opened = p->number;
    const char *body = p->next;

    KS_TRY(ks_line_argument_size(&p->line, "a number of repetitions", 1, MAX_REPEATS, &repeats));
    KS_TRY(ks_line_end(&p->line));
    KS_TRY(check_opening(p));
    for (size_t i = 0; i < repeats; i++) {
        p->next = body;
        p->number = opened;
        KS_TRY(parse_body(p, "repeat", opened));
    }
    return KS_OK;
}

/* Parses up to the '}' that closes this block, or to the line that ends the text. */
ks_status KS(parse_block)(struct KS(parser) *p)
{
    bool inside = p->depth > 0, in_branch = p->in_branch;
    struct row row = {0};

    for (;;) {
        const char *word;

        KS_TRY(KS(parser_line)(p));
        p->in_branch = false;
        if (row.branches > 0 && !is_branch(p))
            KS_TRY(end_branches(p, &row));
        if (!inside && p->heads > 0 && row.branches == 0)
            return KS(parse_heads_end)(p);
        if (p->line.n_words == 0)
            return ks_line_fail(&p->line, inside
                                              ? "a '{' is never closed"
                                              : "the line 'loss ...' or 'policy ...' is missing");
        word = p->line.word[0];
        if (strcmp(word, "}") == 0) {
            if (!inside || p->line.n_words > 1 || p->line.opens)
                return ks_line_fail(&p->line,
                                    inside ? "'}' must be alone on its line" : "'}' without a '{'");
            return KS_OK;
        }
        if (strcmp(word, "loss") == 0 && in_branch)
            return KS(parse_head)(p);
        if (strcmp(word, "loss") == 0 || strcmp(word, "policy") == 0 ||
            strcmp(word, "outputs") == 0)
            return KS(parse_end)(p);
        KS_TRY(strcmp(word, "repeat") == 0 ? parse_repeat(p)
               : is_branch(p)              ? parse_branch(p, &row)
                                           : parse_layer(p));
    }
}
