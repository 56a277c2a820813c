# Figure 4 of the XQC paper: kappa, the largest eigenvalue and the kurtosis against the return, a mark per architecture. A
# column of panels each for batch normalization, weight normalization and cross-entropy, if the study has pairs of
# architectures that differ in it alone, and one with all architectures.
table = 'tables/kappa_return.csv'
# whether architectures i and j differ in the factor alone, and j has it
same(i, j, list) = word(list, i) eq word(list, j)
named_one(i) = group_of(i) == 1 && word(norms, i) ne 'other' && word(losses, i) ne 'other' && word(bases, i) eq '-'
differ(factor, i, j) = !named_one(i) || !named_one(j) ? 0 : \
    factor eq 'bn' ? same(i, j, wns) && same(i, j, losses) && word(norms, j) eq 'bn' && word(norms, i) ne 'bn' : \
    factor eq 'wn' ? same(i, j, norms) && same(i, j, losses) && word(wns, j) eq '1' && word(wns, i) eq '0' : \
                     same(i, j, norms) && same(i, j, wns) && word(losses, j) eq 'ce' && word(losses, i) eq 'mse'
in_pair(factor, i) = int(sum [j=1:words(archs)] (differ(factor, i, j) || differ(factor, j, i))) > 0
factors = ''
do for [factor in 'bn wn ce'] {
    if (int(sum [i=1:words(archs)] in_pair(factor, i)) > 0) { factors = factors.' '.factor }
}
set datafile separator comma
source = ''
stats table using (source = strcol('analysis') eq 'standard' ? 'our analysis' : 'as in the published code', 0) nooutput
load plots.'/conditioning.gp'
