#include "import/msgpack_bounds.h"

#include <stdint.h>

enum { DEEPEST = 24, MOST = 1 << 20 };

/* What the first bytes of an object say. */
struct header {
    size_t length;     /* bytes of the header itself     */
    uint64_t payload;  /* bytes that follow the header   */
    uint64_t children; /* objects that follow            */
};

/* The formats 0xc0 to 0xdf. The first byte is followed by a number of `length` bytes. Behind it
 * there are `bytes` times this number plus `fixed` bytes, and `children` times this number of
 * objects. */
static const struct {
    unsigned char length, bytes, children, fixed;
} formats[] = {
    {0, 0, 0, 0},  {0},          {0, 0, 0, 0}, {0, 0, 0, 0}, /* nil, unused, false, true */
    {1, 1, 0, 0},  {2, 1, 0, 0}, {4, 1, 0, 0},               /* bin                      */
    {1, 1, 0, 1},  {2, 1, 0, 1}, {4, 1, 0, 1},               /* ext: and its type        */
    {0, 0, 0, 4},  {0, 0, 0, 8},                             /* float                    */
    {0, 0, 0, 1},  {0, 0, 0, 2}, {0, 0, 0, 4}, {0, 0, 0, 8}, /* uint                     */
    {0, 0, 0, 1},  {0, 0, 0, 2}, {0, 0, 0, 4}, {0, 0, 0, 8}, /* int                      */
    {0, 0, 0, 2},  {0, 0, 0, 3}, {0, 0, 0, 5}, {0, 0, 0, 9}, /* fixext: and its type     */
    {0, 0, 0, 17}, {1, 1, 0, 0}, {2, 1, 0, 0}, {4, 1, 0, 0}, /* fixext 16, str           */
    {2, 0, 1, 0},  {4, 0, 1, 0}, {2, 0, 2, 0}, {4, 0, 2, 0}, /* array, map               */
};

static bool read_header(const unsigned char *c, size_t left, struct header *h)
{
    uint64_t number = 0;

    *h = (struct header){.length = 1};
    if (left == 0 || c[0] == 0xc1) /* never used */
        return false;
    if (c[0] < 0x80 || c[0] >= 0xe0) /* a small integer */
        return true;
    if (c[0] < 0xa0) { /* a small map or list */
        h->children = (c[0] & 15u) * (c[0] < 0x90 ? 2u : 1u);
        return true;
    }
    if (c[0] < 0xc0) { /* a short string */
        h->payload = c[0] & 31u;
        return true;
    }
    h->length += formats[c[0] - 0xc0].length;
    if (h->length > left)
        return false;
    for (size_t i = 1; i < h->length; i++)
        number = number << 8 | c[i];
    h->payload = number * formats[c[0] - 0xc0].bytes + formats[c[0] - 0xc0].fixed;
    h->children = number * formats[c[0] - 0xc0].children;
    return true;
}

bool ks_msgpack_bounded(const void *bytes, size_t n)
{
    const unsigned char *c = bytes;
    uint64_t left[DEEPEST + 1] = {1}; /* objects still to come, at each depth */
    size_t at = 0, depth = 0, seen = 0;
    struct header h;

    for (;;) {
        while (left[depth] == 0)
            if (depth-- == 0)
                return at == n;
        left[depth]--;
        if (++seen > MOST || !read_header(c + at, n - at, &h))
            return false;
        at += h.length;
        if (h.payload > n - at)
            return false;
        at += h.payload;
        if (h.children > 0 && depth == DEEPEST)
            return false;
        if (h.children > 0)
            left[++depth] = h.children;
    }
}
