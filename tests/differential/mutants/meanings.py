"""Mutants of what values mean: conditions and scores beside Spark's, values as inputs read them, the order of each type."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.differential.mutants.mutant import Mutant

_AGGREGATES, _PREFERENCE, _RUNTIME = "operators/aggregates", "preference", "runtime"
_PARTS, _SQL, _CONDITION = (f"{_AGGREGATES}/{name}.py" for name in ("condition_parts", "sql_condition", "condition"))
_EXPRESSION, _SCORE, _ORIENT = (f"{_PREFERENCE}/{name}.py" for name in ("expression", "score", "orient"))
_AROUND, _RANKS, _GROUPS = (f"{_PREFERENCE}/{name}.py" for name in ("around", "dense_ranks", "groups"))
_KEYS, _COUNTS, _STATES = (f"{_AGGREGATES}/{name}.py" for name in ("ordered_int64", "value_counts", "state_parts"))
_TIMES, _JSON, _ROWS = (f"{_RUNTIME}/{name}.py" for name in ("local_times", "json_rows", "row_parser"))
_COLUMNS, _TYPES = f"{_RUNTIME}/columns_to_read.py", f"{_RUNTIME}/spark/sources/many/parquet_types.py"
_TOP_K = "operators/topk.py"

_sql = partial(Mutant, kinds=("expressions",))
_read = partial(Mutant, kinds=("values",))
_ordered = partial(Mutant, kinds=("extremes",))

_CONDITIONS: Final = (
    _sql("nan-not-largest", _PARTS, "pc.or_kleene(pc.greater(left, right), pc.and_kleene(_is_nan(left), pc.invert(_is_nan(right))))", "pc.greater(left, right)", "NaN is larger than nothing"),
    _sql("nan-not-equal", _PARTS, "pc.or_kleene(pc.equal(left, right), pc.and_kleene(_is_nan(left), _is_nan(right)))", "pc.equal(left, right)", "NaN does not equal itself"),
    _sql("less-is-greater", _PARTS, '"<": lambda left, right: _greater(right, left)', '"<": lambda left, right: _greater(left, right)', "< is >"),
    _sql("at-most-is-at-least", _PARTS, '"<=": lambda left, right: pc.invert(_greater(left, right))', '"<=": lambda left, right: pc.invert(_greater(right, left))', "<= is >="),
    _sql("at-least-is-at-most", _PARTS, '">=": lambda left, right: pc.invert(_greater(right, left))', '">=": lambda left, right: pc.invert(_greater(left, right))', ">= is <="),
    _sql("at-most-is-less", _PARTS, '"<=": lambda left, right: pc.invert(_greater(left, right))', '"<=": lambda left, right: _greater(right, left)', "<= is <"),
    _sql("unequal-is-equal", _PARTS, '"<>": lambda left, right: pc.invert(_equal(left, right))', '"<>": _equal', "<> is ="),
    _sql("or-is-and", _PARTS, "pc.or_kleene if self.by_or else pc.and_kleene", "pc.and_kleene", "OR is AND"),
    _sql("and-is-or", _PARTS, "pc.or_kleene if self.by_or else pc.and_kleene", "pc.or_kleene", "AND is OR"),
    _sql("null-wins", _PARTS, "pc.or_kleene if self.by_or else pc.and_kleene", "pc.or_ if self.by_or else pc.and_", "null OR true is null"),
    _sql("one-part-fits", _PARTS, "return all(part.fits(kinds) for part in self.parts)", "return any(part.fits(kinds) for part in self.parts)", "a condition with one part of Spark's is evaluated"),
    _sql("not-left-out", _PARTS, "return pc.invert(self.part.value(rows))", "return self.part.value(rows)", "NOT changes nothing"),
    _sql("null-is-valid", _PARTS, "return pc.is_null(rows.column(self.column))", "return pc.is_valid(rows.column(self.column))", "IS NULL is IS NOT NULL"),
    _sql("negated-fits", _PARTS, "return self.part.fits(kinds)", "return True", "what is negated is evaluated, whatever its types"),
    _sql("any-column-is-true", _PARTS, "return bool(pa.types.is_boolean(kinds[self.name]))", "return True", "a number is a condition"),
    _sql("null-is-not-among", _PARTS, "return pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))", "return found", "null NOT IN (1) is true"),
    _sql("among-of-its-type", _PARTS, "values.cast(pa.int64()) if _is_whole(values.type) else values", "values", "a literal beyond the column's type fails"),
    _sql("decimals-always-fit", _PARTS, "return _one_decimal_holds(left, right.precision, right.scale)", "return True", "decimals are compared that Spark rounds"),
    _sql("times-alike", _PARTS, "(left == right and any(test(left) for test in listed))", "any(test(left) and test(right) for test in listed)", "times with and without a zone are compared"),
    _sql("text-beside-all", _PARTS, "isinstance(literal, bool) else _is_text(kind))", "isinstance(literal, bool) else True)", "a text is compared with numbers"),
    _sql("truth-beside-all", _PARTS, "return bool(pa.types.is_boolean(kind) if isinstance(literal, bool)", "return bool(True if isinstance(literal, bool)", "TRUE is compared with numbers"),
    _sql("wider-than-widest", _PARTS, "digits <= _WIDEST", "digits <= 2 * _WIDEST", "decimals that none of 38 digits holds are compared"),
    _sql("long-literal-cut", _PARTS, "(_INT32_DIGITS if -(2**31) <= literal < 2**31 else _INT64_DIGITS), 0", "_INT32_DIGITS, 0", "a whole literal has ten digits"),
    _sql("float-as-double", _PARTS, "pa.types.is_float64(kind) or (isinstance(literal, int)", "pa.types.is_floating(kind) or (isinstance(literal, int)", "floats are compared with doubles"),
    _sql("decimal-as-double", _PARTS, "return pa.scalar(Decimal(literal), pa.decimal128(*_digits(literal)))", "return pa.scalar(float(literal))", "decimals are compared as doubles"),
    _sql("mirrored-less", _SQL, '"<>": "<>", "<": ">"', '"<>": "<>", "<": "<"', "3 < n is n < 3"),
    _sql("mirrored-most", _SQL, '"<": ">", "<=": ">=", ">": "<"', '"<": ">", "<=": "<=", ">": "<"', "3 <= n is n <= 3"),
    _sql("mirrored-least", _SQL, '">": "<", ">=": "<="}', '">": "<", ">=": ">="}', "3 >= n is n >= 3"),
    _sql("other-sign", _SQL, '"!=": "<>"', '"!=": "="', "!= is ="),
    _sql("words-swapped", _SQL, 'Joined(word == "OR", tuple(parts))', 'Joined(word == "AND", tuple(parts))', "AND and OR change places"),
    _sql("not-too-far", _SQL, "return Negated(self._negated(depth + 1))", "return Negated(self.condition(depth + 1))", "NOT reaches over AND"),
    _sql("not-in-is-in", _SQL, "return Negated(found) if negated else found", "return found", "NOT IN is IN"),
    _sql("is-not-reversed", _SQL, 'negated = self._is("NOT")\n            self._require("NULL")', 'negated = not self._is("NOT")\n            self._require("NULL")', "IS NULL is IS NOT NULL"),
    _sql("text-trimmed", _SQL, "return self._next()[1:-1]\n", "return self._next()[1:-1].strip()\n", "blanks of a text are lost"),
    _sql("true-is-false", _SQL, 'self._next().upper() == "TRUE"', 'self._next().upper() == "FALSE"', "TRUE is FALSE"),
    _sql("double-rounded", _SQL, "return float(number)", "return round(float(number), 12)", "a double loses digits"),
    _sql("endless-digits", _SQL, "sum(map(str.isdigit, number)) > _DIGITS", "sum(map(str.isdigit, number)) > 99", "a literal that SQL refuses is read"),
    _sql("beyond-bigint", _SQL, "-(2**63) <= int(number) < 2**63", "-(2**99) <= int(number) < 2**99", "a whole literal beyond 64 bits is read"),
    _sql("suffix-read", _SQL, r"(?P<whole>-?[ ]*\d+(?![\w.]))", r"(?P<whole>-?[ ]*\d+L?(?![\w.]))", "3L is read"),
    _sql("one-blank-sign", _SQL, 'number = self._next().replace(" ", "")', 'number = self._next().replace(" ", "").lstrip("-")', "a sign is lost"),
    _sql("unknown-is-true", _CONDITION, "fill_value=False", "fill_value=True", "a row is kept for which a condition is null"),
    _sql("any-case", _CONDITION, "name not in schema.names or names.count", "name.lower() not in names or names.count", "a column is found in other letters, and then is not"),
)  # fmt: skip

_SCORES: Final = (
    _sql("minus-is-plus", _EXPRESSION, "ast.Sub: np.subtract", "ast.Sub: np.add", "- is +"),
    _sql("times-is-plus", _EXPRESSION, "ast.Mult: np.multiply", "ast.Mult: np.add", "* is +"),
    _sql("whole-quotient", _EXPRESSION, "ast.Div: np.true_divide", "ast.Div: np.floor_divide", "a quotient is whole"),
    _sql("sign-lost", _EXPRESSION, "ast.USub: np.negative", "ast.USub: np.positive", "-x is x"),
    _sql("not-absolute", _EXPRESSION, '"abs": (np.abs,', '"abs": (np.positive,', "abs(x) is x"),
    _sql("no-root", _EXPRESSION, '"sqrt": (np.sqrt,', '"sqrt": (np.square,', "a root is a square"),
    _sql("least-of-known", _EXPRESSION, '"min": (np.minimum,', '"min": (np.fmin,', "min() leaves NaN out"),
    _sql("largest-of-known", _EXPRESSION, '"max": (np.maximum,', '"max": (np.fmax,', "max() leaves NaN out"),
    _sql("least-in-sql", _EXPRESSION, '"min": "least", "max": "greatest"', '"min": "greatest", "max": "least"', "min() is greatest() in SQL"),
    _sql("lacks-one", _EXPRESSION, 'lacks = " OR ".join(', 'lacks = " AND ".join(', "a row that lacks one part has a score"),
    _sql("reversed-sides", _EXPRESSION, "(self._value(left, columns), self._value(right, columns))", "(self._value(right, columns), self._value(left, columns))", "x - y is y - x"),
    _sql("unknown-types", _EXPRESSION, 'return _DOUBLE if _DOUBLE in types and "" not in types else ""', 'return _DOUBLE if _DOUBLE in types else ""', "decimals beside a double are computed"),
    _sql("whole-negated", _EXPRESSION, 'return "" if inner == _WHOLE or twice else inner', 'return "" if twice else inner', "-n of whole numbers is computed"),
    _sql("by-nothing", _EXPRESSION, "(isinstance(right, ast.Constant) and right.value)", "isinstance(right, ast.Constant)", "x / 0 is computed"),
    _sql("by-columns", _EXPRESSION, "if not (functions or (isinstance(right, ast.Constant) and right.value)):", "if False:", "x / y is computed, where y is 0"),
    _sql("all-arithmetic", _SCORE, "if len(kinds) == len(columns) and expression.is_of_doubles(kinds):", "if len(kinds) == len(columns):", "arithmetic of any types is computed"),
    _sql("nan-first", _SCORE, "keys[np.isnan(scores)] = _LAST", "keys[np.isnan(scores)] = -_LAST", "NaN is the smallest score"),
    _sql("zeros-apart", _SCORE, "bits = (scores + 0.0).view(np.int64)", "bits = (scores * 1.0).view(np.int64)", "-0.0 is less than 0.0"),
    _sql("negative-backwards", _SCORE, "keys = bits ^ ((bits >> 63) & _LAST)", "keys = bits", "negative scores are in the wrong order"),
    _ordered("largest-forgotten", _SCORE, "_ascending_keys(-scores if largest else scores)", "_ascending_keys(scores)", "the largest scores are the smallest"),
    _ordered("least-of-all-best", _SCORE, "return ~keys if largest else keys", "return -keys if largest else keys", "the least 64-bit number is the largest"),
    _ordered("ranked-as-doubles", _SCORE, "whole_numbers(values).astype(np.int64)", "whole_numbers(values).astype(np.float64).astype(np.int64)", "whole numbers are ranked as doubles"),
    _ordered("decimals-as-doubles", _SCORE, "if column is None or pa.types.is_floating(table.column(column).type):", "if column is None or pa.types.is_floating(table.column(column).type) or pa.types.is_decimal(table.column(column).type):", "decimals are ranked as doubles"),
)  # fmt: skip

_ORDERS: Final = (
    _ordered("all-are-exact", _ORIENT, "_EXACT = 2**53", "_EXACT = 2**64", "whole numbers are compared as doubles"),
    _ordered("negative-are-exact", _ORIENT, "max(int(values.max()), -int(values.min())) <= _EXACT", "int(values.max()) <= _EXACT", "negative whole numbers are compared as doubles"),
    _ordered("high-is-low", _ORIENT, "np.negative(out, out=out)", "np.positive(out, out=out)", "MAX is MIN"),
    _ordered("decimals-are-doubles", _ORIENT, "    if pa.types.is_floating(kind):\n        _copy_chunks(column, out)", "    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):\n        _copy_chunks(column, out)", "decimals are compared as doubles"),
    _ordered("distances-are-doubles", _ORIENT, "return _write_whole(away, out)", "out[:] = away\n            return True", "distances are compared as doubles"),
    _ordered("below-is-near", _AROUND, "np.maximum(np.maximum(lo - x, x - hi), 0.0)", "np.maximum(x - hi, 0.0)", "what is below the target is as near as it"),
    _ordered("whole-below-backwards", _AROUND, "_modular(lo) - modular, np.uint64(0)", "modular - _modular(lo), np.uint64(0)", "what is below the target is far"),
    _ordered("exact-below-backwards", _AROUND, "pc.subtract(lo, values), within", "pc.subtract(values, lo), within", "what is below the target is nearest"),
    _ordered("exact-above-lost", _AROUND, "pc.if_else(pc.greater(values, hi), beyond, pa.scalar", "pc.if_else(pc.less(values, hi), beyond, pa.scalar", "what is above the target is as near as it"),
    _ordered("target-as-double", _AROUND, "Decimal(repr(one)) if isinstance(one, float) else Decimal(one)", "Decimal(float(one))", "a target is rounded to a double"),
    _ordered("ties-apart", _RANKS, 'tiebreaker="dense"', 'tiebreaker="first"', "equal values have different ranks"),
    _ordered("ranks-backwards", _RANKS, 'sort_keys="ascending"', 'sort_keys="descending"', "values are ranked backwards"),
    _ordered("ranks-by-last", _RANKS, "new[1:] |= sorted_key[1:] != sorted_key[:-1]", "new[1:] = sorted_key[1:] != sorted_key[:-1]", "rows differ by their last key alone"),
    _ordered("zeros-are-groups", _GROUPS, "pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))", "pc.if_else(pc.is_nan(values), nan, values)", "-0.0 and 0.0 are two groups"),
    _ordered("one-less-wide", _GROUPS, "most - least + 1", "most - least", "the last group of whole numbers is one with another"),
    _ordered("floats-as-bits", _KEYS, "keys = bits ^ ((bits >> 63) & _LAST)", "keys = bits", "negative numbers are in the wrong order"),
    _ordered("largest-negated", _KEYS, "keys = ~keys if largest else keys", "keys = -keys if largest else keys", "a largest value is off by one"),
    _ordered("least-for-largest", _STATES, "columns: list[IntArray] = [~order if self.largest else order]", "columns: list[IntArray] = [-order if self.largest else order]", "the least number of 64 bits is the largest"),
    _ordered("zeros-in-order", _STATES, "return frozen(keys_of(pc.add(column, pa.scalar(0.0, column.type))))", "return frozen(keys_of(column))", "-0.0 comes before 0.0 as an order"),
    _ordered("most-frequent-last", _COUNTS, "order = np.lexsort((-counts.to_numpy(zero_copy_only=False), owners))", "order = np.lexsort((counts.to_numpy(zero_copy_only=False), owners))", "the mode is the rarest value"),
    _ordered("place-too-high", _COUNTS, "np.maximum(np.ceil(share * places.totals), 1.0) - 1.0", "np.maximum(np.ceil(share * places.totals), 1.0)", "a percentile is the next value"),
    _ordered("tie-before-the-end", _TOP_K, "last = np.flatnonzero(places[:-1] == k - 1)", "last = np.flatnonzero(places[:-1] == k)", "ties for the last place are broken by position"),
    _ordered("candidates-cut", _TOP_K, "keys <= np.partition(keys, k - 1)[k - 1]", "keys < np.partition(keys, k - 1)[k - 1]", "the last place is lost"),
)  # fmt: skip

_VALUES: Final = (
    _read("case-matters", _COLUMNS, "return name if _CASE in (columns.metadata or {}) else name.lower()", "return name", "a column in other letters is null"),
    _read("zone-forgotten", _COLUMNS, "return zone.decode()", "return UTC", "times without a zone are in UTC"),
    _read("rules-end", _TIMES, "datetime(2037, 1, 1)", "datetime(2437, 1, 1)", "clocks change no more after 2037"),
    _read("later-of-two", _TIMES, 'ambiguous="earliest"', 'ambiguous="latest"', "of two times the later one is taken"),
    _read("skipped-later", _TIMES, 'nonexistent="earliest"', 'nonexistent="latest"', "a time that a clock skips is by the offset after it"),
    _read("milliseconds", _TIMES, r'FINE: Final = r"(\.\d{6})\d+"', r'FINE: Final = r"(\.\d{3})\d+"', "times finer than microseconds lose some"),
    _read("offset-added", _TIMES, "pc.subtract(local.cast(pa.int64()), offset)", "pc.add(local.cast(pa.int64()), offset)", "an offset is added"),
    _read("local-in-utc", _TIMES, "in_zone(local, zone).cast(kind)", "in_zone(local, UTC).cast(kind)", "times without a zone are in UTC"),
    _read("infinity-turned", _JSON, '"-Infinity": "-inf"', '"-Infinity": "inf"', "-Infinity is Infinity"),
    _read("exponents-trusted", _JSON, "return has_decimals(columns) and EXPONENT.search(text) is not None", "return False", "a decimal with an exponent is read by the parser"),
    _read("nested-in-utc", _JSON, "pa.types.is_timestamp(one) and (zone != UTC or one.tz is None)", "False", "times within lists are in UTC"),
    _read("nested-bytes", _JSON, "local or pa.types.is_binary(one) or", "local or", "bytes within structs are the letters of base64"),
    _read("any-base64", _JSON, "b64decode(text, validate=True)", "b64decode(text)", "what is not base64 is bytes"),
    _read("unchecked-digits", _ROWS, "        table.validate(full=True)  # the parser lets more digits in than a type has\n    arrays", "        pass\n    arrays", "a decimal of JSON has more digits than its type"),
    _read("zone-of-json", _ROWS, "_is_date_or_local if zone_of(columns) == UTC else _is_time", "_is_date_or_local", "times of JSON are in UTC"),
    _read("nan-is-null", _ROWS, 'null_values=[""]', 'null_values=["", "NaN"]', "NaN of CSV is null"),
    _read("null-is-text", _ROWS, "strings_can_be_null=True", "strings_can_be_null=False", "an empty field of CSV is a text"),
    _read("zone-of-csv", _ROWS, "return times_of(column, kind, zone)", "return times_of(column, kind, UTC)", "times are in UTC"),
    _read("exponents-of-csv", _ROWS, "if has_decimals(columns) and EXPONENT.search(text):", "if False:", "a decimal of CSV with an exponent is read by the parser"),
    _read("times-of-numbers", _TYPES, "Rule(pa.types.is_integer, pa.types.is_integer),", "Rule(pa.types.is_integer, lambda kind: pa.types.is_integer(kind) or pa.types.is_timestamp(kind)),", "whole numbers are times"),
    _read("truth-of-numbers", _TYPES, "Rule(pa.types.is_integer, pa.types.is_integer),", "Rule(pa.types.is_integer, lambda kind: pa.types.is_integer(kind) or pa.types.is_boolean(kind)),", "2 is true"),
    _read("narrower-floats", _TYPES, "stored.bit_width < wanted.bit_width", "True", "doubles are rounded to floats"),
    _read("decimals-divided", _TYPES, "Rule(pa.types.is_decimal, pa.types.is_floating, _by_digits)", "Rule(pa.types.is_decimal, pa.types.is_floating)", "decimals are a unit off as doubles"),
    _read("unchecked-cast", _TYPES, "    return column.cast(wanted)\n\n\ndef _by_widest", "    return column.cast(wanted, safe=False)\n\n\ndef _by_widest", "numbers are cut to a narrower type"),
)  # fmt: skip

MEANINGS: Final = (*_CONDITIONS, *_SCORES, *_ORDERS, *_VALUES)
