/* Studies of small runs from elsewhere, in the folder s of the scratch folder. */
#ifndef KS_TEST_ELSEWHERE_RUNS_H
#define KS_TEST_ELSEWHERE_RUNS_H

#include "scratch.h"

#include "study/study_file.h"

#define MSE              "dense 4\nrelu\ndense 1\nloss mse\n"
#define CE               "dense 4\nrelu\ndense 3\nloss ce min=-1 max=1\n"
#define HUBER            "dense 4\nrelu\ndense 1\nloss huber delta=2\n"
#define MINIMAL_OF(more) "[study]\ntrained = elsewhere\n" more "[analyze]\norder = 8\n"
#define MINIMAL          MINIMAL_OF("")

/* What differs between the checkpoints of the tests. */
struct sort {
    const char *network, *minibatches; /* NULL: MSE, "fixed" */
    size_t n, rows;                    /* 0: 2 minibatches of ROWS rows */
    double gamma, reward_scale;        /* 0: 0.99; not said             */
    bool has_adam;                     /* its optimizer has not moved as many parameters as the
                                        * seed's number: the coordinates of `preconditioned` differ */
};

/* The path of a run's file in the scratch folder. */
const char *run_path(const char *name, size_t seed, const char *file);

void write_checkpoint(const char *name, size_t seed, size_t step, const struct sort *sort);
void write_return_table(const char *name, size_t seed, const char *text);

/* Checkpoints and returns at steps 100, 200 and 300; the last return is `last`. */
void write_run(const char *name, size_t seed, const struct sort *sort, int last);

/* Two names with two seeds each; the last returns are 10, 20 and 30, 40. */
void write_two(void);

void write_study(const char *text);
struct ks_study *read_study(void); /* held until the test ends */
void study_refuses(const char *words);

/* How many warnings of the study have these words; each is one line. */
size_t count_warnings(const struct ks_study *s, const char *words);

#endif
