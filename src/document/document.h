/* A document of sections, paragraphs, lists, lines, tables and figures: what people read. It is
 * printed on a terminal or as HTML. Its texts may come from files: both printers escape them. Only
 * in a format, and never in its arguments, tags have a meaning, those of ks_document_tags:
 *
 *     ks_document_add(d, KS_BLOCK_TEXT, "<b>%s</b> has the largest <i>kappa</i>", name);
 *     ks_document_more(d, ", seen in <a href='#plot-%s'>the plot</a>.", name);
 *
 * Whoever adds checks nothing: the first failure is kept in `status`, and nothing is added after
 * it. A document that is zeroed is empty. */
#ifndef KS_DOCUMENT_DOCUMENT_H
#define KS_DOCUMENT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "core/interval.h"

/* --- cells of a table --- */

enum ks_cell_look {
    KS_CELL_NUMBER, /* to the right; also the heading of such a column */
    KS_CELL_TEXT,   /* to the left                                     */
    KS_CELL_NAME,   /* to the left: what the row is about              */
    KS_CELL_YES,    /* to the left: a good verdict, coloured on a page */
    KS_CELL_NO,     /* likewise, a bad one                             */
    KS_CELL_NONE,   /* in place of a number that is not known          */
    KS_CELL_FILTER  /* not shown: what a page's filter knows of the row */
};

enum { KS_CELL_PRINTED = 96 };

/* A cell is passed by value; adding it copies its texts. */
struct ks_cell {
    enum ks_cell_look look;
    const char *text; /* what is shown; NULL: `printed` is                   */
    char printed[KS_CELL_PRINTED];
    double key;       /* by which a column is sorted on a page; NaN: by text */
    const char *note; /* small print behind or below it, in lines; NULL: none */
    size_t width;     /* on a terminal, the least width of its column        */
    const char *link; /* where a click leads to; NULL: nowhere. Of a filter, and of a cell of
                       * KS_BLOCK_OPENS: its name */
};

struct ks_cell ks_cell_text(const char *text);
struct ks_cell ks_cell_name(const char *text);
/* The heading of a column of numbers. */
struct ks_cell ks_cell_heading(const char *text);
/* A whole number; a number with this many significant digits, or behind the point. An infinite
 * number is "infinite", a NaN is "-". */
struct ks_cell ks_cell_count(size_t number);
struct ks_cell ks_cell_digits(int digits, double number);
struct ks_cell ks_cell_fixed(int decimals, double number);
/* A lower bound: rounded down, so that it stays one. */
struct ks_cell ks_cell_at_least(int digits, double bound);
/* An interval as ks_interval_text prints it. */
struct ks_cell ks_cell_interval(struct ks_interval interval, enum ks_interval_style style);
/* A number that the caller has printed, with its key; a NaN: it is not known. */
struct ks_cell ks_cell_printed(const char *text, double key);
/* The last cells of a row: "data-NAME" of it on a page. */
struct ks_cell ks_cell_filter(const char *name, const char *value);
/* The cell, but with `word` if its number is NaN; with small print, if that is not empty; with a
 * link; in a column of at least this width on a terminal. */
struct ks_cell ks_cell_or(struct ks_cell cell, const char *word);
struct ks_cell ks_cell_note(struct ks_cell cell, const char *note);
struct ks_cell ks_cell_link(struct ks_cell cell, const char *link);
struct ks_cell ks_cell_wide(struct ks_cell cell, size_t width);

/* Several cells as two arguments of a function: their number and an array. */
#define KS_CELLS(...)                                                                              \
    sizeof((struct ks_cell[]){__VA_ARGS__}) / sizeof(struct ks_cell), (struct ks_cell[])           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* --- documents --- */

enum ks_block_kind {
    KS_BLOCK_SECTION,    /* a title                                                       */
    KS_BLOCK_SUBSECTION, /* a title in a section                                          */
    KS_BLOCK_TEXT,       /* a paragraph                                                   */
    KS_BLOCK_WORDS,      /* words that a template has in a line of its own              */
    KS_BLOCK_NOTE,       /* a paragraph in small print                                    */
    KS_BLOCK_ITEM,       /* an entry of a list                                            */
    KS_BLOCK_LINE,       /* a name and its value, which is the only cell                  */
    KS_BLOCK_TABLE,      /* starts a table with the headings; its text is its id on a page */
    KS_BLOCK_ROW,        /* a row of the table                                            */
    KS_BLOCK_HEADS,      /* titles of the columns of lines that open: a text, four cells  */
    KS_BLOCK_OPENS,      /* such a line: on a page it opens to the blocks up to the next line or
                          * title                                                         */
    KS_BLOCK_FIGURE      /* the path of an SVG file: on a page it is drawn. A cell, if it has one,
                          * is its caption, with the title as small print, and its id as link; the
                          * path may be empty then, and the caption says why         */
};

/* In texts, the characters KS_MARK, KS_MARK + 1, ... stand in place of the tags <b>, </b>, <i>,
 * </i>, <code>, </code>, <a href=', '> and </a>. */
enum { KS_MARK = 14, KS_MARK_ADDRESS = 20, KS_TAGS = 9 };
#define KS_MARKS "\16\17\20\21\22\23\24\25\26"
extern const char *const ks_document_tags[KS_TAGS];

struct ks_block {
    enum ks_block_kind kind;
    char *text; /* owned                         */
    size_t n, room;
    struct ks_cell *cell; /* [n]; owned, with its texts    */
};

struct ks_document {
    size_t n, room;
    struct ks_block *block; /* [n]; owned                                           */
    size_t printed;         /* blocks that ks_document_print has printed            */
    ks_status status;       /* the first failure                                    */
};

/* Adds a block with this text, printed like printf. */
void ks_document_add(struct ks_document *document, enum ks_block_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds "NAME  VALUE", the value printed like printf. */
void ks_document_line(struct ks_document *document, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Appends to the text of the block that was added last, or to the value of a line. */
void ks_document_more(struct ks_document *document, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Starts a table. `id` names it on a page, where its columns can be sorted; "": it has no id. */
void ks_document_table(struct ks_document *document, const char *id, size_t n,
                       const struct ks_cell *headings);
/* Likewise, with headings in one text, which is printed like printf: "layer<, kind<, units, dead".
 * Columns stand to the right; one whose heading ends in '<', to the left. */
void ks_document_columns(struct ks_document *document, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a row: ks_document_row(d, KS_CELLS(a, b)), or ks_document_cells(d, a, b). */
void ks_document_row(struct ks_document *document, size_t n, const struct ks_cell *cells);
#define ks_document_cells(document, ...) ks_document_row((document), KS_CELLS(__VA_ARGS__))
/* Adds a cell to the block that was added last. */
void ks_document_cell(struct ks_document *document, struct ks_cell cell);
void ks_document_clear(struct ks_document *document);

/* The most characters of a line that this program's documents have on a terminal. */
enum { KS_DOCUMENT_WIDTH = 100 };

/* Prints what has been added since the last call for a terminal: paragraphs, without their cells,
 * in lines of at most `width` bytes; tables and lines with a long value may be wider. Fails with
 * `status`, before it prints. */
ks_status ks_document_print(struct ks_document *document, size_t width, FILE *out);
/* Prints it as HTML, each section as a <section>. All ids in it start with `id`, so that a page can
 * have several documents. Fails with `status`, before it prints; with KS_IO or KS_FORMAT if a
 * figure's file cannot be read or is not SVG. */
ks_status ks_document_html(const struct ks_document *document, const char *id, FILE *out);

#endif
