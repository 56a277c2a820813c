/* The answer of an audit: how the critic stands among the critics that were measured, where its
 * curvature lies, what limits the statement, and what one could try. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/answer.h"
#include "core/memory.h"
#include "statistics/catalogue.h"

/* Critics whose steps differ by at most this factor are at about the same stage; if there are fewer
 * than ENOUGH of them, all are taken. Both are judgements. */
static const double SAME_STAGE = 2 * (1 + 1e-9);
enum { ENOUGH = 5 };

/* --- how the critic stands --- */

struct standing {
    size_t of, count[KS_VERDICTS];
    size_t same_task, on_task[KS_VERDICTS]; /* of these, critics of the same task */
    bool same_stage;
};

static bool at_stage(const struct ks_audit *a, const struct ks_measured_critic *c)
{
    return ks_step_distance(a->summary.env_step, c->step) <= log(SAME_STAGE);
}

static struct standing stand(const struct ks_audit *a, const struct ks_measured *m)
{
    const struct ks_conditioning own = ks_conditioning_of(a->spectrum[KS_AUDIT_HESSIAN]);
    struct standing s = {.of = 0};
    size_t near = 0;

    for (size_t i = 0; i < m->n; i++)
        near += at_stage(a, &m->critic[i]);
    s.same_stage = near >= ENOUGH || (near > 0 && near == m->n);
    for (size_t i = 0; i < m->n; i++)
        if (!s.same_stage || at_stage(a, &m->critic[i])) {
            const bool same_task = strcmp(m->critic[i].env, a->summary.env) == 0;
            const enum ks_verdict verdict = ks_verdict(&own, &m->critic[i].conditioning);

            s.of++;
            s.count[verdict]++;
            s.same_task += same_task;
            s.on_task[verdict] += same_task;
        }
    return s;
}

/* One word for it, which is a judgement: what holds against more than half of the critics. */
static const char *grade(const struct standing *s)
{
    return 2 * s->count[KS_BETTER] > s->of      ? "Well conditioned"
           : 2 * s->count[KS_WORSE] > s->of     ? "Badly conditioned"
           : 2 * s->count[KS_UNDECIDED] > s->of ? "Not decided"
                                                : "Usual";
}

static void add_standing(const struct ks_audit *a, const struct standing *s, struct ks_document *d)
{
    if (ks_audit_is_zero(a->spectrum[KS_AUDIT_HESSIAN])) {
        ks_document_add(d, KS_BLOCK_TEXT, "There is no answer, because the Hessian is zero.");
        return;
    }
    ks_document_add(d, KS_BLOCK_TEXT,
                    "%s: of %zu critics that were measured%s this one is better conditioned "
                    "than %zu and worse than %zu; %zu undecided.",
                    grade(s), s->of,
                    s->same_stage                ? " at about the same step,"
                    : isnan(a->summary.env_step) ? " at the end of their training,"
                                                 : ", each at the step nearest to this one's,",
                    s->count[KS_BETTER], s->count[KS_WORSE], s->count[KS_UNDECIDED]);
    if (s->same_task > 0 && s->same_task < s->of)
        ks_document_more(d,
                         " Of the %zu on %s, too, it is better than %zu and worse than %zu; %zu "
                         "undecided.",
                         s->same_task, a->summary.env, s->on_task[KS_BETTER], s->on_task[KS_WORSE],
                         s->on_task[KS_UNDECIDED]);
}

/* --- what limits the answer --- */

/* The tasks of the critics, as "dog-trot and walker-run". */
static void list_tasks(const struct ks_measured *m, size_t size, char text[])
{
    *text = '\0';
    for (size_t i = 0; i < m->n; i++) {
        bool seen = false;

        for (size_t j = 0; j < i; j++)
            seen |= strcmp(m->critic[j].env, m->critic[i].env) == 0;
        if (!seen)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", *text ? " and " : "",
                     m->critic[i].env);
    }
}

static bool has_task(const struct ks_measured *m, const char *env)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->critic[i].env, env) == 0)
            return true;
    return false;
}

/* " The measured critics have 10 to 50." */
static void print_minibatches(const struct ks_measured *m, size_t size, char text[])
{
    double least = m->critic->minibatches, most = least;

    for (size_t i = 0; i < m->n; i++) {
        least = ks_min_known(least, m->critic[i].minibatches);
        most = ks_max_known(most, m->critic[i].minibatches);
    }
    *text = '\0';
    if (least < most)
        snprintf(text, size, " The measured critics have %.0f to %.0f.", least, most);
    else if (least == most)
        snprintf(text, size, " The measured critics have %.0f.", most);
}

static void add_limits(const struct ks_audit *a, const struct ks_measured *m,
                       const struct standing *s, struct ks_document *d)
{
    const struct ks_audit_summary *f = &a->summary;
    char tasks[128], minibatches[64], stage[160] = "", task[280] = "";

    print_minibatches(m, sizeof minibatches, minibatches);
    list_tasks(m, sizeof tasks, tasks);
    if (isnan(f->env_step))
        snprintf(stage, sizeof stage,
                 " The file does not say at which step it was written (attribute env_step), and "
                 "conditioning can change a hundredfold in training.");
    else if (!s->same_stage)
        snprintf(
            stage, sizeof stage,
            " Few of these critics were measured near step %.0f, and conditioning can change a "
            "hundredfold in training.",
            f->env_step);
    if (!has_task(m, f->env))
        snprintf(task, sizeof task, " They were trained on %s, this one on %s.", tasks,
                 *f->env ? f->env : "a task that the file does not name");
    ks_document_add(
        d, KS_BLOCK_TEXT,
        "The answer compares two 99%% intervals: how many directions have a curvature "
        "within a factor of 100 of the largest one, and by which factor the largest "
        "one exceeds the curvature of 99%% of all directions. It holds for %s %zu "
        "minibatch%s.%s Each comparison rests on one of the two that differs. It holds with 96%% "
        "by itself, not all of them together. Narrower intervals may show that the other one "
        "says the opposite, which would leave it undecided.%s%s",
        f->minibatches == 1 ? "this" : "these", f->minibatches, f->minibatches == 1 ? "" : "es",
        minibatches, stage, task);
}

/* --- what one could try --- */

/* What the twelve architectures of the studies differ in: "dense+mse" with batch normalization is
 * "bn+mse". */
struct change {
    const char *words;
    const char *from, *to; /* parts of an architecture's name                            */
    unsigned needs, lacks; /* enum ks_audit_part: of critics for which this is a change  */
};

static const struct change changes[] = {
    {"Batch normalization in place of none", "dense", "bn", 0,
     KS_PART_BATCH_NORM | KS_PART_LAYER_NORM},
    {"Batch normalization in place of normalization within rows", "ln", "bn", KS_PART_LAYER_NORM,
     KS_PART_BATCH_NORM},
    {"Layer normalization in place of none", "dense", "ln", 0,
     KS_PART_BATCH_NORM | KS_PART_LAYER_NORM},
    {"Weight normalization", "+", "+wn+", 0, KS_PART_WEIGHT_NORM},
    {"A categorical cross-entropy loss in place of the squared error", "mse", "ce",
     KS_PART_SQUARED_ERROR, 0}};

/* `name` with the first `from` replaced by `to`; false if there is none. */
static bool rename_part(const char *name, const struct change *c, size_t size, char text[])
{
    const char *at = strstr(name, c->from);

    if (!at || strstr(name, "+wn") == at) /* "bn+wn+ce" has weight normalization */
        return false;
    snprintf(text, size, "%.*s%s%s", (int)(at - name), name, c->to, at + strlen(c->from));
    return true;
}

static const struct ks_measured_critic *find_critic(const struct ks_measured *m, const char *study,
                                                    const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->critic[i].study, study) == 0 && strcmp(m->critic[i].name, name) == 0)
            return &m->critic[i];
    return NULL;
}

/* Pairs of critics of one study that differ in this alone. */
struct evidence {
    size_t pairs, count[KS_VERDICTS], returns, higher; /* with returns; with a higher return */
};

static struct evidence weigh(const struct ks_measured *trained, const struct change *c)
{
    struct evidence e = {.pairs = 0};

    for (size_t i = 0; i < trained->n; i++) {
        const struct ks_measured_critic *without = &trained->critic[i], *with;
        char name[64];

        if (!rename_part(without->name, c, sizeof name, name) ||
            !(with = find_critic(trained, without->study, name)) || with->step != without->step)
            continue;
        e.pairs++;
        e.count[ks_verdict(&with->conditioning, &without->conditioning)]++;
        e.returns += !isnan(with->return_mean) && !isnan(without->return_mean);
        e.higher += with->return_mean > without->return_mean;
    }
    return e;
}

static void add_change(const struct change *c, const struct evidence *e, struct ks_document *d)
{
    const size_t better = e->count[KS_BETTER], worse = e->count[KS_WORSE];
    char returns[96] = "";

    if (e->returns > 0)
        snprintf(returns, sizeof returns, " The return was higher with it in %zu of the %zu%s.",
                 e->higher, e->returns, e->returns < e->pairs ? " whose returns are known" : "");
    if (e->pairs == 0)
        ks_document_add(
            d, KS_BLOCK_ITEM,
            "%s: no evidence, as no two critics that were measured differ in this alone.",
            c->words);
    else
        ks_document_add(d, KS_BLOCK_ITEM,
                        "%s: of %zu pairs of trained critics that differ in this alone, %zu were "
                        "better conditioned with it and %zu worse (%zu undecided).%s%s",
                        c->words, e->pairs, better, worse, e->count[KS_UNDECIDED], returns,
                        better > worse ? ""
                                       : " So there is no evidence here that it helps the "
                                         "conditioning.");
}

/* A change with its evidence. */
struct item {
    const struct change *change;
    struct evidence evidence;
};

/* How many pairs speak for it more than against it. */
static double net(const struct item *i)
{
    return (double)i->evidence.count[KS_BETTER] - (double)i->evidence.count[KS_WORSE];
}

static int by_evidence(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    const double difference = net(y) - net(x);

    return difference > 0   ? 1
           : difference < 0 ? -1
                            : (x->change > y->change) - (x->change < y->change);
}

static void add_changes(const struct ks_audit *a, const struct ks_measured *trained,
                        struct ks_document *d)
{
    struct item item[sizeof changes / sizeof *changes];
    const unsigned has = a->summary.parts;
    size_t n = 0;

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if ((has & changes[i].needs) == changes[i].needs && !(has & changes[i].lacks))
            item[n++] = (struct item){&changes[i], weigh(trained, &changes[i])};
    qsort(item, n, sizeof *item, by_evidence);
    for (size_t i = 0; i < n; i++)
        add_change(item[i].change, &item[i].evidence, d);
}

/* What a finding of this audit suggests, for which the studies have no evidence. */
static void add_remedies(const struct ks_audit *a, struct ks_document *d)
{
    const struct ks_spectrum *adam = a->spectrum[KS_AUDIT_PRECONDITIONED];
    size_t dead = 0;

    for (size_t i = 0; i < a->summary.n_units; i++)
        dead += a->summary.units[i].dead;
    if (adam && ks_statistic_value(adam, KS_STAT_SHARPNESS_RATIO) > 1)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "A smaller learning rate, with which the steps of Adam are stable on a "
                        "quadratic with this curvature: no evidence that it helps.");
    if (dead > 0)
        ks_document_add(d, KS_BLOCK_ITEM,
                        "An activation function that leaves no unit dead, as %zu are here: no "
                        "evidence that it helps.",
                        dead);
}

/* --- the table --- */

static int by_directions(const void *a, const void *b)
{
    const struct ks_measured_critic *x = *(const struct ks_measured_critic *const *)a,
                                    *y = *(const struct ks_measured_critic *const *)b;
    const double difference = fmax(y->conditioning.directions.lower, -1) -
                              fmax(x->conditioning.directions.lower, -1); /* a NaN comes last */
    const int by_study = strcmp(x->study, y->study);

    return difference > 0   ? 1
           : difference < 0 ? -1
           : by_study != 0  ? by_study
                            : strcmp(x->name, y->name);
}

static const char *word_of(const struct ks_measured_critic *c,
                           const struct ks_measured_critic *self)
{
    static const char *const words[KS_VERDICTS] = {"better", "worse", "undecided"};

    return c == self ? "self" : words[ks_verdict(&self->conditioning, &c->conditioning)];
}

static void add_row(const struct ks_measured_critic *c, const struct ks_measured_critic *self,
                    struct ks_document *d)
{
    const char *word = word_of(c, self);
    char verdict[40];

    snprintf(verdict, sizeof verdict, "%s%s", strcmp(word, "undecided") == 0 ? "" : "this one is ",
             word);
    ks_document_cells(d, ks_cell_name(c->name), ks_cell_text(c == self ? "-" : c->study),
                      ks_cell_text(c->loss), ks_cell_text(c == self ? "-" : verdict),
                      ks_cell_fixed(0, c->step), ks_cell_count(c->seeds),
                      ks_cell_interval(c->conditioning.directions, KS_BRACKETS_WHOLE),
                      ks_cell_interval(c->conditioning.q99, KS_BRACKETS_WHOLE),
                      ks_cell_digits(3, c->return_mean));
}

static void add_figure(const struct ks_audit *a, size_t n,
                       const struct ks_measured_critic *const *sorted,
                       const struct ks_measured_critic *self, struct ks_document *d)
{
    struct ks_table table = {0};

    ks_table_columns(&table, "critic,verdict,directions_1e2_lower,directions_1e2_upper");
    for (size_t i = 0; i < n; i++) {
        const struct ks_measured_critic *c = sorted[i];
        char name[128];

        if (c == self)
            snprintf(name, sizeof name, "%s", c->name);
        else
            snprintf(name, sizeof name, "%s (%s)", c->name, c->study);
        for (char *at = name; (at = strpbrk(at, ",\""));)
            *at = '_'; /* names stand in tables without quotes */
        ks_table_cells(&table, KS_TEXT(name), KS_TEXT(word_of(c, self)),
                       KS_INTERVAL(c->conditioning.directions));
    }
    ks_audit_figure(a, "measured", &table,
                    "How many directions have a curvature within a factor of 100 of the largest "
                    "one: 99% intervals, which enclose the intervals of all seeds. More is better.",
                    d);
}

/* --- all of it --- */

void ks_audit_answer(const struct ks_audit *a, const struct ks_measured *measured,
                     const struct ks_measured *trained, struct ks_document *d)
{
    const struct standing s = stand(a, measured);
    size_t before;

    add_standing(a, &s, d);
    ks_audit_find_layer(a, d);
    if (!ks_audit_is_zero(a->spectrum[KS_AUDIT_HESSIAN]))
        add_limits(a, measured, &s, d);
    ks_document_add(d, KS_BLOCK_SECTION, "What one could try");
    before = d->n;
    add_changes(a, trained, d);
    add_remedies(a, d);
    if (d->n == before)
        ks_document_add(d, KS_BLOCK_TEXT,
                        "No evidence here: the studies varied normalization, weight normalization "
                        "and the loss, and this critic has batch normalization, weight "
                        "normalization and another loss than the squared error.");
}

ks_status ks_audit_place(const struct ks_audit *a, const struct ks_measured *m,
                         struct ks_document *d)
{
    const struct ks_measured_critic self = {
        .name = "this critic",
        .study = "-",
        .loss = a->summary.loss,
        .step = a->summary.env_step,
        .seeds = 1,
        .conditioning = ks_conditioning_of(a->spectrum[KS_AUDIT_HESSIAN]),
        .return_mean = NAN};
    KS_OWNED const struct ks_measured_critic **sorted = NULL;

    KS_TRY(ks_alloc(m->n + 1, sizeof(void *), &sorted));
    for (size_t i = 0; i < m->n; i++)
        sorted[i] = &m->critic[i];
    sorted[m->n] = &self;
    qsort(sorted, m->n + 1, sizeof(void *), by_directions);
    ks_document_add(d, KS_BLOCK_SECTION, "Among the critics that were measured");
    add_figure(a, m->n + 1, sorted, &self, d);
    ks_document_columns(d, "", "critic<, study<, loss<, verdict<, step, seeds, %s, %s, return",
                        ks_catalogue[KS_STAT_DIRECTIONS_1E2].name,
                        ks_catalogue[KS_STAT_KAPPA_Q99].name);
    for (size_t i = 0; i <= m->n; i++)
        add_row(sorted[i], &self, d);
    ks_document_add(d, KS_BLOCK_NOTE,
                    "A verdict needs intervals of one of the two statistics that are at least a "
                    "factor of %g apart, and none of the other that says the opposite. In names "
                    "bn, ln and dense are batch, layer and no normalization, wn is weight "
                    "normalization, ce and mse are the loss.",
                    ks_verdict_margin);
    return d->status;
}
