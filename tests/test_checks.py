"""The checks that numbers and flags of users go through."""

import numpy as np
import pytest

from pymoo_gpuaco import checks

NAN = float("nan")


@pytest.mark.parametrize(
    ("arguments", "interval"),
    [
        ({}, "(-inf, inf)"),
        ({"low": 0.0}, "[0, inf)"),
        ({"high": 1.0}, "(-inf, 1]"),
        ({"low": 0.0, "high": 1.0}, "[0, 1]"),
        ({"low": 0.0, "high": 1.0, "open_low": True}, "(0, 1]"),
        ({"low": 0.0, "high": 1.0, "open_high": True}, "[0, 1)"),
        ({"low": 0.0, "high": 1.0, "open_low": True, "open_high": True}, "(0, 1)"),
    ],
)
def test_real_tells_its_interval_and_keeps_to_it(arguments, interval):
    with pytest.raises(ValueError, match="x must be in") as error:
        checks.real("x", NAN, **arguments)
    assert str(error.value) == f"x must be in {interval}, got nan"
    low, high = arguments.get("low", -1e300), arguments.get("high", 1e300)
    for end, is_open in ((low, arguments.get("open_low")), (high, arguments.get("open_high"))):
        if is_open:
            with pytest.raises(ValueError, match="x must be in"):
                checks.real("x", end, **arguments)
        else:
            assert checks.real("x", end, **arguments) == end
    for huge in (10**400, -(10**400)):
        with pytest.raises(ValueError, match="x must be in"):
            checks.real("x", huge, **arguments)


def test_checks_return_plain_python_values():
    assert type(checks.real("x", np.float32(0.5))) is float
    assert type(checks.integer("x", np.int64(5), 0)) is int
    assert checks.optional_integer("x", None, 1) is None
    assert checks.flag("x", False) is False


@pytest.mark.parametrize("wrong", [0, 1, None, "True", np.bool_(True)])
def test_flag_takes_nothing_that_merely_looks_like_one(wrong):
    with pytest.raises(TypeError, match="x must be True or False, got"):
        checks.flag("x", wrong)
