#include "ks/outwards.h"

struct ks_outwards ks_outwards_start(size_t n, double (*node)(const void *of, size_t i),
                                     const void *of)
{
    struct ks_outwards w = {.n = n, .node = node, .of = of};

    while (w.low < n && node(of, w.low) < 0)
        w.low++;
    w.high = w.low;
    return w;
}

static double theta_at(const void *of, size_t i)
{
    return ((const struct ks_probe *)of)->theta[i];
}

struct ks_outwards ks_outwards_ritz(const struct ks_probe *p)
{
    return ks_outwards_start(p->steps, theta_at, p);
}

bool ks_outwards_end(const struct ks_outwards *w)
{
    return w->low == 0 && w->high == w->n;
}

size_t ks_outwards_take(struct ks_outwards *w)
{
    bool up = w->low == 0 ||
              (w->high < w->n && w->node(w->of, w->high) <= -w->node(w->of, w->low - 1));

    return up ? w->high++ : --w->low;
}
