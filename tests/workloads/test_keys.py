from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skypane.types import IntArray
from skypane.workloads import Zipf
from skypane.workloads.content.keys import zipf_shares
from skypane.workloads.estimators import zipf_exponent
from skypane.workloads.stream import generator


def drawn(config: Zipf, times: IntArray) -> IntArray:
    return config.draw(times, config.ends(), generator(1, 0))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5])
def test_keys_have_the_exponent_requested(exponent: float):
    keys = drawn(Zipf(100, exponent), np.zeros(500_000, dtype=np.int64))
    assert zipf_exponent(keys, among=100) == pytest.approx(exponent, abs=0.03)
    assert_allclose(np.bincount(keys, minlength=100) / 500_000, zipf_shares(100, exponent), atol=0.003)


def test_hot_keys_move():
    times = np.arange(40_000) * 1_000  # 40 s
    keys = drawn(Zipf(50, 1.5, move_every="10 seconds", move_by=7), times)
    hottest = [int(np.bincount(part).argmax()) for part in np.split(keys, 4)]
    assert hottest == [0, 7, 14, 21]


def test_one_key_is_key_zero():
    assert not drawn(Zipf(1), np.arange(5)).any()
