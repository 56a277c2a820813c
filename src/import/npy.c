#include "import/npy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool ks_npy_start(const unsigned char start[KS_NPY_START], size_t *length)
{
    *length = (size_t)start[8] | (size_t)start[9] << 8;
    return memcmp(start, "\x93NUMPY", 6) == 0 && start[6] >= 1 && start[6] <= 3 && start[7] == 0;
}

static void skip_spaces(const char **c)
{
    while (isspace((unsigned char)**c))
        (*c)++;
}

/* Skips spaces and then the word, if it is there. */
static bool skip(const char **c, const char *word)
{
    const size_t length = strlen(word);

    skip_spaces(c);
    if (strncmp(*c, word, length) != 0)
        return false;
    *c += length;
    return true;
}

/* Reads 'text' or "text" without escapes. */
static bool read_quoted(const char **c, size_t size, char *text)
{
    const char *end;

    skip_spaces(c);
    if (**c != '\'' && **c != '"')
        return false;
    end = strchr(*c + 1, **c);
    if (!end || (size_t)(end - *c) > size)
        return false;
    memcpy(text, *c + 1, (size_t)(end - *c - 1));
    text[end - *c - 1] = '\0';
    *c = end + 1;
    return true;
}

/* Sets the type from a code such as "<f4": byte order, kind and number of bytes. */
static void set_type(struct ks_stored *s, const char *text)
{
    static const struct {
        const char *code, *name;
    } known[] = {{"f2", "float16"}, {"f4", "float32"}, {"f8", "float64"}};

    ks_stored_set_type(s, text);
    s->big_endian = text[0] == '>';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((text[0] == '<' || text[0] == '>') && strcmp(text + 1, known[i].code) == 0)
            ks_stored_set_type(s, known[i].name);
}

/* Reads a shape such as (), (3,) or (3, 4). */
static bool read_shape(const char **c, struct ks_stored *s)
{
    if (!skip(c, "("))
        return false;
    for (s->n_dims = 0; !skip(c, ")");) {
        size_t dim = 0;

        if (s->n_dims == KS_STORED_DIMS || !isdigit((unsigned char)**c))
            return false;
        for (; isdigit((unsigned char)**c); (*c)++) {
            if (dim > (SIZE_MAX - 9) / 10)
                return false;
            dim = 10 * dim + (size_t)(**c - '0');
        }
        s->dims[s->n_dims++] = dim;
        if (!skip(c, ",") && (skip_spaces(c), **c != ')'))
            return false;
    }
    return true;
}

bool ks_npy_header(const char *text, struct ks_stored *s)
{
    bool type = false, order = false, shape = false;
    const char *c = text;
    char word[KS_STORED_TYPE];

    if (!skip(&c, "{"))
        return false;
    while (!skip(&c, "}")) {
        if (!read_quoted(&c, sizeof word, word) || !skip(&c, ":"))
            return false;
        if (strcmp(word, "descr") == 0) {
            if (skip(&c, "[") || !read_quoted(&c, sizeof word, word)) {
                ks_stored_set_type(s, "structured");
                return true;
            }
            set_type(s, word);
            type = true;
        } else if (strcmp(word, "fortran_order") == 0) {
            s->first_fastest = skip(&c, "True");
            order = s->first_fastest || skip(&c, "False");
        } else if (strcmp(word, "shape") == 0) {
            shape = read_shape(&c, s);
            if (!shape)
                return false;
        } else {
            return false;
        }
        skip(&c, ",");
    }
    return type && order && shape;
}
