/* What the page of a report says about a study. */
#include "studies.h"

#include "claims/claims.h"
#include "core/memory.h"
#include "report/page.h"

/* The page of the study of finished_study.h, without plots. */
static char *page;

/* Puts something in place of what the summary of a study has. */
typedef void change_function(struct ks_summary_table *summary);

/* The study, changed (NULL: as it is). */
static void write_changed(change_function *change)
{
    struct outcome *o = outcome_new(0);

    assert_ok(ks_tables_write(o->results, &o->table, 0));
    if (change)
        change(&o->table);
    o->table.claims.results = o->results;
    assert_ok(ks_page_write(o->results, &o->table));
    free(page);
    assert_ok(ks_text_read(scratch("report.html"), &page, NULL));
}

static void write_page(void)
{
    write_changed(NULL);
}

static int remove_page(void **state)
{
    free(page);
    page = NULL;
    return scratch_remove(state);
}

static bool says(const char *words)
{
    return strstr(page, words) != NULL;
}

/* The correlations of a test. */
static struct ks_correlation correlation[8];
static size_t n_correlations;

static void put_correlations(struct ks_summary_table *summary)
{
    struct ks_correlations *found = &summary->correlations;

    free(found->row);
    *found = (struct ks_correlations){.n = n_correlations};
    assert_ok(ks_alloc(n_correlations, sizeof *found->row, &found->row));
    memcpy(found->row, correlation, n_correlations * sizeof *correlation);
}

static void add_correlation(size_t analysis, struct ks_statistic_column statistic, double spearman,
                            double p)
{
    correlation[n_correlations++] = (struct ks_correlation){.analysis = analysis,
                                                            .statistic = statistic,
                                                            .n = 12,
                                                            .spearman = {spearman, {NAN, NAN}},
                                                            .p = p};
}

static const struct ks_statistic_column q99_lower = {KS_STAT_KAPPA_Q99, KS_LOWER_END},
                                        q99_upper = {KS_STAT_KAPPA_Q99, KS_UPPER_END},
                                        papers = {KS_STAT_KAPPA, KS_ITSELF};

/* Correlations with kappa_q99, as its lower and its upper ends. */
static void correlate(double of_lower, double p_lower, double of_upper, double p_upper)
{
    n_correlations = 0;
    add_correlation(1, q99_lower, 1, 0.5); /* of another analysis, which does not count */
    add_correlation(0, q99_lower, of_lower, p_lower);
    correlation[1].spearman.in = (struct ks_interval){-0.9, -0.2};
    add_correlation(0, q99_upper, of_upper, p_upper);
}

/* A bound is never shown as more than it is. */
TEST(test_bound_text)
{
    static const struct {
        double bound;
        const char *text;
    } cases[] = {{129600, "1.29e+05"}, {12794.9, "12794"}, {134.47, "134.4"},
                 {9.9999, "9.999"},    {INFINITY, "inf"},  {NAN, "-"}};
    char text[32];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(ks_bound_text(cases[i].bound, text), cases[i].text);
}

static void write_correlated(double of_lower, double p_lower, double of_upper, double p_upper)
{
    correlate(of_lower, p_lower, of_upper, p_upper);
    write_changed(put_correlations);
}

TEST_WITH(test_answer, make_study, remove_page)
{
    set_study("[analyze more]\norder = 4\n");
    write_correlated(-0.75, 0.01, -0.5, 0.04);
    assert_true(says("<b>Architectures with better conditioned critics had higher returns</b>"));
    assert_true(says("Over 12 architectures, the rank correlation of the last return"));
    assert_true(says("is -0.75 (90% interval over seeds -0.90 to -0.20, p = 0.01) for the lower "
                     "ends of its intervals and -0.50 (p = 0.04) for the upper ends"));
    write_correlated(0.75, 0.01, 0.5, 0.05);
    assert_true(says("<b>Architectures with better conditioned critics had lower returns</b>"));
    write_correlated(-0.75, 0.01, -0.5, 0.06);
    assert_true(says("<b>It is not decided whether better conditioned critics"));
    write_correlated(-0.75, 0.01, 0.75, 0.01);
    assert_true(says("<b>It is not decided whether better conditioned critics"));
    assert_true(
        says("its rank correlation with the return is -0.75 for the lower ends of its "
             "intervals (<i>p</i> = 0.01) and 0.75 for the upper ends (<i>p</i> = 0.01). It "
             "would be decided if both had one sign and a <i>p</i> of at most 0.05, by a"));
    assert_false(says("With the paper&#39;s <i>kappa</i>"));
    write_correlated(-0.75, 0.01, NAN, NAN);
    assert_true(says("<b>These runs cannot answer that</b>: the upper ends"));
    assert_false(says("nan"));
}

/* The correlation of the paper's kappa, by the analysis xqc, and its range over start vectors. */
TEST_WITH(test_paper_in_headline, make_study, remove_page)
{
    set_study("[analyze xqc]\ncompat = xqc\n");
    correlate(-0.75, 0.01, -0.5, 0.04);
    add_correlation(0, papers, -0.3, 0.4);
    add_correlation(1, papers, -0.78, 0.004);
    write_changed(put_correlations);
    assert_true(
        says("largest. With the paper&#39;s <i>kappa</i> the rank correlation is -0.78 (<i>p</i> = "
             "0.004).</p>"));
    set_study("[analyze xqc]\ncompat = xqc\n[analyze other]\nseed = 1\n"
              "[analyze xqc1]\ncompat = xqc\nseed = 1\n");
    add_correlation(2, papers, 0.9, 0.1);
    add_correlation(3, papers, -0.84, 0.001);
    write_changed(put_correlations);
    assert_true(says("is -0.78 (<i>p</i> = 0.004; -0.84 to -0.78 over 2 start vectors).</p>"));
}

/* The last returns are 100 to 400; the first ones, 10, become 130 in one or both architectures. */
TEST_WITH(test_policies_that_have_not_learned, make_study, remove_page)
{
    static const char RETURNED[] = "env_step,return_mean\n0,130\n6,20\n12,200\n";

    for (size_t i = 0; i < SEEDS; i++)
        write_returns("ln+mse", i, RETURNED);
    write_correlated(-0.75, 0.01, -0.5, 0.04);
    assert_true(says("had higher returns</b>")); /* one of two has learned */
    for (size_t i = 0; i < SEEDS; i++)
        write_returns("bn+wn+ce", i, RETURNED);
    write_correlated(-0.75, 0.01, -0.5, 0.04);
    assert_true(says("<b>These runs cannot answer that</b>: none of the 2 architectures ended"));
    assert_false(says("had higher returns</b>"));
}

TEST_WITH(test_limits_of_a_study, make_study, remove_page)
{
    write_page();
    assert_true(says("<title>toy: 2 architectures, 4 seeds ("));
    assert_true(says("study of <b>toy: 2 architectures, 4 seeds</b>, folder "));
    assert_true(says("2 architectures, 4 seeds, 12 environment steps per run."));
    assert_true(says("With 4 seeds the intervals over seeds are too narrow."));
    assert_true(
        says("The highest return has <b>bn+wn+ce</b> with 250; its <i>kappa_q99</i> is 123 or "
             "more."));
    set_study("stop = 8\n");
    write_page();
    assert_true(says("8 environment steps per run: <b>stopped early</b>, of 12 planned"));
    write_text("study.study", "[study]\nenv = toy\narchitectures = ln+mse bn+wn+ce\nseeds = 0\n"
                              "steps = 12\n[train]\ncheckpoints = 3\nrandom_steps = 1\n"
                              "evaluations = 2\n");
    write_page();
    assert_true(says("A number from one seed has no interval over seeds"));
}

/* Changes kappa in all spectra of an architecture. */
static void rewrite_kappa(const char *architecture, double kappa)
{
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t k = 0; k <= CHECKPOINTS; k++)
            write_spectrum(&(struct place){architecture, i, STEP[k], NULL}, kappa, false);
}

/* Cells say what their numbers are, and have keys to sort by. */
TEST_WITH(test_architectures, make_study, remove_page)
{
    rewrite_kappa("ln+mse", INFINITY);
    write_page();
    assert_true(says("<tr data-normalization=\"ln\" data-wn=\"0\" data-loss=\"mse\">"
                     "<td class=\"name\">ln+mse</td>"));
    assert_true(says("<td data-value=\"Infinity\">infinite</td>"));
    assert_true(says("<td data-value=\"9\">≥ 9.000</td>"));
    assert_true(says("kappa_effective_bound<span class=\"kind\">certain lower bound, IQM</span>"
                     "<span class=\"kind\">no interval</span>"));
    assert_true(says("<th>kappa_q99<span class=\"kind\">99% interval</span>"));
    assert_true(says("<td data-value=\"123.45\">123 or more<small>upper end not resolved</small>"
                     "<small>all seeds: 123 or more</small></td>"));
    assert_true(says("<th>kappa_gradient_90"));
    rewrite_kappa("ln+mse", NAN);
    write_page();
    assert_true(says("<td class=\"none\">undefined</td>"));
    assert_true(says("<p>12 values of kappa are not numbers"));
}

/* Rows go from the highest return down, and columns from the most important one on. */
TEST_WITH(test_order_in_table, make_study, remove_page)
{
    static const char *const parts[] = {
        "<th>architecture</th>", "<th>return<",         "<th>kappa<",
        "<th>kappa_q99<",        "<th>directions_1e2<", "<th>lambda_max<"};

    for (size_t low = 0; low < 2; low++) {
        const char *const at[] = {"<td class=\"name\">ln+mse<", "<td class=\"name\">bn+wn+ce<"};
        const char *from;

        for (size_t a = 0; a < 2; a++)
            for (size_t i = 0; i < SEEDS; i++)
                write_returns(
                    a == 0 ? "ln+mse" : "bn+wn+ce", i,
                    text_of("env_step,return_mean\n0,1\n6,2\n12,%d\n", a == low ? -7 : 7));
        write_page();
        from = strstr(page, "id=\"table-architectures\"");
        assert_true(strstr(from, at[1 - low]) < strstr(from, at[low]));
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            from = strstr(from, parts[i]);
            if (!from)
                fail_msg("%s is missing or comes too early", parts[i]);
        }
    }
}

/* The first column of a table has short texts, as it leaves the window's width to the others: what
 * makes spectra incomparable stands below the table of their analysis. */
TEST_WITH(test_incomparable_rows, make_study, remove_page)
{
    static const char note[] = "<p class=\"note\">Not comparable: ln+mse (number of parameters 100 "
                               "and 123456789 in [analyze more]).</p>",
                      words[] = "<td class=\"name\">ln+mse<small>not comparable</small></td>";
    const char *path, *further;
    struct ks_spectrum *s;

    set_study("[analyze more]\norder = 4\n");
    for (size_t i = 0; i < SEEDS; i++)
        for (size_t k = 0; k <= CHECKPOINTS; k++)
            write_spectrum(&(struct place){"ln+mse", i, STEP[k], "more"}, 100, false);
    path = scratch(spectrum_path(&(struct place){"ln+mse", 1, STEP[CHECKPOINTS], "more"}));
    s = read_spectrum(path);
    for (size_t j = 0; j < s->attributes.n; j++)
        if (strcmp(s->attributes.list[j].name, "dimension") == 0)
            s->attributes.list[j].integer = 123456789;
    assert_ok(ks_spectrum_write(path, s));
    write_page();
    further = strstr(page, "id=\"table-analysis-1\"");
    assert_non_null(further);
    assert_contains(further, note);
    assert_contains(further, words);
    assert_true(strstr(page, words) > further);
    for (const char *at = page; (at = strstr(at, "<tr data-")) != NULL; at++)
        assert_true(strstr(at, "</td>") - strstr(at, "<td") < 64);
}

/* A table has no columns of statistics that none of its spectra has. */
TEST_WITH(test_columns_of_an_analysis, make_study, remove_page)
{
    const char *table;

    set_study("[analyze xqc]\ncompat = xqc\n");
    write_page();
    table = strstr(page, "id=\"table-analysis-1\"");
    assert_non_null(table);
    assert_contains(table, "<th>return<");
    assert_null(strstr(table, "<th>kappa"));
    assert_null(strstr(table, "<td class=\"none\">undefined"));
}

/* The claims of a test; a row, of which the caller sets more. */
static struct ks_claims claims;

static struct ks_claim_row *add_claim(const char *name, enum ks_claim_statistic statistic,
                                      enum ks_verdict verdict)
{
    struct ks_claim_row *row = &claims.row[claims.n++];
    size_t i = 0;

    while (strcmp(ks_paper_claims[i].name, name) != 0)
        i++;
    *row = (struct ks_claim_row){
        .claim = &ks_paper_claims[i], .statistic = statistic, .verdict = verdict, .p_holm = NAN};
    row->found = (struct ks_finding){
        .effect_low = NAN, .effect_high = NAN, .theta = 1, .p = NAN, .within = NAN};
    return row;
}

static void put_claims(struct ks_summary_table *summary)
{
    summary->claims = claims;
}

static void start_claims(void)
{
    struct ks_claim_row *row;

    claims = (struct ks_claims){.n = 0};
    row = add_claim("bn-below-ln", KS_CLAIM_PAPER, KS_SUPPORTED);
    row->p_holm = 0.02;
    row->found.seeds = 3;
    row->found.units = 12;
    row->found.effect_low = row->found.effect_high = 1.5;
}

/* A line per claim, with a table below it. */
TEST_WITH(test_verdicts, make_study, remove_page)
{
    struct ks_claim_row *row;

    write_page();
    assert_false(says("id=\"verdicts\""));
    assert_false(says("#verdicts"));
    start_claims();
    row = add_claim("bn-below-ln", KS_CLAIM_SOUND, KS_NOT_DECIDED);
    row->p_holm = 1;
    row->found.seeds = 3;
    row->found.units = 12;
    row->found.effect_low = 0.2;
    row->found.effect_high = 1.25;
    row->found.in_favour = true;
    add_claim("bn-below-none", KS_CLAIM_PAPER, KS_NOT_SUPPORTED);
    add_claim("all-three-highest", KS_CLAIM_PAPER, KS_SAME_DIRECTION);
    write_changed(put_claims);
    assert_true(says("<a href=\"#verdicts\">"));
    assert_true(says("<h3>Rules of 2026-11-22</h3>\n<p>By the paper&#39;s statistics, 2 claims: 1 "
                     "supported, 1 not supported; by sound ones, 1 claim: 1 not decided.</p>"));
    assert_true(says(
        "<summary><span class=\"sentence\">the condition number with BN is an order of magnitude "
        "below that with LN</span>"
        "<span class=\"text yes\" data-by=\"paper&#39;s statistic\">supported</span>"
        "<span class=\"text\" data-by=\"sound statistic\">not decided"
        "<small>adjusted p above 0.05</small></span>"
        "<span class=\"text\" data-by=\"second sound one\">does not apply</span>"
        "<span class=\"text\" data-by=\"the claim\">open</span></summary>"));
    assert_true(says(">1.5</td><td data-value=\"1\">1</td><td data-value=\"0.02\">0.02</td>"
                     "<td data-value=\"3\">3</td><td data-value=\"12\">12</td></tr>"));
    assert_true(says(">0.2 to 1.25</td><td data-value=\"1\">1</td>"));
    assert_true(says("<code>bn-below-ln</code>, seen in <a href='#plot-spectra'>Figure 3 and "
                     "spectra</a>"));
    assert_true(says("<td class=\"text no\">not supported</td><td class=\"none\">not known</td>"
                     "<td data-value=\"1\">1</td><td class=\"none\">no test</td>"));
    assert_true(
        says("<h3>Rules of 2026-11-26</h3>\n<p>By the paper&#39;s statistics, 1 claim: 1 same "
             "direction; by sound ones, 0 claims.</p>"));
    assert_false(says("<th>within normalizations</th>"));
}

/* Correlations have a column of their own. */
TEST_WITH(test_claims_on_correlations, make_study, remove_page)
{
    claims = (struct ks_claims){.n = 0};
    add_claim("kappa-and-return", KS_CLAIM_PAPER, KS_NOT_RESOLVED)->values = 1;
    add_claim("kappa-and-return", KS_CLAIM_SOUND, KS_NOT_RESOLVED)->values = 1;
    claims.row[1].found.within = 0.25;
    write_changed(put_claims);
    assert_true(says("not resolved<small>one checkpoint; needs four</small></span>"));
    assert_true(says("<th>within normalizations</th>"));
    assert_true(says("no test</td><td data-value=\"0.25\">0.25</td><td data-value=\"0\">0</td>"));
}

/* The answer, then figures and the table of architectures, then verdicts, then the rest. */
TEST_WITH(test_order, make_study, remove_page)
{
    static const char *const parts_in_order[] = {
        "class=\"headline\"",    "id=\"plot-kappa_return\"",   "id=\"plot-returns\"",
        "id=\"plot-spectra\"",   "id=\"table-architectures\"", "id=\"verdicts\"",
        "The highest return has"};
    const char *at;

    start_claims();
    write_changed(put_claims);
    at = page;
    for (size_t i = 0; i < sizeof parts_in_order / sizeof *parts_in_order; i++) {
        at = strstr(at, parts_in_order[i]);
        if (!at)
            fail_msg("%s is missing or comes too early", parts_in_order[i]);
    }
}

/* Three rows of bn+wn+ce, in the order of the study's architectures, and one of ln+mse. */
static void put_theorems(struct ks_summary_table *summary)
{
    struct ks_theorems *t = &summary->theorems;

    t->n = 4;
    assert_ok(ks_alloc(t->n, sizeof *t->row, &t->row));
    for (size_t i = 0; i < t->n; i++) {
        t->row[i].architecture = i > 0;
        for (size_t k = 0; k < KS_THEOREM_NUMBERS; k++)
            t->row[i].value[k] = NAN;
        t->row[i].value[KS_PROPOSITION_2_LARGEST] = i > 0 ? 1 / (double)(1 + i) : NAN;
    }
    t->row[0].value[KS_PROPOSITION_1_LARGEST] = 17.5;
    t->row[1].value[KS_PROPOSITION_2_MEDIAN] = 0.125;
    t->row[3].value[KS_PROPOSITION_2_MEDIAN] = 0.0625;
    t->row[2].value[KS_LEMMA_1] = 0.50011;
    t->row[3].value[KS_LEMMA_1] = 0.25;
    t->row[3].value[KS_THEOREM_1] = 0.25011;
    t->row[1].value[KS_WEIGHT_DECAY] = 0;
    t->row[2].value[KS_WEIGHT_DECAY_NEEDED] = 0.29999;
}

/* The largest number of an architecture, and how many rows it has. Bounds are rounded to the side
 * on which they stay bounds. */
TEST_WITH(test_theorems, make_study, remove_page)
{
    write_page();
    assert_false(says("id=\"theorems\""));
    write_changed(put_theorems);
    assert_true(says("<tr><td class=\"name\">bn+wn+ce</td><td class=\"none\">not measured</td>"
                     "<td data-value=\"0.5\">0.5</td>"
                     "<td data-value=\"0.125\">0.125</td><td data-value=\"0.50011\">0.501</td>"
                     "<td class=\"none\">not measured</td><td data-value=\"0.25011\">0.251</td>"
                     "<td class=\"none\">not measured</td><td data-value=\"0\">0</td>"
                     "<td data-value=\"0.29999\">0.299</td><td data-value=\"3\">3</td></tr>"));
    assert_true(says("<tr><td class=\"name\">ln+mse</td><td data-value=\"17.5\">17.5</td>"));
    assert_true(says("but the numbers shown for these\nare upper bounds of the ratios"));
}

/* Plots stand in the page as SVG, without the XML declaration; or why there are none. */
TEST_WITH(test_plots_in_the_page, make_study, remove_page)
{
    struct outcome *o;

    write_text("figures/spectra.svg", "<?xml version=\"1.0\"?>\n<svg class=\"x\"></svg>\n");
    write_text("figures/spectra.png", "\x89PNG");
    write_text("figures/kappa_steps.svg", "<svg></svg>\n");
    write_page();
    assert_true(says("<figure id=\"plot-spectra\">"));
    assert_true(says("tabindex=\"0\"><svg class=\"x\"></svg>\n</div>"));
    assert_false(says("<?xml"));
    assert_true(
        says("(<a href='figures/spectra.svg'>svg</a>, <a href='figures/spectra.png'>png</a>)"));
    assert_false(says("<figure id=\"plot-returns\">"));
    assert_true(says("Returns: not drawn (no run has a return)."));
    assert_true(says("A spike is where a Ritz value passes zero: the Hessian is indefinite"));
    write_text("figures/returns.svg", "not a plot");
    o = outcome_new(0);
    assert_fails(ks_page_write(o->results, &o->table), KS_FORMAT,
                 "figures/returns.svg: expected an <svg> element");
}

/* The files of a run may come from anywhere. */
TEST_WITH(test_text_of_runs, make_study, remove_page)
{
    write_text("runs/toy/ln+mse/seed1/run.json",
               "{\"state\": \"running\", \"versions\": {\"<i>\": \"</table><script>x\"}, "
               "\"processor\": \"A & B\", "
               "\"threads\": 2}\n");
    write_text("runs/toy/ln+mse/seed2/run.json",
               "{\"state\": \"running\", \"processor\": \"C\"}\n");
    write_text("tables/a \"b\".csv", "x\n");
    write_page();
    assert_true(says("<td class=\"name\">&lt;i&gt;</td>"
                     "<td class=\"text\">&lt;/table&gt;&lt;script&gt;x</td>"));
    assert_true(says("<td class=\"text\">A &amp; B</td><td data-value=\"1\">1</td>"));
    assert_true(says("<td class=\"text\">C</td><td data-value=\"1\">1</td>"));
    assert_true(says("<a href='tables/a%20%22b%22.csv'>a &quot;b&quot;.csv</a>"));
    assert_true(says("<td class=\"name\">operator</td><td class=\"text\">hessian</td>"));
}

static void put_prediction(struct ks_summary_table *summary)
{
    summary->prediction = (struct ks_prediction){
        {0.8, 0.5},
        3,
        {{papers, "xqc", {0.81, 0.25}, -0.2, 0.66, 0.99},
         {q99_lower, "ggn", {0.91, 0.71}, -0.75, 0.03, 0.2},
         {q99_upper, "ggn", {NAN, NAN}, NAN, NAN, NAN}}};
}

/* The factors alone come first; a statistic explains more of the architecture that is left out,
 * less, or is not resolved. */
TEST_WITH(test_prediction, make_study, remove_page)
{
    write_page();
    assert_false(says("id=\"prediction\""));
    write_changed(put_prediction);
    assert_true(says("id=\"prediction\""));
    assert_true(says(">0.25</td>"));
    assert_true(says("<td class=\"text\">less</td></tr>"));
    assert_true(says("<td class=\"text\">more</td></tr>"));
    assert_true(says("not resolved"));
}
