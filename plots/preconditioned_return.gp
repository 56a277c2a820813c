# The same statistics as in kappa_return.gp, of the preconditioned Hessian, which is what Adam sees.
table = 'tables/preconditioned_return.csv'
source = 'of the preconditioned Hessian'; factors = ''
load plots.'/conditioning.gp'
