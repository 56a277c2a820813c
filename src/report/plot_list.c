/* The plots: titles and captions, and the data that each needs. */
#include "report/plots.h"

/* What the shade and the crosses of kappas mean. */
#define LIMITS                                                                                     \
    "Shaded are kappas above what our bound certifies, the largest absolute eigenvalue over the "  \
    "noise floor (the smallest such limit of the spectra shown); the shade does not say that "     \
    "rounding moves them. A cross behind a mark does: in more than half of its spectra that "      \
    "store a measurement of it, rounding moves kappa by more than 10%."

const struct ks_plot ks_plots[KS_PLOTS] = {
    {"kappa_return",
     "Conditioning and return",
     "As in Figure 4 of the XQC paper: statistics of the spectra after the first update (IQM over "
     "checkpoints and seeds) against the IQM of the last return, a mark per architecture. The "
     "spectra come from [analyze xqc], computed as in the published code, if the study has that "
     "analysis, else from our analysis; the labels say which. The published code divides its "
     "products "
     "by the number of minibatches a second time, so the largest eigenvalue is smaller by that "
     "factor. In the columns of batch normalization, "
     "weight normalization and cross-entropy, lines join architectures that differ in it alone. "
     "Bars in the last column are 90% stratified bootstrap intervals; a thick one goes from the "
     "smallest to the largest kappa over several start vectors. " LIMITS
     " Returns at step 0 lie in the grey band.",
     "kappa_return",
     {"kappa", "lambda_max", "kurtosis"},
     "no spectrum after the first update has a finite statistic"},
    {"sound_return",
     "Intervals of conditioning and return",
     "99% intervals of three statistics at the last checkpoint against the IQM of the last return: "
     "the number of eigenvalues within a factor of 100 of the largest in absolute value, the "
     "factor by which 99% of the eigenvalues are smaller than the largest, and the factor within "
     "which 90% of the gradient's energy lies. Marks are at the middle of the interval; an arrow "
     "means that the upper end is not resolved. With several seeds the thick line joins the "
     "medians of the ends, and the thin line covers the intervals of all seeds.",
     "summary",
     {"directions_1e2_lower", "kappa_q99_lower"},
     "the analyses have no intervals"},
    {"preconditioned_return",
     "Conditioning as Adam sees it and return",
     "Statistics of the preconditioned Hessian, the curvature in the coordinates in which Adam's "
     "steps are those of gradient descent, from our analysis; IQM, bars, crosses and shade as in "
     "the plot of conditioning and return.",
     "preconditioned_return",
     {"kappa", "lambda_max", "kurtosis"},
     "the study has no [analyze NAME] with operator = preconditioned"},
    {"returns",
     "Returns",
     "Return of the evaluations over training: IQM over seeds, with its 90% interval if "
     "there are several seeds.",
     "return_curves",
     {"return"},
     "no run has a return"},
    {"variants",
     "Variants",
     "Return over training of each variant (coloured) and of the architecture that it changes "
     "(grey, named in the panel): IQM over seeds, with its 90% interval if there are several "
     "seeds.",
     "variants",
     {"return"},
     "the study has no variant of one of its architectures"},
    {"spectra",
     "Spectra over training",
     "As in Figure 3 of the XQC paper: all Ritz values of the Hessian of the critic's loss, a dash "
     "each, in a column per checkpoint (one seed; symmetric-log axis, the same in all panels), and "
     "kappa, the largest over the smallest absolute Ritz value (the paper's Definition 3 has "
     "eigenvalues): the IQM over seeds, with its 90% interval if there are several seeds. If the "
     "study has most of the twelve architectures, and at most two others, the lowest row has kappa "
     "of both losses. Marks are circles with cross-entropy and triangles with the squared error, "
     "open and on dashed lines with weight normalization. The label says whether the values are "
     "as in the published code or from our analysis. " LIMITS
     " A triangle at the upper edge marks an infinite kappa.",
     "ritz",
     {"ritz"},
     "no spectrum of the standard analysis"},
    {"directions",
     "Directions of large curvature over training",
     "The number of eigenvalues within a factor of 100 of the largest in absolute value: 99% "
     "intervals (with several seeds as in those against the return). More directions of similar "
     "curvature mean a better conditioned loss.",
     "intervals",
     {"directions_1e2_lower"},
     "the analyses have no intervals"},
    {"gradient",
     "Conditioning along the gradient over training",
     "The largest absolute eigenvalue over the one above which 90% of the gradient's energy lies: "
     "99% intervals (with several seeds as in those against the return). It is the condition "
     "number that the next steps of descent see.",
     "intervals",
     {"kappa_gradient_90_lower"},
     "the standard analysis has no start = gradient"},
    {"noise",
     "Gradient noise over training",
     "The number of minibatches over which the gradient has to be averaged until its noise is as "
     "large as the gradient itself: 99% intervals (with several seeds as in those against the "
     "return). The minibatches of an analysis are taken as independent draws.",
     "intervals",
     {"noise_scale_lower"},
     "the analyses have no noise_scale (an older version made them)"},
    {"kappa_steps",
     "Kappa and the number of Lanczos steps",
     "What kappa and its lower bound would be after fewer Lanczos steps, at the last checkpoint "
     "(one seed, our analysis). Kappa goes up and down by orders of magnitude with the number of "
     "steps. A spike is where a Ritz value passes zero: the Hessian is indefinite, and kappa is "
     "the "
     "largest over the smallest |Ritz value|, so it jumps when a step moves a Ritz value through "
     "zero, in float64 too. Shaded: above what our bound certifies. The dotted lower bound of the "
     "condition number only grows. Squares: the lower bound off the known null directions, "
     "certified at the last step.",
     "orders",
     {"kappa"},
     "no spectrum at the last checkpoint has Lanczos coefficients"},
    {"distribution",
     "How many eigenvalues are large",
     "The number of eigenvalues larger than x for x > 0, and smaller than x for x < 0, at the last "
     "checkpoint (one seed): the number lies in the band with 99.5% at each x.",
     "distribution",
     {"beyond_upper"},
     "no spectrum at the last checkpoint has /distribution (analyzed by an older version, or with "
     "compat = xqc)"},
    {"density",
     "Spectral density",
     "The density of the eigenvalues at the last checkpoint (one seed), per decade of the "
     "symmetric-log axis, in cells as wide as the Ritz values are apart, with a band of one "
     "standard error over the probes if there are several. Eigenvalues in the grey strip cannot be "
     "distinguished from zero; the text has their share, a 99% interval.",
     "density",
     {"density_per_decade"},
     "no spectrum at the last checkpoint"},
    {"norms",
     "Norms and effective learning rate over training",
     "Norm of the critics' parameters, norm of their gradient, effective learning rate (the ratio "
     "of the two, per kernel and bias, as in the published code) and the XQC paper's own effective "
     "learning rate (Definition 1: the learning rate over the norm of the parameters), measured in "
     "training: IQM over seeds, with its 90% interval if there are several seeds. The "
     "architectures of Figure 8 of the XQC paper are coloured: XQC, XQC without weight "
     "normalization, with the squared error, and with layer normalization; all others are grey.",
     "norms",
     {"param_norm", "grad_norm", "effective_lr", "definition_1_lr"},
     "no progress.csv has these metrics"},
    {"sharpness",
     "Sharpness and stable steps",
     "The largest eigenvalue over the largest one at which steps are stable on a quadratic (dotted "
     "line): 2/eta for the Hessian and gradient descent (Cohen et al. 2021); for the "
     "preconditioned Hessian the bound of Adam (Cohen et al. 2022). Of several analyses of an "
     "operator, the first one is drawn. IQM over seeds, with its 90% interval if there are several "
     "seeds.",
     "sharpness",
     {"sharpness_ratio"},
     "no analysis knows a learning rate"},
    {"operators",
     "Hessian, Gauss-Newton matrix and residual",
     "All Ritz values of the Hessian (H), of the generalized Gauss-Newton matrix (GGN) and of "
     "their difference at the last checkpoint (one seed; symmetric-log axis).",
     "operators",
     {"ritz"},
     "the study has no [analyze NAME] with operator = ggn or residual"},
    {"layers",
     "Curvature by layer",
     "The largest eigenvalue of the Hessian's diagonal block of each analyzed layer at the last "
     "checkpoint: IQM over seeds, with its 90% interval if there are several seeds.",
     "layers",
     {"lambda_max"},
     "the study has no [analyze NAME] with layer = NN"},
    {"efficiency",
     "Cost and return",
     "Parameters of all critics, operations of the matrix products in a forward and a backward "
     "pass of all critics over a minibatch, and measured updates per second, against the IQM of "
     "the last return; bars are 90% stratified bootstrap intervals.",
     "efficiency",
     {"parameters", "updates_per_second"},
     "the task is unknown and no progress.csv has updates_per_second"},
    {"quadratics",
     "What a condition number does",
     "Gradient descent with the best constant step on quadratics with two eigenvalues, 1 and "
     "kappa. Above: the first 20 steps; below: the distance from the minimum. This plot is the "
     "same in all studies.",
     "quadratics",
     {"distance"},
     "no values"},
};
