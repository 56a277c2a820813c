/* From a description to an audit: trains a described critic and a baseline by a small study. */
#ifndef KS_AUDIT_TRAINING_H
#define KS_AUDIT_TRAINING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct ks_audit_training {
    const char *arch, *env; /* NAME.arch, and a task                                      */
    const char *baseline;   /* an architecture that `study` knows                         */
    const char *folder;     /* of the study; NULL: NAME-TASK in the working folder        */
    size_t steps;           /* environment steps                                          */
    bool quiet;
};

enum { KS_AUDIT_TRAINED = 2 };      /* the described critic, the baseline */
enum { KS_AUDIT_MINIBATCHES = 20 }; /* of each checkpoint                  */

/* Writes FOLDER/study.study and runs `kappascope study` on it, which shows its progress; what is
 * there already is not computed again. Sets *folder and the paths of both last checkpoints, which
 * the caller frees, also after a failure. KS_USAGE if another study is in the folder; KS_RUN if the
 * study fails. A study that is refused before its first run is not kept. */
ks_status ks_audit_train(const struct ks_audit_training *training, char **folder,
                         char *checkpoint[KS_AUDIT_TRAINED]);

#endif
