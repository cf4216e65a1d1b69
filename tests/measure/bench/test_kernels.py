"""The peers of the kernel bench agree with it, and are kept from what they cannot take."""

import numpy as np
import pytest
from measure.bench.kernels import PEERS, SKYPANE, times

MOOCORE = next(peer for peer in PEERS if peer.name == "moocore")


@pytest.mark.long
@pytest.mark.parametrize("criteria", [2, 3, 4, 6])
def test_moocore_finds_the_same_rows(criteria):
    rng = np.random.default_rng(criteria)
    for points in (rng.random((500, criteria)), rng.integers(-3, 3, (500, criteria)).astype(float)):
        _, size = times([SKYPANE, MOOCORE], points)
        assert 0 < size <= 500


def test_a_peer_that_would_crash_on_infinity_is_not_called():
    points = np.array([[1.0, 2.0, -np.inf], [0.0, 1.0, 2.0]])
    with pytest.raises(AssertionError, match="moocore crashes where a value is minus infinity"):
        times([SKYPANE, MOOCORE], points)
