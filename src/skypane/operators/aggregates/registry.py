"""The aggregate functions there are, a line each: the package, job files, errors and docs/reference.md have them from here."""

from skypane.operators.aggregates.words import approx_count_distinct as approx_count_distinct
from skypane.operators.aggregates.words import approx_quantile as approx_quantile
from skypane.operators.aggregates.words import avg as avg
from skypane.operators.aggregates.words import collect as collect
from skypane.operators.aggregates.words import count as count
from skypane.operators.aggregates.words import count_distinct as count_distinct
from skypane.operators.aggregates.words import count_if as count_if
from skypane.operators.aggregates.words import first as first
from skypane.operators.aggregates.words import in_order as in_order
from skypane.operators.aggregates.words import keep as keep
from skypane.operators.aggregates.words import last as last
from skypane.operators.aggregates.words import max as max
from skypane.operators.aggregates.words import max_by as max_by
from skypane.operators.aggregates.words import min as min
from skypane.operators.aggregates.words import min_by as min_by
from skypane.operators.aggregates.words import stddev as stddev
from skypane.operators.aggregates.words import stddev_pop as stddev_pop
from skypane.operators.aggregates.words import sum as sum
from skypane.operators.aggregates.words import var_pop as var_pop
from skypane.operators.aggregates.words import variance as variance
