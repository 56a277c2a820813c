/* The parser of descriptions: what its files share (arch.c, parse_layers.c, parse_end.c). */
#ifndef KS_NET_PARSER_H
#define KS_NET_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "net/arch.h"

struct KS(parser) {
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
ks_status KS(parser_line)(struct KS(parser) *p);
/* Fails: "unknown WHAT 'found'", with the known words and the nearest one. `known` ends in NULL. */
ks_status KS(parser_unknown)(const struct KS(parser) *p, const char *what, const char *found,
                             const char *const *known);

/* Parses up to the '}' that closes this block, or to the end of the description. */
ks_status KS(parse_block)(struct KS(parser) *p);
/* Parses the last line of a description, `loss`, `policy` or `outputs`, which is p->line. */
ks_status KS(parse_end)(struct KS(parser) *p);
/* Parses the loss of a head, p->line, which ends a branch, and its '}'. */
ks_status KS(parse_head)(struct KS(parser) *p);
/* Ends a description whose last layers are heads: its loss is the sum of theirs. */
ks_status KS(parse_heads_end)(struct KS(parser) *p);

#endif
