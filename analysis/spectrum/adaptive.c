/* How many steps, how many start vectors: --tolerance.
 *
 * The width of an interval has two parts. Steps make the bounds of a start vector's weights
 * tighter; start vectors reduce the scatter of those weights. The first probe shows both: an
 * interval computed as if P probes had had its Jacobi matrix tells, for every P, about how wide it
 * would be. So after m steps P(m) is the least number of probes with which all intervals would be
 * tight enough, and m P(m) is the price. Steps are taken as long as the price is expected to fall,
 * and in any case up to half of the least price so far: early prices are often far too high.
 * The trace has a cheaper way, beside the first probe: trace_samples.h. */
#include "spectrum/adaptive.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "lanczos/slq.h"
#include "statistics/tolerance.h"

enum {
    PART = 8, /* the widths are computed after KS_ADAPTIVE_FIRST steps and then after every further
               * eighth, which is what they may waste */
    EARLY = 10,     /* the error from few minibatches is looked at when the ends are known to so
                     * many times their tolerance: hardly any step is lost if it is too large      */
    CANDIDATES = 32 /* the most numbers of probes: 1, 2, 3, 4, 6, 8, 12, 16, ...                  */
};

/* excess: the largest width, in units of its tolerance. The intervals are tight if it is at most 1.
 */
struct growth {
    struct ks_measurement *m;
    struct ks_lanczos *l;
    const struct ks_tolerance *trace; /* the one that vectors of their own serve; NULL: none */
    bool hopeless[KS_TOLERANCES];     /* not even the most steps and probes would be enough */
    size_t n, probes[CANDIDATES];     /* the candidates, in ascending order                 */
    double excess[CANDIDATES];        /* expected with so many probes, at present ...       */
    double before[CANDIDATES];        /* ... and when it was last computed; NaN: unknown    */
    double ends;                      /* the excess of lambda_max and lambda_min, at present */
    double least; /* the least price so far, in steps; INFINITY: none is known */
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The bounds of lambda_max and lambda_min are the weakest of all probes': they profit from steps,
 * and hardly from probes, of which some are weaker than the first. */
enum part { ENDS = 1, OTHERS = 2 };

static double find_excess(const struct growth *g, const struct ks_spectrum *s, unsigned parts)
{
    const struct ks_tolerances *t = g->m->tolerances;
    double excess = 0;

    for (size_t i = 0; i < t->n; i++) {
        double width = ks_tolerance_width(&t->list[i], s);

        if (!g->hopeless[i] && &t->list[i] != g->trace &&
            (parts & (ks_tolerance_end(&t->list[i]) ? ENDS : OTHERS)))
            excess = fmax(excess, isnan(width) ? INFINITY : width / t->list[i].most);
    }
    return excess;
}

/* Computes the statistics of these probes, each of which counts as `copies`, in s->statistics. */
static ks_status find_statistics(const struct growth *g, struct ks_spectrum *s, size_t copies)
{
    struct ks_statistics_terms terms = ks_measurement_terms(g->m);

    terms.draft = true;
    terms.copies = copies;
    if (g->m->certificates.probes == 0) /* the first probe is not finished */
        terms.certificates = NULL;
    ks_attributes_clear(&s->statistics);
    return ks_statistics(s, &terms);
}

/* *first = a spectrum of the first probe alone, as far as it is. */
static ks_status take_first(const struct growth *g, struct ks_spectrum **first)
{
    /* Where the Krylov space has ended, the order is larger than the steps. */
    size_t order = g->l->steps + (g->l->exhausted && g->l->steps < g->m->n);
    struct ks_spectrum *s = NULL;
    ks_status status = KS_OK;

    KS_GO(ks_alloc(1, sizeof *s, &s));
    KS_GO(ks_slq_room(s, 1, order));
    KS_GO(ks_slq_store(g->l, 0, s));
    *first = s, s = NULL;
done:
    ks_spectrum_free(s);
    return status;
}

/* The candidates below the limit, and the limit. */
static void list_candidates(struct growth *g)
{
    const size_t most = g->m->probes;

    for (size_t power = 1; power < most && g->n + 2 < CANDIDATES; power *= 2) {
        g->probes[g->n++] = power;
        if (power > 1 && power + power / 2 < most)
            g->probes[g->n++] = power + power / 2;
    }
    g->probes[g->n++] = most;
    for (size_t i = 0; i < g->n; i++)
        g->excess[i] = g->before[i] = NAN;
}

/* *enough = the index of the least number of probes that would be enough, g->n if none is. The
 * excess of larger ones is not computed. */
static ks_status count_probes(struct growth *g, size_t *enough)
{
    struct ks_spectrum *first = NULL;
    ks_status status = KS_OK;

    memcpy(g->before, g->excess, sizeof g->before);
    KS_GO(take_first(g, &first));
    KS_GO(find_statistics(g, first, 1));
    g->ends = find_excess(g, first, ENDS);
    for (*enough = 0; *enough < g->n; ++*enough) {
        KS_GO(find_statistics(g, first, g->probes[*enough]));
        g->excess[*enough] = fmax(g->ends, find_excess(g, first, OTHERS));
        if (g->excess[*enough] <= 1)
            break;
    }
done:
    ks_spectrum_free(first);
    return status;
}

/* Marks what the most probes would not reach. */
static ks_status find_hopeless(struct growth *g)
{
    const struct ks_tolerances *t = g->m->tolerances;
    struct ks_spectrum *first = NULL;
    ks_status status = KS_OK;

    KS_GO(take_first(g, &first));
    for (unsigned part = ENDS; part <= OTHERS; part++) {
        KS_GO(find_statistics(g, first, part == ENDS ? 1 : g->m->probes));
        for (size_t i = 0; i < t->n; i++)
            if ((ks_tolerance_end(&t->list[i]) != 0) == (part == ENDS))
                g->hopeless[i] = !ks_tolerance_met(&t->list[i], first);
    }
done:
    ks_spectrum_free(first);
    return status;
}

static ks_status step_to(const struct growth *g, size_t steps)
{
    while (g->l->steps < steps && !g->l->exhausted) {
        KS_TRY(ks_lanczos_step(g->l, g->m->a));
        if (g->m->on_step)
            g->m->on_step(g->m->context, g->l);
    }
    return KS_OK;
}

/* Whether more steps are expected to cost less than the probes that would be enough: the excess
 * with fewer probes is continued as a power of the number of steps. */
static bool is_worthwhile(struct growth *g, size_t earlier, size_t enough)
{
    const double steps = (double)g->l->steps;
    double price, slope, enough_steps;

    if (enough == 0)
        return false;
    if (enough == g->n)
        return true;
    price = steps * (double)g->probes[enough];
    g->least = fmin(g->least, price);
    if (steps < g->least / 2)
        return true;
    if (isinf(g->excess[enough - 1]))
        return false;
    slope = log(g->excess[enough - 1] / g->before[enough - 1]) / log(steps / (double)earlier);
    if (!(slope < 0)) /* NaN: the excess before is not known */
        return isnan(slope);
    enough_steps = steps * pow(g->excess[enough - 1], -1 / slope);
    return enough_steps * (double)g->probes[enough - 1] < price;
}

/* Looks once whether the minibatches are enough, as soon as the ends are roughly known. */
static ks_status look_early(struct growth *g)
{
    struct ks_measurement *m = g->m;

    if (!m->growing || m->look.steps > 0 || g->ends > EARLY)
        return KS_OK;
    return ks_data_error(m, g->l, &m->look);
}

/* The first probe. *order: the steps of all probes; *probes: how many. Ends early with too few
 * minibatches. */
static ks_status plan(struct growth *g, size_t *order, size_t *probes)
{
    const struct ks_measurement *m = g->m;
    const size_t most = smaller(m->order, m->n);
    size_t enough = 0, earlier = 1;

    *probes = 0;
    list_candidates(g);
    ks_lanczos_start(g->l, m->seed, 0);
    for (*order = smaller(KS_ADAPTIVE_FIRST, most);;
         *order = smaller(*order + *order / PART, most)) {
        KS_TRY(step_to(g, *order));
        KS_TRY(ks_team_agree(m->team, count_probes(g, &enough)));
        KS_TRY(look_early(g));
        if (ks_measurement_is_short(m))
            return KS_OK;
        if (g->l->exhausted || *order == most || !is_worthwhile(g, earlier, enough))
            break;
        earlier = g->l->steps;
    }
    if (enough == g->n) {
        KS_TRY(ks_team_agree(m->team, find_hopeless(g)));
        KS_TRY(ks_team_agree(m->team, count_probes(g, &enough)));
    }
    *probes = g->probes[enough];
    return KS_OK;
}

/* Where minibatches have operators of their own, and are all on this rank. */
static const struct ks_tolerance *find_trace(const struct ks_measurement *m)
{
    const struct ks_tolerances *t = m->tolerances;

    for (size_t i = 0; i < t->n && m->analyzed->kind && ks_team_size(m->world) == 1; i++)
        if (strcmp(ks_tolerance_name(&t->list[i]), "trace") == 0)
            return &t->list[i];
    return NULL;
}

/* After the first probe, whose Lanczos vectors are still there. */
static ks_status sample_trace(struct growth *g)
{
    enum { LEAST = 2 };
    struct ks_measurement *m = g->m;

    if (!g->trace)
        return KS_OK;
    return ks_trace_sample(m, g->l, g->trace->most, m->probes > LEAST ? m->probes : LEAST,
                           &m->trace);
}

static ks_status allocate(struct growth *g, size_t order)
{
    struct ks_measurement *m = g->m;

    KS_TRY(ks_measurement_allocate(m, order));
    return ks_slq_room(m->spectrum, m->probes + (m->gradient != NULL), order);
}

/* The vectors of a finished probe, and its row in the spectrum. */
static ks_status finish(struct growth *g)
{
    struct ks_measurement *m = g->m;
    struct ks_spectrum *s = m->spectrum;

    if (g->l->probe != KS_PROBE_GRADIENT)
        KS_TRY(ks_certificates_take(&m->certificates, g->l));
    return ks_team_agree(m->team, ks_slq_store(g->l, s->probes++, s));
}

/* The probes after the first, one by one: as many as planned, and more until the intervals are
 * tight. */
static ks_status add_probes(struct growth *g, size_t order, size_t planned)
{
    struct ks_measurement *m = g->m;

    for (size_t probe = 1; probe < m->probes; probe++) {
        if (probe >= planned)
            KS_TRY(ks_team_agree(m->team, find_statistics(g, m->spectrum, 1)));
        if (probe >= planned && find_excess(g, m->spectrum, ENDS | OTHERS) <= 1)
            break;
        ks_lanczos_start(g->l, m->seed, probe);
        KS_TRY(step_to(g, order));
        KS_TRY(finish(g));
    }
    ks_attributes_clear(&m->spectrum->statistics);
    return KS_OK;
}

static ks_status add_gradient(struct growth *g, size_t order)
{
    struct ks_measurement *m = g->m;

    if (!m->gradient)
        return KS_OK;
    KS_TRY(ks_lanczos_start_at(g->l, m->gradient));
    KS_TRY(step_to(g, order));
    KS_TRY(finish(g));
    m->spectrum->gradient = true;
    return KS_OK;
}

ks_status ks_adaptive_probes(struct ks_measurement *m)
{
    struct growth g = {.m = m, .trace = find_trace(m), .least = INFINITY};
    size_t order, probes;
    ks_status status = KS_OK;

    KS_GO(ks_team_agree(m->team, ks_lanczos_new(m->n, m->order, m->single_basis, m->team, &g.l)));
    g.l->single_products = m->analyzed->single;
    KS_GO(plan(&g, &order, &probes));
    if (ks_measurement_is_short(m))
        goto done;
    KS_GO(ks_team_agree(m->team, allocate(&g, order)));
    m->spectrum->probes = 0;
    KS_GO(finish(&g));
    KS_GO(sample_trace(&g));
    KS_GO(add_probes(&g, order, probes));
    KS_GO(add_gradient(&g, order));
    KS_GO(ks_certificates_collect(&m->certificates, m->world, m->team, 1));
done:
    ks_lanczos_free(g.l);
    return status;
}
