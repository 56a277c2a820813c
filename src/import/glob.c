#include "import/glob.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "import/weights.h"

/* The state of one match. Each pair of positions is tried once, so the time is bounded by the
 * product of the lengths, whatever the name is. */
struct match {
    const char *glob, *name;
    size_t stride; /* positions in the name, with its end */
    struct ks_glob_parts parts;
    unsigned char failed[KS_GLOB_LENGTH * KS_STORED_NAME / 8]; /* [glob, stride] bits */
};

static size_t wildcard_length(const char *glob)
{
    if (glob[0] == '?')
        return 1;
    return glob[0] != '*' ? 0 : glob[1] == '*' ? 2 : 1;
}

bool ks_glob_valid(const char *glob)
{
    size_t n = 0, length = strlen(glob);

    for (const char *c = glob; *c;) {
        const size_t wildcard = wildcard_length(c);

        n += wildcard > 0;
        c += wildcard > 0 ? wildcard : 1;
    }
    return length > 0 && length < KS_GLOB_LENGTH && n <= KS_GLOB_WILDCARDS;
}

static bool separates(char c)
{
    return c == '.' || c == '/';
}

static bool match_from(struct match *m, size_t g, size_t s);

/* The wildcard at g stands for the characters from s to an end that is tried from left to right. */
static bool match_wildcard(struct match *m, size_t g, size_t s)
{
    const size_t length = wildcard_length(m->glob + g), at = m->parts.n;
    const bool one = m->glob[g] == '?';
    size_t end = s + one;

    if (one && (!m->name[s] || separates(m->name[s])))
        return false;
    m->parts.n++;
    for (;; end++) {
        m->parts.part[at].start = m->name + s;
        m->parts.part[at].length = end - s;
        if (match_from(m, g + length, end))
            return true;
        if (one || !m->name[end] || (length == 1 && separates(m->name[end])))
            break;
    }
    m->parts.n = at;
    return false;
}

static bool match_from(struct match *m, size_t g, size_t s)
{
    size_t bit;

    for (; m->glob[g] && wildcard_length(m->glob + g) == 0; g++, s++)
        if (m->glob[g] != m->name[s])
            return false;
    if (!m->glob[g])
        return !m->name[s];
    bit = g * m->stride + s;
    if (m->failed[bit / 8] >> bit % 8 & 1)
        return false;
    if (match_wildcard(m, g, s))
        return true;
    m->failed[bit / 8] |= (unsigned char)(1u << bit % 8);
    return false;
}

bool ks_glob_matches(const char *glob, const char *name, struct ks_glob_parts *parts)
{
    struct match m;

    assert(ks_glob_valid(glob) && strlen(name) < KS_STORED_NAME);
    m.glob = glob, m.name = name, m.stride = strlen(name) + 1, m.parts.n = 0;
    memset(m.failed, 0, (strlen(glob) * m.stride + 7) / 8);
    if (!match_from(&m, 0, 0))
        return false;
    if (parts)
        *parts = m.parts;
    return true;
}

static size_t digits(const char *c)
{
    size_t n = 0;

    while (isdigit((unsigned char)c[n]))
        n++;
    return n;
}

int ks_glob_compare(const char *a, const char *b)
{
    while (*a && *b) {
        size_t m, n;
        int order;

        for (; *a == '0' && isdigit((unsigned char)a[1]); a++)
            ;
        for (; *b == '0' && isdigit((unsigned char)b[1]); b++)
            ;
        m = digits(a), n = digits(b);
        if (m != n && m > 0 && n > 0)
            return m < n ? -1 : 1;
        m = m > 0 && m == n ? m : 1;
        order = strncmp(a, b, m);
        if (order != 0)
            return order;
        a += m, b += m;
    }
    return (*a != 0) - (*b != 0);
}
