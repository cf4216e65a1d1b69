"""How many workers each stage has: fuzzy logic (paper 5), a model (paper 3), a threshold (as clusters do).

membership.py, rules.py, fuzzy.py   the fuzzy controller, vectorised over situations
explaining.py                       one line for each of its decisions
situation.py                        what every policy decides from
model.py, threshold.py              the other two policies
limits.py, interval.py              what proposals are held to; what a control interval showed
elastic.py                          when a policy is asked, and what of its answer is done
options.py                          what a user writes as elastic=
"""
