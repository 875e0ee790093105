"""Tours are written whole or not at all, and what is written is read again."""

import os
import stat

import numpy as np
import pytest

from pymoo_gpuaco.problems import read_tour, write_tour, writing

TOUR = [2, 0, 3, 1]
TEXT = "NAME : four\nCOMMENT : length 14\nTYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n3\n1\n4\n2\n-1\nEOF\n"


def test_a_tour_is_written_as_tsplib_has_it_and_read_again(tmp_path):
    path = tmp_path / "four.tour"
    write_tour(path, np.array(TOUR), comment="length 14")
    assert path.read_text() == TEXT
    np.testing.assert_array_equal(read_tour(path), TOUR)


def test_name_and_comment_stay_on_their_lines(tmp_path):
    path = tmp_path / "x.tour"
    write_tour(path, TOUR, name="two\nlines", comment="a\r\nTYPE : TSP")
    assert path.read_text().splitlines()[:3] == ["NAME : two lines", "COMMENT : a TYPE : TSP", "TYPE : TOUR"]
    np.testing.assert_array_equal(read_tour(path, 4), TOUR)


@pytest.mark.parametrize("tour", [[0, 1, 1], [1, 2, 3], [[0, 1, 2]], [0.5, 1, 2]])
def test_what_is_no_tour_is_not_written(tmp_path, tour):
    with pytest.raises(ValueError, match="tour"):
        write_tour(tmp_path / "x.tour", tour)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["o.xlsx", "o.csv", "o.JSON", "o.html"])
def test_a_suffix_of_another_format_is_refused(tmp_path, name):
    with pytest.raises(
        ValueError, match=rf"{name}: the suffix must be .tour or .txt; write_route writes .csv"
    ):
        write_tour(tmp_path / name, TOUR)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_completed_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "four.tour"
    path.write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_tour(path, TOUR)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_reported_by_the_name_that_was_given(tmp_path):
    path = tmp_path / "missing" / "four.tour"
    with pytest.raises(FileNotFoundError) as failed:
        write_tour(path, TOUR)
    assert failed.value.filename == str(path)


def test_an_old_file_is_replaced_with_its_rights_and_a_link_stays_a_link(tmp_path):
    path, link = tmp_path / "four.tour", tmp_path / "link.tour"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_tour(link, TOUR, name="four", comment="length 14")
    assert link.is_symlink()
    assert path.read_text() == TEXT
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes by name on this system")
def test_what_is_no_regular_file_is_written_to_and_not_replaced():
    write_tour(os.devnull, TOUR)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
