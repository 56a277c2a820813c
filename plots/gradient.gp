# The conditioning along the gradient, over training: the factor within which 90% of the gradient's energy lies.
statistic = 'kappa_gradient_90'; title = 'κ along g'
load plots.'/intervals_grid.gp'
