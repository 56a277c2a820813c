/* quadratics.csv: why a condition number matters (after Figure 2 of the XQC paper). Gradient
 * descent on f(x) = (x_1^2 + kappa x_2^2) / 2 from x = (1, 1/kappa), where both coordinates have
 * the same gradient, with the step length 2 / (1 + kappa), which is the best constant one
 * (Nesterov, Introductory lectures on convex optimization, 2004, theorem 2.1.15): every step then
 * multiplies |x| by (kappa - 1) / (kappa + 1). */
#include <math.h>

#include "report/plot_tables.h"

enum { STEPS = 100 };
static const double kappas[] = {1, 3, 10, 30, 100, 1000};

static void descend(double kappa, FILE *out)
{
    const double rate = 2 / (1 + kappa), start = hypot(1, 1 / kappa);
    double x[2] = {1, 1 / kappa};

    for (int step = 0; step <= STEPS; step++) {
        fprintf(out, "%g,%d", kappa, step);
        ks_table_number(out, x[0]);
        ks_table_number(out, x[1]);
        ks_table_number(out, (x[0] * x[0] + kappa * x[1] * x[1]) / 2);
        ks_table_number(out, hypot(x[0], x[1]) / start);
        putc('\n', out);
        x[0] -= rate * x[0];
        x[1] -= rate * kappa * x[1];
    }
}

ks_status ks_quadratics_write(const struct ks_tables *t, FILE *out)
{
    (void)t;
    for (size_t i = 0; i < sizeof kappas / sizeof *kappas; i++)
        descend(kappas[i], out);
    return KS_OK;
}
