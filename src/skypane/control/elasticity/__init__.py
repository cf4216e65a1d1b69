"""Numbers of workers of each stage: by fuzzy logic (paper 5), a model (paper 3) or a threshold (cluster managers).

membership.py, rules.py, fuzzy.py   the fuzzy controller, vectorised over situations
fuzzy_policy.py                     the controller as a policy
explaining.py                       reasons for its decisions, in one line each
situation.py                        the interface of all policies, and their input
forecasting_policy.py, threshold.py the other two policies
limits.py, interval.py              limits of proposals; measurements of a control interval
elastic.py                          when a policy decides, and how its proposals are limited
options.py                          the options for elastic=
"""
