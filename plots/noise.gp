# The gradient's noise over training: so many minibatches are averaged until it is as large as the gradient.
statistic = 'noise_scale'; title = 'minibatches'
load plots.'/intervals_grid.gp'
