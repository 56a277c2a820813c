/* The critics that were measured before an audit: those of the shipped studies, or of one study's
 * folder. An audit says which of them are conditioned better and which worse. */
#ifndef KS_AUDIT_MEASURED_H
#define KS_AUDIT_MEASURED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/interval.h"
#include "io/csv.h"

struct ks_spectrum;

/* What critics of any size, loss and scale of the loss can be compared by: a count and a ratio.
 * Each is a 99% interval; an end that is not resolved is NaN. */
struct ks_conditioning {
    struct ks_interval directions; /* directions_1e2: more is better                        */
    struct ks_interval q99;        /* kappa_q99, which relates to the size: less is better  */
};

enum ks_verdict { KS_BETTER, KS_WORSE, KS_UNDECIDED, KS_VERDICTS };

/* Intervals that are closer to each other than by this factor decide nothing: other minibatches may
 * change a critic's statistics by as much. A judgement. */
extern const double ks_verdict_margin;

/* Whether a is better conditioned than b: if the intervals of `directions` or of `q99` lie apart
 * for it, and none against it. The former count, so they favour large critics; the latter relates
 * to the number of parameters, so it favours small ones. */
enum ks_verdict ks_verdict(const struct ks_conditioning *a, const struct ks_conditioning *b);
/* Of the Hessian's spectrum; not resolved if the Hessian is zero. */
struct ks_conditioning ks_conditioning_of(const struct ks_spectrum *spectrum);

/* An architecture of a study at one step, over its seeds. The texts point into the table. */
struct ks_measured_critic {
    const char *study, *env, *name, *loss; /* "-": not known                                  */
    double step;                           /* env_step; NaN if not known                      */
    double minibatches; /* of its spectra; NaN if not known                        */
    size_t seeds;
    struct ks_conditioning conditioning; /* each interval encloses those of all seeds         */
    double return_mean;                  /* at that step, mean over the seeds                 */
};

struct ks_measured {
    struct ks_csv *csv; /* owned */
    size_t n;
    struct ks_measured_critic *critic; /* [n], in the table's order; owned */
};

/* Reads plots/gallery/critics.csv, or FOLDER/checkpoints.csv of a study that is called `study`; of
 * each architecture takes the step whose ratio to `step` is nearest to 1, the last one if `step` is
 * NaN. `untrained`: of critics at their first update, otherwise of the
 * others, unless the table has only one kind. Fails as ks_csv_read does; KS_FORMAT if it has no
 * critic. The caller ends with ks_measured_clear, also after a failure. */
ks_status ks_measured_read(const char *path, const char *study, double step, bool untrained,
                           struct ks_measured *measured);
void ks_measured_clear(struct ks_measured *measured);

/* How far apart two steps are: |log(a / b)|; infinite if the ratio is not finite and above 0. */
double ks_step_distance(double a, double b);

#endif
