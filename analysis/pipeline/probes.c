/* The probes: how many steps, how many start vectors. Without --tolerance the options say it. With
 * it:
 *
 * The width of an interval has two causes. Steps make the bounds of a start vector's weights
 * tighter; start vectors reduce the scatter of those weights. The first probe shows both: an
 * interval computed as if P probes had had its Jacobi matrix tells, for every P, about how wide it
 * would be. So after m steps P(m) is the least number of probes with which all intervals would be
 * tight enough, and m P(m) is the price. Steps are taken as long as the price is expected to fall,
 * and in any case up to half of the least price so far: early prices are often far too high.
 * The trace has a cheaper way, beside the first probe: minibatch_samples.c.
 *
 * With --complement there are at most two probes. Where few eigenvalues count, the second one is in
 * the complement of the first one's Krylov space, as soon as the first one has found most of them.
 * If the counts are then not tight, both are run again, with twice the steps. */
#include "pipeline/pipeline.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "lanczos/slq.h"

enum {
    /* After the first look, widths are computed after every further eighth of the steps, which is
     * what they may waste. */
    EIGHTH = 8,
    /* The error from few minibatches is computed once lambda_max and lambda_min are known to EARLY
     * tolerances: hardly any step is lost if it is too large. */
    EARLY = 10,
    LEAST = 2,      /* vectors for the trace */
    CANDIDATES = 32 /* the most numbers of probes: 1, 2, 3, 4, 6, 8, 12, 16, ... */
};

/* excess: the largest width, in units of its tolerance. The intervals are tight if it is at most 1.
 */
struct growth {
    struct ks_pipeline *p;
    struct ks_lanczos *l;
    const struct ks_tolerance *trace; /* the one that vectors of their own serve; NULL: none */
    bool hopeless[KS_TOLERANCES];     /* not even the most steps and probes would be enough */
    size_t n, probes[CANDIDATES];     /* the candidates, in ascending order                 */
    double excess[CANDIDATES]; /* expected with these numbers of probes, at present ...       */
    double before[CANDIDATES]; /* ... and when it was last computed; NaN: unknown    */
    double ends;               /* the excess of lambda_max and lambda_min, at present */
    double least;              /* the least price so far, in steps; INFINITY: none is known */
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* With random start vectors, in the complement of a Krylov space or not. */
static size_t most_probes(const struct ks_pipeline *p)
{
    return p->options->probes + p->options->complement;
}

/* The bounds of lambda_max and lambda_min are the weakest of all probes': they profit from steps,
 * and hardly from probes, of which some are weaker than the first. */
enum group { ENDS = 1, OTHERS = 2 };

static double find_excess(const struct growth *g, const struct ks_spectrum *s, unsigned groups)
{
    const struct ks_tolerances *t = &g->p->options->tolerances;
    double excess = 0;

    for (size_t i = 0; i < t->n; i++) {
        double width = ks_tolerance_width(&t->list[i], s);

        if (!g->hopeless[i] && &t->list[i] != g->trace &&
            (groups & (ks_tolerance_end(&t->list[i]) ? ENDS : OTHERS)))
            excess = fmax(excess, isnan(width) ? INFINITY : width / t->list[i].most);
    }
    return excess;
}

/* Computes the statistics of these probes, as if each had been run `times` times, in s->statistics.
 */
static ks_status find_statistics(const struct growth *g, struct ks_spectrum *s, size_t times)
{
    struct ks_statistics_inputs inputs = ks_pipeline_terms(g->p);

    inputs.draft = true;
    inputs.pretend_probes = times;
    if (g->p->certificates.probes == 0) /* the first probe is not finished */
        inputs.certificates = NULL;
    ks_attributes_clear(&s->statistics);
    return ks_statistics(s, &inputs);
}

/* *first = a spectrum of the first probe alone, as far as it is. */
static ks_status take_first(const struct growth *g, struct ks_spectrum **first)
{
    /* Where the Krylov space has ended, the order is larger than the steps. */
    size_t order = g->l->steps + (g->l->exhausted && g->l->steps < g->p->budget.dimension);
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *s = NULL;

    KS_TRY(ks_alloc(1, sizeof *s, &s));
    KS_TRY(ks_slq_room(s, 1, order));
    KS_TRY(ks_slq_store(g->l, 0, s));
    *first = s, s = NULL;
    return KS_OK;
}

/* The candidates below the limit, and the limit. */
static void list_candidates(struct growth *g)
{
    const size_t most = most_probes(g->p);

    for (size_t power = 1; power < most && g->n + 2 < CANDIDATES; power *= 2) {
        g->probes[g->n++] = power;
        if (power > 1 && power + power / 2 < most)
            g->probes[g->n++] = power + power / 2;
    }
    g->probes[g->n++] = most;
    for (size_t i = 0; i < g->n; i++)
        g->excess[i] = g->before[i] = NAN;
}

/* Whether all numbers that have a tolerance, but for the ends of the spectrum and the trace, are
 * counts of at most FEW times the steps, by estimate: for these a probe in the complement says more
 * than another one (analysis/README.md). `found`: and the first probe has found most of what
 * counts, so that little is left in the complement. */
static bool counts_few(const struct growth *g, const struct ks_spectrum *s, bool found)
{
    enum { FEW = 2 };
    static const double MOST = 0.8;
    const struct ks_tolerances *t = &g->p->options->tolerances;
    bool few = true;

    for (size_t i = 0; i < t->n; i++) {
        const enum ks_statistic_id id = t->list[i].statistic;
        const double count = ks_statistic_value(s, id);

        if (!ks_tolerance_end(&t->list[i]) && &t->list[i] != g->trace)
            few = few && ks_catalogue[id].kind == KS_IS_COUNT &&
                  count <= (double)(FEW * g->l->steps) &&
                  (!found || ks_statistic_interval(s, id).lower >= MOST * count);
    }
    return few;
}

/* *enough = the index of the least number of probes that would be enough, g->n if none is. The
 * excess of larger ones is not computed. */
static ks_status count_probes(struct growth *g, size_t *enough)
{
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *first = NULL;
    bool few;

    memcpy(g->before, g->excess, sizeof g->before);
    KS_TRY(take_first(g, &first));
    KS_TRY(find_statistics(g, first, 1));
    g->ends = find_excess(g, first, ENDS);
    few = g->p->options->complement && counts_few(g, first, true);
    for (*enough = 0; *enough < g->n; ++*enough) {
        KS_TRY(find_statistics(g, first, g->probes[*enough]));
        g->excess[*enough] = fmax(g->ends, find_excess(g, first, OTHERS));
        if (few && g->probes[*enough] > 1) /* how tight these will be is seen then */
            g->excess[*enough] = fmin(g->excess[*enough], fmax(g->ends, 1));
        if (g->excess[*enough] <= 1)
            break;
    }
    return KS_OK;
}

/* Marks what the most probes would not reach. */
static ks_status find_hopeless(struct growth *g)
{
    const struct ks_tolerances *t = &g->p->options->tolerances;
    KS_OWNED_BY(ks_spectrum_free) struct ks_spectrum *first = NULL;

    KS_TRY(take_first(g, &first));
    for (unsigned group = ENDS; group <= OTHERS; group++) {
        KS_TRY(find_statistics(g, first, group == ENDS ? 1 : most_probes(g->p)));
        for (size_t i = 0; i < t->n; i++)
            if ((ks_tolerance_end(&t->list[i]) != 0) == (group == ENDS))
                g->hopeless[i] = !(ks_tolerance_width(&t->list[i], first) <= t->list[i].most);
    }
    return KS_OK;
}

static ks_status step_to(const struct growth *g, size_t steps)
{
    while (g->l->steps < steps && !g->l->exhausted) {
        KS_TRY(ks_lanczos_step(g->l));
        KS_TRY(ks_monitor_step(g->p, g->l));
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

/* The first probe. *order: the steps of all probes; *probes: how many are planned. Ends early with
 * too few minibatches. */
static ks_status plan(struct growth *g, size_t *order, size_t *probes)
{
    const struct ks_pipeline *p = g->p;
    const size_t most = smaller(p->options->order, p->budget.dimension);
    size_t enough = 0, earlier = 1;

    *order = p->options->order;
    *probes = most_probes(p);
    ks_lanczos_start(g->l, p->options->seed, 0);
    if (p->options->tolerances.n == 0)
        return step_to(g, *order);
    list_candidates(g);
    for (*order = smaller(KS_FIRST_STEPS, most);;
         *order = smaller(*order + *order / EIGHTH, most)) {
        KS_TRY(step_to(g, *order));
        KS_TRY(count_probes(g, &enough));
        /* once, as soon as the ends are roughly known: whether the minibatches are enough */
        if (p->minibatches < p->most_minibatches && !(p->early_error.steps > 0) &&
            !(g->ends > EARLY))
            KS_TRY(ks_early_error(g->p, g->l));
        if (ks_pipeline_is_short(p))
            return KS_OK;
        if (g->l->exhausted || *order == most || !is_worthwhile(g, earlier, enough))
            break;
        earlier = g->l->steps;
    }
    if (enough == g->n && p->options->complement)
        return KS_OK;
    if (enough == g->n) {
        KS_TRY(find_hopeless(g));
        KS_TRY(count_probes(g, &enough));
    }
    *probes = g->probes[enough];
    return KS_OK;
}

/* Where minibatches have operators of their own. */
static const struct ks_tolerance *find_trace(const struct ks_pipeline *p)
{
    const struct ks_tolerances *t = &p->options->tolerances;

    for (size_t i = 0; i < t->n && p->problem.kind; i++)
        if (t->list[i].statistic == KS_STAT_TRACE)
            return &t->list[i];
    return NULL;
}

ks_status ks_probes_allocate(struct ks_pipeline *p, size_t order)
{
    KS_TRY(ks_alloc(1, sizeof *p->spectrum, &p->spectrum));
    if (!ks_pipeline_has_certificates(p))
        return KS_OK;
    p->certificates = (struct ks_certificates){.n = p->budget.dimension,
                                               .probes = most_probes(p),
                                               .prefix = KS_STATISTICS_PREFIX,
                                               .basis = p->basis};
    return ks_certificates_new(order, &p->certificates);
}

static ks_status allocate(const struct growth *g, size_t order)
{
    struct ks_pipeline *p = g->p;

    KS_TRY(ks_probes_allocate(p, order));
    return ks_slq_room(p->spectrum, most_probes(p) + (p->gradient != NULL), order);
}

/* The certificates' vectors of a finished probe, and its row in the spectrum. */
static ks_status finish(struct growth *g)
{
    struct ks_pipeline *p = g->p;
    struct ks_spectrum *s = p->spectrum;

    if (ks_pipeline_has_certificates(p) && g->l->probe != KS_PROBE_GRADIENT)
        KS_TRY(ks_certificates_take(&p->certificates, g->l));
    return ks_slq_store(g->l, s->probes++, s);
}

/* Whether the intervals are tight, and whether what has a tolerance counts few. */
static ks_status find_tight(const struct growth *g, bool *tight, bool *few)
{
    struct ks_spectrum *s = g->p->spectrum;

    KS_TRY(find_statistics(g, s, 1));
    *few = counts_few(g, s, false);
    *tight = find_excess(g, s, ENDS | OTHERS) <= 1;
    ks_attributes_clear(&s->statistics);
    return KS_OK;
}

/* The second probe, in the complement of the first one's Krylov space, whose vectors are still
 * there. With tolerances only if it is needed, and an ordinary one unless it counts few. */
static ks_status add_complement(struct growth *g, size_t order)
{
    struct ks_pipeline *p = g->p;
    bool few = true, tight = false;

    if (!p->options->complement || g->l->steps == g->l->n)
        return KS_OK;
    if (p->options->tolerances.n > 0)
        KS_TRY(find_tight(g, &tight, &few));
    if (tight)
        return KS_OK;
    if (!few) {
        ks_lanczos_start(g->l, p->options->seed, 1);
        KS_TRY(step_to(g, order));
        return finish(g);
    }
    ks_lanczos_start_beside(g->l, p->options->seed);
    KS_TRY(step_to(g, order));
    g->p->spectrum->complement = true;
    return finish(g);
}

/* The probes after the first, one by one: as many as planned, and more until the intervals are
 * tight. */
static ks_status add_probes(struct growth *g, size_t order, size_t planned)
{
    struct ks_pipeline *p = g->p;

    for (size_t probe = 1; probe < p->options->probes; probe++) {
        if (probe >= planned)
            KS_TRY(find_statistics(g, p->spectrum, 1));
        if (probe >= planned && find_excess(g, p->spectrum, ENDS | OTHERS) <= 1)
            break;
        ks_lanczos_start(g->l, p->options->seed, probe);
        KS_TRY(step_to(g, order));
        KS_TRY(finish(g));
    }
    ks_attributes_clear(&p->spectrum->statistics);
    return KS_OK;
}

/* From the first probe, which is finished, on: all that start at random. */
static ks_status run(struct growth *g, size_t order, size_t planned)
{
    struct ks_pipeline *p = g->p;
    const size_t most = p->options->probes;

    KS_TRY(allocate(g, order));
    p->spectrum->probes = 0;
    KS_TRY(finish(g));
    if (g->trace) /* as long as the Lanczos vectors of the first probe are there */
        KS_TRY(ks_trace_sample(p, g->l, g->trace->most, most > LEAST ? most : LEAST));
    KS_TRY(add_probes(g, order, planned));
    return add_complement(g, order);
}

/* With tolerances and a complement, nobody can say before how tight the counts will be. If they are
 * not: again, with twice the steps, up to the limit, and *order is that number. */
static ks_status take_more(struct growth *g, size_t *order, bool *tight)
{
    struct ks_pipeline *p = g->p;
    const size_t most = smaller(p->options->order, p->budget.dimension);
    bool few;

    *tight = true;
    if (!p->options->complement || p->options->tolerances.n == 0 || *order >= most ||
        g->l->exhausted)
        return KS_OK;
    KS_TRY(find_tight(g, tight, &few));
    if (*tight)
        return KS_OK;
    p->spent += p->trace.rounds * p->minibatches;
    for (size_t i = 0; i < p->spectrum->probes; i++)
        p->spent += (size_t)p->spectrum->steps[i] * p->minibatches;
    ks_spectrum_free(p->spectrum);
    p->spectrum = NULL;
    ks_certificates_clear(&p->certificates);
    p->certificates = (struct ks_certificates){.n = 0};
    *order = smaller(2 * *order, most);
    ks_lanczos_start(g->l, p->options->seed, 0);
    return step_to(g, *order);
}

/* The most steps and probes, without numbers. */
static ks_status count_most(struct growth *g, size_t vectors)
{
    struct ks_pipeline *p = g->p;

    g->l->steps = g->l->order;
    KS_TRY(allocate(g, p->options->order));
    if (ks_pipeline_has_certificates(p))
        KS_TRY(ks_certificates_take(&p->certificates, g->l));
    if (p->options->tolerances.n > 0 && p->problem.minibatches > 1)
        KS_TRY(ks_early_error(p, g->l));
    return g->trace ? ks_trace_sample(p, g->l, g->trace->most, vectors) : KS_OK;
}

ks_status ks_probes_run(struct ks_pipeline *p)
{
    const struct ks_spectrum_options *o = p->options;
    struct growth g = {.p = p, .trace = find_trace(p), .least = INFINITY};
    KS_OWNED_BY(ks_lanczos_free) struct ks_lanczos *l = NULL;
    size_t order, planned;

    if (o->complement)
        KS_TRY(ks_lanczos_new_for_two(p->a, o->order, p->budget.basis_f32, &l));
    else
        KS_TRY(ks_lanczos_new(p->a, o->order, p->budget.basis_f32, &l));
    g.l = l;
    g.l->products_f32 = o->products_f32;
    g.l->published = o->published;
    if (ks_counting())
        return count_most(&g, LEAST);
    KS_TRY(plan(&g, &order, &planned));
    if (ks_pipeline_is_short(p))
        return KS_OK;
    for (bool tight = false; !tight;) {
        KS_TRY(run(&g, order, planned));
        KS_TRY(take_more(&g, &order, &tight));
    }
    if (p->gradient) {
        KS_TRY(ks_lanczos_start_at(g.l, p->gradient));
        KS_TRY(step_to(&g, order));
        KS_TRY(finish(&g));
        p->spectrum->gradient = true;
    }
    return KS_OK;
}
