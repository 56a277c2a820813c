/* The text of a study, and reading a study from a text. */
#ifndef KS_STUDY_TEXT_H
#define KS_STUDY_TEXT_H

#include "tree.h"

#include "study/study_file.h"

static const char GOOD[] = "; a comment\n"
                           "[study]\n"
                           "env = dog-trot\n"
                           "architectures = bn+wn+ce, dense+mse\n"
                           "seeds = 3 0..1\n"
                           "steps = 1000\n"
                           "missing = drop\n"
                           "[train]\n"
                           "checkpoints = 3\n"
                           "random_steps = 100 ; agent steps\n"
                           "evaluations = 2\n"
                           "gamma = auto\n"
                           "[analyze]\n"
                           "order = 30\n"
                           "exact = no\n"
                           "precision = f64\n";

static inline ks_status read_text(const char *text, struct ks_study **study)
{
    tree_write("some.study", text);
    return ks_study_read(tree_path("some.study"), true, study);
}

#endif
