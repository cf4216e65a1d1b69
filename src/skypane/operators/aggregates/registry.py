"""The aggregate functions, one a line; the package, job files, errors and docs/reference.md use this list."""

from skypane.operators.aggregates.constructors import accumulate as accumulate
from skypane.operators.aggregates.constructors import approx_count_distinct as approx_count_distinct
from skypane.operators.aggregates.constructors import approx_quantile as approx_quantile
from skypane.operators.aggregates.constructors import avg as avg
from skypane.operators.aggregates.constructors import bool_and as bool_and
from skypane.operators.aggregates.constructors import bool_or as bool_or
from skypane.operators.aggregates.constructors import collect_list as collect_list
from skypane.operators.aggregates.constructors import collect_set as collect_set
from skypane.operators.aggregates.constructors import count as count
from skypane.operators.aggregates.constructors import count_distinct as count_distinct
from skypane.operators.aggregates.constructors import count_if as count_if
from skypane.operators.aggregates.constructors import first as first
from skypane.operators.aggregates.constructors import in_order as in_order
from skypane.operators.aggregates.constructors import last as last
from skypane.operators.aggregates.constructors import max as max
from skypane.operators.aggregates.constructors import max_by as max_by
from skypane.operators.aggregates.constructors import mean as mean
from skypane.operators.aggregates.constructors import median as median
from skypane.operators.aggregates.constructors import min as min
from skypane.operators.aggregates.constructors import min_by as min_by
from skypane.operators.aggregates.constructors import mode as mode
from skypane.operators.aggregates.constructors import percentile as percentile
from skypane.operators.aggregates.constructors import percentile_approx as percentile_approx
from skypane.operators.aggregates.constructors import stddev as stddev
from skypane.operators.aggregates.constructors import stddev_pop as stddev_pop
from skypane.operators.aggregates.constructors import sum as sum
from skypane.operators.aggregates.constructors import var_pop as var_pop
from skypane.operators.aggregates.constructors import variance as variance

_GROUP = "skypane.functions"
