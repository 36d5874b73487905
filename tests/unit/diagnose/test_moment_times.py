"""Times of a recording's moments: the files `time`, and what stands in for them."""

import pytest

from roce_exporter.host.recorded.capture import capture
from roce_exporter.host.recorded.recorded import load_recording, moment_times
from roce_exporter.host.recorded.tree import RecordingError, Tree
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.view.host_view import HostClock


def trees(*contents: str | None) -> list[Tree]:
    return [Tree({} if content is None else {"time": content.encode()}) for content in contents]


def test_times_are_read_with_decimals() -> None:
    assert moment_times(trees("1763000000\n", "1763000015.25\n"), "host") == (1763000000.0, 1763000015.25)


def test_without_times_moments_are_fifteen_seconds_apart() -> None:
    assert moment_times(trees(None, None, None), "host") == (0.0, 15.0, 30.0)


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (("12", "12"), "recording host: moment 1: its time 12.000 is not after 12.000, the one before"),
        (("12", "11.5"), "recording host: moment 1: its time 11.500 is not after 12.000, the one before"),
        (("12", None), "recording host: moment 1 has no file `time`, but others have"),
        (("yesterday", "13"), "recording host: moment 0: `time` is 'yesterday'; write seconds since 1970"),
        (("nan", "13"), "recording host: moment 0: `time` is 'nan'"),
        (("-5", "13"), "recording host: moment 0: `time` is '-5'"),
        (("", "13"), "recording host: moment 0: `time` is ''"),
        (("9" * 5000, "13"), "recording host: moment 0: `time` is '99999999999999999999'"),
        (("1\n2", "13"), r"recording host: moment 0: `time` is '1\n2'"),
    ],
)
def test_other_times_are_refused_in_one_line(contents, said) -> None:
    with pytest.raises(RecordingError) as caught:
        moment_times(trees(*contents), "host")
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


async def test_a_capture_has_the_time_of_each_moment(tmp_path) -> None:
    times = iter([1_763_000_000.5, 1_763_000_010.75])
    kernel = simulate("quiet", clock=HostClock(), vendors=("mlx5",))
    await capture(kernel, str(tmp_path / "host"), 2, 0.001, wall=lambda: next(times))
    assert load_recording(str(tmp_path / "host")).times == (1_763_000_000.5, 1_763_000_010.75)
    assert (tmp_path / "host/1/time").read_text() == "1763000010.750000\n"
