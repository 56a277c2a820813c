/* Descriptions of networks, and their parser: it reads line by line; the bodies of containers and
 * of `repeat` are read by recursion. */
#include "net/arch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/process.h"

enum { MAX_BYTES = 1 << 20, MAX_LAYERS = 4096, MAX_REPEATS = 1024, MAX_DEPTH = 16 };

size_t KS(array_size)(const struct ks_array *a)
{
    return (a->rows > 0 ? a->rows : 1) * a->columns;
}

void KS(arch_place)(struct KS(arch) *arch)
{
    arch->parameters = arch->states = arch->frozen = 0;
    arch->joint = arch->reads_state = false;
    for (size_t i = 0; i < arch->n_layers; i++) {
        struct KS(layer) *l = &arch->layer[i];

        l->offset = arch->parameters;
        l->state_offset = arch->states;
        arch->parameters += l->parameters;
        arch->states += l->states;
        arch->joint = arch->joint || l->kind->couples_rows;
        arch->reads_state = arch->reads_state || l->reads_state;
    }
    for (size_t i = 0; i < arch->n_layers; i++) {
        struct KS(layer) *l = &arch->layer[i];

        if (l->frozen > 0)
            l->offset = arch->parameters + arch->frozen;
        arch->frozen += l->frozen;
    }
}

struct parser {
    const char *source, *next; /* the unread text        */
    size_t number;             /* of the current line    */
    size_t depth;              /* number of open containers */
    size_t layers;             /* numbers assigned so far */
    size_t last_depth;         /* of the last layer */
    size_t room;               /* capacity of arch->layer */
    struct KS(arch) *arch;
    struct ks_image image; /* that the last layer's output is */
    bool in_branch;        /* the innermost open container is a branch, and the only open one */
    size_t heads;          /* branches that ended in a loss */
    struct KS(loss) *head; /* their losses; owned until a description takes them */
    struct ks_line line;
};

/* Reads the next line that is not blank into p->line; n_words = 0 at the end of the text. */
static ks_status next_line(struct parser *p)
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

/* What other libraries call our layers. */
static const struct ks_near_alias aliases[] = {
    {"linear", "dense"},     {"fc", "dense"},      {"fullyconnected", "dense"},
    {"conv", "conv2d"},      {"bn", "batchnorm"},  {"batchnorm1d", "batchnorm"},
    {"ln", "layernorm"},     {"gn", "groupnorm"},  {"swish", "silu"},
    {"normalize", "l2norm"}, {"skip", "residual"}, {NULL, NULL}};

#define ONE(name) +1

/* Sets l->kind to the kind that the line starts with. */
static ks_status find_kind(const struct parser *p, struct KS(layer) *l)
{
    enum { KINDS = KS_LAYER_KINDS(ONE) };
    const char *known[KINDS + 3] = {NULL};
    size_t n = 0;

    for (; KS(layer_kinds)[n]; n++) {
        known[n] = KS(layer_kinds)[n]->name;
        if (strcmp(p->line.word[0], known[n]) == 0)
            l->kind = KS(layer_kinds)[n];
    }
    known[n++] = "repeat";
    known[n] = "loss";
    return l->kind ? KS_OK : ks_line_unknown(&p->line, "layer", p->line.word[0], known, aliases);
}

/* Counts the layer's numbers, and takes the option trainable=no, which every layer with parameters
 * has. The weight projection leaves frozen columns as they are. */
static ks_status count_numbers(struct parser *p, struct KS(layer) *l)
{
    bool trainable = true;
    size_t numbers = 0;

    for (size_t i = 0; i < l->n_params; i++)
        numbers += KS(array_size)(&l->param[i]);
    for (size_t i = 0; i < l->n_states; i++)
        l->states += KS(array_size)(&l->state[i]);
    if (numbers == 0 && ks_line_has_option(&p->line, "trainable"))
        return ks_line_fail(&p->line, "trainable: this '%s' has no parameters", l->kind->name);
    KS_TRY(ks_line_option_flag(&p->line, "trainable", &trainable));
    l->parameters = trainable ? numbers : 0;
    l->frozen = trainable ? 0 : numbers;
    l->sphere_rows = trainable ? l->sphere_rows : 0;
    return KS_OK;
}

/* Parses a layer's line. */
static ks_status read_layer(struct parser *p, struct KS(layer) *l)
{
    KS_TRY(find_kind(p, l));
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
    KS_TRY(KS(layer_configure)(l, &p->line));
    KS_TRY(count_numbers(p, l));
    return ks_line_end(&p->line);
}

static ks_status append(struct parser *p, const struct KS(layer) *l)
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
static ks_status add_layer(struct parser *p, struct KS(layer) *l, ks_status parsed)
{
    const ks_status status = parsed == KS_OK ? append(p, l) : parsed;

    if (status != KS_OK)
        free(l->settings);
    return status;
}

/* Checks that a container's line ends in '{' and is not nested too deeply. */
static ks_status check_opening(const struct parser *p)
{
    if (!p->line.opens)
        return ks_line_fail(&p->line, "'%s' needs '{' at the end of its line", p->line.word[0]);
    if (p->depth == MAX_DEPTH)
        return ks_line_fail(&p->line, "containers nest deeper than %d", MAX_DEPTH);
    return KS_OK;
}

static ks_status parse_block(struct parser *p);

/* Parses a body up to its '}'. Line number `opened` opened it, with the keyword `name`. */
static ks_status parse_body(struct parser *p, const char *name, size_t opened)
{
    size_t layers = p->arch->n_layers;

    p->depth++;
    KS_TRY(parse_block(p));
    p->depth--;
    if (p->arch->n_layers == layers)
        return ks_line_fail(&p->line, "the '%s' opened in line %zu is empty", name, opened);
    return KS_OK;
}

static ks_status parse_container(struct parser *p, const struct KS(layer) *l)
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

static bool is_branch(const struct parser *p)
{
    return p->line.n_words > 0 && strcmp(p->line.word[0], KS(branch).name) == 0;
}

/* Adds a layer that takes the features [from:to]. It has no number of its own. */
static ks_status add_slice(struct parser *p, size_t from, size_t to)
{
    struct KS(layer) l = {.kind = &KS(slice), .in = p->arch->out, .body = p->arch->n_layers};
    struct ks_line line;
    char text[64];

    snprintf(text, sizeof text, "slice [%zu:%zu]", from, to);
    KS_TRY(ks_line_split(&line, p->source, p->number, text));
    return add_layer(p, &l, KS(layer_configure)(&l, &line));
}

/* Parses the body of a branch. Its output is appended to the features, whose first `width` columns
 * are what all branches of the row see. */
static ks_status parse_branch(struct parser *p, struct row *row, struct KS(layer) *l)
{
    size_t opened = p->number, heads = p->heads;

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

/* Removes the features that all branches of the row saw, so that only the outputs of the branches
 * are left. */
static ks_status end_branches(struct parser *p, struct row *row)
{
    KS_TRY(add_slice(p, row->width, p->arch->out));
    if (p->depth == 0 && p->heads > 0 && p->heads != row->branches)
        return ks_line_fail(&p->line, "expected a loss in each of the %zu branches, found %zu",
                            row->branches, p->heads);
    row->branches = 0;
    return KS_OK;
}

static ks_status parse_layer(struct parser *p, struct row *row)
{
    struct KS(layer) l = {.kind = NULL};
    ks_status status = read_layer(p, &l);

    if (status == KS_OK && l.kind->container)
        status = l.kind->joins ? parse_branch(p, row, &l) : parse_container(p, &l);
    return add_layer(p, &l, status);
}

/* repeat K { ... }: parses the text of the body K times, so that every copy has its own parameters.
 */
static ks_status parse_repeat(struct parser *p)
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

/* Parses the loss of a head, which ends a branch, and the branch's '}'. */
static ks_status parse_head(struct parser *p)
{
    const struct KS(arch) *arch = p->arch;
    size_t room = p->heads;

    if (arch->n_layers == 0 || !arch->layer[arch->n_layers - 1].kind->head)
        return ks_line_fail(&p->line, "the last layer of a head must be a dense");
    KS_TRY(KS(loss_parse)(&p->line, p->arch->out, &p->arch->loss));
    KS_TRY(ks_grow(p->heads, sizeof *p->head, &room, &p->head));
    p->head[p->heads++] = arch->loss;
    KS_TRY(next_line(p));
    if (p->line.n_words != 1 || strcmp(p->line.word[0], "}") != 0)
        return ks_line_fail(&p->line, "expected the '}' of a branch after its loss");
    return KS_OK;
}

/* Ends a description whose last layers are heads: its loss is the sum of theirs. */
static ks_status parse_heads_end(struct parser *p)
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

/* Parses the last line of a description. `outputs` may follow any layer: another network reads
 * them. */
static ks_status parse_end(struct parser *p)
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
           : strcmp(word, "loss") == 0 ? KS(loss_parse)(&p->line, arch->out, &arch->loss)
                                       : KS(policy_parse)(&p->line, arch->out, &arch->policy));
    KS_TRY(next_line(p));
    if (p->line.n_words > 0)
        return ks_line_fail(&p->line,
                            "'%s' follows the last line of the description (loss or policy)",
                            p->line.word[0]);
    return KS_OK;
}

/* Parses up to the '}' that closes this block, or to the line that ends the text. */
static ks_status parse_block(struct parser *p)
{
    bool inside = p->depth > 0, in_branch = p->in_branch;
    struct row row = {0};

    for (;;) {
        const char *word;

        KS_TRY(next_line(p));
        p->in_branch = false;
        if (row.branches > 0 && !is_branch(p))
            KS_TRY(end_branches(p, &row));
        if (!inside && p->heads > 0 && row.branches == 0)
            return parse_heads_end(p);
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
            return parse_head(p);
        if (strcmp(word, "loss") == 0 || strcmp(word, "policy") == 0 ||
            strcmp(word, "outputs") == 0)
            return parse_end(p);
        KS_TRY(strcmp(word, "repeat") == 0 ? parse_repeat(p) : parse_layer(p, &row));
    }
}

static ks_status parse_all(struct parser *p, const char *text, size_t in)
{
    static const char MARK[] = "\xEF\xBB\xBF"; /* a byte order mark, which some editors write */

    KS_TRY(ks_copy_string(text + (strncmp(text, MARK, 3) == 0 ? 3 : 0), &p->arch->text));
    p->arch->in = p->arch->out = in;
    p->next = p->arch->text;
    KS_TRY(parse_block(p));
    KS(arch_place)(p->arch);
    if (p->arch->parameters == 0 && p->arch->frozen > 0)
        return ks_line_fail(&p->line, "expected a layer without trainable=no, found none");
    return KS_OK;
}

ks_status KS(arch_parse)(const char *text, const char *source, size_t in, struct KS(arch) **arch)
{
    struct parser p = {.source = source};
    ks_status status;

    *arch = NULL;
    KS_TRY(ks_alloc(1, sizeof *p.arch, &p.arch));
    status = parse_all(&p, text, in);
    free(p.head);
    if (status != KS_OK) {
        KS(arch_free)(p.arch);
        return status;
    }
    *arch = p.arch;
    return KS_OK;
}

ks_status KS(arch_read)(const char *path, char **text)
{
    KS_OWNED_BY(ks_path_close) FILE *file = NULL;
    KS_OWNED char *bytes = NULL;
    size_t length;

    *text = NULL;
    KS_TRY(ks_path_open(path, &file));
    KS_TRY(ks_alloc(MAX_BYTES + 1, 1, &bytes)); /* zeroed */
    length = fread(bytes, 1, MAX_BYTES + 1, file);
    if (ferror(file))
        return ks_fail(KS_IO, "%s: %s", path, strerror(errno));
    if (length > MAX_BYTES || memchr(bytes, '\0', length))
        return ks_fail(KS_FORMAT, "%s: expected a text of at most %d bytes", path, MAX_BYTES);
    *text = bytes, bytes = NULL;
    return KS_OK;
}

void KS(arch_free)(struct KS(arch) *arch)
{
    if (!arch)
        return;
    for (size_t i = 0; arch->layer && i < arch->n_layers; i++)
        free(arch->layer[i].settings);
    free(arch->layer);
    free(arch->loss.head);
    free(arch->text);
    free(arch);
}

bool KS(arch_is_head)(const struct KS(arch) *arch, const struct KS(layer) *layer)
{
    return layer == &arch->layer[arch->n_layers - 1];
}

void KS(arch_group)(const struct KS(layer) *layer, char name[32])
{
    snprintf(name, 32, "%02zu_%s", layer->number, layer->kind->name);
}
